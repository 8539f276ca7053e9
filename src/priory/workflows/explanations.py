"""Why a model answers as it does: one row, given values, and the importance of columns over all rows of a file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, Unpack

import numpy as np
import pyarrow as pa

from priory.core.sharding import space_evenly
from priory.core.similar_names import suggest_name
from priory.core.typing import Array
from priory.errors import DataError
from priory.evaluation.decisions import find_class_index
from priory.evaluation.intervals import Interval, mean_interval
from priory.model.ledger import Ledger, Ledgers
from priory.model.ledger_output import DECIBANS_PER_NAT
from priory.sources import FileReader, RowChunk
from priory.sources.byte_streams import format_path
from priory.sources.column_types import InputRows, ModelColumns, make_model_rows
from priory.sources.discovery import format_names
from priory.workflows.model_files import (
    FileOptions,
    FileTask,
    concatenate_rows,
    find_needed_columns,
    get_model_columns,
    load_classifier,
    make_task,
    read_all_labelled_rows,
)
from priory.workflows.training_results import list_strongest_evidence

if TYPE_CHECKING:
    from priory.workflows.model_files import ModelOrPath, PathLike, Paths, TableOrTextClassifier


MAX_LINES_IN_JSON = 100
MAX_DECIBANS_IN_JSON = 9999.9  # JSON has no infinity

JSONValue: TypeAlias = "str | int | float | bool | Sequence[JSONValue] | Mapping[str, JSONValue] | None"


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
    task = make_task(path, given)
    trained = load_classifier(model, task.key)
    rows = read_file_rows(task, row_numbers, get_model_columns(trained))
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
    trained = load_classifier(model, key)
    return trained.explain(make_model_rows(_read_values(values, get_model_columns(trained))))


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
    for chunk in rows.read_chunks(find_needed_columns(rows, columns)):
        for number in row_numbers:
            if before < number <= before + chunk.batch.num_rows:
                found[number] = columns.read_input_rows(chunk.slice(number - before - 1, 1))
        before += chunk.batch.num_rows
        if before >= max(row_numbers):
            break
    absent = [number for number in row_numbers if number not in found]
    if absent:
        raise DataError(f"{', '.join(map(format_path, task.names))}: has no row {absent[0]}; it has {before:,} rows")
    return concatenate_rows([found[number] for number in row_numbers])


def convert_ledger_to_dict(ledger: Ledger) -> dict[str, JSONValue]:
    """Convert a ledger for JSON: the weight of each line for the winner against the runner-up, the largest first."""
    prior, *weights = (_round_decibans(weight) for weight in ledger.weights())
    lines = [
        {"name": line.name, "value": _convert_cell(line.value), "decibans": weight, "places": list(line.spans)}
        for line, weight in sorted(zip(ledger.lines, weights, strict=True), key=lambda pair: -abs(pair[1]))
    ]
    ranked = [str(ledger.classes[c]) for c in ledger.ranked()]
    return {
        "label": ranked[0],
        "against": ranked[1] if len(ranked) > 1 else None,
        "decibans": _round_decibans(ledger.log_odds()),
        "no_evidence": ledger.no_evidence,
        "prior": prior,
        "prior_name": ledger.prior.name,
        "corrections": list(ledger.corrections),
        "evidence": lines[:MAX_LINES_IN_JSON],
    }


def _round_decibans(nats: float) -> float:
    return round(float(np.clip(nats * DECIBANS_PER_NAT, -MAX_DECIBANS_IN_JSON, MAX_DECIBANS_IN_JSON)), 2)


def _convert_cell(value: object) -> str | int | float | bool | None:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


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
