"""Cells of a file as numbers, labels or documents; a cell that cannot be read is an error that names it."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from priory.bag_of_words.documents import PackedDocuments
from priory.core.typing import Array
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
    """The column with null where a cell is blank or one of ``missing``."""
    if not is_text_column(column):
        return column
    trimmed = pc.utf8_trim_whitespace(column)
    is_missing = pc.is_in(trimmed, value_set=pa.array(["", *sorted(missing)], pa.string()))
    # not if_else: before Arrow 24 it breaks a column that begins inside another one (a slice)
    return pc.replace_with_mask(column, is_missing, pa.scalar(None, pa.string()))


def looks_numeric(column: pa.Array) -> pa.BooleanArray:
    return pc.match_substring_regex(pc.utf8_trim_whitespace(column), NUMBER_PATTERN)


def looks_like_date(column: pa.Array) -> pa.BooleanArray:
    """Whether each cell is a date, with or without a time of day, in one of the common notations."""
    return pc.match_substring_regex(pc.utf8_trim_whitespace(column), DATE_PATTERN)


def blank_non_numbers(column: pa.Array, missing: frozenset[str]) -> tuple[pa.Array, int]:
    """The column with null for every cell that is not a finite number, and the number of such cells."""
    there = numbers = mask_missing_cells(column, missing)
    nothing = pa.scalar(None, there.type)
    if is_text_column(there):
        is_text = pc.invert(looks_numeric(there).fill_null(True))
        numbers = pc.utf8_trim_whitespace(pc.replace_with_mask(there, is_text, nothing))
    is_number = pc.is_finite(numbers.cast(pa.float64())).fill_null(False)
    is_bad = pc.and_not(there.is_valid(), is_number)
    return pc.replace_with_mask(there, is_bad, nothing), int(pc.sum(is_bad).as_py() or 0)


def read_number_column(chunk: RowChunk, name: str, missing: frozenset[str], is_open: bool = True) -> Array:
    """A column of numbers, NaN where a cell is missing.

    ``is_open`` says whether the user can still declare what the column holds; with a trained model it is decided.
    """
    column = chunk.batch.column(name)
    if not is_text_column(column):
        values = np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=float)
        if np.isinf(values).any():
            raise chunk.make_cell_error(int(np.isinf(values).argmax()), name, "is infinite", "leave the cell empty")
        return values
    there = mask_missing_cells(column, missing)
    try:
        values = pc.utf8_trim_whitespace(there).cast(pa.float64()).to_numpy(zero_copy_only=False).astype(float)
    except pa.ArrowInvalid:
        good = looks_numeric(there).fill_null(True).to_numpy(zero_copy_only=False)
        raise _make_number_error(chunk, int(np.argmin(good)), name, is_open) from None
    odd = ~np.isfinite(values) & there.is_valid().to_numpy(zero_copy_only=False)
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
    """A code for each cell, -1 where it is missing, and the labels that the codes stand for, sorted."""
    text = column if is_text_column(column) else cast_to_text(column)
    coded = text.dictionary_encode()
    values = np.empty(len(coded.dictionary), dtype=object)
    values[:] = coded.dictionary.to_pylist()
    order = np.argsort(values)
    rank = np.empty(len(order) + 1, dtype=np.int32)
    rank[order], rank[-1] = np.arange(len(order)), -1
    return rank[coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)], values[order]


def cast_to_text(column: pa.Array) -> pa.StringArray:
    """Cells as a CSV would have them: 3 rather than 3.0, true rather than True."""
    return column.cast(pa.string())


def read_text_column(column: pa.Array) -> PackedDocuments:
    """The texts in UTF-8, in Arrow's own memory; a missing one is empty."""
    text = (column if is_text_column(column) else cast_to_text(column)).fill_null("")
    _, ends, data = text.buffers()
    edges = np.frombuffer(ends, dtype=np.int32)[text.offset : text.offset + len(text) + 1]
    return PackedDocuments(np.frombuffer(b"" if data is None else data, dtype=np.uint8), edges)


def shorten_cell(cell: str, max_length: int = 40) -> str:
    """A cell for one line of a message, shortened if it is long."""
    return repr(cell if len(cell) <= max_length else cell[: max_length - 1] + "…")
