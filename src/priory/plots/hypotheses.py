"""Figures of hypothesis spaces: how probabilities change as observations come in."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from scipy.special import betaincinv

from priory.hypotheses import Continuum, Hypotheses
from priory.hypotheses.base import HypothesisSpace, NameT
from priory.plots.canvas import create_axes, create_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SpaceT = TypeVar("SpaceT", bound=HypothesisSpace[Any])

CURVE_MARKERS = "osD^v*Px"


def posterior_curves(space: Hypotheses[NameT], observations: Sequence[object]) -> Figure:
    """Plot the posterior probability of each hypothesis against the number of observations."""
    curves = [list(state.posterior.values()) for state in _replay_observations(space, observations)]
    figure, axes = create_axes("number of observations", "posterior probability of the hypothesis")
    for j, name in enumerate(space.names):
        axes.plot(np.array(curves)[:, j], marker=CURVE_MARKERS[j % len(CURVE_MARKERS)], label=f"P({name} | D)")
    axes.set_ylim(-0.02, 1.02)
    axes.legend(frameon=False)
    return figure


def next_outcome_curve(space: HypothesisSpace[Any], observations: Sequence[object], outcome: Hashable) -> Figure:
    """Plot the probability that the next observation is ``outcome`` against the number of observations."""
    curve = [state.predict_proba()[outcome] for state in _replay_observations(space, observations)]
    figure, axes = create_axes("number of observations", f"probability that the next one is {outcome}")
    axes.plot(curve, marker="o", color="C0")
    axes.set_ylim(min(0.4, *curve), 1.02)
    return figure


def belief(space: Continuum) -> Figure:
    """Plot the posterior density of θ, with the ML, MAP and mean values marked; the prior is dashed."""
    figure, axes = create_axes("θ", "density")
    theta = np.linspace(0.001, 0.999, 999)
    axes.plot(theta, np.exp(space.clone_unfitted().log_density(theta)), "--", color="0.6", label="prior")
    axes.plot(theta, np.exp(space.log_density(theta)), color="C0", label="posterior")
    marks = {"MAP": space.map(), "mean": float(space.posterior.mean())}
    if space.seen.n > 0:
        marks = {"ML": space.ml()} | marks
    for (name, at), style in zip(marks.items(), ("-", "--", ":"), strict=False):
        axes.axvline(at, color="C3", linestyle=style, linewidth=1, label=f"{name} {at:.3f}")
    axes.set_xlim(0, 1)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return figure


def belief_curve(space: Continuum, observations: Sequence[object], mass: float = 0.9) -> Figure:
    """Plot the posterior of θ against the number of observations: mean, mode, and the central ``mass`` of it."""
    beliefs = [state.posterior for state in _replay_observations(space, observations)]
    mean, mode = np.array([(b.mean(), b.mode()) for b in beliefs], dtype=float).T
    low, high = np.array([betaincinv(b.a, b.b, [(1 - mass) / 2, (1 + mass) / 2]) for b in beliefs]).T
    figure, axes = create_axes("number of observations", f"θ = P({space.outcomes[0]})")
    axes.fill_between(np.arange(len(mean)), low, high, alpha=0.2, linewidth=0, label=f"central {mass:.0%}")
    axes.plot(mean, marker="o", label="mean")
    axes.plot(mode, marker="s", linestyle="none", color="C3", label="MAP")
    axes.set_ylim(-0.02, 1.02)
    axes.legend(frameon=False)
    return figure


def version_space(
    space: Hypotheses[NameT],
    inputs: Sequence[object],
    examples: Sequence[tuple[object, object]] = (),
    outcome: Hashable = "+",
) -> Figure:
    """Plot which inputs each hypothesis predicts to be ``outcome``, and below that the vote of all hypotheses.

    The hypotheses that are still possible are at the top and dark, those ruled out are below the line and faded. For
    hypotheses about labelled inputs, observed as ``(input, label)``; ``examples`` are marked above the vote.
    """
    possible = space.possible
    order = possible + [name for name in space.names if name not in possible]
    row, column = list(space.likelihood.outcomes).index(outcome), [space.names.index(name) for name in order]
    p = np.array([space.votes(x)[row, column] for x in inputs]).T  # (hypotheses, inputs)
    faded = np.where(np.arange(len(order)) < len(possible), 1.0, 0.3)[:, None]
    figure = create_figure(6, 6)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    above.imshow(p * faded, aspect="auto", cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
    above.axhline(len(possible) - 0.5, color="C3", linewidth=1)
    above.set(ylabel=f"hypotheses ({len(possible)} of {len(order)} possible)", yticks=[])
    below.bar(np.arange(len(inputs)), [space.predict_proba(x)[outcome] for x in inputs], color="C0")
    below.axhline(0.5, color="0.6", linewidth=1, linestyle="--")
    for x, label in examples:
        below.text(list(inputs).index(x), 1.07, str(label), ha="center", color="C3", weight="bold")
    below.set_xticks(np.arange(len(inputs)), [str(x) for x in inputs])
    below.set(ylim=(0, 1.3), ylabel=f"vote for {outcome}", xlabel="input")
    return figure


def _replay_observations(space: SpaceT, observations: Sequence[object]) -> Iterator[SpaceT]:
    """Yield the space before anything was observed, and after each observation."""
    state = space.clone_unfitted()
    yield state
    for observation in observations:
        yield state.update(observation)
