"""Train in one pass: infer the columns from the first chunk, count all rows, correct and score with a sample."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from priory.core.display_table import join_words
from priory.core.similar_labels import describe_similar_labels
from priory.errors import DataError
from priory.sources import FileRows
from priory.sources.byte_streams import format_path
from priory.sources.column_inference import InferredColumns, infer_columns
from priory.sources.column_types import find_binary_columns
from priory.sources.label_reading import MAX_NUMERIC_LABELS, looks_continuous
from priory.sources.mail import MAIL_FLAG_MESSAGES
from priory.sources.prefetch import peek_first, read_ahead
from priory.workflows.callbacks import Callbacks, format_count
from priory.workflows.class_weights import declare_class_prior
from priory.workflows.model_files import (
    FileOptions,
    FileTask,
    describe_source,
    is_regression,
    make_task,
    read_sample_rows,
    set_training_columns,
)
from priory.workflows.regression_training import RegressionResult, train_regression
from priory.workflows.row_counting import CountedRows, RowCounter, TrainingPlan, count_rows
from priory.workflows.training_results import TrainingOptions, TrainingResult, evaluate_on_sample

if TYPE_CHECKING:
    from priory.workflows.model_files import Paths, TableOrTextClassifier


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
        How all rows are counted; by default on threads of this process. `priory.engines.files` counts on clusters.
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
    target, names = column_options.find_target(rows), column_options.find_features(rows)
    first, chunks = peek_first(read_ahead(rows.read_chunks((target, *names))))
    inferred = infer_columns(first, names, column_options)
    if not column_options.labels_as_text and not options.textbook and looks_continuous(first, target, column_options):
        _note_regression(target, callbacks)
        _note_columns(inferred, callbacks)
        task = replace(task, columns=replace(column_options, target=target))
        return train_regression(rows, chunks, inferred, task, options, judge=judge, count=count)
    columns = inferred.columns
    binary = find_binary_columns(first, columns) if options.textbook else ()
    counted = count(TrainingPlan(target, columns, column_options, options, binary=frozenset(binary)), rows, chunks)
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
    from priory.estimators.text_classifier import TextClassifier

    if isinstance(model, TextClassifier):
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
