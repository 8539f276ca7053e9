"""Parquet and Arrow (Feather): columns that know their types."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from priory.errors import DataError, ModelTooLargeError
from priory.sources.byte_streams import ProgressCallback, format_path, ignore_progress
from priory.sources.chunk import MAX_CELL_BYTES, FileReader, RowChunk, check_column_names

COLUMNAR_CHUNK_ROWS, COLUMNAR_CHUNK_BYTES = 8192, 1 << 26  # rows and bytes at a time
MAX_FILE_COLUMNS = 100_000
MAX_ROW_GROUP_BYTES = 4 << 30  # of one row group, unpacked


class ColumnarReader(FileReader):
    """What both have in common: types that are checked before anything is read."""

    def __init__(self, path: str, report_progress: ProgressCallback = ignore_progress) -> None:
        self.path, self.report_progress = path, report_progress
        with self._translate_errors():
            self.schema = self._open_schema()
            names = list(self.schema.names)
        if len(names) > MAX_FILE_COLUMNS:
            raise ModelTooLargeError(
                f"{format_path(path)}: has {len(names):,} columns; the limit is {MAX_FILE_COLUMNS:,}"
            )
        self.names = check_column_names(format_path(path), names)

    def _open_schema(self) -> Any:
        """The schema."""
        raise NotImplementedError

    def _read_batches(self, column_names: list[str]) -> Iterator[Any]:
        raise NotImplementedError

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

    def _read_plain_batches(self, column_names: tuple[str, ...]) -> Iterator[Any]:
        """Rows as text, numbers or booleans, no text longer than one in a CSV may be."""
        import pyarrow as pa

        start = 0
        for batch in _merge_small_batches(map(_decode_dictionaries, self._read_batches(list(column_names)))):
            batch.validate(full=True)
            columns = [_cast_column(pa, batch.column(name)) for name in column_names]
            for name, column in zip(column_names, columns, strict=True):
                if (row := _find_oversized_cell(column)) is not None:
                    raise ModelTooLargeError(
                        f"{self.locate_cell(start + row, name)}: has over {MAX_CELL_BYTES >> 20} MB; split it"
                    )
            yield pa.RecordBatch.from_arrays(columns, names=list(column_names))
            start += batch.num_rows

    def locate_cell(self, row: int, column: str) -> str:
        return f"{format_path(self.path)}: row {row + 1}, column {column!r}"

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
                raise
            what = str(error).splitlines()[0][:200].rstrip(".")
            if "decrypt" in what:
                raise DataError(f"{format_path(self.path)}: is encrypted; decrypt it first") from None
            raise DataError(f"{format_path(self.path)}: cannot be read ({what}); write it again") from None


class ParquetReader(ColumnarReader):
    def _open_schema(self) -> Any:
        from pyarrow import parquet

        self.file = parquet.ParquetFile(self.path)
        for number in range(self.file.metadata.num_row_groups):
            size = self.file.metadata.row_group(number).total_byte_size
            if size > MAX_ROW_GROUP_BYTES:
                raise ModelTooLargeError(
                    f"{format_path(self.path)}: row group {number} unpacks to {size:,} bytes; write smaller groups"
                )
        return self.file.schema_arrow

    def _read_batches(self, column_names: list[str]) -> Iterator[Any]:
        from pyarrow import parquet, types

        texts = [name for name in column_names if not types.is_primitive(self.schema.field(name).type)]
        words = parquet.ParquetFile(self.path, metadata=self.file.metadata, read_dictionary=texts)
        for number in range(self.file.metadata.num_row_groups):
            first = next(words.iter_batches(1, row_groups=[number], columns=texts), None) if texts else None
            step = COLUMNAR_CHUNK_ROWS if first is None else _compute_batch_rows(first)
            yield from self.file.iter_batches(step, row_groups=[number], columns=column_names)


class ArrowReader(ColumnarReader):
    def _open_schema(self) -> Any:
        import pyarrow as pa

        source = pa.memory_map(self.path)
        if source.read(6) == b"ARROW1":
            file = pa.ipc.open_file(source)
            self.batches = (file.get_batch(i) for i in range(file.num_record_batches))
            return file.schema
        source.seek(0)
        stream = pa.ipc.open_stream(source)
        self.batches = iter(stream)
        return stream.schema

    def _read_batches(self, column_names: list[str]) -> Iterator[Any]:
        for batch in self.batches:
            chosen = batch.select(column_names)
            step = _compute_batch_rows(chosen)
            for start in range(0, batch.num_rows, step):
                yield chosen.slice(start, step)


def _compute_batch_rows(batch: Any) -> int:
    """How many rows there is room for: a text that is written once, in a dictionary, may stand in all of them."""
    from pyarrow import compute, types

    words = [column.dictionary for column in batch.columns if types.is_dictionary(column.type)]
    longest = max((compute.max(compute.binary_length(w)).as_py() or 0 for w in words if len(w)), default=0)
    return min(COLUMNAR_CHUNK_ROWS, max(1, COLUMNAR_CHUNK_BYTES // max(1, longest)))


def _check_type(path: str, name: str, kind: Any) -> None:
    from pyarrow import types

    value = kind.value_type if types.is_dictionary(kind) else kind
    known = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_null)
    text = (types.is_string, types.is_large_string, types.is_string_view)
    if not any(is_kind(value) for is_kind in (*known, *text)):
        raise DataError(
            f"{format_path(path)}: column {name!r} holds {kind}; turn it into text or numbers, or --ignore it"
        )


def _find_oversized_cell(column: Any) -> int | None:
    """The first row whose text is too long, if there is one."""
    from pyarrow import compute, types

    if not types.is_string(column.type) or column.nbytes <= MAX_CELL_BYTES:
        return None
    row: int = compute.index(compute.greater(compute.binary_length(column), MAX_CELL_BYTES), True).as_py()
    return row if row >= 0 else None


def _decode_dictionaries(batch: Any) -> Any:
    """A few rows with their texts instead of their places in a dictionary."""
    import pyarrow as pa
    from pyarrow import types

    if not any(types.is_dictionary(kind) for kind in batch.schema.types):
        return batch
    batch.validate(full=True)
    columns = [c.dictionary_decode() if types.is_dictionary(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _merge_small_batches(batches: Iterator[Any]) -> Iterator[Any]:
    """The same rows in batches that are worth the while."""
    import pyarrow as pa

    kept: list[Any] = []
    rows = size = 0
    for batch in batches:
        kept.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= COLUMNAR_CHUNK_ROWS or size >= COLUMNAR_CHUNK_BYTES:
            yield pa.concat_batches(kept)
            kept, rows, size = [], 0, 0
    if rows:
        yield pa.concat_batches(kept)


def _cast_column(pa: Any, column: Any) -> Any:
    """Text, numbers or booleans."""
    from pyarrow import types

    if types.is_boolean(column.type):
        return column
    if types.is_integer(column.type) or types.is_floating(column.type) or types.is_decimal(column.type):
        return column
    return column.cast(pa.string())
