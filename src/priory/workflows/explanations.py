"""Explain predictions: evidence for rows, importance of columns, and single cells that would change a prediction."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy import ndarray as Array

from priory.core.sharding import space_evenly
from priory.errors import DataError, suggest_name
from priory.evaluation.decisions import find_class_index
from priory.evaluation.intervals import Interval, mean_interval
from priory.model.ledger import Ledgers
from priory.sources import FileReader, RowChunk
from priory.sources.byte_streams import format_path, peek_first
from priory.sources.column_types import InputRows, ModelColumns, make_model_rows
from priory.sources.discovery import format_names
from priory.workflows import model_files
from priory.workflows.model_files import FileOptions, FileTask

if TYPE_CHECKING:
    from priory.workflows.model_files import ModelOrPath, PathLike, Paths, TableOrTextClassifier


def explain(
    model: ModelOrPath, path: PathLike | FileTask, row_numbers: Sequence[int] = (1,), **given: Unpack[FileOptions]
) -> Ledgers:
    """The evidence behind the prediction for some rows of a file.

    Parameters
    ----------
    model : a model file, or a model
    path : the file, or a FileTask
        For a model of texts also a file that is a text, such as ``note.txt``, or a folder of them.
    row_numbers : sequence of int
        Which rows, counted from 1.
    **given
        How the file is read, as for `FileTask`.

    Returns
    -------
    Ledgers
        One ledger for each row: the prior, one line for each word or column, and their sum.
    """
    task = model_files.make_task(path, given)
    trained = model_files.load_classifier(model, task.key)
    rows = read_file_rows(task, row_numbers, model_files.get_model_columns(trained))
    return trained.explain(make_model_rows(rows))


def explain_values(
    model: ModelOrPath, values: Sequence[str] | Mapping[str, str], *, key: PathLike | None = None
) -> Ledgers:
    """The evidence behind the prediction for values that are given directly.

    Parameters
    ----------
    model : a model file, or a model
    values : sequence of str, or dict
        For a model of texts, the texts. For a model of a table, the cells of one row by the names of their columns, as
        a dict or as strings such as ``"age=41"``; columns that are not named are missing.
    key : path, optional
        The model file must be signed with this key.

    Returns
    -------
    Ledgers
        One ledger for each text, or one for the row.
    """
    trained = model_files.load_classifier(model, key)
    return trained.explain(make_model_rows(_read_values(values, model_files.get_model_columns(trained))))


class _GivenRow(FileReader):
    """A row given on the command line, in the form of a file; error messages name its columns."""

    path = "command line"

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def read_chunks(self, column_names: tuple[str, ...]) -> Iterator[RowChunk]:
        raise NotImplementedError

    def locate_cell(self, row: int, column: str) -> str:
        return column


def _read_values(values: Sequence[str] | Mapping[str, str], columns: ModelColumns) -> InputRows:
    if columns.is_one_text:
        texts = values.values() if isinstance(values, Mapping) else values
        return [text.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for text in texts]
    pairs = values.items() if isinstance(values, Mapping) else [_parse_pair(text, columns) for text in values]
    cells = dict(pairs)
    known = {*columns.kinds, *columns.find_sources([*cells])}
    unknown = [name for name in cells if name not in known]
    if unknown:
        hint = suggest_name(unknown[0], columns.names)
        raise DataError(f"the model has no column {unknown[0]!r}{hint}; its columns are {format_names(columns.names)}")
    names = columns.find_sources([*cells])  # a date may be given whole, or by its parts
    batch = pa.RecordBatch.from_pydict({name: pa.array([cells.get(name, "")], pa.string()) for name in names})
    return columns.read_input_rows(RowChunk(batch, _GivenRow(names), 0))


def _parse_pair(text: str, columns: ModelColumns) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise DataError(f"{text!r} is not COLUMN=VALUE; the model's columns are {format_names(columns.names)}")
    return name, value


def read_file_rows(task: FileTask, row_numbers: Sequence[int], columns: ModelColumns) -> InputRows:
    """Read some rows of a file, counted from 1, in the form that the model reads."""
    rows = task.open_for(columns)
    found: dict[int, InputRows] = {}
    before = 0
    for chunk in rows.read_chunks(model_files.find_needed_columns(rows, columns)):
        for number in row_numbers:
            if before < number <= before + chunk.batch.num_rows:
                found[number] = columns.read_input_rows(chunk.slice(number - before - 1, 1))
        before += chunk.batch.num_rows
        if before >= max(row_numbers):
            break
    absent = [number for number in row_numbers if number not in found]
    if absent:
        raise DataError(f"{', '.join(map(format_path, task.names))}: has no row {absent[0]}; it has {before:,} rows")
    return model_files.concatenate_rows([found[number] for number in row_numbers])


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
    task = model_files.make_task(paths, given)
    trained = model_files.load_classifier(model, task.key)
    table, labels = _read_rows(trained, label, task)
    if isinstance(table, list):
        raise DataError("the model reads one text; its strongest words for each class are what matters")
    truth = np.searchsorted(trained.classes_, labels)
    with task.callbacks.activity(f"leaving out {table.num_columns:,} columns in turn"):
        # in nats, (rows,): the importance of a column is the mean of a paired difference
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
    task = model_files.make_task(paths, given)
    trained = model_files.load_classifier(model, task.key)
    table, labels = _read_rows(trained, label, task)
    evidence = list_strongest_evidence(trained, table, labels)
    return evidence if label is None else {label: evidence.get(label, [])}


def _read_rows(model: TableOrTextClassifier, label: str | None, task: FileTask) -> tuple[InputRows, Array]:
    """Read labelled rows, of one class if a ``label`` is given; of many, take evenly spaced ones."""
    if label is not None:
        find_class_index(label, [str(name) for name in model.classes_.tolist()])
    task = task.adapt_to(model)
    table, labels = model_files.read_all_labelled_rows(model, task.open(), task)
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


N_NUMBERS_TRIED = 21
MAX_VALUES_TRIED = 200


class CellChange(NamedTuple):
    """A cell, its value, the changed value, and the prediction after the change."""

    column: str
    value: str | float | None
    changed: str | float
    label: str
    probability: float


class Counterfactual(NamedTuple):
    """The prediction for a row, and the changes of one cell that change it, the most probable first."""

    row: int
    label: str
    probability: float
    changes: list[CellChange]

    def describe(self) -> str:
        """Format the changes as text."""
        head = f"row {self.row}: {self.label} ({self.probability:.1%})"
        if not self.changes:
            return f"{head}; no single cell would change the answer"
        lines = [
            f"  {one.column}: {_format_cell(one.changed)} instead of {_format_cell(one.value)}"
            f" would make it {one.label} ({one.probability:.1%})"
            for one in self.changes
        ]
        return "\n".join([f"{head} would be answered otherwise if one cell were different:", *lines])


def find_counterfactuals(
    model: ModelOrPath, path: PathLike | FileTask, row_numbers: Sequence[int] = (1,), **given: Unpack[FileOptions]
) -> list[Counterfactual]:
    """Find changes of a single cell that change the prediction for rows of a file.

    Labels are replaced by every label that the model has learned, numbers by quantiles of the column in the first block
    of the file; the nearest number that changes the prediction is returned. Texts are not changed.

    Parameters
    ----------
    model : a model file, or a model, of a table
    path : the file, or a FileTask
    row_numbers : sequence of int
        Which rows, counted from 1.
    **given
        How the file is read, as for `FileTask`.
    """
    task = model_files.make_task(path, given)
    trained = model_files.load_classifier(model, task.key)
    columns = model_files.get_model_columns(trained)
    if columns.is_one_text:
        raise DataError("the model reads one text; cells can be changed in tables only")
    values = _list_values_to_try(trained, task, columns)
    table = read_file_rows(task, row_numbers, columns)
    assert isinstance(table, pa.Table)
    return [_change_cells(trained, table.slice(place, 1), row, values) for place, row in enumerate(row_numbers)]


def _list_values_to_try(model: TableOrTextClassifier, task: FileTask, columns: ModelColumns) -> dict[str, pa.Array]:
    rows = task.open_for(columns)
    first, _ = peek_first(rows.read_chunks(model_files.find_needed_columns(rows, columns)))
    table, categories = columns.read_arrow_table(first), getattr(model, "categories_", {})
    values: dict[str, pa.Array] = {}
    for name, kind in columns.kinds.items():
        if kind == "number":
            # quantiles that occur in the file: no cell becomes a number that a row could not have
            steps = np.linspace(0, 1, N_NUMBERS_TRIED)
            values[name] = pc.unique(pc.quantile(table[name], steps.tolist(), interpolation="nearest").drop_null())
        elif kind == "label":
            values[name] = pa.array([str(v) for v in categories.get(name, ())][:MAX_VALUES_TRIED], pa.string())
    return values


def _change_cells(
    model: TableOrTextClassifier, row: pa.Table, number: int, values: dict[str, pa.Array]
) -> Counterfactual:
    """The best change of each cell: the nearest number, or the label that makes another class most probable."""
    own, classes = np.exp(model.predict_log_proba(row)[0]), model.classes_
    found = []
    for place, (name, value) in enumerate(row.to_pylist()[0].items()):
        if len(tried := values.get(name, ())):
            # one variant of the row for each tried value; p has shape (variants, classes)
            variants = pa.concat_tables([row] * len(tried)).set_column(place, name, tried)
            p, cells = np.exp(model.predict_log_proba(variants)), tried.to_pylist()
            changed = np.flatnonzero(p.argmax(axis=1) != own.argmax())
            far = [abs(cells[k] - value) if isinstance(value, float) else -p[k].max() for k in changed]
            if far:
                best = changed[int(np.argmin(far))]
                label = str(classes[p[best].argmax()])
                found.append(CellChange(name, value, cells[best], label, float(p[best].max())))
    found.sort(key=lambda change: -change.probability)
    return Counterfactual(number, str(classes[own.argmax()]), float(own.max()), found)


def _format_cell(value: str | float | None) -> str:
    if value is None:
        return "nothing"
    return f"{value:g}" if isinstance(value, float) else repr(value)


MAX_EVIDENCE_SHOWN = 6  # of each class


def list_strongest_evidence(
    model: TableOrTextClassifier, rows: InputRows, labels: Array
) -> dict[str, list[tuple[str, float]]]:
    """The words or columns with the strongest evidence for each class, as in the report, in decibans."""
    from priory.export.strongest_evidence import find_strongest_evidence

    return {
        str(label): [(one.name, round(one.decibans, 1)) for one in evidence[:MAX_EVIDENCE_SHOWN]]
        for label, evidence in find_strongest_evidence(model, rows, labels).items()
    }
