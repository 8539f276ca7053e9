"""Figures of naive Bayes: densities of the classes and their borders, words, and the nomogram of a model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from priory.core.sharding import space_evenly
from priory.core.typing import Array, Label
from priory.errors import DataError
from priory.models.explanation import Ledgers
from priory.models.ledger_formatting import format_value
from priory.models.probability_tables import ProbabilityTables
from priory.plots.canvas import CLASS_COLOURS, INK_COLOUR, create_axes, create_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GRID_POINTS = 400
REGION_POINTS = 200  # in each direction of a plane
MARKERS = "osD^vP*X"
MAX_NOMOGRAM_COLUMNS = 20
MAX_NOMOGRAM_VALUES = 12
PROBABILITY_TICKS = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
OFFSET = "offset points"  # a position relative to a point, in matplotlib's words


class DensityModel(Protocol):
    """A fitted classifier that knows p(c, x), such as `priory.NaiveBayes` or `priory.naive_bayes.GaussianBayes`."""

    @property
    def classes_(self) -> Array: ...

    @property
    def n_features_in_(self) -> int: ...

    def predict_joint_log_proba(self, X: Array) -> Array: ...


class TableModel(Protocol):
    """A fitted `priory.NaiveBayes`."""

    @property
    def classes_(self) -> Array: ...

    @property
    def tables_(self) -> ProbabilityTables: ...

    @property
    def column_kinds_(self) -> dict[str, str]: ...

    def explain(self, X: Sequence[dict[str, object]]) -> Ledgers: ...


class WordModel(Protocol):
    """A fitted `priory.TextClassifier`."""

    @property
    def classes_(self) -> Array: ...

    @property
    def vocabulary_(self) -> list[str]: ...

    @property
    def word_probabilities_(self) -> Array: ...


def class_densities(model: DensityModel, x: ArrayLike, y: ArrayLike | None = None, name: str | None = None) -> Figure:
    """Plot P(c) p(x | c) of each class of a model of one column, and the borders where the answer changes.

    Parameters
    ----------
    model : a classifier of one column of numbers
    x : the values of the column
    y : their classes, optional
        Where they are given, the values are marked below the curves.
    name : of the column, optional
        By default the one that the model was fitted with.
    """
    values = np.ravel(np.asarray(x, dtype=float))
    _check_columns(model, 1)
    grid = _spread_grid(values, GRID_POINTS)
    joint = np.exp(_score_points(model, grid[:, None]))  # (points, classes)
    (x_label,) = _name_axes(model, ["x"]) if name is None else [name]
    figure, axes = create_axes(x_label, "P(class) p(x | class)")
    winner = joint.argmax(axis=1)
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
    """Plot the regions of a model of two columns of numbers, the densities of its classes, and the rows.

    Parameters
    ----------
    model : a classifier of two columns of numbers
    X, y : rows and their classes
    names : of the two columns, optional
        By default those that the model was fitted with.
    """
    rows, labels = np.asarray(X, dtype=float), np.asarray(y)
    _check_columns(model, 2)
    across, up = (_spread_grid(rows[:, j], REGION_POINTS) for j in (0, 1))
    plane = np.stack(np.meshgrid(across, up), axis=-1)  # (up, across, 2)
    joint = _score_points(model, plane.reshape(-1, 2)).reshape(*plane.shape[:2], -1)
    figure, axes = create_axes(*(_name_axes(model, ["x1", "x2"]) if names is None else names))
    figure.set_size_inches(6, 4.6)
    classes = model.classes_.tolist()
    levels = np.arange(len(classes) + 1) - 0.5
    colours = [CLASS_COLOURS[c % len(CLASS_COLOURS)] for c in range(len(classes))]
    axes.contourf(across, up, joint.argmax(axis=-1), levels, colors=colours, alpha=0.15)
    for c, label in enumerate(classes):
        density = np.exp(joint[..., c] - joint[..., c].max())
        axes.contour(across, up, density, [0.05, 0.25, 0.6], colors=colours[c], linewidths=1)
        own = rows[labels == label]
        marker = MARKERS[c % len(MARKERS)]
        axes.scatter(
            own[:, 0], own[:, 1], s=14, color=colours[c], marker=marker, edgecolors="white", linewidths=0.4, zorder=3
        )
        axes.plot([], [], marker, color=colours[c], linestyle="none", label=format_value(label))
    figure.legend(frameon=False, loc="outside upper left", ncols=min(len(classes), 6))
    return figure


def word_probabilities(model: WordModel, max_names: int = 5) -> Figure:
    """Plot P(word | class) of all words, a panel for each class; the words that stand out most are named.

    The words are in the order of ``vocabulary_``.
    """
    words = model.vocabulary_
    shares = model.word_probabilities_  # (classes, words)
    n_shown = min(len(shares), 6)
    figure = create_figure(6, 1.2 + 1.3 * n_shown)
    panels = figure.subplots(n_shown, 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for c, (axes, label) in enumerate(zip(panels, model.classes_.tolist(), strict=False)):
        axes.vlines(np.arange(len(words)), 0, shares[c], color=CLASS_COLOURS[c % len(CLASS_COLOURS)], linewidth=1)
        others = np.delete(shares, c, axis=0).max(axis=0) if len(shares) > 1 else np.zeros(len(words))
        taken: list[int] = []
        for w in np.argsort(others - shares[c], kind="stable").tolist():
            if len(taken) == max_names:
                break
            if all(abs(w - other) > 0.09 * len(words) for other in taken):  # names beside each other would overlap
                axes.annotate(words[w], (w, shares[c, w]), fontsize=8, ha="center", va="bottom")
                taken.append(w)
        axes.set_title(format_value(label), loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(y=0.2)
    panels[-1].set_xlabel(f"the {len(words):,} words of the vocabulary")
    figure.supylabel("P(word | class)", fontsize=10)
    return figure


def nomogram(model: TableModel, label: Label | None = None) -> Figure:
    """Plot how far each value of each column moves the log odds of one class against the other.

    Find the values of a row, add up their log odds and that of the prior: the scale at the bottom turns the sum into
    the probability that ``predict_proba`` gives. A value that one of the classes rules out has infinite log odds: it is
    drawn beyond the others, with an arrow. For two classes, and for a model without corrections of several
    columns together: ``NaiveBayes(calibrate=False)`` or ``NaiveBayes.textbook()``.
    """
    label = model.classes_.tolist()[-1] if label is None else label
    points = read_nomogram(model, label)
    columns = sorted((name for name in points if name != "prior"), key=lambda name: -_measure_reach(points[name]))
    columns = columns[:MAX_NOMOGRAM_COLUMNS]
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


def read_nomogram(model: TableModel, label: Label) -> dict[str, dict[object, float]]:
    """The numbers of a nomogram: for every column and value what it adds to the log odds of ``label``.

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
        rows = [{**empty, name: value} for value in values]
        points[name] = {}
        for value, ledger in zip(values, model.explain(rows), strict=True):
            if any(line.name == "(together)" for line in ledger.lines):
                raise DataError(
                    "the model has corrections of several columns together, which a nomogram cannot show; "
                    "use NaiveBayes(calibrate=False) or NaiveBayes.textbook()."
                )
            weights = ledger.weights(label, next(c for c in classes if c != label))
            at = [line.name for line in ledger.entries()].index(name, 1)
            points[name][value] = weights[at]
            points.setdefault("prior", {})[""] = weights[0]
    return points


def _choose_numbers(model: TableModel, name: str) -> list[object]:
    """Evenly spaced values of a column of numbers, as far as its classes reach."""
    entries = {(one.value, one.label): one.estimate for one in model.tables_.estimates if one.column == name}
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
    """How far the values of a column are apart; infinitely far if one of them has infinite log odds."""
    low, high = min(points.values()), max(points.values())
    return high - low if low < high else 0.0


def _find_ends(points: dict[str, dict[object, float]]) -> tuple[float, float]:
    """Where infinite log odds are drawn: a little beyond all that are finite."""
    finite = [x for column in points.values() for x in column.values() if np.isfinite(x)] or [0.0]
    low, high = min(0.0, *finite), max(0.0, *finite)
    reach = 0.15 * ((high - low) or 1.0)
    return low - reach, high + reach


def _draw_scale(axes: Axes, height: float, points: dict[object, float], ends: tuple[float, float]) -> None:
    """The values of a column at their log odds; those of infinite log odds at the ends, as arrows.

    Of many values, all have a dot and some a name.
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
    """log p(c, x) at some points, whose columns are in the model's order."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        return model.predict_joint_log_proba(points)


def _name_axes(model: DensityModel, default: list[str]) -> list[str]:
    """The names of the columns that a model was fitted with, if they had any."""
    return [str(name) for name in getattr(model, "feature_names_in_", default)]


def _spread_grid(values: Array, points: int) -> Array:
    """Evenly spaced values, a little beyond the data on both sides."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    reach = 0.12 * ((high - low) or 1.0)
    return np.linspace(low - reach, high + reach, points)
