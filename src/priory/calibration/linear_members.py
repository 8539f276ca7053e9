"""Linear members: naive Bayes on codes, and regressions on codes, tokens and pairs of columns, or on numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
from numpy import ndarray as Array

from priory.calibration.code_counts import CodeEvidence, encode_cells
from priory.calibration.logit_parts import LogitParts, add_columns, split_codes, split_pairs
from priory.calibration.members import MAX_LOGIT_WEIGHT, EncodedRow, EncodedRows, Member
from priory.calibration.solvers import pad_columns
from priory.calibration.table_encoding import N_LEVELS, TableEncoding, make_one_hot
from priory.core._kernel import rows as kernel
from priory.core.logspace import log_normalise
from priory.core.sparse_rows import SparseRows, join_columns, multiply_entries
from priory.core.statistics import register_record

MAX_PRECISE_WEIGHTS = 1 << 18
NO_PAIRS = np.zeros((0, 2), dtype=np.int64)


def make_constant(rows: int) -> SparseRows:
    """(rows, 1): the constant feature of the intercept."""
    return SparseRows(np.arange(rows + 1, dtype=np.int64), np.zeros(rows, np.int32), None, 1)


def find_largest_weight_fault(*weights: Array) -> str | None:
    """Describe weights that are too large; None if there are none."""
    largest = max(np.abs(table).max(initial=0.0) for table in weights)
    return "a weight is too large" if largest > MAX_LOGIT_WEIGHT else None


@register_record("CodeMember")
@dataclass(frozen=True, eq=False)
class CodeMember(Member):
    """Naive Bayes on codes, without weights."""

    @property
    def kinds(self) -> tuple[str, ...]:
        return ()

    def find_misfit(self, encoding: TableEncoding, n_classes: int, n_tokens: int) -> str | None:
        return None

    def log_probabilities(self, rows: EncodedRows) -> Array:
        return log_normalise(rows.untempered_logits)

    def split_logits(self, rows: EncodedRows) -> LogitParts:
        assert rows.evidence is not None
        return split_codes(rows, rows.evidence.join_ratios())

    def weigh_codes(self, encoding: TableEncoding, evidence: CodeEvidence) -> Array:
        return evidence.join_ratios()

    def open_row(self, encoding: TableEncoding, token_widths: Sequence[int]) -> None:
        return None


@register_record("LinearMember", dtypes={"pairs": "i8"}, axes={"weights": "vc", "pairs": "rk"})
@dataclass(frozen=True, eq=False)
class LinearMember(Member):
    """A logistic regression on codes, optional tokens, and pairs of columns, on tempered naive Bayes.

    Its weights are added to the tempered evidence of the class prior, of codes and of texts.
    """

    weights: Array  # (features, classes)
    pairs: Array  # (pairs, 2): columns
    with_tokens: bool
    is_refined: bool  # False if there is nothing but the tempered naive Bayes it is centred on

    @property
    def reads_tokens(self) -> bool:
        return self.with_tokens

    @property
    def kinds(self) -> tuple[str, ...]:
        together = ["structure"] if len(self.pairs) else []
        return (*together, *(["refinement"] if self.is_refined else []))

    def find_fault(self) -> str | None:
        if self.pairs.shape[1:] != (2,) or self.pairs.min(initial=0) < 0:
            return "a pair is not two columns"
        return find_largest_weight_fault(self.weights)

    def find_misfit(self, encoding: TableEncoding, n_classes: int, n_tokens: int) -> str | None:
        if self.pairs.max(initial=-1) >= len(encoding.columns):
            return "a pair is of a column that is not there"
        features = 1 + encoding.n_codes + (n_tokens if self.with_tokens else 0) + len(self.pairs) * N_LEVELS**2
        return None if self.weights.shape == (features, n_classes) else "there is not one weight for each feature"

    def log_probabilities(self, rows: EncodedRows) -> Array:
        return log_normalise(rows.tempered_logits + self._multiply(self._make_features(rows), self.weights))

    def _multiply(self, features: SparseRows, weights: Array) -> Array:
        """(rows, classes): the sum of the weights of each row's features, in double precision if weights are few."""
        if self.weights.size <= MAX_PRECISE_WEIGHTS:
            return multiply_entries(features.ends, features.indices, features.values, weights.astype(float))
        lanes = self._lanes if weights is self.weights else pad_columns(weights)
        return features.multiply(lanes)[:, : weights.shape[1]]

    def _make_features(self, rows: EncodedRows) -> SparseRows:
        """(rows, features): the constant, codes of columns, tokens of texts, cells of pairs."""
        parts = [make_constant(len(rows)), make_one_hot(rows.codes, rows.encoding.starts)]
        if self.with_tokens:
            parts += rows.tokens
        if len(self.pairs):
            parts.append(encode_cells(rows.levels, self.pairs))
        return join_columns(parts)

    def split_logits(self, rows: EncodedRows) -> LogitParts:
        assert rows.evidence is not None
        parts = split_codes(rows, self.weigh_codes(rows.encoding, rows.evidence))
        start = 1 + rows.encoding.n_codes
        for t, tokens in enumerate(rows.tokens if self.with_tokens else ()):
            parts.texts[:, :, t] = self._multiply(tokens, self.weights[start : start + tokens.width])
            start += tokens.width
        return parts.add(split_pairs(rows, self.pairs, self.weights[start:])) if len(self.pairs) else parts

    @cached_property
    def _lanes(self) -> Array:
        """The weights padded for sparse products, computed once."""
        return pad_columns(self.weights)

    def weigh_codes(self, encoding: TableEncoding, evidence: CodeEvidence) -> Array:
        return evidence.temper_codes(encoding) + self.weights[: 1 + encoding.n_codes]

    def open_row(
        self, encoding: TableEncoding, token_widths: Sequence[int]
    ) -> Callable[[EncodedRow, Array], None] | None:
        if not (self.with_tokens or len(self.pairs)):
            return None
        weights, pairs = np.ascontiguousarray(self.weights, dtype=float), np.ascontiguousarray(self.pairs)
        # the weights of codes, of the tokens of each text, and of the cells of pairs follow each other
        start = 1 + encoding.n_codes
        starts = [start, *(start + np.cumsum(token_widths if self.with_tokens else [])).tolist()]

        def add_logits(row: EncodedRow, logits: Array) -> None:
            for text_start, chosen in zip(starts[:-1], row.tokens, strict=False):
                # token features are binary, in rows of norm one; in batches the norm has single precision
                kernel.add_weights(weights, chosen, text_start, float(np.float32(1 / sqrt(len(chosen) or 1))), logits)
            if len(pairs):
                kernel.add_cells(weights, row.levels, pairs, N_LEVELS, starts[-1], logits)

        return add_logits


@register_record("SlopeMember", axes={"weights": "vc", "slopes": "dc"})
@dataclass(frozen=True, eq=False)
class SlopeMember(Member):
    """A logistic regression on labels and on numbers, as normal scores or standardised, centred on zero."""

    weights: Array  # (1 + codes, classes): the intercept, and the weight of each label
    slopes: Array  # (numbers, classes)
    of_scores: bool  # whether numbers are normal scores; else they are standardised

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("refinement",)

    def find_fault(self) -> str | None:
        return find_largest_weight_fault(self.weights, self.slopes)

    def find_misfit(self, encoding: TableEncoding, n_classes: int, n_tokens: int) -> str | None:
        fits = (self.weights.shape, len(self.slopes)) == ((1 + encoding.n_codes, n_classes), encoding.n_numbers)
        return None if fits else "slopes are of other columns"

    def log_probabilities(self, rows: EncodedRows) -> Array:
        return log_normalise(rows.look_up(self.weights) + self._take_numbers(rows) @ self.slopes + rows.text_logits)

    def _take_numbers(self, rows: EncodedRows | EncodedRow) -> Array:
        return rows.scores if self.of_scores else rows.standardised

    def split_logits(self, rows: EncodedRows) -> LogitParts:
        added = self._take_numbers(rows)[:, None, :] * self.slopes.T  # (rows, classes, numbers); their mean is zero
        return add_columns(split_codes(rows, self.weights), np.flatnonzero(rows.encoding.is_number), added)

    def weigh_codes(self, encoding: TableEncoding, evidence: CodeEvidence) -> Array:
        return self.weights

    def open_row(self, encoding: TableEncoding, token_widths: Sequence[int]) -> Callable[[EncodedRow, Array], None]:
        def add_logits(row: EncodedRow, logits: Array) -> None:
            logits += self._take_numbers(row) @ self.slopes

        return add_logits
