"""Logistic regression: learning to predict probabilities by cross-entropy, and the posterior that marginalises over it.

    P(class | x, w) = softmax(C W u),   u = (1, x),      log L(w) = Σ_i weight_i ln P(d_i | x_i, w)

With two classes this is the sigmoid unit h(x) and Σ d ln h + (1 - d) ln(1 - h); its gradient is Σ (d - h(x)) x. With
more, ``C`` spreads one row of weights per *contrast* over the classes, so that no weight is there twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dtrtri
from scipy.optimize import minimize_scalar
from scipy.special import ndtr, ndtri

from priory.core.logspace import log_normalise
from priory.core.registration import register_record
from priory.core.typing import Array
from priory.errors import DataError

INTERCEPT_PRIOR_PRECISION = 0.01  # prior precision of the levels: N(0, 10²), as good as flat
LOGISTIC_STRENGTH_BOUNDS = (-4.0, 4.0)  # log10 of the prior strengths looked at
MAX_HESSIAN_CELLS = 1 << 29  # cells of a second-order solver's matrix: 4 GiB
HESSIAN_BLOCK_ROWS = 1 << 12  # rows whose products are taken at once: they stay in the cache
SOFTMAX_INTEGRATION_POINTS = 1024  # points of the integral over three classes or more
INTEGRATION_BATCH_ROWS = 256  # integrated at once

# σ(x) ≈ Σ p Φ(x s), to within 2.1e-9 everywhere (Monahan and Stefanski, 1992): against a Gaussian, Φ integrates exactly
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
    """Classes by contrasts. Two classes have one, the log-odds; more have an orthonormal set, alike in every class.

    >>> contrast_matrix(2).tolist(), bool(np.allclose(contrast_matrix(3).sum(axis=0), 0.0))
    ([[0.0], [1.0]], True)
    """
    if n_classes == 2:
        return np.array([[0.0], [1.0]])
    return np.linalg.svd(np.eye(n_classes) - 1 / n_classes)[0][:, : n_classes - 1]


@dataclass(frozen=True, eq=False)
class TrainingExamples:
    """Rows ``u`` (a one first), the one-hot classes ``d`` that they have, and how often each row counts."""

    u: Array
    d: Array
    weight: Array

    @cached_property
    def class_contrasts(self) -> Array:
        return contrast_matrix(self.d.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Of the weights: contrasts by terms."""
        return self.class_contrasts.shape[1], self.u.shape[1]

    def log_probabilities(self, w: Array) -> Array:
        return log_normalise(self.u @ w.T @ self.class_contrasts.T)

    def log_likelihood(self, w: Array) -> float:
        """Minus the cross-entropy."""
        return float(self.weight @ (self.d * self.log_probabilities(w)).sum(axis=1))

    def gradient(self, w: Array) -> Array:
        """Σ (d - h(x)) x."""
        return np.asarray(
            ((self.d - np.exp(self.log_probabilities(w))) @ self.class_contrasts * self.weight[:, None]).T @ self.u
        )

    def information(self, w: Array) -> Array:
        """Minus the second derivative, (contrasts · terms) squared."""
        m, k = self.shape
        p = np.exp(self.log_probabilities(w))
        q = p @ self.class_contrasts
        information = np.zeros((m, k, m, k))
        for a in range(m):
            for b in range(a + 1):
                curve = self.weight * (
                    p @ (self.class_contrasts[:, a] * self.class_contrasts[:, b]) - q[:, a] * q[:, b]
                )
                for start in range(0, len(self.u), HESSIAN_BLOCK_ROWS):
                    u = self.u[start : start + HESSIAN_BLOCK_ROWS]
                    information[a, :, b, :] += (u * curve[start : start + HESSIAN_BLOCK_ROWS, None]).T @ u
                information[b, :, a, :] = information[a, :, b, :].T
        return information.reshape(m * k, m * k)


class SolverResult(NamedTuple):
    """Where a solver arrived: the weights, in how many steps, and whether there was nothing left to gain."""

    weights: Array
    n_iter: int
    converged: bool


def fit_gradient_ascent(
    examples: TrainingExamples, precision: Array, eta: float | None = None, tol: float = 1e-6, max_iter: int = 10_000
) -> SolverResult:
    """The batch rule of the sigmoid unit, ``w <- w + eta * Σ (d - h(x)) x``, and the pull of the prior if there is one.

    Without an ``eta`` it is the largest that can never overshoot.
    """
    if eta is None:
        steepest = float(np.linalg.norm(examples.u * np.sqrt(examples.weight)[:, None], ord=2)) ** 2
        eta = 1 / (steepest * (0.25 if len(examples.class_contrasts) == 2 else 0.5) + float(np.max(precision)))
    w = np.zeros(examples.shape)
    for step in range(max_iter):
        uphill = examples.gradient(w) - precision * w
        if np.abs(uphill).max(initial=0.0) <= tol:
            return SolverResult(w, step, True)
        w = w + eta * uphill
    return SolverResult(w, max_iter, False)


def fit_newton(
    examples: TrainingExamples, precision: Array, start: Array | None = None, tol: float = 1e-10, max_iter: int = 100
) -> SolverResult:
    """The same peak by second-order steps, halved until they climb."""
    _check_size(examples.shape)
    w = np.zeros(examples.shape) if start is None else start

    def height(at: Array) -> float:
        return examples.log_likelihood(at) - 0.5 * float((precision * at**2).sum())

    here = height(w)
    for step in range(max_iter):
        uphill = (examples.gradient(w) - precision * w).ravel()
        move = _solve_newton_step(posterior_curvature(examples, w, precision), uphill).reshape(w.shape)
        if uphill @ move.ravel() <= tol * (1 + abs(here)):
            return SolverResult(w + move if height(w + move) >= here else w, step, True)
        size = 1.0
        while (there := height(w + size * move)) < here and size > 1e-10:
            size /= 2
        w, here = w + size * move, there
    return SolverResult(w, max_iter, False)


def _solve_newton_step(curve: Array, uphill: Array) -> Array:
    """curve⁻¹ uphill, or the shortest such step where collinear columns and no prior leave a direction flat."""
    try:
        return np.asarray(cho_solve((np.linalg.cholesky(curve), True), uphill))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(curve, uphill, rcond=1e-12)[0])


def posterior_curvature(examples: TrainingExamples, w: Array, precision: Array) -> Array:
    return examples.information(w) + np.diag(np.broadcast_to(precision, examples.shape).ravel())


@register_record("Laplace")
@dataclass(frozen=True, eq=False)
class LaplaceApproximation:
    """The Gaussian that has the posterior's peak and curvature there; ``root'root`` is its covariance."""

    mean: Array
    root: Array
    log_evidence: float

    @classmethod
    def at(cls, examples: TrainingExamples, precision: Array, peak: Array) -> LaplaceApproximation:
        lower = np.linalg.cholesky(posterior_curvature(examples, peak, precision))
        root = np.asarray(dtrtri(lower, lower=1)[0])
        prior = np.broadcast_to(precision, peak.shape)
        evidence = examples.log_likelihood(peak) - 0.5 * float((prior * peak**2 - np.log(prior)).sum())
        return cls(peak, root, evidence - float(np.log(np.diag(lower)).sum()))

    def probabilities(self, u: Array, class_contrasts: Array) -> Array:
        """P(class | x), marginalised over the weights."""
        m, k = self.mean.shape
        by_contrast = self.root.reshape(m * k, m, k)
        parts = [u[start : start + INTEGRATION_BATCH_ROWS] for start in range(0, len(u), INTEGRATION_BATCH_ROWS)]
        return np.concatenate(
            [
                expected_softmax(part @ self.mean.T, np.einsum("rak,nk->nra", by_contrast, part), class_contrasts)
                for part in parts
            ]
        )


def expected_softmax(mean: Array, root: Array, class_contrasts: Array) -> Array:
    """E softmax(C t) for each row, t ~ N(mean, root'root).

    >>> expected_softmax(np.array([[1.0]]), np.array([[[2.0]]]), contrast_matrix(2)).round(6).tolist()     # σ(1) = 0.731059
    [[0.352274, 0.647726]]
    """
    if class_contrasts.shape[1] == 1:
        variance = (root[:, :, 0] ** 2).sum(axis=1, keepdims=True)
        share, slope = PROBIT_MIXTURE.T
        p = np.clip(ndtr(mean * slope / np.sqrt(1 + slope**2 * variance)) @ (share / share.sum()), 0.0, 1.0)
        return np.column_stack([1 - p, p])
    covariance = np.einsum("nra,nrb->nab", root, root)
    values, vectors = np.linalg.eigh(covariance)
    scale = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    t = mean[:, None, :] + np.einsum("nab,sb->nsa", scale, _make_normal_points(class_contrasts.shape[1]))
    return np.asarray(np.exp(log_normalise(t @ class_contrasts.T)).mean(axis=1))


def average_probabilities(u: Array, draws: Array, class_contrasts: Array) -> Array:
    """The vote of every drawn hypothesis: P(class | x) averaged over draws (draws, contrasts, terms) of the weights."""
    return np.concatenate(
        [
            np.exp(log_normalise(np.einsum("nk,sak->nsa", part, draws) @ class_contrasts.T)).mean(axis=1)
            for part in (
                u[start : start + INTEGRATION_BATCH_ROWS] for start in range(0, len(u), INTEGRATION_BATCH_ROWS)
            )
        ]
    )


def choose_logistic_strength(examples: TrainingExamples) -> float:
    """The prior strength of the weights under which the classes are most probable, weights integrated out (Laplace).

    A strength itself is believed to be within a decade or so of 1: a few rows say too little to rule that out.
    """
    start = np.zeros(examples.shape)

    def cost(log_strength: float) -> float:
        nonlocal start
        precision = prior_precision(10.0**log_strength, examples.shape[1])
        start = fit_newton(examples, precision, start).weights
        return 0.5 * log_strength**2 - LaplaceApproximation.at(examples, precision, start).log_evidence

    best = minimize_scalar(cost, bounds=LOGISTIC_STRENGTH_BOUNDS, method="bounded", options={"xatol": 0.01}).x
    return float(10.0 ** round(best, 1))  # evidence does not tell closer strengths apart, and rounding must not


def prior_precision(strength: float, n_terms: int) -> Array:
    """Of level and weights; a strength of nought leaves the level flat as well."""
    return np.concatenate([[min(INTERCEPT_PRIOR_PRECISION, strength)], np.full(n_terms - 1, strength)])


def _make_normal_points(dimensions: int) -> Array:
    """Evenly spread normal points: an additive recurrence by the root of x^(d+1) = x + 1, mirrored so the mean is 0."""
    ratio = 1.5
    for _ in range(60):
        ratio = (1 + ratio) ** (1 / (dimensions + 1))
    steps = ratio ** -np.arange(1.0, dimensions + 1)
    half = ndtri((0.5 + np.arange(1, SOFTMAX_INTEGRATION_POINTS // 2 + 1)[:, None] * steps) % 1)
    return np.concatenate([half, -half])


def _check_size(shape: tuple[int, int]) -> None:
    size = int(np.prod(shape))
    if size**2 > MAX_HESSIAN_CELLS:
        raise DataError(f'{size:,} weights need a matrix of {size**2 * 8 / 2**30:,.0f} GiB; take solver="gradient".')
