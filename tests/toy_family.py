"""Geometric: failures before a success, with a Beta prior. A family that tests add to priory, in one file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self, final

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike
from scipy.special import betaln

from priory.core.column_kernels import sum_by_class
from priory.core.statistics import Statistics, register_record
from priory.families.base import ArrayFamily, ColumnTerm, DensityTerm, GroupedRows, nan_where_zero, register_family


@register_record("Failures", axes="cd")
@dataclass(frozen=True, eq=False)
class GeometricStatistics(Statistics):
    """The number of rows, the failures in them, and the number of values that are not whole numbers from 0."""

    count_fields: ClassVar[tuple[str, ...]] = ("n", "failures", "outside")

    n: Array
    failures: Array
    outside: Array

    def find_fault(self) -> str | None:
        return "there are failures without rows" if (self.failures[self.n == 0] > 0).any() else None


@register_family("geometric")
@final
@dataclass(frozen=True, eq=False)
class Geometric(ArrayFamily[GeometricStatistics, Array]):
    """``P(x) = θ (1-θ)^x`` with ``θ ~ Beta(a, b)``."""

    a: float | Array = 1.0
    b: float | Array = 1.0

    accepted_values: ClassVar[str] = "whole numbers from 0"
    is_discrete: ClassVar[bool] = True
    parameter_name: ClassVar[str] = "probability"

    @classmethod
    def accepts(cls, values: Array) -> Array:
        return (values >= 0) & (np.floor(values) == values)

    # -- learning ------------------------------------------------------------------------------------------------

    def observe(
        self, x: ArrayLike, group: Array | None = None, groups: int = 1, weight: Array | None = None
    ) -> GeometricStatistics:
        rows, accepts = GroupedRows(x, group, groups), self.accepts
        transforms = (accepts, lambda v: np.where(accepts(v), v, 0.0), lambda v: ~accepts(v) & (v == v))
        return GeometricStatistics(
            *(rows.reshape_sums(sum_by_class(rows.x, rows.group, weight, rows.groups, t)) for t in transforms)
        )

    def posterior(self, statistics: GeometricStatistics) -> Self:
        return type(self)(self.a + statistics.n, self.b + statistics.failures)

    @classmethod
    def empirical_prior(cls, statistics: GeometricStatistics) -> Self:
        """Worth one row, and expecting the failures of all rows."""
        pooled = statistics.pool_classes()
        return cls(1.0, (pooled.failures[0] + 1) / (pooled.n[0] + 1))

    # -- parameters ----------------------------------------------------------------------------------------------

    def ml(self, statistics: GeometricStatistics) -> Array:
        return np.asarray(statistics.n / nan_where_zero(statistics.n + statistics.failures))

    def mode(self) -> Array:
        a, b = np.maximum(np.asarray(self.a) - 1, 0.0), np.maximum(np.asarray(self.b) - 1, 0.0)
        return np.where(a + b > 0, a / np.where(a + b > 0, a + b, 1.0), self.mean())

    def mean(self) -> Array:
        return np.asarray(self.a) / (np.asarray(self.a) + self.b)

    # -- probabilities -------------------------------------------------------------------------------------------

    def log_density(self, x: ArrayLike, parameters: Array) -> Array:
        x = np.asarray(x, dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.log(parameters) + np.where(x > 0, x * np.log1p(-np.asarray(parameters)), 0.0)
        return np.where(self.accepts(x) | np.isnan(x), value, -np.inf)

    def log_predictive(self, x: ArrayLike) -> Array:
        x, a, b = np.asarray(x, dtype=float), np.asarray(self.a), np.asarray(self.b)
        value = betaln(a + 1, b + np.maximum(x, 0.0)) - betaln(a, b)
        return np.where(self.accepts(x) | np.isnan(x), value, -np.inf)

    def log_normaliser(self) -> Array:
        return np.asarray(betaln(self.a, self.b))

    # -- sampling ------------------------------------------------------------------------------------------------

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        return rng.beta(self.a, self.b, size=(size, *np.shape(self.b)))

    def sample(self, parameters: Array, rng: np.random.Generator, size: int) -> Array:
        return rng.geometric(parameters, size=(size, *np.shape(parameters))) - 1.0

    # -- export --------------------------------------------------------------------------------------------------

    def column_terms(self, statistics: GeometricStatistics, estimate: str) -> list[ColumnTerm] | None:
        """``log θ + x log(1-θ)`` of x = 0, 1, 2, ...; with θ integrated out it has no such form."""
        if estimate == "predictive":
            return None
        theta = self.parameters(statistics, estimate)  # (classes, columns)
        given = {"slope": np.log1p(-theta), "constant": np.log(theta)}
        return [DensityTerm("count", {k: v[:, j] for k, v in given.items()}) for j in range(theta.shape[1])]
