"""A table to read: as text, as HTML without inline styles, or as a data frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import combining, east_asian_width

from numpy import ndarray as Array

from priory.errors import MissingDependencyError

if TYPE_CHECKING:
    import pandas as pd


def display_width(text: str) -> int:
    """Return the number of terminal columns that a text takes.

    >>> display_width("评论"), display_width("cafe\\u0301")
    (4, 4)
    """
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def pad_to_width(text: str, columns: int) -> str:
    """Return the text, padded with spaces to a width of ``columns``."""
    return text + " " * (columns - display_width(text))


MAX_CELL_WIDTH = 40  # characters
SHADES = 5  # of the highlighted words in a text

STYLE_SHEET = (
    ".priory caption{caption-side:top;text-align:left;font-weight:600}"
    ".priory th,.priory td{text-align:left;padding:.15em .7em .15em 0}"
    ".priory .number{text-align:right;font-variant-numeric:tabular-nums}"
    ".priory-text mark{color:inherit;border-radius:2px}"
) + "".join(
    f".priory-text .{name}-{shade}{{background:rgba({colour},{shade / SHADES:g})}}"
    for name, colour in (("for", "0,114,178"), ("against", "213,94,0"))
    for shade in range(1, SHADES + 1)
)


class EstimateTable(NamedTuple):
    """The estimates of one column: P(value | class), or the parameters of each class. Arrays are (classes, values).

    An estimate from counts is ``(counts + virtual) / (n + all_virtual)``, with virtual examples.
    """

    values: Sequence[object]  # the values, or the names of the parameters
    estimates: Array
    counts: Array | None = None
    virtual: Array | None = None
    n: Array | None = None  # (classes,); by default the counts summed over the values
    all_virtual: Array | None = None  # (classes,); by default the virtual examples summed over the values
    symbol: str = "P"  # or "p", where the column has a density


@dataclass(frozen=True)
class DisplayTable:
    """A title, column names, and rows of cells: strings, numbers, or None for an empty cell.

    >>> print(DisplayTable("candies", ("kind", "share"), (("lime", 0.25), ("cherry", 0.75))))
    candies
    kind    share
    lime     0.25
    cherry   0.75
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    note: str = ""

    def __str__(self) -> str:
        cells = [list(self.columns), *([format_cell(cell) for cell in row] for row in self.rows)]
        widths = [max(display_width(row[j]) for row in cells) for j in range(len(self.columns))]
        numeric = self._find_numeric_columns()
        lines = [
            "  ".join(_align(cell, width, right) for cell, width, right in zip(row, widths, numeric, strict=True))
            for row in cells
        ]
        return "\n".join(line.rstrip() for line in (self.title, *lines, self.note) if line)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<style>{STYLE_SHEET}</style>{self.to_html()}"

    def to_html(self) -> str:
        """The table as HTML, without a style sheet."""
        numeric = self._find_numeric_columns()
        head = "".join(_format_html("th", name, right) for name, right in zip(self.columns, numeric, strict=True))
        body = "".join(
            f"<tr>{''.join(_format_html('td', format_cell(c), r) for c, r in zip(row, numeric, strict=True))}</tr>"
            for row in self.rows
        )
        caption = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        note = f'<p class="priory-note">{escape(self.note)}</p>' if self.note else ""
        return f'<table class="priory">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}'

    def to_frame(self) -> pd.DataFrame:
        """The cells, unformatted, as a data frame."""
        return import_pandas().DataFrame(list(self.rows), columns=list(self.columns))

    def _find_numeric_columns(self) -> list[bool]:
        return [all(not isinstance(row[j], str) for row in self.rows) for j in range(len(self.columns))]


def join_html(tables: Sequence[DisplayTable]) -> str:
    """Several tables as HTML, with one style sheet."""
    return f"<style>{STYLE_SHEET}</style>" + "".join(table.to_html() for table in tables)


def format_cell(value: object) -> str:
    """Format a cell as text of bounded length, with control characters escaped.

    >>> format_cell("a\\x1b[31m"), format_cell(None), format_cell(2.0), format_cell(0.123456789)
    ('a\\\\x1b[31m', '', '2', '0.1235')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    text = str(value) if len(str(value)) <= MAX_CELL_WIDTH else str(value)[: MAX_CELL_WIDTH - 1] + "…"
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def join_words(words: Sequence[str]) -> str:
    """Join words as in a sentence.

    >>> join_words(["tempering"]), join_words(["tempering", "structure", "refinement"])
    ('tempering', 'tempering, structure and refinement')
    """
    *first, last = words or ("",)
    return f"{', '.join(first)} and {last}" if first else last


def import_pandas() -> ModuleType:
    """Import pandas, or raise an error with the command that installs it."""
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingDependencyError("to_frame needs pandas: pip install 'priory[pandas]'.", name=error.name) from None
    return pd


def _align(text: str, width: int, right: bool) -> str:
    return " " * (width - display_width(text)) + text if right else pad_to_width(text, width)


def _format_html(tag: str, text: str, numeric: bool) -> str:
    kind = ' class="number"' if numeric else ""
    return f"<{tag}{kind}>{escape(text)}</{tag}>"
