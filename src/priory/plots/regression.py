"""Figures of regression: lines drawn from prior and posterior, predictive bands, and class probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from priory.core.typing import Array, RandomState
from priory.plots.canvas import BLUE, INK_COLOUR, RED, create_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Lines(Protocol):
    """Draws of lines, such as `priory.regression.linear_regression.LineDraws`."""

    @property
    def intercept(self) -> Array: ...

    @property
    def coef(self) -> Array: ...


class LineModel(Protocol):
    """A regression on one column, such as `priory.BayesianLinearRegression`."""

    def predict(self, X: Array) -> Array: ...

    def predict_interval(self, X: Array, level: float) -> tuple[Array, Array]: ...

    def sample_lines(self, size: int, *, prior: bool, random_state: RandomState) -> Lines: ...


def prior_lines(model: LineModel, x: ArrayLike, size: int = 40, random_state: RandomState = 0) -> Figure:
    """Plot lines drawn from the prior."""
    figure, axes = create_axes("x", "y", "Lines drawn from the prior")
    _draw_lines(axes, model, np.asarray(x, dtype=float), size, True, random_state)
    return figure


def posterior_lines(
    model: LineModel, x: ArrayLike, X: ArrayLike, y: ArrayLike, size: int = 40, random_state: RandomState = 0
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
    model: LineModel,
    x: ArrayLike,
    X: ArrayLike,
    y: ArrayLike,
    level: float = 0.9,
    frequentist: tuple[str, ArrayLike] | None = None,
) -> Figure:
    """Plot the band that holds new rows with probability ``level``, and the rows (X, y).

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
    """Plot P(d = 1 | x) by several methods, and the examples (X, d) that they were fitted to."""
    figure, axes = create_axes("x", "y", "Probability of class 1")
    for (name, p), style in zip(curves.items(), ("--", "-.", "-", ":"), strict=False):
        axes.plot(x, p, linestyle=style, linewidth=2, label=name)
    axes.scatter(np.ravel(X), d, color=INK_COLOUR, s=18, zorder=3, label="data")
    axes.set_ylabel("P(1 | x)")
    axes.legend(frameon=False)
    return figure


def _draw_lines(axes: Axes, model: LineModel, x: Array, size: int, prior: bool, random_state: RandomState) -> None:
    lines = model.sample_lines(size, prior=prior, random_state=random_state)
    axes.plot(x, lines.intercept + x[:, None] * lines.coef[:, 0], color=BLUE, alpha=0.3, linewidth=1)
