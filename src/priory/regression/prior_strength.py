"""Empirical Bayes for linear regression: the scale of each column, and the λ that maximises the evidence."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from scipy.optimize import brentq

from priory.core.typing import Array
from priory.regression.centred_products import centre_products
from priory.regression.cross_products import CrossProducts

MIN_STRENGTH_PER_ROW, MAX_STRENGTH_PER_ROW = 1e-12, 1e8  # the range of prior strengths searched, per row
MIN_UNSPANNED_STRENGTH = 1e-7  # per row, in directions not spanned by the rows
N_STRENGTH_GRID_POINTS = 41


def term_scales(statistics: CrossProducts, unit: ArrayLike = 1.0) -> Array:
    """Return the scale of each term in ``unit``: the standard deviation of a value, and 1 for a level or a flag."""
    units = np.broadcast_to(np.asarray(unit, dtype=float), (1 + len(statistics.terms),))
    squares = np.diag(centre_products(statistics, statistics.centre(), units).second)[1:]
    values = np.array([term.kind == "value" for term in statistics.terms], dtype=bool)
    return np.where(values & (squares > 0), np.sqrt(squares / max(float(statistics.n), 1.0)), 1.0)


def choose_linear_strength(statistics: CrossProducts, scale: Array, level: bool = True, unit: ArrayLike = 1.0) -> float:
    """Return the prior strength λ, common to all weights of terms divided by ``scale``, that maximises the evidence.

    This is the evidence approximation (Bishop 2006, section 3.5). One eigendecomposition, X'X = V diag(e) V', gives the
    evidence of every strength; with c = V'X'y it is

        log p(y | λ) = ½ Σ log(λ / (λ + e)) - ν/2 log(y'y - Σ c² / (e + λ)) + constant,    ν = n - 1 (the level)
    """
    units = np.broadcast_to(np.asarray(unit, dtype=float), (1 + len(statistics.terms),))
    about = centre_products(statistics, statistics.centre() if level else np.zeros(len(units)), units)
    products = about.scatter() if level else about.second
    values, vectors = eigh(products[1:, 1:] / np.outer(scale, scale), check_finite=False)
    e = np.maximum(values, 0.0)  # (terms,), ascending
    c2 = (vectors.T @ (products[1:, 0] / scale)) ** 2  # (terms,)
    square, freedom = float(products[0, 0]), max(float(statistics.n) - level, 0.0)
    if square <= 0 or freedom == 0 or not len(e):
        return 1.0
    floor = np.finfo(float).eps * square  # the residual of a perfect fit is rounding

    def cost(log_strength: Array) -> Array:  # (points,) -> (points,)
        shrunk = e + 10.0 ** log_strength[:, None]  # (points, terms)
        left = np.maximum(square - (c2 / shrunk).sum(axis=1), floor)
        return 0.5 * (np.log(shrunk) - np.log(10.0) * log_strength[:, None]).sum(axis=1) + 0.5 * freedom * np.log(left)

    def slope(log_strength: float) -> float:
        strength = 10.0**log_strength
        left = max(square - float((c2 / (e + strength)).sum()), floor)
        return float(freedom * (c2 * strength / (e + strength) ** 2).sum() / left - (e / (e + strength)).sum())

    # In directions that the rows do not span, a weaker prior would turn rounding errors into weights.
    weakest = max(
        MIN_UNSPANNED_STRENGTH * float(statistics.n) - float(e[0]), MIN_STRENGTH_PER_ROW * float(statistics.n)
    )
    coarse = np.linspace(
        np.log10(weakest), np.log10(MAX_STRENGTH_PER_ROW * float(statistics.n)), N_STRENGTH_GRID_POINTS
    )
    at = int(np.argmin(cost(coarse)))
    low, high = coarse[max(at - 1, 0)], coarse[min(at + 1, len(coarse) - 1)]
    # The root of the derivative is accurate to twice as many digits as the minimum of the cost.
    best = brentq(slope, low, high, xtol=1e-14) if slope(low) < 0 < slope(high) else coarse[at]
    return float(10.0**best)
