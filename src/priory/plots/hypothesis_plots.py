"""Figures of belief: hypotheses as observations come in, joint tables, families over their data, likelihoods."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.bayes import Continuum, Hypotheses, JointTable
from priory.bayes.finite import HypothesisSpace, NameT
from priory.errors import DataError
from priory.families.base import ArrayFamily
from priory.model.probability_tables import count_parameters
from priory.plots.canvas import BLUE, CLASS_COLOURS, INK_COLOUR, RED, create_axes, create_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MIN_NAMED_AREA = 0.01


def mosaic(table: JointTable) -> Figure:
    """Plot a joint table of two variables as a unit square, in which every area is a probability.

    The widths are P(first); the heights within a column are P(second | first).
    """
    if len(table.names) != 2:
        raise DataError(f"the table has {len(table.names)} variables; marginalise it to two for this figure.")
    first, second = table.names
    figure, axes = create_axes(f"P({first})", f"P({second} | {first})")
    left = 0.0
    middles: list[float] = []
    for value in table.values(first):
        width, bottom = table.probability(**{first: value}), 0.0
        for k, other in enumerate(table.values(second)):
            p = table.probability(**{first: value, second: other})
            height = p / width if width else 0.0
            colour = CLASS_COLOURS[k % len(CLASS_COLOURS)]
            label = f"{second} = {other}" if not middles else None
            axes.bar(left, height, width, bottom, align="edge", color=colour, alpha=0.75, label=label, linewidth=0)
            if p >= MIN_NAMED_AREA:
                centre = (left + width / 2, bottom + height / 2)
                axes.annotate(f"{p:.3g}", centre, ha="center", va="center", fontsize=9)
            bottom += height
        axes.axvline(left, color="white", linewidth=2)
        middles.append(left + width / 2)
        left += width
    axes.set_xticks(middles, [str(value) for value in table.values(first)])
    axes.set(xlim=(0, 1), ylim=(0, 1))
    figure.legend(frameon=False, loc="outside right upper", fontsize=9)
    return figure


SpaceT = TypeVar("SpaceT", bound=HypothesisSpace)

CURVE_MARKERS = "osD^v*Px"
MAX_NAMED_CURVES = 7
MAX_NAMED_BARS = 8
MAX_MARKED_OBSERVATIONS = 40


def posterior_curves(space: Hypotheses[NameT], observations: Sequence[object]) -> Figure:
    """Plot the posterior probability of each hypothesis against the number of observations.

    With many hypotheses, the ones that were most probable at any time are coloured and named; the others are grey.
    """
    curves = np.array([list(state.posterior.values()) for state in _replay_observations(space, observations)])
    figure, axes = create_axes("number of observations", "posterior probability of the hypothesis")
    named = _choose_named(curves)
    others = np.setdiff1d(np.arange(curves.shape[1]), named)
    marked = len(observations) <= MAX_MARKED_OBSERVATIONS
    if len(others):
        axes.plot(curves[:, others], color="0.8", linewidth=0.8)
        axes.plot([], [], color="0.8", label=f"{len(others)} others")
    for k, j in enumerate(named):
        colour = CLASS_COLOURS[k % len(CLASS_COLOURS)]
        marker = CURVE_MARKERS[k % len(CURVE_MARKERS)] if marked else ""
        axes.plot(curves[:, j], color=colour, marker=marker, markersize=5, label=f"P({space.names[j]} | D)")
    top = 1.0 if curves.max() > 0.5 else 1.08 * float(curves.max())
    axes.set_ylim(-0.02 * top, 1.02 * top)
    axes.locator_params(axis="x", integer=True)
    figure.legend(frameon=False, loc="outside right upper", fontsize=9)
    return figure


def posterior_bars(space: Hypotheses[NameT], observations: Sequence[object], max_panels: int = 12) -> Figure:
    """Plot the posterior as bars, one panel for the prior and one for each observation.

    The most probable hypothesis is orange; with many hypotheses, its name is in the corner.
    """
    states = [list(state.posterior.values()) for state in _replay_observations(space, observations)]
    shown = states[:max_panels]
    columns = min(len(shown), 3)
    rows = -(-len(shown) // columns)  # rounded up
    figure = create_figure(0.9 + 1.7 * columns, 0.7 + 1.6 * rows)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    few = len(space.names) <= MAX_NAMED_BARS
    top = 1.0 if np.max(shown) > 0.5 else 1.25 * float(np.max(shown))
    for n, (axes, p) in enumerate(zip(panels, shown, strict=False)):
        is_best = np.isclose(p, max(p), rtol=1e-9) & (min(p) < max(p))
        colours = np.where(is_best, CLASS_COLOURS[1], CLASS_COLOURS[0])
        axes.bar(range(len(p)), p, color=colours, width=0.8 if few else 1.0)
        axes.set_title("prior" if n == 0 else f"{n}: {observations[n - 1]}", fontsize=10, loc="left")
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_ylim(0, top)
        if few:
            axes.set_xticks(range(len(p)), [str(name) for name in space.names], fontsize=9)
        else:
            axes.set_xticks([])
            best = [str(name) for name, is_map in zip(space.names, is_best, strict=True) if is_map]
            text = f"MAP {best[0]}" if len(best) == 1 else f"{len(best) or 'all'} equal"
            axes.annotate(text, (0.97, 0.9), xycoords="axes fraction", ha="right", fontsize=9)
    for axes in panels[len(shown) :]:
        axes.set_visible(False)
    figure.supylabel("P(h | D)", fontsize=10)
    figure.supxlabel("hypothesis" if few else f"the {len(space.names)} hypotheses", fontsize=10)
    return figure


def next_outcome_curve(space: HypothesisSpace, observations: Sequence[object], outcome: Hashable) -> Figure:
    """Plot the probability that the next observation is ``outcome`` against the number of observations."""
    curve = [state.predict_proba()[outcome] for state in _replay_observations(space, observations)]
    figure, axes = create_axes("number of observations", f"probability that the next one is {outcome}")
    axes.plot(curve, marker="o", color=BLUE)
    axes.locator_params(axis="x", integer=True)
    axes.set_ylim(min(0.4, *curve), 1.02)
    return figure


def require_beta_prior(space: Continuum) -> None:
    """Raise DataError under a Dirichlet prior."""
    if not space.has_beta_prior:
        raise DataError("the figure shows one θ with a Beta prior, and the prior is a Dirichlet one: use table().")


def belief(space: Continuum) -> Figure:
    """Plot prior, likelihood and posterior of θ, with the ML, MAP and mean values marked.

    The likelihood is scaled to the height of the posterior: it is no density of θ, and only its shape matters.
    """
    require_beta_prior(space)
    figure, axes = create_axes("θ", "density")
    theta = np.linspace(0.001, 0.999, 999)
    prior, posterior = (state.log_density(theta) for state in (space.clone_unfitted(), space))
    axes.plot(theta, np.exp(prior), "--", color="0.6", label="prior")
    if space.seen.n > 0:
        likelihood = posterior - prior  # in logarithms, up to a constant
        scaled = np.exp(likelihood - likelihood.max() + posterior.max())
        axes.plot(theta, scaled, ":", color=CLASS_COLOURS[4], label="likelihood (scaled)")
    axes.plot(theta, np.exp(posterior), color=BLUE, label="posterior")
    marks = {"mean": (space.mean(), ":")}
    if not space.map_fault:
        marks = {"MAP": (space.map(), "--")} | marks
    if space.seen.n > 0:
        marks = {"ML": (space.ml(), "-")} | marks
    for name, (at, style) in marks.items():
        axes.axvline(at, color=RED, linestyle=style, linewidth=1.5, label=f"{name} {at:.3f}", clip_on=False)
    if space.map_fault:
        axes.plot([], [], " ", label="no single MAP")
    axes.set_xlim(0, 1)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return figure


def belief_curve(space: Continuum, observations: Sequence[object], mass: float = 0.9) -> Figure:
    """Plot mean, mode and central ``mass`` interval of θ against the number of observations.

    The mode is omitted where it is not unique.
    """
    require_beta_prior(space)
    beliefs = [state.posterior for state in _replay_observations(space, observations)]
    mean, mode = np.array([(b.mean(), b.mode()) for b in beliefs], dtype=float).T
    low, high = np.array([b.credible_interval(mass) for b in beliefs], dtype=float).T
    figure, axes = create_axes("number of observations", f"θ = P({space.outcomes[0]})")
    axes.fill_between(np.arange(len(mean)), low, high, alpha=0.2, linewidth=0, label=f"central {mass:.0%}")
    axes.plot(mean, marker="o", label="mean")
    axes.plot(mode, marker="s", linestyle="none", color=RED, label="MAP")
    axes.locator_params(axis="x", integer=True)
    axes.set_ylim(-0.02, 1.02)
    axes.legend(frameon=False)
    return figure


def description_lengths(space: Hypotheses[NameT]) -> Figure:
    """Plot the bits that name each hypothesis, and on top of them the bits of the observations given it.

    The MAP hypothesis has the lowest bar. A hypothesis that was ruled out has none: it would need infinitely many.
    """
    names = space.possible
    parts = np.array([space.bits[name] for name in names])  # (hypotheses, 2)
    figure, axes = create_axes("hypothesis", "bits")
    labels, best = [str(name) for name in names], space.map_set()
    axes.bar(labels, parts[:, 0], color=CLASS_COLOURS[0], width=0.7, label="the hypothesis: -log2 P(h)")
    axes.bar(labels, parts[:, 1], bottom=parts[:, 0], color=CLASS_COLOURS[4], width=0.7, label="the data: -log2 P(D|h)")
    for k, (name, total) in enumerate(zip(names, parts.sum(axis=1), strict=True)):
        axes.annotate(f"{total:.2f}", (k, total), ha="center", va="bottom", weight="bold" if name in best else "normal")
    axes.legend(frameon=False)
    return figure


def version_space(
    space: Hypotheses[NameT],
    inputs: Sequence[object],
    examples: Sequence[tuple[object, object]] = (),
    outcome: Hashable = "+",
) -> Figure:
    """Plot the inputs for which each hypothesis predicts ``outcome``, and below it the vote of all hypotheses.

    Possible hypotheses are at the top and dark; the ones ruled out are below the line and faded. The observations must
    be pairs ``(input, label)``; ``examples`` are marked above the vote.
    """
    possible = space.possible
    order = possible + [name for name in space.names if name not in possible]
    row, column = list(space.likelihood.outcomes).index(outcome), [space.names.index(name) for name in order]
    p = np.array([space.votes(x)[row, column] for x in inputs]).T  # (hypotheses, inputs)
    # (hypotheses, 1)
    faded = np.where(np.arange(len(order)) < len(possible), 1.0, 0.3)[:, None]
    figure = create_figure(6, 6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    above.imshow(p * faded, aspect="auto", cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
    above.axhline(len(possible) - 0.5, color=RED, linewidth=1)
    above.set(ylabel=f"hypotheses ({len(possible)} of {len(order)} possible)", yticks=[])
    below.bar(np.arange(len(inputs)), [space.predict_proba(x)[outcome] for x in inputs], color=BLUE)
    below.axhline(0.5, color="0.6", linewidth=1, linestyle="--")
    for x, label in examples:
        below.text(list(inputs).index(x), 1.07, str(label), ha="center", color=RED, weight="bold")
    below.set_xticks(np.arange(len(inputs)), [str(x) for x in inputs])
    below.set(ylim=(0, 1.3), ylabel=f"vote for {outcome}", xlabel="input")
    return figure


def _choose_named(curves: Array) -> Array:
    """Return the hypotheses to name, given curves (observations, hypotheses): all, or the highest at any time."""
    if curves.shape[1] <= MAX_NAMED_CURVES:
        return np.arange(curves.shape[1])
    return np.sort(np.argsort(-curves.max(axis=0), kind="stable")[:MAX_NAMED_CURVES])


def _replay_observations(space: SpaceT, observations: Sequence[object]) -> Iterator[SpaceT]:
    """Yield the space without observations, and after each observation."""
    state = space.clone_unfitted()
    yield state
    for observation in observations:
        yield state.update(observation)


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
