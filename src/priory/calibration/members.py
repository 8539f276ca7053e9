"""The members of a correction and their geometric pool, with the base rate as a fallback.

    p(c | x)  =  share  Π_m p_m(c | x)^exponent_m / Z  +  (1 - share) p(c),      Σ_m exponent_m = 1

A geometric mean lets a member that is sure of itself decide, and never makes the pool surer than its members. Exponents
and share are fitted to answers to rows left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

from priory.calibration.code_counts import encode_cells
from priory.calibration.solvers import minimise_cost, pad_columns
from priory.calibration.table_encoding import MAX_SCORE, N_LEVELS, N_TRIPLE_LEVELS, TableEncoding, make_one_hot
from priory.core.logspace import log_normalise, log_sum_exp, normalise
from priory.core.sparse_rows import SparseRows, join_columns
from priory.core.statistics import register_record
from priory.core.typing import Array
from priory.model.cells import Cells

SHARED_PARTS = (0.1, 0.5, 1.0)  # shrinkage towards the covariance of all classes
DIAGONAL_PARTS = (0.02, 0.1, 0.4)  # shrinkage towards the diagonal
TEMPERATURES = np.geomspace(0.1, 1.6, 10)
MAX_GAUSSIAN_COLUMNS = 120


class ScoreSums(NamedTuple):
    """Weighted counts, sums and sums of products of each class."""

    n: Array  # (classes,)
    first: Array  # (classes, columns)
    second: Array  # (classes, columns, columns)

    @classmethod
    def of(cls, scores: Array, group: Array, weight: Array, n_classes: int) -> ScoreSums:
        rows = [np.flatnonzero(group == c) for c in range(n_classes)]
        n = np.array([weight[r].sum() for r in rows])
        first = np.stack([weight[r] @ scores[r] for r in rows])
        second = np.stack([(scores[r].T * weight[r]) @ scores[r] for r in rows])
        return cls(n, first, second)

    def subtract(self, other: ScoreSums) -> ScoreSums:
        return ScoreSums(self.n - other.n, self.first - other.first, self.second - other.second)


@register_record("ScoreGaussian", axes={"means": "cd", "roots": "cdd", "constants": "c"})
@dataclass(frozen=True, eq=False)
class ScoreGaussian:
    """A Gaussian of the normal scores of each class: discriminant analysis with shrinkage.

    log p(scores | c) is ``constant - |root (scores - mean)|^2 / 2``. The statistics (`ScoreSums`) can be subtracted, so
    a fold is predicted by ``total - fold``. The covariance of a class is shrunk towards the one of all classes, and
    both towards their diagonal. Labels add their tempered evidence.
    """

    means: Array  # (classes, columns)
    roots: Array  # (classes, columns, columns): inverse Cholesky factors
    constants: Array  # (classes,)

    def find_fault(self) -> str | None:
        largest = max(np.abs(numbers).max(initial=0.0) for numbers in (self.means, self.roots, self.constants))
        return "a number is too large" if largest > MAX_SCORE else None

    @classmethod
    def of(cls, sums: ScoreSums, shared_part: float, diagonal_part: float) -> ScoreGaussian:
        """Estimate the Gaussians; classes with few rows are shrunk more."""
        n = sums.n[:, None]
        pooled_mean = sums.first.sum(axis=0) / max(n.sum(), 1.0)
        means = (sums.first + pooled_mean) / (n + 1)
        width = means.shape[1]
        # (classes, columns, columns): the sums of products about the mean
        scatter = np.stack(
            [
                s - np.outer(f, m) - np.outer(m, f) + k * np.outer(m, m)
                for s, f, m, k in zip(sums.second, sums.first, means, sums.n, strict=True)
            ]
        )
        shared = (scatter.sum(axis=0) + np.eye(width)) / (n.sum() + 1)
        roots, constants = [], []
        for own, k in zip(scatter, sums.n, strict=True):
            part = shared_part * shared + (1 - shared_part) * (own + width * shared) / (k + width)
            part = (1 - diagonal_part) * part + diagonal_part * np.diag(np.diag(part)) + 1e-3 * np.eye(width)
            try:
                factor = np.linalg.cholesky(part)
            except np.linalg.LinAlgError:
                # rounding made it indefinite: use the diagonal alone
                factor = np.diag(np.sqrt(np.abs(np.diag(part))))
            roots.append(np.linalg.inv(factor))
            constants.append(-np.log(np.diag(factor)).sum())
        return cls(means, np.stack(roots), np.array(constants))

    def log_densities(self, scores: Array) -> Array:
        """(rows, classes): log p(scores | c), up to a constant."""
        # for each class (rows, columns): the whitened distance from its mean
        away = [(scores - mean) @ root.T for mean, root in zip(self.means, self.roots, strict=True)]
        return np.stack([c - 0.5 * (a * a).sum(axis=1) for c, a in zip(self.constants, away, strict=True)], axis=1)


class ChosenGaussian(NamedTuple):
    """The Gaussian of all rows, its temperature, and its out-of-fold predictions."""

    gaussian: ScoreGaussian
    temperature: float
    left_out: Array  # (rows, classes): log probabilities; valid only for rows of a fold


def choose_gaussian(scores: Array, group: Array, weight: Array, fold: Array, base_logits: Array) -> ChosenGaussian:
    """Choose shrinkage and temperature by the out-of-fold log loss.

    ``base_logits`` (rows, classes) are the out-of-fold logits of class prior and labels.
    """
    classes = base_logits.shape[1]
    total = ScoreSums.of(scores, group, weight, classes)
    judged = [np.flatnonzero(fold == k) for k in range(fold.max() + 1)]
    records = [total.subtract(ScoreSums.of(scores[r], group[r], weight[r], classes)) for r in judged]
    rows = np.concatenate(judged)
    best: tuple[float, float, tuple[float, float], Array] | None = None
    # Grid search: the Gaussians depend on the shrinkage only, and the temperature scales their log densities.
    for parts in product(SHARED_PARTS, DIAGONAL_PARTS):
        density = np.zeros(base_logits.shape)
        for r, record in zip(judged, records, strict=True):
            density[r] = ScoreGaussian.of(record, *parts).log_densities(scores[r])
        for temperature in TEMPERATURES:
            answers = log_normalise(base_logits[rows] + temperature * density[rows])
            loss = -float(weight[rows] @ answers[np.arange(len(rows)), group[rows]])
            if best is None or loss < best[0]:
                best = (loss, float(temperature), parts, base_logits + temperature * density)
    assert best is not None
    return ChosenGaussian(ScoreGaussian.of(total, *best[2]), best[1], log_normalise(best[3]))


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


EXPONENT_PRECISION = 0.1  # of the Gaussian prior of the log exponents
MIN_EXPONENT = 1e-3  # members with less are dropped
MAX_EXPONENT_STEPS, TOLERANCE = 200, 1e-9
MAX_SHARE_STEPS = 200
PRIOR_ROWS = 0.1  # pseudo-counts of the pool and of the base rate
NATS_TO_BELIEVE = 5.0  # a gain over the base rate that is hardly due to chance


@register_record("MemberPool", axes={"exponents": "b"})
@dataclass(frozen=True, eq=False)
class MemberPool:
    """The exponent of each member (except the base rate, the first one), and their share against the base rate."""

    exponents: Array  # (members,)
    share: float  # of the pooled members; the base rate has the rest

    def find_fault(self) -> str | None:
        if not ((self.exponents >= 0).all() and np.isclose(self.exponents.sum(), 1.0)):
            return "its exponents do not add up to one"
        return None if 0 <= self.share <= 1 else "its share is not from 0 to 1"

    def mix_answers(self, answers: Sequence[Array]) -> Array:
        """(rows, classes): the mixed log probabilities, given the base rate's and each member's."""
        base, *others = answers
        pooled = pool_answers(np.stack(others), self.exponents)
        with np.errstate(divide="ignore"):
            logs = np.log([self.share, 1 - self.share])
        return np.asarray(log_sum_exp(np.stack([pooled + logs[0], base + logs[1]]), axis=0))


def pool_answers(answers: Array, exponents: Array) -> Array:
    """(rows, classes): the geometric mean of members' log probabilities (members, rows, classes)."""
    return log_normalise(np.tensordot(exponents, answers, axes=1))


def fit_pool(answers: Sequence[Array], group: Array, weight: Array) -> MemberPool:
    """Fit the pool to the log probabilities (rows, classes) of the base rate and of each member."""
    rows, others = np.arange(len(group)), np.stack(answers[1:])
    exponents = _fit_exponents(others, group, weight)
    exponents = np.where(exponents < MIN_EXPONENT, 0.0, exponents)
    exponents /= exponents.sum()
    pooled = pool_answers(others, exponents)
    return MemberPool(exponents, fit_share(pooled[rows, group], answers[0][rows, group], weight))


def _fit_exponents(answers: Array, group: Array, weight: Array) -> Array:
    """(members,): the MAP exponents, with a Gaussian prior of their logs."""
    rows = np.arange(len(group))

    def cost(log_exponents: Array) -> tuple[float, Array]:
        exponents = normalise(log_exponents)
        pooled = pool_answers(answers, exponents)
        # wrong (rows, classes) is p - y; slope (members,) is the gradient with respect to the exponents
        wrong = np.exp(pooled)
        wrong[rows, group] -= 1
        slope = np.einsum("nc,mnc->m", wrong * weight[:, None], answers)
        loss = EXPONENT_PRECISION / 2 * log_exponents @ log_exponents - weight @ pooled[rows, group]
        return float(loss), EXPONENT_PRECISION * log_exponents + exponents * (slope - exponents @ slope)

    return normalise(minimise_cost(cost, np.zeros(len(answers)), TOLERANCE, MAX_EXPONENT_STEPS))


def fit_share(pooled: Array, base: Array, weight: Array) -> float:
    """Fit the share of the pool by expectation maximisation, from the log probabilities of the true classes.

    While the pool has gained only a few nats over the base rate, the rows may be noise: the base rate then gets
    pseudo-counts for up to all of the rows.
    """
    gain = np.exp(np.clip(pooled - base, -700, 700))
    base_rows = PRIOR_ROWS
    for _ in range(2):  # the second time with pseudo-counts for the rows that may be noise
        share = 0.5
        for _ in range(MAX_SHARE_STEPS):
            # E step: the expected number of rows that the pool explains; M step: the new share
            own = float(weight @ (share * gain / (share * gain + 1 - share)))
            new = (own + PRIOR_ROWS) / (weight.sum() + base_rows + PRIOR_ROWS)
            done, share = abs(new - share) < 1e-5, new
            if done:
                break
        nats = float(weight @ np.log(share * gain + 1 - share))
        base_rows = PRIOR_ROWS + weight.sum() * np.exp(-max(nats, 0.0) / NATS_TO_BELIEVE)
    return share
