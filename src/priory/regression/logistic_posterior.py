"""The posterior of logistic regression: the likelihood, its maximum, and predictions averaged over the weights.

    P(class | x, w) = softmax(C W u),   u = (1, x),      log L(w) = Σ_i weight_i ln P(d_i | x_i, w)

With two classes this is the sigmoid unit h(x) with log likelihood Σ d ln h + (1 - d) ln(1 - h) and gradient
Σ (d - h(x)) x (Mitchell, "Machine Learning", 1997, section 6.5). With k classes there are k - 1 rows of weights, one
per *contrast*, and the matrix C (classes, contrasts) maps them to the classes: k rows would be redundant.

Shapes: ``w`` is (contrasts, terms), ``u`` is (rows, terms), ``d`` is (rows, classes).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy import ndarray as Array
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dtrtri
from scipy.optimize import minimize_scalar
from scipy.special import ndtr, ndtri

from priory.core.logspace import log_normalise
from priory.core.statistics import register_record
from priory.errors import DataError

INTERCEPT_PRIOR_PRECISION = 0.01  # N(0, 10²), which is nearly flat
LOGISTIC_STRENGTH_BOUNDS = (-4.0, 4.0)  # log10 of the range of prior strengths searched
MAX_HESSIAN_CELLS = 1 << 29  # 4 GiB for Newton's method
HESSIAN_BLOCK_ROWS = 1 << 12  # rows multiplied at once, to stay in the cache
SOFTMAX_INTEGRATION_POINTS = 1024  # for three classes or more
INTEGRATION_BATCH_ROWS = 256  # rows integrated at once

# σ(x) ≈ Σ p Φ(x s) to within 2.1e-9 everywhere (Monahan and Stefanski, 1992); Φ integrates exactly over a Gaussian
PROBIT_MIXTURE = np.array(
    [
        [0.003246343272134, 1.365340806296348],
        [0.051517477033972, 1.059523971016916],
        [0.195077912673858, 0.830791313765644],
        [0.315569823632818, 0.650732166639391],
        [0.274149576158423, 0.508135425366489],
        [0.131076880695470, 0.396313345166341],
        [0.027912418727972, 0.308904252267995],
        [0.001449567805354, 0.238212616409306],
    ]
)


def contrast_matrix(n_classes: int) -> Array:
    """Return C (classes, contrasts): for two classes the log-odds, for more an orthonormal basis, symmetric in them.

    >>> contrast_matrix(2).tolist(), bool(np.allclose(contrast_matrix(3).sum(axis=0), 0.0))
    ([[0.0], [1.0]], True)
    """
    if n_classes == 2:
        return np.array([[0.0], [1.0]])
    return np.linalg.svd(np.eye(n_classes) - 1 / n_classes)[0][:, : n_classes - 1]


@dataclass(frozen=True, eq=False)
class TrainingExamples:
    """The rows to fit, with their classes and weights."""

    u: Array  # (rows, terms): a one, then the columns
    d: Array  # (rows, classes): one-hot
    weight: Array  # (rows,)

    @cached_property
    def class_contrasts(self) -> Array:
        """C, as (classes, contrasts)."""
        return contrast_matrix(self.d.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the weights: (contrasts, terms)."""
        return self.class_contrasts.shape[1], self.u.shape[1]

    def log_probabilities(self, w: Array) -> Array:
        """Return log P(class | row, w), as (rows, classes)."""
        return log_normalise(self.u @ w.T @ self.class_contrasts.T)

    def log_likelihood(self, w: Array) -> float:
        """Return the log likelihood of the weights: minus the cross-entropy."""
        return float(self.weight @ (self.d * self.log_probabilities(w)).sum(axis=1))

    def gradient(self, w: Array) -> Array:
        """Return the gradient of the log likelihood, Σ (d - h(x)) x, as (contrasts, terms)."""
        error = self.d - np.exp(self.log_probabilities(w))  # (rows, classes)
        return np.asarray((error @ self.class_contrasts * self.weight[:, None]).T @ self.u)

    def information(self, w: Array) -> Array:
        """Return minus the second derivative of the log likelihood, as (contrasts * terms, contrasts * terms)."""
        m, k = self.shape
        contrasts = self.class_contrasts
        p = np.exp(self.log_probabilities(w))  # (rows, classes)
        q = p @ contrasts  # (rows, contrasts): the mean of each contrast under p
        information = np.zeros((m, k, m, k))
        for a in range(m):
            for b in range(a + 1):
                # (rows,): the weighted covariance of contrasts a and b under p
                covariance = self.weight * (p @ (contrasts[:, a] * contrasts[:, b]) - q[:, a] * q[:, b])
                for start in range(0, len(self.u), HESSIAN_BLOCK_ROWS):
                    block = slice(start, start + HESSIAN_BLOCK_ROWS)
                    information[a, :, b, :] += (self.u[block] * covariance[block, None]).T @ self.u[block]
                information[b, :, a, :] = information[a, :, b, :].T
        return information.reshape(m * k, m * k)


class SolverResult(NamedTuple):
    """The weights found by a solver, the number of steps, and whether it converged."""

    weights: Array
    n_iter: int
    converged: bool


def fit_gradient_ascent(
    examples: TrainingExamples, precision: Array, eta: float | None = None, tol: float = 1e-6, max_iter: int = 10_000
) -> SolverResult:
    """Maximise the posterior by gradient ascent: ``w <- w + eta * (Σ (d - h(x)) x - precision * w)``.

    The default ``eta`` is the largest that is guaranteed not to overshoot.
    """
    if eta is None:
        largest = float(np.linalg.norm(examples.u * np.sqrt(examples.weight)[:, None], ord=2)) ** 2
        # The curvature of the softmax is at most 1/4 with two classes, and at most 1/2 with more.
        eta = 1 / (largest * (0.25 if len(examples.class_contrasts) == 2 else 0.5) + float(np.max(precision)))
    w = np.zeros(examples.shape)
    for step in range(max_iter):
        uphill = examples.gradient(w) - precision * w
        if np.abs(uphill).max(initial=0.0) <= tol:
            return SolverResult(w, step, True)
        w = w + eta * uphill
    return SolverResult(w, max_iter, False)


def fit_newton(
    examples: TrainingExamples,
    precision: Array,
    start: Array | None = None,
    centre: Array | None = None,
    tol: float = 1e-10,
    max_iter: int = 100,
) -> SolverResult:
    """Maximise the posterior by Newton's method, with step halving.

    ``centre`` is the mean of the prior, by default zero.
    """
    _check_size(examples.shape)
    mean = np.zeros(examples.shape) if centre is None else centre
    w = mean if start is None else start

    def log_posterior(at: Array) -> float:
        return examples.log_likelihood(at) - 0.5 * float((pull_to_prior(precision, at - mean) * (at - mean)).sum())

    here = log_posterior(w)
    for step in range(max_iter):
        uphill = (examples.gradient(w) - pull_to_prior(precision, w - mean)).ravel()
        move = _solve_newton_step(posterior_curvature(examples, w, precision), uphill).reshape(w.shape)
        if uphill @ move.ravel() <= tol * (1 + abs(here)):
            return SolverResult(w + move if log_posterior(w + move) >= here else w, step, True)
        size = 1.0
        while (there := log_posterior(w + size * move)) < here and size > 1e-10:
            size /= 2
        w, here = w + size * move, there
    return SolverResult(w, max_iter, False)


def _solve_newton_step(curvature: Array, gradient: Array) -> Array:
    """Return curvature⁻¹ gradient, or the minimum-norm step if the curvature is singular (collinear columns)."""
    try:
        return np.asarray(cho_solve((np.linalg.cholesky(curvature), True), gradient))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(curvature, gradient, rcond=1e-12)[0])


def posterior_curvature(examples: TrainingExamples, w: Array, precision: Array) -> Array:
    """Return minus the second derivative of the log posterior, as (contrasts * terms, contrasts * terms)."""
    is_matrix = precision.ndim == 2
    prior = precision if is_matrix else np.diag(np.broadcast_to(precision, examples.shape).ravel())
    return examples.information(w) + prior


def pull_to_prior(precision: Array, away: Array) -> Array:
    """Return the precision times the distance from the mean of the prior, as (contrasts, terms).

    The precision is (terms,), or a full matrix, (contrasts * terms, contrasts * terms).
    """
    return precision * away if precision.ndim == 1 else (precision @ away.ravel()).reshape(away.shape)


@register_record("Laplace")
@dataclass(frozen=True, eq=False)
class LaplaceApproximation:
    """The Gaussian with the same peak as the posterior and the same curvature there (Bishop 2006, section 4.4)."""

    mean: Array  # (contrasts, terms)
    root: Array  # (contrasts * terms, contrasts * terms): root'root is the covariance
    log_evidence: float

    def find_fault(self) -> str | None:
        if self.mean.ndim != 2 or self.root.shape != (self.mean.size, self.mean.size):
            return "its covariance does not match its weights"
        if np.triu(self.root, 1).any() or not (np.diag(self.root) > 0).all():
            return "the root of its covariance is not triangular, or a variance is zero"
        return None

    @classmethod
    def at(cls, examples: TrainingExamples, precision: Array, peak: Array) -> LaplaceApproximation:
        """Return the approximation at the peak of the posterior."""
        lower = np.linalg.cholesky(posterior_curvature(examples, peak, precision))
        root = np.asarray(dtrtri(lower, lower=1)[0])
        prior = np.broadcast_to(precision, peak.shape)
        evidence = examples.log_likelihood(peak) - 0.5 * float((prior * peak**2 - np.log(prior)).sum())
        return cls(peak, root, evidence - float(np.log(np.diag(lower)).sum()))

    def learn(self, examples: TrainingExamples) -> LaplaceApproximation:
        """Return the approximation after more rows, with this Gaussian as the prior."""
        prior_root = np.asarray(dtrtri(self.root, lower=1)[0])  # the precision is prior_root @ prior_root.T
        precision = prior_root @ prior_root.T
        try:
            peak = fit_newton(examples, precision, centre=self.mean).weights
            lower = np.linalg.cholesky(posterior_curvature(examples, peak, precision))
        except np.linalg.LinAlgError:
            raise DataError("the posterior is numerically singular; fit the model again with all rows.") from None
        moved = float((((peak - self.mean).ravel() @ prior_root) ** 2).sum())
        shrunk = float(np.log(np.diag(prior_root)).sum() - np.log(np.diag(lower)).sum())
        evidence = examples.log_likelihood(peak) - 0.5 * moved + shrunk
        return LaplaceApproximation(peak, np.asarray(dtrtri(lower, lower=1)[0]), self.log_evidence + evidence)

    def probabilities(self, u: Array, class_contrasts: Array) -> Array:
        """Return P(class | row) averaged over the weights, as (rows, classes)."""
        m, k = self.mean.shape
        by_contrast = self.root.reshape(m * k, m, k)

        def average(part: Array) -> Array:  # (rows, terms) -> (rows, classes)
            root = np.einsum("rak,nk->nra", by_contrast, part)  # (rows, contrasts * terms, contrasts)
            return expected_softmax(part @ self.mean.T, root, class_contrasts)

        return _map_row_batches(average, u)


def expected_softmax(mean: Array, root: Array, class_contrasts: Array) -> Array:
    """Return the expectation of softmax(C t) for each row, where t ~ N(mean, root'root).

    ``mean`` is (rows, contrasts), ``root`` is (rows, any, contrasts). At the mean below σ(1) = 0.731059:

    >>> expected_softmax(np.array([[1.0]]), np.array([[[2.0]]]), contrast_matrix(2)).round(6).tolist()
    [[0.352274, 0.647726]]
    """
    if class_contrasts.shape[1] == 1:
        variance = (root[:, :, 0] ** 2).sum(axis=1, keepdims=True)  # (rows, 1)
        # (8,) each: each probit term integrates to Φ(mean s / √(1 + s² variance))
        share, slope = PROBIT_MIXTURE.T
        p = np.clip(ndtr(mean * slope / np.sqrt(1 + slope**2 * variance)) @ (share / share.sum()), 0.0, 1.0)
        return np.column_stack([1 - p, p])
    # Average over fixed, evenly spread points of the Gaussian.
    covariance = np.einsum("nra,nrb->nab", root, root)  # (rows, contrasts, contrasts)
    values, vectors = np.linalg.eigh(covariance)
    scale = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    t = mean[:, None, :] + np.einsum("nab,sb->nsa", scale, _make_normal_points(class_contrasts.shape[1]))
    # t is (rows, points, contrasts)
    return np.asarray(np.exp(log_normalise(t @ class_contrasts.T)).mean(axis=1))


def average_probabilities(u: Array, draws: Array, class_contrasts: Array) -> Array:
    """Return P(class | row) averaged over draws (draws, contrasts, terms) of the weights, as (rows, classes)."""

    def average(part: Array) -> Array:  # (rows, terms) -> (rows, draws, classes) -> (rows, classes)
        log_odds = np.einsum("nk,sak->nsa", part, draws) @ class_contrasts.T
        return np.asarray(np.exp(log_normalise(log_odds)).mean(axis=1))

    return _map_row_batches(average, u)


def _map_row_batches(function: Callable[[Array], Array], u: Array) -> Array:
    """Return ``function`` of all rows, computed in batches to limit memory."""
    starts = range(0, len(u), INTEGRATION_BATCH_ROWS)
    return np.concatenate([function(u[start : start + INTEGRATION_BATCH_ROWS]) for start in starts])


def choose_logistic_strength(examples: TrainingExamples) -> float:
    """Return the prior strength of the weights that maximises the evidence, in Laplace's approximation.

    The strength has a log-normal hyperprior around 1 with a standard deviation of one decade, because the evidence of
    few rows alone can favour extreme strengths.
    """
    start = np.zeros(examples.shape)

    def cost(log_strength: float) -> float:
        nonlocal start
        precision = prior_precision(10.0**log_strength, examples.shape[1])
        start = fit_newton(examples, precision, start).weights
        return 0.5 * log_strength**2 - LaplaceApproximation.at(examples, precision, start).log_evidence

    best = minimize_scalar(cost, bounds=LOGISTIC_STRENGTH_BOUNDS, method="bounded", options={"xatol": 0.01}).x
    return float(10.0 ** round(best, 1))  # a finer grid makes no practical difference


def prior_precision(strength: float, n_terms: int) -> Array:
    """Return the prior precision of intercept and weights, (terms,); with strength zero the intercept is flat too."""
    return np.concatenate([[min(INTERCEPT_PRIOR_PRECISION, strength)], np.full(n_terms - 1, strength)])


def _make_normal_points(dimensions: int) -> Array:
    """Return (points, dimensions) evenly spread normal points with mean zero.

    They are a quasi-random additive recurrence (the R_d sequence, by the root of x^(d+1) = x + 1) and its mirror image.
    """
    # fixed-point iteration for the generalised golden ratio
    ratio = 1.5
    for _ in range(60):
        ratio = (1 + ratio) ** (1 / (dimensions + 1))
    steps = ratio ** -np.arange(1.0, dimensions + 1)
    half = ndtri((0.5 + np.arange(1, SOFTMAX_INTEGRATION_POINTS // 2 + 1)[:, None] * steps) % 1)
    return np.concatenate([half, -half])


def _check_size(shape: tuple[int, int]) -> None:
    """Raise if Newton's method would need too large a matrix."""
    size = int(np.prod(shape))
    if size**2 > MAX_HESSIAN_CELLS:
        raise DataError(f'{size:,} weights need a matrix of {size**2 * 8 / 2**30:,.0f} GiB; use solver="gradient".')
