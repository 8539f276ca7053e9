"""Base of readers whose rows are Python values; they are converted to text, as in a CSV."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator
from datetime import date, datetime, time
from itertools import islice

import pyarrow as pa

from priory.errors import DataError
from priory.sources.byte_streams import ProgressCallback, format_path, ignore_progress
from priory.sources.chunk import FileReader, RowChunk, check_column_names

RECORD_CHUNK_ROWS = 8192


class RecordReader(FileReader):
    """Reads one table of a file that may have several; ``unit`` is the format's word for a table."""

    unit: str

    def __init__(self, path: str, table: str | None, report_progress: ProgressCallback = ignore_progress) -> None:
        self.path, self.report_progress = path, report_progress
        self.table, names = self._open_table(table)
        self.names = check_column_names(format_path(path), names)

    @abstractmethod
    def _open_table(self, table: str | None) -> tuple[str, list[str]]:
        """The table that is wanted, or the only one, and the names of its columns."""

    @abstractmethod
    def _read_records(self, column_names: tuple[str, ...]) -> Iterator[tuple[object, ...]]:
        """The cells of these columns, a row at a time."""

    def read_chunks(self, column_names: tuple[str, ...]) -> Iterator[RowChunk]:
        records, start = self._read_records(column_names), 0
        while rows := list(islice(records, RECORD_CHUNK_ROWS)):
            columns = [self._convert_column(name, j, rows, start) for j, name in enumerate(column_names)]
            yield RowChunk(pa.RecordBatch.from_arrays(columns, names=list(column_names)), self, start)
            start += len(rows)
        self.report_progress(os.path.getsize(self.path))
        if not start:
            raise DataError(f"{format_path(self.path)}: {self.unit} {self.table!r} has no rows; give one with rows")

    def _convert_column(self, name: str, position: int, rows: list[tuple[object, ...]], start: int) -> pa.StringArray:
        cells = []
        for row, record in enumerate(rows, start=start):
            value = record[position]
            if isinstance(value, bytes):
                raise DataError(f"{self.locate_cell(row, name)}: holds bytes; convert them to text or numbers")
            cells.append(format_value_as_cell(value))
        return pa.array(cells, pa.string())

    def locate_cell(self, row: int, column: str) -> str:
        return f"{format_path(self.path)}: {self.unit} {self.table!r}, row {row + 1}, column {column!r}"


def format_value_as_cell(value: object) -> str | None:
    """Format a value as in a CSV; None if it is missing.

    >>> format_value_as_cell(True), format_value_as_cell(2.0), format_value_as_cell(datetime(2024, 5, 1))
    ('true', '2', '2024-05-01')
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(sep=" ", timespec="seconds")
    return value.isoformat() if isinstance(value, date) else str(value)
