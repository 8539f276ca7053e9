"""Maps from what a model says to how often it is right, fitted on rows the model has not seen.

The parametric ones are nested, and convex: softmax(a ∘ log p + b), where

    temperature   a is one number, b = 0
    platt         a is one number, b one for each class
    beta          a and b are one for each class, a >= 0   (diagonal Dirichlet calibration; with two classes, beta)

The prior is centred on what says less: one slope on 1 (the probabilities are right as they are), a slope for each class
on the common one, shifts on nought. ``isotonic`` supposes only that more is more, class by class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.optimize import isotonic_regression, minimize, minimize_scalar
from sklearn.isotonic import IsotonicRegression

from priory.core.logspace import log, log_normalise, log_sum_exp
from priory.core.typing import Array

CALIBRATION_PRIOR_STRENGTH = 1.0  # how many rows' worth of curvature the prior has
LOG_MACHINE_EPSILON = float(np.log(np.finfo(float).eps))  # what is called impossible is taken for this


class CalibrationMap(Protocol):
    """Log probabilities in, better ones out."""

    def __call__(self, log_p: Array) -> Array: ...


@dataclass(frozen=True, eq=False)
class LinearMap:
    """softmax(slope ∘ log p + shift), what is less probable than ``least`` counting as that."""

    slope: Array
    shift: Array
    min_log_p: float

    def __call__(self, log_p: Array) -> Array:
        return log_normalise(self.slope * np.maximum(replace_impossible(log_p), self.min_log_p) + self.shift)


@dataclass(frozen=True, eq=False)
class IsotonicMap:
    """For each class a rising function of its log-odds, scaled to sum to one."""

    curves: list[Any]

    def __call__(self, log_p: Array) -> Array:
        odds = log_odds(replace_impossible(log_p))
        p = np.column_stack([curve.predict(odds[:, c]) for c, curve in enumerate(self.curves)])
        return log(p / p.sum(axis=1, keepdims=True))


def fit_linear_map(log_p: Array, truth: Array, slopes: bool, shifts: bool) -> LinearMap:
    """The most probable map: one slope or one for each class, with shifts or without.

    A few absurd log probabilities (a variance of next to nothing) must not set the slope of all: of several bounds for
    them the best is taken.
    """
    maps = [
        _fit_bounded_linear_map(log_p, truth, slopes, shifts, least * LOG_MACHINE_EPSILON)
        for least in (1, 10, 100, 1e200)
    ]
    return min(maps, key=lambda m: -m(log_p)[np.arange(len(truth)), truth].sum())


def _fit_bounded_linear_map(log_p: Array, truth: Array, slopes: bool, shifts: bool, min_log_p: float) -> LinearMap:
    x, k = np.maximum(replace_impossible(log_p), min_log_p), log_p.shape[1]
    rows, one = np.arange(len(truth)), np.eye(k)[truth]

    def misfit(log_slope: float) -> float:
        surprise = -log_normalise(np.exp(log_slope) * x)[rows, truth].sum()
        return float(surprise + CALIBRATION_PRIOR_STRENGTH / 2 * log_slope**2)

    common = float(np.exp(minimize_scalar(misfit, bounds=(-20, 5), method="bounded").x))
    if not shifts:
        return LinearMap(np.full(k, common), np.zeros(k), min_log_p)
    a = k if slopes else 1
    y, centre = common * x, np.r_[np.ones(a), np.zeros(k)]

    def loss(theta: Array) -> tuple[float, Array]:
        posterior = log_normalise(theta[:a] * y + theta[a:])
        wrong, away = np.exp(posterior) - one, theta - centre
        by_class = (wrong * y).sum(axis=0)
        gradient = np.r_[by_class if slopes else by_class.sum(), wrong.sum(axis=0)] + CALIBRATION_PRIOR_STRENGTH * away
        return float(-posterior[rows, truth].sum() + CALIBRATION_PRIOR_STRENGTH / 2 * away @ away), gradient

    bounds = [(0.0, None)] * a + [(None, None)] * k
    found = minimize(loss, centre, jac=True, method="L-BFGS-B", bounds=bounds).x
    return LinearMap(common * np.broadcast_to(found[:a], k), found[a:], min_log_p)


def fit_isotonic_map(log_p: Array, truth: Array) -> IsotonicMap:
    """Isotonic regression of each class on its log-odds; never quite 0 or 1, as there might have been one row more."""
    odds, least = log_odds(replace_impossible(log_p)), 1 / (len(truth) + 2)
    curves = [IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip") for _ in range(log_p.shape[1])]
    return IsotonicMap([curve.fit(odds[:, c], truth == c) for c, curve in enumerate(curves)])


def fit_calibration_map(method: str, log_p: Array, truth: Array) -> CalibrationMap:
    """The map of that name for log probabilities and the place of each true class."""
    if method == "isotonic":
        return fit_isotonic_map(log_p, truth)
    return fit_linear_map(log_p, truth, slopes=method == "beta", shifts=method != "temperature")


CALIBRATION_METHODS = ("temperature", "platt", "isotonic", "beta")


def venn_abers_bounds(known_scores: Array, is_positive: Array, query_scores: Array) -> tuple[Array, Array]:
    """Venn-Abers bounds on the probability of a class for each score ``asked``.

    The row is added to those ``seen``, once as if it were not of the class and once as if it were; isotonic regression
    says what its score would then be worth. If rows are exchangeable, one of the two is calibrated, whatever the model.

    >>> low, high = venn_abers_bounds(np.array([1.0, 2.0, 3.0]), np.array([0, 1, 1]), np.array([0.0, 2.5]))
    >>> low.tolist(), high.tolist()
    ([0.0, 0.5], [0.5, 1.0])
    """
    scores, place = np.unique(known_scores, return_inverse=True)
    rows, hits = np.bincount(place).astype(float), np.bincount(place, is_positive)
    questions, back = np.unique(query_scores, return_inverse=True)
    bounds = np.array([_bound_one_score(scores, rows, hits, score) for score in questions])
    return bounds[back, 0], bounds[back, 1]


def _bound_one_score(scores: Array, rows: Array, hits: Array, score: float) -> tuple[float, float]:
    at = int(np.searchsorted(scores, score))
    if at == len(scores) or scores[at] != score:
        rows, hits = np.insert(rows, at, 0.0), np.insert(hits, at, 0.0)
    more = rows.copy()
    more[at] += 1
    as_it_were = []
    for label in (0.0, 1.0):
        share = hits.copy()
        share[at] += label
        as_it_were.append(float(isotonic_regression(share / more, weights=more).x[at]))
    return as_it_were[0], as_it_were[1]


def log_odds(log_p: Array) -> Array:
    """For each class the log of p / (1 - p), 1 - p being the sum of the others: finite where p rounds to 1."""
    others = [log_sum_exp(np.delete(log_p, c, axis=1)) for c in range(log_p.shape[1])]
    return log_p - np.column_stack(others)


def replace_impossible(log_p: Array) -> Array:
    """What was called impossible as merely very improbable: a map has to say something about it."""
    return np.where(log_p > -1e300, log_p, LOG_MACHINE_EPSILON)
