"""Explain predictions for rows of a file, or for values given directly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, Unpack

import numpy as np
import pyarrow as pa

from priory.core.name_suggestions import suggest_name
from priory.errors import DataError
from priory.models.explanation import Ledger, Ledgers
from priory.models.ledger_formatting import DECIBANS_PER_NAT
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
)

if TYPE_CHECKING:
    from priory.workflows.model_files import ModelOrPath, PathLike

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
