"""Parquet and Arrow (Feather) files, whose columns have types, on disk or at URLs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import pyarrow as pa
from pyarrow import compute

from priory.core.input_guard import list_arrow_cells
from priory.errors import DataError, ModelTooLargeError, import_extra
from priory.sources.byte_streams import ProgressCallback, format_path
from priory.sources.cell_parsing import MAX_CELL_BYTES, FileReader, RowChunk, check_column_names


def is_url(path: str) -> bool:
    """Whether a path names a file on another file system, such as ``s3://bucket/mail.parquet``."""
    return "://" in path


def find_remote_files(url: str) -> list[str]:
    """The Parquet files that a URL, a pattern or a folder names, in order."""
    system, path = _import_fsspec().core.url_to_fs(url)
    pattern = path.rstrip("/") + "/*.parquet" if system.isdir(path) else path
    found = sorted(system.glob(pattern))
    if any(not name.endswith(".parquet") for name in found):
        raise DataError(f"{format_path(url)}: is not Parquet; at URLs nothing else is read")
    return [system.unstrip_protocol(name) for name in found]


def open_remote_file(url: str) -> Any:
    """A file at a URL, open for reading."""
    return _import_fsspec().open(url, "rb").open()


_import_fsspec = partial(import_extra, "fsspec", "files at URLs need fsspec", "fsspec")


COLUMNAR_CHUNK_ROWS, COLUMNAR_CHUNK_BYTES = 8192, 1 << 26  # a chunk has at most about this much
MAX_FILE_COLUMNS = 100_000
MAX_ROW_GROUP_BYTES = 4 << 30  # of a decompressed row group


class ColumnarTable(Protocol):
    """A table with typed columns."""

    schema: pa.Schema

    def read_batches(self, column_names: list[str]) -> Iterator[pa.RecordBatch]:
        """The rows in batches of any size."""


class ColumnarReader(FileReader):
    """A file with typed columns; the types are checked before any row is read."""

    def __init__(
        self, path: str, open_table: Callable[[str], ColumnarTable], report_progress: ProgressCallback
    ) -> None:
        self.path, self.report_progress = path, report_progress
        with self._translate_errors():
            self.table = open_table(path)
            self.schema: pa.Schema = self.table.schema
            names = list(self.schema.names)
        if len(names) > MAX_FILE_COLUMNS:
            raise ModelTooLargeError(
                f"{format_path(path)}: has {len(names):,} columns; the limit is {MAX_FILE_COLUMNS:,}"
            )
        self.names = check_column_names(format_path(path), names)

    def read_chunks(self, column_names: tuple[str, ...]) -> Iterator[RowChunk]:
        start = 0
        for name in column_names:
            _check_type(self.path, name, self.schema.field(name).type)
        with self._translate_errors():
            for batch in self._read_plain_batches(column_names):
                yield RowChunk(batch, self, start)
                start += batch.num_rows
        if not start:
            raise DataError(f"{format_path(self.path)}: has columns but no rows; give a file with rows")

    def _read_plain_batches(self, column_names: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        """Yield rows as text, numbers or booleans; an oversized text is an error."""
        start = 0
        for batch in _merge_small_batches(map(_decode_dictionaries, self.table.read_batches(list(column_names)))):
            self._check_batch(batch, start)
            columns = [_cast_column(batch.column(name)) for name in column_names]
            for name, column in zip(column_names, columns, strict=True):
                if (row := _find_oversized_cell(column)) is not None:
                    raise ModelTooLargeError(
                        f"{self.locate_cell(start + row, name)}: is larger than {MAX_CELL_BYTES >> 20} MB; split it"
                    )
            yield pa.RecordBatch.from_arrays(columns, names=list(column_names))
            start += batch.num_rows

    def _check_batch(self, batch: pa.RecordBatch, start: int) -> None:
        """Raise an error if the buffers of a batch do not match its types; texts must be UTF-8."""
        try:
            batch.validate(full=True)
        except pa.ArrowInvalid:
            for name, column in zip(batch.schema.names, batch.columns, strict=True):
                if any(is_kind(column.type) for is_kind in (pa.types.is_string, pa.types.is_large_string)):
                    column.validate()  # its offsets, before its cells are read
                    list_arrow_cells(column, lambda row, name=name: self.locate_cell(start + row, name))  # type: ignore[misc]
            raise

    def locate_cell(self, row: int, column: str) -> str:
        return f"{format_path(self.path)}: row {row + 1}, column {column!r}"

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
                raise
            reason = str(error).splitlines()[0][:200].rstrip(".")
            if "decrypt" in reason:
                raise DataError(f"{format_path(self.path)}: is encrypted; decrypt it first") from None
            raise DataError(f"{format_path(self.path)}: cannot be read ({reason}); write it again") from None


class ParquetTable:
    """A Parquet file, on disk or at a URL."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.file = self._open()
        for number in range(self.file.metadata.num_row_groups):
            size = self.file.metadata.row_group(number).total_byte_size
            if size > MAX_ROW_GROUP_BYTES:
                raise ModelTooLargeError(
                    f"{format_path(path)}: row group {number} decompresses to {size:,} bytes; write smaller groups"
                )
        self.schema: pa.Schema = self.file.schema_arrow

    def _open(self, **options: Any) -> Any:
        from pyarrow import parquet

        return parquet.ParquetFile(open_remote_file(self.path) if is_url(self.path) else self.path, **options)

    def read_batches(self, column_names: list[str]) -> Iterator[pa.RecordBatch]:
        texts = [name for name in column_names if not pa.types.is_primitive(self.schema.field(name).type)]
        words = self._open(metadata=self.file.metadata, read_dictionary=texts)
        for number in range(self.file.metadata.num_row_groups):
            first = next(words.iter_batches(1, row_groups=[number], columns=texts), None) if texts else None
            step = COLUMNAR_CHUNK_ROWS if first is None else _compute_batch_rows(first)
            yield from self.file.iter_batches(step, row_groups=[number], columns=column_names)


class ArrowTable:
    """An Arrow file or stream."""

    def __init__(self, path: str) -> None:
        source = pa.memory_map(path)
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        if is_file:
            file = pa.ipc.open_file(source)
            self.batches = (file.get_batch(i) for i in range(file.num_record_batches))
        else:
            file = pa.ipc.open_stream(source)
            self.batches = iter(file)
        self.schema: pa.Schema = file.schema

    def read_batches(self, column_names: list[str]) -> Iterator[pa.RecordBatch]:
        for batch in self.batches:
            chosen = batch.select(column_names)
            step = _compute_batch_rows(chosen)
            for start in range(0, batch.num_rows, step):
                yield chosen.slice(start, step)


def _compute_batch_rows(batch: pa.RecordBatch) -> int:
    """The number of rows to read at a time: every row may refer to the longest text of the dictionary."""
    texts = [column.dictionary for column in batch.columns if pa.types.is_dictionary(column.type)]
    longest = max((compute.max(compute.binary_length(text)).as_py() or 0 for text in texts if len(text)), default=0)
    return min(COLUMNAR_CHUNK_ROWS, max(1, COLUMNAR_CHUNK_BYTES // max(1, longest)))


def _check_type(path: str, name: str, kind: pa.DataType) -> None:
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    known = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_null)
    dates = (pa.types.is_date, pa.types.is_timestamp)  # read as text, like the dates of a CSV
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    if not any(is_kind(value) for is_kind in (*known, *dates, *text)):
        raise DataError(
            f"{format_path(path)}: column {name!r} has type {kind}; convert it to text or numbers, "
            f"or use --ignore {name}"
        )


def _find_oversized_cell(column: pa.Array) -> int | None:
    """The first row whose text is too long, or None."""
    if not pa.types.is_string(column.type) or column.nbytes <= MAX_CELL_BYTES:
        return None
    row: int = compute.index(compute.greater(compute.binary_length(column), MAX_CELL_BYTES), True).as_py()
    return row if row >= 0 else None


def _decode_dictionaries(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with texts instead of indices into a dictionary."""
    if not any(pa.types.is_dictionary(kind) for kind in batch.schema.types):
        return batch
    batch.validate(full=True)
    columns = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _merge_small_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in larger batches."""
    kept: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        kept.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= COLUMNAR_CHUNK_ROWS or size >= COLUMNAR_CHUNK_BYTES:
            yield pa.concat_batches(kept)
            kept, rows, size = [], 0, 0
    if rows:
        yield pa.concat_batches(kept)


def _cast_column(column: pa.Array) -> pa.Array:
    """The column as numbers or booleans if it has them, else as text."""
    as_they_are = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    return column if any(is_kind(column.type) for is_kind in as_they_are) else column.cast(pa.string())
