"""Scores of regression: R², errors, and the coverage of predictive intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy import ndarray as Array

from priory.evaluation.intervals import Interval, mean_interval, proportion_interval
from priory.evaluation.score_table import align_text_columns


@dataclass(frozen=True, eq=False)
class RegressionScores:
    """Scores of predicted numbers, each with a 95 % interval.

    Parameters
    ----------
    truth, predicted : ndarray of shape (n_rows,)
        The true numbers and the predicted ones.
    low, high : ndarray of shape (n_rows,)
        The bounds of the predictive intervals.
    level : float
        The nominal probability of the predictive intervals.

    Examples
    --------
    >>> truth = np.array([1.0, 2.0, 3.0, 4.0])
    >>> scores = RegressionScores(truth, truth + 0.1, truth - 0.2, truth + 0.4, 0.9)
    >>> round(scores.r2.value, 3), scores.coverage.value
    (0.992, 1.0)
    """

    truth: Array
    predicted: Array
    low: Array
    high: Array
    level: float

    @cached_property
    def squared_error(self) -> Interval:
        """The mean squared error; its square root is `rmse`."""
        return mean_interval((self.predicted - self.truth) ** 2, np.ones(len(self.truth)))

    @property
    def rmse(self) -> Interval:
        """The root mean squared error, in the units of the target."""
        return Interval(*(math.sqrt(max(0.0, value)) for value in self.squared_error))

    @cached_property
    def mae(self) -> Interval:
        """The mean absolute error, in the units of the target."""
        return mean_interval(np.abs(self.predicted - self.truth), np.ones(len(self.truth)))

    @property
    def r2(self) -> Interval:
        """The coefficient of determination: 1 - squared error / variance."""
        variance = float(self.truth.var())
        if variance == 0:
            return Interval(math.nan, math.nan, math.nan)
        value, low, high = self.squared_error
        return Interval(1 - value / variance, 1 - high / variance, min(1.0, 1 - low / variance))

    @cached_property
    def coverage(self) -> Interval:
        """The share of rows within their predictive interval; it should be `level`."""
        inside = (self.low <= self.truth) & (self.truth <= self.high)
        return proportion_interval(float(inside.sum()), len(inside))

    @property
    def base_rmse(self) -> float:
        """The root mean squared error of always predicting the mean."""
        return float(self.truth.std())

    @property
    def base_mae(self) -> float:
        """The mean absolute error of always predicting the median."""
        return float(np.abs(self.truth - np.median(self.truth)).mean())

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as a dictionary for JSON."""
        scores = {name: getattr(self, name)._asdict() for name in ("r2", "rmse", "mae", "coverage")}
        base = {"rmse": self.base_rmse, "mae": self.base_mae}
        return {"rows": len(self.truth), **scores, "level": self.level, "base_rate": base}

    def __str__(self) -> str:
        rows = [(f"{len(self.truth):,} rows", "score", "95 % interval", "base rate")]
        shown = (
            ("R2", self.r2, ".3f", "0.000"),
            ("root mean squared error", self.rmse, "", format_quantity(self.base_rmse)),
            ("mean absolute error", self.mae, "", format_quantity(self.base_mae)),
            (f"coverage of {self.level:.0%} intervals", self.coverage, ".1%", ""),
        )
        for title, score, form, base in shown:
            value, low, high = (f"{number:{form}}" if form else format_quantity(number) for number in score)
            rows.append((title, value, f"{low} to {high}", base))
        return "\n".join(align_text_columns(rows))


def format_quantity(number: float) -> str:
    """Format a number with four significant digits, with an exponent only if it is very large or small.

    >>> format_quantity(16490.3), format_quantity(0.01234567), format_quantity(3.2e-9)
    ('16,490', '0.01235', '3.2e-09')
    """
    if number.is_integer() and abs(number) < 1e9:
        return f"{number:,.0f}"
    if not 1e-4 <= abs(number) < 1e9:
        return f"{number:.4g}"
    return f"{number:,.{max(0, 3 - math.floor(math.log10(abs(number))))}f}"
