"""One class against the others: ROC, precision-recall and reliability curves, precision, recall and F1."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy import ndarray as Array

from priory.core.logspace import ndtr
from priory.evaluation import intervals
from priory.evaluation.intervals import Interval

if TYPE_CHECKING:
    from priory.evaluation.scores import Scores


@dataclass(frozen=True, eq=False)
class Curve:
    """The points ``(x, y)`` of a curve, the threshold at each point, and the area under the curve."""

    x: Array
    y: Array
    thresholds: Array
    area: Interval


def roc_curve(positive: Array, score: Array, weight: Array) -> Curve:
    """Return the ROC curve: true positive rate (y) against false positive rate (x), as the threshold falls.

    ``positive``, ``score`` and ``weight`` have one entry per row.

    >>> roc_curve(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8]), np.ones(4)).area.value
    0.75
    """
    thresholds, hits, misses = _count_hits_and_misses(positive, score, weight)
    y, x = _to_shares(np.r_[0.0, hits]), _to_shares(np.r_[0.0, misses])  # (thresholds + 1,), from (0, 0) to (1, 1)
    value = min(float(np.trapezoid(y, x)), 1.0)
    # converts weights into effective numbers of rows, which the interval needs
    rows = intervals.effective_sample_size(weight) / weight.sum()
    return Curve(
        x, y, np.r_[np.inf, thresholds], intervals.roc_area_interval(value, rows * hits[-1], rows * misses[-1])
    )


def precision_recall_curve(positive: Array, score: Array, weight: Array) -> Curve:
    """Return the precision (y) against the recall (x), as the threshold falls.

    The area is the average precision: a sum of steps, because there is no threshold between two neighbouring scores.
    """
    thresholds, hits, misses = _count_hits_and_misses(positive, score, weight)
    x, y = _to_shares(hits), hits / (hits + misses)  # (thresholds,): recall and precision
    value = float(np.sum(np.diff(x, prepend=0.0) * y))
    # the interval treats the area as a proportion of the effective number of positive rows
    positives = float(intervals.effective_sample_size(weight) / weight.sum() * hits[-1])
    return Curve(
        np.r_[0.0, x],
        np.r_[1.0, y],
        np.r_[np.inf, thresholds],
        intervals.proportion_interval(value * positives, positives),
    )


def _count_hits_and_misses(positive: Array, score: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Return the distinct scores in falling order, and the weight of true and false positives at each threshold."""
    # rows by falling score, without rows of weight zero
    order = np.argsort(-score, kind="stable")
    order = order[weight[order] > 0]
    s, w, is_class = score[order], weight[order], positive[order] != 0
    # the last row of each run of equal scores: rows with the same score pass the threshold together
    last = np.r_[np.flatnonzero(s[1:] != s[:-1]), len(s) - 1]
    return s[last], np.cumsum(w * is_class)[last], np.cumsum(w * ~is_class)[last]


def _to_shares(counts: Array) -> Array:
    """Divide cumulative counts by their total; NaN if that is zero."""
    return counts / counts[-1] if counts[-1] else np.full(len(counts), np.nan)


N_RELIABILITY_BINS = 15


class ReliabilityBin(NamedTuple):
    """Rows whose certainty is between ``low`` and ``high``: their mean certainty and their accuracy."""

    low: float
    high: float
    rows: float
    certainty: float
    accuracy: Interval


def compute_reliability_bins(
    certainty: Array, correct: Array, weight: Array, bins: int = N_RELIABILITY_BINS
) -> list[ReliabilityBin]:
    """Group rows by their certainty into bins of equal width, leaving out empty bins.

    ``certainty``, ``correct`` and ``weight`` have one entry per row.

    >>> for b in compute_reliability_bins(np.array([0.55, 0.95, 0.95]), np.array([0.0, 1.0, 1.0]), np.ones(3), bins=2):
    ...     print(b.low, b.high, b.rows, round(b.certainty, 3), f"{b.accuracy:.2f}")
    0.5 1.0 3.0 0.817 0.67 [0.21, 0.94]
    """
    place = np.minimum((certainty * bins).astype(int), bins - 1)  # (rows,): a certainty of 1 is in the last bin
    # (bins,): the weight, the weighted certainty and the weight of right answers in each bin
    total, certain, right = (
        np.bincount(place, weight * x, minlength=bins) for x in (np.ones(len(place)), certainty, correct)
    )
    # converts weights into effective numbers of rows, which the intervals need
    rows_per_weight = intervals.effective_sample_size(weight) / weight.sum()
    return [
        ReliabilityBin(
            b / bins,
            (b + 1) / bins,
            float(total[b]),
            float(certain[b] / total[b]),
            intervals.proportion_interval(rows_per_weight * right[b], rows_per_weight * total[b]),
        )
        for b in np.flatnonzero(total).tolist()
    ]


def calibration_error(bins: list[ReliabilityBin], rows: float) -> Interval:
    """Return the expected calibration error: the average gap between certainty and accuracy over the bins.

    The gap of a bin is approximately the absolute value of a normal variable, so a perfectly calibrated model has
    positive gaps by chance. The lower bound of the interval subtracts this bias. It is zero if a perfectly calibrated
    model could have an error as large as this one.
    """
    # All arrays are (bins,).
    total = np.array([b.rows for b in bins])
    share, n = total / total.sum(), total / total.sum() * rows
    accuracy = np.array([b.accuracy.value for b in bins])
    gap = np.abs(np.array([b.certainty for b in bins]) - accuracy)
    p = (accuracy * n + 1) / (n + 2)  # Laplace smoothing: a bin without mistakes has a positive standard error
    error = np.sqrt(p * (1 - p) / n)
    true_gap = np.sqrt(np.maximum(gap**2 - error**2, 0.0))  # gap² overestimates by error²
    value = float(share @ gap)
    excess, reach = _folded_normal_excess(true_gap, error, share)
    perfect_excess, perfect_reach = _folded_normal_excess(np.zeros(len(bins)), error, share)
    low = 0.0 if value <= perfect_excess + perfect_reach else value - excess - reach
    return Interval(value, max(0.0, low), min(1.0, value + reach))


def _folded_normal_excess(gap: Array, error: Array, share: Array) -> tuple[float, float]:
    """Return the bias of the weighted mean of folded normal variables, and its 95 % margin; arrays are (bins,)."""
    # E |Z| for Z ~ N(gap, error²)
    folded = error * np.sqrt(2 / np.pi) * np.exp(-((gap / error) ** 2) / 2) + gap * (1 - 2 * ndtr(-gap / error))
    return float(share @ (folded - gap)), intervals.Z_95 * float(np.sqrt(share**2 @ (gap**2 + error**2 - folded**2)))


class ClassScores(NamedTuple):
    """One-versus-rest scores of one class."""

    label: Any
    rows: float
    precision: Interval
    recall: Interval
    f1: Interval
    roc_area: Interval
    average_precision: Interval


def _count_rows_by_class(scores: Scores) -> Array:
    """Return the total weight of the rows that were predicted as each class, are of it, and both: (3, classes)."""
    k, right = len(scores.classes), scores.answer == scores.truth
    parts = (scores.answer, scores.weight), (scores.truth, scores.weight), (scores.truth[right], scores.weight[right])
    return np.stack([np.bincount(classes, weight, minlength=k) for classes, weight in parts])


def score_classes(scores: Scores, chosen: Iterable[int]) -> list[ClassScores]:
    """Return the scores of the classes with these indices."""
    answered, true, both = _count_rows_by_class(scores)
    either = answered + true - both
    return [
        ClassScores(
            scores.classes[c],
            float(true[c]),
            scores.measure_share(both[c], answered[c]),  # precision
            scores.measure_share(both[c], true[c]),  # recall
            # F1 = 2j / (1 + j) increases with the Jaccard index j, so it maps the bounds too
            Interval(*(2 * j / (1 + j) for j in scores.measure_share(both[c], either[c]))),
            *_measure_areas(scores, scores.classes[c], true[c]),
        )
        for c in chosen
    ]


def find_worst_classes(scores: Scores, max_classes: int) -> list[int]:
    """Return the indices of the classes with the lowest F1, worst first; classes without rows or answers come last."""
    answered, true, both = _count_rows_by_class(scores)
    either = answered + true - both
    # (classes,): intersection over union of true and predicted rows, infinite where both are empty
    jaccard = np.divide(both, either, out=np.full(len(both), np.inf), where=either > 0)
    numbers: list[int] = np.argsort(jaccard, kind="stable")[:max_classes].tolist()  # F1 has the same order
    return numbers


def _measure_areas(scores: Scores, label: Hashable, rows: float) -> tuple[Interval, Interval]:
    """Return the areas under the ROC and precision-recall curves; NaN for a class without rows."""
    if rows == 0:
        return intervals.UNKNOWN_SHARE, intervals.UNKNOWN_SHARE
    return scores.roc(label).area, scores.precision_recall(label).area
