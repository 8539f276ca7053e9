"""Figures of judgement: what a model gets right, whether its probabilities hold, and which evidence moved it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from priory.evaluation.scores import Scores
from priory.models.explanation import DECIBANS_PER_NAT, Ledger, LedgerLine, format_value
from priory.plots.canvas import BLUE, INK_COLOUR, RED, create_axes, create_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_EVIDENCE_BARS = 15  # lines of evidence shown
MAX_ANNOTATED_CLASSES = 15  # a confusion matrix of more classes has no numbers in its cells
RELIABILITY_STYLES = (
    ("#8e5bb5", "^", ":"),
    ("#2a9d5c", "D", "-."),
    (RED, "s", "--"),
    (BLUE, "o", "-"),
)  # the last is the best


def confusion_matrix(scores: Scores) -> Figure:
    """How many rows of each class (down) were given which answer (across); the darker, the larger its share."""
    counts, k = scores.confusion, len(scores.classes)
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    size = min(3.2 + 0.42 * k, 9.0)
    figure = create_figure(size + 0.8, size)
    axes = figure.add_subplot()
    blue = [int(BLUE[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    axes.imshow(np.dstack([np.broadcast_to(blue, (k, k, 3)), 0.04 + 0.96 * share]), interpolation="nearest")
    names = [_format_label(label) for label in scores.classes]
    tall = max(map(len, names)) * k > 40
    axes.set_xticks(range(k), names, rotation=45 if tall else 0, ha="right" if tall else "center")
    axes.set_yticks(range(k), names)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set(xlabel="answer", ylabel="truth")
    if k <= MAX_ANNOTATED_CLASSES:
        for i, j in np.argwhere(counts > 0):
            colour = "white" if share[i, j] > 0.55 else INK_COLOUR
            axes.text(j, i, f"{counts[i, j]:g}", ha="center", va="center", color=colour)
    return figure


def reliability_diagram(scores: Scores | Mapping[str, Scores], bins: int = 10) -> Figure:
    """How often answers are right against how certain they were, and how many rows were how certain.

    Several judgements, say before and after calibration, are given by name. On the diagonal, certainty is honest.
    """
    several = scores if isinstance(scores, Mapping) else {"": scores}
    figure = create_figure(5, 5)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    above.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    wide, lowest = 0.9 / bins / len(several), 1.0
    for n, (name, one) in enumerate(several.items()):
        colour, mark, line = RELIABILITY_STYLES[(n - len(several)) % len(RELIABILITY_STYLES)]
        seen = one.reliability(bins)
        right = np.array([b.accuracy.value for b in seen])
        reach = np.abs([[b.accuracy.low for b in seen] - right, [b.accuracy.high for b in seen] - right])
        title = f"{_format_label(name)}: calibration error {one.calibration_error.value:.1%}".removeprefix(": ")
        above.errorbar([b.certainty for b in seen], right, reach, c=colour, marker=mark, ls=line, lw=1.5, label=title)
        below.bar([b.low + 0.05 / bins + (n + 0.5) * wide for b in seen], [b.rows for b in seen], wide, color=colour)
        lowest = min(lowest, seen[0].low)
    above.set(xlim=(lowest - 0.01, 1.01), ylim=(-0.02, 1.02), ylabel="share of right answers")
    below.set(xlabel="certainty", ylabel="rows")
    figure.legend(frameon=False, loc="outside upper left")
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def score_histogram(scores: Scores, bins: int = 20) -> Figure:
    """How many rows were answered with which certainty, the wrong ones in red."""
    figure, axes = create_axes("certainty of the answer", "rows")
    right = scores.answer == scores.truth
    edges = np.arange(min(int(scores.certainty.min() * bins), bins - 1), bins + 1) / bins
    parts, weights = zip(*((scores.certainty[part], scores.weight[part]) for part in (~right, right)), strict=True)
    axes.hist(
        parts, edges.tolist(), weights=weights, stacked=True, color=[RED, BLUE], label=["wrong", "right"], rwidth=0.9
    )
    axes.legend(frameon=False, loc="upper left", reverse=True)
    return figure


def evidence_bars(evidence: Ledger | Sequence[tuple[Any, ...]]) -> Figure:
    """The weight of each piece of evidence in decibans: of one row's ledger, or of a class's strongest tokens."""
    if isinstance(evidence, Ledger):
        first, second, *_ = (*evidence.ranked(), evidence.ranked()[0])
        names = [_format_line(line) for line in evidence.entries()]
        bars = [(name, weight * DECIBANS_PER_NAT) for name, weight in zip(names, evidence.weights(), strict=True)]
        title = f"for {_format_label(evidence.classes[first])}, against {_format_label(evidence.classes[second])}"
        bars = [bars[0], *sorted(bars[1:], key=lambda bar: -abs(bar[1]))]
    else:
        bars, title = [(_format_label(token), weight) for token, weight, *_ in evidence], ""
    bars = bars[:MAX_EVIDENCE_BARS][::-1]
    figure = create_figure(6, 0.9 + 0.28 * len(bars))
    axes = figure.add_subplot()
    weights = np.array([weight for _, weight in bars])
    drawn = axes.barh(range(len(bars)), weights, color=np.where(weights > 0, BLUE, RED), height=0.7)
    axes.bar_label(drawn, [f"{weight:+.1f}" for weight in weights], padding=3, fontsize=9)
    axes.set_yticks(range(len(bars)), [name for name, _ in bars])
    axes.axvline(0, color=INK_COLOUR, linewidth=1)
    axes.margins(x=0.12, y=0.02)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_xlabel("decibans")
    axes.set_title(title, loc="left", fontsize=10)
    return figure


def learning_curve(scores_by_rows: Mapping[int, Scores], score: str = "log_loss") -> Figure:
    """A score against the number of rows learned, with its interval; dashed, the base rate."""
    sizes = sorted(scores_by_rows)
    values = np.array([getattr(scores_by_rows[size], score) for size in sizes])
    figure, axes = create_axes("rows learned", score.replace("_", " "))
    axes.fill_between(sizes, values[:, 1], values[:, 2], color=BLUE, alpha=0.2, linewidth=0, label="95 % interval")
    axes.plot(sizes, values[:, 0], color=BLUE, marker="o", label="model")
    base = [scores_by_rows[size].beside(score) for size in sizes]
    if None not in base:
        axes.plot(sizes, np.array(base, dtype=float), color=RED, linestyle="--", label="base rate")
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.legend(frameon=False)
    return figure


def roc_curves(scores: Scores) -> Figure:
    """The share of a class that is found against the share of the others that is taken for it."""
    figure, axes = create_axes("share of the others taken for it", "share of the class found")
    figure.set_size_inches(5, 5)
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    worst = sorted(scores.worst(6), key=lambda one: -one.roc_area.value)
    for one in worst[: 1 if len(scores.classes) == 2 else None]:
        curve = scores.roc(one.label)
        axes.plot(curve.x, curve.y, label=f"{one.roc_area.value:.3f} {_format_label(one.label)}")
    axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
    axes.legend(frameon=False, loc="lower right", title="area")
    return figure


def _format_label(name: Any) -> str:
    """A label as it is: a dollar sign begins no formula."""
    return format_value(name).replace("$", r"\$")


def _format_line(line: LedgerLine) -> str:
    """A token with the number of its places if it has several; a column with its value; the prior alone."""
    if line.spans or line.value == "":
        return _format_label(line.name) + (f" × {len(line.spans)}" if len(line.spans) > 1 else "")
    return f"{_format_label(line.name)} = {_format_label(line.value)}"
