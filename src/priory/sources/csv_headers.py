"""Parse the header of a CSV: delimiter and column names."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Literal

from priory.errors import DataError, ModelTooLargeError
from priory.sources.byte_streams import format_path
from priory.sources.chunk import MAX_CELL_BYTES

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
