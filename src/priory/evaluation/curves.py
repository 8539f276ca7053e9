"""Curves of one class against the others, as the threshold on its probability falls: ROC, and precision and recall."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from priory.core.typing import Array
from priory.evaluation.intervals import Interval, effective_sample_size, proportion_interval, roc_area_interval


@dataclass(frozen=True, eq=False)
class Curve:
    """Points ``(x, y)``, the threshold at each of them, and the area below."""

    x: Array
    y: Array
    thresholds: Array
    area: Interval


def roc_curve(positive: Array, score: Array, weight: Array) -> Curve:
    """The share of the class that is found (y) against the share of the others that is taken for it (x).

    >>> roc_curve(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8]), np.ones(4)).area.value
    0.75
    """
    thresholds, hits, misses = _count_hits_and_misses(positive, score, weight)
    y, x = _to_shares(np.r_[0.0, hits]), _to_shares(np.r_[0.0, misses])
    value = min(float(np.trapezoid(y, x)), 1.0)
    rows = effective_sample_size(weight) / weight.sum()
    return Curve(x, y, np.r_[np.inf, thresholds], roc_area_interval(value, rows * hits[-1], rows * misses[-1]))


def precision_recall_curve(positive: Array, score: Array, weight: Array) -> Curve:
    """The share of the answers that is right (y) against the share of the class that is found (x).

    The area is the average precision: a sum of steps, since between two thresholds nothing can be chosen.
    """
    thresholds, hits, misses = _count_hits_and_misses(positive, score, weight)
    x, y = _to_shares(hits), hits / (hits + misses)
    value = float(np.sum(np.diff(x, prepend=0.0) * y))
    found = float(effective_sample_size(weight) / weight.sum() * hits[-1])
    return Curve(np.r_[0.0, x], np.r_[1.0, y], np.r_[np.inf, thresholds], proportion_interval(value * found, found))


def _count_hits_and_misses(positive: Array, score: Array, weight: Array) -> tuple[Array, Array, Array]:
    """For each distinct score from the top the weight of the class, and of the others, that reach it."""
    order = np.argsort(-score, kind="stable")
    order = order[weight[order] > 0]
    s, w, is_class = score[order], weight[order], positive[order] != 0
    last = np.r_[np.flatnonzero(s[1:] != s[:-1]), len(s) - 1]
    return s[last], np.cumsum(w * is_class)[last], np.cumsum(w * ~is_class)[last]


def _to_shares(counts: Array) -> Array:
    return counts / counts[-1] if counts[-1] else np.full(len(counts), np.nan)
