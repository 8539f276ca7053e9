"""Figures of regression: prior lines, posterior lines, predictive bands, probabilities of a class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from priory.core.typing import Array
from priory.plots.canvas import BLUE, INK_COLOUR, RED, create_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class LineModel(Protocol):
    """What a regression in one column can be asked, such as `priory.BayesianLinearRegression`."""

    def predict(self, X: Any) -> Any: ...

    def predict_interval(self, X: Any, level: float) -> tuple[Array, Array]: ...

    def sample_lines(self, size: int, *, prior: bool, random_state: Any) -> Any: ...


def prior_lines(model: LineModel, x: ArrayLike, size: int = 40, random_state: Any = 0) -> Figure:
    """Lines thought plausible before any row was seen."""
    figure, axes = create_axes("x", "y", "Before the data: lines drawn from the prior")
    _draw_lines(axes, model, np.asarray(x, dtype=float), size, True, random_state)
    return figure


def posterior_lines(
    model: LineModel, x: ArrayLike, X: ArrayLike, y: ArrayLike, size: int = 40, random_state: Any = 0
) -> Figure:
    """Lines still plausible after the rows (X, y), and their mean."""
    figure, axes = create_axes("x", "y", "After the data: lines drawn from the posterior")
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
    """Where new rows lie with probability ``level``; ``frequentist`` is the name and height of a rival line."""
    figure, axes = create_axes("x", "y", f"Prediction: {level:.0%} of new rows lie in the band")
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
    """P(d = 1 | x) by several methods, over the examples (X, d) that they learned from."""
    figure, axes = create_axes("x", "y", "The probability of class 1")
    for (name, p), style in zip(curves.items(), ("--", "-.", "-", ":"), strict=False):
        axes.plot(x, p, linestyle=style, linewidth=2, label=name)
    axes.scatter(np.ravel(X), d, color=INK_COLOUR, s=18, zorder=3, label="data")
    axes.set_ylabel("P(1 | x)")
    axes.legend(frameon=False)
    return figure


def _draw_lines(axes: Axes, model: LineModel, x: Array, size: int, prior: bool, random_state: Any) -> None:
    lines = model.sample_lines(size, prior=prior, random_state=random_state)
    axes.plot(x, lines.intercept + x[:, None] * lines.coef[:, 0], color=BLUE, alpha=0.3, linewidth=1)
