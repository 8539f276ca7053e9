"""CSV and TSV files with their headers, read by Arrow; a slower reader names the place where Arrow fails."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
from pyarrow import compute
from pyarrow import csv as arrow

from priory.errors import DataError, ModelTooLargeError
from priory.sources import byte_streams
from priory.sources.byte_streams import BlockStream, ProgressCallback, ReadOptions, format_path
from priory.sources.cell_parsing import MAX_CELL_BYTES, MAX_LINE_BYTES, FileReader, RowChunk, check_column_names

if TYPE_CHECKING:
    from _csv import Reader


MAX_CSV_HEADER_BYTES = 8 << 20
MAX_NAME_LENGTH = 10_000  # characters of the name of a column


def sniff_delimiter(head: bytes) -> str:
    """Detect the delimiter: the most frequent of comma, tab, semicolon and bar in the header."""
    line = head.lstrip(b"\r\n").splitlines()[0]
    return max(",\t;|", key=lambda c: line.count(c.encode()))


def parse_csv_header(path: str, head: bytes, delimiter: str, quoting: Literal[0, 3]) -> tuple[list[str], int, int]:
    """Return the column names, and the number of lines and bytes of the header."""
    csv.field_size_limit(MAX_CELL_BYTES + 1)
    lines = io.StringIO(head.decode("utf-8", "surrogateescape"), newline="")
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting)
    names: list[str] = []
    while not names:
        names = next(reader)
    size = len(lines.getvalue()[: lines.tell()].encode("utf-8", "surrogateescape"))
    for number, name in enumerate(names, start=1):
        if len(name) > MAX_NAME_LENGTH:
            raise DataError(
                f"{format_path(path)}:1:{number}: the column name has {len(name):,} characters; "
                "begin the file with a header of short names"
            )
        if any("\udc80" <= c <= "\udcff" for c in name):
            raise DataError(f"{format_path(path)}:1:{number}: the column name is not UTF-8; use --encoding latin-1")
    return names, reader.line_num, size


def read_whole_lines(path: str, blocks: Iterator[bytes]) -> bytes:
    """Read the beginning of the file, at least one whole line."""
    head = next(blocks, b"")
    while head and b"\n" not in head and b"\r" not in head:
        if len(head) > MAX_CSV_HEADER_BYTES:
            raise ModelTooLargeError(
                f"{format_path(path)}:1: the first line has more than {MAX_CSV_HEADER_BYTES >> 20} MB; "
                "begin the file with a header"
            )
        block = next(blocks, None)
        if block is None:
            break
        head += block
    return head


MAX_TAIL_BYTES = 4096  # of the end of the file
CSV_CHUNK_ROWS = 4096


class DelimitedReader(FileReader):
    """A table as text: a header, and rows with as many cells; without a header the columns are c1, c2 and so on."""

    def __init__(self, path: str, options: ReadOptions, report_progress: ProgressCallback) -> None:
        self.path, self.options, self.report_progress = path, options, report_progress
        self.skipped, self.has_nul, self.tail = 0, False, b""
        self.failure: Exception | None = None
        self.blocks = self._watch_blocks(byte_streams.read_utf8_blocks(path, options, report_progress))
        head = read_whole_lines(path, self.blocks)
        if not head.strip():
            raise DataError(f"{format_path(path)}: is empty; give a file with a header and rows")
        self.delimiter = options.delimiter or sniff_delimiter(head)
        names, self.header_lines, size = parse_csv_header(path, head, self.delimiter, self._quoting)
        if not options.has_header:
            names, self.header_lines, size = [f"c{j + 1}" for j in range(len(names))], 0, 0
        self.names = check_column_names(format_path(path), names, ", or use --no-header if this row is data")
        self.body = head[size:]

    # -- fast: Arrow --------------------------------------------------------------------------------------------

    def read_chunks(self, column_names: tuple[str, ...]) -> Iterator[RowChunk]:
        if self.options.ragged != "error":
            yield from self._read_carefully(column_names, 0)
            return
        n_rows, last_cell, doubtful = 0, "", False
        try:
            for batch, last in self._read_with_arrow(column_names):
                if self.has_nul:
                    raise pa.ArrowInvalid("a NUL byte")
                if batch.num_rows:
                    doubtful = doubtful or self._has_swallowed_rows(batch)
                    yield RowChunk(batch, self, n_rows)
                    n_rows, last_cell = n_rows + batch.num_rows, last[-1].as_py()
            self._raise_failure()
        except pa.ArrowInvalid as error:
            self._raise_failure()
            if not byte_streams.can_reread(self.path):
                raise DataError(
                    f"-: {str(error).splitlines()[0].rstrip('.')} after row {n_rows}; save it to a file to see where"
                ) from None
            self.check_file()
            yield from self._read_carefully(column_names, n_rows)
            return
        if (doubtful or self._may_end_in_quote(last_cell)) and byte_streams.can_reread(self.path):
            self.check_file()
        if not n_rows:
            raise DataError(f"{format_path(self.path)}: has a header but no rows; give a file with rows")

    def _read_with_arrow(self, column_names: tuple[str, ...]) -> Iterator[tuple[pa.RecordBatch, pa.Array]]:
        """Pairs of a batch with the named columns as text, and the last column of the file."""
        numbered = [f"{j}" for j in range(len(self.names))]  # blank names are not unique
        positions, last = [self.names.index(name) for name in column_names], len(self.names) - 1
        reader = arrow.open_csv(
            BlockStream(self._catch_failure(self._read_body())),
            arrow.ReadOptions(use_threads=False, block_size=byte_streams.READ_BLOCK_BYTES, column_names=numbered),
            arrow.ParseOptions(
                delimiter=self.delimiter,
                quote_char='"' if self.options.quotes else False,
                newlines_in_values=self.options.quotes,
            ),
            arrow.ConvertOptions(
                column_types=dict.fromkeys(numbered, pa.string()),
                include_columns=[*(numbered[j] for j in positions), *([] if last in positions else [numbered[last]])],
                strings_can_be_null=False,
            ),
        )
        for batch in reader:
            yield (
                pa.RecordBatch.from_arrays(batch.columns[: len(column_names)], names=list(column_names)),
                batch.column(numbered[last]),
            )

    def _catch_failure(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield blocks up to the first error, which is kept: raised in a thread of Arrow it could block that thread."""
        try:
            yield from blocks
        except Exception as error:
            self.failure = error

    def _raise_failure(self) -> None:
        if self.failure is not None:
            raise self.failure

    def _read_body(self) -> Iterator[bytes]:
        body, self.body = self.body, b""
        yield body or b"\n"  # Arrow takes an empty file for an error
        yield from self.blocks

    def _watch_blocks(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        for block in blocks:
            self.has_nul = self.has_nul or b"\0" in block
            self.tail = self.tail[-MAX_TAIL_BYTES:] + block[-MAX_TAIL_BYTES:]
            yield block

    def _may_end_in_quote(self, cell: str) -> bool:
        """Whether the file may end inside a quoted cell, which Arrow does not report."""
        opened_with = b'"' + cell.replace('"', '""').encode()
        return "\n" in cell or "\r" in cell or self.tail.rstrip(b"\r\n").endswith(opened_with[-MAX_TAIL_BYTES:])

    def _has_swallowed_rows(self, batch: pa.RecordBatch) -> bool:
        """Whether a cell contains lines that look like rows, as after a quote that was not closed."""
        memory = [column.buffers()[2] for column in batch.columns]
        if not any(b"\n" in (text := m.to_pybytes()) or b"\r" in text for m in memory if m is not None):
            return False
        row = rf"[\r\n][^\r\n]*{re.escape(self.delimiter)}"
        return any(compute.any(compute.match_substring_regex(column, row)).as_py() for column in batch.columns)

    # -- slow: Python's csv -------------------------------------------------------------------------------------------

    def _open_csv_reader(
        self, blocks: Iterator[bytes], strict: bool = False, first: list[str] | None = None, line: int = 1
    ) -> Reader:
        """Python's csv reader of the bytes, of which ``line`` is the first line in the file.

        Whenever ``first`` is empty, the next line read is appended to it.
        """
        csv.field_size_limit(MAX_CELL_BYTES + 1)
        blocks = byte_streams.limit_lines(self.path, blocks, MAX_LINE_BYTES, line)  # Arrow has a limit of its own
        text = io.TextIOWrapper(BlockStream(blocks), "utf-8", "surrogateescape", newline="")  # type: ignore[type-var]  # it only reads

        def keep_lines(kept: list[str]) -> Iterator[str]:
            for line in text:
                if not kept:
                    kept.append(line)
                yield line

        lines = text if first is None else keep_lines(first)
        return csv.reader(lines, delimiter=self.delimiter, strict=strict, quoting=self._quoting)

    def _reopen_blocks(self) -> Iterator[bytes]:
        return byte_streams.read_utf8_blocks(self.path, self.options)

    @property
    def _quoting(self) -> Literal[0, 3]:
        return csv.QUOTE_MINIMAL if self.options.quotes else csv.QUOTE_NONE

    def _read_numbered_rows(self) -> Iterator[tuple[int, list[str]]]:
        """Pairs of the number of its first line and each row after the header; blank lines are skipped."""
        rows = self._number_rows(self._open_csv_reader(self._reopen_blocks()), 1)
        if self.options.has_header:
            next(rows)
        return rows

    def _number_rows(self, reader: Reader, line: int) -> Iterator[tuple[int, list[str]]]:
        before = line - 1
        try:
            for row in reader:
                if row:
                    yield line, row
                line = before + reader.line_num + 1
        except csv.Error as error:
            self._check_quotes(error, line, line, "")

    def check_file(self) -> None:
        """Read the whole file slowly and raise the first error, with its place, if there is one."""
        first: list[str] = []
        reader, header = self._open_csv_reader(self._reopen_blocks(), True, first), self.options.has_header
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
        """Raise an error if a cell is too large or a quote spans lines; other irregular quotes are harmless."""
        name = format_path(self.path)
        if "field larger than" in str(error):
            raise ModelTooLargeError(
                f"{name}:{line}: a cell is larger than {MAX_CELL_BYTES >> 20} MB; split it, or close its quote"
            )
        column = len(next(csv.reader([first], delimiter=self.delimiter)))
        remedy = "close it, double it, or use --no-quotes if quotes have no meaning"
        if "unexpected end" in str(error):
            raise DataError(f"{name}:{line}:{column}: opens a quote that is never closed; {remedy}")
        if last > line:
            raise DataError(f"{name}:{line}:{column}: opens a quote that is only closed in line {last}; {remedy}")

    def _check_row(self, line: int, row: list[str]) -> None:
        name, width = format_path(self.path), len(self.names)
        if len(row) != width and self.options.ragged == "error":
            fields = "1 field" if len(row) == 1 else f"{len(row)} fields"
            first = "header" if self.options.has_header else "first row"
            raise DataError(
                f"{name}:{line}:{min(len(row), width + 1)}: has {fields}, the {first} has {width}; correct it, or "
                "use --ragged pad or --ragged skip"
            )
        for place, cell in enumerate(row, start=1):
            if "\0" in cell:
                raise DataError(f"{name}:{line}:{place}: contains a NUL byte; remove it")
            if not cell.isascii() and any("\udc80" <= c <= "\udcff" for c in cell):
                raise DataError(
                    f"{name}:{line}:{place}: byte {self._find_bad_byte()} of the file is not UTF-8; use "
                    "--encoding latin-1 (or the right one), or --errors replace"
                )

    def _find_bad_byte(self) -> int:
        before = 0
        for block in byte_streams.read_unpacked_blocks(self.path):
            for line in block.splitlines(keepends=True):
                try:
                    line.decode()
                except UnicodeDecodeError as error:
                    return before + error.start
                before += len(line)
        return before

    def _read_carefully(self, column_names: tuple[str, ...], first_row: int) -> Iterator[RowChunk]:
        """Read the rows from number ``first_row`` on with Python's csv."""
        positions = [self.names.index(name) for name in column_names]
        width, start, size = len(self.names), first_row, 0
        kept: list[list[str]] = []
        if byte_streams.can_reread(self.path):
            rows = self._read_numbered_rows()
        else:
            line = self.header_lines + 1
            rows = self._number_rows(self._open_csv_reader(self._read_body(), line=line), line)
        for number, (line, row) in enumerate(rows):
            if number < first_row:
                continue
            self._check_row(line, row)
            if len(row) != width:
                self.skipped += 1
                if self.options.ragged == "skip":
                    continue
                row = (row + [""] * width)[:width]
            kept.append(row)
            size += sum(map(len, row))
            if len(kept) == CSV_CHUNK_ROWS or size > byte_streams.READ_BLOCK_BYTES:
                yield RowChunk(_build_batch(kept, positions, column_names), self, start)
                start, kept, size = start + len(kept), [], 0
        if kept:
            yield RowChunk(_build_batch(kept, positions, column_names), self, start)

    def suggest_header(self, name: str) -> str:
        if len(self.names) == 1 and name in self.names[0].split():
            return "; use --delimiter ' '"
        lines = self.body[:MAX_TAIL_BYTES].decode("utf-8", "replace").splitlines()
        for number, line in enumerate(lines, self.header_lines + 1):
            if name in (cell.strip(' "') for cell in re.split(r"[,;|\t]", line)):
                return f"; line {number} has it: remove the lines above it"
        return super().suggest_header(name)

    def locate_cell(self, row: int, column: str) -> str:
        field = self.names.index(column) + 1
        if not byte_streams.can_reread(self.path):
            return f"-:{row + self.header_lines + 1}:{field}"
        good = (
            line
            for line, cells in self._read_numbered_rows()
            if self.options.ragged != "skip" or len(cells) == len(self.names)
        )
        line = next((line for number, line in enumerate(good) if number == row), row + 1 + self.options.has_header)
        return f"{format_path(self.path)}:{line}:{field}"


def _build_batch(rows: list[list[str]], positions: list[int], column_names: tuple[str, ...]) -> pa.RecordBatch:
    columns = [pa.array([row[j] for row in rows], pa.string()) for j in positions]
    return pa.RecordBatch.from_arrays(columns, names=list(column_names))
