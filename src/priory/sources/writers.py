"""Write rows as CSV, TSV, JSON lines, Parquet or Arrow, atomically.

In a CSV a cell that a spreadsheet would take for a formula gets a ``'`` in front, and so does a cell that would be one
without its leading ``'``. Removing one ``'`` from every cell that `ESCAPED_FORMULA_PATTERN` matches restores the cells.
"""

from __future__ import annotations

import io
import json
import os
import re
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from priory.errors import DataError
from priory.sources import cell_parsing as cells
from priory.sources.byte_streams import peek_first

FORMULA_PATTERN = r"^'*[=+\-@\t\r]"
FORMULA_MARKS = "=+-@\t\r"
ESCAPED_FORMULA_PATTERN = re.compile(r"^''*[=+\-@\t\r]")
OUTPUT_FORMAT_BY_SUFFIX = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".parquet": "parquet", ".arrow": "arrow"}


TEXT_FORMATS = ("csv", "tsv")  # cells are written as they were read


def find_free_name(name: str, used_names: tuple[str, ...]) -> str:
    """Prefix the name of a new column with ``predicted_`` until no other column has it."""
    while name in used_names:
        name = f"predicted_{name}"
    return name


def append_columns(batch: pa.RecordBatch, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """The batch with more columns, under names that it does not have yet."""
    for name, column in columns.items():
        batch = batch.append_column(find_free_name(name, tuple(batch.schema.names)), column)
    return batch


def replace_text_columns(batch: pa.RecordBatch, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """The batch with these columns in place of its own of the same names, where its own are text."""
    pairs = zip(batch.schema.names, batch.columns, strict=True)
    arrays = [columns.get(name, own) if cells.is_text_column(own) else own for name, own in pairs]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def escape_formulas(column: pa.Array) -> pa.Array:
    """Escape formulas; signed numbers remain unchanged."""
    if not has_any_mark(column, FORMULA_MARKS):
        return column
    # a minus before a number is no formula
    is_number = cells.match_pattern(column, cells.NUMBER_PATTERN)
    risky = cells.are_both(cells.match_pattern(column, FORMULA_PATTERN), cells.invert(is_number))
    return cells.choose(risky, cells.join_texts(["'", column]), column)


def has_any_mark(column: pa.Array, marks: str) -> bool:
    """Whether any cell contains one of these ASCII characters; scans the bytes of the whole column."""
    content = get_text_bytes(column)
    return any(mark.encode() in content for mark in marks)


def get_text_bytes(column: pa.Array) -> bytes:
    """The cells of a column of text, one after the other."""
    offsets, content = column.buffers()[1:]
    if content is None or not len(column):
        return b""
    width = np.int64 if pa.types.is_large_string(column.type) else np.int32
    ends = np.frombuffer(offsets, dtype=width)[column.offset : column.offset + len(column) + 1]
    return content.slice(int(ends[0]), int(ends[-1] - ends[0])).to_pybytes()


def unescape_formula(cell: str) -> str:
    """The original of a cell that `escape_formulas` may have changed."""
    return cell[1:] if ESCAPED_FORMULA_PATTERN.match(cell) else cell


def find_output_format(path: str | None, file_format: str | None = None) -> str:
    """The given format, or the format of the suffix; CSV for standard output and devices."""
    if file_format is not None:
        return file_format
    if path is None or (Path(path).exists() and not Path(path).is_file()):
        return "csv"
    suffix = Path(path).suffix.lower()
    if suffix not in OUTPUT_FORMAT_BY_SUFFIX:
        raise DataError(f"{path}: unknown output format; use one of {', '.join(OUTPUT_FORMAT_BY_SUFFIX)}")
    return OUTPUT_FORMAT_BY_SUFFIX[suffix]


def write_batches(
    batches: Iterator[pa.RecordBatch], path: str | None, file_format: str | None = None, safe: bool = True
) -> None:
    """Write all batches to a file, or to standard output where ``path`` is None."""
    file_format = find_output_format(path, file_format)
    if path is None:
        with _buffer_output(sys.stdout.buffer) as out:
            _write(batches, out, file_format, safe)
        return
    with open_atomically(path) as file:
        _write(batches, file, file_format, safe)


@contextmanager
def _buffer_output(file: BinaryIO) -> Iterator[BinaryIO]:
    """Standard output with a buffer: without one (PYTHONUNBUFFERED) a write may be incomplete."""
    if not isinstance(file, io.RawIOBase):
        yield file
        file.flush()
        return
    out = io.BufferedWriter(file)
    try:
        yield out
        out.flush()
    finally:
        with suppress(OSError):
            out.detach()


@contextmanager
def open_atomically(path: str) -> Iterator[BinaryIO]:
    """A new file that replaces the old one once it is complete; a device is written to directly."""
    place = Path(path)
    if place.exists() and not place.is_file():
        with open(path, "wb") as device:
            yield device
        return
    # in the same folder, so that the rename stays within one file system
    new = place.with_name(f".{place.name}.{secrets.token_hex(4)}.new")
    try:
        with open(new, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, place)
    except BaseException:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise


def _write(batches: Iterator[pa.RecordBatch], file: BinaryIO, file_format: str, safe: bool) -> None:
    if file_format in ("csv", "tsv"):
        _write_delimited(batches, file, "\t" if file_format == "tsv" else ",", safe)
    elif file_format == "jsonl":
        for batch in batches:
            lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) for row in batch.to_pylist())
            file.write("".join(f"{line}\n" for line in lines).encode())
    else:
        _write_columnar(batches, file, file_format)


def _write_delimited(batches: Iterator[pa.RecordBatch], file: BinaryIO, delimiter: str, safe: bool) -> None:
    """Write a header and rows. Arrow would quote every text; here only those that need it are quoted."""
    for number, batch in enumerate(batches):
        if number == 0:
            file.write(_format_lines([pa.array([name], pa.string()) for name in batch.schema.names], delimiter, safe))
        if batch.num_rows:
            file.write(_format_lines(batch.columns, delimiter, safe))


def _format_lines(columns: list[pa.Array], delimiter: str, safe: bool) -> bytes:
    fields = [_quote_cells(escape_formulas(c) if safe and cells.is_text_column(c) else c, delimiter) for c in columns]
    return get_text_bytes(cells.join_texts([cells.join_texts(fields, delimiter), "\n"]))


def _quote_cells(column: pa.Array, delimiter: str) -> pa.StringArray:
    """The cells as text, quoted where necessary; a missing cell is empty."""
    if not cells.is_text_column(column):
        return cells.fill_missing(cells.cast_to_text(column), "")
    if not has_any_mark(column, f'"\r\n{delimiter}'):
        return cells.fill_missing(column, "")
    special = cells.match_pattern(column, f'["\r\n{re.escape(delimiter)}]')
    doubled = cells.join_texts(['"', cells.replace_text(column, '"', '""'), '"'])
    return cells.fill_missing(cells.choose(special, doubled, column), "")


def _write_columnar(batches: Iterator[pa.RecordBatch], file: BinaryIO, file_format: str) -> None:
    from pyarrow import parquet

    first, batches = peek_first(batches)
    opener = parquet.ParquetWriter if file_format == "parquet" else pa.ipc.new_file
    with opener(file, first.schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
