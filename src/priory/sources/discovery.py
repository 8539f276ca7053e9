"""Find files by path, pattern or folder, detect their formats, and open them."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from priory.errors import DataError, suggest_name
from priory.sources import arrow_files, byte_streams
from priory.sources.arrow_files import ArrowTable, ColumnarReader, ParquetTable
from priory.sources.byte_streams import ProgressCallback, ReadOptions, format_path
from priory.sources.cell_parsing import FileReader, RowChunk
from priory.sources.csv_files import DelimitedReader
from priory.sources.document_files import LABEL_COLUMN, DocumentReader, is_mail, is_maildir, list_files_by_class
from priory.sources.json_lines import JSONLinesReader
from priory.sources.record_files import DuckDBTable, RecordReader, Sheet, SQLiteTable, is_workbook
from priory.text.normal_forms import Reader

COMPRESSION_SUFFIXES = (".gz", ".zst", ".bz2", ".xz")
FileOpener = Callable[[ProgressCallback], FileReader]


class FileFormat(NamedTuple):
    """How files of one format are opened, and recognised by their suffix or by ``recognises(path, first bytes)``."""

    open: Callable[[str, ReadOptions, ProgressCallback], FileReader]
    suffixes: tuple[str, ...] = ()
    recognises: Callable[[str, bytes], bool] = lambda path, start: False
    is_stream: bool = False  # may come from standard input


def _open_tab_separated(path: str, options: ReadOptions, report_progress: ProgressCallback) -> FileReader:
    return DelimitedReader(path, replace(options, delimiter=options.delimiter or "\t"), report_progress)


def _open_document(kind: str, path: str, options: ReadOptions, report_progress: ProgressCallback) -> FileReader:
    file = Path(path)
    return DocumentReader(path, [(None if options.text_column else file.stem, file)], kind, options, report_progress)


FORMATS = {  # a new format is one more entry
    "csv": FileFormat(DelimitedReader, (".csv",), is_stream=True),
    "tsv": FileFormat(_open_tab_separated, (".tsv", ".tab"), is_stream=True),
    "jsonl": FileFormat(JSONLinesReader, (".jsonl", ".ndjson"), is_stream=True),
    "parquet": FileFormat(
        lambda path, options, report: ColumnarReader(path, ParquetTable, report),
        (".parquet",),
        lambda path, start: start.startswith((b"PAR1", b"PARE")),
    ),
    "arrow": FileFormat(
        lambda path, options, report: ColumnarReader(path, ArrowTable, report),
        (".arrow", ".feather", ".ipc"),
        lambda path, start: start.startswith(b"ARROW1"),
    ),
    "sqlite": FileFormat(
        lambda path, options, report: RecordReader(path, SQLiteTable(path, options.table), report),
        recognises=lambda path, start: start.startswith(b"SQLite format 3\x00"),
    ),
    "duckdb": FileFormat(
        lambda path, options, report: ColumnarReader(path, partial(DuckDBTable, wanted=options.table), report),
        recognises=lambda path, start: start[8:12] == b"DUCK",
    ),
    "excel": FileFormat(
        lambda path, options, report: RecordReader(path, Sheet(path, options.table), report),
        recognises=lambda path, start: start.startswith(b"PK\x03\x04") and is_workbook(path),
    ),
    "mail": FileFormat(partial(_open_document, "mail"), (".mbox", ".eml"), lambda path, start: is_mail(Path(path))),
    "text": FileFormat(partial(_open_document, "text")),
}


class FileRows:
    """All rows of all files, in order. The first file defines the columns; others may have them in another order.

    Files are opened one after the other, because there may be more than can be open at once. With ``label`` all rows
    have this label.
    """

    def __init__(
        self,
        openers: list[FileOpener],
        report_progress: ProgressCallback = byte_streams.ignore_progress,
        label: str | None = None,
    ) -> None:
        self.openers, self.report_progress, self.label = openers, report_progress, label
        self.files = [openers[0](report_progress)]

    @property
    def names(self) -> tuple[str, ...]:
        return self._find_names(self.files[0])

    def _find_names(self, file: FileReader) -> tuple[str, ...]:
        if self.label is None:
            return file.names
        return (*(name for name in file.names if name != LABEL_COLUMN), LABEL_COLUMN)

    @property
    def is_documents(self) -> bool:
        return isinstance(self.files[0], DocumentReader)

    @property
    def reader(self) -> Reader:
        """How documents are read."""
        first = self.files[0]
        return first.reader if isinstance(first, DocumentReader) else "text"

    def read_chunks(self, column_names: tuple[str, ...]) -> Iterator[RowChunk]:
        for number, opener in enumerate(self.openers):
            if number:
                self.files.append(opener(self.report_progress))
            file = self.files[-1]
            absent = [name for name in column_names if name not in self._find_names(file)]
            if absent:
                raise make_absent_column_error(file.path, absent, file.names)
            yield from self._read_file(file, column_names)

    def _read_file(self, file: FileReader, column_names: tuple[str, ...]) -> Iterator[RowChunk]:
        if self.label is None or LABEL_COLUMN not in column_names:
            yield from file.read_chunks(column_names)
            return
        for chunk in file.read_chunks(tuple(name for name in column_names if name != LABEL_COLUMN)):
            labels = pa.repeat(pa.scalar(self.label, pa.string()), chunk.batch.num_rows)
            yield chunk._replace(batch=chunk.batch.append_column(LABEL_COLUMN, labels))


def open_files(
    paths: list[str],
    options: ReadOptions,
    report_progress: ProgressCallback = byte_streams.ignore_progress,
    label: str | None = None,
) -> FileRows:
    """Open all files that the paths name; with ``label`` all rows have this label."""
    if paths.count(byte_streams.STDIN_PATH) > 1:
        raise DataError("-: standard input is given twice; give it once")
    # files are opened when their turn comes: there may be more than a process may hold open
    openers = [opener for path in paths for opener in _find_openers(path, options)]
    if not openers:
        raise DataError(f"{', '.join(map(format_path, paths))}: matches no files; give a file, a folder or a pattern")
    return FileRows(openers, report_progress, label)


def _find_openers(path: str, options: ReadOptions) -> list[FileOpener]:
    if arrow_files.is_url(path):
        return [partial(ColumnarReader, found, ParquetTable) for found in arrow_files.find_remote_files(path)]
    if path != byte_streams.STDIN_PATH and not os.path.lexists(path) and glob.has_magic(path):
        return [opener for found in sorted(glob.glob(path, recursive=True)) for opener in _find_openers(found, options)]
    if path != byte_streams.STDIN_PATH and Path(path).is_dir():
        return _find_folder_openers(path, options)
    return [partial(_open_file, path, options)]


def _find_folder_openers(path: str, options: ReadOptions) -> list[FileOpener]:
    """A folder of tables, or a tree of documents by class."""
    root = Path(path)
    entries = sorted(e for e in root.iterdir() if not e.name.startswith("."))
    if options.format not in ("text", "mail") and entries and all(e.is_file() for e in entries):
        if options.text_column and all(detect_format(str(e), options.text_column) == "text" for e in entries):
            return [partial(DocumentReader, path, _list_unlabelled(entries), "text", options)]
        return [partial(_open_file, str(e), options) for e in entries]
    # a maildir has a folder of messages in each of cur, new and tmp, which are no classes
    folders = [root, *(e for e in entries if e.is_dir())]
    kind = options.format or ("mail" if any(map(is_maildir, folders)) or _holds_mail(root) else "text")
    if kind not in ("text", "mail"):
        raise DataError(f"{format_path(path)}: is a folder of folders; use --format text or --format mail")
    files = list_files_by_class(root, kind, has_labels=not options.text_column)
    if options.text_column and kind == "text":
        files += _list_unlabelled(entries)
    return [partial(DocumentReader, path, files, kind, options)]


def _list_unlabelled(entries: list[Path]) -> list[tuple[str | None, Path]]:
    return [(None, entry) for entry in entries if entry.is_file()]


def _holds_mail(root: Path) -> bool:
    """Whether the first file of a class is mail, by its ending or its content."""
    first = dict(reversed(list_files_by_class(root, "text")))
    return any(os.access(file, os.R_OK) and is_mail(file) for file in first.values())


def _open_file(path: str, options: ReadOptions, report_progress: ProgressCallback) -> FileReader:
    kind = options.format or detect_format(path, options.text_column)
    if kind not in FORMATS:
        raise DataError(f"format is {kind!r}; use one of {', '.join(FORMATS)}{suggest_name(kind, FORMATS)}.")
    if path == byte_streams.STDIN_PATH and not FORMATS[kind].is_stream:
        raise DataError(f"-: {kind} cannot be read from standard input; give a file")
    return FORMATS[kind].open(path, options, report_progress)


def detect_format(path: str, text_column: str | None = None) -> str:
    """Detect the format by the first bytes, else by the name, else by the content.

    With ``text_column``, a file is a text unless it is recognised as a table, for example by a header with this column.
    """
    if path == byte_streams.STDIN_PATH:
        return "csv"
    # the first bytes are certain, a name may be wrong, and the content is read only where both say nothing
    start = byte_streams.read_magic_bytes(path)
    if known := next((kind for kind, one in FORMATS.items() if one.recognises(path, start)), None):
        return known
    name = Path(path).name.lower()
    for suffix in COMPRESSION_SUFFIXES:
        name = name.removesuffix(suffix)
    if known := next((kind for kind, one in FORMATS.items() if Path(name).suffix in one.suffixes), None):
        return known
    if text_column and os.path.getsize(path) == 0:
        return "text"
    head = next(byte_streams.read_utf8_blocks(path, ReadOptions(encoding="auto")), b"")
    if text_column:
        return _detect_table(head, text_column) or "text"
    if re.match(rb"\s*\[\s*\{", head):
        raise DataError(f"{format_path(path)}: is a JSON array; write each of its objects on a line of its own")
    return "jsonl" if head.lstrip()[:1] == b"{" else "csv"


def _detect_table(head: bytes, column: str) -> str | None:
    """The format of a table with this column, by its first line; None for a text."""
    line = head.lstrip().partition(b"\n")[0].decode("utf-8", "replace").strip()
    if line.startswith("{"):
        return "jsonl" if f'"{column}"' in line else None
    names = {name.strip().strip('"') for name in re.split(r"[,;|\t]", line)}
    return "csv" if column in names else None


def make_absent_column_error(
    path: str, absent: list[str], names: tuple[str, ...], reason: str = "", remedy: str = ""
) -> DataError:
    """An error for absent columns, with a suggestion."""
    named = f"{format_names(absent)}{suggest_name(absent[0], names)}{reason}"
    return DataError(f"{format_path(path)}: has no column {named}; it has {format_names(names)}{remedy}")


def format_names(names: tuple[str, ...] | list[str], max_names: int = 10) -> str:
    listed = ", ".join(map(repr, names[:max_names]))
    return f"{listed} and {len(names) - max_names} more" if len(names) > max_names else listed
