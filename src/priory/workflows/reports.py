"""Reports, audits and drift of rows from files."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Unpack

import numpy as np
import pyarrow as pa

import priory
from priory.sources import FileRows
from priory.sources.byte_streams import peek_first
from priory.sources.column_inference import infer_columns
from priory.sources.column_types import ColumnOptions, LabelReader
from priory.workflows import model_files
from priory.workflows.label_files import read_label_sets, view_labels
from priory.workflows.model_files import FileOptions, FileTask
from priory.workflows.training import audit_sample, draw_report_curve

if TYPE_CHECKING:
    from priory.export.html_report import Report
    from priory.leakage.findings import Findings
    from priory.learning.drift_alarm import Drift
    from priory.workflows.model_files import ModelOrPath, Paths


class ReportResult(NamedTuple):
    """An HTML report, which ``page.save(path)`` writes, and the number of labelled rows that it is about."""

    page: Report
    n_rows: int


def report(
    model: ModelOrPath,
    paths: Paths | FileTask,
    *,
    learned: bool = False,
    audit: bool = True,
    command: str = "",
    **given: Unpack[FileOptions],
) -> ReportResult:
    """Write an HTML report about a model on the rows of files, which have to fit into memory.

    Parameters
    ----------
    model : a model file, or a model
    paths : one path or several, or a FileTask
    learned : bool
        Whether the model has learned these rows. Then each row is predicted by a model that has not learned it, and
        there is a learning curve.
    audit : bool
        Whether to look for leakage in the rows.
    command : str
        The command that makes the report again, for its last section.
    **given
        The target and how the files are read, as for `FileTask`.

    Returns
    -------
    ReportResult
        The page, and the number of rows.
    """
    from priory.export import html_report

    task = model_files.make_task(paths, given)
    trained, callbacks = model_files.load_classifier(model, task.key, several=True), task.callbacks
    task = task.adapt_to(trained)
    rows = task.open()
    file = os.path.basename(model) if isinstance(model, str | os.PathLike) else ""
    subject = html_report.ReportSubject(
        model_files.describe_source(rows), str(task.columns.target), file, command=command
    )
    if hasattr(trained, "separator_"):
        table, held = read_label_sets(trained, task)
        with callbacks.activity("writing the report"):
            page = html_report.report_labels(view_labels(trained), table, held, learned=learned, subject=subject)
        return ReportResult(page, len(held))
    table, labels = model_files.read_all_labelled_rows(trained, rows, task)
    curve, findings = {}, None
    if learned and model_files.count_known_rows(trained) == len(labels):
        with callbacks.activity("scoring models of some of the rows"):
            curve = draw_report_curve(trained, table, labels)
    if audit:
        with callbacks.activity("looking for leakage"):
            findings = audit_sample(table, labels)
    with callbacks.activity("writing the report"):
        page = html_report.report(trained, table, labels, findings, learned=learned, curve=curve, subject=subject)
    return ReportResult(page, len(labels))


def audit(
    paths: Paths | FileTask,
    *,
    test: Paths = (),
    groups: str | None = None,
    time: str | None = None,
    **given: Unpack[FileOptions],
) -> Findings:
    """Look for leakage in files, whose rows have to fit into memory: see `priory.audit`.

    Parameters
    ----------
    paths : one path or several, or a FileTask
        The training rows.
    test : one path or several, optional
        The test rows.
    groups, time : str, optional
        Columns: the group of a row, such as a person, and the time at which the row was known.
    **given
        The target and how the files are read, as for `FileTask`.

    Returns
    -------
    Findings
    """
    task = model_files.make_task(paths, given)
    rows = task.open()
    label = task.columns.find_target(rows)
    train_table = _read_whole_table(rows, task.columns)
    is_quantity = pa.types.is_floating(train_table.schema.field(label).type)
    test_table = _read_whole_table(replace(task, paths=test).open(), task.columns, is_quantity) if test else None
    with task.callbacks.activity("looking for leakage"):
        return priory.audit(train_table, test_table, target=label, groups=groups, time=time)


def drift(
    paths: Paths | FileTask,
    *,
    new: Paths,
    false_alarms: float = 0.01,
    stream: bool = False,
    **given: Unpack[FileOptions],
) -> Drift:
    """Compare the rows of files with newer rows, column by column and token by token: see `priory.find_drift`.

    Parameters
    ----------
    paths : one path or several, or a FileTask
        The rows before.
    new : one path or several
        The rows after.
    false_alarms : float
        The probability of naming any column or token if nothing has changed.
    stream : bool
        Whether the new rows are in the order of time; then the result is the first alarm, with its row.
    **given
        The target, if columns are to be compared within its classes, and how the files are read, as for `FileTask`.
    """
    from priory.learning.drift_alarm import Drift, DriftMonitor, find_drift

    task = model_files.make_task(paths, given)
    before, y_before = _read_rows(task.open(), task.columns)
    after, y_after = _read_rows(replace(task, paths=new).open(), task.columns)
    with task.callbacks.activity("comparing the rows"):
        if not stream:
            return find_drift(before, after, y_before, y_after, false_alarms)
        monitor = DriftMonitor(before, y_before, false_alarms)
        found = monitor.update(after, y_after)
        return Drift([], monitor.counter.n_compared(monitor.reference), false_alarms) if found is None else found


def _read_rows(rows: FileRows, options: ColumnOptions) -> tuple[pa.Table, list[str] | None]:
    """Read all columns, and the classes if there is a target."""
    if options.target is not None:
        table = _read_whole_table(rows, options, False)
        return table.drop_columns([options.target]), table.column(options.target).to_pylist()
    first, chunks = peek_first(rows.read_chunks(rows.names))
    names = tuple(name for name in options.columns or rows.names if name not in options.ignore)
    columns = infer_columns(first, names, options, for_audit=True).columns
    parts = [columns.read_input_rows(chunk) for chunk in chunks]
    tables = [pa.table({columns.names[0]: part}) if isinstance(part, list) else part for part in parts]
    return pa.concat_tables(tables), None


def _read_whole_table(rows: FileRows, column_options: ColumnOptions, is_quantity: bool | None = None) -> pa.Table:
    """Read all rows, with the target as the last column: an audit compares every row with every other.

    A continuous target becomes a column of numbers, which the audit bins. ``is_quantity`` makes the test table follow
    the training table.
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
