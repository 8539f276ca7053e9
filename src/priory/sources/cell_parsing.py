"""A chunk of a file's rows, and its cells as numbers, labels, dates or documents; an error names the cell."""

from __future__ import annotations

import math
import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy import ndarray as Array

from priory.errors import DataError
from priory.tables import dates
from priory.tables.dates import Dates, Zones
from priory.tables.number_formats import NumberFormat
from priory.text.documents import PackedDocuments

try:
    from pyarrow import _compute as functions  # where the public names come from
except ImportError:
    import pyarrow.compute as functions


def _call(name: str, *arguments: object, options: object = None) -> Any:
    return functions.call_function(name, list(arguments), options)


def cast(column: pa.Array, to: pa.DataType) -> pa.Array:
    """Cast to another type; a lossy cast is an error."""
    return column if column.type == to else _call("cast", column, options=functions.CastOptions.safe(to))


def fill_missing(column: pa.Array, value: object) -> pa.Array:
    """Replace missing cells by ``value``."""
    return _call("coalesce", column, pa.scalar(value, column.type)) if column.null_count else column


def find_present(column: pa.Array) -> np.ndarray:
    """Whether each cell is present."""
    return unpack_column(_call("is_valid", column))


def take(column: pa.Array, places: pa.Array) -> pa.Array:
    """Take cells by position."""
    return _call("take", column, places, options=functions.TakeOptions())


def number_texts(column: pa.Array) -> tuple[np.ndarray, list[str]]:
    """The code of each cell, -1 where it is missing, and the values in order of appearance."""
    coded = _call("dictionary_encode", column, options=functions.DictionaryEncodeOptions("mask"))
    return unpack_column(fill_missing(coded.indices, -1)), coded.dictionary.to_pylist()


def make_column(values: np.ndarray) -> pa.Array:
    """Convert an array to a column without `pa.array`, which imports numpy.ma."""
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def unpack_column(column: pa.Array) -> np.ndarray:
    """Convert a column to an array, NaN where a number is missing."""
    return np.asarray(column.to_numpy(zero_copy_only=False))


def trim(column: pa.Array) -> pa.Array:
    """Strip white space at both ends."""
    return _call("utf8_trim_whitespace", column)


def match_pattern(column: pa.Array, pattern: str) -> pa.Array:
    """Whether each text contains a match."""
    return _call("match_substring_regex", column, options=functions.MatchSubstringOptions(pattern))


def is_one_of(column: pa.Array, values: Iterable[str]) -> pa.Array:
    """Whether each cell is one of the values."""
    return _call("is_in", column, options=functions.SetLookupOptions(value_set=pa.array(values, pa.string())))


def blank(column: pa.Array, where: pa.Array) -> pa.Array:
    """Make cells missing where ``where`` is true."""
    return _call("replace_with_mask", column, where, pa.scalar(None, column.type))


def invert(flags: pa.Array) -> pa.Array:
    """Logical not."""
    return _call("invert", flags)


def are_both(first: pa.Array, second: pa.Array) -> pa.Array:
    """Logical and."""
    return _call("and", first, second)


def choose(where: pa.Array, one: pa.Array, other: pa.Array) -> pa.Array:
    """Take cells from ``one`` where true, from ``other`` elsewhere."""
    return _call("if_else", where, one, other)


def join_texts(parts: Iterable[pa.Array | str], delimiter: str = "") -> pa.Array:
    """Concatenate the texts of each row."""
    return _call("binary_join_element_wise", *parts, delimiter, options=functions.JoinOptions())


def replace_text(column: pa.Array, old: str, new: str) -> pa.Array:
    """Replace every occurrence of ``old``."""
    return _call("replace_substring", column, options=functions.ReplaceSubstringOptions(old, new))


MAX_CELL_BYTES = 25 << 20
MAX_LINE_BYTES = 2 * MAX_CELL_BYTES  # of a file of rows


class FileReader(ABC):
    """One file of rows, read a chunk at a time; the memory needed does not depend on its size."""

    path: str
    names: tuple[str, ...]  # of its columns
    schema: pa.Schema | None = None  # their types, if the file has any

    @abstractmethod
    def read_chunks(self, column_names: tuple[str, ...]) -> Iterator[RowChunk]:
        """The rows, with the named columns in this order."""

    @abstractmethod
    def locate_cell(self, row: int, column: str) -> str:
        """The place of a cell, for an error message: ``file:line:column`` if the file has lines."""

    def list_notes(self) -> Iterator[str]:
        """What is odd about the file, though it can be read."""
        return iter(())

    def suggest_header(self, name: str) -> str:
        """What to do if the first line is not the header, for a file that has no column of this name."""
        if any(parse_number(cell) is not None for cell in self.names):
            return "; if the first row is data, use --no-header"
        return ""


class RowPlaces(NamedTuple):
    """The places of rows in a file."""

    file: FileReader
    numbers: Array  # (rows,), the number of each row in the file, from 0

    def locate_cell(self, row: int, column: str) -> str:
        """The place of a cell, for an error message."""
        return self.file.locate_cell(int(self.numbers[row]), column)


class RowChunk(NamedTuple):
    """Some rows of a file."""

    batch: pa.RecordBatch
    file: FileReader
    start: int  # the number of the first row in the file, from 0
    kept: Array | None = None  # where the rows of the batch stand in the chunk, if others were left out

    @property
    def places(self) -> RowPlaces:
        """The places of the rows."""
        rows = np.arange(self.batch.num_rows) if self.kept is None else self.kept
        return RowPlaces(self.file, self.start + rows)

    def keep_rows(self, is_kept: Array) -> RowChunk:
        """Keep the rows where ``is_kept``, of shape (rows,), is true."""
        rows = np.flatnonzero(is_kept)
        batch = self.batch.filter(pa.array(is_kept))
        return self._replace(batch=batch, kept=rows if self.kept is None else self.kept[rows])

    def slice(self, first: int, count: int) -> RowChunk:
        """A run of rows of the chunk."""
        rows = self.places.numbers[first : first + count] - self.start
        return self._replace(batch=self.batch.slice(first, count), kept=rows)

    def make_cell_error(self, row: int, column: str, problem: str, remedy: str) -> DataError:
        """An error that names the place of a cell in the file."""
        return DataError(f"{self.places.locate_cell(row, column)}: {problem}; {remedy}")


def check_column_names(path: str, names: list[str], remedy: str = "") -> tuple[str, ...]:
    """Return the column names, which have to be unique; unused columns may have blank names."""
    if not names:
        raise DataError(f"{path}: has no columns; give a table with columns")
    for j, name in enumerate(names):
        if name.strip() and name in names[:j]:
            first = names.index(name) + 1
            raise DataError(f"{path}:1:{j + 1}: column {name!r} is also column {first}; rename one of them{remedy}")
    return tuple(names)


NUMBER_PATTERN = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_MONTH, _DAY = r"(?:0?[1-9]|1[0-2])", r"(?:0?[1-9]|[12]\d|3[01])"
_MONTH_NAME = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-zA-Z]*"
_TIME = r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|UTC|[+-]\d{2}:?\d{2}))?)?"
DATE_PATTERN = (
    rf"^(?:\d{{4}}[-/]{_MONTH}[-/]{_DAY}|{_DAY}[./-]{_DAY}[./-]\d{{4}}|{_DAY}/{_DAY}/\d{{2}}"
    rf"|{_DAY}[ -]{_MONTH_NAME}[ -]\d{{2,4}}|{_MONTH_NAME} {_DAY},? \d{{4}}){_TIME}$"
)
MAX_SUGGESTED_LENGTH = 20  # of a cell that --missing could name
INTEGER_PATTERN = re.compile(r"[+-]?\d+")
INT64_BOUND = 2**63


def is_text_column(column: pa.Array) -> bool:
    return bool(pa.types.is_string(column.type))


def mask_missing_cells(column: pa.Array, missing: frozenset[str]) -> pa.Array:
    """Replace blank cells and those in ``missing`` by null."""
    if not is_text_column(column):
        return column
    # not `choose`: before Arrow 24 it breaks a column that begins inside another one (a slice)
    return blank(column, is_one_of(trim(column), ["", *sorted(missing)]))


def looks_numeric(column: pa.Array) -> pa.BooleanArray:
    return match_pattern(trim(column), NUMBER_PATTERN)


def parse_number(cell: str) -> float | None:
    """Parse a finite number; None if the cell is not one.

    >>> parse_number(" 4.5e1"), parse_number("1_0"), parse_number("nan"), parse_number("1e999")
    (45.0, None, None, None)
    """
    is_number = re.fullmatch(NUMBER_PATTERN, cell.strip(), re.ASCII) is not None
    return value if is_number and math.isfinite(value := float(cell)) else None


def looks_like_date(column: pa.Array) -> pa.BooleanArray:
    """Whether each cell is a date, with or without a time of day, in one of the common notations."""
    return match_pattern(trim(column), DATE_PATTERN)


def blank_non_numbers(column: pa.Array, missing: frozenset[str], form: str | None = None) -> tuple[pa.Array, int]:
    """Replace cells that are not finite numbers by null, and count them."""
    there = numbers = mask_missing_cells(column, missing)
    if form is not None:
        codes, values = number_texts(there)
        is_bad = np.isnan(parse_written_numbers(values, form)[codes]) & (codes >= 0)
        return blank(there, pa.array(is_bad)), int(is_bad.sum())
    if is_text_column(there):
        is_text = invert(fill_missing(looks_numeric(there), True))
        numbers = trim(blank(there, is_text))
    is_number = np.isfinite(unpack_column(cast(numbers, pa.float64())))
    is_bad = find_present(there) & ~is_number
    return blank(there, pa.array(is_bad)), int(is_bad.sum())


def read_number_column(
    chunk: RowChunk, name: str, missing: frozenset[str], is_open: bool = True, form: str | None = None
) -> Array:
    """Read a column of numbers, NaN where a cell is missing.

    ``is_open`` tells whether the user can still declare the type of the column; a trained model has fixed it. ``form``
    is the notation of its numbers, if it is not the usual one.
    """
    column = chunk.batch.column(name)
    if not is_text_column(column):
        values = unpack_column(cast(column, pa.float64())).astype(float)
        if np.isinf(values).any():
            raise chunk.make_cell_error(int(np.isinf(values).argmax()), name, "is infinite", "leave the cell empty")
        return values
    there = mask_missing_cells(column, missing)
    if form is not None:
        return _read_written_numbers(chunk, there, name, form, is_open)
    try:
        values = unpack_column(cast(trim(there), pa.float64())).astype(float)
    except pa.ArrowInvalid:
        good = unpack_column(fill_missing(looks_numeric(there), True))
        raise _make_number_error(chunk, int(np.argmin(good)), name, is_open) from None
    odd = ~np.isfinite(values) & find_present(there)
    if odd.any():
        raise _make_number_error(chunk, int(odd.argmax()), name, is_open)
    if (np.abs(values) >= INT64_BOUND).any():
        for row in np.flatnonzero(np.abs(values) >= INT64_BOUND):
            cell = there[int(row)].as_py().strip()
            if INTEGER_PATTERN.fullmatch(cell) and abs(int(cell)) >= INT64_BOUND:
                problem = f"the integer {shorten_cell(cell)} is beyond 2^63 - 1"
                raise chunk.make_cell_error(
                    int(row), name, problem, f"write it with an exponent, or use --type {name}=label"
                )
    return values


def _read_written_numbers(chunk: RowChunk, column: pa.Array, name: str, form: str, is_open: bool) -> Array:
    """Read numbers in a notation such as 1.234,5."""
    codes, values = number_texts(column)
    numbers = parse_written_numbers(values, form)[codes]
    bad = np.isnan(numbers) & (codes >= 0)
    if bad.any():
        raise _make_number_error(chunk, int(bad.argmax()), name, is_open, f" like {form}")
    return numbers


def parse_written_numbers(values: Sequence[str], form: str) -> Array:
    """(values + 1,): numbers in a notation, NaN where a cell is written otherwise; the last is NaN, for code -1."""
    number_format = NumberFormat.parse(form)
    assert number_format is not None, form
    return np.append(number_format.read(values), np.nan)


def _make_number_error(chunk: RowChunk, row: int, name: str, is_open: bool, like: str = "") -> Exception:
    cell = chunk.batch.column(name)[row].as_py()
    given = cell.strip()
    missing = "" if len(given) > MAX_SUGGESTED_LENGTH or "," in given else f"--missing {shlex.quote(given)}, "
    remedy = f"correct it, or use {missing}--coerce or --type {shlex.quote(name)}=label"
    if not is_open:
        remedy = "correct it, or leave the cell empty"
    if not like and re.fullmatch(r"\s*[+-]?\d+,\d+\s*", cell):
        remedy = "write all cells alike, or use --decimal ," if is_open else "use a point as the decimal separator"
    return chunk.make_cell_error(row, name, f"{shorten_cell(cell)} is not a number{like}", remedy)


def encode_label_column(column: pa.Array) -> tuple[Array, Array]:
    """The code of each cell, -1 where it is missing, and the sorted labels.

    The codes have shape (cells,); code ``i`` stands for ``labels[i]``.
    """
    codes, found = number_texts(cast_to_text(column))
    values = np.empty(len(found), dtype=object)
    values[:] = found
    order = np.argsort(values)
    rank = np.empty(len(order) + 1, dtype=np.int32)  # position of each label in sorted order; the last is for -1
    rank[order], rank[-1] = np.arange(len(order)), -1
    return rank[codes], values[order]


def cast_to_text(column: pa.Array) -> pa.StringArray:
    """Cast to text as in a CSV: 3 rather than 3.0, true rather than True."""
    return cast(column, pa.string())


def read_text_column(column: pa.Array) -> PackedDocuments:
    """Read texts without copying Arrow's buffers; a missing text is empty."""
    text = fill_missing(cast_to_text(column), "")
    _, ends, data = text.buffers()
    edges = np.frombuffer(ends, dtype=np.int32)[text.offset : text.offset + len(text) + 1]
    return PackedDocuments(np.frombuffer(b"" if data is None else data, dtype=np.uint8), edges)


def shorten_cell(cell: str, max_length: int = 40) -> str:
    """Format a cell for an error message, shortened if it is long."""
    return repr(cell if len(cell) <= max_length else cell[: max_length - 1] + "…")


def add_date_parts(
    chunk: RowChunk, names: Sequence[str], missing: frozenset[str], zones: Zones, formats: Mapping[str, str]
) -> RowChunk:
    """Add the named columns that are parts of the chunk's dates, in the time zones and notations learned."""
    batch = chunk.batch
    for column, parts in dates.find_unread_dates(batch.schema.names, names).items():
        parsed = read_dates(chunk, column, missing, zones, formats.get(column))
        for part in parts:
            batch = batch.append_column(dates.name_date_part(column, part), compute_date_part(parsed, part))
    return chunk if batch is chunk.batch else chunk._replace(batch=batch)


def read_dates(chunk: RowChunk, column: str, missing: frozenset[str], zones: Zones, form: str | None) -> Dates:
    """The dates of a column; a cell that is no date is an error that names it."""
    cells = _convert_zone(chunk, mask_missing_cells(chunk.batch.column(column), missing), column, zones)
    parsed = dates.parse_dates(cells, form)
    bad = np.asarray(cells.is_valid()) & np.isnan(parsed[0])
    if bad.any():
        row = int(bad.argmax())
        problem = f"{shorten_cell(str(cells[row].as_py()))} is not a date"
        example = form or "2024-05-31"
        raise chunk.make_cell_error(row, column, problem, f"write it as {example}, or leave the cell empty")
    return parsed


def _convert_zone(chunk: RowChunk, cells: pa.Array, column: str, zones: Zones) -> pa.Array:
    """Convert dates with a time zone to local times of the learned zone."""
    own = find_declared_zone(chunk, column)
    zone = zones.get(column) if own is None else dates.choose_zone(own, column, zones)
    return (
        pa.array(dates.convert_written(cells.to_pylist(), column, zone), pa.string()) if zone and zone != own else cells
    )


def find_declared_zone(chunk: RowChunk, column: str) -> str | None:
    """The time zone in a column's type, "" for moments without one; None if the type is not a time stamp."""
    schema = chunk.file.schema
    kind = schema.field(column).type if schema is not None and column in schema.names else None
    return dates.name_zone(kind.tz) if kind is not None and pa.types.is_timestamp(kind) else None


def compute_date_part(parsed: Dates, part: str) -> pa.Array:
    """A part of each date: in words, as a person would say it, or the day as a number.

    >>> parsed = dates.parse_dates(pa.array(["2024-05-06 03:15"]))
    >>> [compute_date_part(parsed, part)[0].as_py() for part in dates.KIND_BY_DATE_PART]
    ['03:00 to 04:00', 'Monday', 'May', 8892.0]
    """
    if part == dates.DAY:
        return pa.array(parsed[0] - dates.FIRST_DAY, from_pandas=True)
    codes = dates.encode_date_part(parsed, part)
    return pa.array(dates.PART_NAMES[part], pa.string()).take(pa.array(codes, mask=codes < 0))


def choose_date_parts(cells: pa.Array, form: str | None) -> list[str]:
    """The parts of a column of dates that differ between its rows."""
    parsed = dates.parse_dates(cells, form)
    return [part for part in dates.KIND_BY_DATE_PART if len(pc.unique(compute_date_part(parsed, part).drop_null())) > 1]
