"""Gaussian: real numbers, with a normal-inverse-gamma prior on mean and variance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from priory.core import column_kernels, sharding
from priory.core.logspace import LOG_TWO_PI, log
from priory.core.registration import register_record
from priory.core.statistics import ROUNDING_TOLERANCE, Statistics
from priory.core.typing import Array
from priory.errors import DataError, NotLearnedError
from priory.families.base import ArrayFamily, GroupedRows, NumberBlock, nan_where_zero
from priory.families.registry import register_family

MIN_VARIANCE_SHARE = 1e-9  # of a column's variance: the least variance of a class, even if it shows one value only
MAX_UNITS = 1e120  # far above any sum of values in units of their column
MAX_ABS_Z = 1e140  # the square of anything larger would overflow; the answer is the same


@register_record(
    "Moments",
    axes={"n": "cd", "first": "cd", "second": "cd", "origin": "cd", "unit": "d"},
    reveals="one row of each class as it was, until rows are forgotten: the origin its sums are taken about",
)
@dataclass(frozen=True, eq=False)
class Moments(Statistics):
    """The number of rows, and the sum and sum of squares of ``z = x / unit - origin``.

    Sums about an origin near the data keep 15 digits where raw sums keep none (mean 1e8, sd 1), and a power of two as
    the unit keeps the squares of 1e300 finite. Neither changes a result beyond rounding; ``+`` aligns both.
    """

    frame_fields: ClassVar[tuple[str, ...]] = ("origin", "unit")

    n: Array  # (classes, columns)
    first: Array  # (classes, columns)
    second: Array  # (classes, columns)
    origin: Array  # (classes, columns), in units
    unit: Array  # (columns,), powers of two

    def find_fault(self) -> str | None:
        if (self.second < 0).any():
            return "a sum of squares is negative"
        return find_fault_of_moments(self.unit, self.origin, self.first, self.second)

    def rebase(self, origin: Array, unit: Array) -> Moments:
        """The record about another origin, in another unit."""
        scale = self.unit / unit
        shift = self.origin * scale - origin
        first, second = self.first * scale, self.second * scale**2
        return Moments(
            self.n, first + self.n * shift, second + 2 * shift * first + self.n * shift**2, origin + 0 * first, unit
        )

    def align(self, other: Moments) -> tuple[Moments, Moments]:
        """Both records in the larger unit, about the origin of the record with more rows."""
        filled, more = (r.n.sum(axis=0) if r.n.ndim > r.unit.ndim else r.n for r in (self, other))
        unit = np.where(more == 0, self.unit, np.where(filled == 0, other.unit, np.maximum(self.unit, other.unit)))
        origin = np.where(self.n >= other.n, self.origin * (self.unit / unit), other.origin * (other.unit / unit))
        return self.rebase(origin, unit), other.rebase(origin, unit)

    def regroup_classes(self, index: Array, size: int) -> Moments:
        wide = super().regroup_classes(index, size)
        origin = np.zeros((size, *self.origin.shape[1:]))
        origin[index] = self.origin
        return replace(wide, origin=origin)

    def pool_classes(self) -> Moments:
        """All classes as one, about their common mean (in two passes, so that distant classes do not cancel)."""
        total = self.n.sum(axis=0, keepdims=True)
        mean = self.n * self.origin + self.first
        centre = mean.sum(axis=0, keepdims=True) / np.where(total > 0, total, 1.0)
        about = self.rebase(np.broadcast_to(centre, self.origin.shape), self.unit)
        return Moments(
            total, about.first.sum(axis=0, keepdims=True), about.second.sum(axis=0, keepdims=True), centre, self.unit
        )

    def check_subtraction(self, total: Moments, part: Moments) -> Moments:
        left: Moments = super().check_subtraction(total, part)
        spread = left._unclipped_scatter()
        lost = spread < -1e-9 * total.second
        if lost.any():
            cell = tuple(int(i) for i in np.argwhere(lost)[0])
            raise NotLearnedError("cannot forget these values: they have more spread than was learned.", cell)
        return left._centre_on_mean(np.where(spread <= ROUNDING_TOLERANCE * total.second, 0.0, spread))

    def _centre_on_mean(self, scatter: Array) -> Moments:
        """The record about its mean: the origin may have been a row that is now forgotten."""
        n = np.where(self.n > 0, self.n, 1.0)
        origin = np.where(self.n > 0, self.origin + self.first / n, 0.0)
        first = np.where(self.n > 0, self.first - self.n * (origin - self.origin), 0.0)
        return Moments(self.n, first, scatter + first**2 / n, origin, self.unit)

    def centre(self) -> Array:
        """Mean of z."""
        return np.asarray(self.first / nan_where_zero(self.n))

    def scatter(self) -> Array:
        """Sum of squares of z about its mean: zero where nothing was seen, and never negative."""
        return np.maximum(self._unclipped_scatter(), 0.0)

    def _unclipped_scatter(self) -> Array:
        return np.asarray(self.second - self.first**2 / np.where(self.n > 0, self.n, 1.0))


def find_fault_of_moments(unit: Array, origin: Array, *sums: Array) -> str | None:
    """What is wrong with sums about an origin in units: the unit of a column is of the size of its largest values."""
    if not (unit > 0).all():
        return "a unit is not above zero"
    if (np.frexp(unit)[0] != 0.5).any():
        return "a unit is not a power of two"
    if any(np.abs(x).max(initial=0.0) > MAX_UNITS for x in (origin, *sums)):
        return "a sum is too large for its unit"
    return None


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
        The unit of ``location`` and ``scale``: beliefs about numbers near 1e300 stay finite.

    Attributes
    ----------
    accepted_values : str
        What a column must hold for this family, for people to read.

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
    unit: float | Array = 1.0  # location is in units and scale in units squared: beliefs about 1e300 stay finite

    accepted_values: ClassVar[str] = "numbers"

    def observe(
        self, x: ArrayLike, group: Array | None = None, groups: int = 1, weight: Array | None = None
    ) -> Moments:
        rows = GroupedRows(x, group, groups)
        origin, unit = _choose_origin_and_unit(rows)
        n, first, second = column_kernels.compute_moments(rows.x, rows.group, weight, origin, unit)
        if not np.isfinite(second).all():  # a unit read off the first rows was too small, or a cell is infinite
            unit = _round_to_power_of_two(_find_max_abs(rows.x))
            origin = _find_first_rows(rows) / unit
            n, first, second = column_kernels.compute_moments(rows.x, rows.group, weight, origin, unit)
        n, first, second, origin = (rows.reshape_sums(s) for s in (n, first, second, origin))
        return Moments(n, first, second, origin, unit.reshape(np.shape(x)[1:]))

    def posterior(self, statistics: Moments) -> Self:
        n, ratio = statistics.n, statistics.unit / np.asarray(self.unit)
        mean = np.where(n > 0, (statistics.origin + statistics.first / np.where(n > 0, n, 1.0)) * ratio, self.location)
        strength = self.strength + n
        pull = n * self.strength / strength * (mean - self.location) ** 2
        return type(self)(
            (self.strength * np.asarray(self.location) + n * mean) / strength,
            strength,
            self.shape + n / 2,
            self.scale + (statistics.scatter() * ratio**2 + pull) / 2,
            self.unit,
        )

    @classmethod
    def empirical_prior(cls, statistics: Moments) -> Self:
        """The common mean and the variance within classes, the mean as uncertain as the classes lie apart.

        While every class has one row, the variance within is guessed from how close the classes lie.
        """
        pooled = statistics.pool_classes()
        rows, classes = nan_where_zero(pooled.n[0]), np.maximum((statistics.n > 0).sum(axis=0), 1)
        total = pooled.scatter()[0] / rows
        within = (statistics.scatter().sum(axis=0) + total / classes**2) / np.maximum(rows - classes + 1, 1.0)
        strength = np.where(total > 0, np.minimum(within / np.where(total > 0, total, 1.0), 1.0), 1.0)
        location = pooled.origin[0] + pooled.centre()[0]
        return cls(np.nan_to_num(location), strength, 1.0, np.nan_to_num(within), statistics.unit)

    def ml(self, statistics: Moments) -> NormalParameters:
        mean = (statistics.origin + statistics.centre()) * statistics.unit
        return NormalParameters(mean, statistics.scatter() / nan_where_zero(statistics.n) * statistics.unit**2)

    def mode(self) -> NormalParameters:
        return self._normal(np.asarray(self.shape) + 1.5)

    def mean(self) -> NormalParameters:
        return self._normal(np.where(np.asarray(self.shape) > 1, np.asarray(self.shape) - 1, np.nan))

    def _normal(self, shape: Array) -> NormalParameters:
        unit = np.asarray(self.unit)
        return NormalParameters(np.asarray(self.location * unit), np.asarray(self.scale * unit**2 / shape))

    def log_density(self, x: ArrayLike, parameters: NormalParameters) -> Array:
        mean, variance = (np.asarray(p, dtype=float) for p in parameters)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(-0.5 * (LOG_TWO_PI + np.log(variance) + (x - mean) ** 2 / variance))

    def _student_t_parameters(self) -> tuple[Array, Array, Array, Array]:
        """The predictive of z as ``constant - power * log(1 + precision * (z - location)²)``; zero without spread."""
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

    def _tables(self, statistics: Moments, estimate: str) -> tuple[Array, ...]:
        """Centre, precision, (power,) and constant of the log density, each (classes, columns).

        Centre and precision are in units of the column; a class without rows has a constant of zero and says nothing.
        """
        unitless = replace(statistics, unit=np.ones_like(statistics.unit))
        ratio = np.asarray(self.unit) / statistics.unit
        prior = replace(self, location=self.location * ratio, scale=self.scale * ratio**2, unit=np.ones_like(ratio))
        if estimate == "predictive":
            *rest, constant = (prior + unitless)._student_t_parameters()
            return *rest, constant - (constant != 0) * np.log(statistics.unit)
        mean, variance = prior.parameters(unitless, estimate)
        variance = np.maximum(variance, MIN_VARIANCE_SHARE * type(self).empirical_prior(unitless).scale)
        defined, variance = variance > 0, np.where(variance > 0, variance, 1.0)
        constant = -0.5 * (LOG_TWO_PI + np.log(variance)) - np.log(statistics.unit)
        return np.nan_to_num(mean), defined / variance, defined * constant

    def log_likelihood(self, statistics: Moments, x: Array, estimate: str) -> Array:
        centre, precision, *power, constant = statistics.derive(
            "tables", lambda s: self._tables(s, estimate), self, estimate
        )
        z = np.clip((x / statistics.unit)[:, None] - centre, -MAX_ABS_Z, MAX_ABS_Z)
        terms = constant - power[0] * np.log1p(precision * z**2) if power else constant - 0.5 * precision * z**2
        return np.where(np.isnan(z), 0.0, terms)

    def score(self, statistics: Moments, x: NumberBlock, estimate: str) -> Array:
        """The terms summed over the columns."""
        tables = statistics.derive("tables", lambda s: self._tables(s, estimate), self, estimate)
        return (column_kernels.score_student_t if estimate == "predictive" else column_kernels.score_gaussian)(
            x, statistics.unit, *tables
        )

    def averaged_score(
        self, statistics: Moments, pooled: Moments, x: NumberBlock, estimate: str, inclusion: Array
    ) -> Array:
        if estimate != "predictive":
            return super().averaged_score(statistics, pooled, x, estimate, inclusion)
        shared = self._tables(pooled, estimate)
        pairs = zip(self._tables(statistics, estimate), shared, strict=True)
        # the last row of each table is all classes pooled
        centre, precision, power, constant = (np.concatenate(pair) for pair in pairs)
        relative = column_kernels.score_student_mixture(
            x, statistics.unit, centre, precision, power, constant, inclusion
        )
        return relative + column_kernels.score_student_t(x, statistics.unit, *shared)

    def evidence(self, statistics: Moments) -> Array:
        """A column without spread has no density: some other family explains it."""
        with np.errstate(invalid="ignore"):
            return np.nan_to_num(super().evidence(statistics), nan=-np.inf, posinf=-np.inf, neginf=-np.inf)


def _choose_origin_and_unit(rows: GroupedRows) -> tuple[Array, Array]:
    """An origin for each class (its first row) and a unit for each column (the size of the first rows)."""
    unit = _round_to_power_of_two(_find_max_abs(rows.x[: sharding.ROWS_PER_SHARD]))
    return _find_first_rows(rows) / unit, unit


def _find_first_rows(rows: GroupedRows) -> Array:
    """The first row of each class, found among the first rows of all if it is there."""
    origin = np.zeros((rows.groups, rows.x.shape[1]))
    for part in (rows.group[: sharding.ROWS_PER_SHARD], rows.group):
        first = np.full(rows.groups, -1, dtype=np.intp)
        first[part[::-1]] = np.arange(len(part))[::-1]
        if (first >= 0).all():
            break
    there = first >= 0
    origin[there] = rows.x[first[there]]
    return np.where(np.isfinite(origin), origin, 0.0)


def _find_max_abs(x: Array) -> Array:
    size = np.abs(x.astype(float))
    largest = np.nanmax(size, axis=0, initial=0.0, where=~np.isnan(size))
    if np.isinf(largest).any():
        row, column = (int(i) for i in np.argwhere(np.isinf(size))[0])
        raise DataError(f"row {row}, column {column} holds an infinite number; use NaN for what is missing.")
    return largest


def _round_to_power_of_two(size: Array) -> Array:
    return np.ldexp(1.0, np.clip(np.frexp(np.where(size > 0, size, 1.0))[1], -1000, 1000))
