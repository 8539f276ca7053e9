"""Figure of the curse of dimensionality: the number of parameters against the number of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from priory.errors import DataError
from priory.models.probability_tables import count_parameters
from priory.plots.canvas import BLUE, RED, create_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def parameter_growth(max_columns: int = 20, values: int = 2, classes: int = 2) -> Figure:
    """Plot the number of parameters against the number of columns, with and without the naive assumption.

    Parameters
    ----------
    max_columns : largest number of columns
    values : number of values of each column
    classes : number of classes

    >>> figure = parameter_growth(max_columns=4, values=3)
    """
    if max_columns < 1 or min(values, classes) < 2:
        raise DataError(f"{max_columns} columns, {values} values, {classes} classes: use at least 1, 2 and 2.")
    columns = np.arange(1, max_columns + 1)
    # n columns of v values: n (v - 1) parameters per class if naive, v^n - 1 combinations otherwise
    counts = [count_parameters(classes, n * (values - 1), n * float(np.log2(values))) for n in columns.tolist()]
    figure, axes = create_axes("columns", "parameters", f"{classes} classes, columns of {values} values")
    axes.plot(
        columns,
        [count.full or np.nan for count in counts],
        color=RED,
        marker="s",
        markersize=4,
        label="all combinations",
    )
    axes.plot(columns, [count.naive for count in counts], color=BLUE, marker="o", markersize=4, label="naive Bayes")
    axes.set_yscale("log")
    axes.locator_params(axis="x", integer=True)
    axes.legend(frameon=False)
    return figure
