"""Find files by path, pattern or folder, detect their formats, and open them."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from priory.errors import DataError, suggest_name
from priory.sources import arrow_files, byte_streams
from priory.sources.arrow_files import ArrowTable, ColumnarReader, ColumnarTable, ParquetTable
from priory.sources.byte_streams import ProgressCallback, ReadOptions, format_path
from priory.sources.cell_parsing import FileReader, RowChunk
from priory.sources.csv_files import DelimitedReader
from priory.sources.document_files import DocumentReader, is_mail, is_maildir, list_files_by_class
from priory.sources.json_lines import JSONLinesReader
from priory.sources.record_files import DuckDBTable, RecordReader, RecordTable, Sheet, SQLiteTable, is_workbook
from priory.text.normal_forms import Reader

FILE_FORMATS = ("csv", "tsv", "jsonl", "parquet", "arrow", "text", "mail", "sqlite", "duckdb", "excel")
INPUT_SUFFIXES = {
    "csv": [".csv"],
    "tsv": [".tsv", ".tab"],
    "jsonl": [".jsonl", ".ndjson"],
    "parquet": [".parquet"],
    "arrow": [".arrow", ".feather", ".ipc"],
    "mail": [".mbox", ".eml"],
}
FORMAT_BY_MAGIC_BYTES = {b"PAR1": "parquet", b"PARE": "parquet", b"ARROW1": "arrow", b"SQLite format 3\x00": "sqlite"}
COMPRESSION_SUFFIXES = (".gz", ".zst", ".bz2", ".xz")

FileOpener = Callable[[ProgressCallback], FileReader]
COLUMNAR_TABLES: dict[str, Callable[[str], ColumnarTable]] = {"parquet": ParquetTable, "arrow": ArrowTable}
RECORD_TABLES: dict[str, Callable[[str, str | None], RecordTable]] = {"sqlite": SQLiteTable, "excel": Sheet}


class FileRows:
    """All rows of all files, in order. The first file defines the columns; others may have them in another order.

    Files are opened one after the other, because there may be more than can be open at once.
    """

    def __init__(
        self, openers: list[FileOpener], report_progress: ProgressCallback = byte_streams.ignore_progress
    ) -> None:
        self.openers, self.report_progress = openers, report_progress
        self.files = [openers[0](report_progress)]

    @property
    def names(self) -> tuple[str, ...]:
        return self.files[0].names

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
            absent = [name for name in column_names if name not in file.names]
            if absent:
                raise make_absent_column_error(file.path, absent, file.names)
            yield from file.read_chunks(column_names)


def open_files(
    paths: list[str], options: ReadOptions, report_progress: ProgressCallback = byte_streams.ignore_progress
) -> FileRows:
    """Open all files that the paths name."""
    if paths.count(byte_streams.STDIN_PATH) > 1:
        raise DataError("-: standard input is given twice; give it once")
    # files are opened when their turn comes: there may be more than a process may hold open
    openers = [opener for path in paths for opener in _find_openers(path, options)]
    if not openers:
        raise DataError(f"{', '.join(map(format_path, paths))}: matches no files; give a file, a folder or a pattern")
    return FileRows(openers, report_progress)


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
    if kind == "tsv":
        options = replace(options, delimiter=options.delimiter or "\t")
    if kind in ("csv", "tsv"):
        return DelimitedReader(path, options, report_progress)
    if kind == "jsonl":
        return JSONLinesReader(path, options, report_progress)
    if path == byte_streams.STDIN_PATH:
        raise DataError(f"-: {kind} cannot be read from standard input; give a file")
    if kind in COLUMNAR_TABLES:
        return ColumnarReader(path, COLUMNAR_TABLES[kind], report_progress)
    if kind == "duckdb":
        return ColumnarReader(path, partial(DuckDBTable, wanted=options.table), report_progress)
    if kind in RECORD_TABLES:
        return RecordReader(path, RECORD_TABLES[kind](path, options.table), report_progress)
    file = Path(path)
    label = None if options.text_column else file.stem
    return DocumentReader(path, [(label, file)], kind, options, report_progress)


def detect_format(path: str, text_column: str | None = None) -> str:
    """Detect the format by the first bytes, else by the name, else by the content.

    With ``text_column``, a file is a text unless it is recognised as a table, for example by a header with this column.
    """
    if path == byte_streams.STDIN_PATH:
        return "csv"
    # the first bytes are certain, a name may be wrong, and the content is read only where both say nothing
    start = byte_streams.read_magic_bytes(path)
    if known := next((kind for magic, kind in FORMAT_BY_MAGIC_BYTES.items() if start.startswith(magic)), None):
        return known
    if start[8:12] == b"DUCK":
        return "duckdb"
    if start.startswith(b"PK\x03\x04") and is_workbook(path):
        return "excel"
    if is_mail(Path(path)):
        return "mail"
    name = Path(path).name.lower()
    for suffix in COMPRESSION_SUFFIXES:
        name = name.removesuffix(suffix)
    suffix = Path(name).suffix
    if known := next((kind for kind, suffixes in INPUT_SUFFIXES.items() if suffix in suffixes), None):
        return known
    if text_column and os.path.getsize(path) == 0:
        return "text"
    head = next(byte_streams.read_utf8_blocks(path, ReadOptions(encoding="auto")), b"")
    if text_column:
        return _detect_table(head, text_column) or "text"
    return "jsonl" if head.lstrip()[:1] == b"{" else "csv"


def _detect_table(head: bytes, column: str) -> str | None:
    """The format of a table with this column, by its first line; None for a text."""
    line = head.lstrip().partition(b"\n")[0].decode("utf-8", "replace").strip()
    if line.startswith("{"):
        return "jsonl" if f'"{column}"' in line else None
    names = {name.strip().strip('"') for name in re.split(r"[,;|\t]", line)}
    return "csv" if column in names else None


def make_absent_column_error(path: str, absent: list[str], names: tuple[str, ...], reason: str = "") -> DataError:
    """An error for absent columns, with a suggestion."""
    named = f"{format_names(absent)}{suggest_name(absent[0], names)}{reason}"
    return DataError(f"{format_path(path)}: has no column {named}; it has {format_names(names)}")


def format_names(names: tuple[str, ...] | list[str], max_names: int = 10) -> str:
    listed = ", ".join(map(repr, names[:max_names]))
    return f"{listed} and {len(names) - max_names} more" if len(names) > max_names else listed
