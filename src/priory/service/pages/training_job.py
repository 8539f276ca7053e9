"""Learning a file that was uploaded: its rows go through the journal, so that each can be found and forgotten later."""

from __future__ import annotations

import logging
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from priory.errors import DataError, PrioryError
from priory.service.changes import CreateRequest, DeleteRequest, LearnRequest
from priory.service.messages import MAX_ROWS_PER_REQUEST
from priory.service.rows import ModelKind, Row, RowBatch
from priory.service.served_model import ServedModel
from priory.sources import FileRows, RowChunk
from priory.sources.column_types import (
    ColumnOptions,
    LabelReader,
    ModelColumns,
    declare_column_families,
    infer_columns,
)
from priory.sources.discovery import format_names
from priory.sources.prefetch import peek_first
from priory.workflows.callbacks import SILENT, Callbacks
from priory.workflows.model_files import find_needed_columns, get_model_columns, open_paths

if TYPE_CHECKING:
    from priory.service.application import Service

UPLOAD_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".arrow", ".mbox", ".eml")
_logger = logging.getLogger("priory.service")


@dataclass
class TrainingJob:
    """A file on its way into a model, and how far it has come."""

    model: str
    teacher: str
    file_name: str
    n_bytes: int
    target: str | None = None  # the column with the labels
    label: str | None = None  # or one label for all rows
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    bytes_read: int = 0
    rows_learned: int = 0
    rows_skipped: int = 0  # they have no label
    error: str = ""
    is_done: bool = False

    @property
    def share(self) -> float:
        """How much of the file was read, from 0 to 1."""
        return 1.0 if self.is_done else min(self.bytes_read / max(self.n_bytes, 1), 1.0)

    def count_bytes(self, n_bytes: int) -> None:
        self.bytes_read += n_bytes


def run_training_job(service: Service, job: TrainingJob, body: bytes) -> None:
    """Learn all rows of a file. If that fails, a model that was created for them is deleted again."""
    was_there = job.model in service.store.models
    try:
        with write_upload(service, body, job.file_name) as path:
            callbacks = Callbacks(progress=job.count_bytes)
            for batch in _read_batches(service, job, path, callbacks):
                service.writer.submit(LearnRequest(job.model, job.teacher, rows=batch)).result()
                job.rows_learned += len(batch)
        if not job.rows_learned:
            raise DataError(f"{job.file_name}: has no rows")
    except Exception as error:
        job.error = _explain_failure(error, job.file_name)
        if not was_there and job.model in service.store.models:
            service.writer.submit(DeleteRequest(job.model, job.teacher)).result()
    finally:
        job.is_done = True


@contextmanager
def write_upload(service: Service, body: bytes, file_name: str) -> Iterator[Path]:
    """An upload as a file that is gone after the ``with`` block; its name is ours, only the suffix is that given."""
    suffix = Path(file_name).suffix.lower()
    if suffix not in UPLOAD_SUFFIXES:
        raise DataError(f"files of the kind {suffix!r} cannot be read; give one of {', '.join(UPLOAD_SUFFIXES)}")
    with tempfile.TemporaryDirectory(dir=service.store.folder, prefix=".upload-") as folder:
        path = Path(folder, f"upload{suffix}")
        path.write_bytes(body)
        try:
            yield path
        except DataError as error:
            raise DataError(str(error).replace(str(path), file_name)) from None


def _explain_failure(error: Exception, file_name: str) -> str:
    if isinstance(error, PrioryError):
        return str(error)
    _logger.error("unexpected %s while an upload was learned", type(error).__name__)
    return f"{file_name}: cannot be learned"


def read_unlabelled_rows(service: Service, model: ServedModel, body: bytes, file_name: str) -> list[str | Row]:
    """The rows of a file with the columns of a model; labels in it are not read."""
    with write_upload(service, body, file_name) as path:
        opened = open_paths(str(path), None, SILENT)
        columns = _match_columns(model, opened, ())
        chunks = opened.read_chunks(find_needed_columns(opened, columns))
        return [row for chunk in chunks for row in _list_rows(columns, chunk)]


def _match_columns(model: ServedModel, rows: FileRows, others: tuple[str, ...]) -> ModelColumns:
    """The columns of a model in a file; a model of texts takes the only column that there is, whatever its name."""
    columns = get_model_columns(model.estimator)
    features = [name for name in rows.names if name not in (*others, *(("label", "path") if rows.is_documents else ()))]
    if columns.is_one_text and len(features) == 1:
        return replace(columns, kinds={features[0]: "text"})
    return columns


def _read_batches(service: Service, job: TrainingJob, path: Path, callbacks: Callbacks) -> Iterator[RowBatch]:
    rows = open_paths(str(path), None, callbacks)
    known = service.store.models.get(job.model)
    options = _choose_columns(job, rows)
    target = options.find_target(rows) if job.label is None else None
    if known is not None and known.is_fitted:
        others = () if target is None else (target,)
        columns = _match_columns(known, rows, others)
        chunks = rows.read_chunks(find_needed_columns(rows, columns, *others))
    else:
        names = options.find_features(rows) if target else tuple(n for n in rows.names if n not in ("label", "path"))
        first, chunks = peek_first(rows.read_chunks((*([target] if target else []), *names)))
        columns, _ = infer_columns(first, names, options, dates_as_labels=True)
    kind: ModelKind = "text" if columns.is_one_text else "table"
    if known is None:
        _create_model(service, job, kind, columns, options)
    labels = None if target is None else LabelReader(target, options)
    for chunk in chunks:
        yield from _split_chunk(kind, columns, labels, chunk, job.label)
        job.rows_skipped = 0 if labels is None else labels.n_unlabelled


def _choose_columns(job: TrainingJob, rows: FileRows) -> ColumnOptions:
    if job.label is None and job.target is None and not rows.is_documents:
        raise DataError(f"which column has the labels? Name one of {format_names(rows.names)}")
    if job.label is None and rows.is_documents:
        raise DataError("mail has no labels of its own: say which class all of these messages belong to")
    return ColumnOptions(target=job.target, skip_unlabelled=True)


def _create_model(
    service: Service, job: TrainingJob, kind: ModelKind, columns: ModelColumns, options: ColumnOptions
) -> None:
    parameters = {} if kind == "text" else {"families": declare_column_families(columns, options)}
    encoded = msgspec.json.encode(parameters, order="deterministic")
    service.writer.submit(CreateRequest(job.model, job.teacher, kind=kind, parameters=encoded)).result()


def _split_chunk(
    kind: ModelKind, columns: ModelColumns, labels: LabelReader | None, chunk: RowChunk, label: str | None
) -> Iterator[RowBatch]:
    """The labelled rows of a chunk, in batches that the service takes."""
    names: list[str] = []
    if labels is not None:
        group, chunk = labels.read(chunk)
        names = labels.names[group].tolist()
    rows = _list_rows(columns, chunk)
    given = names if labels is not None else [str(label)] * len(rows)
    for start in range(0, len(rows), MAX_ROWS_PER_REQUEST):
        end = start + MAX_ROWS_PER_REQUEST
        yield RowBatch(kind, tuple(rows[start:end]), tuple(given[start:end]))


def _list_rows(columns: ModelColumns, chunk: RowChunk) -> list[str | Row]:
    rows = columns.read_input_rows(chunk)
    return list(rows) if isinstance(rows, list) else rows.to_pylist()
