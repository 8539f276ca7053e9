"""Figures of regression: lines drawn from prior and posterior, predictive bands, and class probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core.typing import RandomState
from priory.errors import DataError
from priory.plots.canvas import BLUE, INK_COLOUR, RED, create_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from priory.regression.linear_posterior import NormalInverseGamma
    from priory.regression.linear_regression import BayesianLinearRegression as Line
    from priory.regression.sigmoid_unit import SigmoidUnit


def prior_lines(model: Line, x: ArrayLike, size: int = 40, random_state: RandomState = 0) -> Figure:
    """Plot lines drawn from the prior; with a `NormalInverseGamma` prior the model need not be fitted."""
    figure, axes = create_axes("x", "y", "Lines drawn from the prior")
    _draw_lines(axes, model, np.asarray(x, dtype=float), size, True, random_state)
    return figure


def posterior_lines(
    model: Line,
    x: ArrayLike,
    X: ArrayLike,
    y: ArrayLike,
    size: int = 40,
    random_state: RandomState = 0,
) -> Figure:
    """Plot lines drawn from the posterior, their mean, and the rows (X, y)."""
    figure, axes = create_axes("x", "y", "Lines drawn from the posterior")
    grid = np.asarray(x, dtype=float)
    _draw_lines(axes, model, grid, size, False, random_state)
    axes.plot(grid, model.predict(grid[:, None]), color=RED, linewidth=2, label="mean")
    axes.scatter(np.ravel(X), y, color=INK_COLOUR, s=18, zorder=3, label="data")
    axes.legend(frameon=False)
    return figure


def predictive_band(
    model: Line,
    x: ArrayLike,
    X: ArrayLike,
    y: ArrayLike,
    level: float = 0.9,
    frequentist: tuple[str, ArrayLike] | None = None,
) -> Figure:
    """Plot the predictive band that contains new rows with probability ``level``, and the rows (X, y).

    ``frequentist`` is the name of another line for comparison, and its height at ``x``.
    """
    figure, axes = create_axes("x", "y", f"Prediction: the band holds {level:.0%} of new rows")
    grid = np.asarray(x, dtype=float)
    low, high = model.predict_interval(grid[:, None], level)
    axes.fill_between(grid, low, high, color=BLUE, alpha=0.2, linewidth=0, label=f"{level:.0%} band")
    axes.plot(grid, model.predict(grid[:, None]), color=BLUE, linewidth=2, label="Bayesian mean")
    if frequentist is not None:
        axes.plot(grid, frequentist[1], color=RED, linestyle="--", label=frequentist[0])
    axes.scatter(np.ravel(X), y, color=INK_COLOUR, s=18, zorder=3, label="data")
    axes.legend(frameon=False)
    return figure


def class_probability(x: ArrayLike, curves: dict[str, ArrayLike], X: ArrayLike, d: ArrayLike) -> Figure:
    """Plot P(d = 1 | x) by several methods, and the training examples (X, d)."""
    figure, axes = create_axes("x", "y", "Probability of class 1")
    for (name, p), style in zip(curves.items(), ("--", "-.", "-", ":"), strict=False):
        axes.plot(x, p, linestyle=style, linewidth=2, label=name)
    axes.scatter(np.ravel(X), d, color=INK_COLOUR, s=18, zorder=3, label="data")
    axes.set_ylabel("P(1 | x)")
    axes.legend(frameon=False)
    return figure


def error_per_step(unit: SigmoidUnit) -> Figure:
    """Plot the cross-entropy of a sigmoid unit before each training step, and after the last."""
    figure, axes = create_axes("step", "cross-entropy (nats)")
    errors = unit.errors_
    axes.plot(errors, color=BLUE, marker="o" if len(errors) <= 40 else "", markersize=4)
    axes.axhline(float(errors[0]), color="0.6", linestyle="--", linewidth=1, label=f"zero weights: {errors[0]:.4g}")
    axes.plot([], [], " ", label=f"after the last step: {errors[-1]:.4g}")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return figure


def belief_plane(belief: NormalInverseGamma, title: str = "") -> Figure:
    """Plot the distribution of a line in the plane of its parameters: intercept across, slope up.

    ``belief`` is a prior or a posterior of one column, such as ``BayesianLinearRegression().fit(X, y).posterior_``. The
    contours enclose 50, 80 and 95 % of the probability.
    """
    slope, intercept, cover = _map_belief(belief)
    figure, axes = create_axes("intercept", "slope", title)
    axes.contourf(intercept, slope, cover, [0, 0.5, 0.8, 0.95], colors=[BLUE], alpha=0.25)
    lines = axes.contour(intercept, slope, cover, [0.5, 0.8, 0.95], colors=BLUE, linewidths=1)
    axes.clabel(lines, fmt=lambda level: f"{level:.0%}", fontsize=8)
    mean = belief.mean
    centre = float(belief.find_intercepts(np.asarray(mean)[None])[0])
    axes.plot(centre, float(mean[-1]), "+", color=RED, markersize=10, label=f"mean: {centre:.3g}, {mean[-1]:.3g}")
    figure.legend(frameon=False, loc="outside upper right")
    return figure


def _map_belief(belief: NormalInverseGamma) -> tuple[Array, Array, Array]:
    """Return grids of slopes and intercepts, and the probability of the density region through each grid point.

    Level and slope have a bivariate Student-t distribution with nu = 2 * shape degrees of freedom; the ellipse of
    squared Mahalanobis distance q has probability 1 - (1 + q / nu)^(-nu / 2).
    """
    if len(belief.mean) != 2 or not belief.level:
        raise DataError("the plane is for a line: one column of numbers, and an intercept.")
    nu = 2 * belief.shape
    covariance = np.linalg.inv(belief.precision) * belief.scale / belief.shape
    turn = np.array([[1.0, -float(belief.centre[1])], [0.0, 1.0]])  # (level, slope) -> (intercept, slope)
    spread = np.sqrt(np.diag(turn @ covariance @ turn.T))
    # the intercept is the level at the centre, moved to x = 0
    middle = turn @ belief.mean + np.array([float(belief.centre[0]), 0.0])
    reach = 1.15 * np.sqrt(nu * (0.05 ** (-2 / nu) - 1))  # a little beyond the 95 % region
    intercept, slope = (m + reach * s * np.linspace(-1, 1, 201) for m, s in zip(middle, spread, strict=True))
    away = np.stack(np.meshgrid(intercept, slope), axis=-1) - middle  # (slopes, intercepts, 2)
    back = away @ np.linalg.inv(turn).T
    q = np.einsum("abi,ij,abj->ab", back, np.linalg.inv(covariance), back)  # (slopes, intercepts)
    return slope, intercept, 1 - (1 + q / nu) ** (-nu / 2)


def _draw_lines(axes: Axes, model: Line, x: Array, size: int, prior: bool, random_state: RandomState) -> None:
    lines = model.sample_lines(size, prior=prior, random_state=random_state)
    axes.plot(x, lines.intercept + x[:, None] * lines.coef[:, 0], color=BLUE, alpha=0.3, linewidth=1)
