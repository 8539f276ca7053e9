"""The classifiers (members) of the ensemble that corrects a model.

The base rate; a regression on the codes of columns and the tokens of texts, centred on tempered naive Bayes; the same
with pairs and triples of columns; a regression on labels and normal scores; and a Gaussian of all numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from priory.calibration.gaussian_member import ScoreGaussian
from priory.calibration.interactions import encode_cells
from priory.calibration.lockstep import pad_columns
from priory.calibration.table_encoding import N_LEVELS, N_TRIPLE_LEVELS, TableEncoding, make_one_hot
from priory.core.logspace import log_normalise
from priory.core.registration import register_record
from priory.core.sparse_rows import SparseRows, join_columns
from priory.core.typing import Array
from priory.models.cells import Cells

MAX_LOGIT_WEIGHT = 1e6  # far above any fitted weight; sums of weights stay finite
NO_PAIRS, NO_TRIPLES = np.zeros((0, 2), dtype=np.int64), np.zeros((0, 3), dtype=np.int64)


class CorrectionRows(NamedTuple):
    """Rows as the input of members."""

    codes: Array  # (rows, columns)
    levels: Array  # (rows, columns): coarse codes, for pairs
    triple_levels: Array  # (rows, columns): coarser codes, for triples
    scores: Array  # (rows, columns of numbers): normal scores
    text_logits: Array  # (rows, classes): the tempered evidence of texts
    tokens: Callable[[], list[SparseRows]]  # the tokens of texts, as sparse rows


def encode_rows(
    encoding: TableEncoding,
    cells: Sequence[Cells],
    with_scores: bool,
    text_logits: Array,
    tokens: Callable[[], list[SparseRows]],
) -> CorrectionRows:
    """Encode cells as the input of members, with normal scores if a member needs them."""
    codes = encoding.encode(cells)
    scores = encoding.normal_scores(cells) if with_scores else np.zeros((len(codes), 0))
    levels, coarse = (encoding.encode_levels(codes, n) for n in (N_LEVELS, N_TRIPLE_LEVELS))
    return CorrectionRows(codes, levels, coarse, scores, text_logits, tokens)


def make_constant(rows: int) -> SparseRows:
    """(rows, 1): the constant feature of the intercept."""
    return SparseRows(np.arange(rows + 1, dtype=np.int64), np.zeros(rows, np.int32), None, 1)


def make_features(rows: CorrectionRows, starts: Array, pairs: Array, triples: Array, with_tokens: bool) -> SparseRows:
    """(rows, features): the constant, codes of columns, tokens of texts, cells of pairs and of triples."""
    parts = [make_constant(len(rows.codes)), make_one_hot(rows.codes, starts)]
    if with_tokens:
        parts += rows.tokens()
    if len(pairs):
        parts.append(encode_cells(rows.levels, pairs, N_LEVELS))
    if len(triples):
        parts.append(encode_cells(rows.triple_levels, triples, N_TRIPLE_LEVELS))
    return join_columns(parts)


@register_record("BaseRate", axes={"log_share": "c"})
@dataclass(frozen=True, eq=False)
class BaseRateMember:
    """The share of each class, equal for all rows."""

    log_share: Array  # (classes,)

    def find_fault(self) -> str | None:
        return "a weight is too large" if np.abs(self.log_share).max(initial=0.0) > MAX_LOGIT_WEIGHT else None

    def log_probabilities(self, rows: CorrectionRows, encoding: TableEncoding) -> Array:
        return np.repeat(log_normalise(self.log_share[None]), len(rows.codes), axis=0)


@register_record(
    "LinearMember", dtypes={"pairs": "i8", "triples": "i8"}, axes={"weights": "vc", "pairs": "rk", "triples": "tq"}
)
@dataclass(frozen=True, eq=False)
class LinearMember:
    """A logistic regression on codes, optional tokens, and pairs and triples of columns."""

    weights: Array  # (features, classes)
    pairs: Array  # (pairs, 2): columns
    with_tokens: bool
    is_refined: bool  # False if its weights are only the tempered naive Bayes it is centred on
    triples: Array = field(default_factory=NO_TRIPLES.copy)  # (triples, 3): columns

    def find_fault(self) -> str | None:
        if self.pairs.shape[1:] != (2,) or self.pairs.min(initial=0) < 0:
            return "a pair is not two columns"
        if self.triples.shape[1:] != (3,) or self.triples.min(initial=0) < 0:
            return "a triple is not three columns"
        return "a weight is too large" if np.abs(self.weights).max(initial=0.0) > MAX_LOGIT_WEIGHT else None

    def count_features(self, encoding: TableEncoding, n_tokens: int) -> int:
        together = len(self.pairs) * N_LEVELS**2 + len(self.triples) * N_TRIPLE_LEVELS**3
        return 1 + encoding.n_codes + (n_tokens if self.with_tokens else 0) + together

    def log_probabilities(self, rows: CorrectionRows, encoding: TableEncoding) -> Array:
        features = make_features(rows, encoding.starts, self.pairs, self.triples, self.with_tokens)
        return log_normalise(features.multiply(self._lanes)[:, : self.weights.shape[1]] + rows.text_logits)

    @cached_property
    def _lanes(self) -> Array:
        """The weights padded for sparse products, computed once."""
        return pad_columns(self.weights)


@register_record("SlopeMember", axes={"weights": "vc", "slopes": "dc"})
@dataclass(frozen=True, eq=False)
class SlopeMember:
    """A logistic regression on labels and on the normal scores of numbers, centred on zero."""

    weights: Array  # (1 + codes, classes): the intercept, and the weight of each label
    slopes: Array  # (numbers, classes)

    def find_fault(self) -> str | None:
        largest = max(np.abs(self.weights).max(initial=0.0), np.abs(self.slopes).max(initial=0.0))
        return "a weight is too large" if largest > MAX_LOGIT_WEIGHT else None

    def log_probabilities(self, rows: CorrectionRows, encoding: TableEncoding) -> Array:
        # (rows, classes): the intercept and the weights of the row's labels
        labels = self.weights[0] + look_up_codes(self.weights[1:].T, rows.codes, encoding.starts)
        return log_normalise(labels + rows.scores @ self.slopes + rows.text_logits)


@register_record("GaussianMember", axes={"labels": "cv"})
@dataclass(frozen=True, eq=False)
class GaussianMember:
    """The Gaussian of all numbers, with the class prior and the tempered evidence of labels."""

    gaussian: ScoreGaussian
    temperature: float
    labels: Array  # (classes, 1 + codes): the log prior, and the evidence of each code

    def find_fault(self) -> str | None:
        if len(self.labels) != len(self.gaussian.constants):
            return "labels and numbers are of different classes"
        if np.abs(self.labels).max(initial=0.0) > MAX_LOGIT_WEIGHT:
            return "a weight is too large"
        return None if 0 <= self.temperature <= MAX_LOGIT_WEIGHT else "its temperature is not from zero, or too large"

    def log_probabilities(self, rows: CorrectionRows, encoding: TableEncoding) -> Array:
        base = self.labels[:, 0] + look_up_codes(self.labels[:, 1:], rows.codes, encoding.starts) + rows.text_logits
        return log_normalise(base + self.temperature * self.gaussian.log_densities(rows.scores))


Member = BaseRateMember | LinearMember | SlopeMember | GaussianMember


def look_up_codes(table: Array, codes: Array, starts: Array) -> Array:
    """(rows, classes): the entries of ``table`` (classes, all codes) at a row's codes, summed; -1 adds nothing."""
    dense = pad_columns(table.T)
    return np.asarray(make_one_hot(codes, starts).multiply(dense)[:, : len(table)], dtype=float)
