"""Members, each one way to answer: regressions and the Gaussian of all numbers; and the geometric pool of members.

    p(c | x)  =  share  Π_m p_m(c | x)^exponent_m / Z  +  (1 - share) p(c),      Σ_m exponent_m = 1

A geometric mean lets a member that is sure of itself decide, and never makes the pool surer than its members. Exponents
and share are fitted to answers to rows left out. The base rate is the fallback.

A member answers from what a table encoding makes of a row, from the tempered evidence of its codes, which follows the
counts of all rows, and from what it has fitted to the kept rows. The evidence of texts and of rare labels is in every
member: kept rows are too few to weigh a rare label.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy import ndarray as Array

from priory.calibration.code_counts import CodeEvidence
from priory.calibration.encoded_rows import EncodedRows
from priory.calibration.logit_terms import (
    CellTable,
    CodeTable,
    LogitParts,
    LogitTerm,
    QuadraticForm,
    Slopes,
    TokenWeightTable,
    add_columns,
    split_codes,
    split_pairs,
)
from priory.calibration.solvers import minimise_cost, pad_columns
from priory.calibration.table_encoding import MAX_SCORE, N_LEVELS, TableEncoding
from priory.core.logspace import log_normalise, normalise
from priory.core.sparse_rows import SparseRows
from priory.core.statistics import register_record

MAX_LOGIT_WEIGHT = 1e6  # far above any fitted weight; sums of weights stay finite


class Member(ABC):
    """One way to answer. Members are registered records; they are checked, and list the terms of their logits."""

    @property
    @abstractmethod
    def kinds(self) -> tuple[str, ...]:
        """The kinds of corrections that it brings."""

    @property
    def reads_tokens(self) -> bool:
        """Whether it uses the tokens of texts."""
        return False

    @abstractmethod
    def find_misfit(self, encoding: TableEncoding, n_classes: int, n_tokens: int) -> str | None:
        """Describe why it cannot answer rows of this encoding; None if it can."""

    @abstractmethod
    def list_terms(self, encoding: TableEncoding, evidence: CodeEvidence) -> list[LogitTerm]:
        """List the terms of its logits, without the tempered evidence of texts."""

    @abstractmethod
    def split_logits(self, rows: EncodedRows) -> LogitParts:
        """Split its logits into columns, texts and sets of columns, without the tempered evidence of texts."""


EXPONENT_PRECISION = 0.1  # of the Gaussian prior of the log exponents
MIN_EXPONENT = 1e-3  # members with less are dropped
MAX_EXPONENT_STEPS, TOLERANCE = 200, 1e-9
MAX_SHARE_STEPS = 200
PRIOR_ROWS = 0.1  # pseudo-counts of the pool and of the base rate
# Of the gain over the base rate, in nats, the charge is put down to chance; the rest is the more credible, the larger
# it is against the scale.
CHARGE, SCALE = 4.0, 2.0


@register_record("MemberPool", axes={"exponents": "b"})
@dataclass(frozen=True, eq=False)
class MemberPool:
    """The exponent of each member, and their share against the base rate."""

    exponents: Array  # (members,)
    share: float  # of the pooled members; the base rate has the rest

    def find_fault(self) -> str | None:
        if not ((self.exponents >= 0).all() and np.isclose(self.exponents.sum(), 1.0)):
            return "its exponents do not add up to one"
        return None if 0 <= self.share <= 1 else "its share is not from 0 to 1"

    def mix_base_rate(self, pooled: Array, base: Array) -> Array:
        """(rows, classes): the mixed log probabilities, from the pooled ones and the base rate."""
        with np.errstate(divide="ignore"):
            return np.logaddexp(pooled + np.log(self.share), base + np.log(1 - self.share))


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
    """Fit the share of the pool from the log probabilities of the true classes.

    While the pool has gained only a few nats over the base rate, the rows may be noise: the base rate then gets
    pseudo-counts for up to all of the rows.
    """
    _, nats = _fit_mixture(pooled, base, weight, PRIOR_ROWS)
    noise_rows = weight.sum() * np.exp(-max(nats - CHARGE, 0.0) / SCALE)
    return _fit_mixture(pooled, base, weight, PRIOR_ROWS + noise_rows)[0]


def fit_share_of_one(answers: Array, base: Array, weight: Array) -> float:
    """`fit_share` of a single regression, which gains less by chance than a pool: with the probability of signal."""
    share, nats = _fit_mixture(answers, base, weight, PRIOR_ROWS)
    return float(share / (1 + np.exp((CHARGE - nats) / SCALE)))


def _fit_mixture(pooled: Array, base: Array, weight: Array, base_rows: float) -> tuple[float, float]:
    """The share by expectation maximisation, with pseudo-counts of the base rate, and the gain over it in nats."""
    gain, share = np.exp(np.clip(pooled - base, -700, 700)), 0.5
    for _ in range(MAX_SHARE_STEPS):
        # E step: the expected number of rows that the pool explains; M step: the new share
        own = float(weight @ (share * gain / (share * gain + 1 - share)))
        new = (own + PRIOR_ROWS) / (weight.sum() + base_rows + PRIOR_ROWS)
        done, share = abs(new - share) < 1e-5, new
        if done:
            break
    return share, float(weight @ np.log(share * gain + 1 - share))


# -- regressions -------------------------------------------------------------------------------------------------------


NO_PAIRS = np.zeros((0, 2), dtype=np.int64)


def make_constant(rows: int) -> SparseRows:
    """(rows, 1): the constant feature of the intercept."""
    return SparseRows(np.arange(rows + 1, dtype=np.int64), np.zeros(rows, np.int32), None, 1)


def find_largest_weight_fault(*weights: Array) -> str | None:
    """Describe weights that are too large; None if there are none."""
    largest = max(np.abs(table).max(initial=0.0) for table in weights)
    return "a weight is too large" if largest > MAX_LOGIT_WEIGHT else None


@register_record("LinearMember", dtypes={"pairs": "i8"}, axes={"weights": "vc", "pairs": "rk"})
@dataclass(frozen=True, eq=False)
class LinearMember(Member):
    """A logistic regression on codes, optional tokens, and pairs of columns, on tempered naive Bayes.

    Its weights are added to the tempered evidence of the class prior, of codes and of texts.
    """

    weights: Array  # (features, classes)
    pairs: Array  # (pairs, 2): columns
    with_tokens: bool

    @property
    def reads_tokens(self) -> bool:
        return self.with_tokens

    @property
    def kinds(self) -> tuple[str, ...]:
        together = ["structure"] if len(self.pairs) else []
        return (*together, *(["refinement"] if self.weights.any() else []))

    def find_fault(self) -> str | None:
        if self.pairs.shape[1:] != (2,) or self.pairs.min(initial=0) < 0:
            return "a pair is not two columns"
        return find_largest_weight_fault(self.weights)

    def find_misfit(self, encoding: TableEncoding, n_classes: int, n_tokens: int) -> str | None:
        if self.pairs.max(initial=-1) >= len(encoding.columns):
            return "a pair is of a column that is not there"
        features = 1 + encoding.n_weighed + (n_tokens if self.with_tokens else 0) + len(self.pairs) * N_LEVELS**2
        return None if self.weights.shape == (features, n_classes) else "there is not one weight for each feature"

    def list_terms(self, encoding: TableEncoding, evidence: CodeEvidence) -> list[LogitTerm]:
        # the weights of codes, of the tokens of all texts, and of the cells of pairs follow each other
        tokens, cells = 1 + encoding.n_weighed, len(self.weights) - len(self.pairs) * N_LEVELS**2
        terms: list[LogitTerm] = [CodeTable(self.weigh_codes(encoding, evidence))]
        terms += [TokenWeightTable(self.weights[tokens:cells])] if self.with_tokens else []
        return terms + ([CellTable(self.pairs, self.weights[cells:])] if len(self.pairs) else [])

    def split_logits(self, rows: EncodedRows) -> LogitParts:
        assert rows.evidence is not None
        parts = split_codes(rows, self.weigh_codes(rows.encoding, rows.evidence))
        start = 1 + rows.encoding.n_weighed
        for t, tokens in enumerate(rows.tokens if self.with_tokens else ()):
            weights = pad_columns(self.weights[start : start + tokens.width])
            parts.texts[:, :, t] = tokens.multiply(weights)[:, : self.weights.shape[1]]
            start += tokens.width
        return parts.add(split_pairs(rows, self.pairs, self.weights[start:])) if len(self.pairs) else parts

    def weigh_codes(self, encoding: TableEncoding, evidence: CodeEvidence) -> Array:
        return evidence.temper_codes(encoding) + encoding.place_weights(self.weights[: 1 + encoding.n_weighed])


@register_record("SlopeMember", axes={"weights": "vc", "slopes": "dc"})
@dataclass(frozen=True, eq=False)
class SlopeMember(Member):
    """A logistic regression on labels and on numbers, as normal scores or standardised, centred on zero."""

    weights: Array  # (1 + codes but rare labels, classes): the intercept, and the weight of each label
    slopes: Array  # (numbers, classes)
    of_scores: bool  # whether numbers are normal scores; else they are standardised

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("refinement",)

    def find_fault(self) -> str | None:
        return find_largest_weight_fault(self.weights, self.slopes)

    def find_misfit(self, encoding: TableEncoding, n_classes: int, n_tokens: int) -> str | None:
        fits = (self.weights.shape, len(self.slopes)) == ((1 + encoding.n_weighed, n_classes), encoding.n_numbers)
        return None if fits else "slopes are of other columns"

    def list_terms(self, encoding: TableEncoding, evidence: CodeEvidence) -> list[LogitTerm]:
        return [CodeTable(self._weigh_codes(encoding, evidence)), Slopes(self.slopes, self.of_scores)]

    def split_logits(self, rows: EncodedRows) -> LogitParts:
        assert rows.evidence is not None
        weights = self._weigh_codes(rows.encoding, rows.evidence)
        added = (rows.scores if self.of_scores else rows.standardised)[
            :, None, :
        ] * self.slopes.T  # (rows, classes, numbers); their mean is zero
        return add_columns(split_codes(rows, weights), np.flatnonzero(rows.encoding.is_number), added)

    def _weigh_codes(self, encoding: TableEncoding, evidence: CodeEvidence) -> Array:
        return evidence.temper_rare(encoding) + encoding.place_weights(self.weights)


# -- the Gaussian of all numbers ---------------------------------------------------------------------------------------


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

    def place_columns(self, columns: Array, width: int) -> ScoreGaussian:
        """Return the Gaussian of ``width`` columns, in which these are ``columns`` and the scores of others are 0."""
        means, roots = np.zeros((len(self.means), width)), np.tile(np.eye(width), (len(self.means), 1, 1))
        means[:, columns] = self.means
        roots[:, columns[:, None], columns] = self.roots
        return ScoreGaussian(means, roots, self.constants)

    def log_densities(self, scores: Array) -> Array:
        """(rows, classes): log p(scores | c), up to a constant."""
        # for each class (rows, columns): the whitened distance from its mean
        away = [(scores - mean) @ root.T for mean, root in zip(self.means, self.roots, strict=True)]
        return np.stack([c - 0.5 * (a * a).sum(axis=1) for c, a in zip(self.constants, away, strict=True)], axis=1)

    def split_densities(self, scores: Array, class_shares: Array) -> tuple[Array, Array]:
        """Shapley values of log p(scores | c) (rows, classes, columns), and its mean (classes,), over all classes.

        With v = scores - mean_c, precision P, and m and S the mean and covariance of v over the mixture of the classes,
        column i has ((v - m)_i (P (v + m))_i - Σ_j P_ij S_ij) / -2.
        """
        precisions = self.roots.transpose(0, 2, 1) @ self.roots
        average = class_shares @ self.means
        between = self.means - average
        spread = np.tensordot(class_shares, np.linalg.inv(precisions) + between[:, :, None] * between[:, None], axes=1)
        inner = (precisions * spread).sum(axis=2)  # (classes, columns)
        outer = ((-between[:, None] @ precisions)[:, 0] * -between).sum(axis=1)
        values = [
            (away - m) * ((away + m) @ precision) - own
            for away, m, precision, own in zip(
                scores - self.means[:, None], -between, precisions, inner, strict=True
            )  # each (rows, columns)
        ]
        return -np.stack(values, axis=1) / 2, self.constants - (outer + inner.sum(axis=1)) / 2


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


@register_record("GaussianMember")
@dataclass(frozen=True, eq=False)
class GaussianMember(Member):
    """The Gaussian of all numbers, with the class prior and the tempered evidence of labels."""

    gaussian: ScoreGaussian
    temperature: float

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("structure",)

    def find_fault(self) -> str | None:
        return None if 0 <= self.temperature <= MAX_LOGIT_WEIGHT else "its temperature is not from zero, or too large"

    def find_misfit(self, encoding: TableEncoding, n_classes: int, n_tokens: int) -> str | None:
        return (
            None if self.gaussian.means.shape == (n_classes, encoding.n_numbers) else "a Gaussian is of other columns"
        )

    def list_terms(self, encoding: TableEncoding, evidence: CodeEvidence) -> list[LogitTerm]:
        density = QuadraticForm(self.gaussian.means, self.gaussian.roots, self.gaussian.constants, 1.0)
        return [CodeTable(evidence.temper_labels(encoding)), density.scale(self.temperature)]

    def split_logits(self, rows: EncodedRows) -> LogitParts:
        assert rows.evidence is not None
        parts = split_codes(rows, rows.evidence.temper_labels(rows.encoding))
        values, mean = self.gaussian.split_densities(rows.scores, normalise(rows.evidence.log_prior))
        parts = add_columns(parts, np.flatnonzero(rows.encoding.is_number), self.temperature * values)
        return parts._replace(base=parts.base + self.temperature * mean)
