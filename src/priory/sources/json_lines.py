"""JSON lines: one flat object to a line."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from priory.errors import DataError, TooLarge
from priory.sources.byte_streams import Decoding, Told, opened, shown, untold, utf8
from priory.sources.chunk import MOST_IN_A_CELL, STRICT, Chunk, Faults, File, checked_names

ROWS = 4096  # at a time
SAMPLE = 1000  # rows that tell the columns
LARGEST = 2**63 - 1


class JSONLines(File):
    def __init__(self, path: str, how: Decoding, faults: Faults = STRICT, told: Told = untold) -> None:
        self.path, self.how, self.faults = path, how, faults
        self.jumps: list[tuple[int, int]] = []  # (row, line) where the distance between them grows
        self.count = 0
        self.skipped = 0
        self.rows = self._objects(utf8(path, opened(path, told), how))
        self.first = [row for row, _ in zip(self.rows, range(SAMPLE), strict=False)]
        if not self.first:
            raise DataError(f"{shown(path)}: has no rows; give one JSON object a line")
        self.names = checked_names(shown(path), list(dict.fromkeys(name for row in self.first for name in row)))

    def chunks(self, wanted: tuple[str, ...]) -> Iterator[Chunk]:
        start, kept, self.first = 0, self.first, []
        for row in self.rows:
            kept.append(row)
            if len(kept) >= ROWS:
                yield Chunk(self._batch(kept, start, wanted), self, start)
                start, kept = start + len(kept), []
        if kept:
            yield Chunk(self._batch(kept, start, wanted), self, start)

    def place(self, row: int, column: str) -> str:
        first, line = self.jumps[bisect_right(self.jumps, row, key=lambda jump: jump[0]) - 1]
        return f"{shown(self.path)}:{line + row - first}: /{column}"

    def _objects(self, blocks: Iterator[bytes]) -> Iterator[dict[str, Any]]:
        for number, line in enumerate(_lines(self.path, blocks), start=1):
            if not line.strip():
                continue
            try:
                row = self._object(line, number)
            except DataError:
                self.skipped += 1
                if self.skipped > self.faults.skip_bad:
                    raise
                continue
            if number - self.count != (self.jumps[-1][1] - self.jumps[-1][0] if self.jumps else 0):
                self.jumps.append((self.count, number))
            self.count += 1
            yield row

    def _object(self, line: bytes, number: int) -> dict[str, Any]:
        place = f"{shown(self.path)}:{number}"
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise DataError(f"{place}: byte {error.start} is not UTF-8; say --encoding, or --errors replace") from None
        try:
            row = json.loads(text, object_pairs_hook=_unique, parse_constant=_refused, parse_float=_finite)
        except json.JSONDecodeError as error:
            raise DataError(f"{place}:{error.colno}: is not JSON ({error.msg}); mend the line, or --skip-bad") from None
        except RecursionError:
            raise DataError(f"{place}: is nested too deeply; give flat objects") from None
        except ValueError as error:
            raise DataError(f"{place}: {error}") from None
        if not isinstance(row, dict):
            raise DataError(f"{place}: is {_kind(row)}, not an object; give one object a line")
        for name, value in row.items():
            if isinstance(value, dict | list):
                raise DataError(f"{place}: /{name} is {_kind(value)}; give text or a number")
            if isinstance(value, int) and abs(value) > LARGEST:
                raise DataError(f"{place}: /{name} is a whole number beyond {LARGEST}; give it as text")
            if isinstance(value, str) and len(value) > MOST_IN_A_CELL:
                raise TooLarge(f"{place}: /{name} has over {MOST_IN_A_CELL >> 20} MB; split it")
            if isinstance(value, str) and "\0" in value:
                raise DataError(f"{place}: /{name} holds a NUL character; remove it")
            if not _is_unicode(name) or (isinstance(value, str) and not _is_unicode(value)):
                raise DataError(f"{place}: /{_shown(name)} holds half a surrogate pair; remove or replace it")
        return row

    def _batch(self, rows: list[dict[str, Any]], start: int, wanted: tuple[str, ...]) -> Any:
        import pyarrow as pa

        columns = [self._column(pa, [row.get(name) for row in rows], name, start) for name in wanted]
        return pa.RecordBatch.from_arrays(columns, names=list(wanted))

    def _column(self, pa: Any, cells: list[Any], name: str, start: int) -> Any:
        """Numbers where all cells are numbers, else text: the same cell is the same text in every chunk."""
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
                f"{self.place(start + row, name)} is {_kind(cells[row])} and other rows hold other things; use one kind"
            )
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())


def _lines(path: str, blocks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
        if len(rest) > 2 * MOST_IN_A_CELL:
            raise TooLarge(f"{shown(path)}: a line has more than {2 * MOST_IN_A_CELL >> 20} MB; give one object a line")
    if rest:
        yield rest


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"has {_shown(twice)!r} twice; give every key once")
    return found


def _refused(name: str) -> Any:
    raise ValueError(f"holds {name}, which is no JSON; use null for what is missing")


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"holds {text[:20]}, which no float can hold; give a smaller number")
    return value


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


def _shown(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()
