"""A chunk: some rows of a file as an Arrow batch, which knows where each of its cells stands in the file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from priory.errors import DataError

MAX_CELL_BYTES = 25 << 20  # bytes


class FileReader(ABC):
    """One file of rows, read a chunk at a time in memory that does not grow with it."""

    path: str
    names: tuple[str, ...]  # its columns

    @abstractmethod
    def read_chunks(self, column_names: tuple[str, ...]) -> Iterator[RowChunk]:
        """The wanted columns of its rows."""

    @abstractmethod
    def locate_cell(self, row: int, column: str) -> str:
        """Where a cell stands: ``file:line:column`` where a file has lines."""


class RowChunk(NamedTuple):
    batch: Any  # pyarrow.RecordBatch
    file: FileReader
    start: int  # the number of its first row in the file

    def make_cell_error(self, row: int, column: str, what: str, remedy: str) -> DataError:
        """What is wrong with one cell."""
        return DataError(f"{self.file.locate_cell(self.start + row, column)}: {what}; {remedy}")


@dataclass(frozen=True)
class BadRowPolicy:
    """What is done with rows that cannot be read: each repair is asked for by name, and counted."""

    ragged: str = "error"  # or "pad", "skip"
    max_bad_lines: int = 0  # so many bad lines of JSON are left out
    quotes: bool = True  # whether a quotation mark holds a cell together


STRICT_POLICY = BadRowPolicy()


def check_column_names(path: str, names: list[str]) -> tuple[str, ...]:
    """Column names, each there once; blanks are allowed for columns that nobody uses."""
    if not names:
        raise DataError(f"{path}: has no columns; give a table with some")
    for place, name in enumerate(names):
        if name.strip() and name in names[:place]:
            first = names.index(name) + 1
            raise DataError(f"{path}:1:{place + 1}: column {name!r} is also column {first}; rename one of them")
    return tuple(names)
