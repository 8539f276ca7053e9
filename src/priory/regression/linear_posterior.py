"""Bayesian linear regression: the normal-inverse-gamma belief about weights and noise, and its Student-t predictions.

    y = level + (x - centre)·w + e,   e ~ N(0, σ²),   (level, w) | σ² ~ N(mean, σ² precision⁻¹),   σ² ~ InvGamma(a, b)

A belief plus a record is a belief of the same kind, so learning is ``posterior = prior + products``, and the evidence
is by how much the normaliser grew. A direction of no precision is flat: nothing was believed about it, and each such
direction takes half a row off ``shape``, the row that it costs to learn it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve, eigh
from scipy.linalg.lapack import dtrtri
from scipy.optimize import brentq
from scipy.special import gammaln, stdtrit

from priory.core.logspace import log
from priory.core.registration import register_record
from priory.core.statistics import ROUNDING_TOLERANCE
from priory.core.typing import Array
from priory.errors import DataError
from priory.regression.cross_products import CrossProducts

LOG_2PI = float(np.log(2 * np.pi))
RANK_TOLERANCE = 1e-13  # of a column's length: what is left of it beside the other columns is rounding
MIN_STRENGTH_PER_ROW, MAX_STRENGTH_PER_ROW, MIN_UNSPANNED_STRENGTH = (
    1e-12,
    1e8,
    1e-7,
)  # prior strengths looked at, per row; see strength_by_evidence


class StudentT(NamedTuple):
    """A Student-t prediction for each row: location, scale, and degrees of freedom.

    >>> StudentT(np.array([0.0]), np.array([1.0]), 5.0).interval(0.9)[1].round(3).tolist()
    [2.015]
    """

    location: Array
    scale: Array
    degrees_of_freedom: Array | float

    def std(self) -> Array:
        """Infinite up to two degrees of freedom: so few rows do not bound the spread."""
        some = np.asarray(self.degrees_of_freedom) > 2
        return np.where(some, self.scale, np.inf) * np.sqrt(
            np.where(some, self.degrees_of_freedom, 3.0) / np.where(some, self.degrees_of_freedom - 2.0, 1.0)
        )

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """The central interval that holds ``level`` of the probability."""
        if not 0 < level < 1:
            raise DataError(f"level is {level:g}; give a probability between 0 and 1.")
        some = np.asarray(self.degrees_of_freedom) > 0
        reach = np.where(
            some, stdtrit(np.where(some, self.degrees_of_freedom, 1.0), 0.5 + level / 2) * self.scale, np.inf
        )
        return self.location - reach, self.location + reach

    def log_density(self, y: ArrayLike) -> Array:
        """Log density of ``y``; -inf where there are no degrees of freedom or no spread to have a density with."""
        some = (np.asarray(self.degrees_of_freedom) > 0) & (self.scale > 0)
        nu, scale = np.where(some, self.degrees_of_freedom, 1.0), np.where(some, self.scale, 1.0)
        constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(np.pi * nu) - np.log(scale)
        density = constant - (nu + 1) / 2 * np.log1p(((np.asarray(y) - self.location) / scale) ** 2 / nu)
        return np.where(some, density, -np.inf)


class WeightDraws(NamedTuple):
    """Draws of a belief: the weights (level first, where there is one), and the variance of the noise."""

    weights: Array
    noise: Array


@register_record("NormalInverseGamma")
@final
@dataclass(frozen=True, eq=False)
class NormalInverseGamma:
    """What is believed about weights and noise; ``centre`` is the point (target first) that both are measured from.

    >>> from priory.regression.cross_products import accumulate_products
    >>> prior = NormalInverseGamma.isotropic(1, strength=1.0, shape=1.0, scale=1.0)
    >>> belief = prior + observe([[1.0], [2.0]], [1.0, 3.0])
    >>> belief.mean.round(3).tolist(), belief.shape, round(belief.scale, 3)
    ([0.333, 1.0], 2.0, 1.833)
    """

    mean: Array
    precision: Array
    shape: float
    scale: float
    centre: Array
    level: bool = True

    @classmethod
    def isotropic(cls, columns: int, strength: float = 1.0, shape: float = 1.0, scale: float = 1.0) -> Self:
        """A proper belief about the origin: every weight, and the level, is ``N(0, σ²/strength)``."""
        return cls(np.zeros(1 + columns), strength * np.eye(1 + columns), shape, scale, np.zeros(1 + columns))

    @classmethod
    def ridge(cls, precision: Array, centre: Array, level: bool = True) -> Self:
        """Flat in level and log noise; ``w[j] | σ² ~ N(0, σ²/precision[j])``, flat where the precision is nought."""
        diagonal = np.concatenate([[0.0], precision]) if level else precision
        flat = int((diagonal == 0).sum())
        return cls(np.zeros(len(diagonal)), np.diag(diagonal), -flat / 2, 0.0, centre, level)

    def __add__(self, statistics: CrossProducts) -> Self:
        gram, cross, square = self._normal_equations(statistics)
        precision = self.precision + gram
        surprise = cross - gram @ self.mean
        step = _solve_factored(_factorise_precision(precision), surprise)
        error = square - 2 * self.mean @ cross + self.mean @ gram @ self.mean - surprise @ step
        return type(self)(
            self.mean + step,
            precision,
            self.shape + float(statistics.n) / 2,
            self.scale + max(float(error), 0.0) / 2,
            self.centre,
            self.level,
        )

    def _normal_equations(self, statistics: CrossProducts) -> tuple[Array, Array, float]:
        """X'X, X'y and y'y about the centre, the level being a column of ones."""
        if len(statistics.first) != len(self.centre):
            raise DataError(
                f"the prior is for {len(self.centre) - 1} columns, the rows have {len(statistics.terms)} terms."
            )
        about = statistics.rebase(self.centre)
        gram, cross = about.second[1:, 1:], about.second[1:, 0]
        if self.level:
            gram = np.block([[about.n, about.first[1:]], [about.first[1:, None], gram]])
            cross = np.concatenate([about.first[:1], cross])
        return gram, cross, float(about.second[0, 0])

    @cached_property
    def root(self) -> Array:
        """R with R'R = precision⁻¹: multiplying by it is many times faster than solving for every row."""
        lower, unit = _factorise_precision(self.precision)
        return np.asarray(dtrtri(lower, lower=1)[0] * unit)

    def _add_level_column(self, z: Array) -> Array:
        return np.column_stack([np.ones(len(z)), z]) if self.level else z

    def _leverage(self, u: Array) -> Array:
        """u' precision⁻¹ u, for each row."""
        return np.asarray(((u @ self.root.T) ** 2).sum(axis=1))

    def location(self, z: Array) -> Array:
        """The expected target where the terms lie ``z`` from the centre."""
        return np.asarray(self.centre[0] + self._add_level_column(z) @ self.mean)

    def predictive(self, z: Array) -> StudentT:
        """The target, weights and noise integrated out."""
        variance = self.scale / self.shape if self.shape > 0 else np.inf
        return StudentT(
            self.location(z), np.sqrt(variance * (1 + self._leverage(self._add_level_column(z)))), 2 * self.shape
        )

    def predict_leave_one_out(self, z: Array, y: Array, weight: ArrayLike = 1.0) -> StudentT:
        """The prediction for each row learned, had that row not been learned: ``total - row`` in closed form."""
        w, u = np.asarray(weight, dtype=float), self._add_level_column(z)
        leverage, error = self._leverage(u), (y - self.centre[0]) - u @ self.mean
        kept = 1 - w * leverage
        if (kept < 1e-12).any():
            row = int(np.argmax(kept < 1e-12))
            raise DataError(f"row {row} alone decides a weight: without it nothing is known there; give a prior.")
        shape = self.shape - w / 2
        scale = np.maximum(self.scale - w * error**2 / kept / 2, 0.0)
        variance = np.where(shape > 0, scale / np.where(shape > 0, shape, 1.0), np.inf)
        return StudentT(y - error / kept, np.sqrt(variance * (1 + leverage / kept)), 2 * shape + 0 * error)

    def log_normaliser(self) -> float:
        """Log of the integral of the belief; what is flat counts for nothing, in this belief as in any rival."""
        proper = np.flatnonzero(np.diag(self.precision))
        lower, unit = _factorise_precision(self.precision[np.ix_(proper, proper)])
        log_det = 2 * float((np.log(np.diag(lower)) - np.log(unit)).sum())
        noise = float(gammaln(self.shape) - self.shape * log(self.scale)) if self.shape > 0 else 0.0
        return noise - log_det / 2 + len(proper) * LOG_2PI / 2

    def log_evidence(self, statistics: CrossProducts) -> float:
        """Log probability of the targets seen, weights and noise integrated out."""
        return (self + statistics).log_normaliser() - self.log_normaliser() - float(statistics.n) * LOG_2PI / 2

    def covariance(self) -> Array:
        """Of the weights, per unit of noise variance."""
        return np.asarray(self.root.T @ self.root)

    def draw(self, rng: np.random.Generator, size: int) -> WeightDraws:
        """``size`` draws of weights and noise."""
        if self.shape <= 0 or self.scale <= 0 or not np.diag(self.precision).all():
            raise DataError("this belief is flat: draw from a proper prior, NormalInverseGamma.isotropic(columns).")
        noise = self.scale / rng.gamma(self.shape, size=size)
        deviation = rng.normal(size=(size, len(self.mean))) @ self.root
        return WeightDraws(self.mean + deviation * np.sqrt(noise)[:, None], noise)


def term_scales(statistics: CrossProducts) -> Array:
    """The unit of each term's weight: a value's standard deviation; a level or a flag counts as it is."""
    about_mean, about_origin = (
        np.diag(statistics.rebase(statistics.centre()).second)[1:],
        np.diag(statistics.second)[1:],
    )
    values = np.array([term.kind == "value" for term in statistics.terms], dtype=bool)
    spread = values & (about_mean > ROUNDING_TOLERANCE * about_origin)  # what is left of one value alone is rounding
    return np.where(spread, np.sqrt(np.maximum(about_mean, 0.0) / max(float(statistics.n), 1.0)), 1.0)


def choose_linear_strength(statistics: CrossProducts, unit: Array, level: bool = True) -> float:
    """The one prior strength, for all weights in their units, that makes the targets most probable.

    One eigendecomposition gives the evidence of every strength:  X'X = V diag(e) V',  c = V'X'y,

        log p(y | λ) = ½ Σ log(λ / (λ + e)) - ν/2 log(y'y - Σ c² / (e + λ)) + constant,    ν = n - 1 (the level)
    """
    about = statistics.rebase(statistics.centre() if level else np.zeros(len(statistics.origin)))
    products = about.scatter() if level else about.second
    values, vectors = eigh(products[1:, 1:] / np.outer(unit, unit), check_finite=False)
    e = np.maximum(values, 0.0)
    c2 = (vectors.T @ (products[1:, 0] / unit)) ** 2
    square, freedom = float(products[0, 0]), max(float(statistics.n) - level, 0.0)
    if square <= 0 or freedom == 0 or not len(e):
        return 1.0
    floor = np.finfo(float).eps * square  # what a perfect fit leaves is rounding

    def cost(log_strength: Array) -> Array:
        shrunk = e + 10.0 ** log_strength[:, None]
        left = np.maximum(square - (c2 / shrunk).sum(axis=1), floor)
        return 0.5 * (np.log(shrunk) - np.log(10.0) * log_strength[:, None]).sum(axis=1) + 0.5 * freedom * np.log(left)

    def slope(log_strength: float) -> float:
        strength = 10.0**log_strength
        left = max(square - float((c2 / (e + strength)).sum()), floor)
        return float(freedom * (c2 * strength / (e + strength) ** 2).sum() / left - (e / (e + strength)).sum())

    # in a direction that the rows do not span, a weaker prior than SPANNED would make weights out of rounding
    weakest = max(
        MIN_UNSPANNED_STRENGTH * float(statistics.n) - float(e[0]), MIN_STRENGTH_PER_ROW * float(statistics.n)
    )
    coarse = np.linspace(np.log10(weakest), np.log10(MAX_STRENGTH_PER_ROW * float(statistics.n)), 41)
    at = int(np.argmin(cost(coarse)))
    low, high = coarse[max(at - 1, 0)], coarse[min(at + 1, 40)]
    # the root of the slope has twice the digits of the minimum of the cost
    best = brentq(slope, low, high, xtol=1e-14) if slope(low) < 0 < slope(high) else coarse[at]
    return float(10.0**best)


def _factorise_precision(precision: Array) -> tuple[Array, Array]:
    """Cholesky factor of the precision in units that make its diagonal one: columns of any size are treated alike."""
    diagonal = np.diag(precision)
    unit = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    try:
        lower = np.linalg.cholesky(precision * np.outer(unit, unit))
    except np.linalg.LinAlgError:
        lower = np.zeros_like(precision)
    if (np.diag(lower) ** 2 < RANK_TOLERANCE).any():
        raise DataError("the rows leave some weights undetermined: a prior of strength 0 needs independent columns.")
    return lower, unit


def _solve_factored(factor: tuple[Array, Array], right_side: Array) -> Array:
    lower, unit = factor
    return np.asarray(unit * cho_solve((lower, True), unit * right_side, check_finite=False))
