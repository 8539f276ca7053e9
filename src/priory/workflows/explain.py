"""Rows to be explained, and their ledgers in JSON."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from priory.cli.model_files import concatenate_rows, find_needed_columns
from priory.errors import DataError
from priory.models.explanation import DECIBANS_PER_NAT
from priory.sources import FileReader, ReadOptions, RowChunk, open_files
from priory.sources.column_types import ModelColumns
from priory.sources.discovery import format_names

MAX_EVIDENCE_LINES, MAX_EVIDENCE_DECIBANS = 100, 9999.9  # of evidence in JSON; and JSON knows no infinity


class TypedRowReader(FileReader):
    """What was typed on the command line, as a file of one row."""

    path = "command line"

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def read_chunks(self, column_names: tuple[str, ...]) -> Any:
        raise NotImplementedError

    def locate_cell(self, row: int, column: str) -> str:
        return column


def parse_typed_rows(arguments: tuple[str, ...], columns: ModelColumns) -> Any:
    """Texts as they are; for a table one row, its columns by name, those not named missing."""
    if columns.is_one_text:
        return [text.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for text in arguments]
    pairs = dict(_parse_pair(text, columns) for text in arguments)
    batch = pa.RecordBatch.from_pydict({name: pa.array([pairs.get(name, "")], pa.string()) for name in columns.names})
    return columns.read_input_rows(RowChunk(batch, TypedRowReader(columns.names), 0))


def _parse_pair(text: str, columns: ModelColumns) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or name not in columns.kinds:
        raise DataError(f"{text!r} is not COLUMN=VALUE; the model's columns are {format_names(columns.names)}")
    return name, value


def read_file_rows(path: str, numbers: tuple[int, ...], columns: ModelColumns, read_options: ReadOptions) -> Any:
    """Some rows of a file, by number from 1."""
    rows = open_files([path], read_options)
    found: dict[int, Any] = {}
    before = 0
    for chunk in rows.read_chunks(find_needed_columns(rows, columns)):
        for number in numbers:
            if before < number <= before + chunk.batch.num_rows:
                found[number] = columns.read_input_rows(chunk._replace(batch=chunk.batch.slice(number - before - 1, 1)))
        before += chunk.batch.num_rows
        if before >= max(numbers):
            break
    absent = [number for number in numbers if number not in found]
    if absent:
        raise DataError(f"{path}: has no row {absent[0]}; it has {before:,} rows")
    return concatenate_rows([found[number] for number in numbers])


def convert_ledger_to_dict(ledger: Any) -> dict[str, Any]:
    """A ledger in JSON: the weight of every entry for the winner against the runner-up, the weightiest first."""
    weights = (
        np.clip(np.array(ledger.weights()) * DECIBANS_PER_NAT, -MAX_EVIDENCE_DECIBANS, MAX_EVIDENCE_DECIBANS)
        .round(2)
        .tolist()
    )
    prior, *entries = [
        {"name": line.name, "value": _convert_to_json(line.value), "decibans": weight, "places": list(line.spans)}
        for line, weight in zip(ledger.entries(), weights, strict=True)
    ]
    ranked = [str(ledger.classes[c]) for c in ledger.ranked()]
    return {
        "label": ranked[0],
        "against": ranked[1] if len(ranked) > 1 else None,
        "decibans": round(
            float(np.clip(ledger.log_odds() * DECIBANS_PER_NAT, -MAX_EVIDENCE_DECIBANS, MAX_EVIDENCE_DECIBANS)), 2
        ),
        "no_evidence": ledger.no_evidence,
        "prior": prior["decibans"],
        "evidence": sorted(entries, key=lambda entry: -abs(entry["decibans"]))[:MAX_EVIDENCE_LINES],
    }


def _convert_to_json(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
