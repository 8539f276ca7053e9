"""Exponential: waiting times, with a Gamma prior on the rate. A family that tests add to priory, in one file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from priory.core.column_kernels import sum_by_class
from priory.core.registration import register_record
from priory.core.statistics import Statistics
from priory.core.typing import Array
from priory.families.base import ArrayFamily, GroupedRows, nan_where_zero
from priory.families.registry import register_family


@register_record("WaitingTimes", axes="cd")
@dataclass(frozen=True, eq=False)
class ExponentialStatistics(Statistics):
    """The number of waiting times, their sum, and the number of values that are not waiting times."""

    count_fields: ClassVar[tuple[str, ...]] = ("n", "outside")

    n: Array
    total: Array
    outside: Array

    def find_fault(self) -> str | None:
        return "a total is negative" if (self.total < 0).any() else None


@register_family("exponential")
@final
@dataclass(frozen=True, eq=False)
class Exponential(ArrayFamily[ExponentialStatistics, Array]):
    """``p(x) = θ e^-θx`` with ``θ ~ Gamma(shape, rate)``."""

    shape: float | Array = 1.0
    rate: float | Array = 1.0

    accepted_values: ClassVar[str] = "numbers from 0"

    @classmethod
    def accepts(cls, values: Array) -> Array:
        return values >= 0

    # -- learning ------------------------------------------------------------------------------------------------

    def observe(
        self, x: ArrayLike, group: Array | None = None, groups: int = 1, weight: Array | None = None
    ) -> ExponentialStatistics:
        rows = GroupedRows(x, group, groups)
        transforms = (lambda v: v >= 0, lambda v: np.where(v >= 0, v, 0.0), lambda v: v < 0)
        return ExponentialStatistics(
            *(rows.reshape_sums(sum_by_class(rows.x, rows.group, weight, rows.groups, t)) for t in transforms)
        )

    def posterior(self, statistics: ExponentialStatistics) -> Self:
        return type(self)(self.shape + statistics.n, self.rate + statistics.total)

    @classmethod
    def empirical_prior(cls, statistics: ExponentialStatistics) -> Self:
        """Worth one row, and expecting the mean of all rows."""
        pooled = statistics.pool_classes()
        mean = np.where(pooled.total[0] > 0, pooled.total[0] / np.maximum(pooled.n[0], 1), 1.0)
        return cls(np.ones_like(mean), mean)

    # -- parameters ----------------------------------------------------------------------------------------------

    def ml(self, statistics: ExponentialStatistics) -> Array:
        return np.asarray(statistics.n / nan_where_zero(statistics.total))

    def mode(self) -> Array:
        return np.maximum(np.asarray(self.shape) - 1, 0.0) / np.asarray(self.rate)

    def mean(self) -> Array:
        return np.asarray(self.shape) / np.asarray(self.rate)

    # -- probabilities -------------------------------------------------------------------------------------------

    def log_density(self, x: ArrayLike, parameters: Array) -> Array:
        x = np.asarray(x, dtype=float)
        return np.where(x < 0, -np.inf, np.log(parameters) - parameters * x)

    def log_predictive(self, x: ArrayLike) -> Array:
        x, a, b = np.asarray(x, dtype=float), np.asarray(self.shape), np.asarray(self.rate)
        value = np.log(a) + a * np.log(b) - (a + 1) * np.log(b + np.maximum(x, 0.0))
        return np.where(x < 0, -np.inf, value)

    def log_normaliser(self) -> Array:
        return np.asarray(gammaln(self.shape) - np.asarray(self.shape) * np.log(self.rate))

    # -- sampling ------------------------------------------------------------------------------------------------

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        return rng.gamma(self.shape, 1 / np.asarray(self.rate), size=(size, *np.shape(self.shape)))

    def sample(self, parameters: Array, rng: np.random.Generator, size: int) -> Array:
        return rng.exponential(1 / np.asarray(parameters), size=(size, *np.shape(parameters)))
