"""Parquet and Arrow (Feather): columns that know their types."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from priory.errors import DataError, TooLarge
from priory.sources.chunk import MOST_IN_A_CELL, Chunk, File, checked_names
from priory.sources.streams import Told, shown, untold

ROWS = 8192  # at a time
MOST_COLUMNS = 100_000
MOST_BYTES = 4 << 30  # of one row group, unpacked


class Columnar(File):
    """What both have in common: types that are checked before anything is read."""

    def __init__(self, path: str, told: Told = untold) -> None:
        self.path, self.told = path, told
        with self._understood():
            self.schema = self._open()
            names = list(self.schema.names)
        if len(names) > MOST_COLUMNS:
            raise TooLarge(f"{shown(path)}: has {len(names):,} columns; the limit is {MOST_COLUMNS:,}")
        self.names = checked_names(shown(path), names)

    def _open(self) -> Any:
        """The schema."""
        raise NotImplementedError

    def _batches(self, wanted: list[str]) -> Iterator[Any]:
        raise NotImplementedError

    def chunks(self, wanted: tuple[str, ...]) -> Iterator[Chunk]:
        import pyarrow as pa

        start = 0
        for name in wanted:
            _check_type(self.path, name, self.schema.field(name).type)
        with self._understood():
            for batch in self._batches(list(wanted)):
                batch.validate(full=True)
                columns = [_plain(pa, batch.column(name)) for name in wanted]
                if batch.num_rows:
                    chunk = Chunk(pa.RecordBatch.from_arrays(columns, names=list(wanted)), self, start)
                    _check_lengths(chunk)
                    yield chunk
                    start += batch.num_rows
        if not start:
            raise DataError(f"{shown(self.path)}: has columns but no rows; give a file with rows")

    def place(self, row: int, column: str) -> str:
        return f"{shown(self.path)}: row {row + 1}, column {column!r}"

    @contextmanager
    def _understood(self) -> Iterator[None]:
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
                raise
            what = str(error).splitlines()[0][:200].rstrip(".")
            if "decrypt" in what:
                raise DataError(f"{shown(self.path)}: is encrypted; decrypt it first") from None
            raise DataError(f"{shown(self.path)}: cannot be read ({what}); write it again") from None


class Parquet(Columnar):
    def _open(self) -> Any:
        from pyarrow import parquet

        self.file = parquet.ParquetFile(self.path)
        for number in range(self.file.metadata.num_row_groups):
            size = self.file.metadata.row_group(number).total_byte_size
            if size > MOST_BYTES:
                raise TooLarge(
                    f"{shown(self.path)}: row group {number} unpacks to {size:,} bytes; write smaller groups"
                )
        return self.file.schema_arrow

    def _batches(self, wanted: list[str]) -> Iterator[Any]:
        return iter(self.file.iter_batches(ROWS, columns=wanted))


class Arrow(Columnar):
    def _open(self) -> Any:
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

    def _batches(self, wanted: list[str]) -> Iterator[Any]:
        for batch in self.batches:
            for start in range(0, batch.num_rows, ROWS):
                yield batch.slice(start, ROWS).select(wanted)


def _check_type(path: str, name: str, kind: Any) -> None:
    from pyarrow import types

    value = kind.value_type if types.is_dictionary(kind) else kind
    known = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_null)
    text = (types.is_string, types.is_large_string, types.is_string_view)
    if not any(is_kind(value) for is_kind in (*known, *text)):
        raise DataError(f"{shown(path)}: column {name!r} holds {kind}; turn it into text or numbers, or --ignore it")


def _check_lengths(chunk: Chunk) -> None:
    """No text is longer than one in a CSV may be."""
    from pyarrow import compute, types

    for name, column in zip(chunk.batch.schema.names, chunk.batch.columns, strict=True):
        if types.is_string(column.type) and column.nbytes > MOST_IN_A_CELL:
            long = compute.greater(compute.binary_length(column), MOST_IN_A_CELL)
            row = compute.index(long, True).as_py()
            if row >= 0:
                place = chunk.file.place(chunk.start + row, name)
                raise TooLarge(f"{place}: has over {MOST_IN_A_CELL >> 20} MB; split it")


def _plain(pa: Any, column: Any) -> Any:
    """Text, numbers or booleans."""
    from pyarrow import types

    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_boolean(column.type):
        return column
    if types.is_integer(column.type) or types.is_floating(column.type) or types.is_decimal(column.type):
        return column
    return column.cast(pa.string())
