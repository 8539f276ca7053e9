"""Column importance: how much worse a model predicts when a column is left out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple, Unpack

import numpy as np
import pyarrow as pa

from priory.core.sharding import space_evenly
from priory.core.typing import Array
from priory.errors import DataError
from priory.evaluation.costs import find_class_index
from priory.evaluation.intervals import Interval, mean_interval
from priory.sources.column_types import InputRows
from priory.workflows.model_files import FileOptions, FileTask, load_classifier, make_task, read_all_labelled_rows
from priory.workflows.training_results import list_strongest_evidence

if TYPE_CHECKING:
    from priory.workflows.model_files import ModelOrPath, Paths, TableOrTextClassifier

MAX_ROWS_TO_ASK = 5000


class ColumnImportance(NamedTuple):
    """A column, and the bits per row by which the log loss rises when its cells are missing."""

    name: str
    bits: Interval


def rank_columns(
    model: ModelOrPath, paths: Paths | FileTask, *, label: str | None = None, **given: Unpack[FileOptions]
) -> list[ColumnImportance]:
    """Rank the columns of a table by their importance to a model on rows of files, the most important first.

    A column is left out by making its cells missing; its importance is the increase in log loss. Use rows that the
    model has not learned. Columns with the same information can replace each other, and then neither is important by
    itself.

    Parameters
    ----------
    model : a model file, or a model, of a table
    paths : one path or several, or a FileTask
        Labelled rows; of more than 5,000, as many that are evenly spaced.
    label : str, optional
        Only rows of this class.
    **given
        The target and how the files are read, as for `FileTask`.
    """
    task = make_task(paths, given)
    trained = load_classifier(model, task.key)
    table, labels = _read_rows(trained, label, task)
    if isinstance(table, list):
        raise DataError("the model reads one text; its strongest words for each class are what matters")
    truth = np.searchsorted(trained.classes_, labels)
    with task.callbacks.activity(f"leaving out {table.num_columns:,} columns in turn"):
        surprise = _measure_surprise(trained, table, truth)
        losses = {name: _measure_surprise(trained, _blank_column(table, name), truth) for name in table.column_names}
    found = [
        ColumnImportance(name, mean_interval((loss - surprise) / math.log(2), np.ones(len(truth))))
        for name, loss in losses.items()
    ]
    return sorted(found, key=lambda one: -one.bits.value)


def list_class_evidence(
    model: ModelOrPath, paths: Paths | FileTask, *, label: str | None = None, **given: Unpack[FileOptions]
) -> dict[str, list[tuple[str, float]]]:
    """The words or columns with the strongest evidence for each class, or for one, in decibans."""
    task = make_task(paths, given)
    trained = load_classifier(model, task.key)
    table, labels = _read_rows(trained, label, task)
    evidence = list_strongest_evidence(trained, table, labels)
    return evidence if label is None else {label: evidence.get(label, [])}


def _read_rows(model: TableOrTextClassifier, label: str | None, task: FileTask) -> tuple[InputRows, Array]:
    """Read labelled rows, of one class if a ``label`` is given; of many, take evenly spaced ones."""
    if label is not None:
        find_class_index(label, [str(name) for name in model.classes_.tolist()])
    table, labels = read_all_labelled_rows(model, task.open(), task.fill_target(model))
    chosen = np.arange(len(labels)) if label is None else np.flatnonzero(labels == label)
    if not len(chosen):
        raise DataError(f"no row has the label {label!r}; give rows of this class")
    chosen = chosen[space_evenly(len(chosen), MAX_ROWS_TO_ASK)]
    taken = [table[row] for row in chosen] if isinstance(table, list) else table.take(pa.array(chosen))
    return taken, labels[chosen]


def _blank_column(table: pa.Table, name: str) -> pa.Table:
    position = table.column_names.index(name)
    return table.set_column(position, name, pa.nulls(table.num_rows, table.schema.field(name).type))


def _measure_surprise(model: TableOrTextClassifier, table: pa.Table, truth: Array) -> Array:
    """(rows,): -log p(truth)."""
    return -model.predict_log_proba(table)[np.arange(len(truth)), truth]
