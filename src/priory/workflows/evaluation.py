"""Evaluate a model on rows of files: by folds, groups or time, beside other models, by rows learned, and by cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Unpack

import numpy as np
import pyarrow as pa
from numpy import ndarray as Array
from sklearn.model_selection import GroupKFold, TimeSeriesSplit

from priory.errors import DataError
from priory.estimators.folds import make_splitter
from priory.estimators.learning_curve import score_by_rows
from priory.evaluation import comparison
from priory.evaluation.comparison import COMPARED_SCORES, CostScores, GroupScores, ThresholdRow, compare_scores
from priory.evaluation.decisions import Costs, find_class_index
from priory.evaluation.scores import Scores
from priory.sources import FileRows
from priory.sources.byte_streams import read_ahead
from priory.sources.cell_parsing import cast_to_text, is_text_column, looks_like_date, looks_numeric
from priory.sources.column_types import InputRows
from priory.sources.discovery import make_absent_column_error
from priory.workflows import model_files
from priory.workflows.label_files import read_label_sets, view_labels
from priory.workflows.model_files import FileOptions, FileTask
from priory.workflows.training import score_regression

if TYPE_CHECKING:
    from priory.evaluation.label_scores import LabelScores
    from priory.evaluation.regression_scores import RegressionScores
    from priory.regression.linear_regression import BayesianLinearRegression
    from priory.workflows.model_files import ModelOrPath, Paths, TableOrTextClassifier

    Classifiers = Mapping[str, TableOrTextClassifier]


DEFAULT_FOLDS = 5
Split = tuple[Array, Array]  # rows to learn from, and rows to judge


@dataclass(frozen=True)
class JudgingOptions:
    """How learned rows are left out for cross-validation.

    Parameters
    ----------
    folds : int, optional
        Learned rows: the number of folds; by default the model's own choice, or five with groups or time.
    groups : str, optional
        Learned rows: leave out together rows with the same value in this column, such as one person.
    time : str, optional
        Learned rows: judge each by a model of earlier rows only, by this column of numbers or dates.
    """

    folds: int | None = None
    groups: str | None = None
    time: str | None = None

    def __post_init__(self) -> None:
        if self.groups is not None and self.time is not None:
            raise DataError("groups and time exclude each other; give one of them")
        if self.folds is not None and self.folds < 2:
            raise DataError(f"there are {self.folds} folds; give at least 2")

    @property
    def is_default(self) -> bool:
        return self == JudgingOptions()

    @property
    def side_columns(self) -> tuple[str, ...]:
        """The columns that are read in addition to the model's own."""
        return tuple(name for name in (self.groups, self.time) if name is not None)


@dataclass
class SideColumns:
    """Columns that the model does not use, collected while rows are read."""

    names: Sequence[str]
    batches: list[pa.RecordBatch] = field(default_factory=list)

    def get(self, name: str) -> pa.Array:
        """The cells of all rows."""
        return pa.Table.from_batches(self.batches)[name].combine_chunks()

    def get_texts(self, name: str) -> Array:
        """The cells of all rows as text; a missing one is empty."""
        return np.array(cast_to_text(self.get(name)).fill_null("").to_pylist(), dtype=object)


def make_splits(labels: Array, options: JudgingOptions, side: SideColumns) -> list[Split]:
    """The rows to learn from and to judge, for each fold."""

    n_folds = options.folds or DEFAULT_FOLDS
    if options.time is not None:
        order = np.argsort(read_times(side, options.time), kind="stable")
        if len(order) <= n_folds:
            raise DataError(f"there are {len(order)} rows for {n_folds} folds by time; give fewer folds")
        return [(order[train], order[test]) for train, test in TimeSeriesSplit(n_folds).split(order)]
    if options.groups is not None:
        groups = side.get_texts(options.groups)
        n_groups = len(np.unique(groups))
        if n_groups < 2:
            raise DataError(f"column {options.groups!r} has one value only; give groups that can be left out")
        return list(GroupKFold(min(n_folds, n_groups)).split(groups, labels, groups))
    return list(make_splitter(n_folds, labels, 0).split(np.zeros((len(labels), 1)), labels))


def read_times(side: SideColumns, name: str) -> Array:
    """Read a column of numbers or ISO dates into an array that sorts by time."""
    column = side.get(name)
    if column.null_count or (is_text_column(column) and "" in column.to_pylist()):
        raise DataError(f"column {name!r} has missing cells; every row needs a time")
    if not is_text_column(column):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    if all(looks_numeric(column).to_pylist()):
        return np.array(column.cast(pa.float64()))
    cells = column.to_pylist()
    is_sortable = all(looks_like_date(column).to_pylist()) and all(cell[4:5] in ("-", "/") for cell in cells)
    if not is_sortable:
        raise DataError(f"column {name!r} has neither numbers nor dates such as 2024-05-31; convert it")
    return np.array(cells)


@dataclass(frozen=True)
class DecisionTables:
    """Mean costs of decisions, and thresholds for one class."""

    positive: str = ""
    costs: CostScores | None = None
    thresholds: list[ThresholdRow] = field(default_factory=list)

    def to_dict(self) -> dict[str, object]:
        """Everything for JSON."""
        return {
            "positive": self.positive or None,
            "costs": None if self.costs is None else self.costs.to_dict(),
            "thresholds": [row._asdict() for row in self.thresholds],
        }

    def list_blocks(self) -> list[str]:
        """The tables as text."""
        blocks = [] if self.costs is None else [str(self.costs)]
        if blocks and self.positive:
            blocks[0] += f"\nThe positive class is {self.positive}."
        if self.thresholds:
            blocks.append(comparison.format_thresholds(self.thresholds, self.positive))
        return blocks


def tabulate_decisions(
    evaluation: Evaluation,
    costs: Costs | None = None,
    positive: str | None = None,
    *,
    thresholds: bool = False,
) -> DecisionTables:
    """Tabulate mean costs, if ``costs`` are given, and thresholds of the ``positive`` class.

    The positive class is by default the rarer of two; with more classes it has to be named.
    """
    scores = evaluation.scores
    if costs is None and not thresholds:
        return DecisionTables()
    if not isinstance(scores, Scores):
        raise DataError("costs and thresholds are for models that give one class to each row")
    classes = [str(label) for label in scores.classes]
    table = None if costs is None else costs.tabulate(classes, scores.shares)
    names_positive = costs is not None and (costs.false_negative is not None or costs.false_positive is not None)
    label = _find_positive_class(classes, scores, positive) if thresholds or names_positive else ""
    return DecisionTables(
        label,
        None if table is None else comparison.compute_cost_scores(scores, table),
        comparison.compute_thresholds(scores, label, table) if thresholds else [],
    )


def _find_positive_class(classes: list[str], scores: Scores, positive: str | None) -> str:
    if positive is not None:
        return classes[find_class_index(positive, classes)]
    if len(classes) > 2:
        raise DataError(f"of {len(classes)} classes one has to be the positive one; name it")
    return classes[int(np.argmin(scores.shares))]


OWN_NAME = "priory"  # the model that is evaluated, in tables of several models
EVALUATED = ""  # the name of the model that is evaluated, among those that it is compared with


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores of a model on rows of files.

    Attributes
    ----------
    scores : Scores, RegressionScores or LabelScores
        The scores, of classes, of a number, or of several labels.
    n_rows : int
        The number of labelled rows that were read.
    by : dict of str to GroupScores
        The scores of the groups of rows that each column of ``by`` makes.
    others : dict of str to Scores
        The scores of the other models on the same rows, by name.
    curve : dict of int to Scores
        The learning curve: by number of rows learned, the scores on the rows left out.
    """

    scores: Scores | RegressionScores | LabelScores
    n_rows: int
    by: dict[str, GroupScores] = field(default_factory=dict)
    others: dict[str, Scores] = field(default_factory=dict)
    curve: dict[int, Scores] = field(default_factory=dict)

    def list_models(self) -> dict[str, Scores]:
        """The scores of the model, under the name priory, and of the models that it is compared with."""
        assert isinstance(self.scores, Scores)  # a regression is not compared
        return {OWN_NAME: self.scores, **self.others}

    def list_differences(self) -> dict[str, dict[str, dict[str, float]]]:
        """For each other model the difference between its scores and the scores of the model, as intervals."""
        found = {}
        for name, scores in self.others.items():
            difference = compare_scores(scores, self.list_models()[OWN_NAME])
            found[name] = {score: getattr(difference, score)._asdict() for score in COMPARED_SCORES}
        return found


def evaluate(
    model: ModelOrPath,
    paths: Paths | FileTask,
    *,
    learned: bool = False,
    judging: JudgingOptions | None = None,
    by: Sequence[str] = (),
    others: Mapping[str, ModelOrPath] | None = None,
    curve: bool = False,
    **given: Unpack[FileOptions],
) -> Evaluation:
    """Compare the predictions of a model with the labels of files.

    Parameters
    ----------
    model : a model file, or a model
    paths : one path or several, or a FileTask
    learned : bool
        Whether the model has learned these rows. Then each row is predicted by a model that has not (leave-one-out, or
        folds for a model with corrections), and all rows have to fit into memory.
    judging : JudgingOptions, optional
        Folds, groups and time, for rows that the model has ``learned``.
    by : sequence of str
        Columns whose values make groups of rows, each of which is scored.
    others : dict of str to model file or model, optional
        Models to compare with, by name, on the same rows and in the same folds.
    curve : bool
        Whether to score models of some of the rows on the others; for rows that the model has ``learned``.
    **given
        The target and how the files are read, as for `FileTask`.

    Returns
    -------
    Evaluation
        The scores, the number of rows, and what else was asked for.
    """
    task = model_files.make_task(paths, given)
    trained = model_files.load_model(model, task.key)
    task = task.adapt_to(trained)
    rows = task.open()
    judging = judging or JudgingOptions()
    if not learned and not (judging.is_default and not curve):
        raise DataError("folds, groups, time and curves are for rows that the model has learned; say so")
    if model_files.is_regression(trained):
        if by or others or curve or not judging.is_default:
            raise DataError("the model predicts a number; groups, comparisons and curves are for models of classes")
        found = evaluate_regression(trained, rows, task, learned=learned)
        return Evaluation(found, len(found.truth))
    if hasattr(trained, "separator_"):
        if by or others or curve or not judging.is_default:
            raise DataError("the model has several labels for each row; groups and comparisons are for one class")
        data, held = read_label_sets(trained, task)
        view = view_labels(trained)
        return Evaluation(view.evaluate() if learned else view.score_labels(data, held), len(held))
    models = {EVALUATED: trained} | {
        name: model_files.load_classifier(other, task.key) for name, other in (others or {}).items()
    }
    side = SideColumns(list(dict.fromkeys([*by, *judging.side_columns])))
    parts = _read_rows_for_all(models, rows, task, side)
    if not learned:
        scores = _score_new_rows(models, parts)
        return _summarise(scores, len(scores[EVALUATED].truth), side, by)
    tables, labels = _join_rows(parts)
    with task.callbacks.activity(f"judging {len(labels):,} rows by models that have not learned them"):
        folds = {} if judging.is_default else {"folds": make_splits(labels, judging, side)}
        scores = {name: one.evaluate(tables[name], labels, **folds) for name, one in models.items()}
    drawn = {}
    if curve:
        with task.callbacks.activity("scoring models of some of the rows"):
            drawn = score_by_rows(trained, tables[EVALUATED], labels)
    return replace(_summarise(scores, len(labels), side, by), curve=drawn)


def _summarise(scores: dict[str, Scores], n_rows: int, side: SideColumns, by: Sequence[str]) -> Evaluation:
    own, others = scores[EVALUATED], {name: one for name, one in scores.items() if name != EVALUATED}
    rows = slice(None) if own.positions is None else own.positions
    groups = {name: comparison.score_groups(own, side.get_texts(name)[rows], name) for name in by}
    return Evaluation(own, n_rows, groups, others)


def _score_new_rows(models: Classifiers, parts: Iterator[tuple[dict[str, InputRows], Array]]) -> dict[str, Scores]:
    """Score each model on new rows, which need not fit into memory."""
    answers: dict[str, list[Array]] = {name: [] for name in models}
    found: list[Array] = []
    for rows, labels in read_ahead(parts):
        found.append(labels)
        for name, model in models.items():
            answers[name].append(model.predict_log_proba(rows[name]))
    model_files.check_any_labelled(found)
    labels = np.concatenate(found)
    for model in models.values():
        model_files.check_known_labels(model, labels)
    return {
        name: Scores.of(labels, np.concatenate(answers[name]), model.classes_, logs=True)
        for name, model in models.items()
    }


def _join_rows(parts: Iterator[tuple[dict[str, InputRows], Array]]) -> tuple[dict[str, InputRows], Array]:
    """All rows as each model takes them, and all labels."""
    pairs = list(parts)
    model_files.check_any_labelled(pairs)
    tables = {name: model_files.concatenate_rows([rows[name] for rows, _ in pairs]) for name in pairs[0][0]}
    return tables, np.concatenate([labels for _, labels in pairs])


def _read_rows_for_all(
    models: Classifiers, rows: FileRows, task: FileTask, side: SideColumns
) -> Iterator[tuple[dict[str, InputRows], Array]]:
    """Yield labelled rows in the form that each model reads, in one pass; models may have different columns."""
    columns = {
        name: replace(model_files.get_model_columns(model), coerce=task.columns.coerce)
        for name, model in models.items()
    }
    absent = [name for name in side.names if name not in rows.names]
    if absent:
        raise make_absent_column_error(rows.files[0].path, absent, rows.names)
    needed = [name for one in columns.values() for name in model_files.find_needed_columns(rows, one)]
    for labels, chunk in model_files.read_labelled_chunks(rows, task, [*needed, *side.names]):
        side.batches.append(chunk.batch.select(side.names))
        yield {name: one.read_input_rows(chunk) for name, one in columns.items()}, labels
    for one in columns.values():
        task.callbacks.note_coerced_cells(one.n_coerced)


def evaluate_regression(
    model: BayesianLinearRegression, rows: FileRows, task: FileTask, *, learned: bool = False
) -> RegressionScores:
    """Score a regression on rows of files; each of the ``learned`` rows is predicted by the model without it."""
    parts = list(model_files.read_labelled_rows(model, rows, task))
    if not parts:
        raise DataError("no row has a number to compare with; give rows with the target")
    table, targets = model_files.join_labelled_rows(parts)
    return score_regression(model, table, targets, learned)
