"""Evaluate a model on rows of files: scores beside other models, by group, by rows learned, and by cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Unpack

import numpy as np

from priory.core.typing import Array
from priory.errors import DataError
from priory.estimators.learning_curve import score_by_rows
from priory.evaluation.comparison import COMPARED_SCORES, compare_scores
from priory.evaluation.decisions import Costs, find_class_index
from priory.evaluation.group_scores import (
    CostScores,
    GroupScores,
    LiftRow,
    ThresholdRow,
    compute_cost_scores,
    compute_lift,
    compute_thresholds,
    format_lift,
    format_thresholds,
    score_groups,
)
from priory.evaluation.scores import Scores
from priory.sources import FileRows
from priory.sources.byte_streams import read_ahead
from priory.sources.column_types import InputRows
from priory.sources.discovery import make_absent_column_error
from priory.workflows.class_files import read_costs
from priory.workflows.model_files import (
    Callbacks,
    FileOptions,
    FileTask,
    check_any_labelled,
    check_known_labels,
    concatenate_rows,
    find_needed_columns,
    get_model_columns,
    is_regression,
    load_classifier,
    load_model,
    make_task,
    read_labelled_chunks,
)
from priory.workflows.regression_files import evaluate_regression
from priory.workflows.row_splits import (
    DEFAULT_FOLDS,
    JudgingOptions,
    SideColumns,
    cross_validate,
    make_splits,
    score_peers,
)

if TYPE_CHECKING:
    from priory.evaluation.regression_scores import RegressionScores
    from priory.workflows.model_files import ModelOrPath, PathLike, Paths, TableOrTextClassifier

    Classifiers = Mapping[str, TableOrTextClassifier]


@dataclass(frozen=True)
class DecisionTables:
    """Mean costs of decisions, and lift and thresholds for one class."""

    positive: str = ""
    costs: CostScores | None = None
    lift: list[LiftRow] = field(default_factory=list)
    thresholds: list[ThresholdRow] = field(default_factory=list)

    def to_dict(self) -> dict[str, object]:
        """Everything for JSON."""
        return {
            "positive": self.positive or None,
            "costs": None if self.costs is None else self.costs.to_dict(),
            "lift": [row._asdict() for row in self.lift],
            "thresholds": [row._asdict() for row in self.thresholds],
        }

    def list_blocks(self) -> list[str]:
        """The tables as text."""
        blocks = [] if self.costs is None else [str(self.costs)]
        if blocks and self.positive:
            blocks[0] += f"\nThe positive class is {self.positive}."
        if self.thresholds:
            blocks.append(format_thresholds(self.thresholds, self.positive))
        return [*blocks, format_lift(self.lift, self.positive)] if self.lift else blocks


def tabulate_decisions(
    evaluation: Evaluation,
    costs: Costs | PathLike | None = None,
    positive: str | None = None,
    *,
    lift: bool = False,
    thresholds: bool = False,
) -> DecisionTables:
    """Tabulate mean costs, if ``costs`` are given, and lift and thresholds of the ``positive`` class.

    The positive class is by default the rarer of two; with more classes it has to be named.
    """
    scores = evaluation.scores
    if costs is None and not lift and not thresholds:
        return DecisionTables()
    if not isinstance(scores, Scores):
        raise DataError("the model predicts a number; costs, lift and thresholds are for models of classes")
    classes = [str(label) for label in scores.classes]
    given = costs if costs is None or isinstance(costs, Costs) else read_costs(costs)
    table = None if given is None else given.tabulate(classes, scores.shares)
    names_positive = given is not None and (given.false_negative is not None or given.false_positive is not None)
    label = _find_positive_class(classes, scores, positive) if lift or thresholds or names_positive else ""
    return DecisionTables(
        label,
        None if table is None else compute_cost_scores(scores, table),
        compute_lift(scores, label) if lift else [],
        compute_thresholds(scores, label, table) if thresholds else [],
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
    scores : Scores or RegressionScores
        The scores, of classes or of a number.
    n_rows : int
        The number of labelled rows that were read.
    by : dict of str to GroupScores
        The scores of the groups of rows that each column of ``by`` makes.
    others : dict of str to Scores
        The scores of the other models on the same rows, by name.
    curve : dict of int to Scores
        The learning curve: by number of rows learned, the scores on the rows left out.
    """

    scores: Scores | RegressionScores
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
    peers: bool = False,
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
    peers : bool
        Whether to compare with scikit-learn's logistic regression and gradient boosting, fitted to the same folds; for
        rows that the model has ``learned``.
    curve : bool
        Whether to score models of some of the rows on the others; for rows that the model has ``learned``.
    **given
        The target and how the files are read, as for `FileTask`.

    Returns
    -------
    Evaluation
        The scores, the number of rows, and what else was asked for.
    """
    task = make_task(paths, given)
    trained = load_model(model, task.key)
    task = task.adapt_to(trained)
    rows = task.open()
    judging = judging or JudgingOptions()
    if not learned and not (judging.is_default and not peers and not curve):
        raise DataError("folds, groups, time, peers and curves are for rows that the model has learned; say so")
    if is_regression(trained):
        if by or others or peers or curve or not judging.is_default:
            raise DataError("the model predicts a number; groups, comparisons and curves are for models of classes")
        found = evaluate_regression(trained, rows, task, learned=learned)
        return Evaluation(found, len(found.truth))
    models = {EVALUATED: trained} | {name: load_classifier(other, task.key) for name, other in (others or {}).items()}
    side = SideColumns([*by, *judging.side_columns])
    parts = _read_rows_for_all(models, rows, task, side)
    if not learned:
        scores = _score_new_rows(models, parts)
        return _summarise(scores, len(scores[EVALUATED].truth), side, by)
    tables, labels = _join_rows(parts)
    if peers and judging.is_default:
        judging = JudgingOptions(DEFAULT_FOLDS)
    with task.callbacks.activity(f"judging {len(labels):,} rows by models that have not learned them"):
        scores = {name: cross_validate(one, tables[name], labels, judging, side) for name, one in models.items()}
    if peers:
        with task.callbacks.activity("fitting scikit-learn's models to the same folds"):
            splits = make_splits(labels, judging, side)
            scores |= score_peers(get_model_columns(trained), tables[EVALUATED], labels, trained.classes_, splits)
    drawn = _draw_curve(trained, tables[EVALUATED], labels, task.callbacks) if curve else {}
    return replace(_summarise(scores, len(labels), side, by), curve=drawn)


def _summarise(scores: dict[str, Scores], n_rows: int, side: SideColumns, by: Sequence[str]) -> Evaluation:
    own, others = scores[EVALUATED], {name: one for name, one in scores.items() if name != EVALUATED}
    rows = slice(None) if own.positions is None else own.positions
    groups = {name: score_groups(own, side.get_texts(name)[rows], name) for name in by}
    return Evaluation(own, n_rows, groups, others)


def _draw_curve(
    model: TableOrTextClassifier, table: InputRows, labels: Array, callbacks: Callbacks
) -> dict[int, Scores]:
    with callbacks.activity("scoring models of some of the rows"):
        return score_by_rows(model, table, labels)


def _score_new_rows(models: Classifiers, parts: Iterator[tuple[dict[str, InputRows], Array]]) -> dict[str, Scores]:
    """Score each model on new rows, which need not fit into memory."""
    answers: dict[str, list[Array]] = {name: [] for name in models}
    found: list[Array] = []
    for rows, labels in read_ahead(parts):
        found.append(labels)
        for name, model in models.items():
            answers[name].append(model.predict_log_proba(rows[name]))
    check_any_labelled(found)
    labels = np.concatenate(found)
    for model in models.values():
        check_known_labels(model, labels)
    return {
        name: Scores.of(labels, np.concatenate(answers[name]), model.classes_, logs=True)
        for name, model in models.items()
    }


def _join_rows(parts: Iterator[tuple[dict[str, InputRows], Array]]) -> tuple[dict[str, InputRows], Array]:
    """All rows as each model takes them, and all labels."""
    pairs = list(parts)
    check_any_labelled(pairs)
    tables = {name: concatenate_rows([rows[name] for rows, _ in pairs]) for name in pairs[0][0]}
    return tables, np.concatenate([labels for _, labels in pairs])


def _read_rows_for_all(
    models: Classifiers, rows: FileRows, task: FileTask, side: SideColumns
) -> Iterator[tuple[dict[str, InputRows], Array]]:
    """Yield labelled rows in the form that each model reads, in one pass; models may have different columns."""
    columns = {name: replace(get_model_columns(model), coerce=task.columns.coerce) for name, model in models.items()}
    absent = [name for name in side.names if name not in rows.names]
    if absent:
        raise make_absent_column_error(rows.files[0].path, absent, rows.names)
    needed = [name for one in columns.values() for name in find_needed_columns(rows, one)]
    for labels, chunk in read_labelled_chunks(rows, task, [*needed, *side.names]):
        side.add(chunk.batch)
        yield {name: one.read_input_rows(chunk) for name, one in columns.items()}, labels
    for one in columns.values():
        task.callbacks.note_coerced_cells(one.n_coerced)
