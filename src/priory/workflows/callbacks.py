"""Callbacks for progress, notes and long activities of a workflow; silent by default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from priory.sources.byte_streams import ProgressCallback, ignore_progress


def ignore_note(_: str) -> None:
    pass


@dataclass(frozen=True)
class Callbacks:
    """Functions that a workflow calls while it runs.

    Parameters
    ----------
    progress : function of an int
        Called with the number of bytes whenever a block of a file has been read.
    notify : function of a str
        Called with each note: a message that is not an error, such as the names of columns left out.
    activity : function of a str that returns a context manager
        Called with a phrase such as "looking for leakage"; the work that the phrase describes is done inside.
    """

    progress: ProgressCallback = ignore_progress
    notify: Callable[[str], None] = ignore_note
    activity: Callable[[str], AbstractContextManager[object]] = nullcontext

    def note_coerced_cells(self, n_coerced: Mapping[str, int]) -> None:
        """Note for each column how many cells were read as missing because they are not numbers."""
        for name, count in n_coerced.items():
            if count:
                self.notify(f"column {name!r}: read {format_count(count, 'cell')} without a number as missing")


SILENT = Callbacks()


def format_count(count: float, name: str) -> str:
    """Format a number with the noun that it counts, in the singular or plural.

    >>> format_count(1, "row"), format_count(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,.0f} {name}" + ("" if count == 1 else "s")
