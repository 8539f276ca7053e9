"""Binomial: successes among a known number of trials, with a Beta prior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self, final

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core.column_kernels import sum_by_class, sum_exactly
from priory.core.exact_sums import ExactSums, find_misshapen_sums
from priory.core.logspace import betaln, log, log_factorial, x_log_y
from priory.core.statistics import Statistics, register_record
from priory.families.base import ArrayFamily, ColumnTerm, GroupedRows, ValueTerm, nan_where_zero, register_family
from priory.families.dirichlet import BetaBelief


@register_record("Successes", axes={"n": "cd", "successes": "cd", "outside": "cd"})
@dataclass(frozen=True, eq=False)
class BinomialStatistics(Statistics):
    """Rows, successes, the sum of log C(trials, x), and the number of values outside 0 .. trials, per class."""

    count_fields: ClassVar[tuple[str, ...]] = ("n", "successes", "outside")

    n: Array  # (classes, columns), as are all fields
    successes: Array
    log_ways: ExactSums
    outside: Array

    def find_fault(self) -> str | None:
        return find_misshapen_sums(self.n, self.log_ways)


@register_family()
@final
@dataclass(frozen=True, eq=False)
class Binomial(BetaBelief, ArrayFamily[BinomialStatistics, Array]):
    """Successes among a known number of trials: ``p(x) = C(trials, x) θ^x (1-θ)^(trials-x)`` with ``θ ~ Beta(a, b)``.

    Parameters
    ----------
    trials : int
        The number of trials behind every cell.
    a, b : float or array of shape (classes, columns)
        Virtual successes and failures.

    Attributes
    ----------
    accepted_values : str
        The values that a column may hold, for error messages.

    References
    ----------
    Murphy, K. P. (2012). Machine Learning: A Probabilistic Perspective, section 3.3.

    Examples
    --------
    >>> seen = Binomial(trials=10).observe([7, 3])
    >>> float(Binomial(trials=10).ml(seen)), float((Binomial(trials=10) + seen).mean())
    (0.5, 0.5)
    """

    trials: int = 1
    a: float | Array = 1.0
    b: float | Array = 1.0

    accepted_values: ClassVar[str] = "whole numbers from 0 to the declared number of trials"
    is_discrete: ClassVar[bool] = True
    parameter_name: ClassVar[str] = "probability"

    def describe_counting(self) -> dict[str, int]:
        return {"trials": self.trials}

    def observe(
        self, x: ArrayLike, group: Array | None = None, groups: int = 1, weight: Array | None = None
    ) -> BinomialStatistics:
        rows = GroupedRows(x, group, groups)

        def inside(v: Array) -> Array:
            return (v >= 0) & (v <= self.trials) & (np.floor(v) == v)

        def ways(v: Array) -> Array:
            return _log_choose(self.trials, np.where(inside(v), v, np.nan))

        def count(transform: Callable[[Array], Array]) -> Array:
            return rows.reshape_sums(sum_by_class(rows.x, rows.group, weight, rows.groups, transform))

        # The kernels skip NaN, so values outside 0 .. trials count as missing here; ``outside`` counts them separately.
        # The sum of log C(trials, x) is exact, so that subtracting rows restores the same bits.
        sums = sum_exactly(rows.x, rows.group, weight, rows.groups, ways)
        successes, outside = count(lambda v: np.where(inside(v), v, 0.0)), count(lambda v: ~inside(v) & (v == v))
        return BinomialStatistics(rows.reshape_sums(sums.n), successes, rows.reshape_sums(sums.first), outside)

    def posterior(self, statistics: BinomialStatistics) -> Self:
        failures = self.trials * statistics.n - statistics.successes
        return replace(self, a=self.a + statistics.successes, b=self.b + failures)

    @classmethod
    def empirical_prior(cls, statistics: BinomialStatistics) -> Self:
        """The number of trials cannot be read off the data: declare ``Binomial(trials=...)``."""
        raise TypeError("Binomial needs its number of trials: declare an instance, Binomial(trials=...).")

    def ml(self, statistics: BinomialStatistics) -> Array:
        return np.asarray(statistics.successes / (self.trials * nan_where_zero(statistics.n)))

    def log_density(self, x: ArrayLike, parameters: Array) -> Array:
        x, p = np.asarray(x, dtype=float), np.asarray(parameters)
        inside = (x >= 0) & (x <= self.trials) & (np.floor(x) == x)
        k = np.where(inside, x, 0.0)
        # x_log_y takes 0 log 0 as 0, so p may be 0 or 1. Cells that are NaN get some value, which log_likelihood drops.
        value = _log_choose(self.trials, k) + x_log_y(k, log(p)) + x_log_y(self.trials - k, log(1 - p))
        return np.where(inside | np.isnan(x), value, -np.inf)

    def log_predictive(self, x: ArrayLike) -> Array:
        x = np.asarray(x, dtype=float)
        inside = (x >= 0) & (x <= self.trials) & (np.floor(x) == x)
        k = np.where(inside, x, 0.0)
        # The beta-binomial distribution: C(trials, k) B(a + k, b + trials - k) / B(a, b).
        value = _log_choose(self.trials, k) + betaln(self.a + k, self.b + self.trials - k) - betaln(self.a, self.b)
        return np.where(inside | np.isnan(x), value, -np.inf)

    def log_base(self, statistics: BinomialStatistics) -> Array:
        return statistics.log_ways.to_floats()

    def column_terms(self, statistics: BinomialStatistics, estimate: str) -> list[ColumnTerm]:
        outcomes = np.arange(self.trials + 1.0)
        rows = np.append(outcomes, -1.0)[:, None].repeat(statistics.n.shape[-1], axis=1)  # the last is none of them
        terms = self.log_likelihood(statistics, rows, estimate)
        return [ValueTerm(outcomes, table) for table in terms.transpose(2, 1, 0)]

    def log2_outcomes(self, statistics: BinomialStatistics) -> float:
        return float(statistics.n.shape[-1] * np.log2(self.trials + 1))

    def list_outcomes(self, x: Array) -> Array:
        return np.arange(self.trials + 1.0)

    def sample(self, parameters: Array, rng: np.random.Generator, size: int) -> Array:
        return rng.binomial(self.trials, parameters, size=(size, *np.shape(parameters))).astype(float)


def _log_choose(n: ArrayLike, k: ArrayLike) -> Array:
    n, k = np.asarray(n), np.asarray(k)
    return np.asarray(log_factorial(n) - log_factorial(k) - log_factorial(n - k))
