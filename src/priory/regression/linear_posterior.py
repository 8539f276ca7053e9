"""The posterior of Bayesian linear regression: normal-inverse-gamma weights and noise, and Student-t predictions.

    y = level + (x - centre)·w + e,   e ~ N(0, σ²),   (level, w) | σ² ~ N(mean, σ² precision⁻¹),   σ² ~ InvGamma(a, b)

The prior is conjugate: adding the cross products of the rows gives a posterior of the same form, and the evidence is
the ratio of the two normalising constants. A weight with zero prior precision has a flat (improper) prior; each of them
reduces ``shape`` by one half, because one row is needed to determine it. The formulas are in Bishop, "Pattern
Recognition and Machine Learning", 2006, section 3.3 (and exercise 3.12, for unknown noise).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self, final

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dtrtri
from scipy.special import gammaln, stdtrit

from priory.core.logspace import LOG_TWO_PI, log
from priory.core.statistics import register_record
from priory.errors import DataError
from priory.regression.cross_products import CrossProducts, centre_products

RANK_TOLERANCE = 1e-13  # a smaller squared pivot (of a unit diagonal) is rounding error
MIN_LEAVE_ONE_OUT_SHARE = 1e-12  # 1 - leverage; below this a single row determines a weight


class StudentT(NamedTuple):
    """A Student-t distribution for each row: location, scale, and degrees of freedom.

    >>> StudentT(np.array([0.0]), np.array([1.0]), 5.0).interval(0.9)[1].round(3).tolist()
    [2.015]
    """

    location: Array
    scale: Array
    degrees_of_freedom: Array | float

    def std(self) -> Array:
        """Return the standard deviation, which is infinite up to two degrees of freedom."""
        some = np.asarray(self.degrees_of_freedom) > 2
        return np.where(some, self.scale, np.inf) * np.sqrt(
            np.where(some, self.degrees_of_freedom, 3.0) / np.where(some, self.degrees_of_freedom - 2.0, 1.0)
        )

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Return the bounds of the central interval with probability ``level``."""
        if not 0 < level < 1:
            raise DataError(f"level is {level:g}; give a probability between 0 and 1.")
        some = np.asarray(self.degrees_of_freedom) > 0
        reach = np.where(
            some, stdtrit(np.where(some, self.degrees_of_freedom, 1.0), 0.5 + level / 2) * self.scale, np.inf
        )
        return self.location - reach, self.location + reach

    def log_density(self, y: ArrayLike) -> Array:
        """Return the log density of ``y``; -inf where the scale or the degrees of freedom are zero."""
        some = (np.asarray(self.degrees_of_freedom) > 0) & (self.scale > 0)
        nu, scale = np.where(some, self.degrees_of_freedom, 1.0), np.where(some, self.scale, 1.0)
        constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(np.pi * nu) - np.log(scale)
        density = constant - (nu + 1) / 2 * np.log1p(((np.asarray(y) - self.location) / scale) ** 2 / nu)
        return np.where(some, density, -np.inf)


@register_record("NormalInverseGamma")
@final
@dataclass(frozen=True, eq=False)
class NormalInverseGamma:
    """A joint distribution of weights and noise variance, conjugate to linear regression.

    Parameters
    ----------
    mean : ndarray of shape (n_weights,)
        The expected weights, with the level first if there is one.
    precision : ndarray of shape (n_weights, n_weights)
        The precision of the weights, in units of the noise precision; zero means a flat prior.
    shape, scale : float
        The parameters of the inverse gamma distribution of the noise variance.
    centre : ndarray of shape (1 + n_terms,)
        The point, target first, from which targets and terms are measured.
    level : bool
        Whether there is a level, the expected target at the centre.
    unit : float or ndarray of shape (1 + n_terms,)
        Powers of two by which target and terms are divided; weights, precision and ``scale`` refer to the divided
        columns. They are 1 except for columns whose squares would overflow or underflow.

    References
    ----------
    .. [1] C. M. Bishop, "Pattern Recognition and Machine Learning", Springer, 2006, section 3.3.

    Examples
    --------
    >>> from priory.regression.cross_products import accumulate_products
    >>> prior = NormalInverseGamma.isotropic(1, strength=1.0, shape=1.0, scale=1.0)
    >>> belief = prior + accumulate_products([[1.0], [2.0]], [1.0, 3.0])
    >>> belief.mean.round(3).tolist(), belief.shape, round(belief.scale, 3)
    ([0.333, 1.0], 2.0, 1.833)
    """

    mean: Array
    precision: Array
    shape: float
    scale: float
    centre: Array
    level: bool = True
    unit: float | Array = 1.0

    def find_fault(self) -> str | None:
        weights = len(self.centre) - 1 + self.level
        if self.mean.shape != (weights,) or self.precision.shape != (weights, weights):
            return "there is not one weight for each column"
        if self.centre.ndim != 1 or np.shape(self.unit) not in ((), self.centre.shape):
            return "there is not one unit for each column"
        if (np.frexp(self.unit)[0] != 0.5).any():
            return "a unit is not a power of two"
        return "its precision is not symmetric" if (self.precision != self.precision.T).any() else None

    def find_intercepts(self, weights: Array) -> Array:
        """Return the expected target at zero terms, (lines,), for each row of ``weights``, (lines, weights)."""
        first = int(self.level)
        level = weights[:, 0] if first else 0.0
        return np.asarray(self.centre[0] + level - weights[:, first:] @ self.centre[1:])

    @classmethod
    def isotropic(cls, columns: int, strength: float = 1.0, shape: float = 1.0, scale: float = 1.0) -> Self:
        """Return a proper prior: the level and every weight are ``N(0, σ²/strength)``, measured from the origin."""
        return cls(np.zeros(1 + columns), strength * np.eye(1 + columns), shape, scale, np.zeros(1 + columns))

    @classmethod
    def ridge(cls, precision: Array, centre: Array, level: bool = True, unit: float | Array = 1.0) -> Self:
        """Return the prior ``w[j] | σ² ~ N(0, σ²/precision[j])``, flat for zero precision, the level and log noise."""
        diagonal = np.concatenate([[0.0], precision]) if level else precision
        flat = int((diagonal == 0).sum())
        return cls(np.zeros(len(diagonal)), np.diag(diagonal), -flat / 2, 0.0, centre, level, unit)

    def __add__(self, statistics: CrossProducts) -> Self:
        """Return the posterior given the statistics of some rows."""
        if len(statistics.terms) + 1 != len(self.centre):
            raise DataError(
                f"the prior is for {len(self.centre) - 1} columns, but the rows have {len(statistics.terms)} terms."
            )
        # normal equations about the prior mean: precision (weights, weights), residual and step (weights,)
        prior = self.rescale(np.where(self.units == 1, statistics.choose_units(), self.units))
        gram, cross, square = prior._normal_equations(statistics)
        precision = prior.precision + gram
        residual = cross - gram @ prior.mean  # X'(y - X mean): (weights,)
        step = _solve_factored(_factorise_precision(precision), residual)
        # |y - X mean|² minus the part that the step explains
        error = square - 2 * prior.mean @ cross + prior.mean @ gram @ prior.mean - residual @ step
        return replace(
            prior,
            mean=prior.mean + step,
            precision=precision,
            shape=prior.shape + float(statistics.n) / 2,
            scale=prior.scale + max(float(error), 0.0) / 2,
        )

    def _normal_equations(self, statistics: CrossProducts) -> tuple[Array, Array, float]:
        """Return X'X (weights, weights), X'y (weights,) and y'y about the centre; the level is a column of ones."""
        about = centre_products(statistics, self.centre, self.units)
        gram, cross = about.second[1:, 1:], about.second[1:, 0]
        if self.level:
            gram = np.block([[np.array(about.n), about.first[1:]], [about.first[1:, None], gram]])
            cross = np.concatenate([about.first[:1], cross])
        return gram, cross, float(about.second[0, 0])

    @property
    def units(self) -> Array:
        """The unit of the target and of each term: (1 + terms,)."""
        return np.broadcast_to(np.asarray(self.unit, dtype=float), self.centre.shape)

    @property
    def weight_units(self) -> Array:
        """The unit of each weight, (weights,): the unit of the target divided by the unit of the term."""
        terms = self.units[1:]
        return np.asarray(self.units[0] / (np.concatenate([[1.0], terms]) if self.level else terms))

    def rescale(self, unit: Array) -> Self:
        """Return the same distribution in other units, (1 + terms,)."""
        if (self.units == unit).all():
            return self
        scaled = replace(self, unit=unit)
        step = self.units[1:] / unit[1:]  # of the terms
        step = np.concatenate([[1.0], step]) if self.level else step
        return replace(
            scaled,
            mean=self.mean * (self.weight_units / scaled.weight_units),
            precision=self.precision * step * step[:, None],
            scale=self.scale * float(self.units[0] / unit[0]) ** 2,
        )

    @cached_property
    def root(self) -> Array:
        """R with R'R = precision⁻¹, (weights, weights); multiplying by it is faster than solving a system per row."""
        lower, unit = _factorise_precision(self.precision)
        return np.asarray(dtrtri(lower, lower=1)[0] * unit)

    def _add_level_column(self, z: Array) -> Array:
        """Return (rows, weights) from (rows, terms)."""
        return np.column_stack([np.ones(len(z)), z]) if self.level else z

    def _leverage(self, u: Array) -> Array:
        """Return u' precision⁻¹ u for each row of ``u``, which is (rows, weights)."""
        return np.asarray(((u @ self.root.T) ** 2).sum(axis=1))

    def location(self, z: Array) -> Array:
        """Return the expected target of rows ``z``, (rows, terms), measured from the centre in units."""
        return np.asarray(self.centre[0] + self.units[0] * (self._add_level_column(z) @ self.mean))

    def predictive(self, z: Array) -> StudentT:
        """Return the distribution of the target of each row, with weights and noise integrated out."""
        variance = self.scale / self.shape if self.shape > 0 else np.inf
        spread = np.sqrt(variance * (1 + self._leverage(self._add_level_column(z))))
        return StudentT(self.location(z), self.units[0] * spread, 2 * self.shape)

    def predict_leave_one_out(self, z: Array, y: Array, weight: ArrayLike = 1.0) -> StudentT:
        """Return the prediction for each learned row as if that row had not been learned, in closed form."""
        w, u = np.asarray(weight, dtype=float), self._add_level_column(z)
        unit = self.units[0]
        # (rows,): leverage and residual in units; removing a row divides its residual by 1 - w * leverage
        leverage, error = self._leverage(u), (y / unit - self.centre[0] / unit) - u @ self.mean
        kept = 1 - w * leverage  # (rows,)
        if (kept < MIN_LEAVE_ONE_OUT_SHARE).any():
            row = int(np.argmax(kept < MIN_LEAVE_ONE_OUT_SHARE))
            raise DataError(
                f"row {row} alone determines a weight, so it cannot be predicted from the others; give a prior."
            )
        shape = self.shape - w / 2
        scale = np.maximum(self.scale - w * error**2 / kept / 2, 0.0)
        variance = np.where(shape > 0, scale / np.where(shape > 0, shape, 1.0), np.inf)
        spread = np.sqrt(variance * (1 + leverage / kept))
        return StudentT(y - unit * (error / kept), unit * spread, 2 * shape + 0 * error)

    def log_normaliser(self) -> float:
        """Return the log normalising constant, without flat directions, which cancel between compared models."""
        proper = np.flatnonzero(np.diag(self.precision))
        lower, unit = _factorise_precision(self.precision[np.ix_(proper, proper)])
        log_det = 2 * float((np.log(np.diag(lower)) - np.log(unit)).sum())
        noise = float(gammaln(self.shape) - self.shape * log(self.scale)) if self.shape > 0 else 0.0
        return noise - log_det / 2 + len(proper) * LOG_TWO_PI / 2

    def log_evidence(self, statistics: CrossProducts) -> float:
        """Return the log probability of the targets, with weights and noise integrated out."""
        belief = self + statistics
        gain = belief.log_normaliser() - self.rescale(belief.units).log_normaliser()
        return gain - float(statistics.n) * (LOG_TWO_PI / 2 + float(np.log(belief.units[0])))

    def covariance(self) -> Array:
        """Return the covariance of the weights, per unit of noise variance."""
        root = self.root * (self.weight_units / self.units[0])
        return np.asarray(root.T @ root)

    def expected_noise(self) -> float:
        """Return the expected variance of the noise in units; infinite with too few rows."""
        return self.scale / (self.shape - 1) if self.shape > 1 else float("inf")

    def draw(self, rng: np.random.Generator, size: int) -> tuple[Array, Array]:
        """Return draws of the weights (size, weights), the level first, and of the noise variance (size,)."""
        if self.shape <= 0 or self.scale <= 0 or not np.diag(self.precision).all():
            raise DataError("cannot draw from a flat prior: use a proper one, NormalInverseGamma.isotropic(columns).")
        noise = self.scale / rng.gamma(self.shape, size=size)
        deviation = rng.normal(size=(size, len(self.mean))) @ self.root
        weights = (self.mean + deviation * np.sqrt(noise)[:, None]) * self.weight_units
        with np.errstate(over="ignore"):  # the variance of huge targets may overflow to infinity
            return weights, noise * self.units[0] * self.units[0]


def _factorise_precision(precision: Array) -> tuple[Array, Array]:
    """Return the Cholesky factor of the precision scaled to a unit diagonal, and the scale, (weights,)."""
    diagonal = np.diag(precision)
    # with ones on the diagonal a small pivot means dependent columns, in units of any size
    unit = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    try:
        lower = np.linalg.cholesky(precision * np.outer(unit, unit))
    except np.linalg.LinAlgError:
        lower = np.zeros_like(precision)
    if (np.diag(lower) ** 2 < RANK_TOLERANCE).any():
        raise DataError("the rows do not determine all weights: with prior=0 the columns must be linearly independent.")
    return lower, unit


def _solve_factored(factor: tuple[Array, Array], right_side: Array) -> Array:
    """Solve ``precision @ x = right_side``, given the factor of the precision."""
    lower, unit = factor
    return np.asarray(unit * cho_solve((lower, True), unit * right_side, check_finite=False))
