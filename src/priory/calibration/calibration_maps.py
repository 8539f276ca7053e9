"""Calibration maps: from predicted to calibrated probabilities, fitted on rows that the model has not seen.

The parametric maps are softmax(a ∘ log p + b), each a special case of the next, and their fit is a convex problem:

    temperature   a is one number, b = 0
    platt         a is one number, b one for each class
    beta          a and b are one for each class, a >= 0   (diagonal Dirichlet calibration; with two classes, beta)

The prior of each map is centred on the simpler map: the common slope on 1 (no change), the slopes of the classes on
the common slope, and the shifts on 0. ``isotonic`` assumes only that calibrated and predicted probabilities rise
together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy import ndarray as Array
from scipy.optimize import isotonic_regression, minimize, minimize_scalar
from sklearn.isotonic import IsotonicRegression

from priory.core.logspace import log, log_normalise, log_sum_exp

CALIBRATION_PRIOR_STRENGTH = 1.0  # the precision of the prior
LOG_MACHINE_EPSILON = float(np.log(np.finfo(float).eps))  # replaces a log probability of -inf


CalibrationMap = Callable[[Array], Array]  # log probabilities (rows, classes) to calibrated ones


@dataclass(frozen=True, eq=False)
class LinearMap:
    """softmax(slope ∘ log p + shift), where log p is at least ``min_log_p``."""

    slope: Array  # (classes,)
    shift: Array  # (classes,)
    min_log_p: float

    def __call__(self, log_p: Array) -> Array:
        return log_normalise(self.slope * np.maximum(replace_impossible(log_p), self.min_log_p) + self.shift)


@dataclass(frozen=True, eq=False)
class IsotonicMap:
    """For each class a rising function of its log-odds; the results are scaled to sum to one."""

    curves: list[IsotonicRegression]

    def __call__(self, log_p: Array) -> Array:
        odds = log_odds(replace_impossible(log_p))
        p = np.column_stack([curve.predict(odds[:, c]) for c, curve in enumerate(self.curves)])
        return log(p / p.sum(axis=1, keepdims=True))


def fit_linear_map(log_p: Array, truth: Array, slopes: bool, shifts: bool) -> LinearMap:
    """Return the most probable map: one slope or one per class (``slopes``), with or without ``shifts``.

    A few extreme log probabilities, for example from a variance near zero, must not determine the slope. Several lower
    bounds for them are tried, and the one with the best fit is used.
    """
    bounds = [factor * LOG_MACHINE_EPSILON for factor in (1, 10, 100, 1e200)]
    maps = [_fit_bounded_linear_map(log_p, truth, slopes, shifts, bound) for bound in bounds]
    return min(maps, key=lambda m: -m(log_p)[np.arange(len(truth)), truth].sum())


def _fit_bounded_linear_map(log_p: Array, truth: Array, slopes: bool, shifts: bool, min_log_p: float) -> LinearMap:
    """Return the most probable map for log probabilities bounded below by ``min_log_p``."""
    x, k = np.maximum(replace_impossible(log_p), min_log_p), log_p.shape[1]
    rows, one_hot = np.arange(len(truth)), np.eye(k)[truth]  # (rows,), (rows, classes)

    def slope_loss(log_slope: float) -> float:
        log_loss = -log_normalise(np.exp(log_slope) * x)[rows, truth].sum()
        return float(log_loss + CALIBRATION_PRIOR_STRENGTH / 2 * log_slope**2)

    common = float(np.exp(minimize_scalar(slope_loss, bounds=(-20, 5), method="bounded").x))
    if not shifts:
        return LinearMap(np.full(k, common), np.zeros(k), min_log_p)
    # theta is (slopes, shifts), relative to the common slope
    a = k if slopes else 1
    y, centre = common * x, np.r_[np.ones(a), np.zeros(k)]

    def loss(theta: Array) -> tuple[float, Array]:
        posterior = log_normalise(theta[:a] * y + theta[a:])
        # error is (rows, classes): the gradient of the log loss with respect to the logits
        error, away = np.exp(posterior) - one_hot, theta - centre
        by_class = (error * y).sum(axis=0)
        gradient = np.r_[by_class if slopes else by_class.sum(), error.sum(axis=0)] + CALIBRATION_PRIOR_STRENGTH * away
        return float(-posterior[rows, truth].sum() + CALIBRATION_PRIOR_STRENGTH / 2 * away @ away), gradient

    bounds = [(0.0, None)] * a + [(None, None)] * k
    best = minimize(loss, centre, jac=True, method="L-BFGS-B", bounds=bounds).x
    return LinearMap(common * np.broadcast_to(best[:a], k), best[a:], min_log_p)


def fit_isotonic_map(log_p: Array, truth: Array) -> IsotonicMap:
    """Return the isotonic regression of each class on its log-odds, bounded away from 0 and 1 by 1 / (rows + 2)."""
    odds, margin = log_odds(replace_impossible(log_p)), 1 / (len(truth) + 2)
    curves = [IsotonicRegression(y_min=margin, y_max=1 - margin, out_of_bounds="clip") for _ in range(log_p.shape[1])]
    return IsotonicMap([curve.fit(odds[:, c], truth == c) for c, curve in enumerate(curves)])


def fit_calibration_map(method: str, log_p: Array, truth: Array) -> CalibrationMap:
    """Fit the map of this name to log probabilities (rows, classes) and the index of each row's true class."""
    if method == "isotonic":
        return fit_isotonic_map(log_p, truth)
    return fit_linear_map(log_p, truth, slopes=method == "beta", shifts=method != "temperature")


CALIBRATION_METHODS = ("temperature", "platt", "isotonic", "beta")


def venn_abers_bounds(known_scores: Array, is_positive: Array, query_scores: Array) -> tuple[Array, Array]:
    """Return Venn-Abers bounds on the probability of a class for each of the query scores (Vovk and Petej, 2014).

    Each query is added to the known rows, once as a negative and once as a positive example, and isotonic regression
    gives its probability. If the rows are exchangeable, one of the two probabilities is calibrated, for any model.

    >>> low, high = venn_abers_bounds(np.array([1.0, 2.0, 3.0]), np.array([0, 1, 1]), np.array([0.0, 2.5]))
    >>> low.tolist(), high.tolist()
    ([0.0, 0.5], [0.5, 1.0])
    """
    scores, place = np.unique(known_scores, return_inverse=True)
    # (distinct scores,): the number of rows and of positive rows with each score
    rows, hits = np.bincount(place).astype(float), np.bincount(place, is_positive)
    queries, inverse = np.unique(query_scores, return_inverse=True)
    bounds = np.array([_bound_one_score(scores, rows, hits, score) for score in queries])
    return bounds[inverse, 0], bounds[inverse, 1]


def _bound_one_score(scores: Array, rows: Array, hits: Array, score: float) -> tuple[float, float]:
    """Return the probability of one score, added as a negative and as a positive example."""
    at = int(np.searchsorted(scores, score))
    if at == len(scores) or scores[at] != score:
        rows, hits = np.insert(rows, at, 0.0), np.insert(hits, at, 0.0)
    more = rows.copy()  # the counts with the query
    more[at] += 1
    bounds = []
    for label in (0.0, 1.0):
        share = hits.copy()
        share[at] += label
        bounds.append(float(isotonic_regression(share / more, weights=more).x[at]))
    return bounds[0], bounds[1]


def log_odds(log_p: Array) -> Array:
    """Return log(p / (1 - p)) of each class; 1 - p is summed over the other classes, so p may round to 1."""
    # (rows,) for each class: the log probability of all other classes
    others = [log_sum_exp(np.delete(log_p, c, axis=1)) for c in range(log_p.shape[1])]
    return log_p - np.column_stack(others)


def replace_impossible(log_p: Array) -> Array:
    """Replace log probabilities of -inf by the log of machine epsilon."""
    return np.where(log_p > -1e300, log_p, LOG_MACHINE_EPSILON)
