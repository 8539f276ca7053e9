"""The cells of a block of columns: numbers, labels or texts behind one interface.

A model moves cells around (some rows, some columns, a hash of each cell) without asking what they hold; only the family
that reads ``data`` knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self
from zlib import crc32

import numpy as np

from priory.bag_of_words.documents import Document, DocumentBatch, PackedDocuments
from priory.core.sharding import ColumnSubset
from priory.core.typing import Array
from priory.families.value_counts import CategoricalCells

CellData = Array | ColumnSubset | CategoricalCells | DocumentBatch  # what families read


class Cells(Protocol):
    """Rows of one or more columns that hold the same kind of value."""

    @property
    def data(self) -> CellData:
        """The cells as families read them."""

    def __len__(self) -> int:
        """The number of rows."""

    def take_rows(self, rows: Array | slice) -> Self:
        """The cells of some rows."""

    def take_columns(self, columns: Array) -> Self:
        """The cells of some columns."""

    def view_columns(self, columns: Array) -> CellData:
        """The data of some columns, copied no earlier than they are read."""

    def find_missing(self) -> Array:
        """(rows, columns): which cells are missing."""

    def rank_column(self, column: int) -> Array:
        """(rows,): equal numbers for equal cells of one column, -inf where a cell is missing."""

    def hash_columns(self) -> Sequence[Array]:
        """For each column a 64-bit hash of every cell, the same on every machine."""


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
        numbers = np.asarray(self.data, dtype=np.float64).T + 0.0  # -0.0 becomes 0.0
        return list(np.ascontiguousarray(numbers).view(np.uint64))


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
        # one hash for each value, and a last one where the code of a missing cell (-1) points
        hashes = [np.array([crc32(str(v).encode()) for v in values] + [0], np.uint64) for values in self.data.values]
        return [values[codes] for values, codes in zip(hashes, self.data.codes.T, strict=True)]


@dataclass(frozen=True)
class TextCells:
    """One column of documents; an empty document is missing."""

    data: list[Document] | PackedDocuments

    def __len__(self) -> int:
        return len(self.data)

    def take_rows(self, rows: Array | slice) -> TextCells:
        if isinstance(rows, slice):
            return TextCells(self.data[rows])
        return TextCells([self.data[i] for i in rows.tolist()])

    def take_columns(self, columns: Array) -> TextCells:
        return self

    def view_columns(self, columns: Array) -> DocumentBatch:
        return self.data

    def find_missing(self) -> Array:
        return np.array([[not document] for document in self.data]).reshape(len(self), 1)

    def rank_column(self, column: int) -> Array:
        return np.unique(np.array([str(document) for document in self.data]), return_inverse=True)[1].astype(float)

    def hash_columns(self) -> Sequence[Array]:
        encoded = (d if isinstance(d, bytes) else d.encode(errors="replace") for d in self.data)
        return [np.fromiter((crc32(document) for document in encoded), np.uint64, len(self))]


def take_rows(blocks: Sequence[Cells], rows: Array | slice) -> list[Cells]:
    """Some rows of every block."""
    return [block.take_rows(rows) for block in blocks]
