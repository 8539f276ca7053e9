"""ROC and precision-recall curves of one class against the others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from priory.core.typing import Array
from priory.evaluation.intervals import Interval, effective_sample_size, proportion_interval, roc_area_interval


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
    rows = effective_sample_size(weight) / weight.sum()
    return Curve(x, y, np.r_[np.inf, thresholds], roc_area_interval(value, rows * hits[-1], rows * misses[-1]))


def precision_recall_curve(positive: Array, score: Array, weight: Array) -> Curve:
    """Return the precision (y) against the recall (x), as the threshold falls.

    The area is the average precision: a sum of steps, because there is no threshold between two neighbouring scores.
    """
    thresholds, hits, misses = _count_hits_and_misses(positive, score, weight)
    x, y = _to_shares(hits), hits / (hits + misses)  # (thresholds,): recall and precision
    value = float(np.sum(np.diff(x, prepend=0.0) * y))
    # the interval treats the area as a proportion of the effective number of positive rows
    positives = float(effective_sample_size(weight) / weight.sum() * hits[-1])
    return Curve(
        np.r_[0.0, x], np.r_[1.0, y], np.r_[np.inf, thresholds], proportion_interval(value * positives, positives)
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
