"""The Dirichlet distribution that Categorical, Multinomial and Histogram share; values are the last axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy import ndarray as Array

from priory.core.logspace import betaln, gammaln
from priory.families.base import nan_where_zero


def mode_shares(alpha: Array) -> Array:
    """Mode of the shares; NaN if it is not unique (a uniform density, or one that is infinite in several corners).

    >>> mode_shares(np.array([[3.0, 2.0], [1.0, 0.5], [1.0, 1.0], [0.5, 0.5]])).round(3).tolist()
    [[0.667, 0.333], [1.0, 0.0], [nan, nan], [nan, nan]]
    """
    # Inside the simplex the mode is (alpha - 1) / Σ (alpha - 1). If no alpha exceeds 1, the density peaks in a corner,
    # which is unique if exactly one alpha is at least 1.
    above = np.maximum(alpha - 1, 0.0)
    corner = alpha >= (1.0 if alpha.shape[-1] > 1 else 0.0)  # a single value has the whole share
    corner = np.where(corner.sum(axis=-1, keepdims=True) == 1, corner, np.nan)
    total = above.sum(axis=-1, keepdims=True)
    return np.where(total > 0, above / nan_where_zero(total), corner)


def log_normaliser(alpha: Array) -> Array:
    """Log of the integral of the unnormalised Dirichlet density."""
    with np.errstate(invalid="ignore"):
        return np.asarray(gammaln(alpha).sum(axis=-1) - gammaln(alpha.sum(axis=-1)))


def log_evidence(alpha: Array, counts: Array) -> Array:
    """Log marginal probability of a sequence of draws with these counts (…, values), for each class."""
    alpha = np.broadcast_to(np.asarray(alpha, dtype=float), counts.shape)
    with np.errstate(invalid="ignore"):  # NaN without smoothing: the prior is improper
        return log_normaliser(alpha + counts) - log_normaliser(alpha)


DIRICHLET_ALPHA_GRID = 2.0 ** np.arange(-6, 4)


def log_alpha_prior(alpha: Array) -> Array:
    """Log prior of alpha, up to a constant: log-normal about 2, with a standard deviation of a factor of 4.

    It matters for few rows, when the evidence is flat and its maximum would be at an end of the grid.
    """
    return np.asarray(-0.5 * ((np.log2(alpha) - 1) / 2) ** 2)


def choose_alpha(counts: Array) -> float:
    """Choose the most probable symmetric prior (virtual examples of each value), given counts (classes, values).

    >>> choose_alpha(np.array([[40.0, 0.0, 0.0], [0.0, 40.0, 0.0]]))  # each class has one value
    0.125
    >>> choose_alpha(np.array([[40.0, 41.0, 39.0], [40.0, 40.0, 40.0]]))  # all values are equally likely
    8.0
    """
    if not counts.size:
        return 1.0
    values, rows = counts.shape[-1], counts.sum(axis=-1)
    some = counts[counts > 0]  # zero counts contribute nothing
    # (alphas,): Σ log Γ(count + alpha) - log Γ(alpha); then the normaliser of each class, (alphas, classes)
    drawn = (gammaln(some + DIRICHLET_ALPHA_GRID[:, None]) - gammaln(DIRICHLET_ALPHA_GRID)[:, None]).sum(axis=1)
    mass = DIRICHLET_ALPHA_GRID[:, None] * values
    evidence = drawn + (gammaln(mass) - gammaln(mass + rows)).sum(axis=1)
    return float(DIRICHLET_ALPHA_GRID[choose_alpha_index(evidence + log_alpha_prior(DIRICHLET_ALPHA_GRID))])


def choose_alpha_index(evidence: Array) -> Array:
    """Index of the first candidate (last axis) with the best evidence, up to rounding; ignores infinite and NaN."""
    finite = np.where(np.isfinite(evidence), evidence, -np.finfo(float).max)
    top = finite.max(axis=-1, keepdims=True)
    return np.argmax(finite >= top - 1e-9 * (1 + np.abs(top)), axis=-1)


class DirichletBelief:
    """The belief of a family about shares that are the last axis of ``alpha``."""

    alpha: Any

    def make_parameters(self, shares: Array) -> Any:
        """The parameters of the family with these shares."""
        return shares

    def mode(self) -> Any:
        """Mode of the shares under this belief (NaN if it is not unique)."""
        return self.make_parameters(mode_shares(np.asarray(self.alpha)))

    def mean(self) -> Any:
        """Mean of the shares; with ``alpha = m p + counts`` it is the m-estimate (n_c + m p) / (n + m)."""
        alpha = np.asarray(self.alpha)
        return self.make_parameters(alpha / alpha.sum(axis=-1, keepdims=True))

    def quantile(self, q: float) -> Any:
        """The ``q``-quantile of each share, whose marginal is a Beta distribution."""
        alpha = np.asarray(self.alpha)
        others = alpha.sum(axis=-1, keepdims=True) - alpha
        return self.make_parameters(scipy.special.betaincinv(alpha, others, q))

    def log_normaliser(self) -> Array:
        """Log of the integral of the unnormalised belief."""
        return log_normaliser(np.asarray(self.alpha))

    def draw(self, rng: np.random.Generator, size: int) -> Any:
        """``size`` draws of the shares."""
        alpha = np.asarray(self.alpha, dtype=float)
        gammas = rng.gamma(alpha, size=(size, *alpha.shape))
        return self.make_parameters(gammas / gammas.sum(axis=-1, keepdims=True))


class BetaBelief:
    """The belief of a family about a probability: ``θ ~ Beta(a, b)``."""

    a: Any
    b: Any

    def mode(self) -> Array:
        """Mode of θ; NaN if the density is uniform, or infinite at both 0 and 1."""
        a, b = np.asarray(self.a), np.asarray(self.b)
        return mode_shares(np.stack(np.broadcast_arrays(a, b), axis=-1))[..., 0]

    def mean(self) -> Array:
        """Mean of θ."""
        return np.asarray(self.a / (np.asarray(self.a) + self.b))

    def quantile(self, q: float) -> Array:
        """The ``q``-quantile of θ."""
        return np.asarray(scipy.special.betaincinv(self.a, self.b, q))

    def log_normaliser(self) -> Array:
        """log B(a, b)."""
        return np.asarray(betaln(self.a, self.b))

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """``size`` draws of θ."""
        return rng.beta(self.a, self.b, size=(size, *np.shape(self.a)))
