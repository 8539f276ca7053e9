"""Reader of documents: texts in a folder for each class, mboxes, maildirs and messages. Each text is a row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

import pyarrow as pa

from priory.errors import DataError, ModelTooLargeError
from priory.sources import byte_streams
from priory.sources.byte_streams import ProgressCallback, ReadOptions, format_path
from priory.sources.cell_parsing import MAX_CELL_BYTES, FileReader, RowChunk
from priory.text.normal_forms import Reader

TEXT_COLUMN, LABEL_COLUMN, PATH_COLUMN = "text", "label", "path"
DOCUMENTS_PER_CHUNK, CHARACTERS_PER_CHUNK = 2048, 1 << 22  # a chunk has at most about this much
MBOX_START = b"From "
MAIL_SUFFIXES = (".eml", ".mbox")
FIELD_PATTERN = re.compile(rb"([!-9;-~]+):[^\n]*(?:\n[ \t][^\n]*)*\n?")  # a header with its continuation lines
HEADERS_OF_TRANSIT = frozenset(  # which no ordinary text begins with
    b"return-path received delivered-to x-original-to message-id mime-version dkim-signature".split()
)
HEADERS_OF_MAIL = frozenset(b"from to subject date newsgroups".split())


class DocumentReader(FileReader):
    """Rows ``label, path, text``, one for each file, many for an mbox; without labels ``path, text``."""

    def __init__(
        self,
        root: str,
        files: list[tuple[str | None, Path]],
        kind: str,
        options: ReadOptions,
        report_progress: ProgressCallback,
    ) -> None:
        self.has_labels = all(label is not None for label, _ in files)
        labels = (LABEL_COLUMN,) if self.has_labels else ()
        self.names = (*labels, PATH_COLUMN, options.text_column or TEXT_COLUMN)
        self.path, self.files, self.kind, self.options = root, files, kind, options
        self.report_progress = report_progress
        self.flags: dict[str, int] = {}
        self.unreadable: list[str] = []

    @property
    def reader(self) -> Reader:
        """How the documents are read."""
        return self.options.reader if self.kind == "mail" else "text"

    def read_chunks(self, column_names: tuple[str, ...]) -> Iterator[RowChunk]:
        rows, start = self._read_rows(), 0
        while block := list(_take_chunk_rows(rows)):
            columns = {
                name: pa.array(cells, pa.string())
                for name, cells in zip(self.names, list(zip(*block, strict=True))[-len(self.names) :], strict=True)
            }
            yield RowChunk(
                pa.RecordBatch.from_arrays([columns[n] for n in column_names], names=list(column_names)), self, start
            )
            start += len(block)
        if not start:
            raise DataError(
                f"{format_path(self.path)}: contains no documents; give one folder for each class, or an mbox"
            )

    def _read_rows(self) -> Iterator[tuple[str, str, str]]:
        for label, file in self.files:
            path = format_path(file)
            try:
                for number, text in enumerate(self._read_texts(file)):
                    yield label or "", f"{path}#{number + 1}" if number else path, text
            except PermissionError:
                if not self.options.keep_going:
                    raise
                self.unreadable.append(path)

    def _read_texts(self, file: Path) -> Iterator[str]:
        if self.kind == "text":
            yield self._read_text_file(file)
            return
        if len(self.files) > 1 and file.stat().st_size == 0:
            yield ""
            return
        from priory.text.mail import read_mail  # slow to import, and needed for mail only
        from priory.text.mail_structure import split_mbox

        blocks = byte_streams.read_unpacked_blocks(str(file), self.report_progress)
        first = next(blocks, b"")
        blocks = chain([first], blocks)
        for message in split_mbox(blocks) if first.startswith(MBOX_START) else [_read_start(blocks)]:
            text, flags = read_mail(message, self.options.reader)
            for flag in flags:
                self.flags[flag] = self.flags.get(flag, 0) + 1
            yield text

    def _read_text_file(self, file: Path) -> str:
        if file.stat().st_size == 0:
            return ""
        raw = _read_start(byte_streams.read_utf8_blocks(str(file), self.options, self.report_progress))
        if len(raw) > MAX_CELL_BYTES:
            raise ModelTooLargeError(
                f"{format_path(file)}: has {len(raw):,} bytes or more; the limit is {MAX_CELL_BYTES:,}"
            )
        try:
            return raw.decode().replace("\0", " ")
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            is_message = not HEADERS_OF_MAIL.isdisjoint(_list_header_names(raw[:8192]))
            advice = "--format mail" if is_message else "--encoding latin-1 (or the right one), or --errors replace"
            raise DataError(f"{format_path(file)}:{line}: byte {error.start} is not UTF-8; use {advice}") from None

    def locate_cell(self, row: int, column: str) -> str:
        _, path, _ = next(islice(self._read_rows(), row, None))
        return path


def _take_chunk_rows(rows: Iterator[tuple[str, str, str]]) -> Iterator[tuple[str, str, str]]:
    size = 0
    for row in islice(rows, DOCUMENTS_PER_CHUNK):
        yield row
        size += len(row[-1])
        if size > CHARACTERS_PER_CHUNK:
            return


def _read_start(blocks: Iterator[bytes]) -> bytes:
    """Read a document, up to a block beyond the limit, so that a longer one is recognised."""
    start, size = [], 0
    for block in blocks:
        start.append(block)
        size += len(block)
        if size > MAX_CELL_BYTES:
            break
    return b"".join(start)


def is_mail(file: Path) -> bool:
    """Whether a file is mail: by its name, or because it begins with headers of which one is added in transit."""
    if file.suffix.lower() in MAIL_SUFFIXES:
        return True
    with file.open("rb") as opened_file:
        start = opened_file.read(8192)
    return start.startswith(MBOX_START) or not HEADERS_OF_TRANSIT.isdisjoint(_list_header_names(start))


def _list_header_names(start: bytes) -> list[bytes]:
    """The names of the headers that a text begins with."""
    names, position = [], 0
    start = start.replace(b"\r\n", b"\n")
    while field := FIELD_PATTERN.match(start, position):
        names.append(field[1].lower())
        position = field.end()
    return names


def is_maildir(folder: Path) -> bool:
    return (folder / "cur").is_dir() and (folder / "new").is_dir()


def list_files_by_class(root: Path, kind: str, has_labels: bool = True) -> list[tuple[str | None, Path]]:
    """The files in a folder, each with its class: the name of the subfolder, or of the mbox, that it is in.

    Without ``has_labels`` only subfolders are named after classes, as those that a model was trained on may be.
    """
    if is_maildir(root):
        return [(root.name if has_labels else None, file) for file in _list_maildir_files(root)]
    found: list[tuple[str | None, Path]] = []
    for entry in sorted(root.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            files = (
                _list_maildir_files(entry) if is_maildir(entry) else sorted(f for f in entry.rglob("*") if f.is_file())
            )
            found.extend((entry.name, file) for file in files if not file.name.startswith("."))
        elif kind == "mail" and entry.is_file():
            found.append((entry.stem if has_labels else None, entry))
    return found


def _list_maildir_files(folder: Path) -> list[Path]:
    return sorted(file for part in ("cur", "new") for file in (folder / part).iterdir() if file.is_file())
