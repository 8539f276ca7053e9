"""Whether probabilities mean what they say: of the rows that are called 80 % certain, are 80 % right?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from priory.core.typing import Array
from priory.evaluation.intervals import Z_95, Interval, effective_sample_size, proportion_interval

N_RELIABILITY_BINS = 15


class ReliabilityBin(NamedTuple):
    """The rows whose certainty lies from ``low`` to ``high``: how sure the model was, and how often it was right."""

    low: float
    high: float
    rows: float
    certainty: float
    accuracy: Interval


def compute_reliability_bins(
    certainty: Array, correct: Array, weight: Array, bins: int = N_RELIABILITY_BINS
) -> list[ReliabilityBin]:
    """The rows in bins of equal width by their certainty; those without rows are left out.

    >>> for b in compute_reliability_bins(np.array([0.55, 0.95, 0.95]), np.array([0.0, 1.0, 1.0]), np.ones(3), bins=2):
    ...     print(b.low, b.high, b.rows, round(b.certainty, 3), f"{b.accuracy:.2f}")
    0.5 1.0 3.0 0.817 0.67 [0.21, 0.94]
    """
    place = np.minimum((certainty * bins).astype(int), bins - 1)
    total, sure, good = (
        np.bincount(place, weight * x, minlength=bins) for x in (np.ones(len(place)), certainty, correct)
    )
    n = effective_sample_size(weight) / weight.sum()
    return [
        ReliabilityBin(
            b / bins,
            (b + 1) / bins,
            float(total[b]),
            float(sure[b] / total[b]),
            proportion_interval(n * good[b], n * total[b]),
        )
        for b in np.flatnonzero(total).tolist()
    ]


def calibration_error(bins: list[ReliabilityBin], rows: float) -> Interval:
    """How far certainty and success lie apart, on average over the bins.

    The gap of a bin is a normal variable folded at nought: a perfect model, too, shows some, by chance alone. The
    interval takes away as much as chance adds to gaps of this size, and begins at nought where a perfect model could
    have shown as much.
    """
    total = np.array([b.rows for b in bins])
    share, n = total / total.sum(), total / total.sum() * rows
    right = np.array([b.accuracy.value for b in bins])
    gap = np.abs(np.array([b.certainty for b in bins]) - right)
    p = (right * n + 1) / (n + 2)
    error = np.sqrt(p * (1 - p) / n)
    true = np.sqrt(np.maximum(gap**2 - error**2, 0.0))
    value = float(share @ gap)
    chance, reach = _folded_normal_excess(true, error, share)
    of_perfect, reach_of_perfect = _folded_normal_excess(np.zeros(len(bins)), error, share)
    low = 0.0 if value <= of_perfect + reach_of_perfect else value - chance - reach
    return Interval(value, max(0.0, low), min(1.0, value + reach))


def _folded_normal_excess(gap: Array, error: Array, share: Array) -> tuple[float, float]:
    """By how much the mean of folded normal variables lies above their gaps, and how far it reaches."""
    folded = error * np.sqrt(2 / np.pi) * np.exp(-((gap / error) ** 2) / 2) + gap * (1 - 2 * ndtr(-gap / error))
    return float(share @ (folded - gap)), Z_95 * float(np.sqrt(share**2 @ (gap**2 + error**2 - folded**2)))
