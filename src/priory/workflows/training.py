"""Train in one pass over files: columns by a first chunk, all rows counted, classes or numbers predicted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Unpack

import numpy as np

import priory
from priory.core.display_table import join_words
from priory.core.similar_names import describe_similar_labels
from priory.errors import DataError
from priory.sources import FileReader, FileRows, RowChunk
from priory.sources.byte_streams import format_path, peek_first, read_ahead
from priory.sources.column_inference import InferredColumns, infer_columns
from priory.sources.column_types import (
    MAX_NUMERIC_LABELS,
    ModelColumns,
    TargetReader,
    find_binary_columns,
    looks_continuous,
)
from priory.text.mail import MAIL_FLAG_MESSAGES
from priory.workflows.class_files import declare_class_prior
from priory.workflows.model_files import (
    Callbacks,
    FileOptions,
    FileTask,
    describe_source,
    format_count,
    is_regression,
    make_task,
    read_sample_rows,
    set_training_columns,
)
from priory.workflows.out_of_core import DrawnRows
from priory.workflows.regression_files import score_regression
from priory.workflows.row_counting import CountedRows, RowCounter, TrainingPlan, count_rows
from priory.workflows.training_results import TrainingOptions, TrainingResult, audit_sample, evaluate_on_sample

if TYPE_CHECKING:
    from priory.evaluation.regression_scores import RegressionScores
    from priory.leakage.findings import Findings
    from priory.model.ledger_output import JSONValue
    from priory.regression.linear_regression import BayesianLinearRegression
    from priory.workflows.model_files import Paths, TableOrTextClassifier


MAX_WEIGHTS_SHOWN = 12


@dataclass
class RegressionResult:
    """A trained regression with its scores and the findings of the audit.

    Attributes
    ----------
    model : BayesianLinearRegression
    n_rows : int
        The number of rows that were learned.
    families : dict of str to str
        For each column whether it holds numbers or labels.
    left_out : list of str
        Columns that were not learned: empty ones, identifiers and texts.
    scores : RegressionScores or None
        Scores on rows that the model has not learned (leave-one-out, in closed form).
    findings : Findings or None
        What the leakage audit found in the sample.
    unreadable_files : list of str
        Files that were left out because they may not be read.
    source : str
        The names of the files.
    """

    model: BayesianLinearRegression
    n_rows: int
    families: dict[str, str]
    left_out: list[str]
    scores: RegressionScores | None = None
    findings: Findings | None = None
    unreadable_files: list[str] = field(default_factory=list)
    source: str = ""

    def list_weights(self) -> list[tuple[str, float, float]]:
        """The largest weights: what they belong to, their expected value, and their standard deviation.

        They are sorted by how many standard deviations they are away from zero.
        """
        names, model = self.model.feature_names_in_, self.model
        spread = np.sqrt(np.diag(model.coef_covariance_))
        order = np.argsort(-np.abs(model.coef_) / np.where(spread > 0, spread, 1.0), kind="stable")
        found = []
        for j in order[:MAX_WEIGHTS_SHOWN]:
            term = model.terms_[j]
            column = names[term.column] if isinstance(term.column, int) else term.column
            suffix = {"level": f" = {term.level}", "missing": " is missing"}.get(term.kind, "")
            found.append((f"{column}{suffix}", float(model.coef_[j]), float(spread[j])))
        return found

    def as_dict(self) -> dict[str, JSONValue]:
        """Everything but the model, for JSON."""
        return {
            "kind": "regression",
            "rows": self.n_rows,
            "columns": self.families,
            "left_out": self.left_out,
            "scores": None if self.scores is None else self.scores.to_dict(),
            "weights": [{"term": name, "weight": w, "deviation": s} for name, w, s in self.list_weights()],
            "audit": None if self.findings is None else json.loads(self.findings.to_json()),
        }


def train_regression(
    rows: FileRows,
    chunks: Iterator[RowChunk],
    inferred: InferredColumns,
    task: FileTask,
    options: TrainingOptions,
    *,
    judge: bool = True,
    count: RowCounter = count_rows,
) -> RegressionResult:
    """Learn a regression from chunks of rows, and score it by leave-one-out if ``judge``."""
    target, callbacks = str(task.columns.target), task.callbacks
    columns, texts = _leave_out_texts(rows, inferred.columns)
    counted = count(TrainingPlan(target, columns, task.columns, options, is_regression=True), rows, chunks)
    model, sample = counted.model, counted.sample
    if not is_regression(model):
        raise DataError(f"{format_path(rows.files[0].path)}: no row has a number to predict; give rows with the target")
    model.target_, model.missing_ = target, tuple(sorted(columns.missing))
    result = RegressionResult(
        model,
        sample.rows,
        dict(columns.kinds),
        [*inferred.empty, *inferred.identifiers, *texts],
        unreadable_files=list(counted.unreadable),
        source=describe_source(rows),
    )
    if judge and not options.plain:
        _judge_on_sample(result, sample, rows.files[0], columns, task, options)
    if texts:
        callbacks.notify(f"a regression does not read texts; left out {', '.join(map(repr, texts))}")
    if counted.n_unlabelled:
        callbacks.notify(f"skipped {format_count(counted.n_unlabelled, 'row')} without a number to predict")
    callbacks.note_coerced_cells(counted.n_coerced)
    return result


def _leave_out_texts(rows: FileRows, columns: ModelColumns) -> tuple[ModelColumns, list[str]]:
    texts = [name for name, kind in columns.kinds.items() if kind == "text"]
    kinds = {name: kind for name, kind in columns.kinds.items() if kind != "text"}
    if not kinds:
        raise DataError(
            f"{format_path(rows.files[0].path)}: a regression needs a column of numbers or labels besides the target"
        )
    return replace(columns, kinds=kinds), texts


def _judge_on_sample(
    result: RegressionResult,
    sample: DrawnRows,
    file: FileReader,
    columns: ModelColumns,
    task: FileTask,
    options: TrainingOptions,
) -> None:
    chunk = RowChunk(sample.batch(), file, 0)
    targets, kept = TargetReader(str(task.columns.target), task.columns).read(chunk)
    table = columns.read_arrow_table(kept)
    with task.callbacks.activity(f"judging {len(targets):,} rows by models that have not learned them"):
        result.scores = score_regression(result.model, table, targets, learned=True)
    if options.audit:
        with task.callbacks.activity("looking for leakage"):
            result.findings = audit_sample(table, targets)


def train(
    paths: Paths | FileTask,
    *,
    options: TrainingOptions | None = None,
    judge: bool = True,
    count: RowCounter = count_rows,
    **given: Unpack[FileOptions],
) -> TrainingResult | RegressionResult:
    """Learn a model from files of any size, in one pass.

    A single column of texts gives a `TextClassifier`, any other table a `NaiveBayes`. A target that looks like a number
    to predict (more than 20 different numbers) gives a `BayesianLinearRegression`, unless ``labels_as_text`` insists on
    classes.

    Parameters
    ----------
    paths : one path or several, or a FileTask
        CSV, TSV, JSON lines, Parquet or Arrow files, folders, mailboxes, patterns, or "-" for standard input.
    options : TrainingOptions, optional
        How the model is learned.
    judge : bool
        Whether to score and audit the model, unless the training is plain.
    count : function
        How all rows are counted; by default on threads; `priory.engines.counted_files` counts on clusters.
    **given
        The target, which a folder with one folder for each class does not need, and how the files are read, as for
        `FileTask`.

    Returns
    -------
    TrainingResult
        The model, and what ``priory train`` prints about it; a `RegressionResult` where the target is a number.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "mail.csv")
    ...     _ = path.write_text("label,text\\nspam,win cash now\\nham,see you at noon\\nspam,a cash prize now\\n")
    ...     result = train(path, target="label", options=TrainingOptions(plain=True))
    >>> result.n_rows, result.classes, result.families
    (3, {'spam': 2.0, 'ham': 1.0}, {'text': 'text, 8 different words'})
    >>> result.model.predict(["cash"]).tolist()
    ['spam']
    """
    task, options = make_task(paths, given), options or TrainingOptions()
    rows, column_options, callbacks = task.open(), task.columns, task.callbacks
    if rows.is_documents:  # however short they are
        types = {rows.names[-1]: "text", **column_options.types}
        column_options = replace(column_options, types=types)
    target, names = column_options.find_target(rows), column_options.find_features(rows)
    first, chunks = peek_first(read_ahead(rows.read_chunks((target, *names))))
    inferred = infer_columns(first, names, column_options)
    if not column_options.labels_as_text and not options.textbook and looks_continuous(first, target, column_options):
        _note_regression(target, callbacks)
        _note_columns(inferred, callbacks)
        task = replace(task, columns=replace(column_options, target=target))
        return train_regression(rows, chunks, inferred, task, options, judge=judge, count=count)
    columns = replace(inferred.columns, reader=rows.reader)
    binary = find_binary_columns(first, columns) if options.textbook else ()
    plan = TrainingPlan(target, columns, column_options, options, binary=frozenset(binary))
    counted = count(plan, rows, chunks)
    model = counted.model
    if model is None or is_regression(model):
        raise DataError("there are no rows to learn from; give labelled rows")
    _check_classes(model, rows, callbacks)
    declare_class_prior(model, options.class_prior, options.class_weight)
    set_training_columns(model, columns, target)
    result = TrainingResult(
        model,
        counted.sample.rows,
        describe_families(model),
        inferred.empty,
        list(counted.unreadable),
        inferred.identifiers,
        source=describe_source(rows),
    )
    if judge and not options.plain:
        sampled = read_sample_rows(counted.sample, columns, replace(column_options, target=target), rows)
        evaluate_on_sample(result, *sampled, options, callbacks)
    _note_columns(inferred, callbacks)
    _note_repairs(counted, callbacks)
    return result


def describe_families(model: TableOrTextClassifier) -> dict[str, str]:
    """The name of the chosen family of each column."""
    if isinstance(model, priory.TextClassifier):
        return {str(model.feature_names_in_[0]): f"text, {model.n_tokens_:,} different words"}
    return {report.name: report.family.lower() for report in model.schema_.values()}


def _check_classes(model: TableOrTextClassifier, rows: FileRows, callbacks: Callbacks) -> None:
    if len(model.classes_) == 1:
        label = str(model.classes_[0])
        raise DataError(
            f"{format_path(rows.files[0].path)}: all rows have the label {label!r}; give rows of two or more classes"
        )
    counts = dict(zip(map(str, model.classes_), model.class_count_.tolist(), strict=True))
    if similar := describe_similar_labels(counts):
        callbacks.notify(similar)
    if (model.class_count_ <= 1).all():
        callbacks.notify("no class has two rows; how much the values of a class vary is only a guess")


def _note_regression(target: str, callbacks: Callbacks) -> None:
    callbacks.notify(
        f"the target {target!r} has more than {MAX_NUMERIC_LABELS} different numbers, so this is a regression; "
        "to take each number for a class, use --classes"
    )


def _note_columns(inferred: InferredColumns, callbacks: Callbacks) -> None:
    """Note which columns were left out, and which parts of dates are learned."""
    for name in inferred.empty:
        callbacks.notify(f"column {name!r} is empty and was left out")
    for name, parts in inferred.dates.items():
        callbacks.notify(f"column {name!r} holds dates; learned as {join_words(parts) or 'nothing: all are the same'}")
    if inferred.identifiers:
        reasons = ", ".join(f"{name!r} ({reason})" for name, reason in inferred.identifiers.items())
        callbacks.notify(f"left out what looks like identifiers: {reasons}")


def _note_repairs(counted: CountedRows, callbacks: Callbacks) -> None:
    """Note how many cells, rows and messages were repaired."""
    callbacks.note_coerced_cells(counted.n_coerced)
    if counted.n_skipped:
        callbacks.notify(f"padded or skipped {format_count(counted.n_skipped, 'malformed row')}")
    if counted.n_unlabelled:
        callbacks.notify(f"skipped {format_count(counted.n_unlabelled, 'row')} without a label")
    for flag, count in counted.flags.items():
        callbacks.notify(f"{format_count(count, 'message')}: {MAIL_FLAG_MESSAGES[flag]}")
