"""Tables of SQLite and DuckDB databases and sheets of Excel workbooks: rows of Python values, read as text."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from itertools import islice
from typing import TYPE_CHECKING
from urllib.parse import quote
from weakref import finalize

import pyarrow as pa

from priory.errors import DataError, ModelTooLargeError, import_extra, suggest_name
from priory.sources.byte_streams import MAX_UNPACK_RATIO, MIN_UNPACK_LIMIT, ProgressCallback, format_path
from priory.sources.cell_parsing import FileReader, RowChunk, check_column_names

if TYPE_CHECKING:
    import sqlite3

    from openpyxl.workbook import Workbook


RECORD_CHUNK_ROWS = 8192
XML_BLOCK_BYTES = 1 << 20
MERGED_CELLS = re.compile(rb'<(?:\w+:)?mergeCell\s[^>]*?ref="([A-Z0-9:]+)"[^>]*>')


class RecordReader(FileReader):
    """Reads a table of Python values as text."""

    def __init__(self, path: str, table: SQLiteTable | Sheet, report_progress: ProgressCallback) -> None:
        self.path, self.table, self.report_progress = path, table, report_progress
        self.names = check_column_names(format_path(path), table.columns)

    def read_chunks(self, column_names: tuple[str, ...]) -> Iterator[RowChunk]:
        records, start = self.table.read_records(column_names), 0
        while rows := list(islice(records, RECORD_CHUNK_ROWS)):
            columns = [self._convert_column(name, j, rows, start) for j, name in enumerate(column_names)]
            yield RowChunk(pa.RecordBatch.from_arrays(columns, names=list(column_names)), self, start)
            start += len(rows)
        self.report_progress(os.path.getsize(self.path))
        if not start:
            named = f"{self.table.unit} {self.table.name!r}"
            raise DataError(f"{format_path(self.path)}: {named} has no rows; give one with rows")

    def _convert_column(self, name: str, position: int, rows: list[tuple[object, ...]], start: int) -> pa.StringArray:
        cells = []
        for row, record in enumerate(rows, start=start):
            value = record[position]
            if isinstance(value, bytes):
                raise DataError(f"{self.locate_cell(row, name)}: holds bytes; convert them to text or numbers")
            cells.append(format_value_as_cell(value))
        return pa.array(cells, pa.string())

    def list_notes(self) -> Iterator[str]:
        if isinstance(self.table, Sheet) and (merged := self.table.list_merged_cells()):
            yield (
                f"{format_path(self.path)}: sheet {self.table.name!r} has merged cells ({', '.join(merged[:3])}"
                f"{f' and {len(merged) - 3} more' if len(merged) > 3 else ''}); only the first of each has a value, "
                "and the others are read as missing"
            )

    def suggest_header(self, name: str) -> str:
        if not isinstance(self.table, Sheet):
            return ""
        row = self.table.find_row(name)
        return f"; row {row} has it: remove the rows above it" if row else super().suggest_header(name)

    def locate_cell(self, row: int, column: str) -> str:
        return f"{format_path(self.path)}: {self.table.unit} {self.table.name!r}, {self.table.locate_cell(row, column)}"


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


class SQLiteTable:
    """A table of an SQLite database."""

    unit = "table"

    def __init__(self, path: str, wanted: str | None) -> None:
        self.path = path
        with self._connect() as connection:
            found = connection.execute("select name from sqlite_master where type in ('table', 'view') order by name")
            tables = [name for (name,) in found if not name.startswith("sqlite_")]
            self.name = choose_table(path, tables, wanted, self.unit)
            columns = connection.execute(f"select * from {quote_identifier(self.name)} limit 0").description
        self.columns = [name for name, *_ in columns]

    def read_records(self, column_names: tuple[str, ...]) -> Iterator[tuple[object, ...]]:
        listed = ", ".join(map(quote_identifier, column_names))
        with self._connect() as connection:
            yield from connection.execute(f"select {listed} from {quote_identifier(self.name)}")

    def locate_cell(self, row: int, column: str) -> str:
        return f"row {row + 1}, column {column!r}"

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        import sqlite3

        connection = sqlite3.connect(f"file:{quote(self.path)}?mode=ro", uri=True, check_same_thread=False)
        try:
            yield connection
        except sqlite3.Error as error:
            raise DataError(f"{format_path(self.path)}: cannot be read ({error}); is it an SQLite database?") from None
        finally:
            connection.close()


class DuckDBTable:
    """A table of a DuckDB database."""

    def __init__(self, path: str, wanted: str | None) -> None:
        duckdb = import_extra("duckdb", f"{format_path(path)}: needs duckdb", "'priory[duckdb]'")
        try:
            self.connection = duckdb.connect(path, read_only=True)
            finalize(self, self.connection.close)
            found = self.connection.execute("select table_name from information_schema.tables order by table_name")
            self.name = choose_table(path, [name for (name,) in found.fetchall()], wanted, "table")
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise DataError(f"{format_path(path)}: cannot be read ({reason}); is it a DuckDB database?") from None
        self.schema: pa.Schema = self._select(["*"], 0).schema

    def read_batches(self, column_names: list[str]) -> Iterator[pa.RecordBatch]:
        yield from self._select(list(map(quote_identifier, column_names)))

    def _select(self, columns: list[str], limit: int | None = None) -> pa.RecordBatchReader:
        query = f"select {', '.join(columns)} from {quote_identifier(self.name)}"
        relation = self.connection.cursor().sql(query + ("" if limit is None else f" limit {limit}"))
        return pa.RecordBatchReader.from_stream(relation)


DATABASE_SCHEMES = ("duckdb", "sqlite", "postgresql")


def is_database(path: str) -> bool:
    """Whether a path is the URL of a table in a database, such as ``duckdb:///sales.db?table=orders``."""
    return path.partition("://")[0] in DATABASE_SCHEMES and "://" in path


def quote_identifier(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def choose_table(path: str, tables: list[str], wanted: str | None, unit: str) -> str:
    """Return the wanted table, or the only one; ``unit`` is the format's word for a table."""
    listed = ", ".join(map(repr, tables[:10]))
    if not tables:
        raise DataError(f"{format_path(path)}: has no {unit}; give a file with rows")
    if wanted is None and len(tables) > 1:
        raise DataError(f"{format_path(path)}: has {len(tables)} {unit}s; use --table with one of {listed}")
    if wanted is not None and wanted not in tables:
        raise DataError(f"{format_path(path)}: has no {unit} {wanted!r}{suggest_name(wanted, tables)}; it has {listed}")
    return wanted or tables[0]


WORKBOOK_PART = "xl/workbook.xml"


def is_workbook(path: str) -> bool:
    """Whether a file is an Excel workbook, by its contents."""
    try:
        with zipfile.ZipFile(path) as archive:
            return WORKBOOK_PART in archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return False


class Sheet:
    """A sheet of a workbook: its first row has the names of the columns."""

    unit = "sheet"

    def __init__(self, path: str, wanted: str | None) -> None:
        self.workbook = _open_workbook(path)
        finalize(self, self.workbook.close)
        self.name = choose_table(path, self.workbook.sheetnames, wanted, self.unit)
        header = next(self.workbook[self.name].iter_rows(values_only=True), ())
        self.columns = [format_value_as_cell(cell) or "" for cell in header]
        while self.columns and not self.columns[-1].strip():
            self.columns.pop()  # cells that were formatted, not filled
        if not self.columns:
            raise DataError(f"{format_path(path)}: sheet {self.name!r} is empty; give one with a header and rows")

    def list_merged_cells(self) -> list[str]:
        """The ranges of merged cells, such as A2:A5, which openpyxl leaves out of workbooks that it only reads."""
        found, rest = list[bytes](), b""
        with self.workbook[self.name]._get_source() as part:
            while block := part.read(XML_BLOCK_BYTES):
                found += MERGED_CELLS.findall(rest + block)
                rest = (rest + block).rpartition(b">")[2]
        return sorted(cells.decode() for cells in found)

    def find_row(self, cell: str) -> int:
        """The number of the first row, of twenty, with this cell; 0 if none has it."""
        rows = self.workbook[self.name].iter_rows(max_row=20, values_only=True)
        return next((number for number, row in enumerate(rows, 1) if cell in row), 0)

    def read_records(self, column_names: tuple[str, ...]) -> Iterator[tuple[object, ...]]:
        positions = [self.columns.index(name) for name in column_names]
        rows = self.workbook[self.name].iter_rows(min_row=2, max_col=len(self.columns), values_only=True)
        for row in rows:
            if any(cell is not None for cell in row):
                yield tuple(row[j] if j < len(row) else None for j in positions)

    def locate_cell(self, row: int, column: str) -> str:
        from openpyxl.utils import get_column_letter

        return f"cell {get_column_letter(self.columns.index(column) + 1)}{row + 2}"


def _open_workbook(path: str) -> Workbook:
    problem = f"{format_path(path)}: is an Excel workbook, which needs openpyxl"
    openpyxl = import_extra("openpyxl", problem, "'priory[excel]'")
    with zipfile.ZipFile(path) as archive:
        packed = sum(part.compress_size for part in archive.infolist())
        unpacked = sum(part.file_size for part in archive.infolist())
    if unpacked > max(MIN_UNPACK_LIMIT, MAX_UNPACK_RATIO * packed):
        raise ModelTooLargeError(
            f"{format_path(path)}: decompresses to more than {MAX_UNPACK_RATIO} times its size; save the sheet as CSV"
        )
    try:
        return openpyxl.load_workbook(path, read_only=True, data_only=True)
    except Exception as error:  # openpyxl raises many kinds of errors
        raise DataError(f"{format_path(path)}: is a damaged workbook ({type(error).__name__}); save it again") from None
