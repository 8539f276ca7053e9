"""Chunks: rows of a file as an Arrow batch that knows the place of each cell in the file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from priory.core.typing import Array
from priory.errors import DataError

MAX_CELL_BYTES = 25 << 20
MAX_LINE_BYTES = 2 * MAX_CELL_BYTES  # of a file of rows


class FileReader(ABC):
    """One file of rows, read a chunk at a time; the memory needed does not depend on its size."""

    path: str
    names: tuple[str, ...]  # of its columns

    @abstractmethod
    def read_chunks(self, column_names: tuple[str, ...]) -> Iterator[RowChunk]:
        """The rows, with the named columns in this order."""

    @abstractmethod
    def locate_cell(self, row: int, column: str) -> str:
        """The place of a cell, for an error message: ``file:line:column`` if the file has lines."""


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


def check_column_names(path: str, names: list[str]) -> tuple[str, ...]:
    """Return the column names, which have to be unique; unused columns may have blank names."""
    if not names:
        raise DataError(f"{path}: has no columns; give a table with columns")
    for j, name in enumerate(names):
        if name.strip() and name in names[:j]:
            first = names.index(name) + 1
            raise DataError(f"{path}:1:{j + 1}: column {name!r} is also column {first}; rename one of them")
    return tuple(names)
