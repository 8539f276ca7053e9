"""The cells of a block of columns: numbers, labels or texts behind one interface; and columns of a block's record.

Models select rows and columns of cells and hash them independently of their type; only the families read ``data``.
Cells of two tables with the same columns can be concatenated (``append``), and unused values can be dropped
(``drop_absent_values``), so that equal rows have equal bytes in a model file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol, Self

import numpy as np
from numpy import ndarray as Array

from priory.core.sharding import ColumnSubset
from priory.core.statistics import Statistics, register_record
from priory.families.value_counts import CategoricalCells, ValueCounts, drop_absent_labels, take_shown_values
from priory.text.documents import PackedDocuments
from priory.text.normal_forms import Document
from priory.text.token_bags import AnyDocuments, TokenBags, find_nonempty_texts

CellData = Array | ColumnSubset | CategoricalCells | AnyDocuments  # the input of families


ZERO_HASH = np.uint64(0x9E3779B97F4A7C15)  # XORed with the bits of a number, so that 0.0 does not hash to 0 (missing)


NO_DIGEST = bytes(8)  # the hash of an empty document, which is missing


class Cells(Protocol):
    """Rows of one or more columns with the same kind of values."""

    @property
    def data(self) -> CellData:
        """The cells, in the type that families read."""

    def __len__(self) -> int:
        """The number of rows."""

    def take_rows(self, rows: Array | slice) -> Self:
        """The cells of some rows."""

    def take_columns(self, columns: Array) -> Self:
        """The cells of some columns."""

    def view_columns(self, columns: Array) -> CellData:
        """The data of some columns, copied only when they are read."""

    def find_missing(self) -> Array:
        """Whether each cell is missing, (rows, columns)."""

    def rank_column(self, column: int) -> Array:
        """Numbers (rows,) that are equal for equal cells of one column; -inf for missing cells."""

    def hash_columns(self) -> Sequence[Array]:
        """64-bit hashes (rows,) for each column, the same on every machine; zero for missing cells."""

    def append(self, other: Self) -> Self:
        """Concatenate the rows of both."""

    def place_columns(self, other: Self, places: Array) -> Self:
        """A copy with the columns at ``places`` replaced by other cells."""

    def fill_cells(self, places: Array, other: Self) -> Self:
        """A copy with the cells at ``places`` (rows, columns) replaced by the other rows'."""

    def drop_absent_values(self) -> Self:
        """Drop values (or tokens) that no cell has."""


@register_record("NumberCells", axes={"data": "rd"}, finite=False)
@dataclass(frozen=True)
class NumberCells:
    """Columns of numbers; NaN is missing."""

    data: Array  # (rows, columns)

    def __len__(self) -> int:
        return len(self.data)

    def take_rows(self, rows: Array | slice) -> NumberCells:
        return NumberCells(self.data[rows])

    def take_columns(self, columns: Array) -> NumberCells:
        return NumberCells(self.data[:, columns])

    def view_columns(self, columns: Array) -> Array | ColumnSubset:
        return self.data if len(columns) == self.data.shape[1] else ColumnSubset(self.data, columns)

    def find_missing(self) -> Array:
        return np.isnan(self.data)

    def rank_column(self, column: int) -> Array:
        return np.nan_to_num(self.data[:, column].astype(float), nan=-np.inf)

    def hash_columns(self) -> Sequence[Array]:
        numbers = np.ascontiguousarray(np.asarray(self.data, dtype=np.float64).T) + 0.0  # -0.0 becomes 0.0
        bits = numbers.view(np.uint64) ^ ZERO_HASH
        if np.isnan(numbers).any():
            bits[np.isnan(numbers)] = 0
        return list(bits)

    def append(self, other: NumberCells) -> NumberCells:
        return NumberCells(np.concatenate([self.data, other.data]))

    def place_columns(self, other: NumberCells, places: Array) -> NumberCells:
        data = np.array(self.data, dtype=np.float64)
        data[:, places] = other.data
        return NumberCells(data)

    def fill_cells(self, places: Array, other: NumberCells) -> NumberCells:
        return NumberCells(np.where(places, other.data, self.data))

    def drop_absent_values(self) -> NumberCells:
        return NumberCells(np.ascontiguousarray(np.asarray(self.data, dtype=np.float64) + 0.0))


@register_record("LabelCells")
@dataclass(frozen=True)
class LabelCells:
    """Columns of labels, as codes; a negative code is missing."""

    data: CategoricalCells

    def __len__(self) -> int:
        return len(self.data)

    def take_rows(self, rows: Array | slice) -> LabelCells:
        return LabelCells(self.data[rows])

    def take_columns(self, columns: Array) -> LabelCells:
        values = tuple(self.data.values[int(j)] for j in columns)
        return LabelCells(CategoricalCells(self.data.codes[:, columns], values))

    def view_columns(self, columns: Array) -> CategoricalCells:
        return self.take_columns(columns).data

    def find_missing(self) -> Array:
        return self.data.codes < 0

    def rank_column(self, column: int) -> Array:
        codes = self.data.codes[:, column].astype(float)
        return np.where(codes < 0, -np.inf, codes)

    def hash_columns(self) -> Sequence[Array]:
        return [hash_labels(codes, values) for codes, values in zip(self.data.codes.T, self.data.values, strict=True)]

    def append(self, other: LabelCells) -> LabelCells:
        columns = []
        for j, (own, others) in enumerate(zip(self.data.values, other.data.values, strict=True)):
            values = np.union1d(own, others) if len(own) and len(others) else (own if len(own) else others)
            # the new code of each value; -1 at the end, because code -1 (missing) indexes the last element
            places = [np.append(np.searchsorted(values, part), -1) for part in (own, others)]
            codes = np.append(places[0][self.data.codes[:, j]], places[1][other.data.codes[:, j]])
            columns.append((codes, values))
        return LabelCells(CategoricalCells.from_encoded_columns(columns, len(self) + len(other)))

    def place_columns(self, other: LabelCells, places: Array) -> LabelCells:
        columns = list(zip(self.data.codes.T, self.data.values, strict=True))
        for place, column in zip(places.tolist(), zip(other.data.codes.T, other.data.values, strict=True), strict=True):
            columns[place] = column
        return LabelCells(CategoricalCells.from_encoded_columns(columns, len(self)))

    def fill_cells(self, places: Array, other: LabelCells) -> LabelCells:
        both = self.append(other).data
        codes = np.where(places, both.codes[len(self) :], both.codes[: len(self)])
        return LabelCells(CategoricalCells(codes, both.values))

    def drop_absent_values(self) -> LabelCells:
        columns = [drop_absent_labels(*column) for column in zip(self.data.codes.T, self.data.values, strict=True)]
        return LabelCells(CategoricalCells.from_encoded_columns(columns, len(self)))


@register_record("TextCells")
@dataclass(frozen=True)
class TextCells:
    """One column of documents; an empty document is missing."""

    data: list[Document] | PackedDocuments | TokenBags

    def __len__(self) -> int:
        return len(self.data)

    def take_rows(self, rows: Array | slice) -> TextCells:
        if isinstance(self.data, TokenBags):
            return TextCells(self.data[rows])
        if isinstance(rows, slice):
            return TextCells(self.data[rows])
        return TextCells([self.data[i] for i in rows.tolist()])

    def take_columns(self, columns: Array) -> TextCells:
        return self

    def view_columns(self, columns: Array) -> AnyDocuments:
        return self.data

    def find_missing(self) -> Array:
        return ~find_nonempty_texts(self.data)[:, None]

    def rank_column(self, column: int) -> Array:
        # texts are compared by their hashes
        return np.unique(self.hash_columns()[0], return_inverse=True)[1].astype(float)

    def hash_columns(self) -> Sequence[Array]:
        if isinstance(self.data, TokenBags):
            return [self.data.hash_documents()]
        encoded = (d if isinstance(d, bytes) else d.encode(errors="surrogatepass") for d in self.data)
        hashes = b"".join(digest_bytes(document) if document else NO_DIGEST for document in encoded)
        return [np.frombuffer(hashes, "<u8").astype(np.uint64)]

    def append(self, other: TextCells) -> TextCells:
        if isinstance(self.data, TokenBags) and isinstance(other.data, TokenBags):
            return TextCells(self.data.append(other.data))
        assert not isinstance(self.data, TokenBags)
        assert not isinstance(other.data, TokenBags)
        return TextCells([*self.data, *other.data])

    def place_columns(self, other: TextCells, places: Array) -> TextCells:
        return other

    def fill_cells(self, places: Array, other: TextCells) -> TextCells:
        rows = np.arange(len(self))
        return self.append(other).take_rows(np.where(places[:, 0], len(self) + rows, rows))

    def drop_absent_values(self) -> TextCells:
        return TextCells(self.data.drop_absent_tokens()) if isinstance(self.data, TokenBags) else self


def digest_bytes(content: bytes) -> bytes:
    """An 8-byte hash, the same on every machine."""
    return blake2b(content, digest_size=8).digest()


def hash_bytes(content: bytes) -> int:
    """A 64-bit hash, the same on every machine."""
    return int.from_bytes(digest_bytes(content), "little")


def hash_value(value: object) -> int:
    """64-bit hash of a label: equal numbers of different types have equal hashes, but 1 and "1" differ.

    >>> hash_value(1) == hash_value(1.0), hash_value(1) == hash_value("1")
    (True, False)
    """
    if isinstance(value, str):
        return hash_bytes(b"s" + value.encode(errors="surrogatepass"))
    # 1, 1.0 and True are the same label
    if isinstance(value, bool | int | float) and value == value // 1:
        return hash_bytes(b"n%d" % int(value))
    return hash_bytes(f"{type(value).__name__} {value!r}".encode(errors="surrogatepass"))


def hash_labels(codes: Array, values: Array) -> Array:
    """Hash of each cell's label, (rows,); zero for missing cells."""
    codes, values = take_shown_values(codes, values)
    # a hash for each value; 0 at the end, because code -1 (missing) indexes the last element
    return np.array([*map(hash_value, values.tolist()), 0], np.uint64)[codes]


def take_rows(blocks: Sequence[Cells], rows: Array | slice) -> list[Cells]:
    """Select rows of every block."""
    return [block.take_rows(rows) for block in blocks]


# -- the record of a block ---------------------------------------------------------------------------------------------

BlockRecord = Statistics | tuple[ValueCounts, ...]


def take_columns(record: BlockRecord, columns: Array) -> BlockRecord:
    """Select columns of the block."""
    return tuple(record[int(j)] for j in columns) if isinstance(record, tuple) else record.take_columns(columns)


def place_columns(record: BlockRecord, other: BlockRecord, places: Array) -> BlockRecord:
    """Replace the columns at ``places`` by the columns of another record of the same family."""
    if not isinstance(record, tuple):
        assert not isinstance(other, tuple)
        return record.place_columns(other, places)
    assert isinstance(other, tuple)
    columns = list(record)
    for place, counts in zip(places.tolist(), other, strict=True):
        columns[place] = counts
    return tuple(columns)


def find_filled(record: BlockRecord) -> Array:
    """Whether each column has at least one learned cell, (columns,)."""
    if isinstance(record, tuple):
        return np.array([len(counts.values) > 0 for counts in record], dtype=bool)
    return record.find_filled_columns()
