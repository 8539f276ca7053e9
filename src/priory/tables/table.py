"""A table of columns of numbers, labels or texts; `priory.tables.table_reading` converts any input to one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from priory.core.input_guard import check_unique_names
from priory.core.sharding import map_shards
from priory.core.similar_names import suggest_name
from priory.core.typing import Array, ColumnKind
from priory.errors import DataError
from priory.families.value_counts import CategoricalCells, encode_values
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

    def take_rows(self, rows: Array) -> Column:
        """Select rows."""
        numbers = None if self.numbers is None else self.numbers[rows]
        # the values stay as they are, even if some become unused
        labels = self.labels and (self.labels[0][rows], self.labels[1])
        texts = None if self.texts is None else [self.texts[row] for row in rows.tolist()]
        return replace(self, numbers=numbers, labels=labels, texts=texts)

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
        if self.matrix is not None:
            value = float(self.matrix[row, position])
            return None if math.isnan(value) else value
        column = self.columns[position]
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

    def find_columns(self, names: Sequence[str]) -> list[int]:
        """Positions of columns: by name if the table has names, otherwise in order."""
        if not self.has_names:
            return list(range(len(names)))
        # the columns may come in any order
        at = {name: place for place, name in enumerate(self.names)}
        absent = [name for name in names if name not in at]
        if absent:
            raise DataError(
                f"the table has no column {_format_column_names(absent)}{suggest_name(absent[0], self.names)}; "
                f"it has {_format_column_names(self.names)}."
            )
        return [at[name] for name in names]

    def check_finite(self) -> None:
        """Raise an error that names the first infinite cell."""
        blocks = (
            [self.matrix]
            if self.matrix is not None
            else [c.numbers[:, None] for c in self.columns if c.numbers is not None]
        )
        if self.matrix is not None:
            check_exact_integers(self.matrix, self.names)
        if all(_has_no_infinity(block) for block in blocks):
            return
        for place, name in enumerate(self.names):
            row = np.flatnonzero(np.isinf(self.numbers([place])[:, 0]))
            if len(row):
                raise DataError(f"row {row[0]}, column {name!r} is infinity (inf); use NaN for what is missing.")

    def check_no_missing(self) -> None:
        """Raise an error that names the first missing cell."""
        kinds = self.column_kinds()
        for position, name in enumerate(self.names):
            if kinds[name] == "text":
                continue
            # a label is missing if its code is -1, a number if it is NaN
            labels = kinds[name] == "label"
            missing = self._encode_column(position)[0] < 0 if labels else np.isnan(self.numbers([position])[:, 0])
            if missing.any():
                row = int(np.argmax(missing))
                raise DataError(f"row {row}, column {name!r} is missing (NaN); fill it, or set missing='ignore'.")


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


def _format_column_names(names: Sequence[str], max_names: int = 10) -> str:
    shown = ", ".join(map(repr, names[:max_names]))
    return f"{shown} and {len(names) - max_names} more" if len(names) > max_names else shown
