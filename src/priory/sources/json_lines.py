"""Reader of JSON lines: one flat object per line."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NoReturn, TypeAlias

import numpy as np
import pyarrow as pa

from priory.errors import DataError, ModelTooLargeError
from priory.sources import byte_streams
from priory.sources.byte_streams import ProgressCallback, ReadOptions, format_path
from priory.sources.cell_parsing import MAX_CELL_BYTES, MAX_LINE_BYTES, FileReader, RowChunk, check_column_names

JSON_CHUNK_ROWS = 4096
ROWS_TO_FIND_COLUMNS = 1000  # the columns are the keys of these first rows
MAX_JSON_INTEGER = 2**63 - 1
MAX_DEPTH = 100
MAX_SYNTAX_BYTES = 4 << 20  # of a line without its strings: each byte may become a value that takes 100 bytes
STRING_PATTERN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?')

JSONCell: TypeAlias = str | int | float | bool | None


class JSONLinesReader(FileReader):
    """A file of JSON objects, one per line; a key that is absent from a row is a missing cell."""

    def __init__(self, path: str, options: ReadOptions, report_progress: ProgressCallback) -> None:
        self.path, self.shown_path, self.options = path, format_path(path), options
        self.jumps: list[tuple[int, int]] = []  # (row, line) wherever lines were skipped before a row
        self.count = 0
        self.skipped = 0
        blocks = byte_streams.read_utf8_blocks(path, options, report_progress)
        self.rows = self._read_objects(byte_streams.limit_lines(path, blocks, MAX_LINE_BYTES))
        self.first = [row for row, _ in zip(self.rows, range(ROWS_TO_FIND_COLUMNS), strict=False)]
        if not self.first:
            raise DataError(f"{self.shown_path}: has no rows; give one JSON object per line")
        self.names = check_column_names(
            self.shown_path, list(dict.fromkeys(name for row in self.first for name in row))
        )

    def read_chunks(self, column_names: tuple[str, ...]) -> Iterator[RowChunk]:
        start, kept, self.first = 0, self.first, []
        for row in self.rows:
            kept.append(row)
            if len(kept) >= JSON_CHUNK_ROWS:
                yield RowChunk(self._build_batch(kept, start, column_names), self, start)
                start, kept = start + len(kept), []
        if kept:
            yield RowChunk(self._build_batch(kept, start, column_names), self, start)

    def locate_cell(self, row: int, column: str) -> str:
        first, line = self.jumps[bisect_right(self.jumps, row, key=lambda jump: jump[0]) - 1]
        return f"{self.shown_path}:{line + row - first}: /{column}"

    def _read_objects(self, blocks: Iterator[bytes]) -> Iterator[dict[str, JSONCell]]:
        for number, line in enumerate(_split_lines(blocks), start=1):
            if not line.strip():
                continue
            try:
                row = self._parse_object(line, number)
            except DataError:
                self.skipped += 1
                if self.skipped > self.options.max_bad_lines:
                    raise
                continue
            if number - self.count != (self.jumps[-1][1] - self.jumps[-1][0] if self.jumps else 0):
                self.jumps.append((self.count, number))
            self.count += 1
            yield row

    def _parse_object(self, line: bytes, number: int) -> dict[str, JSONCell]:
        place = f"{self.shown_path}:{number}"
        if len(line) > MAX_SYNTAX_BYTES and len(STRING_PATTERN.sub(b"", line)) > MAX_SYNTAX_BYTES:
            raise ModelTooLargeError(f"{place}: has millions of values; give flat objects with fewer keys")
        if _measure_depth(line) > MAX_DEPTH:  # before the parser, which is recursive
            raise DataError(f"{place}: is nested too deeply; give flat objects")
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise DataError(
                f"{place}: byte {error.start} is not UTF-8; use the right --encoding, or --errors replace"
            ) from None
        try:
            row = DECODER.decode(text)
        except json.JSONDecodeError as error:
            raise DataError(
                f"{place}:{error.colno}: is not JSON ({error.msg}); correct the line, or use --skip-bad"
            ) from None
        except ValueError as error:
            raise DataError(f"{place}: {error}") from None
        if not isinstance(row, dict):
            raise DataError(f"{place}: is {_format_type(row)}, not an object; give one object per line")
        for name, value in row.items():
            if isinstance(value, dict | list):
                raise DataError(f"{place}: /{name} is {_format_type(value)}; give text or a number")
            if isinstance(value, int) and abs(value) > MAX_JSON_INTEGER:
                raise DataError(f"{place}: /{name} is an integer beyond {MAX_JSON_INTEGER}; give it as text")
            if isinstance(value, str) and len(value) > MAX_CELL_BYTES:
                raise ModelTooLargeError(f"{place}: /{name} is larger than {MAX_CELL_BYTES >> 20} MB; split it")
            if isinstance(value, str) and "\0" in value:
                raise DataError(f"{place}: /{name} contains a NUL character; remove it")
            if not _is_unicode(name) or (isinstance(value, str) and not _is_unicode(value)):
                raise DataError(
                    f"{place}: /{_escape_non_ascii(name)} contains half a surrogate pair; remove or replace it"
                )
        return row

    def _build_batch(
        self, rows: list[dict[str, JSONCell]], start: int, column_names: tuple[str, ...]
    ) -> pa.RecordBatch:
        columns = [self._build_column([row.get(name) for row in rows], name, start) for name in column_names]
        return pa.RecordBatch.from_arrays(columns, names=list(column_names))

    def _build_column(self, cells: list[JSONCell], name: str, start: int) -> pa.Array:
        """Numbers if all cells are numbers, booleans if all are, else text."""
        kinds = {type(cell) for cell in cells} - {type(None)}
        if kinds == {int}:
            return pa.array(cells, pa.int64())
        if kinds <= {int, float} and kinds:
            return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())
        if kinds <= {bool} and kinds:
            return pa.array(cells, pa.bool_())
        if str in kinds and len(kinds) > 1:
            row = next(i for i, cell in enumerate(cells) if cell is not None and type(cell) is not type(cells[0]))
            raise DataError(
                f"{self.locate_cell(start + row, name)} is {_format_type(cells[row])}, but other rows have another "
                "type; use one type"
            )
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())


def _split_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    begun: list[bytes] = []  # the pieces of a line that is not complete
    for block in blocks:
        first, *lines = block.split(b"\n")
        begun.append(first)
        if lines:
            yield b"".join(begun)
            yield from lines[:-1]
            begun = [lines[-1]]
    if any(begun):
        yield b"".join(begun)


def _measure_depth(line: bytes) -> int:
    """The largest depth of nested lists and objects; 0 for lines with few brackets, which cannot be too deep."""
    if line.count(b"[") + line.count(b"{") <= MAX_DEPTH:
        return 0
    brackets = np.frombuffer(STRING_PATTERN.sub(b"", line), dtype=np.uint8)
    opened, closed = (np.isin(brackets, np.frombuffer(signs, dtype=np.uint8)) for signs in (b"[{", b"]}"))
    return int(np.cumsum(opened.astype(int) - closed).max(initial=0))


def check_unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Build an object for ``json``, which would silently keep the last of repeated keys."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"has {_escape_non_ascii(twice)!r} twice; give every key once")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"contains {name}, which is not JSON; use null for missing values")


def _parse_finite_float(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"contains {text[:20]}, which is too large for a float; give a smaller number")
    return value


DECODER = json.JSONDecoder(
    object_pairs_hook=check_unique_keys, parse_constant=_refuse_constant, parse_float=_parse_finite_float
)


def _format_type(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _is_unicode(text: str) -> bool:
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _escape_non_ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()
