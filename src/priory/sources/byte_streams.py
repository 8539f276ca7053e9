"""The bytes of a file or of standard input, decompressed and converted to UTF-8 a block at a time, read ahead.

Whether a file is compressed is decided by its first bytes, not by its name; how far it may expand is limited.
"""

from __future__ import annotations

import codecs
import io
import itertools
import lzma
import os
import queue
import re
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, TYPE_CHECKING, TypeVar
from weakref import finalize

from priory.errors import DataError, ModelTooLargeError, PrioryError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from priory.text.normal_forms import Reader


StreamItemT = TypeVar("StreamItemT")


def peek_first(items: Iterator[StreamItemT]) -> tuple[StreamItemT, Iterator[StreamItemT]]:
    """The first item, and an iterator over all items including the first."""
    for first in items:
        return first, itertools.chain([first], items)
    raise DataError("there are no rows to learn from; give labelled rows")


def read_ahead(items: Iterator[StreamItemT], depth: int = 4) -> Iterator[StreamItemT]:
    """Yield the same items, with the next ``depth`` computed in advance. Errors are raised in the consumer."""
    ready: queue.Queue[tuple[StreamItemT | None, BaseException | None, bool]] = queue.Queue(depth)
    stopped = threading.Event()

    def put_item(item: StreamItemT | None, error: BaseException | None, last: bool) -> None:
        while not stopped.is_set():
            try:
                return ready.put((item, error, last), timeout=0.1)
            except queue.Full:
                continue

    def run() -> None:
        try:
            for item in items:
                put_item(item, None, False)
                if stopped.is_set():
                    return
            put_item(None, None, True)
        except BaseException as error:
            put_item(None, error, True)

    reader = threading.Thread(target=run, daemon=True)
    reader.start()
    try:
        while True:
            item, error, last = ready.get()
            if error is not None:
                raise error
            if last:
                return
            yield item  # type: ignore[misc]  # only the end is None
    finally:
        stopped.set()
        reader.join(timeout=1.0)


MAX_KEPT_BYTES = 1 << 28


class RereadableStream:
    """A stream that can be read again, if it is short enough and there is room for a copy."""

    def __init__(self, source: IO[bytes]) -> None:
        self.source, self.size, self.lock = source, 0, Lock()
        self.copy: IO[bytes] | None = None
        with suppress(OSError):
            self.copy = TemporaryFile()  # noqa: SIM115 - closed with this object
            finalize(self, self.copy.close)

    def blocks(self, size: int) -> Iterator[bytes]:
        """The stream from the beginning: what was read before, then the rest."""
        position = 0
        while block := self._read_at(position, size):
            position += len(block)
            yield block

    def _read_at(self, position: int, size: int) -> bytes:
        with self.lock:  # Arrow may still be reading
            if position < self.size:
                if self.copy is None:
                    raise DataError("-: is too long to be read again; save it to a file")
                self.copy.seek(position)
                return self.copy.read(size)
            block = self.source.read(size)
            self.size += len(block)
            self._keep_block(block)
            return block

    def _keep_block(self, block: bytes) -> None:
        if self.copy is not None and self.size <= MAX_KEPT_BYTES:
            with suppress(OSError):
                self.copy.seek(0, os.SEEK_END)
                self.copy.write(block)
                self.copy.flush()
                return
        self.copy = None


_get_cached_stream = lru_cache(1)(RereadableStream)


def get_standard_input() -> RereadableStream:
    """The standard input of this process."""
    if sys.stdin is None or sys.stdin.closed:
        raise DataError("-: standard input is closed; give a file")
    return _get_cached_stream(sys.stdin.buffer)


READ_BLOCK_BYTES = 1 << 21  # Arrow keeps up to 32 blocks in memory
MAX_UNPACK_RATIO = 200  # decompressed bytes for each compressed one
MIN_UNPACK_LIMIT = 1 << 26  # decompressed bytes that are always allowed
STDIN_PATH = "-"

UNSUPPORTED_SIGNATURES = {  # first bytes of files that hold no table, by what they are
    b"PK\x03\x04": "a zip file; unpack it first",
    b"\x89PNG": "a PNG image; give a table or texts",
    b"\xff\xd8\xff": "a JPEG image; give a table or texts",
    b"GIF8": "a GIF image; give a table or texts",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an old Excel or Word file; save it as CSV or as plain text",
    b"{\\rtf": "an RTF document; save it as plain text",
    b"\x89HDF": "an HDF5 file; export a table as CSV or Parquet",
    b"\x93NUMPY": "a NumPy array; save it as CSV or Parquet",
    b"Obj\x01": "an Avro file; export it as CSV or Parquet",
    b"ORC": "an ORC file; export it as CSV or Parquet",
    b"7z\xbc\xaf\x27\x1c": "a 7z file; unpack it first",
    b"\x7fELF": "a program; give a table or texts",
    b"%PDF": "a PDF file; export it as CSV",
    b"SQLite format 3\x00": "an SQLite database; read it as one",
    b"\x80\x04\x95": "a pickle; priory never loads pickles",
    b"\x80\x05\x95": "a pickle; priory never loads pickles",
}
OFFICE_PARTS = {  # names inside of zip files that are documents of an office program
    b"xl/workbook": "an Excel workbook; read it as one, or save the sheet as CSV",
    b"word/document": "a Word document; save it as plain text",
    b"opendocument.spreadsheet": "a spreadsheet; save the sheet as CSV",
    b"opendocument.text": "a text document; save it as plain text",
}
BYTE_ORDER_MARKS = {  # the longest first
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}

ProgressCallback = Callable[[int], None]  # called with the number of bytes of each block that was read


def ignore_progress(_: int) -> None:
    pass


@dataclass(frozen=True)
class ReadOptions:
    """How files are read. Malformed rows are errors, unless an option repairs or skips them; repairs are counted.

    Parameters
    ----------
    format : str, optional
        The format of the files, such as "jsonl" or "mail"; by default detected from the first bytes, the name or the
        content.
    delimiter : str, optional
        The character between the cells of a CSV; by default detected in the header.
    encoding : str
        The encoding of text, by default utf-8; "auto" uses the byte-order mark.
    errors : "strict" or "replace"
        Bytes that are not valid text: an error (strict, the default), or replaced by U+FFFD.
    ragged : "error", "pad" or "skip"
        Rows of a CSV with more or fewer cells than the header: an error (the default), padded or cut, or skipped.
    max_bad_lines : int
        How many invalid lines of JSON are skipped; one more is an error.
    quotes : bool
        Whether a quotation mark in a CSV opens a quoted cell; otherwise it is an ordinary character.
    keep_going : bool
        Skip documents that may not be opened; otherwise they are errors.
    text_column : str, optional
        Read files that are not tables as documents, each of which is one row with its text in this column. A file is a
        table if its first bytes or its name say so, or if its header has this column. By default only folders with one
        folder for each class, and mail, are documents.
    has_header : bool
        Whether the first line of a CSV has the names of the columns; otherwise they are called c1, c2 and so on.
    table : str, optional
        Which table of a database, or which sheet of a workbook; needed if there are several.
    reader : "mail", "mail_body" or "text"
        How mail is read: with all its headers, with the subject only, or as plain text; a model remembers how.
    """

    format: str | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"
    errors: str = "strict"
    ragged: str = "error"
    max_bad_lines: int = 0
    quotes: bool = True
    keep_going: bool = False
    text_column: str | None = None
    has_header: bool = True
    table: str | None = None
    reader: Reader = "mail"

    def __post_init__(self) -> None:
        if self.encoding != "auto":
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise DataError(f"encoding {self.encoding!r} is unknown; try utf-8, utf-16 or latin-1") from None


def read_magic_bytes(path: str) -> bytes:
    """The first 16 bytes of a file; empty for standard input, which is not consumed."""
    if path == STDIN_PATH:
        return b""
    with open(path, "rb") as file:
        return file.read(16)


def can_reread(path: str) -> bool:
    """Whether the file can be read again from the beginning."""
    return path != STDIN_PATH or get_standard_input().copy is not None


def read_unpacked_blocks(path: str, report_progress: ProgressCallback = ignore_progress) -> Iterator[bytes]:
    """The bytes of a file, decompressed if it is compressed with gzip, zstd, bzip2 or xz."""
    blocks = read_packed_blocks(path, report_progress)
    first = next(blocks, b"")
    if not first:
        raise DataError(f"{format_path(path)}: is empty; give a file with rows")
    whole = itertools.chain([first], blocks)
    unpack = next((unpack for start, unpack in DECOMPRESSORS.items() if first.startswith(start)), None)
    yield from whole if unpack is None else _unpack(path, unpack, whole)


def read_packed_blocks(path: str, report_progress: ProgressCallback = ignore_progress) -> Iterator[bytes]:
    """The bytes of a file, without decompressing them."""
    with nullcontext() if path == STDIN_PATH else open(path, "rb") as file:
        read = get_standard_input().blocks if file is None else lambda size: iter(partial(file.read, size), b"")
        for block in read(READ_BLOCK_BYTES):
            report_progress(len(block))
            yield block


def _gunzip(source: BlockStream) -> Iterator[bytes]:
    """Decompress all members of a gzip file."""
    member = zlib.decompressobj(31)
    while block := source.read(READ_BLOCK_BYTES):
        if member.eof:
            block = block.lstrip(b"\0")  # padding, as tapes have it
            if not block:
                continue
            member = zlib.decompressobj(31)
        unpacked = member.decompress(block, READ_BLOCK_BYTES)
        source.unread(member.unconsumed_tail or member.unused_data)
        yield unpacked
    while not member.eof:  # output that the decompressor still buffers
        rest = member.decompress(b"", READ_BLOCK_BYTES)
        if not rest:
            raise EOFError
        yield rest


def _decompress_with_arrow(codec: str, source: BlockStream) -> Iterator[bytes]:
    import pyarrow as pa

    with pa.CompressedInputStream(pa.PythonFile(source, "r"), codec) as unpacked:
        yield from iter(partial(unpacked.read, READ_BLOCK_BYTES), b"")


def _decompress_xz(source: BlockStream) -> Iterator[bytes]:
    with lzma.LZMAFile(source) as unpacked:  # type: ignore[arg-type]  # it only reads
        yield from iter(partial(unpacked.read, READ_BLOCK_BYTES), b"")


DECOMPRESSORS: dict[bytes, Callable[[BlockStream], Iterator[bytes]]] = {  # by first bytes
    b"\x1f\x8b": _gunzip,
    b"\x28\xb5\x2f\xfd": partial(_decompress_with_arrow, "zstd"),
    b"BZh": partial(_decompress_with_arrow, "bz2"),
    b"\xfd7zXZ\x00": _decompress_xz,
}
NO_HEADER = re.compile("incorrect header check|no magic header")  # of a second stream in the file


def _unpack(
    path: str, decompress: Callable[[BlockStream], Iterator[bytes]], blocks: Iterator[bytes]
) -> Iterator[bytes]:
    """Yield decompressed blocks; raise an error at the size of a decompression bomb."""
    source, total = BlockStream(blocks), 0
    try:
        for block in decompress(source):
            total += len(block)
            if total > max(MIN_UNPACK_LIMIT, MAX_UNPACK_RATIO * source.bytes_read):
                raise ModelTooLargeError(
                    f"{format_path(path)}: decompresses to more than {MAX_UNPACK_RATIO} times its size; "
                    "decompress it yourself if you trust it"
                )
            if block:
                yield block
    except (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, PrioryError) or getattr(error, "errno", None):  # of the file itself
            raise
        where, reason = f"byte {source.bytes_read}", str(error)
        problem = f"is damaged before {where} ({reason}); compress it again"
        if isinstance(error, EOFError) or reason.startswith("Truncated"):
            problem = f"ends early at {where}; copy it again"
        elif NO_HEADER.search(reason):
            problem = f"has other data after the compressed data, before {where}; remove it"
        raise DataError(f"{format_path(path)}: {problem}") from None


def limit_lines(path: str, blocks: Iterator[bytes], limit: int, line: int = 1) -> Iterator[bytes]:
    """Yield the blocks; raise an error as soon as a line has more bytes than the limit.

    ``line`` is the number of the first line in the file.
    """
    length = 0  # of the line that the next block continues
    for block in blocks:
        last = max(block.rfind(b"\n"), block.rfind(b"\r"))
        line += block.count(b"\n")
        length = len(block) - 1 - last if last >= 0 else length + len(block)
        if length > limit:
            raise ModelTooLargeError(
                f"{format_path(path)}:{line}: has more than {limit >> 20} MB in one line; split it"
            )
        yield block


def read_utf8_blocks(
    path: str, options: ReadOptions, report_progress: ProgressCallback = ignore_progress
) -> Iterator[bytes]:
    """The text of a file in UTF-8 without a byte-order mark; input declared as UTF-8 is not validated here."""
    blocks = read_unpacked_blocks(path, report_progress)
    first = next(blocks, b"")
    if unsupported := _describe_unsupported(first):
        raise DataError(f"{format_path(path)}: is {unsupported}")
    if first.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        raise DataError(f"{format_path(path)}: is compressed twice; decompress it once")
    mark = next((encoding for mark, encoding in BYTE_ORDER_MARKS.items() if first.startswith(mark)), None)
    if mark == "utf-8":
        first = first.removeprefix(codecs.BOM_UTF8)
        mark = None
    encoding = (mark or "utf-8") if options.encoding == "auto" else options.encoding
    is_utf8 = codecs.lookup(encoding).name == "utf-8"
    if mark and is_utf8:
        raise DataError(f"{format_path(path)}: looks like {mark.upper()}; use --encoding {mark}")
    if options.errors == "strict" and is_utf8:
        yield from itertools.chain([first], blocks)
        return
    decoder = codecs.getincrementaldecoder(encoding)(options.errors)
    read = 0
    try:
        for block in itertools.chain([first], blocks):
            yield decoder.decode(block).encode()
            read += len(block)
        yield decoder.decode(b"", final=True).encode()
    except UnicodeError as error:
        where = read + getattr(error, "start", 0)
        raise DataError(
            f"{format_path(path)}: byte {where} is not {encoding}; use the right --encoding, or --errors replace"
        ) from None


def _describe_unsupported(first: bytes) -> str | None:
    """Name an unsupported format by its first block, with a remedy; None for a table or a text."""
    if first.startswith(b"PK\x03\x04"):
        office = (what for part, what in OFFICE_PARTS.items() if part in first)
        return next(office, UNSUPPORTED_SIGNATURES[b"PK\x03\x04"])
    return next((what for start, what in UNSUPPORTED_SIGNATURES.items() if first.startswith(start)), None)


class BlockStream(io.RawIOBase):
    """File object over blocks of bytes, for Arrow, decompressors and Python's io module."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self.blocks, self.rest, self.bytes_read = blocks, b"", 0

    def read(self, size: int = -1) -> bytes:
        """Read up to ``size`` bytes of one block, without copying a whole block."""
        if size < 0:
            return self.readall()
        while not self.rest:
            block = next(self.blocks, None)
            if block is None:
                return b""
            self.rest = block
        taken, self.rest = self.rest[:size], self.rest[size:]
        self.bytes_read += len(taken)
        return taken

    def unread(self, block: bytes) -> None:
        """Put back what was read last."""
        self.rest, self.bytes_read = block + self.rest, self.bytes_read - len(block)

    def readable(self) -> bool:
        return True

    def readinto(self, into: WriteableBuffer) -> int:
        view = memoryview(into).cast("B")
        block = self.read(len(view))
        view[: len(block)] = block
        return len(block)


def format_path(path: str | os.PathLike[str]) -> str:
    """Format a path for an error message, with unprintable characters escaped."""
    text = os.fspath(path)
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogateescape").decode() for c in text)
