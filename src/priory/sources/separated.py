"""CSV and TSV. Arrow reads; where it stumbles, a careful reader says what is wrong and where, or goes on by itself."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from priory.errors import DataError, TooLarge
from priory.sources.chunk import STRICT, Chunk, Faults, File, checked_names
from priory.sources.streams import BLOCK, STDIN, Decoding, Stream, Told, opened, shown, untold, utf8

MOST_IN_A_CELL = 25 << 20
CAREFUL_ROWS = 4096  # at a time


class Separated(File):
    """A table of text: a header, and rows of as many cells."""

    def __init__(
        self, path: str, delimiter: str | None, how: Decoding, faults: Faults = STRICT, told: Told = untold
    ) -> None:
        self.path, self.how, self.faults, self.told = path, how, faults, told
        self.blocks = self._checked(utf8(path, opened(path, told), how))
        head = _whole_lines(self.blocks)
        if not head.strip():
            raise DataError(f"{shown(path)}: is empty; give a file with a header and rows")
        self.delimiter = delimiter or sniffed(head)
        names, self.header_lines, size = _header(path, head, self.delimiter)
        self.names = checked_names(shown(path), names)
        self.body = head[size:]
        self.quotes = head[:size].count(b'"')
        self.skipped = 0

    # -- the quick way -------------------------------------------------------------------------------------------

    def chunks(self, wanted: tuple[str, ...]) -> Iterator[Chunk]:
        if self.faults.ragged == "pad":
            yield from self._carefully(wanted, 0)
            return
        import pyarrow as pa

        given, last = 0, None
        try:
            for batch in self._arrow(wanted):
                if batch.num_rows:
                    yield Chunk(batch, self, given)
                    given, last = given + batch.num_rows, batch
        except pa.ArrowInvalid as error:
            if self.path == STDIN:
                raise DataError(f"-: {_first_line(error)} after row {given}; save it to a file to see where") from None
            self.check()
            yield from self._carefully(wanted, given)
            return
        if last is not None and self._may_be_open(last):
            self.check()
        if not given:
            raise DataError(f"{shown(self.path)}: has a header but no rows; give a file with rows")

    def _arrow(self, wanted: tuple[str, ...]) -> Iterator[Any]:
        """All cells as text, as they stand."""
        import pyarrow as pa
        from pyarrow import csv as arrow

        numbered = [f"{j}" for j in range(len(self.names))]  # blank names are not unique
        places = [self.names.index(name) for name in wanted]
        reader = arrow.open_csv(
            Stream(self._bodies()),
            arrow.ReadOptions(use_threads=False, block_size=BLOCK, column_names=numbered),
            arrow.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=self._on_ragged_row
            ),
            arrow.ConvertOptions(
                column_types=dict.fromkeys(numbered, pa.string()),
                include_columns=[numbered[j] for j in places],
                strings_can_be_null=False,
            ),
        )
        return (pa.RecordBatch.from_arrays(batch.columns, names=list(wanted)) for batch in reader)

    def _on_ragged_row(self, row: Any) -> str:
        if self.faults.ragged != "skip":
            return "error"
        self.skipped += 1
        return "skip"

    def _bodies(self) -> Iterator[bytes]:
        yield self.body or b"\n"  # Arrow takes no bytes at all for a mistake
        yield from self.blocks

    def _checked(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        self.quotes = 0
        for block in blocks:
            if b"\0" in block:
                self.check()
            self.quotes += block.count(b'"')
            yield block

    def _may_be_open(self, last: Any) -> bool:
        """Whether the file may have ended inside of a quoted cell: Arrow does not say."""
        cell = last.column(last.num_columns - 1)[-1].as_py() if last.num_columns else ""
        return self.path != STDIN and (bool(self.quotes % 2) or "\n" in cell or "\r" in cell)

    # -- the careful way -----------------------------------------------------------------------------------------

    def _lines(self, errors: str) -> Iterator[str]:
        blocks = utf8(self.path, opened(self.path), self.how)
        text = io.TextIOWrapper(_Raw(blocks), encoding="utf-8", errors=errors, newline="")  # type: ignore[type-var]
        return iter(text)

    def _rows(self, strict: bool = False, errors: str = "surrogateescape") -> Iterator[tuple[int, list[str]]]:
        """Every row after the header with the number of its first line; blank lines are none."""
        csv.field_size_limit(MOST_IN_A_CELL + 1)
        reader = csv.reader(self._lines(errors), delimiter=self.delimiter, strict=strict)
        line = reader.line_num + 1
        for number, row in enumerate(reader):
            if number and row:
                yield line, row
            line = reader.line_num + 1

    def check(self) -> None:
        """Read everything slowly and raise what is wrong, with its place; nothing if nothing is."""
        name, width = shown(self.path), len(self.names)
        last = (self.header_lines, self.names)
        try:
            for line, row in self._rows():
                if len(row) != width and self.faults.ragged == "error":
                    _blame_a_quote(name, line, row, width)
                    many = "field" if len(row) == 1 else "fields"
                    raise DataError(
                        f"{name}:{line}:{min(len(row), width) + (len(row) > width)}: has {len(row)} {many}, header has "
                        f"{width}; mend the row, or use --ragged pad or --ragged skip"
                    )
                for place, cell in enumerate(row, start=1):
                    if not cell.isascii() and any("\udc80" <= c <= "\udcff" for c in cell):
                        at = self._first_bad_byte()
                        raise DataError(
                            f"{name}:{line}:{place}: byte {at} of the file is not UTF-8; use --encoding latin-1 (or "
                            "what it is), or --errors replace"
                        )
                    if "\0" in cell:
                        raise DataError(f"{name}:{line}:{place}: holds a NUL byte; remove it")
                last = (line, tuple(row))
        except csv.Error as error:
            if "field larger than" in str(error):
                raise TooLarge(
                    f"{name}:{last[0] + 1}: a cell has over {MOST_IN_A_CELL >> 20} MB; split it, or close its quote"
                ) from None
            raise DataError(f"{name}:{last[0] + 1}: {error}; mend the row") from None
        try:
            for _ in self._rows(strict=True):
                pass
        except csv.Error as error:
            if "unexpected end" in str(error):
                raise DataError(
                    f"{name}:{last[0]}:{len(last[1])}: opens a quote that is never closed; close it, or double it"
                ) from None

    def _first_bad_byte(self) -> int:
        before = 0
        for block in opened(self.path):
            for line in block.splitlines(keepends=True):
                try:
                    line.decode()
                except UnicodeDecodeError as error:
                    return before + error.start
                before += len(line)
        return before

    def _carefully(self, wanted: tuple[str, ...], given: int) -> Iterator[Chunk]:
        """The rows from number ``given`` on, by Python's csv."""
        import pyarrow as pa

        places = [self.names.index(name) for name in wanted]
        width, kept, start = len(self.names), [], given
        for number, (_, row) in enumerate(self._rows(errors="strict")):
            if number < given:
                continue
            if len(row) != width:
                self.skipped += 1
                if self.faults.ragged == "skip":
                    continue
                row = (row + [""] * width)[:width]
            kept.append(row)
            if len(kept) == CAREFUL_ROWS:
                yield Chunk(_batch(pa, kept, places, wanted), self, start)
                start, kept = start + len(kept), []
        if kept:
            yield Chunk(_batch(pa, kept, places, wanted), self, start)

    def place(self, row: int, column: str) -> str:
        field = self.names.index(column) + 1
        if self.path == STDIN:
            return f"-:{row + self.header_lines + 1}:{field}"
        good = (line for line, cells in self._rows() if self.faults.ragged != "skip" or len(cells) == len(self.names))
        line = next((line for number, line in enumerate(good) if number == row), row + 2)
        return f"{shown(self.path)}:{line}:{field}"


def sniffed(head: bytes) -> str:
    """The delimiter: the commonest in the header of comma, tab, semicolon and bar."""
    line = head.lstrip(b"\r\n").splitlines()[0]
    return max(",\t;|", key=lambda c: line.count(c.encode()))


def _header(path: str, head: bytes, delimiter: str) -> tuple[list[str], int, int]:
    """The names of the columns, and how many lines and bytes they take."""
    lines = io.StringIO(head.decode("utf-8", "surrogateescape"), newline="")
    reader = csv.reader(lines, delimiter=delimiter)
    names: list[str] = []
    while not names:
        names = next(reader)
    size = len(lines.getvalue()[: lines.tell()].encode("utf-8", "surrogateescape"))
    for place, name in enumerate(names, start=1):
        if any("\udc80" <= c <= "\udcff" for c in name):
            raise DataError(f"{shown(path)}:1:{place}: the column name is not UTF-8; use --encoding latin-1")
    return names, reader.line_num, size


def _whole_lines(blocks: Iterator[bytes]) -> bytes:
    """The beginning of the file, up to the end of a line if there is one."""
    head = next(blocks, b"")
    while head and b"\n" not in head and b"\r" not in head and len(head) < MOST_IN_A_CELL:
        block = next(blocks, None)
        if block is None:
            break
        head += block
    return head


def _blame_a_quote(name: str, line: int, row: list[str], width: int) -> None:
    """A row that swallowed lines and then has the wrong number of cells: a quote was left open."""
    for place, cell in enumerate(row, start=1):
        if "\n" in cell and place >= min(len(row), width):
            raise DataError(f"{name}:{line}:{place}: opens a quote that closes lines later; close it, or double it")


def _batch(pa: Any, rows: list[list[str]], places: list[int], wanted: tuple[str, ...]) -> Any:
    columns = [pa.array([row[j] for row in rows], pa.string()) for j in places]
    return pa.RecordBatch.from_arrays(columns, names=list(wanted))


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].rstrip(".")


class _Raw(io.RawIOBase):
    """Blocks of bytes as Python's own kind of file."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self.stream = Stream(blocks)

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        taken = self.stream.read(len(into))
        into[: len(taken)] = taken
        return len(taken)
