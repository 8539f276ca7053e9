"""Figures of families: a density over its data, the likelihood of a parameter, the curse of dimensionality."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from priory.bayes import Continuum
from priory.core.typing import Array
from priory.errors import DataError
from priory.families.base import ArrayFamily
from priory.model.probability_tables import count_parameters
from priory.plots.canvas import BLUE, INK_COLOUR, RED, create_axes
from priory.plots.hypothesis_plots import require_beta_prior

if TYPE_CHECKING:
    from matplotlib.figure import Figure


CURVE_POINTS = 400


def fitted_family(family: ArrayFamily[Any, Any] | type[ArrayFamily[Any, Any]], x: ArrayLike) -> Figure:
    """Plot the maximum-likelihood and predictive distributions of a family over the histogram of values.

    Parameters
    ----------
    family : a family of numbers, such as ``Gaussian``
        For a class, the prior is estimated from the values.
    x : the values
    """
    kind = family if isinstance(family, type) else type(family)
    if kind.column_kind != "number" or kind.whole_row_estimator:
        raise DataError(f"{kind.__name__} is not a family of single numbers; use one such as Gaussian or Poisson.")
    values = np.ravel(np.asarray(x, dtype=float))
    values = values[~np.isnan(values)]
    if len(values) < 2:
        raise DataError(f"{len(values)} value(s): give two or more to fit a family to.")
    # one class (all zeros) and one column
    block = (family() if isinstance(family, type) else family).observe(values[:, None], np.zeros(len(values), int), 1)
    belief = family.empirical_prior(block) if isinstance(family, type) else family
    whole = kind.is_discrete
    figure, axes = create_axes(
        "x", "probability" if whole else "density", f"{kind.__name__}, fitted to {len(values):,} values"
    )
    grid = belief.list_outcomes(values) if whole else _spread_values(values)
    styles = ("o", "x") if whole else ("-", "--")
    if whole:
        counted = np.array([(values == k).mean() for k in grid])
        axes.bar(grid, counted, color="0.85", width=0.9, label="data")
        axes.locator_params(axis="x", integer=True)
    else:
        axes.hist(values, bins="auto", density=True, color="0.85", label="data")
    names = {"ml": "maximum likelihood", "predictive": "predictive"}
    for (estimate, name), style, colour in zip(names.items(), styles, (RED, BLUE), strict=True):
        curve = np.exp(belief.log_likelihood(block, grid[:, None], estimate))[:, 0, 0]  # one class, one column
        axes.plot(grid, curve, style, color=colour, label=name)
    axes.plot(values, np.full(len(values), 0.0), "|", color=INK_COLOUR, alpha=0.4)
    axes.legend(frameon=False)
    return figure


def likelihood_curve(space: Continuum) -> Figure:
    """Plot the likelihood of θ given the observations, and its maximum.

    >>> from priory import Continuum
    >>> figure = likelihood_curve(Continuum(("cherry", "lime")).update_many(["cherry"] * 7 + ["lime"] * 3))
    """
    require_beta_prior(space)
    best = space.ml()
    theta = np.linspace(0.0005, 0.9995, CURVE_POINTS)  # log θ is infinite at 0 and 1
    first, second = space.alpha - space.clone_unfitted().alpha  # the counts of the outcomes
    log_likelihood = first * np.log(theta) + second * np.log1p(-theta)
    figure, axes = create_axes("θ", f"P(D | θ) of {first:g} {space.outcomes[0]}, {second:g} {space.outcomes[1]}")
    axes.plot(theta, np.exp(log_likelihood), color=BLUE)
    axes.axvline(best, color=RED, linestyle="--", linewidth=1, label=f"ML: θ = {best:.3g}")
    axes.set_xlim(0, 1)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return figure


def _spread_values(values: Array) -> Array:
    """Return evenly spaced points, a little beyond the data; positive data keep positive points."""
    low, high = float(values.min()), float(values.max())
    reach = 0.12 * ((high - low) or 1.0)
    return np.linspace(max(low - reach, low / 2) if low > 0 else low - reach, high + reach, CURVE_POINTS)


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
