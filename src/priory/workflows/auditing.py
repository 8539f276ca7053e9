"""Leakage audit of the rows of files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

import numpy as np
import pyarrow as pa

from priory.sources import FileRows
from priory.sources.column_inference import infer_columns
from priory.sources.column_types import ColumnOptions
from priory.sources.label_reading import LabelReader
from priory.sources.prefetch import peek_first
from priory.workflows.model_files import FileOptions, FileTask, make_task

if TYPE_CHECKING:
    from priory.leakage.findings import Findings
    from priory.workflows.model_files import Paths


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
    import priory

    task = make_task(paths, given)
    rows = task.open()
    label = task.columns.find_target(rows)
    train_table = _read_whole_table(rows, task.columns)
    is_quantity = pa.types.is_floating(train_table.schema.field(label).type)
    test_table = _read_whole_table(replace(task, paths=test).open(), task.columns, is_quantity) if test else None
    with task.callbacks.activity("looking for leakage"):
        return priory.audit(train_table, test_table, target=label, groups=groups, time=time)


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
