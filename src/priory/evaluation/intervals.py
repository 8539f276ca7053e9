"""Confidence intervals (95 %) of proportions, means and ROC areas."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy import ndarray as Array

Z_95 = 1.959963984540054  # 95 % of a normal distribution is within this many standard deviations of its mean


class Interval(NamedTuple):
    """A value and the bounds of its interval; formats as ``value [low, high]``.

    >>> f"{Interval(0.8, 0.75, 0.84):.1%}"
    '80.0% [75.0%, 84.0%]'
    """

    value: float
    low: float
    high: float

    def widen(self, factor: float) -> Interval:
        """Return the interval with its half-widths multiplied by a factor; an infinite value is unchanged.

        >>> Interval(0.5, 0.25, 0.75).widen(2), Interval(math.inf, -math.inf, math.inf).widen(2)
        (Interval(value=0.5, low=0.0, high=1.0), Interval(value=inf, low=-inf, high=inf))
        """
        if not math.isfinite(self.value):
            return self
        return Interval(
            self.value, self.value - factor * (self.value - self.low), self.value + factor * (self.high - self.value)
        )

    def __format__(self, spec: str) -> str:
        return f"{self.value:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"

    def __str__(self) -> str:
        return f"{self:.3g}"


UNKNOWN_SHARE = Interval(math.nan, 0.0, 1.0)  # a proportion of zero trials


def proportion_interval(successes: float, trials: float) -> Interval:
    """Return a proportion with Wilson's interval, which has positive width even if all trials succeed or all fail.

    >>> f"{proportion_interval(10, 10):.3f}"
    '1.000 [0.722, 1.000]'
    """
    if trials == 0:
        return UNKNOWN_SHARE
    p = min(successes / trials, 1.0)  # rounding of weights may exceed 1
    middle = (p + Z_95**2 / (2 * trials)) / (1 + Z_95**2 / trials)
    reach = Z_95 / (1 + Z_95**2 / trials) * math.sqrt(p * (1 - p) / trials + Z_95**2 / (4 * trials**2))
    return Interval(p, max(0.0, min(p, middle - reach)), min(1.0, max(p, middle + reach)))


def mean_interval(values: Array, weight: Array) -> Interval:
    """Return the weighted mean of values per row, with an interval by the central limit theorem.

    >>> f"{mean_interval(np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4)):.2f}"
    '2.50 [1.23, 3.77]'
    """
    counted = weight > 0
    values, weight = values[counted], weight[counted]
    value, n = float(np.average(values, weights=weight)), effective_sample_size(weight)
    if not math.isfinite(value) or n <= 1:
        return Interval(value, -math.inf, math.inf)
    error = math.sqrt(float(np.average((values - value) ** 2, weights=weight)) / (n - 1))
    return Interval(value, value - Z_95 * error, value + Z_95 * error)


def roc_area_interval(value: float, positives: float, negatives: float) -> Interval:
    """Return the area under a ROC curve with Newcombe's interval.

    The interval contains every area θ for which the value is within Z_95 standard errors of θ. The standard error of
    Hanley and McNeil is evaluated at θ rather than at the value, so the interval has positive width for a perfect
    ranking too.

    >>> f"{roc_area_interval(1.0, 10, 10):.2f}"
    '1.00 [0.80, 1.00]'
    """
    if positives == 0 or negatives == 0:
        return UNKNOWN_SHARE
    steps = np.linspace(0, 1, 4001)  # candidate areas θ
    more = (positives + negatives) / 2 - 1  # Newcombe: the mean group size replaces both group sizes
    # the variance of the area is θ (1 - θ) times this
    spread = (1 + more * ((1 - steps) / (2 - steps) + steps / (1 + steps))) / (positives * negatives)
    inside = steps[np.abs(steps - value) <= Z_95 * np.sqrt(steps * (1 - steps) * spread)]
    return Interval(value, float(min([value, *inside])), float(max([value, *inside])))


def effective_sample_size(weight: Array) -> float:
    """Return the number of equally weighted rows that carry as much information: (Σ w)² / Σ w².

    >>> effective_sample_size(np.array([1.0, 1.0, 0.0]))
    2.0
    """
    return float(weight.sum() ** 2 / (weight**2).sum())
