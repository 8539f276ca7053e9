"""Members that answer from numbers: a logistic regression on scores or standardised numbers, and their Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy import ndarray as Array

from priory.calibration.code_counts import CodeEvidence
from priory.calibration.encoded_rows import EncodedRows
from priory.calibration.logit_terms import (
    CodeTable,
    LogitParts,
    LogitTerm,
    QuadraticForm,
    Slopes,
    add_columns,
    split_codes,
)
from priory.calibration.members import MAX_LOGIT_WEIGHT, Member, find_largest_weight_fault
from priory.calibration.table_encoding import MAX_SCORE, TableEncoding
from priory.core.logspace import log_normalise, normalise
from priory.core.statistics import register_record


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
