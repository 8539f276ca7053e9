"""Gaussian: real numbers, with a normal-inverse-gamma prior on mean and variance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self, final

import numpy as np
import scipy
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core import column_kernels
from priory.core.logspace import LOG_TWO_PI, gammaln, log
from priory.families.base import (
    ArrayFamily,
    ColumnTerm,
    DensityTerm,
    GroupedRows,
    NumberBlock,
    nan_where_zero,
    register_family,
)
from priory.families.moments import MIN_CLASS_VARIANCE_SHARE, Moments
from priory.families.open_columns import ColumnGuard, OpenColumns, OpenGaussians, guard_moments

MAX_STEP_IN_UNITS = 1e100
MAX_ABS_Z = 1e130  # clipped here: the square of a larger value, times a precision, might overflow


def find_variance_floor(statistics: Moments) -> Array:
    """Lower bound (columns,) of the variance of a class, in units squared, from the other classes and the resolution.

    Rounding to a step adds an error with variance step² / 12, even if the few values of a class are equal. A constant
    column has no lower bound: it contributes nothing.
    """
    within = np.asarray(Gaussian.empirical_prior(statistics).scale)
    by_step = _find_step_variance(statistics, statistics.units())
    return np.where(within > 0, np.maximum(MIN_CLASS_VARIANCE_SHARE * within, by_step), 0.0)


def _find_step_variance(statistics: Moments, unit: Array) -> Array:
    """Variance (columns,) of the error from rounding to the step of a column, in units squared."""
    return np.asarray(np.minimum(statistics.find_steps() / unit, MAX_STEP_IN_UNITS) ** 2 / 12)


class NormalParameters(NamedTuple):
    """The parameters of a Gaussian."""

    mean: Array
    variance: Array


@register_family("gaussian", auto_rank=3)
@final
@dataclass(frozen=True, eq=False)
class Gaussian(ArrayFamily[Moments, NormalParameters]):
    """Real numbers: ``x ~ N(μ, σ²)``, ``μ | σ² ~ N(location, σ²/strength)``, ``σ² ~ InverseGamma(shape, scale)``.

    Parameters
    ----------
    location : float or array of shape (classes, columns)
        The expected mean, in units.
    strength : float or array of shape (classes, columns)
        The number of virtual rows behind ``location``.
    shape, scale : float or array of shape (classes, columns)
        The prior of the variance, ``scale`` in units squared.
    unit : float or array of shape (columns,)
        The unit of ``location`` and ``scale``, so that hyperparameters stay finite for values near 1e300.

    Attributes
    ----------
    accepted_values : str
        The values that a column may hold, for error messages.

    References
    ----------
    Murphy, K. P. (2007). Conjugate Bayesian analysis of the Gaussian distribution.

    Examples
    --------
    >>> seen = Gaussian().observe([3.23, 1.23, 0.55, 1.23])
    >>> [round(float(v), 10) for v in Gaussian().ml(seen)]
    [1.56, 1.0067]
    >>> belief = Gaussian(location=0.0, strength=1.0, shape=2.0, scale=1.0) + seen
    >>> float(belief.location), float(belief.strength), float(belief.shape)
    (1.248, 5.0, 4.0)
    """

    location: float | Array = 0.0
    strength: float | Array = 1.0
    shape: float | Array = 1.0
    scale: float | Array = 1.0
    unit: float | Array = 1.0  # location is in units and scale in units squared, to stay finite for values near 1e300

    accepted_values: ClassVar[str] = "numbers"
    has_covariance: ClassVar[bool] = True

    def observe(
        self, x: ArrayLike, group: Array | None = None, groups: int = 1, weight: Array | None = None
    ) -> Moments:
        rows = GroupedRows(x, group, groups)
        _, *sums = column_kernels.sum_exactly(rows.x, rows.group, weight, rows.groups, squares=True)
        exact_n, first, second = (rows.reshape_sums(s) for s in sums)
        return Moments(exact_n.to_floats(), exact_n, first, second)

    def posterior(self, statistics: Moments) -> Self:
        n, (mantissa, exponent) = statistics.n, np.frexp(self.unit)
        mean = np.where(n > 0, statistics.means(exponent) / mantissa, self.location)
        return self._update(n, mean, n * np.maximum(statistics.variances(exponent), 0.0) / mantissa**2)

    def _update(self, n: Array, mean: Array, spread: Array) -> Self:
        """Posterior after ``n`` rows with this mean and sum of squares about the mean, both in units."""
        strength = self.strength + n
        # The distance of the mean from the prior's location adds to the sum of squares; all (classes, columns).
        pull = n * self.strength / strength * (mean - self.location) ** 2
        return type(self)(
            (self.strength * np.asarray(self.location) + n * mean) / strength,
            strength,
            self.shape + n / 2,
            self.scale + (spread + pull) / 2,
            self.unit,
        )

    @classmethod
    def empirical_prior(cls, statistics: Moments) -> Self:
        """Center on the pooled mean and the variance within classes; the spread of the class means sets the strength.

        If every class has one row, the variance within is estimated from the distances between the classes.
        """
        pooled, exponent = statistics.pool_classes(), statistics.find_exponents()
        rows, classes = nan_where_zero(pooled.n[0]), np.maximum((statistics.n > 0).sum(axis=0), 1)
        # (columns,) each: variance over all rows, sum of squares within classes, and the variance within
        total = np.maximum(pooled.variances(exponent)[0], 0.0)
        spread = (statistics.n * np.maximum(statistics.variances(exponent), 0.0)).sum(axis=0)
        within = (spread + total / classes**2) / np.maximum(rows - classes + 1, 1.0)
        strength = np.where(total > 0, np.minimum(within / np.where(total > 0, total, 1.0), 1.0), 1.0)
        location = np.nan_to_num(pooled.means(exponent)[0])
        return cls(location, strength, 1.0, np.nan_to_num(within), np.ldexp(1.0, exponent))

    def ml(self, statistics: Moments) -> NormalParameters:
        seen = statistics.n > 0
        return NormalParameters(statistics.means(), np.where(seen, np.maximum(statistics.variances(), 0.0), np.nan))

    def mode(self) -> NormalParameters:
        return self._normal(np.asarray(self.shape) + 1.5)

    def mean(self) -> NormalParameters:
        return self._normal(np.where(np.asarray(self.shape) > 1, np.asarray(self.shape) - 1, np.nan))

    def quantile(self, q: float) -> NormalParameters:
        """Quantiles of the mean (Student-t) and of the variance (inverse-gamma)."""
        shape, scale, unit = (np.asarray(v, dtype=float) for v in (self.shape, self.scale, self.unit))
        mean = self.location + scipy.special.stdtrit(2 * shape, q) * np.sqrt(scale / (shape * self.strength))
        return NormalParameters(
            np.asarray(mean * unit), np.asarray(scale * unit**2 / scipy.special.gammainccinv(shape, q))
        )

    def _normal(self, shape: Array) -> NormalParameters:
        unit = np.asarray(self.unit)
        return NormalParameters(np.asarray(self.location * unit), np.asarray(self.scale * unit**2 / shape))

    def log_density(self, x: ArrayLike, parameters: NormalParameters) -> Array:
        mean, variance = (np.asarray(p, dtype=float) for p in parameters)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(-0.5 * (LOG_TWO_PI + np.log(variance) + (x - mean) ** 2 / variance))

    def _student_t_parameters(self) -> tuple[Array, Array, Array, Array]:
        """Location, precision, power and constant of the log predictive of z; zero where the scale is zero.

        The log predictive is ``constant - power * log(1 + precision * (z - location)²)``.
        """
        # a Student-t with 2 shape degrees of freedom, whose squared scale is spread / (2 shape): (classes, columns)
        shape, strength = np.asarray(self.shape, dtype=float), np.asarray(self.strength)
        spread = np.asarray(2 * np.asarray(self.scale) * (strength + 1) / strength, dtype=float)
        some = spread > 0
        spread = np.where(some, spread, 1.0)
        constant = gammaln(shape + 0.5) - gammaln(shape) - 0.5 * (np.log(np.pi) + np.log(spread))
        return np.asarray(self.location, dtype=float), some / spread, some * (shape + 0.5), some * constant

    def log_predictive(self, x: ArrayLike) -> Array:
        location, precision, power, constant = self._student_t_parameters()
        z = np.asarray(x) / np.asarray(self.unit) - location
        return np.asarray(constant - power * np.log1p(precision * z**2) - np.log(self.unit))

    def log_normaliser(self) -> Array:
        shape = np.asarray(self.shape)
        return np.asarray(gammaln(shape) - shape * log(self.scale) - 0.5 * np.log(np.asarray(self.strength)))

    def log_base(self, statistics: Moments) -> Array:
        return np.asarray(-statistics.n * (0.5 * LOG_TWO_PI + np.log(self.unit)))

    def draw(self, rng: np.random.Generator, size: int) -> NormalParameters:
        shape, unit = (size, *np.shape(self.location)), np.asarray(self.unit)
        variance = np.asarray(self.scale) / rng.gamma(self.shape, size=shape)
        mean = rng.normal(self.location, np.sqrt(variance / self.strength), size=shape)
        return NormalParameters(mean * unit, variance * unit**2)

    def sample(self, parameters: NormalParameters, rng: np.random.Generator, size: int) -> Array:
        return rng.normal(parameters.mean, np.sqrt(parameters.variance), size=(size, *np.shape(parameters.mean)))

    # -- classes by columns, in units throughout, so that nothing overflows -------------------------------------------

    def scale_to(self, unit: Array) -> Self:
        """The same distribution in other units (columns,)."""
        ratio = np.asarray(self.unit) / unit
        return replace(self, location=self.location * ratio, scale=self.scale * ratio**2, unit=unit)

    def _find_student_t_tables(self, floor: Array) -> tuple[Array, ...]:
        """Centre, precision, power and constant of the log predictive, with a variance of at least ``floor``."""
        belief = replace(self, scale=np.maximum(self.scale, np.asarray(self.shape) * floor))
        *rest, constant = belief._student_t_parameters()
        return *rest, constant - (constant != 0) * np.log(self.unit)

    def student_t_tables(self, n: Array, mean: Array, spread: Array, floor: Array) -> tuple[Array, ...]:
        """Tables of the predictive after ``n`` rows with this mean and sum of squares about the mean, in units."""
        return self._update(n, np.where(n > 0, mean, self.location), spread)._find_student_t_tables(floor)

    def _tables(self, statistics: Moments, estimate: str) -> tuple[Array, ...]:
        """Centre, precision, (power,) and constant of the log density, each (classes, columns).

        Centre and precision are in units of the column; they are zero for a class without rows, as is the constant.
        """
        unit = statistics.units()
        prior = self.scale_to(unit)
        floor = find_variance_floor(statistics)
        if estimate == "predictive":
            return (prior + statistics)._find_student_t_tables(floor)
        if estimate == "ml":
            exponent = statistics.find_exponents()
            mean, variance = statistics.means(exponent), np.where(statistics.n > 0, statistics.variances(exponent), 0.0)
        else:
            belief = replace(prior + statistics, unit=1.0)
            mean, variance = belief.mode() if estimate == "map" else belief.mean()
        variance = np.maximum(variance, np.where(statistics.n > 0, floor, 0.0) if estimate == "ml" else floor)
        # A class without a variance gets zeros in all tables, so its terms are zero.
        defined, variance = variance > 0, np.where(variance > 0, variance, 1.0)
        constant = -0.5 * (LOG_TWO_PI + np.log(variance)) - np.log(unit)
        return np.nan_to_num(mean), defined / variance, defined * constant

    def log_likelihood(self, statistics: Moments, x: Array, estimate: str) -> Array:
        centre, precision, *power, constant = statistics.derive(
            "tables", lambda s: self._tables(s, estimate), self, estimate
        )
        # (rows, 1, columns) - (classes, columns)
        z = np.clip((x / statistics.units())[:, None] - centre, -MAX_ABS_Z, MAX_ABS_Z)
        terms = constant - power[0] * np.log1p(precision * z**2) if power else constant - 0.5 * precision * z**2
        return np.where(np.isnan(z), 0.0, terms)

    def score(self, statistics: Moments, x: NumberBlock, estimate: str) -> Array:
        """The terms summed over the columns, shape (rows, classes)."""
        tables = statistics.derive("tables", lambda s: self._tables(s, estimate), self, estimate)
        return (column_kernels.score_student_t if estimate == "predictive" else column_kernels.score_gaussian)(
            x, statistics.units(), *tables
        )

    def guard(self, statistics: Moments, group: int) -> ColumnGuard:
        return guard_moments(statistics, group)

    def open(self, statistics: Moments) -> OpenColumns:
        return OpenGaussians(self, statistics, find_variance_floor(statistics))

    def column_terms(self, statistics: Moments, estimate: str) -> list[ColumnTerm]:
        tables, units = self._tables(statistics, estimate), np.broadcast_to(statistics.units(), statistics.n.shape[-1:])
        form, power = ("student", ["power"]) if len(tables) == 4 else ("normal", [])
        names = ["centre", "precision", *power, "constant"]
        return [
            DensityTerm(form, {name: table[:, j] for name, table in zip(names, tables, strict=True)}, float(units[j]))
            for j in range(len(units))
        ]

    def evidence(self, statistics: Moments) -> Array:
        """Log evidence of each column, its log density averaged over one step of the resolution, so that it is bounded.

        It is -inf for a constant column, which has no density.
        """
        # The expected sum of squares grows by step² / 12 for each row.
        belief, blur = self + statistics, statistics.n * _find_step_variance(statistics, np.asarray(self.unit))
        with np.errstate(invalid="ignore"):
            blurred = replace(belief, scale=belief.scale + blur / 2).log_normaliser()
            evidence = blurred - self.log_normaliser() + self.log_base(statistics)
        return np.nan_to_num(evidence.sum(axis=0), nan=-np.inf, posinf=-np.inf, neginf=-np.inf)
