"""What to think of a model and of its data: scores, the report and the leakage audit of rows from files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from priory.core.typing import Array
from priory.errors import DataError
from priory.sources import FileRows, ReadOptions
from priory.sources.column_inference import infer_columns
from priory.sources.column_types import ColumnOptions, InputRows
from priory.sources.discovery import format_names
from priory.sources.label_reading import LabelReader
from priory.sources.prefetch import peek_first
from priory.workflows.callbacks import SILENT, Callbacks
from priory.workflows.model_files import (
    choose_columns,
    describe_source,
    fill_target,
    get_model_columns,
    is_regression,
    join_labelled_rows,
    load_classifier,
    load_model,
    open_paths,
    read_labelled_rows,
)
from priory.workflows.regression import evaluate_regression

if TYPE_CHECKING:
    from priory.evaluation.regression_scores import RegressionScores
    from priory.evaluation.scores import Scores
    from priory.export.report import Report
    from priory.leakage.findings import Findings
    from priory.workflows.model_files import ModelOrPath, PathLike, Paths, TableOrTextClassifier


class Evaluation(NamedTuple):
    """The scores of a model, of classes or of a number, and the number of labelled rows that were read for them."""

    scores: Scores | RegressionScores
    n_rows: int


class ReportResult(NamedTuple):
    """An HTML report, which ``page.save(path)`` writes, and the number of labelled rows that it is about."""

    page: Report
    n_rows: int


def evaluate(
    model: ModelOrPath,
    paths: Paths,
    *,
    learned: bool = False,
    target: str | None = None,
    columns: ColumnOptions | None = None,
    read: ReadOptions | None = None,
    key: PathLike | None = None,
    callbacks: Callbacks = SILENT,
) -> Evaluation:
    """Compare the predictions of a model with the labels of files.

    Parameters
    ----------
    model : a model file, or a model
    paths : one path or several
    learned : bool
        Whether the model has learned these rows. Then each row is predicted by the model without it (leave-one-out),
        and all rows have to fit into memory.
    target : str, optional
        The column of the labels; by default the one that the model was trained for.
    columns : ColumnOptions, optional
    read : ReadOptions, optional
    key : path, optional
        The model file must be signed with this key.
    callbacks : Callbacks

    Returns
    -------
    Evaluation
        The scores, and the number of rows.
    """
    from priory.evaluation.scores import Scores

    trained, rows = load_model(model, key), open_paths(paths, read, callbacks)
    column_options = fill_target(trained, choose_columns(columns, target))
    if is_regression(trained):
        found = evaluate_regression(trained, rows, column_options, callbacks, learned=learned)
        return Evaluation(found, len(found.truth))
    if learned:
        table, labels = _read_all_labelled_rows(trained, rows, column_options, callbacks)
        return Evaluation(trained.evaluate(table, labels), len(labels))
    answers = [
        (trained.predict_log_proba(part), labels)
        for part, labels in read_labelled_rows(rows, get_model_columns(trained), column_options, callbacks)
    ]
    _check_any_labelled(answers)
    log_proba, labels = (np.concatenate(parts) for parts in zip(*answers, strict=True))
    _check_known_labels(trained, labels)
    return Evaluation(Scores.of(labels, log_proba, trained.classes_, logs=True), len(labels))


def report(
    model: ModelOrPath,
    paths: Paths,
    *,
    learned: bool = False,
    target: str | None = None,
    columns: ColumnOptions | None = None,
    read: ReadOptions | None = None,
    key: PathLike | None = None,
    callbacks: Callbacks = SILENT,
) -> ReportResult:
    """An HTML report about a model on the rows of files, which have to fit into memory.

    Parameters
    ----------
    model : a model file, or a model
    paths : one path or several
    learned : bool
        Whether the model has learned these rows. Then each row is predicted by the model without it (leave-one-out).
    target : str, optional
        The column of the labels; by default the one that the model was trained for.
    columns : ColumnOptions, optional
    read : ReadOptions, optional
    key : path, optional
        The model file must be signed with this key.
    callbacks : Callbacks

    Returns
    -------
    ReportResult
        The page, and the number of rows.
    """
    from priory.export.report import ReportSubject
    from priory.export.report import report as make_report

    trained, rows = load_classifier(model, key), open_paths(paths, read, callbacks)
    column_options = fill_target(trained, choose_columns(columns, target))
    table, labels = _read_all_labelled_rows(trained, rows, column_options, callbacks)
    _check_known_labels(trained, labels)
    file = os.path.basename(model) if isinstance(model, str | os.PathLike) else ""
    subject = ReportSubject(describe_source(rows), str(column_options.target), file)
    with callbacks.activity("writing the report"):
        return ReportResult(make_report(trained, table, labels, learned=learned, subject=subject), len(labels))


def audit(
    paths: Paths,
    *,
    test: Paths = (),
    target: str | None = None,
    groups: str | None = None,
    time: str | None = None,
    columns: ColumnOptions | None = None,
    read: ReadOptions | None = None,
    callbacks: Callbacks = SILENT,
) -> Findings:
    """Look for leakage in files, whose rows have to fit into memory: see `priory.audit`.

    Parameters
    ----------
    paths : one path or several
        The training rows.
    test : one path or several, optional
        The test rows.
    target, groups, time : str, optional
        Columns: the label; which rows belong together, such as those of one person; when a row was known.
    columns : ColumnOptions, optional
    read : ReadOptions, optional
    callbacks : Callbacks

    Returns
    -------
    Findings
    """
    import priory

    rows, column_options = open_paths(paths, read, callbacks), choose_columns(columns, target)
    label = column_options.find_target(rows)
    train_table = _read_whole_table(rows, column_options)
    is_quantity = pa.types.is_floating(train_table.schema.field(label).type)
    test_table = _read_whole_table(open_paths(test, read, callbacks), column_options, is_quantity) if test else None
    with callbacks.activity("looking for leakage"):
        return priory.audit(train_table, test_table, target=label, groups=groups, time=time)


def _read_all_labelled_rows(
    model: TableOrTextClassifier, rows: FileRows, column_options: ColumnOptions, callbacks: Callbacks
) -> tuple[InputRows, Array]:
    parts = join_labelled_rows(read_labelled_rows(rows, get_model_columns(model), column_options, callbacks))
    _check_any_labelled(parts)
    return parts[0]


def _check_known_labels(model: TableOrTextClassifier, labels: Array) -> None:
    unknown = sorted(set(labels.tolist()) - set(model.classes_.tolist()))
    if unknown:
        raise DataError(f"the model has no class {unknown[0]!r}; it has {format_names(model.classes_.tolist())}")


def _check_any_labelled(parts: Sequence[object]) -> None:
    if not parts:
        raise DataError("no row has a label; there is nothing to compare with")


def _read_whole_table(rows: FileRows, column_options: ColumnOptions, is_quantity: bool | None = None) -> pa.Table:
    """All rows, with the target as the last column: an audit compares every row with every other.

    A target that looks like a number to predict is a column of numbers, which the audit cuts into parts; the test table
    follows the training table (``is_quantity``).
    """
    target = column_options.find_target(rows)
    features = column_options.find_features(rows)
    first, chunks = peek_first(rows.read_chunks((target, *features)))
    columns = infer_columns(first, features, column_options, for_audit=True).columns
    labels, parts, groups = LabelReader(target, replace(column_options, labels_as_text=True)), [], []
    for chunk in chunks:
        group, kept = labels.read(chunk)
        table = columns.read_input_rows(kept)
        parts.append(pa.table({columns.names[0]: table}) if isinstance(table, list) else table)
        groups.append(group)
    if is_quantity is None:
        is_quantity = labels.looks_numeric and not column_options.labels_as_text
    values = labels.names.astype(float) if is_quantity and labels.are_numbers else pa.array(labels.names, pa.string())
    targets = pa.array(values).take(pa.array(np.concatenate(groups)))
    return pa.concat_tables(parts).append_column(target, targets)
