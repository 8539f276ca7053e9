"""Logistic regressions as members: on codes, tokens and sets of columns; and on labels and normal scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt

import numpy as np

from priory.calibration.code_counts import CodeEvidence, encode_cells
from priory.calibration.logit_parts import LogitParts, add_columns, split_codes, split_sets
from priory.calibration.members import MAX_LOGIT_WEIGHT, EncodedRows, Member, SingleRow
from priory.calibration.solvers import pad_columns
from priory.calibration.table_encoding import N_LEVELS, N_TRIPLE_LEVELS, TableEncoding, make_one_hot
from priory.core._kernel import rows as kernel
from priory.core.logspace import log_normalise
from priory.core.registration import register_record
from priory.core.sparse_rows import SparseRows, join_columns
from priory.core.typing import Array

NO_PAIRS, NO_TRIPLES = np.zeros((0, 2), dtype=np.int64), np.zeros((0, 3), dtype=np.int64)


def make_constant(rows: int) -> SparseRows:
    """(rows, 1): the constant feature of the intercept."""
    return SparseRows(np.arange(rows + 1, dtype=np.int64), np.zeros(rows, np.int32), None, 1)


def find_largest_weight_fault(*weights: Array) -> str | None:
    """Describe weights that are too large; None if there are none."""
    largest = max(np.abs(table).max(initial=0.0) for table in weights)
    return "a weight is too large" if largest > MAX_LOGIT_WEIGHT else None


@register_record(
    "LinearMember", dtypes={"pairs": "i8", "triples": "i8"}, axes={"weights": "vc", "pairs": "rk", "triples": "tq"}
)
@dataclass(frozen=True, eq=False)
class LinearMember(Member):
    """A logistic regression on codes, optional tokens, and pairs and triples of columns, on tempered naive Bayes.

    Its weights are added to the tempered evidence of the class prior, of codes and of texts.
    """

    weights: Array  # (features, classes)
    pairs: Array  # (pairs, 2): columns
    with_tokens: bool
    is_refined: bool  # False if there is nothing but the tempered naive Bayes it is centred on
    triples: Array = field(default_factory=NO_TRIPLES.copy)  # (triples, 3): columns

    @property
    def reads_tokens(self) -> bool:
        return self.with_tokens

    @property
    def kinds(self) -> tuple[str, ...]:
        together = ["structure"] if len(self.pairs) + len(self.triples) else []
        return (*together, *(["refinement"] if self.is_refined else []))

    def find_fault(self) -> str | None:
        if self.pairs.shape[1:] != (2,) or self.pairs.min(initial=0) < 0:
            return "a pair is not two columns"
        if self.triples.shape[1:] != (3,) or self.triples.min(initial=0) < 0:
            return "a triple is not three columns"
        return find_largest_weight_fault(self.weights)

    def find_misfit(self, encoding: TableEncoding, n_classes: int, n_tokens: int) -> str | None:
        if max(self.pairs.max(initial=-1), self.triples.max(initial=-1)) >= len(encoding.columns):
            return "a pair or a triple is of a column that is not there"
        together = len(self.pairs) * N_LEVELS**2 + len(self.triples) * N_TRIPLE_LEVELS**3
        features = 1 + encoding.n_codes + (n_tokens if self.with_tokens else 0) + together
        return None if self.weights.shape == (features, n_classes) else "there is not one weight for each feature"

    def log_probabilities(self, rows: EncodedRows) -> Array:
        added = self._make_features(rows).multiply(self._lanes)[:, : self.weights.shape[1]]
        return log_normalise(rows.tempered_logits + added)

    def _make_features(self, rows: EncodedRows) -> SparseRows:
        """(rows, features): the constant, codes of columns, tokens of texts, cells of pairs and of triples."""
        parts = [make_constant(len(rows)), make_one_hot(rows.codes, rows.encoding.starts)]
        if self.with_tokens:
            parts += rows.tokens
        if len(self.pairs):
            parts.append(encode_cells(rows.levels, self.pairs, N_LEVELS))
        if len(self.triples):
            parts.append(encode_cells(rows.triple_levels, self.triples, N_TRIPLE_LEVELS))
        return join_columns(parts)

    def split_logits(self, rows: EncodedRows) -> LogitParts:
        assert rows.evidence is not None
        parts = split_codes(rows, self.weigh_codes(rows.encoding, rows.evidence))
        start = 1 + rows.encoding.n_codes
        for t, tokens in enumerate(rows.tokens if self.with_tokens else ()):
            weights = pad_columns(self.weights[start : start + tokens.width])
            parts.texts[:, :, t] = tokens.multiply(weights)[:, : self.weights.shape[1]]
            start += tokens.width
        for sets, levels, n_levels in (
            (self.pairs, rows.levels, N_LEVELS),
            (self.triples, rows.triple_levels, N_TRIPLE_LEVELS),
        ):
            stop = start + len(sets) * n_levels ** sets.shape[1]
            parts = parts.add(split_sets(rows, levels, n_levels, sets, self.weights[start:stop]))
            start = stop
        return parts

    @cached_property
    def _lanes(self) -> Array:
        """The weights padded for sparse products, computed once."""
        return pad_columns(self.weights)

    def weigh_codes(self, encoding: TableEncoding, evidence: CodeEvidence) -> Array:
        return evidence.temper_codes(encoding) + self.weights[: 1 + encoding.n_codes]

    def open_row(
        self, encoding: TableEncoding, token_widths: Sequence[int]
    ) -> Callable[[SingleRow, Array], None] | None:
        if not (self.with_tokens or len(self.pairs) + len(self.triples)):
            return None
        weights = np.ascontiguousarray(self.weights, dtype=float)
        pairs, triples = (np.ascontiguousarray(sets) for sets in (self.pairs, self.triples))
        # the weights of codes, of the tokens of each text, of the cells of pairs, and of triples follow each other
        start = 1 + encoding.n_codes
        starts = [start, *(start + np.cumsum(token_widths if self.with_tokens else [])).tolist()]
        triple_start = starts[-1] + len(pairs) * N_LEVELS**2

        def add_logits(row: SingleRow, logits: Array) -> None:
            for text_start, chosen in zip(starts[:-1], row.tokens, strict=False):
                # token features are binary, in rows of norm one
                kernel.add_weights(weights, chosen, text_start, 1 / sqrt(max(len(chosen), 1)), logits)
            if len(pairs):
                kernel.add_cells(weights, row.levels, pairs, N_LEVELS, starts[-1], logits)
            if len(triples):
                kernel.add_cells(weights, row.triple_levels, triples, N_TRIPLE_LEVELS, triple_start, logits)

        return add_logits


@register_record("SlopeMember", axes={"weights": "vc", "slopes": "dc"})
@dataclass(frozen=True, eq=False)
class SlopeMember(Member):
    """A logistic regression on labels and on the normal scores of numbers, centred on zero."""

    weights: Array  # (1 + codes, classes): the intercept, and the weight of each label
    slopes: Array  # (numbers, classes)

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("refinement",)

    def find_fault(self) -> str | None:
        return find_largest_weight_fault(self.weights, self.slopes)

    def find_misfit(self, encoding: TableEncoding, n_classes: int, n_tokens: int) -> str | None:
        fits = (self.weights.shape, len(self.slopes)) == ((1 + encoding.n_codes, n_classes), encoding.n_numbers)
        return None if fits else "slopes are of other columns"

    def log_probabilities(self, rows: EncodedRows) -> Array:
        return log_normalise(rows.look_up(self.weights) + rows.scores @ self.slopes + rows.text_logits)

    def split_logits(self, rows: EncodedRows) -> LogitParts:
        added = rows.scores[:, None, :] * self.slopes.T  # (rows, classes, numbers); normal scores have mean zero
        return add_columns(split_codes(rows, self.weights), np.flatnonzero(rows.encoding.is_number), added)

    def weigh_codes(self, encoding: TableEncoding, evidence: CodeEvidence) -> Array:
        return self.weights

    def open_row(self, encoding: TableEncoding, token_widths: Sequence[int]) -> Callable[[SingleRow, Array], None]:
        def add_logits(row: SingleRow, logits: Array) -> None:
            logits += row.scores @ self.slopes

        return add_logits
