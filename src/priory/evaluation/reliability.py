"""Reliability: accuracy among answers of similar certainty, and the expected calibration error."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from priory.core.special_functions import ndtr
from priory.core.typing import Array
from priory.evaluation.intervals import Z_95, Interval, effective_sample_size, proportion_interval

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
    rows_per_weight = effective_sample_size(weight) / weight.sum()
    return [
        ReliabilityBin(
            b / bins,
            (b + 1) / bins,
            float(total[b]),
            float(certain[b] / total[b]),
            proportion_interval(rows_per_weight * right[b], rows_per_weight * total[b]),
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
    return float(share @ (folded - gap)), Z_95 * float(np.sqrt(share**2 @ (gap**2 + error**2 - folded**2)))
