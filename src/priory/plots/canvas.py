"""An empty figure to draw on. ``Figure``, not pyplot: nothing global, no window, no display needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from priory.errors import Missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def canvas(x_label: str, y_label: str, title: str = "") -> tuple[Figure, Axes]:
    """A figure with one pair of axes."""
    figure = empty_figure(6, 4)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.set_title(title, loc="left", fontsize=10)
    return figure, axes


def empty_figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Missing("figures need matplotlib: pip install 'priory[plots]'.", name=error.name) from error
    return Figure(figsize=(width, height), layout="constrained")
