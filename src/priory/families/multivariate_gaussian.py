"""Multivariate Gaussian: whole rows of real numbers with all their correlations, normal-inverse-Wishart prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Self, final

import numpy as np
from numpy.typing import ArrayLike

from priory.core.exact_products import sum_products_by_class, sum_products_of_rows
from priory.core.logspace import LOG_TWO_PI, gammainccinv, gammaln, multigammaln, stdtrit
from priory.core.typing import Array
from priory.errors import DataError
from priory.families.base import ArrayFamily, nan_where_zero, register_family
from priory.families.moments import Scatter


class MultivariateNormalParameters(NamedTuple):
    """The parameters of a multivariate Gaussian."""

    mean: Array  # (…, columns)
    covariance: Array  # (…, columns, columns)


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
        The values that a column may hold, for error messages.

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
    whole_row_estimator: ClassVar[str] = "priory.naive_bayes.GaussianBayes"

    def observe(
        self, x: ArrayLike, group: Array | None = None, groups: int = 1, weight: Array | None = None
    ) -> Scatter:
        rows = np.asarray(x)
        rows = rows if rows.dtype.kind in "fiu" else rows.astype(float)
        if np.isnan(rows).any():
            row, column = (int(i) for i in np.argwhere(np.isnan(rows))[0])
            raise DataError(
                f"row {row}, column {column} is missing; a full covariance needs whole rows: fill it first."
            )
        columns = rows.shape[1]

        def take_rows(part: slice | Array) -> Array:
            # A column of ones first: its products with the others are the weights and the sums of the columns.
            taken = rows[part]
            z = np.ones((len(taken), 1 + columns))
            z[:, 1:] = taken
            return z

        if group is None:
            products = sum_products_of_rows(take_rows, len(rows), 1 + columns, weight)
        else:
            products = sum_products_by_class(take_rows, group, groups, 1 + columns, weight)
        return Scatter.from_products(products, columns)

    def posterior(self, statistics: Scatter) -> Self:
        # Standard update: the scatter about the class mean, plus the outer product of how far that mean is from the
        # prior's location. n is (classes,), mean and off (classes, columns), pull (classes, columns, columns).
        n = statistics.n[..., None]
        mean = np.where(n > 0, statistics.mean(self.unit), self.location)
        strength = self.strength + statistics.n
        off = mean - self.location
        pull = (statistics.n * self.strength / strength)[..., None, None] * off[..., :, None] * off[..., None, :]
        return type(self)(
            (self.strength * np.asarray(self.location) + n * mean) / strength[..., None],
            strength,
            self.degrees + statistics.n,
            self.scale + statistics.scatter_matrix(self.unit) + pull,
            self.unit,
        )

    @classmethod
    def empirical_prior(cls, statistics: Scatter) -> Self:
        """The pooled mean, with little weight, and uncorrelated columns with their variance within classes."""
        rows, classes, d = nan_where_zero(statistics.n.sum()), max((statistics.n > 0).sum(), 1), len(statistics.unit)
        pooled = statistics.pool_classes()
        # Variances (columns,) over all rows and within classes. ``total / classes**2`` keeps the latter positive where
        # every class has one row; ``some`` excludes constant columns.
        total = np.diagonal(pooled.scatter_matrix()[0]) / rows
        within = np.diagonal(statistics.scatter_matrix().sum(axis=0)) + total / classes**2
        within = within / np.maximum(rows - classes + 1, 1.0)
        some = np.isfinite(within) & (within > 0)
        strength = np.min(np.where(some, within, 1.0) / np.where(some, total, 1.0), initial=1.0)
        scale = np.diag(np.where(some, within, 1.0))
        return cls(np.nan_to_num(pooled.mean()[0]), np.asarray(strength), np.asarray(d + 1.0), scale, statistics.unit)

    def ml(self, statistics: Scatter) -> MultivariateNormalParameters:
        covariance = statistics.scatter_matrix() / nan_where_zero(statistics.n)[..., None, None]
        with np.errstate(over="ignore"):  # the square of 1e300 is infinite
            covariance = covariance * statistics.unit[:, None] * statistics.unit
        return MultivariateNormalParameters(statistics.mean(1.0), covariance)

    def _normal(self, divisor: Array) -> MultivariateNormalParameters:
        # unit (columns,), location (…, columns), scale (…, columns, columns)
        unit = np.broadcast_to(self.unit, np.shape(self.location)[-1:])
        covariance = self.scale / np.asarray(divisor)[..., None, None]
        return MultivariateNormalParameters(np.asarray(self.location * unit), covariance * unit[:, None] * unit)

    def mode(self) -> MultivariateNormalParameters:
        return self._normal(np.asarray(self.degrees) + np.shape(self.location)[-1] + 2)

    def mean(self) -> MultivariateNormalParameters:
        left = np.asarray(self.degrees) - np.shape(self.location)[-1] - 1
        return self._normal(np.where(left > 0, left, np.nan))

    def quantile(self, q: float) -> MultivariateNormalParameters:
        """Quantiles of the means (Student-t) and the variances (inverse-gamma); NaN for covariances: no closed form."""
        unit = np.broadcast_to(self.unit, np.shape(self.location)[-1:])
        # Marginally, each mean is Student-t with degrees - d + 1 degrees of freedom.
        spread = np.diagonal(np.asarray(self.scale), axis1=-2, axis2=-1)  # (..., columns)
        freedom = (np.asarray(self.degrees) - len(unit) + 1)[..., None]
        deviation = np.sqrt(spread / (freedom * np.asarray(self.strength)[..., None]))
        variance = spread / 2 / gammainccinv(freedom / 2, q) * unit**2
        covariance = np.where(np.eye(len(unit), dtype=bool), variance[..., None], np.nan)
        return MultivariateNormalParameters((self.location + stdtrit(freedom, q) * deviation) * unit, covariance)

    def log_density(self, x: ArrayLike, parameters: MultivariateNormalParameters) -> Array:
        """Log density of rows (…, columns)."""
        distance, log_det = _mahalanobis(np.asarray(x) - parameters.mean, parameters.covariance)
        return np.asarray(-0.5 * (np.shape(x)[-1] * LOG_TWO_PI + log_det + distance))

    def log_predictive(self, x: ArrayLike) -> Array:
        """Log density of rows (…, columns): a multivariate Student-t."""
        z = np.asarray(x) / np.asarray(self.unit) - self.location
        d = z.shape[-1]
        freedom = np.asarray(self.degrees) - d + 1
        # Student-t with ``freedom`` degrees of freedom and shape matrix spread / freedom, (classes, columns, columns);
        # log1p(distance) needs no division by freedom because ``spread`` was not divided by it either.
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

    def n_parameters(self, statistics: Scatter) -> int:
        d = statistics.first.shape[-1]
        return d + d * (d + 1) // 2

    def draw(self, rng: np.random.Generator, size: int) -> MultivariateNormalParameters:
        """Sample μ and Σ, using the Bartlett decomposition of the Wishart distribution."""
        d = np.shape(self.location)[-1]
        # Σ⁻¹ = L A A' L' is a Wishart draw, where L L' = scale⁻¹ and A (size, d, d) is lower triangular with standard
        # normals below the diagonal and the roots of chi-squares on it.
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
    """Squared Mahalanobis distance ``z' Σ⁻¹ z`` and ``log |Σ|``, for z (…, columns) and Σ (…, columns, columns)."""
    # With Σ = R R', z' Σ⁻¹ z is the squared norm of R⁻¹ z, and |Σ| the squared product of the diagonal of R.
    root = np.linalg.cholesky(covariance)
    white = np.linalg.solve(root, z[..., None])[..., 0]
    return (white**2).sum(axis=-1), 2 * np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
