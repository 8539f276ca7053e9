"""A table of columns of numbers, labels or texts, and how a column is read from an array of any type."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import SupportsFloat

import numpy as np
import pyarrow as pa
from numpy import ndarray as Array

from priory.core.input_guard import check_unique_names, is_valid_text, list_arrow_cells
from priory.core.sharding import map_shards
from priory.core.typing import ColumnKind
from priory.core.value_counts import CategoricalCells, encode_values, find_missing, make_object_array
from priory.errors import DataError, KindError, suggest_name
from priory.tables import dates
from priory.tables.number_formats import NumberFormat, find_number_formats
from priory.text.normal_forms import Document
from priory.text.tokenizer import estimate_word_count

MAX_EXACT_INTEGER = 1 << 53  # integers up to this are exact floats


@dataclass(frozen=True)
class Column:
    """One column: numbers (float64, NaN if missing), labels (codes and sorted values), or documents."""

    kind: ColumnKind
    numbers: Array | None = None
    labels: tuple[Array, Array] | None = None
    texts: list[Document] | None = None
    zone: str | None = None  # of the moments that the column is a part of; "" if they have none
    format: str | None = None  # of numbers or dates that were written as text, where the notation is not the usual one
    written: tuple[Array, Array] | None = None  # the labels that were read as numbers of this notation

    def take_rows(self, rows: Array) -> Column:
        """Select rows."""
        numbers = None if self.numbers is None else self.numbers[rows]
        # the values stay as they are, even if some become unused
        labels = self.labels and (self.labels[0][rows], self.labels[1])
        texts = None if self.texts is None else [self.texts[row] for row in rows.tolist()]
        written = self.written and (self.written[0][rows], self.written[1])
        return replace(self, numbers=numbers, labels=labels, texts=texts, written=written)

    def has_cells(self) -> bool:
        """Whether any cell is not missing; an empty text is missing."""
        if self.texts is not None:
            return any(self.texts)
        if self.labels is not None:
            return bool((self.labels[0] >= 0).any())
        return self.numbers is not None and not bool(np.isnan(self.numbers).all())


@dataclass(frozen=True)
class Table:
    """Named columns of equal length; a numeric array is stored as ``matrix`` instead of ``columns``."""

    rows: int
    names: tuple[str, ...]
    has_names: bool
    columns: tuple[Column, ...] = ()
    matrix: Array | None = None

    def take_rows(self, rows: Array) -> Table:
        """Select rows."""
        matrix = None if self.matrix is None else self.matrix[rows]
        return replace(self, rows=len(rows), matrix=matrix, columns=tuple(c.take_rows(rows) for c in self.columns))

    def add_missing_columns(self, names: Sequence[str]) -> Table:
        """Add the named columns that the table lacks, with all cells missing."""
        own = set(self.names)
        absent = tuple(name for name in names if name not in own)
        if not absent:
            return self
        columns = self.columns or tuple(Column("number", np.asarray(x, dtype=float)) for x in np.asarray(self.matrix).T)
        return Table(self.rows, (*self.names, *absent), True, (*columns, *(Column("empty") for _ in absent)))

    def column_kinds(self) -> dict[str, ColumnKind]:
        """The kind of each column."""
        if self.matrix is not None:
            return dict.fromkeys(self.names, "number")
        return {name: column.kind for name, column in zip(self.names, self.columns, strict=True)}

    def find_filled_columns(self) -> Array:
        """Whether each column has a cell that is not missing, (columns,)."""
        if self.matrix is None:
            return np.array([column.has_cells() for column in self.columns], dtype=bool)
        if self.matrix.dtype.kind != "f":
            return np.ones(len(self.names), dtype=bool)
        filled = np.asarray(~np.isnan(self.matrix[:1]).all(axis=0))  # the first row usually decides
        for j in np.flatnonzero(~filled):
            filled[j] = not np.isnan(self.matrix[:, j]).all()
        return filled

    def numbers(self, positions: Sequence[int]) -> Array:
        """Some columns as one array (rows, columns); the whole matrix is returned without a copy."""
        if self.matrix is not None:
            return self.matrix if list(positions) == list(range(len(self.names))) else self.matrix[:, positions]
        # an empty column stays NaN
        block = np.full((self.rows, len(positions)), np.nan)
        for j, position in enumerate(positions):
            if self.columns[position].numbers is not None:
                block[:, j] = self.columns[position].numbers
        return block

    def labels(self, positions: Sequence[int]) -> CategoricalCells:
        """Some columns as codes of labels; numbers are used as labels."""
        return CategoricalCells.from_encoded_columns(
            [self._encode_column(position) for position in positions], self.rows
        )

    def _encode_column(self, position: int) -> tuple[Array, Array]:
        if self.matrix is not None:
            return encode_values(self.matrix[:, position].astype(float))
        column = self.columns[position]
        if column.labels is not None:
            return column.labels
        return encode_values(np.full(self.rows, np.nan) if column.numbers is None else column.numbers)

    def texts(self, position: int) -> list[Document]:
        """One column as texts, ``str`` or UTF-8 ``bytes``; a missing text is empty."""
        if self.matrix is None and (given := self.columns[position].texts) is not None:
            return given
        codes, values = self._encode_column(position)
        texts = [str(value) for value in values] + [""]  # code -1 (missing) indexes the last element
        return [texts[code] for code in codes]

    def is_prose(self, position: int) -> bool:
        """Whether a column of labels holds texts: most cells are distinct, with three words or more on average."""
        codes, values = self._encode_column(position)
        words = [estimate_word_count(str(value)) for value in values]
        return 2 * len(values) > int((codes >= 0).sum()) and sum(words) >= 3 * len(words)

    def is_binary(self, position: int) -> bool:
        """Whether a column of numbers holds only 0 and 1."""
        return set(self._encode_column(position)[1].tolist()) <= {0.0, 1.0}

    def get_cell(self, row: int, position: int) -> object:
        """One value for display; None if it is missing."""
        column = Column("number", self.matrix[:, position]) if self.matrix is not None else self.columns[position]
        if column.texts is not None:
            text = column.texts[row]
            return (text if isinstance(text, str) else text.decode()) or None
        if column.labels is not None:
            codes, values = column.labels
            return None if codes[row] < 0 else values[codes[row]]
        value = math.nan if column.numbers is None else float(column.numbers[row])
        return None if math.isnan(value) else value

    def get_zone(self, position: int) -> str | None:
        """The time zone of a column of date parts, "" for none; None for other columns and for days."""
        return None if self.matrix is not None else self.columns[position].zone

    def get_format(self, position: int) -> str | None:
        """The notation of a column that was written as text; None for the usual one."""
        return None if self.matrix is not None else self.columns[position].format

    def find_columns(self, names: Sequence[str]) -> list[int]:
        """Positions of columns: by name if the table has names, otherwise in order."""
        if not self.has_names:
            return list(range(len(names)))
        # the columns may come in any order
        at = {name: place for place, name in enumerate(self.names)}
        absent = [name for name in names if name not in at]
        if absent:
            raise DataError(
                f"the table has no column {format_column_names(absent)}{suggest_name(absent[0], self.names)}; "
                f"it has {format_column_names(self.names) or 'none'}."
            )
        return [at[name] for name in names]

    def check_finite(self) -> None:
        """Raise an error that names the first infinite cell."""
        if self.matrix is not None:
            check_exact_integers(self.matrix, self.names)
        blocks = [self.matrix, *(column.numbers for column in self.columns)]
        if all(block is None or _has_no_infinity(block) for block in blocks):
            return
        for place, name in enumerate(self.names):
            row = np.flatnonzero(np.isinf(self.numbers([place])[:, 0]))
            if len(row):
                raise DataError(f"row {row[0]}, column {name!r} is infinity (inf); use NaN for what is missing.")


def make_named_table(rows: int, has_names: bool, parts: Sequence[Mapping[str, Column]]) -> Table:
    """Make a table of columns by name; raise an error for duplicate names."""
    names = tuple(name for part in parts for name in part)
    check_unique_names(names)
    return Table(rows, names, has_names, tuple(column for part in parts for column in part.values()))


def check_exact_integers(block: Array, names: Sequence[str]) -> None:
    """Raise an error if integers (rows, columns) are too large for exact floats."""
    if block.dtype.kind not in "iu" or block.dtype.itemsize < 8 or not block.size:
        return
    if max(abs(int(block.min())), abs(int(block.max()))) <= MAX_EXACT_INTEGER:
        return
    for row, position in np.argwhere((block > MAX_EXACT_INTEGER) | (block < -MAX_EXACT_INTEGER)):
        check_exact_integer(int(block[row, position]), int(row), names[position])


def check_exact_integer(value: int, row: int, name: str) -> None:
    """Raise an error if an integer is not exactly representable as a float."""
    if abs(value) > MAX_EXACT_INTEGER and abs(value) < 1 << 1000 and int(float(value)) != value:
        raise DataError(
            f"row {row}, column {name!r} holds {value}, which a float cannot hold exactly; "
            "pass it as a string if it is an identifier, or scale it."
        )


def _has_no_infinity(block: Array) -> bool:
    """Whether no cell is infinite; a finite sum proves it faster than testing each cell."""
    if block.dtype.kind != "f":
        return True

    def part_finite(part: slice) -> bool:
        # a sum can overflow, or be NaN because of missing cells: then test each cell
        total = np.add.reduce(block[part], axis=None)
        return bool(np.isfinite(total)) or not bool(np.isinf(block[part]).any())

    with np.errstate(over="ignore", invalid="ignore"):
        return all(map_shards(part_finite, len(block)))


def format_column_names(names: Sequence[str], max_names: int = 10) -> str:
    """Format the first names of columns, and how many more there are."""
    shown = ", ".join(map(repr, names[:max_names]))
    return f"{shown} and {len(names) - max_names} more" if len(names) > max_names else shown


MIN_CELLS_OF_FORMAT = 10  # strings that must be numbers before they are read as numbers
SUBDAY_UNITS = ("h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")  # units of NumPy dates with a time of day


def read_named_column(cells: Array, name: str, zones: dates.Zones | None = None) -> dict[str, Column]:
    """Read cells as one named column, or as a column for each part of dates.

    Dates are converted to ``zones``, where their column has one.
    """
    if cells.dtype.kind == "M":
        has_hours = np.datetime_data(cells.dtype)[0] in SUBDAY_UNITS
        zone = dates.choose_zone("", name, zones) if has_hours else None
        return split_dates(name, dates.read_moments(cells, has_hours), zone)
    if cells.dtype.kind == "O":
        plain = _read_plain_cells(cells.tolist(), name)
        if plain is not None:
            return {name: plain}
        missing = find_missing(cells)
        present = cells[~missing].tolist()
        if present and all(isinstance(cell, date | np.datetime64) for cell in present):
            # NaT and None become None, so that only dates are left to convert
            objects = [None if gap else convert_moment(cell) for cell, gap in zip(cells.tolist(), missing, strict=True)]
            local, zone = dates.convert_objects(objects, name, zones)
            return split_dates(name, dates.read_date_objects(local), zone)
    return {name: read_array_column(cells, name)}


def _read_plain_cells(values: list[object], name: str) -> Column | None:
    """Read numbers or strings at once; None if there are other objects, or each cell has to be checked."""
    kinds = set(map(type, values)) - {type(None)}
    if kinds == {str}:
        with suppress(UnicodeEncodeError):  # a lone surrogate
            # Arrow is given strings only: its inference of types crashes on some lists of NumPy's scalars
            return make_label_column(*encode_strings(pa.array(values, pa.large_string()), name))
    elif kinds and kinds <= {bool, int, float}:
        with suppress(OverflowError):
            numbers = np.array(values, dtype=float)  # None becomes NaN
            # a larger integer may have been rounded
            if not np.isnan(numbers).all() and (int not in kinds or np.nanmax(np.abs(numbers)) < MAX_EXACT_INTEGER):
                return Column("number", numbers)
    return None


def encode_strings(cells: pa.Array, name: str) -> tuple[Array, Array]:
    """Codes (rows,) and sorted labels of an Arrow array of strings; null has the code -1.

    >>> codes, values = encode_strings(pa.array(["b", None, "a", "b"]), "letter")
    >>> codes.tolist(), values.tolist()
    ([1, -1, 0, 1], ['a', 'b'])
    """
    coded = cells.dictionary_encode()
    values = make_object_array(list_arrow_cells(coded.dictionary, lambda code: f"column {name!r}, value {code}"))
    # Arrow numbers the values by first occurrence; renumber them in sorted order. Code -1 reads the last rank, -1.
    order = np.argsort(values)
    rank = np.full(len(order) + 1, -1, dtype=np.int32)
    rank[order] = np.arange(len(order))
    return rank[coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)], values[order]


def convert_moment(cell: object) -> object:
    """Convert a NumPy date to a Python date; return other objects unchanged."""
    return cell.astype("datetime64[us]").item() if isinstance(cell, np.datetime64) else cell


def read_array_column(cells: Array, name: str) -> Column:
    """Read cells as a column of numbers or labels."""
    if cells.dtype.kind in "biuf":
        check_exact_integers(cells[:, None], [name])
        return Column("number", cells.astype(float))
    if cells.dtype.kind in "US":
        return make_label_column(*encode_values(cells.astype(object)))
    if cells.dtype.kind in "Mm":
        raise make_date_error(name, str(cells.dtype))
    if cells.dtype.kind != "O":
        raise KindError(f"column {name!r} holds {cells.dtype}; turn it into a number or a string, or leave it out.")
    present = np.flatnonzero(~find_missing(cells))
    if not len(present):
        return Column("empty")
    # the first row of each kind of cell, for the message
    first: dict[str, int] = {}
    for row in present:
        first.setdefault(_check_cell_kind(cells[row], int(row), name), int(row))
    if len(first) > 1:
        shown = ", ".join(f"row {row} holds {cells[row]!r}" for row in first.values())
        raise KindError(f"column {name!r} mixes numbers and strings ({shown}); make it one or the other.")
    if "label" in first:
        return make_label_column(*encode_values(cells))
    numbers = np.full(len(cells), np.nan)
    for row in present:
        numbers[row] = _convert_to_float(cells[row], int(row), name)
    return Column("number", numbers)


def make_label_column(codes: Array, values: Array) -> Column:
    """Make a column of strings: labels, or numbers if all are written in one notation that is not Python's.

    Plain digits stay labels: whoever has strings of them chose that. A few cells do not show a notation.
    """
    formats = find_number_formats(values.tolist()) if (codes >= 0).sum() >= MIN_CELLS_OF_FORMAT else []
    form = NumberFormat.parse(formats[0]) if len(formats) == 1 else None
    if form is None or form.is_plain:
        return Column("label", labels=(codes, values))
    numbers = np.append(form.read(values.tolist()), np.nan)[codes]
    return Column("number", numbers, format=formats[0], written=(codes, values))


def _check_cell_kind(value: object, row: int, name: str) -> str:
    if isinstance(value, (Real, Decimal, np.bool_)):
        return "number"
    if isinstance(value, str):
        if not is_valid_text(value):
            raise DataError(f"row {row}, column {name!r} holds a lone surrogate; it is not text: decode it first.")
        return "label"
    if isinstance(value, bytes):
        raise KindError(f"row {row}, column {name!r} holds bytes; decode them to a string first.")
    if isinstance(value, (date, time, timedelta, np.datetime64, np.timedelta64)):
        raise make_date_error(name, f"a {type(value).__name__} in row {row}")
    raise KindError(
        f"row {row}, column {name!r} holds a {type(value).__name__}; argument must be a string or a number."
    )


def make_date_error(name: str, held: str) -> KindError:
    """Return the error for dates in a table without column names, and for times of day and durations."""
    return KindError(
        f"column {name!r} holds dates or times ({held}); dates are learned from tables with names; turn others into a "
        "number, such as hours, or leave them out."
    )


def _convert_to_float(value: SupportsFloat, row: int, name: str) -> float:
    if isinstance(value, int):
        check_exact_integer(value, row, name)
    try:
        return float(value)
    except OverflowError:
        raise DataError(f"row {row}, column {name!r} holds a number too large for a float.") from None
    except ValueError:  # Decimal("sNaN")
        raise DataError(f"row {row}, column {name!r} holds {value!r}; use NaN for what is missing.") from None


def make_part_column(parsed: dates.Dates, part: str, zone: str | None) -> Column:
    """Make a column of a date part: labels such as Monday, or the day as a number."""
    cells = dates.read_date_part(parsed, part)
    if cells is None:
        return Column("empty")
    return Column("label", labels=cells, zone=zone) if isinstance(cells, tuple) else Column("number", cells, zone=zone)


def split_dates(name: str, parsed: dates.Dates, zone: str | None) -> dict[str, Column]:
    """Split dates into a column for each part, by name; the hour only if a date has one.

    ``zone`` is the time zone, "" for moments without one and None for days. A column without a single date is empty:
    its parts are not known yet.
    """
    shown = dates.list_shown_parts(parsed)
    parts = {dates.name_date_part(name, part): make_part_column(parsed, part, zone) for part in shown}
    return parts or {name: Column("empty")}
