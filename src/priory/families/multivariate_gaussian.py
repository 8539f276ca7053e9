"""Multivariate Gaussian: whole rows of real numbers with all their correlations, normal-inverse-Wishart prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, multigammaln

from priory.core.exact_products import (
    choose_units,
    count_pairs,
    divide_integers,
    index_pairs,
    list_pairs,
    stack_sums,
    sum_products_by_class,
    sum_products_of_rows,
    transform_products,
)
from priory.core.exact_sums import ExactSums
from priory.core.logspace import LOG_TWO_PI
from priory.core.registration import register_record
from priory.core.statistics import Statistics, subtract_counts
from priory.core.typing import Array
from priory.errors import DataError, NotLearnedError
from priory.families.base import ArrayFamily, nan_where_zero
from priory.families.registry import register_family

FORGOTTEN_SPREAD_TOLERANCE = 1e-9  # of what was learned: how much the rounding of decayed weights may be


@register_record(
    "Scatter",
    axes={"total": "c", "first": "cd", "second": "ct"},
    upgrade=lambda fields: _upgrade_sums_about_origin(fields),
)
@dataclass(frozen=True, eq=False)
class Scatter(Statistics):
    """Exact sums of the rows of each class: of their weights, of their columns, and of products of two columns."""

    count_fields: ClassVar[tuple[str, ...]] = ()

    total: ExactSums  # (classes,)
    first: ExactSums  # (classes, columns)
    second: ExactSums  # (classes, pairs), in the order of `list_pairs`

    @classmethod
    def from_products(cls, products: ExactSums, columns: int) -> Scatter:
        """The record of the sums of products (…, pairs) of a one and the columns."""
        shape, limbs, base = products.shape[:-1], products.limbs, products.base
        parts = (limbs[..., 0, :], limbs[..., 1 : 1 + columns, :], limbs[..., 1 + columns :, :])
        total, first, second = (ExactSums.from_limbs(part, base) for part in parts)
        return cls(total.reshape(shape), first, second)

    def find_fault(self) -> str | None:
        columns = self.first.shape[-1]
        if self.second.shape[-1] != count_pairs(columns):
            return "there is not one sum for each pair of columns"
        if (self.total.signs() < 0).any() or (self.second.take_columns(_find_squares(columns)).signs() < 0).any():
            return "a count or a sum of squares is negative"
        return None

    @property
    def n(self) -> Array:
        """The total weight of the rows of each class: (classes,)."""
        return self.derive("n", lambda record: record.total.to_floats())

    @property
    def unit(self) -> Array:
        """A power of two for each column, (columns,): one, unless its squares would overflow or vanish."""
        return self.derive("unit", Scatter._choose_unit)

    def _choose_unit(self) -> Array:
        squares = self.second.take_columns(_find_squares(self.first.shape[-1]))
        pooled = squares.reshape((self.n.size, self.first.shape[-1])).sum(axis=0)
        return choose_units(self.total.reshape((self.n.size,)).sum(axis=0), pooled)

    def check_subtraction(self, total: Scatter, part: Scatter) -> Scatter:
        """Return ``total - part``, or raise NotLearnedError if no rows have these sums.

        Sums are exact, but the factor of rows that have decayed is a rounded number: hence the tolerances.
        """
        empty = subtract_counts(total.n, part.n) == 0
        squares = _find_squares(self.first.shape[-1])
        spread, learned = (np.diagonal(r.scatter_matrix(total.unit), axis1=-2, axis2=-1) for r in (self, total))
        left = ~_is_small(self.second.take_columns(squares), part.second.take_columns(squares))
        if (spread < -FORGOTTEN_SPREAD_TOLERANCE * learned).any() or (left & empty[..., None]).any():
            raise NotLearnedError("cannot forget these rows: they have more spread than was learned.")
        return self._clear_classes(empty) if empty.any() else self

    def _clear_classes(self, empty: Array) -> Scatter:
        """The record with sums of zero in the classes without rows."""
        return Scatter(
            *(
                ExactSums.from_limbs(
                    np.where(empty.reshape(empty.shape + (1,) * (s.limbs.ndim - empty.ndim)), 0, s.limbs), s.base
                )
                for s in (self.total, self.first, self.second)
            )
        )

    def mean(self, unit: ArrayLike | None = None) -> Array:
        """Mean of ``x / unit``, rounded once; NaN where there are no rows."""
        size = np.frexp(self.unit if unit is None else unit)[1] - 1
        (rows, rows_exponent), (sums, exponent) = self.total.to_integers(), self.first.to_integers()
        return divide_integers(sums, rows[..., None], exponent - rows_exponent - size)

    def scatter_matrix(self, unit: ArrayLike | None = None) -> Array:
        """Sum of outer products of ``x / unit`` about the mean, rounded once; zero where there are no rows."""
        columns = self.first.shape[-1]
        size = np.broadcast_to(np.frexp(self.unit if unit is None else unit)[1] - 1, (columns,))
        left, right = list_pairs(columns)
        spread, rows, exponent = _compute_spread(self.total, self.first, self.second, left, right)
        pairs = divide_integers(spread, np.where(rows == 0, 1, rows), exponent - size[left] - size[right])
        return np.asarray(pairs[..., index_pairs(columns)])


def _upgrade_sums_about_origin(fields: dict[str, Any]) -> dict[str, Any]:
    """The exact sums of x that older records state as sums of ``z = x / unit - origin``."""
    if "origin" not in fields:
        return fields
    n, first, second, origin, unit = (fields[name] for name in ("n", "first", "second", "origin", "unit"))
    columns = len(unit)
    left, right = list_pairs(columns)
    index = np.zeros((1 + columns, 3), dtype=np.int64)
    index[:, 0] = np.arange(1 + columns)
    add, multiply = np.zeros((2, 1 + columns, 3))
    add[:, 0], multiply[0, 0], multiply[1:, 0] = 1.0, 1.0, unit
    classes = []
    for c in range(len(n)):
        sums = ExactSums.from_floats(np.concatenate([n[c : c + 1], first[c], second[c][left, right]]))
        add[1:, 1] = origin[c]
        classes.append(transform_products(transform_products(sums, index, add), index, multiply))
    upgraded = Scatter.from_products(stack_sums(classes), columns)
    return {name: getattr(upgraded, name) for name in ("total", "first", "second")}


def _compute_spread(
    total: ExactSums, first: ExactSums, second: ExactSums, left: Array, right: Array
) -> tuple[Array, Array, int]:
    """``n Σxy - Σx Σy`` of pairs of columns as integers, ``n`` that divides them, and the exponent of the ratio."""
    (rows, n_exponent), (sums, exponent), (products, second_exponent) = (
        s.to_integers() for s in (total, first, second)
    )
    rows = np.asarray(rows, dtype=object)[..., None]
    common = min(n_exponent + second_exponent, 2 * exponent)
    spread = (rows * products) << (n_exponent + second_exponent - common)
    return spread - ((sums[..., left] * sums[..., right]) << (2 * exponent - common)), rows, common - n_exponent


def _is_small(sums: ExactSums, total: ExactSums) -> Array:
    """Whether each sum is at most a rounding of the total."""
    (mantissa, exponent), (_, learned) = sums.to_scaled_floats(), total.to_scaled_floats()
    return np.asarray((mantissa == 0) | (exponent < learned + np.log2(FORGOTTEN_SPREAD_TOLERANCE)))


def _find_squares(columns: int) -> Array:
    """Where the sums of squares are among the pairs of columns."""
    return np.diagonal(index_pairs(columns))


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
        with np.errstate(over="ignore"):  # the square of 1e300 is infinite
            covariance = covariance * statistics.unit[:, None] * statistics.unit
        return MultivariateNormalParameters(statistics.mean(1.0), covariance)

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
