"""Tables as they are: pandas, polars, pyarrow, NumPy, dicts; every column becomes numbers or labels, or is empty.

What a column is, is read off its type and never off its values, so it is known before the data are. Nothing is
repaired: what is neither a number nor a label is an error that names the cell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np

from priory.bag_of_words.documents import Document
from priory.bag_of_words.tokenizer import estimate_word_count
from priory.core.sharding import map_shards
from priory.core.typing import Array, ColumnKind
from priory.errors import DataError, KindError
from priory.families.value_counts import CategoricalCells, encode_values, find_missing


@dataclass(frozen=True)
class Column:
    """One column: numbers (float64, NaN where missing), labels (codes and their sorted values), or documents."""

    kind: ColumnKind
    numbers: Array | None = None
    labels: tuple[Array, Array] | None = None
    texts: list[Document] | None = None

    def take_rows(self, rows: Array) -> Column:
        """Some rows alone."""
        numbers = None if self.numbers is None else self.numbers[rows]
        labels = self.labels and (self.labels[0][rows], self.labels[1])
        texts = None if self.texts is None else [self.texts[row] for row in rows.tolist()]
        return replace(self, numbers=numbers, labels=labels, texts=texts)


@dataclass(frozen=True)
class Table:
    """Rows by named columns; ``matrix`` holds them where all are numbers that came as one array."""

    rows: int
    names: tuple[str, ...]
    has_names: bool
    columns: tuple[Column, ...] = ()
    matrix: Array | None = None

    def take_rows(self, rows: Array) -> Table:
        """Some rows alone."""
        matrix = None if self.matrix is None else self.matrix[rows]
        return replace(self, rows=len(rows), matrix=matrix, columns=tuple(c.take_rows(rows) for c in self.columns))

    def column_kinds(self) -> dict[str, ColumnKind]:
        if self.matrix is not None:
            return dict.fromkeys(self.names, "number")
        return {name: column.kind for name, column in zip(self.names, self.columns, strict=True)}

    def numbers(self, places: Sequence[int]) -> Array:
        """Some columns as one block (rows, columns); the whole matrix as it is where nothing has to move."""
        if self.matrix is not None:
            return self.matrix if list(places) == list(range(len(self.names))) else self.matrix[:, places]
        block = np.full((self.rows, len(places)), np.nan)
        for j, place in enumerate(places):
            if self.columns[place].numbers is not None:
                block[:, j] = self.columns[place].numbers
        return block

    def labels(self, places: Sequence[int]) -> CategoricalCells:
        """Some columns as one block of codes; a column of numbers is labelled by its numbers."""
        return CategoricalCells.from_encoded_columns([self._encode_column(place) for place in places], self.rows)

    def _encode_column(self, place: int) -> tuple[Array, Array]:
        if self.matrix is not None:
            return encode_values(self.matrix[:, place].astype(float))
        column = self.columns[place]
        if column.labels is not None:
            return column.labels
        return encode_values(np.full(self.rows, np.nan) if column.numbers is None else column.numbers)

    def texts(self, place: int) -> list[Any]:
        """One column as texts, ``str`` or UTF-8 ``bytes``; a missing one is empty."""
        if self.matrix is None and (given := self.columns[place].texts) is not None:
            return given
        codes, values = self._encode_column(place)
        words = [str(value) for value in values] + [""]  # the last is where -1 points
        return [words[code] for code in codes]

    def is_prose(self, place: int) -> bool:
        """Whether a column of labels is texts: most cells differ, and have three words or more."""
        codes, values = self._encode_column(place)
        words = [estimate_word_count(str(value)) for value in values]
        return 2 * len(values) > int((codes >= 0).sum()) and sum(words) >= 3 * len(words)

    def get_cell(self, row: int, place: int) -> Any:
        """One value, for people; None where it is missing."""
        if self.matrix is not None:
            value = float(self.matrix[row, place])
            return None if math.isnan(value) else value
        column = self.columns[place]
        if column.texts is not None:
            text = column.texts[row]
            return (text if isinstance(text, str) else text.decode()) or None
        if column.labels is not None:
            codes, values = column.labels
            return None if codes[row] < 0 else values[codes[row]]
        value = math.nan if column.numbers is None else float(column.numbers[row])
        return None if math.isnan(value) else value

    def find_columns(self, names: Sequence[str]) -> list[int]:
        """Where the wanted columns stand: by name where there are names, in any order; else by position."""
        if not self.has_names:
            return list(range(len(names)))
        at = {name: place for place, name in enumerate(self.names)}
        absent = [name for name in names if name not in at]
        if absent:
            raise DataError(
                f"the table has no column {_format_column_names(absent)}; it has {_format_column_names(self.names)}."
            )
        return [at[name] for name in names]

    def check_finite(self) -> None:
        """Infinity is not a number to learn from."""
        blocks = (
            [self.matrix]
            if self.matrix is not None
            else [c.numbers[:, None] for c in self.columns if c.numbers is not None]
        )
        if all(_has_no_infinity(block) for block in blocks):
            return
        for place, name in enumerate(self.names):
            row = np.flatnonzero(np.isinf(self.numbers([place])[:, 0]))
            if len(row):
                raise DataError(f"row {row[0]}, column {name!r} is infinity (inf); use NaN for what is missing.")

    def check_no_missing(self) -> None:
        """No cell may be missing."""
        kinds = self.column_kinds()
        for place, name in enumerate(self.names):
            if kinds[name] == "text":
                continue
            labels = kinds[name] == "label"
            missing = self._encode_column(place)[0] < 0 if labels else np.isnan(self.numbers([place])[:, 0])
            if missing.any():
                row = int(np.argmax(missing))
                raise DataError(f"row {row}, column {name!r} is missing (NaN); fill it, or set missing='ignore'.")


def read_table(X: Any) -> Table:
    """Any table. A list of dicts is rows by name; what has no names is called x0, x1, …"""
    if isinstance(X, Table):
        return X
    if hasattr(X, "toarray") or hasattr(X, "todense"):
        raise KindError(
            "X is a sparse matrix; a table of columns is dense: call .toarray(), or use priory.naive_bayes."
        )
    if isinstance(X, Mapping):
        return _table_from_columns({str(name): np.asarray(values) for name, values in X.items()})
    if isinstance(X, (list, tuple)) and X and all(isinstance(row, Mapping) for row in X):
        names = dict.fromkeys(str(name) for row in X for name in row)
        return _table_from_columns({name: _make_object_array([row.get(name) for row in X]) for name in names})
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return _table_from_frame(frame)
    return _table_from_array(X)


def _table_from_array(X: Any) -> Table:
    cells = np.asarray(X) if not isinstance(X, list) else _array_from_rows(X)
    if np.iscomplexobj(cells):
        raise DataError(
            "Complex data not supported: X holds complex numbers; give real and imaginary parts as columns."
        )
    if cells.ndim != 2:
        hint = "Reshape your data: reshape(-1, 1) if it is one column, reshape(1, -1) if it is one row."
        raise DataError(f"Expected 2D array, got {cells.ndim}D array instead. {hint}")
    rows, columns = cells.shape
    names = tuple(f"x{j}" for j in range(columns))
    if cells.dtype.kind in "biuf":
        return Table(rows, names, False, matrix=cells)
    return Table(rows, names, False, tuple(_column_from_array(cells[:, j], name) for j, name in enumerate(names)))


def _table_from_columns(columns: dict[str, Array]) -> Table:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"the columns differ in length: {lengths}.")
    rows = next(iter(lengths.values()), 0)
    return Table(
        rows, tuple(columns), True, tuple(_column_from_array(column, name) for name, column in columns.items())
    )


def _table_from_frame(frame: nw.DataFrame[Any]) -> Table:
    names = tuple(str(name) for name in frame.columns)
    blank = [place for place, name in enumerate(names) if not name.strip()]
    if blank:
        raise DataError(f"the column at position {blank[0]} has no name; name it, or leave it out.")
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    if twice:
        first, second = (place for place, name in enumerate(names) if name == twice[0])
        raise DataError(f"column {twice[0]!r} is there twice (positions {first} and {second}); rename one.")
    named = all(isinstance(name, str) for name in frame.columns)
    columns = zip(frame.iter_columns(), names, strict=True)  # by position: frame[0] is a row, not the column called 0
    return Table(len(frame), names, named, tuple(_column_from_series(series, name) for series, name in columns))


def _column_from_series(series: nw.Series[Any], name: str) -> Column:
    kind = series.dtype
    if kind.is_numeric() or kind == nw.Boolean:
        return Column("number", np.asarray(series.cast(nw.Float64).to_numpy(), dtype=float))
    if kind == nw.Unknown or len(series) == int(series.is_null().sum()):
        return Column("empty")
    if kind in (nw.String, nw.Categorical, nw.Enum):
        return Column("label", labels=_encode_series(series))
    if kind == nw.Object:
        cells = _make_object_array(series.to_list())
        cells[series.is_null().to_numpy()] = None
        return _column_from_array(cells, name)
    raise KindError(f"column {name!r} holds {kind}; turn it into a number or a string, or leave it out.")


def _encode_series(series: nw.Series[Any]) -> tuple[Array, Array]:
    """Labels by Arrow's dictionary encoding, then sorted."""
    import pyarrow as pa

    array = series.cast(nw.String).to_arrow()
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    coded = array.dictionary_encode()
    values = _make_object_array(coded.dictionary.to_pylist())
    order = np.argsort(values)
    rank = np.empty(len(order) + 1, dtype=np.int32)
    rank[order], rank[-1] = np.arange(len(order)), -1
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return rank[codes], values[order]


def _column_from_array(cells: Array, name: str) -> Column:
    """A column of Python objects (or of a NumPy type), by the types in it."""
    if cells.dtype.kind in "biuf":
        return Column("number", cells.astype(float))
    if cells.dtype.kind in "US":
        return Column("label", labels=encode_values(cells.astype(object)))
    if cells.dtype.kind != "O":
        raise KindError(f"column {name!r} holds {cells.dtype}; turn it into a number or a string, or leave it out.")
    present = np.flatnonzero(~find_missing(cells))
    if not len(present):
        return Column("empty")
    first: dict[str, int] = {}
    for row in present:
        first.setdefault(_check_cell_kind(cells[row], int(row), name), int(row))
    if len(first) > 1:
        shown = ", ".join(f"row {row} holds {cells[row]!r}" for row in first.values())
        raise KindError(f"column {name!r} mixes numbers and strings ({shown}); make it one or the other.")
    if "label" in first:
        return Column("label", labels=encode_values(cells))
    numbers = np.full(len(cells), np.nan)
    for row in present:
        numbers[row] = _convert_to_float(cells[row], int(row), name)
    return Column("number", numbers)


def _check_cell_kind(value: Any, row: int, name: str) -> str:
    if isinstance(value, (Real, np.bool_)):
        return "number"
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise DataError(
                f"row {row}, column {name!r} holds a lone surrogate; it is not text: decode it first."
            ) from None
        return "label"
    if isinstance(value, bytes):
        raise KindError(f"row {row}, column {name!r} holds bytes; decode them to a string first.")
    raise KindError(
        f"row {row}, column {name!r} holds a {type(value).__name__}; argument must be a string or a number."
    )


def _convert_to_float(value: Any, row: int, name: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise DataError(f"row {row}, column {name!r} holds a number too large for a float.") from None


def _make_object_array(values: Sequence[Any]) -> Array:
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    return cells


def _array_from_rows(rows: list[Any]) -> Array:
    """A list of rows; strings and numbers side by side stay what they are."""
    plain = np.asarray(rows)  # ragged rows raise here, by NumPy
    if plain.ndim == 2 and plain.dtype.kind in "US":
        return np.array(rows, dtype=object)
    return plain


def _has_no_infinity(block: Array) -> bool:
    """A sum is infinite if a cell is; NaN must not hide it."""
    if block.dtype.kind != "f":
        return True

    def part_finite(part: slice) -> bool:
        total = np.add.reduce(block[part], axis=None)
        return bool(np.isfinite(total)) or not bool(np.isinf(block[part]).any())

    with np.errstate(over="ignore", invalid="ignore"):
        return all(map_shards(part_finite, len(block)))


def _format_column_names(names: Sequence[str], max_names: int = 10) -> str:
    shown = ", ".join(map(repr, names[:max_names]))
    return f"{shown} and {len(names) - max_names} more" if len(names) > max_names else shown
