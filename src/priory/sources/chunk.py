"""A chunk: some rows of a file as an Arrow batch, which knows where each of its cells stands in the file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from priory.errors import DataError

MOST_IN_A_CELL = 25 << 20  # bytes


class File(ABC):
    """One file of rows, read a chunk at a time in memory that does not grow with it."""

    path: str
    names: tuple[str, ...]  # its columns

    @abstractmethod
    def chunks(self, wanted: tuple[str, ...]) -> Iterator[Chunk]:
        """The wanted columns of its rows."""

    @abstractmethod
    def place(self, row: int, column: str) -> str:
        """Where a cell stands: ``file:line:column`` where a file has lines."""


class Chunk(NamedTuple):
    batch: Any  # pyarrow.RecordBatch
    file: File
    start: int  # the number of its first row in the file

    def fault(self, row: int, column: str, what: str, remedy: str) -> DataError:
        """What is wrong with one cell."""
        return DataError(f"{self.file.place(self.start + row, column)}: {what}; {remedy}")


@dataclass(frozen=True)
class Faults:
    """What is done with rows that cannot be read: each repair is asked for by name, and counted."""

    ragged: str = "error"  # or "pad", "skip"
    skip_bad: int = 0  # so many bad lines of JSON are left out
    quotes: bool = True  # whether a quotation mark holds a cell together


STRICT = Faults()


def checked_names(path: str, names: list[str]) -> tuple[str, ...]:
    """Column names, each there once; blanks are allowed for columns that nobody uses."""
    if not names:
        raise DataError(f"{path}: has no columns; give a table with some")
    for place, name in enumerate(names):
        if name.strip() and name in names[:place]:
            first = names.index(name) + 1
            raise DataError(f"{path}:1:{place + 1}: column {name!r} is also column {first}; rename one of them")
    return tuple(names)
