"""Poisson: counts of events, with a Gamma prior on the rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self, final

import numpy as np
import scipy
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core.column_kernels import sum_by_class, sum_exactly
from priory.core.exact_sums import ExactSums, compute_means, find_misshapen_sums
from priory.core.logspace import MAX_EXACT_COUNT, gammaln, log, log_factorial, x_log_y
from priory.core.statistics import Statistics, register_record
from priory.errors import NotLearnedError
from priory.families.base import ArrayFamily, ColumnTerm, DensityTerm, GroupedRows, register_family
from priory.families.open_columns import ColumnGuard, OpenColumns, OpenPoisson, guard_support

EXCESS_ROUNDING = 1e-12  # relative error of a sum of logarithms, each of them rounded


@register_record("Events", axes={"n": "cd", "outside": "cd"})
@dataclass(frozen=True, eq=False)
class PoissonStatistics(Statistics):
    """Rows, events, the sum of log x!, and the number of values that are not counts, per class and column."""

    count_fields: ClassVar[tuple[str, ...]] = ("n", "outside")

    n: Array  # (classes, columns), as are all fields
    events: ExactSums
    log_factorials: ExactSums
    outside: Array

    def find_fault(self) -> str | None:
        fault = find_misshapen_sums(self.n, self.events, self.log_factorials)
        return fault or ("a number of events is negative" if (self.events.signs() < 0).any() else None)

    def check_subtraction(self, total: PoissonStatistics, part: PoissonStatistics) -> PoissonStatistics:
        left: PoissonStatistics = super().check_subtraction(total, part)
        if (left.events.signs() < 0).any():
            cell = tuple(int(i) for i in np.argwhere(left.events.signs() < 0)[0])
            raise NotLearnedError("cannot forget these counts: fewer events were learned.", cell)
        return left


@register_family("poisson", auto_rank=2)
@final
@dataclass(frozen=True, eq=False)
class Poisson(ArrayFamily[PoissonStatistics, Array]):
    """Counts of events: ``p(x) = e^-θ θ^x / x!`` with ``θ ~ Gamma(shape, rate)``.

    Parameters
    ----------
    shape, rate : float or array of shape (classes, columns)
        The prior has seen ``shape`` events in ``rate`` rows.

    Attributes
    ----------
    accepted_values : str
        The values that a column may hold, for error messages.

    References
    ----------
    Gelman, A. et al. (2013). Bayesian Data Analysis, section 2.6.

    Examples
    --------
    >>> seen = Poisson().observe([2, 8, 0])
    >>> round(float(Poisson().ml(seen)), 4), float((Poisson(1, 1) + seen).mean())
    (3.3333, 2.75)
    """

    shape: float | Array = 1.0
    rate: float | Array = 1.0

    accepted_values: ClassVar[str] = "whole numbers from 0"
    is_discrete: ClassVar[bool] = True
    parameter_name: ClassVar[str] = "rate"

    @classmethod
    def accepts(cls, values: Array) -> Array:
        return _is_count(values)

    def observe(
        self, x: ArrayLike, group: Array | None = None, groups: int = 1, weight: Array | None = None
    ) -> PoissonStatistics:
        rows = GroupedRows(x, group, groups)
        # The kernels skip NaN, so values that are not counts are treated as missing here, and counted by ``outside``.
        counted = sum_exactly(rows.x, rows.group, weight, rows.groups, _keep_counts)
        logged = sum_exactly(rows.x, rows.group, weight, rows.groups, lambda v: log_factorial(_keep_counts(v)))
        outside = sum_by_class(rows.x, rows.group, weight, rows.groups, lambda v: ~_is_count(v) & (v == v))
        shape = rows.reshape_sums
        return PoissonStatistics(shape(counted.n), shape(counted.first), shape(logged.first), shape(outside))

    def posterior(self, statistics: PoissonStatistics) -> Self:
        return type(self)(self.shape + statistics.events.to_floats(), self.rate + statistics.n)

    @classmethod
    def empirical_prior(cls, statistics: PoissonStatistics) -> Self:
        """A prior worth one row, with the mean of all rows; half an event keeps it proper for a column of zeros."""
        pooled = statistics.pool_classes()
        mean = np.maximum(pooled.events.to_floats()[0], 0.5) / np.maximum(pooled.n[0], 0.5)
        return cls(mean, np.ones_like(mean))

    def ml(self, statistics: PoissonStatistics) -> Array:
        return compute_means(statistics.n, statistics.events)

    def mode(self) -> Array:
        return np.maximum(np.asarray(self.shape) - 1, 0.0) / np.asarray(self.rate)

    def mean(self) -> Array:
        return np.asarray(np.asarray(self.shape) / self.rate)

    def quantile(self, q: float) -> Array:
        return np.asarray(scipy.special.gammaincinv(self.shape, q) / np.asarray(self.rate))

    def log_density(self, x: ArrayLike, parameters: Array) -> Array:
        x, theta = np.asarray(x, dtype=float), np.asarray(parameters)
        # x (rows, 1, columns), theta (classes, columns); values that are not counts get a value, then -inf.
        k = np.where(_is_count(x), x, 0.0)
        value = x_log_y(k, log(theta)) - theta - gammaln(k + 1)
        return np.where(_is_count(x) | np.isnan(x), value, -np.inf)

    def log_predictive(self, x: ArrayLike) -> Array:
        x = np.asarray(x, dtype=float)
        k, a, b = np.where(_is_count(x), x, 0.0), np.asarray(self.shape), np.asarray(self.rate)
        # The negative binomial distribution; a and b are (classes, columns).
        value = gammaln(a + k) - gammaln(a) - gammaln(k + 1) + a * np.log(b / (b + 1)) - k * np.log1p(b)
        return np.where(_is_count(x) | np.isnan(x), value, -np.inf)

    def log_normaliser(self) -> Array:
        return np.asarray(gammaln(self.shape) - np.asarray(self.shape) * np.log(self.rate))

    def log_base(self, statistics: PoissonStatistics) -> Array:
        return -statistics.log_factorials.to_floats()

    def evidence(self, statistics: PoissonStatistics) -> Array:
        """Log evidence of each column; -inf if all counts are equal, because they do not identify a rate."""
        # Means of x and log x! over all rows, (columns,).
        pooled = statistics.pool_classes()
        mean, logs = (compute_means(pooled.n, sums)[0] for sums in (pooled.events, pooled.log_factorials))
        excess = logs - log_factorial(np.floor(mean))  # zero only if all counts are equal, because log x! is convex
        varies = (mean != np.floor(mean)) | ~(excess <= EXCESS_ROUNDING * (1 + np.abs(logs)))
        return np.where(varies, super().evidence(statistics), -np.inf)

    def guard(self, statistics: PoissonStatistics, group: int) -> ColumnGuard:
        counts = statistics.n[group], statistics.outside[group], statistics.events.to_floats()[group]
        return guard_support(0, MAX_EXACT_COUNT, True, *counts)

    def open(self, statistics: PoissonStatistics) -> OpenColumns:
        return OpenPoisson(self, statistics)

    def column_terms(self, statistics: PoissonStatistics, estimate: str) -> list[ColumnTerm] | None:
        """The negative binomial distribution, or x log θ - θ; log x! is the same for all classes and left out."""
        if estimate == "predictive":
            belief = self.posterior(statistics)
            a, b = np.asarray(belief.shape), np.broadcast_to(np.asarray(belief.rate), np.shape(belief.shape))
            constant = a * np.log(b / (b + 1)) - gammaln(a)
            found = [
                {"shape": a[:, j], "constant": constant[:, j], "slope": np.log1p(b[:, j])} for j in range(a.shape[1])
            ]
            return [DensityTerm("events", parameters) for parameters in found]
        rate = np.asarray(self.parameters(statistics, estimate))  # (classes, columns)
        if (rate <= 0).any():
            return None
        # with "ml" a class without rows has no rate, and gives no evidence
        slope, constant = np.nan_to_num(np.log(rate)), -np.nan_to_num(rate)
        return [DensityTerm("count", {"slope": slope[:, j], "constant": constant[:, j]}) for j in range(rate.shape[1])]

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        return rng.gamma(self.shape, 1 / np.asarray(self.rate), size=(size, *np.shape(self.shape)))

    def sample(self, parameters: Array, rng: np.random.Generator, size: int) -> Array:
        return rng.poisson(parameters, size=(size, *np.shape(parameters))).astype(float)


def _keep_counts(x: Array) -> Array:
    return np.where(_is_count(x), x, np.nan)


def _is_count(x: Array) -> Array:
    return np.asarray((x >= 0) & (x <= MAX_EXACT_COUNT) & (np.floor(x) == x))
