"""Figures of an evaluation: what a model gets right, how reliable its probabilities are, and what decisions cost."""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.errors import DataError
from priory.estimators.dependence import Dependence
from priory.evaluation.scores import Scores
from priory.model.ledger import Ledger, LedgerLine
from priory.model.ledger_output import DECIBANS_PER_NAT, format_value
from priory.plots.canvas import BLUE, CLASS_COLOURS, INK_COLOUR, RED, create_axes, create_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def expected_costs(cost: ArrayLike, classes: Sequence[Hashable], reject: float | None = None) -> Figure:
    """Plot the expected cost of each answer against the probability of the second class, and the threshold.

    ``cost[i][j]`` is the cost of answering class j when class i is true, and ``reject`` the cost of asking a person, as
    for ``decide``.
    """
    costs = np.asarray(cost, dtype=float)
    if costs.shape != (2, 2) or len(classes) != 2:
        raise DataError(f"{len(classes)} classes and costs of shape {costs.shape}: this figure is for two classes.")
    p = np.linspace(0, 1, 201)
    lines = np.column_stack([1 - p, p]) @ costs  # (points, answers)
    figure, axes = create_axes(f"P({classes[1]} | x)", "expected cost of the answer")
    for k, name in enumerate(classes):
        axes.plot(p, lines[:, k], color=CLASS_COLOURS[k], label=f"answer {name}")
    if reject is not None:
        axes.axhline(reject, color=CLASS_COLOURS[2], linestyle="--", label="ask a person")
    false_alarm, missed = costs[0, 1] - costs[0, 0], costs[1, 0] - costs[1, 1]
    if false_alarm > 0 and missed > 0:
        threshold = false_alarm / (false_alarm + missed)
        axes.axvline(threshold, color=RED, linestyle=":", label=f"threshold {threshold:.3g}")
    axes.set(xlim=(0, 1), ylim=(0, None))
    axes.legend(frameon=False)
    return figure


MAX_EVIDENCE_BARS = 15
MAX_DRAWN_CLASSES = 60  # in a confusion matrix
MAX_ANNOTATED_CLASSES = 15  # with more classes, the cells of a confusion matrix have no numbers
RELIABILITY_STYLES = (
    ("#8e5bb5", "^", ":"),
    ("#2a9d5c", "D", "-."),
    (RED, "s", "--"),
    (BLUE, "o", "-"),
)  # colour, marker and line; a single model gets the last style


def confusion_matrix(scores: Scores) -> Figure:
    """Plot the number of rows of each true class (down) and answer (across); darker means a larger share.

    With very many classes, only the most confused ones are shown.
    """
    chosen = _find_confused_classes(scores)
    counts, k = scores.count_answers(chosen), len(chosen)
    true = np.bincount(scores.truth, scores.weight, minlength=len(scores.classes))[chosen]
    share = counts / np.maximum(true, 1e-300)[:, None]  # (classes, answers)
    size = min(3.2 + 0.42 * k, 9.0)
    figure = create_figure(size + 0.8, size)
    axes = figure.add_subplot()
    blue = [int(BLUE[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    # (classes, answers, 4): RGBA, with the share as opacity
    cells = np.dstack([np.broadcast_to(blue, (k, k, 3)), 0.04 + 0.96 * share])
    edges = np.arange(k + 1) - 0.5
    axes.pcolormesh(edges, edges, cells)  # not imshow: a content security policy may block embedded images
    axes.set_aspect("equal")
    axes.invert_yaxis()
    _name_rows_and_columns(axes, [_format_label(scores.classes[c]) for c in chosen])
    axes.set(xlabel="answer", ylabel="truth")
    if k <= MAX_ANNOTATED_CLASSES:
        for i, j in np.argwhere(counts > 0):
            colour = "white" if share[i, j] > 0.55 else INK_COLOUR
            axes.text(j, i, f"{counts[i, j]:g}", ha="center", va="center", color=colour)
    if k < len(scores.classes):
        axes.set_title(f"the {k} of {len(scores.classes):,} classes that were confused most often", fontsize="medium")
    return figure


def _name_rows_and_columns(axes: Axes, names: list[str]) -> None:
    """Name the rows and columns of a matrix; long names are turned, so that they do not overlap."""
    tall = max(map(len, names), default=0) * len(names) > 40
    axes.set_xticks(range(len(names)), names, rotation=45 if tall else 0, ha="right" if tall else "center")
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _find_confused_classes(scores: Scores) -> Array:
    """Return the indices of the classes to show: all, or the ones with the most errors as truth or as answer."""
    if len(scores.classes) <= MAX_DRAWN_CLASSES:
        return np.arange(len(scores.classes))
    wrong = scores.answer != scores.truth
    mistakes = sum(
        np.bincount(numbers[wrong], scores.weight[wrong], minlength=len(scores.classes))
        for numbers in (scores.truth, scores.answer)
    )
    return np.sort(np.argsort(-mistakes, kind="stable")[:MAX_DRAWN_CLASSES])


def reliability_diagram(scores: Scores | Mapping[str, Scores], bins: int = 10) -> Figure:
    """Plot the accuracy against the certainty of the answers, and the number of rows at each certainty.

    Several scores can be compared, for example ``{"before": ..., "after": ...}``. A perfectly calibrated model is on
    the diagonal.
    """
    by_name = scores if isinstance(scores, Mapping) else {"": scores}
    figure = create_figure(5, 5)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    above.plot([0, 1], [0, 1], color="0.6", linewidth=1)  # perfect calibration
    wide, lowest = 0.9 / bins / len(by_name), 1.0  # the width of a bar, and the left end of the axis
    for n, (name, one) in enumerate(by_name.items()):
        colour, mark, line = RELIABILITY_STYLES[(n - len(by_name)) % len(RELIABILITY_STYLES)]
        filled = one.reliability(bins)
        right = np.array([b.accuracy.value for b in filled])
        # (2, bins): distances of the interval bounds from the value, as errorbar wants them
        reach = np.abs([[b.accuracy.low for b in filled] - right, [b.accuracy.high for b in filled] - right])
        title = f"{_format_label(name)}: calibration error {one.calibration_error.value:.1%}".removeprefix(": ")
        above.errorbar([b.certainty for b in filled], right, reach, c=colour, marker=mark, ls=line, lw=1.5, label=title)
        below.bar(
            [b.low + 0.05 / bins + (n + 0.5) * wide for b in filled], [b.rows for b in filled], wide, color=colour
        )
        lowest = min(lowest, filled[0].low)
    above.set(xlim=(lowest - 0.01, 1.01), ylim=(-0.02, 1.02), ylabel="share of right answers")
    below.set(xlabel="certainty", ylabel="rows")
    figure.legend(frameon=False, loc="outside upper left")
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def score_histogram(scores: Scores, bins: int = 20) -> Figure:
    """Plot the number of rows at each certainty, with wrong answers in red."""
    figure, axes = create_axes("certainty of the answer", "rows")
    right = scores.answer == scores.truth
    # bins below the smallest certainty are left out
    edges = np.arange(min(int(scores.certainty.min() * bins), bins - 1), bins + 1) / bins
    parts, weights = zip(*((scores.certainty[part], scores.weight[part]) for part in (~right, right)), strict=True)
    axes.hist(
        parts, edges.tolist(), weights=weights, stacked=True, color=[RED, BLUE], label=["wrong", "right"], rwidth=0.9
    )
    axes.legend(frameon=False, loc="upper left", reverse=True)
    return figure


def evidence_bars(evidence: Ledger | Sequence[tuple[Any, ...]]) -> Figure:
    """Plot the weights of evidence of one row's ledger, or of the strongest tokens of a class.

    Weights are in decibans: 10 * log10 of an odds ratio.
    """
    if isinstance(evidence, Ledger):
        # a model of one class has no second: compare the class with itself
        first, second, *_ = (*evidence.ranked(), evidence.ranked()[0])
        names = [_format_line(line) for line in evidence.entries()]
        bars = [(name, weight * DECIBANS_PER_NAT) for name, weight in zip(names, evidence.weights(), strict=True)]
        title = f"for {_format_label(evidence.classes[first])}, against {_format_label(evidence.classes[second])}"
        bars = [bars[0], *sorted(bars[1:], key=lambda bar: -abs(bar[1]))]  # the prior stays first
    else:
        bars, title = [(_format_label(token), weight) for token, weight, *_ in evidence], ""
    bars = bars[:MAX_EVIDENCE_BARS][::-1]  # barh draws from the bottom up
    figure = create_figure(6, 0.9 + 0.28 * len(bars))
    axes = figure.add_subplot()
    weights = np.array([weight for _, weight in bars])
    container = axes.barh(range(len(bars)), weights, color=np.where(weights > 0, BLUE, RED), height=0.7)
    axes.bar_label(container, [f"{weight:+.1f}" for weight in weights], padding=3, fontsize=9)
    axes.set_yticks(range(len(bars)), [name for name, _ in bars])
    axes.axvline(0, color=INK_COLOUR, linewidth=1)
    axes.margins(x=0.12, y=0.02)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_xlabel("decibans")
    axes.set_title(title, loc="left", fontsize=10)
    return figure


def learning_curve(scores_by_rows: Mapping[int, Scores], score: str = "log_loss") -> Figure:
    """Plot a score and its interval against the number of training rows; the base rate is dashed."""
    sizes = sorted(scores_by_rows)
    values = np.array([getattr(scores_by_rows[size], score) for size in sizes])  # (sizes, 3): value, low, high
    figure, axes = create_axes("training rows", score.replace("_", " "))
    axes.fill_between(sizes, values[:, 1], values[:, 2], color=BLUE, alpha=0.2, linewidth=0, label="95 % interval")
    axes.plot(sizes, values[:, 0], color=BLUE, marker="o", label="model")
    base = [scores_by_rows[size].base_score(score) for size in sizes]
    if None not in base:
        axes.plot(sizes, np.array(base, dtype=float), color=RED, linestyle="--", label="base rate")
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    axes.legend(frameon=False)
    return figure


def dependence_map(dependence: Dependence) -> Figure:
    """Plot the dependence of each pair of columns given the class, in bits per row; the title is the verdict.

    ``dependence`` is the result of `priory.measure_dependence(X, y)`.
    """
    names, k = [_format_label(name) for name in dependence.names], len(dependence.names)
    size = min(2.6 + 0.45 * k, 9.0)
    figure = create_figure(size + 1.4, size)
    axes = figure.add_subplot()
    shown = np.where(np.eye(k, dtype=bool), np.nan, dependence.bits)  # (columns, columns), without the diagonal
    top = max(float(np.nanmax(shown, initial=0.0)), 0.05)
    image = axes.imshow(shown, cmap="Blues", vmin=0.0, vmax=top)
    _name_rows_and_columns(axes, names)
    if k <= MAX_ANNOTATED_CLASSES:
        for i, j in np.argwhere(shown >= 0.005):
            dark = shown[i, j] > 0.6 * top
            axes.text(j, i, f"{shown[i, j]:.2f}", ha="center", va="center", fontsize=8, color="white" if dark else "k")
    figure.colorbar(image, ax=axes, label="bits a row", shrink=0.8)
    figure.suptitle(textwrap.fill(dependence.verdict, int(14 * (size + 1.4))), x=0.01, ha="left", fontsize=9)
    return figure


def roc_curves(scores: Scores) -> Figure:
    """Plot the ROC curve of each class (of the six worst if there are more): true against false positive rate."""
    figure, axes = create_axes("false positive rate", "true positive rate")
    figure.set_size_inches(5, 5)
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    worst = sorted(scores.worst(6), key=lambda one: -one.roc_area.value)
    if len(scores.classes) == 2:  # one curve is enough, of the rarer class: the other is its mirror image
        rarer = scores.classes[int(np.argmin(scores.shares))]
        worst = [one for one in worst if one.label == rarer]
    for one in worst:
        curve = scores.roc(one.label)
        axes.plot(curve.x, curve.y, label=f"{one.roc_area.value:.3f} {_format_label(one.label)}")
    axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
    axes.legend(frameon=False, loc="lower right", title="area")
    return figure


def _format_label(name: Hashable) -> str:
    """Return a label as text in which a dollar sign does not start a formula."""
    return format_value(name).replace("$", r"\$")


def _format_line(line: LedgerLine) -> str:
    """Return a token with its number of occurrences, a column with its value, or just the name of the prior."""
    if line.spans or line.value == "":
        return _format_label(line.name) + (f" × {len(line.spans)}" if len(line.spans) > 1 else "")
    return f"{_format_label(line.name)} = {_format_label(line.value)}"
