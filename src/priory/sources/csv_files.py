"""CSV and TSV. Arrow reads; where it stumbles, a careful reader says what is wrong and where, or goes on by itself."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Any

from priory.errors import DataError, TooLarge
from priory.sources.byte_streams import BLOCK, Decoding, Stream, Told, opened, repeatable, shown, untold, utf8
from priory.sources.chunk import MOST_IN_A_CELL, STRICT, Chunk, Faults, File, checked_names

MOST_IN_A_TAIL = 4096
CAREFUL_ROWS = 4096  # at a time


class Separated(File):
    """A table of text: a header, and rows of as many cells."""

    def __init__(
        self, path: str, delimiter: str | None, how: Decoding, faults: Faults = STRICT, told: Told = untold
    ) -> None:
        self.path, self.how, self.faults, self.told = path, how, faults, told
        self.skipped, self.has_nul, self.tail = 0, False, b""
        self.failure: Exception | None = None
        self.blocks = self._checked(utf8(path, opened(path, told), how))
        head = _whole_lines(self.blocks)
        if not head.strip():
            raise DataError(f"{shown(path)}: is empty; give a file with a header and rows")
        self.delimiter = delimiter or sniffed(head)
        names, self.header_lines, size = _header(path, head, self.delimiter, self._quoting)
        self.names = checked_names(shown(path), names)
        self.body = head[size:]

    # -- the quick way -------------------------------------------------------------------------------------------

    def chunks(self, wanted: tuple[str, ...]) -> Iterator[Chunk]:
        if self.faults.ragged != "error":
            yield from self._carefully(wanted, 0)
            return
        import pyarrow as pa

        given, end, doubtful = 0, "", False
        try:
            for batch, last in self._arrow(wanted):
                if self.has_nul:
                    raise pa.ArrowInvalid("a NUL byte")
                if batch.num_rows:
                    doubtful = doubtful or self._swallowed_rows(batch)
                    yield Chunk(batch, self, given)
                    given, end = given + batch.num_rows, last[-1].as_py()
            self._raise_failure()
        except pa.ArrowInvalid as error:
            self._raise_failure()
            if not repeatable(self.path):
                raise DataError(f"-: {_first_line(error)} after row {given}; save it to a file to see where") from None
            self.check()
            yield from self._carefully(wanted, given)
            return
        if (doubtful or self._may_be_open(end)) and repeatable(self.path):
            self.check()
        if not given:
            raise DataError(f"{shown(self.path)}: has a header but no rows; give a file with rows")

    def _arrow(self, wanted: tuple[str, ...]) -> Iterator[tuple[Any, Any]]:
        """All cells as text, as they stand; and, in any case, those of the last column."""
        import pyarrow as pa
        from pyarrow import csv as arrow

        numbered = [f"{j}" for j in range(len(self.names))]  # blank names are not unique
        places, last = [self.names.index(name) for name in wanted], len(self.names) - 1
        reader = arrow.open_csv(
            Stream(self._quietly(self._bodies())),
            arrow.ReadOptions(use_threads=False, block_size=BLOCK, column_names=numbered),
            arrow.ParseOptions(
                delimiter=self.delimiter,
                quote_char='"' if self.faults.quotes else False,
                newlines_in_values=self.faults.quotes,
            ),
            arrow.ConvertOptions(
                column_types=dict.fromkeys(numbered, pa.string()),
                include_columns=[*(numbered[j] for j in places), *([] if last in places else [numbered[last]])],
                strings_can_be_null=False,
            ),
        )
        for batch in reader:
            yield (
                pa.RecordBatch.from_arrays(batch.columns[: len(wanted)], names=list(wanted)),
                batch.column(numbered[last]),
            )

    def _quietly(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """What goes wrong in reading ends the blocks: raised in one of Arrow's own threads it may leave it waiting."""
        try:
            yield from blocks
        except Exception as error:
            self.failure = error

    def _raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _bodies(self) -> Iterator[bytes]:
        body, self.body = self.body, b""
        yield body or b"\n"  # Arrow takes no bytes at all for a mistake
        yield from self.blocks

    def _checked(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        for block in blocks:
            self.has_nul = self.has_nul or b"\0" in block
            self.tail = self.tail[-MOST_IN_A_TAIL:] + block[-MOST_IN_A_TAIL:]
            yield block

    def _may_be_open(self, cell: str) -> bool:
        """Whether the file may have ended inside of a quoted cell: Arrow does not say."""
        opened_with = b'"' + cell.replace('"', '""').encode()
        return "\n" in cell or "\r" in cell or self.tail.rstrip(b"\r\n").endswith(opened_with[-MOST_IN_A_TAIL:])

    def _swallowed_rows(self, batch: Any) -> bool:
        """Whether a cell has lines that look like rows: a quote may have been left open."""
        from pyarrow import compute

        memory = [column.buffers()[2] for column in batch.columns]
        if not any(b"\n" in (text := m.to_pybytes()) or b"\r" in text for m in memory if m is not None):
            return False
        row = rf"[\r\n][^\r\n]*{re.escape(self.delimiter)}"
        return any(compute.any(compute.match_substring_regex(column, row)).as_py() for column in batch.columns)

    # -- the careful way -----------------------------------------------------------------------------------------

    def _reader(self, blocks: Iterator[bytes], strict: bool = False, first: list[str] | None = None) -> Any:
        """Python's reader of some bytes; ``first`` is given the next line, if it was emptied before."""
        csv.field_size_limit(MOST_IN_A_CELL + 1)
        text = io.TextIOWrapper(_Raw(blocks), "utf-8", "surrogateescape", newline="")  # type: ignore[type-var]  # reads, and no more

        def lines(kept: list[str]) -> Iterator[str]:
            for line in text:
                if not kept:
                    kept.append(line)
                yield line

        given = text if first is None else lines(first)
        return csv.reader(given, delimiter=self.delimiter, strict=strict, quoting=self._quoting)

    def _again(self) -> Iterator[bytes]:
        return utf8(self.path, opened(self.path), self.how)

    @property
    def _quoting(self) -> Any:
        return csv.QUOTE_MINIMAL if self.faults.quotes else csv.QUOTE_NONE

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Every row after the header with the number of its first line; blank lines are none."""
        rows = self._numbered(self._reader(self._again()), 1)
        next(rows)
        return rows

    def _numbered(self, reader: Any, line: int) -> Iterator[tuple[int, list[str]]]:
        before = line - 1
        try:
            for row in reader:
                if row:
                    yield line, row
                line = before + reader.line_num + 1
        except csv.Error as error:
            self._check_quotes(error, line, line, "")

    def check(self) -> None:
        """Read everything slowly and raise what is wrong, with its place; nothing if nothing is."""
        first: list[str] = []
        reader, header = self._reader(self._again(), True, first), True
        while True:
            line = reader.line_num + 1
            first.clear()
            try:
                row = next(reader, None)
            except csv.Error as error:
                self._check_quotes(error, line, reader.line_num, first[0])
                row = next(csv.reader(first, delimiter=self.delimiter))
            if row is None:
                return
            if row and not header:
                self._check_row(line, row)
            header = header and not row

    def _check_quotes(self, error: csv.Error, line: int, last: int, first: str) -> None:
        """A quote that is closed in the line it was opened in does no harm, whatever follows it."""
        name = shown(self.path)
        if "field larger than" in str(error):
            raise TooLarge(f"{name}:{line}: a cell has over {MOST_IN_A_CELL >> 20} MB; split it, or close its quote")
        column = len(next(csv.reader([first], delimiter=self.delimiter)))
        remedy = "close it, double it, or use --no-quotes if they mean nothing"
        if "unexpected end" in str(error):
            raise DataError(f"{name}:{line}:{column}: opens a quote that is never closed; {remedy}")
        if last > line:
            raise DataError(f"{name}:{line}:{column}: opens a quote that is closed in line {last}; {remedy}")

    def _check_row(self, line: int, row: list[str]) -> None:
        name, width = shown(self.path), len(self.names)
        if len(row) != width and self.faults.ragged == "error":
            many = "field" if len(row) == 1 else "fields"
            raise DataError(
                f"{name}:{line}:{min(len(row), width + 1)}: has {len(row)} {many}, header has {width}; mend it, or "
                "use --ragged pad or --ragged skip"
            )
        for place, cell in enumerate(row, start=1):
            if "\0" in cell:
                raise DataError(f"{name}:{line}:{place}: holds a NUL byte; remove it")
            if not cell.isascii() and any("\udc80" <= c <= "\udcff" for c in cell):
                raise DataError(
                    f"{name}:{line}:{place}: byte {self._first_bad_byte()} of the file is not UTF-8; use "
                    "--encoding latin-1 (or what it is), or --errors replace"
                )

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
        width, kept, start, size = len(self.names), [], given, 0
        from_here = not repeatable(self.path)
        rows = self._numbered(self._reader(self._bodies()), self.header_lines + 1) if from_here else self._rows()
        for number, (line, row) in enumerate(rows):
            if number < given:
                continue
            self._check_row(line, row)
            if len(row) != width:
                self.skipped += 1
                if self.faults.ragged == "skip":
                    continue
                row = (row + [""] * width)[:width]
            kept.append(row)
            size += sum(map(len, row))
            if len(kept) == CAREFUL_ROWS or size > BLOCK:
                yield Chunk(_batch(pa, kept, places, wanted), self, start)
                start, kept, size = start + len(kept), [], 0
        if kept:
            yield Chunk(_batch(pa, kept, places, wanted), self, start)

    def place(self, row: int, column: str) -> str:
        field = self.names.index(column) + 1
        if not repeatable(self.path):
            return f"-:{row + self.header_lines + 1}:{field}"
        good = (line for line, cells in self._rows() if self.faults.ragged != "skip" or len(cells) == len(self.names))
        line = next((line for number, line in enumerate(good) if number == row), row + 2)
        return f"{shown(self.path)}:{line}:{field}"


def sniffed(head: bytes) -> str:
    """The delimiter: the commonest in the header of comma, tab, semicolon and bar."""
    line = head.lstrip(b"\r\n").splitlines()[0]
    return max(",\t;|", key=lambda c: line.count(c.encode()))


def _header(path: str, head: bytes, delimiter: str, quoting: Any) -> tuple[list[str], int, int]:
    """The names of the columns, and how many lines and bytes they take."""
    lines = io.StringIO(head.decode("utf-8", "surrogateescape"), newline="")
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting)
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
