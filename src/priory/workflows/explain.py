"""Rows to be explained, and their ledgers in JSON."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from priory.cli.model_files import together, wanted
from priory.errors import DataError
from priory.models.explanation import DECIBAN
from priory.sources import Asked, Chunk, File, open_files
from priory.sources.column_types import Columns
from priory.sources.discovery import listed

MOST_LINES, MOST_DECIBANS = 100, 9999.9  # of evidence in JSON; and JSON knows no infinity


class Typed(File):
    """What was typed on the command line, as a file of one row."""

    path = "command line"

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def chunks(self, wanted: tuple[str, ...]) -> Any:
        raise NotImplementedError

    def place(self, row: int, column: str) -> str:
        return column


def rows_given(what: tuple[str, ...], columns: Columns) -> Any:
    """Texts as they are; for a table one row, its columns by name, those not named missing."""
    if columns.is_one_text:
        return [text.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for text in what]
    pairs = dict(_pair(text, columns) for text in what)
    batch = pa.RecordBatch.from_pydict({name: pa.array([pairs.get(name, "")], pa.string()) for name in columns.names})
    return columns.rows(Chunk(batch, Typed(columns.names), 0))


def _pair(text: str, columns: Columns) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or name not in columns.kinds:
        raise DataError(f"{text!r} is not COLUMN=VALUE; the model's columns are {listed(columns.names)}")
    return name, value


def rows_from(path: str, numbers: tuple[int, ...], columns: Columns, how: Asked) -> Any:
    """Some rows of a file, by number from 1."""
    rows = open_files([path], how)
    found: dict[int, Any] = {}
    before = 0
    for chunk in rows.chunks(wanted(rows, columns)):
        for number in numbers:
            if before < number <= before + chunk.batch.num_rows:
                found[number] = columns.rows(chunk._replace(batch=chunk.batch.slice(number - before - 1, 1)))
        before += chunk.batch.num_rows
        if before >= max(numbers):
            break
    absent = [number for number in numbers if number not in found]
    if absent:
        raise DataError(f"{path}: has no row {absent[0]}; it has {before:,} rows")
    return together([found[number] for number in numbers])


def as_dict(ledger: Any) -> dict[str, Any]:
    """A ledger in JSON: the weight of every entry for the winner against the runner-up, the weightiest first."""
    weights = np.clip(np.array(ledger.weights()) * DECIBAN, -MOST_DECIBANS, MOST_DECIBANS).round(2).tolist()
    prior, *entries = [
        {"name": line.name, "value": _value(line.value), "decibans": weight, "places": list(line.places)}
        for line, weight in zip(ledger.entries(), weights, strict=True)
    ]
    ranked = [str(ledger.classes[c]) for c in ledger.ranked()]
    return {
        "label": ranked[0],
        "against": ranked[1] if len(ranked) > 1 else None,
        "decibans": round(float(np.clip(ledger.log_odds() * DECIBAN, -MOST_DECIBANS, MOST_DECIBANS)), 2),
        "no_evidence": ledger.no_evidence,
        "prior": prior["decibans"],
        "evidence": sorted(entries, key=lambda entry: -abs(entry["decibans"]))[:MOST_LINES],
    }


def _value(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
