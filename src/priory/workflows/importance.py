"""What matters to a model, over all rows of a file: how much worse it answers when a column is left out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from priory.core.sharding import space_evenly
from priory.core.typing import Array
from priory.errors import DataError
from priory.evaluation.costs import find_class_index
from priory.evaluation.intervals import Interval, mean_interval
from priory.sources import ReadOptions
from priory.sources.column_types import ColumnOptions, InputRows
from priory.workflows.callbacks import SILENT, Callbacks
from priory.workflows.evaluation import check_any_labelled, check_known_labels
from priory.workflows.model_files import (
    choose_columns,
    fill_target,
    get_model_columns,
    join_labelled_rows,
    load_classifier,
    open_paths,
    read_labelled_rows,
)
from priory.workflows.training_results import list_strongest_evidence

if TYPE_CHECKING:
    from priory.workflows.model_files import ModelOrPath, PathLike, Paths, TableOrTextClassifier

MAX_ROWS_TO_ASK = 5000


class ColumnImportance(NamedTuple):
    """A column, and by how many bits a row the truth is less probable to a model that does not see the column."""

    name: str
    bits: Interval


def rank_columns(
    model: ModelOrPath,
    paths: Paths,
    *,
    label: str | None = None,
    target: str | None = None,
    columns: ColumnOptions | None = None,
    read: ReadOptions | None = None,
    key: PathLike | None = None,
    callbacks: Callbacks = SILENT,
) -> list[ColumnImportance]:
    """How much each column of a table matters to a model on rows of files, the most important first.

    A column is left out by making its cells missing, and what is compared is the probability of the truth. Rows that
    the model has not learned give an honest answer. Columns that say the same can replace each other, and then neither
    matters much by itself.

    Parameters
    ----------
    model : a model file, or a model, of a table
    paths : one path or several
        Labelled rows; of more than 5,000, as many that are evenly spaced.
    label : str, optional
        Only rows of this class.
    target, columns, read, key, callbacks
        As for `priory.workflows.evaluate`.
    """
    trained = load_classifier(model, key)
    table, labels = _read_rows(trained, paths, label, choose_columns(columns, target), read, callbacks)
    if isinstance(table, list):
        raise DataError("the model reads one text; its strongest words for each class are what matters")
    truth = np.searchsorted(trained.classes_, labels)
    with callbacks.activity(f"leaving out {table.num_columns:,} columns in turn"):
        surprise = _measure_surprise(trained, table, truth)
        losses = {name: _measure_surprise(trained, _blank_column(table, name), truth) for name in table.column_names}
    found = [
        ColumnImportance(name, mean_interval((loss - surprise) / math.log(2), np.ones(len(truth))))
        for name, loss in losses.items()
    ]
    return sorted(found, key=lambda one: -one.bits.value)


def list_class_evidence(
    model: ModelOrPath,
    paths: Paths,
    *,
    label: str | None = None,
    target: str | None = None,
    columns: ColumnOptions | None = None,
    read: ReadOptions | None = None,
    key: PathLike | None = None,
    callbacks: Callbacks = SILENT,
) -> dict[str, list[tuple[str, float]]]:
    """For each class, or for one, the words or columns that speak most for it on rows of files, in decibans."""
    trained = load_classifier(model, key)
    table, labels = _read_rows(trained, paths, label, choose_columns(columns, target), read, callbacks)
    evidence = list_strongest_evidence(trained, table, labels)
    return evidence if label is None else {label: evidence.get(label, [])}


def _read_rows(
    model: TableOrTextClassifier,
    paths: Paths,
    label: str | None,
    columns: ColumnOptions,
    read: ReadOptions | None,
    callbacks: Callbacks,
) -> tuple[InputRows, Array]:
    """Labelled rows, all of one class if there is a ``label``; evenly spaced if there are many."""
    if label is not None:
        find_class_index(label, [str(name) for name in model.classes_.tolist()])
    rows = open_paths(paths, read, callbacks)
    parts = join_labelled_rows(
        read_labelled_rows(rows, get_model_columns(model), fill_target(model, columns), callbacks)
    )
    check_any_labelled(parts)
    table, labels = parts[0]
    check_known_labels(model, labels)
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
