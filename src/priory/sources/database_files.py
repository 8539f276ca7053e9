"""Read-only readers of SQLite and DuckDB tables; duckdb is an optional dependency."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote
from weakref import finalize

import pyarrow as pa

from priory.core.name_suggestions import suggest_name
from priory.errors import DataError, MissingDependencyError
from priory.sources.arrow_files import ColumnarReader
from priory.sources.byte_streams import ProgressCallback, format_path, ignore_progress
from priory.sources.record_files import RecordReader

if TYPE_CHECKING:
    import sqlite3


class SQLiteReader(RecordReader):
    """A table of an SQLite database."""

    unit = "table"

    def _open_table(self, table: str | None) -> tuple[str, list[str]]:
        with self._connect() as connection:
            found = connection.execute("select name from sqlite_master where type in ('table', 'view') order by name")
            tables = [name for (name,) in found if not name.startswith("sqlite_")]
            chosen = choose_table(self.path, tables, table, self.unit)
            columns = connection.execute(f"select * from {quote_identifier(chosen)} limit 0").description
        return chosen, [name for name, *_ in columns]

    def _read_records(self, column_names: tuple[str, ...]) -> Iterator[tuple[object, ...]]:
        listed = ", ".join(map(quote_identifier, column_names))
        with self._connect() as connection:
            yield from connection.execute(f"select {listed} from {quote_identifier(self.table)}")

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


class DuckDBReader(ColumnarReader):
    """A table of a DuckDB database."""

    def __init__(self, path: str, table: str | None, report_progress: ProgressCallback = ignore_progress) -> None:
        try:
            import duckdb
        except ImportError as error:
            raise MissingDependencyError(
                f"{format_path(path)}: needs duckdb: pip install 'priory[duckdb]'.", name=error.name
            ) from None
        try:
            self.connection = duckdb.connect(path, read_only=True)
            finalize(self, self.connection.close)
            found = self.connection.execute("select table_name from information_schema.tables order by table_name")
            self.table = choose_table(path, [name for (name,) in found.fetchall()], table, "table")
        except duckdb.Error as error:
            reason = str(error).splitlines()[0]
            raise DataError(f"{format_path(path)}: cannot be read ({reason}); is it a DuckDB database?") from None
        super().__init__(path, report_progress)

    def _open_schema(self) -> pa.Schema:
        return self._select(["*"], 0).schema

    def _read_batches(self, column_names: list[str]) -> Iterator[pa.RecordBatch]:
        yield from self._select(list(map(quote_identifier, column_names)))

    def _select(self, columns: list[str], limit: int | None = None) -> pa.RecordBatchReader:
        query = f"select {', '.join(columns)} from {quote_identifier(self.table)}"
        relation = self.connection.cursor().sql(query + ("" if limit is None else f" limit {limit}"))
        return pa.RecordBatchReader.from_stream(relation)


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
