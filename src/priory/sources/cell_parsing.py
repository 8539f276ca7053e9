"""Parse cells of files as numbers, labels or documents; errors name the cell."""

from __future__ import annotations

import math
import re
import shlex

import numpy as np
import pyarrow as pa

from priory.bag_of_words.documents import PackedDocuments
from priory.core.typing import Array
from priory.sources import arrow_functions as arrow
from priory.sources.chunk import RowChunk

NUMBER_PATTERN = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_MONTH, _DAY = r"(?:0?[1-9]|1[0-2])", r"(?:0?[1-9]|[12]\d|3[01])"
_MONTH_NAME = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-zA-Z]*"
_TIME = r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|UTC|[+-]\d{2}:?\d{2}))?)?"
DATE_PATTERN = (
    rf"^(?:\d{{4}}[-/]{_MONTH}[-/]{_DAY}|{_DAY}[./-]{_DAY}[./-]\d{{4}}|{_DAY}/{_DAY}/\d{{2}}"
    rf"|{_DAY}[ -]{_MONTH_NAME}[ -]\d{{2,4}}|{_MONTH_NAME} {_DAY},? \d{{4}}){_TIME}$"
)
MAX_SUGGESTED_LENGTH = 20  # of a cell that --missing could name
INTEGER_PATTERN = re.compile(r"[+-]?\d+")
INT64_BOUND = 2**63


def is_text_column(column: pa.Array) -> bool:
    return bool(pa.types.is_string(column.type))


def mask_missing_cells(column: pa.Array, missing: frozenset[str]) -> pa.Array:
    """Replace blank cells and those in ``missing`` by null."""
    if not is_text_column(column):
        return column
    # not `choose`: before Arrow 24 it breaks a column that begins inside another one (a slice)
    return arrow.blank(column, arrow.is_one_of(arrow.trim(column), ["", *sorted(missing)]))


def looks_numeric(column: pa.Array) -> pa.BooleanArray:
    return arrow.match_pattern(arrow.trim(column), NUMBER_PATTERN)


def parse_number(cell: str) -> float | None:
    """Parse a finite number; None if the cell is not one.

    >>> parse_number(" 4.5e1"), parse_number("1_0"), parse_number("nan"), parse_number("1e999")
    (45.0, None, None, None)
    """
    is_number = re.fullmatch(NUMBER_PATTERN, cell.strip(), re.ASCII) is not None
    return value if is_number and math.isfinite(value := float(cell)) else None


def looks_like_date(column: pa.Array) -> pa.BooleanArray:
    """Whether each cell is a date, with or without a time of day, in one of the common notations."""
    return arrow.match_pattern(arrow.trim(column), DATE_PATTERN)


def blank_non_numbers(column: pa.Array, missing: frozenset[str]) -> tuple[pa.Array, int]:
    """Replace cells that are not finite numbers by null, and count them."""
    there = numbers = mask_missing_cells(column, missing)
    if is_text_column(there):
        is_text = arrow.invert(arrow.fill_missing(looks_numeric(there), True))
        numbers = arrow.trim(arrow.blank(there, is_text))
    is_number = np.isfinite(arrow.unpack_column(arrow.cast(numbers, pa.float64())))
    is_bad = arrow.find_present(there) & ~is_number
    return arrow.blank(there, pa.array(is_bad)), int(is_bad.sum())


def read_number_column(chunk: RowChunk, name: str, missing: frozenset[str], is_open: bool = True) -> Array:
    """Read a column of numbers, NaN where a cell is missing.

    ``is_open`` tells whether the user can still declare the type of the column; a trained model has fixed it.
    """
    column = chunk.batch.column(name)
    if not is_text_column(column):
        values = arrow.unpack_column(arrow.cast(column, pa.float64())).astype(float)
        if np.isinf(values).any():
            raise chunk.make_cell_error(int(np.isinf(values).argmax()), name, "is infinite", "leave the cell empty")
        return values
    there = mask_missing_cells(column, missing)
    try:
        values = arrow.unpack_column(arrow.cast(arrow.trim(there), pa.float64())).astype(float)
    except pa.ArrowInvalid:
        good = arrow.unpack_column(arrow.fill_missing(looks_numeric(there), True))
        raise _make_number_error(chunk, int(np.argmin(good)), name, is_open) from None
    odd = ~np.isfinite(values) & arrow.find_present(there)
    if odd.any():
        raise _make_number_error(chunk, int(odd.argmax()), name, is_open)
    if (np.abs(values) >= INT64_BOUND).any():
        for row in np.flatnonzero(np.abs(values) >= INT64_BOUND):
            cell = there[int(row)].as_py().strip()
            if INTEGER_PATTERN.fullmatch(cell) and abs(int(cell)) >= INT64_BOUND:
                problem = f"the integer {shorten_cell(cell)} is beyond 2^63 - 1"
                raise chunk.make_cell_error(
                    int(row), name, problem, f"write it with an exponent, or use --type {name}=label"
                )
    return values


def _make_number_error(chunk: RowChunk, row: int, name: str, is_open: bool) -> Exception:
    cell = chunk.batch.column(name)[row].as_py()
    given = cell.strip()
    missing = "" if len(given) > MAX_SUGGESTED_LENGTH or "," in given else f"--missing {shlex.quote(given)}, "
    remedy = f"correct it, or use {missing}--coerce or --type {shlex.quote(name)}=label"
    if not is_open:
        remedy = "correct it, or leave the cell empty"
    if re.fullmatch(r"\s*[+-]?\d+,\d+\s*", cell):
        remedy = "use a point as the decimal separator"
    return chunk.make_cell_error(row, name, f"{shorten_cell(cell)} is not a number", remedy)


def encode_label_column(column: pa.Array) -> tuple[Array, Array]:
    """The code of each cell, -1 where it is missing, and the sorted labels.

    The codes have shape (cells,); code ``i`` stands for ``labels[i]``.
    """
    codes, found = arrow.number_texts(cast_to_text(column))
    values = np.empty(len(found), dtype=object)
    values[:] = found
    order = np.argsort(values)
    rank = np.empty(len(order) + 1, dtype=np.int32)  # position of each label in sorted order; the last is for -1
    rank[order], rank[-1] = np.arange(len(order)), -1
    return rank[codes], values[order]


def cast_to_text(column: pa.Array) -> pa.StringArray:
    """Cast to text as in a CSV: 3 rather than 3.0, true rather than True."""
    return arrow.cast(column, pa.string())


def read_text_column(column: pa.Array) -> PackedDocuments:
    """Read texts without copying Arrow's buffers; a missing text is empty."""
    text = arrow.fill_missing(cast_to_text(column), "")
    _, ends, data = text.buffers()
    edges = np.frombuffer(ends, dtype=np.int32)[text.offset : text.offset + len(text) + 1]
    return PackedDocuments(np.frombuffer(b"" if data is None else data, dtype=np.uint8), edges)


def shorten_cell(cell: str, max_length: int = 40) -> str:
    """Format a cell for an error message, shortened if it is long."""
    return repr(cell if len(cell) <= max_length else cell[: max_length - 1] + "…")
