"""Tables of DuckDB, SQLite and PostgreSQL, named by a URL: their columns, rows, and counts of cells by class.

    duckdb:///sales.db?table=orders            a file in this folder; four slashes begin an absolute path
    sqlite:////data/sales.db?table=orders
    postgresql://ann@host/sales?table=orders   as libpq takes it, without the table

Names are quoted and values are parameters, so neither can become part of a query.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib import import_module
from typing import Any, ClassVar, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

import pyarrow as pa

from priory.errors import DataError, import_extra, suggest_name
from priory.sources.record_files import DATABASE_SCHEMES, choose_table, quote_identifier
from priory.workflows.partitions import ContextT, PartitionedRows, PartT, Sum, Task

DRIVERS = ("duckdb", "_duckdb", "sqlite3", "psycopg")  # the modules whose errors say why a database was not opened
ROWS_AT_ONCE = 50_000
PLACE = "\0"  # of a value in a query: no name can hold it


class Database(ABC):
    """An open database, read-only."""

    collation: ClassVar[str]  # under which equal strings are the same bytes

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    @classmethod
    @abstractmethod
    def connect(cls, url: str) -> Database:
        """Open the database of a URL without its table."""

    @abstractmethod
    def list_tables(self) -> list[str]:
        """The names of all tables and views."""

    @abstractmethod
    def describe(self, table: str) -> dict[str, str]:
        """The type of each column of a table, as far as it matters: "double", "text", "date" or ""."""

    @abstractmethod
    def select(self, query: str, values: Sequence[object] = ()) -> Iterator[pa.Table]:
        """The rows of a query, some at a time."""

    def select_groups(self, query: str, values: Sequence[object]) -> Iterator[pa.Table]:
        """The rows of a query that has few."""
        return self.select(query, values)

    def quote_table(self, name: str) -> str:
        """Quote the name of a table."""
        return quote_identifier(name)

    def place_values(self, query: str) -> str:
        """Replace the placeholders of values in a query by the ones that the driver takes."""
        return query.replace(PLACE, "?")


class DuckDB(Database):
    """A file of DuckDB."""

    collation = ""

    @classmethod
    def connect(cls, url: str) -> DuckDB:
        driver = import_extra("duckdb", "duckdb://: needs duckdb", "'priory[duckdb]'")
        return cls(driver.connect(find_path(url), read_only=True))

    def list_tables(self) -> list[str]:
        query = "SELECT table_name FROM information_schema.tables ORDER BY table_name"
        return [name for (name,) in self.connection.execute(query).fetchall()]

    def describe(self, table: str) -> dict[str, str]:
        schema = self._read(f"SELECT * FROM {table} LIMIT 0", ()).schema
        return {field.name: read_arrow_type(field.type) for field in schema}

    def select(self, query: str, values: Sequence[object] = ()) -> Iterator[pa.Table]:
        for batch in self._read(query, values):
            # Arrow's cast of decimals is not to the nearest double
            columns = [make_array(c.to_pylist()) if pa.types.is_decimal(c.type) else c for c in batch.columns]
            yield pa.Table.from_arrays(columns, names=batch.schema.names)

    def _read(self, query: str, values: Sequence[object]) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_stream(self.connection.cursor().sql(query, params=list(values)))


class RowDatabase(Database):
    """A database whose driver answers with rows of Python values (DB-API)."""

    def select(self, query: str, values: Sequence[object] = ()) -> Iterator[pa.Table]:
        cursor = self.connection.cursor()
        cursor.execute(query, tuple(values))
        yield from self._fetch(cursor)

    @staticmethod
    def _fetch(cursor: Any) -> Iterator[pa.Table]:
        names = [column[0] for column in cursor.description]
        while rows := cursor.fetchmany(ROWS_AT_ONCE):
            columns = [make_array(cells) for cells in zip(*rows, strict=True)]
            yield pa.Table.from_arrays(columns, names=names)


class SQLite(RowDatabase):
    """A file of SQLite, whose columns hold doubles if their declared type says so."""

    collation = " COLLATE BINARY"

    @classmethod
    def connect(cls, url: str) -> SQLite:
        driver = import_module("sqlite3")
        return cls(driver.connect(f"file:{quote(find_path(url))}?mode=ro", uri=True))

    def list_tables(self) -> list[str]:
        query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
        return [name for (name,) in self.connection.execute(query) if not name.startswith("sqlite_")]

    def describe(self, table: str) -> dict[str, str]:
        declared = self.connection.execute(f"PRAGMA table_info({table})").fetchall()
        return {name: read_declared_type(kind.upper()) for _, name, kind, *_ in declared}


class PostgreSQL(RowDatabase):
    """A database of a PostgreSQL server."""

    collation = ' COLLATE "C"'
    types: ClassVar[Mapping[str, tuple[int, ...]]] = {
        "double": (700, 701),
        "text": (18, 19, 25, 1042, 1043),
        "date": (1082, 1114, 1184),
    }

    @classmethod
    def connect(cls, url: str) -> PostgreSQL:
        driver = import_extra("psycopg", "postgresql://: needs psycopg", "'priory[postgresql]'")
        connection = driver.connect(url, autocommit=True)
        connection.execute("SET default_transaction_read_only = on")
        return cls(connection)

    def list_tables(self) -> list[str]:
        query = """SELECT CASE WHEN table_schema = 'public' THEN '' ELSE table_schema || '.' END || table_name
            FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1"""
        return [name for (name,) in self.connection.execute(query)]

    def describe(self, table: str) -> dict[str, str]:
        columns = self.connection.execute(f"SELECT * FROM {table} LIMIT 0").description
        kinds = {code: kind for kind, codes in self.types.items() for code in codes}
        return {column.name: kinds.get(column.type_code, "") for column in columns}

    def select(self, query: str, values: Sequence[object] = ()) -> Iterator[pa.Table]:
        with self.connection.transaction(), self.connection.cursor("priory") as cursor:  # rows stay on the server
            cursor.execute(query, tuple(values))
            yield from self._fetch(cursor)

    def select_groups(self, query: str, values: Sequence[object]) -> Iterator[pa.Table]:
        # without a cursor on the server, which would have a single process do the work
        return super().select(query, values)

    def place_values(self, query: str) -> str:
        return query.replace("%", "%%").replace(PLACE, "%s")

    def quote_table(self, name: str) -> str:
        return ".".join(map(quote_identifier, name.split(".", 1)))


DATABASES: dict[str, type[Database]] = dict(zip(DATABASE_SCHEMES, (DuckDB, SQLite, PostgreSQL), strict=True))


def find_path(url: str) -> str:
    """The file that a URL names."""
    return unquote(url.partition("://")[2].removeprefix("/"))


def make_array(cells: Sequence[Any]) -> pa.Array:
    """Python values as an Arrow array; decimals as the nearest doubles."""
    if any(isinstance(cell, Decimal) for cell in cells):
        cells = [float(cell) if isinstance(cell, Decimal) else cell for cell in cells]
    try:
        return pa.array(cells)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # SQLite: integers and doubles, or numbers and texts, in one column
        is_text = any(isinstance(cell, str) for cell in cells)
        return pa.array([None if cell is None else str(cell) if is_text else float(cell) for cell in cells])


def read_arrow_type(kind: pa.DataType) -> str:
    """Classify a type of Arrow: "double", "text", "date" or "" (whole numbers, decimals, truth values)."""
    if pa.types.is_floating(kind) or pa.types.is_temporal(kind):
        return "date" if pa.types.is_temporal(kind) else "double"
    return "text" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else ""


def read_declared_type(kind: str) -> str:
    """Classify the declared type of a column of SQLite: "double", "text" or ""."""
    if any(part in kind for part in ("REAL", "FLOA", "DOUB")):
        return "double"
    return "" if "INT" in kind or "BOOL" in kind else "text"


class CellCounts(NamedTuple):
    """Pairs of label and cell, and how often each occurs."""

    labels: list[Any]
    cells: pa.ChunkedArray
    times: list[int]


@dataclass(frozen=True)
class DatabaseTable(PartitionedRows):
    """A table of an open database, or the rows of it that a condition selects."""

    database: Database
    table: str  # quoted
    types: Mapping[str, str]  # of all columns
    columns: tuple[str, ...]  # those to read
    condition: str = "TRUE"
    values: tuple[str, ...] = ()
    text_column: str | None = None  # a column that is read as text, such as the labels of a model of files

    @property
    def names(self) -> tuple[str, ...]:
        return self.columns

    @property
    def strings(self) -> tuple[str, ...]:
        return tuple(name for name in self.columns if self.types[name] in ("text", "date"))

    @property
    def dates(self) -> tuple[str, ...]:
        return tuple(name for name in self.columns if self.types[name] == "date")

    @property
    def doubles(self) -> tuple[str, ...]:
        """The columns of doubles, whose cells are read."""
        return tuple(name for name in self.columns if self.types[name] == "double")

    def select_columns(self, names: Sequence[str]) -> DatabaseTable:
        for name in names:
            self.check_column(name)
        return replace(self, columns=tuple(names))

    def select_rows(self, cells: Mapping[str, str]) -> DatabaseTable:
        """The rows with these texts in these columns."""
        for name in cells:
            self.check_column(name)
        tests = [f"CAST({quote_identifier(name)} AS VARCHAR) = {PLACE}" for name in cells]
        return replace(self, condition=" AND ".join(tests) or "TRUE", values=tuple(cells.values()))

    def select_labelled(self, target: str) -> DatabaseTable:
        """The rows that have a label."""
        return replace(self, condition=f"{quote_identifier(target)} IS NOT NULL AND {self.condition}")

    def check_column(self, name: str) -> None:
        """Raise an error if the table has no such column."""
        if name not in self.types:
            raise DataError(f"the table has no column {name!r}{suggest_name(name, list(self.types))}.")

    def count_values(self, name: str, target: str) -> CellCounts:
        """Count the cells of a column by class, inside the database; doubles are read one by one.

        The cells of the target itself are the rows of each class.
        """
        chosen = ", ".join(f"{self._compare(column)} AS c{k}" for k, column in enumerate((target, name)))
        present = " AND ".join(f"{quote_identifier(column)} IS NOT NULL" for column in (target, name))
        rest = f"FROM {self.table} WHERE {present} AND {self.condition}"
        is_double = self.types[name] == "double" and name != target
        query = f"SELECT {chosen} {rest}" if is_double else f"SELECT {chosen}, count(*) AS n {rest} GROUP BY 1, 2"
        database = self.database
        select = database.select if is_double else database.select_groups
        batches = list(select(database.place_values(query), self.values))
        if not batches:
            return CellCounts([], pa.chunked_array([], pa.null()), [])
        found = pa.concat_tables(batches, promote_options="permissive")
        times = [1] * len(found) if is_double else found.column(2).to_pylist()
        return CellCounts(found.column(0).to_pylist(), found.column(1), times)

    def _compare(self, name: str) -> str:
        if name == self.text_column:
            return f"CAST({quote_identifier(name)} AS VARCHAR)"
        return quote_identifier(name) + (self.database.collation if self.types[name] == "text" else "")

    def _run_tree(self, context: ContextT, count: Task[ContextT, PartT], add: Sum[PartT]) -> PartT | None:
        listed = ", ".join(f"{self._compare(name)} AS {quote_identifier(name)}" for name in self.columns)
        query = f"SELECT {listed} FROM {self.table} WHERE {self.condition}"
        return add(
            count(context, rows) for rows in self.database.select(self.database.place_values(query), self.values)
        )


@contextmanager
def open_table(url: str, where: Mapping[str, str] | None = None) -> Iterator[DatabaseTable]:
    """Open the table that a URL names; ``where`` selects the rows with these texts in these columns."""
    place, _, query = url.partition("?")
    given = dict(parse_qsl(query))
    wanted = given.pop("table", None)
    try:
        database = DATABASES[place.partition("://")[0]].connect(f"{place}?{urlencode(given)}" if given else place)
    except Exception as error:
        if type(error).__module__.split(".")[0] in DRIVERS:
            raise DataError(f"{place}: cannot be opened ({str(error).splitlines()[0]}); check the URL") from None
        raise
    try:
        table = database.quote_table(choose_table(place, database.list_tables(), wanted, "table"))
        types = database.describe(table)
        yield DatabaseTable(database, table, types, tuple(types)).select_rows(where or {})
    finally:
        database.connection.close()
