"""Multivariate Gaussian: whole rows of real numbers with all their correlations, normal-inverse-Wishart prior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Self, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, multigammaln

from priory.core.logspace import LOG_TWO_PI
from priory.core.registration import register_record
from priory.core.statistics import ROUNDING_TOLERANCE, Statistics
from priory.core.typing import Array
from priory.errors import DataError, NotLearnedError
from priory.families.base import ArrayFamily, nan_where_zero
from priory.families.gaussian import Gaussian
from priory.families.registry import register_family

MAX_UNITS = 1e120  # far above any sum of values in units of their column


@register_record(
    "Scatter",
    axes={"n": "c", "first": "cd", "second": "cdd", "origin": "cd", "unit": "d"},
    reveals="one row of each class as it was, until rows are forgotten: the origin its sums are taken about",
)
@dataclass(frozen=True, eq=False)
class Scatter(Statistics):
    """The number of rows, the sum of ``z = x / unit - origin``, and the sum of its outer products ``z z'``."""

    frame_fields: ClassVar[tuple[str, ...]] = ("origin", "unit")

    n: Array  # (classes,)
    first: Array  # (classes, columns)
    second: Array  # (classes, columns, columns)
    origin: Array  # (classes, columns), in units
    unit: Array  # (columns,), powers of two

    def find_fault(self) -> str | None:
        squares = np.diagonal(self.second, axis1=-2, axis2=-1)  # (classes, columns)
        if (squares < 0).any():
            return "a sum of squares is negative"
        return find_fault_of_moments(self.unit, self.origin, self.first, self.second)

    def rebase(self, origin: Array, unit: Array) -> Scatter:
        """The record about another origin, in another unit."""
        scale = self.unit / unit
        shift = self.origin * scale - origin
        first, n = self.first * scale, self.n[..., None]
        cross = first[..., :, None] * shift[..., None, :]
        second = self.second * scale[:, None] * scale
        second = second + cross + cross.swapaxes(-1, -2) + n[..., None] * shift[..., :, None] * shift[..., None, :]
        return Scatter(self.n, first + n * shift, second, origin + 0 * first, unit)

    def align(self, other: Scatter) -> tuple[Scatter, Scatter]:
        unit = np.maximum(self.unit, other.unit)
        more = (self.n >= other.n)[..., None]
        origin = np.where(more, self.origin * (self.unit / unit), other.origin * (other.unit / unit))
        return self.rebase(origin, unit), other.rebase(origin, unit)

    def regroup_classes(self, index: Array, size: int) -> Scatter:
        wide = super().regroup_classes(index, size)
        origin = np.zeros((size, *self.origin.shape[1:]))
        origin[index] = self.origin
        return replace(wide, origin=origin)

    def pool_classes(self) -> Scatter:
        """All classes as one, about their common mean."""
        n = self.n.sum(axis=0, keepdims=True)
        total = (self.n[:, None] * self.origin + self.first).sum(axis=0, keepdims=True)
        centre = total / np.where(n > 0, n, 1.0)[:, None]
        about = self.rebase(np.broadcast_to(centre, self.origin.shape), self.unit)
        first, second = about.first.sum(axis=0, keepdims=True), about.second.sum(axis=0, keepdims=True)
        return Scatter(n, first, second, centre, self.unit)

    def check_subtraction(self, total: Scatter, part: Scatter) -> Scatter:
        left: Scatter = super().check_subtraction(total, part)
        spread, learned = (np.diagonal(s, axis1=-2, axis2=-1) for s in (left.scatter_matrix(), total.second))
        if (spread < -1e-9 * learned).any():
            raise NotLearnedError("cannot forget these rows: they have more spread than was learned.")
        rounding = spread <= ROUNDING_TOLERANCE * learned
        either = rounding[..., :, None] | rounding[..., None, :]
        return left._centre_on_mean(np.where(either, 0.0, left.scatter_matrix()))

    def _centre_on_mean(self, scatter_matrix: Array) -> Scatter:
        """The record about its mean: the origin may have been a row that is now forgotten."""
        some, n = (self.n > 0)[..., None], np.where(self.n > 0, self.n, 1.0)[..., None]
        origin = np.where(some, self.origin + self.first / n, 0.0)
        first = np.where(some, self.first - self.n[..., None] * (origin - self.origin), 0.0)
        second = scatter_matrix + first[..., :, None] * first[..., None, :] / n[..., None]
        return Scatter(self.n, first, second, origin, self.unit)

    def mean(self) -> Array:
        """Mean of ``x / unit``."""
        return np.asarray(self.origin + self.first / nan_where_zero(self.n)[..., None])

    def scatter_matrix(self) -> Array:
        """Sum of outer products about the mean."""
        n = np.where(self.n > 0, self.n, 1.0)[..., None, None]
        return np.asarray(self.second - self.first[..., :, None] * self.first[..., None, :] / n)


def find_fault_of_moments(unit: Array, origin: Array, *sums: Array) -> str | None:
    """What is wrong with sums about an origin in units: the unit of a column is of the size of its largest values."""
    if not (unit > 0).all():
        return "a unit is not above zero"
    if (np.frexp(unit)[0] != 0.5).any():
        return "a unit is not a power of two"
    if any(np.abs(x).max(initial=0.0) > MAX_UNITS for x in (origin, *sums)):
        return "a sum is too large for its unit"
    return None


class MultivariateNormalParameters(NamedTuple):
    """The parameters of a multivariate Gaussian."""

    mean: Array
    covariance: Array


@register_family()
@final
@dataclass(frozen=True, eq=False)
class MultivariateGaussian(ArrayFamily[Scatter, MultivariateNormalParameters]):
    """Whole rows of real numbers: ``x ~ N(μ, Σ)``, ``μ | Σ ~ N(location, Σ/strength)``, ``Σ ~ IW(degrees, scale)``.

    IW is the inverse Wishart distribution.

    Parameters
    ----------
    location : array of shape (columns,) or (classes, columns)
        The expected mean, in units.
    strength : float or array of shape (classes,)
        The number of virtual rows behind ``location``.
    degrees : float or array of shape (classes,)
        The degrees of freedom of the prior of Σ.
    scale : array of shape (columns, columns) or (classes, columns, columns)
        The scale matrix of the prior of Σ, in units squared.
    unit : float or array of shape (columns,)
        The unit of ``location`` and ``scale``.

    Attributes
    ----------
    accepted_values : str
        What a column must hold for this family, for people to read.

    References
    ----------
    Murphy, K. P. (2007). Conjugate Bayesian analysis of the Gaussian distribution.

    Examples
    --------
    >>> rows = np.array([[0.0, 0.0], [2.0, 2.0], [4.0, 4.0], [2.0, 0.0]])
    >>> family = MultivariateGaussian(location=np.zeros(2), strength=1.0, degrees=4.0, scale=np.eye(2))
    >>> [v.tolist() for v in family.ml(family.observe(rows))]
    [[2.0, 1.5], [[2.0, 2.0], [2.0, 2.75]]]
    """

    location: float | Array
    strength: float | Array
    degrees: float | Array
    scale: float | Array
    unit: float | Array = 1.0  # location is in units and scale in units squared

    accepted_values: ClassVar[str] = "whole rows of numbers, none missing"

    def observe(
        self, x: ArrayLike, group: Array | None = None, groups: int = 1, weight: Array | None = None
    ) -> Scatter:
        rows = np.asarray(x, dtype=float)
        if np.isnan(rows).any():
            row, column = (int(i) for i in np.argwhere(np.isnan(rows))[0])
            raise DataError(
                f"row {row}, column {column} is missing; a full covariance needs whole rows: fill it first."
            )
        margins = Gaussian().observe(rows, group, groups, weight)
        size = np.abs(rows).max(axis=0, initial=0.0)
        unit = np.ldexp(1.0, np.clip(np.frexp(np.where(size > 0, size, 1.0))[1], -1000, 1000))
        origin = np.nan_to_num(margins.means() / unit)
        z = rows / unit - (origin if group is None else origin[group])
        weighted = z if weight is None else z * weight[:, None]
        if group is None:
            first, second = weighted.sum(axis=0), weighted.T @ z
        else:
            first = np.stack([weighted[group == c].sum(axis=0) for c in range(groups)])
            second = np.stack([weighted[group == c].T @ z[group == c] for c in range(groups)])
        return Scatter(margins.n[..., 0], first, second, origin, unit)

    def posterior(self, statistics: Scatter) -> Self:
        ratio = statistics.unit / np.asarray(self.unit)
        n = statistics.n[..., None]
        mean = np.where(n > 0, statistics.mean() * ratio, self.location)
        strength = self.strength + statistics.n
        off = mean - self.location
        pull = (statistics.n * self.strength / strength)[..., None, None] * off[..., :, None] * off[..., None, :]
        return type(self)(
            (self.strength * np.asarray(self.location) + n * mean) / strength[..., None],
            strength,
            self.degrees + statistics.n,
            self.scale + statistics.scatter_matrix() * ratio[:, None] * ratio + pull,
            self.unit,
        )

    @classmethod
    def empirical_prior(cls, statistics: Scatter) -> Self:
        """The common mean, uncorrelated columns with their variance within classes, and little weight on the mean."""
        rows, classes, d = nan_where_zero(statistics.n.sum()), max((statistics.n > 0).sum(), 1), len(statistics.unit)
        pooled = statistics.pool_classes()
        total = np.diagonal(pooled.scatter_matrix()[0]) / rows
        within = np.diagonal(statistics.scatter_matrix().sum(axis=0)) + total / classes**2
        within = within / np.maximum(rows - classes + 1, 1.0)
        some = np.isfinite(within) & (within > 0)
        strength = np.min(np.where(some, within, 1.0) / np.where(some, total, 1.0), initial=1.0)
        scale = np.diag(np.where(some, within, 1.0))
        return cls(np.nan_to_num(pooled.mean()[0]), np.asarray(strength), np.asarray(d + 1.0), scale, statistics.unit)

    def ml(self, statistics: Scatter) -> MultivariateNormalParameters:
        covariance = statistics.scatter_matrix() / nan_where_zero(statistics.n)[..., None, None]
        return MultivariateNormalParameters(
            statistics.mean() * statistics.unit, covariance * statistics.unit[:, None] * statistics.unit
        )

    def _normal(self, divisor: Array) -> MultivariateNormalParameters:
        unit = np.broadcast_to(self.unit, np.shape(self.location)[-1:])
        covariance = self.scale / np.asarray(divisor)[..., None, None]
        return MultivariateNormalParameters(np.asarray(self.location * unit), covariance * unit[:, None] * unit)

    def mode(self) -> MultivariateNormalParameters:
        return self._normal(np.asarray(self.degrees) + np.shape(self.location)[-1] + 2)

    def mean(self) -> MultivariateNormalParameters:
        left = np.asarray(self.degrees) - np.shape(self.location)[-1] - 1
        return self._normal(np.where(left > 0, left, np.nan))

    def log_density(self, x: ArrayLike, parameters: MultivariateNormalParameters) -> Array:
        """Of whole rows (…, columns)."""
        distance, log_det = _mahalanobis(np.asarray(x) - parameters.mean, parameters.covariance)
        return np.asarray(-0.5 * (np.shape(x)[-1] * LOG_TWO_PI + log_det + distance))

    def log_predictive(self, x: ArrayLike) -> Array:
        """Of whole rows (…, columns): a multivariate Student-t."""
        z = np.asarray(x) / np.asarray(self.unit) - self.location
        d = z.shape[-1]
        freedom = np.asarray(self.degrees) - d + 1
        spread = np.asarray(self.scale) * ((np.asarray(self.strength) + 1) / self.strength)[..., None, None]
        distance, log_det = _mahalanobis(z, spread)
        constant = gammaln((freedom + d) / 2) - gammaln(freedom / 2) - 0.5 * (d * np.log(np.pi) + log_det)
        unit = np.log(np.broadcast_to(self.unit, (d,))).sum()
        return np.asarray(constant - (freedom + d) / 2 * np.log1p(distance) - unit)

    def log_normaliser(self) -> Array:
        degrees, d = np.asarray(self.degrees), np.shape(self.location)[-1]
        log_det = np.linalg.slogdet(np.asarray(self.scale))[1]
        gamma = (
            multigammaln(degrees / 2, d) if degrees.ndim == 0 else np.array([multigammaln(v / 2, d) for v in degrees])
        )
        return np.asarray(degrees * d / 2 * np.log(2) + gamma - degrees / 2 * log_det - d / 2 * np.log(self.strength))

    def log_base(self, statistics: Scatter) -> Array:
        d = np.shape(self.location)[-1]
        return np.asarray(-statistics.n * (d / 2 * LOG_TWO_PI + np.log(np.broadcast_to(self.unit, (d,))).sum()))

    def draw(self, rng: np.random.Generator, size: int) -> MultivariateNormalParameters:
        """By the Bartlett decomposition of the Wishart."""
        d = np.shape(self.location)[-1]
        normals = np.tril(rng.normal(size=(size, d, d)), -1)
        normals[:, range(d), range(d)] = np.sqrt(rng.chisquare(self.degrees - np.arange(d), size=(size, d)))
        root = np.linalg.cholesky(np.linalg.inv(self.scale)) @ normals
        covariance = np.linalg.inv(root @ root.swapaxes(-1, -2))
        step = np.linalg.cholesky(covariance / self.strength) @ rng.normal(size=(size, d, 1))
        unit = np.broadcast_to(self.unit, (d,))
        return MultivariateNormalParameters((self.location + step[..., 0]) * unit, covariance * unit[:, None] * unit)

    def sample(self, parameters: MultivariateNormalParameters, rng: np.random.Generator, size: int) -> Array:
        return rng.multivariate_normal(parameters.mean, parameters.covariance, size=size)


def _mahalanobis(z: Array, covariance: Array) -> tuple[Array, Array]:
    """Squared distance ``z' Σ⁻¹ z`` and ``log |Σ|``."""
    root = np.linalg.cholesky(covariance)
    white = np.linalg.solve(root, z[..., None])[..., 0]
    return (white**2).sum(axis=-1), 2 * np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
