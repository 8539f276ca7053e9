"""Figures of naive Bayes: class densities, decision regions, word probabilities, and nomograms."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core.sharding import space_evenly
from priory.core.typing import Label
from priory.errors import DataError
from priory.model.ledger_output import format_value
from priory.plots.canvas import CLASS_COLOURS, INK_COLOUR, create_axes, create_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from priory.estimators.naive_bayes import NaiveBayes
    from priory.estimators.text_classifier import TextClassifier
    from priory.naive_bayes import GaussianBayes, GaussianNB

    DensityModel = NaiveBayes | GaussianBayes | GaussianNB  # which know p(c, x)


GRID_POINTS = 400
REGION_POINTS = 200  # along each axis
MARKERS = "osD^vP*X"
MAX_NOMOGRAM_COLUMNS = 20
MAX_NOMOGRAM_VALUES = 12
PROBABILITY_TICKS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
OFFSET = "offset points"  # matplotlib's name for coordinates relative to a point


def class_densities(model: DensityModel, x: ArrayLike, y: ArrayLike | None = None, name: str | None = None) -> Figure:
    """Plot P(c) p(x | c) of each class of a model of one column, and the decision boundaries.

    Parameters
    ----------
    model : a classifier of one column of numbers
    x : the values of the column
    y : their classes, optional
        If given, the values are marked below the curves.
    name : name of the column, optional
        By default the name that the model was fitted with.
    """
    values = np.ravel(np.asarray(x, dtype=float))
    _check_columns(model, 1)
    grid = _spread_grid(values, GRID_POINTS)
    joint = np.exp(_score_points(model, grid[:, None]))  # (points, classes)
    (x_label,) = _name_axes(model, ["x"]) if name is None else [name]
    figure, axes = create_axes(x_label, "P(class) p(x | class)")
    winner = joint.argmax(axis=1)  # (points,)
    # grid points where the most probable class changes
    borders = grid[1:][winner[1:] != winner[:-1]]
    for c, label in enumerate(model.classes_.tolist()):
        colour = CLASS_COLOURS[c % len(CLASS_COLOURS)]
        axes.plot(grid, joint[:, c], color=colour, label=format_value(label))
        axes.fill_between(grid, joint[:, c], where=winner == c, color=colour, alpha=0.15, linewidth=0)
        if y is not None:
            own = values[np.asarray(y) == label]
            axes.plot(own, np.full(len(own), -0.02 * (c + 1) * joint.max()), "|", color=colour)
    for i, border in enumerate(borders):
        axes.axvline(border, color=INK_COLOUR, linestyle="--", linewidth=1, label="border" if i == 0 else None)
        axes.annotate(f"{border:.3g}", (border, joint.max()), ha="left", va="top", xytext=(3, 0), textcoords=OFFSET)
    axes.legend(frameon=False)
    return figure


def decision_regions(model: DensityModel, X: ArrayLike, y: ArrayLike, names: Sequence[str] | None = None) -> Figure:
    """Plot the decision regions of a model of two numeric columns, its class densities, and the rows.

    Parameters
    ----------
    model : a classifier of two columns of numbers
    X, y : rows and their classes
    names : names of the two columns, optional
        By default the names that the model was fitted with.
    """
    rows, labels = np.asarray(X, dtype=float), np.asarray(y)
    _check_columns(model, 2)
    across, up = (_spread_grid(rows[:, j], REGION_POINTS) for j in (0, 1))
    plane = np.stack(np.meshgrid(across, up), axis=-1)  # (up, across, 2)
    # (up, across, classes): log p(c, x) at each grid point
    joint = _score_points(model, plane.reshape(-1, 2)).reshape(*plane.shape[:2], -1)
    figure, axes = create_axes(*(_name_axes(model, ["x1", "x2"]) if names is None else names))
    figure.set_size_inches(6, 4.6)
    classes = model.classes_.tolist()
    levels = np.arange(len(classes) + 1) - 0.5  # one colour band for each class index
    colours = [CLASS_COLOURS[c % len(CLASS_COLOURS)] for c in range(len(classes))]  # repeated if there are more classes
    axes.contourf(across, up, joint.argmax(axis=-1), levels, colors=colours, alpha=0.15)
    for c, label in enumerate(classes):
        density = np.exp(joint[..., c] - joint[..., c].max())  # relative to its peak
        axes.contour(across, up, density, [0.05, 0.25, 0.6], colors=colours[c], linewidths=1)
        own = rows[labels == label]
        marker = MARKERS[c % len(MARKERS)]
        axes.scatter(
            own[:, 0], own[:, 1], s=14, color=colours[c], marker=marker, edgecolors="white", linewidths=0.4, zorder=3
        )
        axes.plot([], [], marker, color=colours[c], linestyle="none", label=format_value(label))
    figure.legend(frameon=False, loc="outside upper left", ncols=min(len(classes), 6))
    return figure


def word_probabilities(model: TextClassifier, max_names: int = 5) -> Figure:
    """Plot P(word | class) of all words, one panel per class, with the most distinctive words named.

    The words are in the order of ``vocabulary_``.
    """
    words = model.vocabulary_
    shares = model.word_probabilities_  # (classes, words)
    n_shown = min(len(shares), 6)
    figure = create_figure(6, 1.2 + 1.3 * n_shown)
    panels = figure.subplots(n_shown, 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for c, (axes, label) in enumerate(zip(panels, model.classes_.tolist(), strict=False)):
        axes.vlines(np.arange(len(words)), 0, shares[c], color=CLASS_COLOURS[c % len(CLASS_COLOURS)], linewidth=1)
        # (words,): the largest probability of each word in the other classes
        others = np.delete(shares, c, axis=0).max(axis=0) if len(shares) > 1 else np.zeros(len(words))
        taken: list[int] = []
        for w in np.argsort(others - shares[c], kind="stable").tolist():
            if len(taken) == max_names:
                break
            if all(abs(w - other) > 0.09 * len(words) for other in taken):  # adjacent names would overlap
                axes.annotate(words[w], (w, shares[c, w]), fontsize=8, ha="center", va="bottom")
                taken.append(w)
        axes.set_title(format_value(label), loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(y=0.2)
    panels[-1].set_xlabel(f"the {len(words):,} words of the vocabulary")
    figure.supylabel("P(word | class)", fontsize=10)
    return figure


def nomogram(model: NaiveBayes, label: Label | None = None) -> Figure:
    """Plot the log odds that each value of each column contributes to one class against the other.

    Add up the log odds of the values of a row and of the prior; the scale at the bottom converts the sum to the
    probability that ``predict_proba`` returns. A value that is impossible in one class has infinite log odds, and is
    drawn as an arrow beyond the others. The model must have two classes and no corrections:
    ``NaiveBayes(calibrate=False)`` or ``NaiveBayes.textbook()``.
    """
    label = model.classes_.tolist()[-1] if label is None else label
    points = read_nomogram(model, label)
    columns = sorted((name for name in points if name != "prior"), key=lambda name: -_measure_reach(points[name]))
    columns = columns[:MAX_NOMOGRAM_COLUMNS]  # those with the largest range
    figure = create_figure(6.5, 1.6 + 0.55 * (len(columns) + 2))
    axes, below = figure.subplots(2, 1, height_ratios=[len(columns) + 1, 1])
    ends = _find_ends(points)
    for row, name in enumerate(["prior", *columns]):
        _draw_scale(axes, -row, points[name], ends)
    axes.set_yticks(-np.arange(len(columns) + 1), [format_value(name) for name in ("prior", *columns)])
    axes.set_ylim(-len(columns) - 0.6, 0.75)
    axes.axvline(0, color="0.7", linewidth=1, zorder=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(f"log odds for {format_value(label)}")
    axes.margins(x=0.06)
    _draw_probability_scale(below, points, columns, format_value(label))
    return figure


def read_nomogram(model: NaiveBayes, label: Label) -> dict[str, dict[object, float]]:
    """Return the log odds of ``label`` that each value of each column contributes.

    The prior is the column "prior" with the single value "".
    """
    classes = model.classes_.tolist()
    if len(classes) != 2 or label not in classes:
        raise DataError(f"a nomogram is for two classes, one of them {label!r}; the model has {classes[:10]}.")
    kinds = model.column_kinds_
    empty: dict[str, object] = dict.fromkeys(kinds)
    frame = [(one.column, one.value) for one in model.tables_.estimates]
    points: dict[str, dict[object, float]] = {}
    for name, kind in kinds.items():
        values = list(dict.fromkeys(value for column, value in frame if column == name))
        if kind == "number":
            values = _choose_numbers(model, name)
        if kind == "text" or not values:
            continue
        # one row per value, with all other columns missing: its ledger has the contribution of this value
        rows = [{**empty, name: value} for value in values]
        points[name] = {}
        for value, ledger in zip(values, model.explain(rows), strict=True):
            if ledger.corrections:
                raise DataError(
                    "the model has corrections, by which columns do not simply add up; for a nomogram use "
                    "NaiveBayes(calibrate=False) or NaiveBayes.textbook()."
                )
            weights = ledger.weights(label, next(c for c in classes if c != label))
            # entry 0 is the prior
            at = [line.name for line in ledger.entries()].index(name, 1)
            points[name][value] = weights[at]
            points.setdefault("prior", {})[""] = weights[0]
    return points


def _choose_numbers(model: NaiveBayes, name: str) -> list[object]:
    """Return evenly spaced values of a numeric column, over 2.5 standard deviations around each class mean."""
    entries = {(one.value, one.label): one.estimate for one in model.tables_.estimates if one.column == name}
    # a Bernoulli column
    if all(value in (0, 1) for value, _ in entries):
        return [0.0, 1.0]
    labels = model.classes_.tolist()
    if ("mean", labels[0]) in entries and ("variance", labels[0]) in entries:
        bounds = [
            entries["mean", label] + sign * 2.5 * np.sqrt(entries["variance", label])
            for label in labels
            for sign in (-1, 1)
        ]
        return [float(f"{x:.3g}") for x in np.linspace(min(bounds), max(bounds), 9)]
    raise DataError(f"column {name!r} has a family that a nomogram cannot show; use Gaussian, Bernoulli or labels.")


def _measure_reach(points: dict[object, float]) -> float:
    """Return the range of the log odds of a column, which may be infinite."""
    low, high = min(points.values()), max(points.values())
    return high - low if low < high else 0.0


def _find_ends(points: dict[str, dict[object, float]]) -> tuple[float, float]:
    """Return the positions at which infinite log odds are drawn, a little beyond the finite ones."""
    finite = [x for column in points.values() for x in column.values() if np.isfinite(x)] or [0.0]
    low, high = min(0.0, *finite), max(0.0, *finite)
    reach = 0.15 * ((high - low) or 1.0)
    return low - reach, high + reach


def _draw_scale(axes: Axes, height: float, points: dict[object, float], ends: tuple[float, float]) -> None:
    """Draw the values of a column at their log odds, with infinite ones as arrows at the ends.

    Every value has a dot; if there are many, only some are named.
    """
    names = {value: f"{x:+.2f}" if value == "" else format_value(value) for value, x in points.items()}
    finite = sorted((x, names[value]) for value, x in points.items() if np.isfinite(x))
    marks = [(*finite[k], "center") for k in space_evenly(len(finite), MAX_NOMOGRAM_VALUES)]
    axes.plot([x for x, _ in finite], [height] * len(finite), "o", color=CLASS_COLOURS[0], markersize=4)
    infinite = ((-np.inf, ends[0], "impossible", "<", "left"), (np.inf, ends[1], "certain", ">", "right"))
    for log_odds, end, word, marker, side in infinite:
        values = [names[value] for value, x in points.items() if x == log_odds]
        if values:
            axes.plot([end], [height], marker, color=CLASS_COLOURS[0], markersize=7)
            marks.append((end, f"{', '.join(values[:MAX_NOMOGRAM_VALUES])}: {word}", side))
    marks.sort()
    axes.plot([marks[0][0], marks[-1][0]], [height, height], color=INK_COLOUR, linewidth=1, zorder=1)
    # names alternate above and below the line, to avoid overlaps
    for k, (x, text, side) in enumerate(marks):
        axes.annotate(
            text, (x, height), xytext=(0, 5 if k % 2 == 0 else -5), textcoords=OFFSET, fontsize=8, ha=side,
            va="bottom" if k % 2 == 0 else "top",
        )  # fmt: skip


def _draw_probability_scale(
    axes: Axes, points: dict[str, dict[object, float]], columns: Sequence[str], label: str
) -> None:
    finite = [[x for x in points[name].values() if np.isfinite(x)] or [0.0] for name in columns]
    prior = points.get("prior", {}).get("", 0.0)
    low, high = (prior + sum(pick(xs) for xs in finite) for pick in (min, max))
    # beyond ±8 the probability is practically 0 or 1
    low, high = max(low, -8.0), min(high, 8.0)
    shown = [p for p in PROBABILITY_TICKS if low - 0.5 <= np.log(p / (1 - p)) <= high + 0.5]
    axes.set_xlim(low - 0.5, high + 0.5)
    axes.set_yticks([])
    axes.spines[["left", "right", "top"]].set_visible(False)
    axes.spines["bottom"].set_position(("axes", 0.6))
    axes.set_xlabel("sum of log odds")
    for p in shown:
        axes.annotate(
            f"{p:g}", (np.log(p / (1 - p)), 0.6), xycoords=("data", "axes fraction"), xytext=(0, 5),
            textcoords=OFFSET, fontsize=8, ha="center",
        )  # fmt: skip
    axes.set_title(f"P({label})", loc="left", fontsize=9)


def _check_columns(model: DensityModel, n_columns: int) -> None:
    if model.n_features_in_ != n_columns:
        raise DataError(f"the model has {model.n_features_in_} columns; fit one on {n_columns} for this figure.")


def _score_points(model: DensityModel, points: Array) -> Array:
    """Return log p(c, x) at some points, (points, classes), with columns in the model's order."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return model.predict_joint_log_proba(points)


def _name_axes(model: DensityModel, default: list[str]) -> list[str]:
    """Return the names of the columns that a model was fitted with, or the defaults."""
    return [str(name) for name in getattr(model, "feature_names_in_", default)]


def _spread_grid(values: Array, points: int) -> Array:
    """Return evenly spaced values, a little beyond the data on both sides."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    reach = 0.12 * ((high - low) or 1.0)
    return np.linspace(low - reach, high + reach, points)
