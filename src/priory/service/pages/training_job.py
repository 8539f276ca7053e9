"""Learn an uploaded file through the journal, so that each row can be found and forgotten later."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from priory.errors import DataError, PrioryError
from priory.service.changes import CreateRequest, DeleteRequest, ForgetRequest, LearnRequest
from priory.service.labelled_rows import ModelKind, Row, RowBatch
from priory.service.messages import MAX_ROWS_PER_REQUEST
from priory.service.model_store import ServedModel
from priory.service.uploads import write_upload
from priory.sources import FileRows, RowChunk
from priory.sources.byte_streams import peek_first
from priory.sources.column_inference import infer_columns
from priory.sources.column_types import ColumnOptions, LabelReader, ModelColumns, declare_column_families
from priory.sources.discovery import format_names
from priory.sources.document_files import LABEL_COLUMN, PATH_COLUMN
from priory.workflows.model_files import FileTask, find_needed_columns, get_model_columns

if TYPE_CHECKING:
    from priory.service.application import Service

UPLOAD_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".arrow", ".mbox", ".eml")
DOCUMENT_COLUMNS = (LABEL_COLUMN, PATH_COLUMN)  # columns of mail besides the text
STEPS_PER_JOB = 8  # for the progress bar
MIN_ROWS_PER_STEP = 2000
_logger = logging.getLogger("priory.service")


@dataclass
class TrainingJob:
    """An uploaded file that is being learned, and its progress."""

    model: str
    teacher: str
    file_name: str
    target: str | None = None  # the column with the labels
    label: str | None = None  # or one label for all rows
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    n_rows: int = 0  # known once the file is read
    rows_learned: int = 0
    rows_skipped: int = 0  # rows without a label
    error: str = ""
    is_done: bool = False

    @property
    def share(self) -> float:
        """The learned share of the file, from 0 to 1."""
        return self.rows_learned / self.n_rows if self.n_rows else 0.0


@dataclass(frozen=True)
class UploadedRows:
    """The labelled rows of a file, and the parameters of a new model for them."""

    kind: ModelKind
    parameters: dict[str, object]
    rows: tuple[str | Row, ...]
    labels: tuple[str, ...]

    def split(self, n_rows: int) -> Iterator[RowBatch]:
        for start in range(0, len(self.rows), n_rows):
            end = start + n_rows
            yield RowBatch(self.kind, self.rows[start:end], self.labels[start:end])


def run_training_job(service: Service, job: TrainingJob, body: bytes) -> None:
    """Learn all rows of a file, or none: the whole file is read first, and later failures are rolled back."""
    learned: list[int] = []  # events to roll back after a failure
    is_created = False
    try:
        _check_suffix(job.file_name)
        with write_upload(service.store, body, job.file_name) as path:
            uploaded = _read_file(service, job, path)
        if job.model not in service.store.models:
            parameters = msgspec.json.encode(uploaded.parameters, order="deterministic")
            creation = CreateRequest(job.model, job.teacher, kind=uploaded.kind, parameters=parameters)
            service.writer.submit(creation).result()
            is_created = True
        for batch in uploaded.split(choose_batch_size(job.n_rows)):
            done = service.writer.submit(LearnRequest(job.model, job.teacher, rows=batch)).result()
            learned.append(done.id)
            job.rows_learned += len(batch)
    except Exception as error:
        job.error = _explain_failure(error, job.file_name)
        _take_back(service, job, learned, is_created)
    finally:
        job.is_done = True


def choose_batch_size(n_rows: int) -> int:
    """Return the number of rows per step: few steps are fast, several show progress and do not block other requests.

    >>> choose_batch_size(500), choose_batch_size(32_000), choose_batch_size(10**6)
    (2000, 4000, 10000)
    """
    return min(max(n_rows // STEPS_PER_JOB, MIN_ROWS_PER_STEP), MAX_ROWS_PER_REQUEST)


def _take_back(service: Service, job: TrainingJob, learned: list[int], is_created: bool) -> None:
    """Roll a job back: delete the model if the job created it, otherwise forget the rows of the job."""
    try:
        if is_created:
            service.writer.submit(DeleteRequest(job.model, job.teacher)).result()
            return
        for number in reversed(learned):
            service.writer.submit(ForgetRequest(job.model, job.teacher, target=number)).result()
    except PrioryError as error:
        job.error += f"; what was learned before that could not be taken back: {error}"


def _check_suffix(file_name: str) -> None:
    suffix = Path(file_name).suffix.lower()
    if suffix not in UPLOAD_SUFFIXES:
        raise DataError(f"files of the kind {suffix!r} cannot be read; give one of {', '.join(UPLOAD_SUFFIXES)}")


def _explain_failure(error: Exception, file_name: str) -> str:
    if isinstance(error, PrioryError):
        return str(error)
    _logger.error("unexpected %s while an upload was learned", type(error).__name__)
    return f"{file_name}: cannot be learned"


def read_unlabelled_rows(service: Service, model: ServedModel, body: bytes, file_name: str) -> list[str | Row]:
    """Read the rows of a file with the columns of a model, without labels."""
    _check_suffix(file_name)
    with write_upload(service.store, body, file_name) as path:
        opened = FileTask(path).open()
        columns = _match_columns(model, opened, ())
        chunks = opened.read_chunks(find_needed_columns(opened, columns))
        return [row for chunk in chunks for row in _list_rows(columns, chunk)]


def _match_columns(model: ServedModel, rows: FileRows, others: tuple[str, ...]) -> ModelColumns:
    """Return the columns of a model in a file; a text model takes the only column under any name."""
    columns = get_model_columns(model.estimator)
    features = [name for name in rows.names if name not in (*others, *(DOCUMENT_COLUMNS if rows.is_documents else ()))]
    if columns.is_one_text and len(features) == 1:
        return replace(columns, kinds={features[0]: "text"})
    return columns


def _read_file(service: Service, job: TrainingJob, path: Path) -> UploadedRows:
    rows = FileTask(path).open()
    known = service.store.models.get(job.model)
    options = _choose_columns(job, rows)
    others = () if job.label is not None else (options.find_target(rows),)
    if known is not None and known.is_fitted:
        # a fitted model determines the columns
        columns = _match_columns(known, rows, others)
        chunks = rows.read_chunks(find_needed_columns(rows, columns, *others))
    else:
        names = tuple(name for name in rows.names if name not in DOCUMENT_COLUMNS)
        if others:
            names = options.find_features(rows)
        # a new model: infer the kinds of the columns from the first chunk
        first, chunks = peek_first(rows.read_chunks((*others, *names)))
        columns = infer_columns(first, names, options, for_audit=True).columns  # keep all cells of a row
    found: list[str | Row] = []
    labels: list[str] = []
    reader = LabelReader(others[0], options) if others else None
    for chunk in chunks:
        if reader is not None:
            group, chunk = reader.read(chunk)
            labels += reader.names[group].tolist()
        found += _list_rows(columns, chunk)
    if not found:
        raise DataError(f"{job.file_name}: has no rows with a label")
    job.n_rows, job.rows_skipped = len(found), 0 if reader is None else reader.n_unlabelled
    kind: ModelKind = "text" if columns.is_one_text else "table"
    if known is not None and known.entry.kind != kind:
        raise DataError(
            f"the model {job.model} takes {'texts' if kind == 'table' else 'rows of a table'}; choose another"
        )
    parameters: dict[str, object] = {} if kind == "text" else {"families": declare_column_families(columns, options)}
    return UploadedRows(kind, parameters, tuple(found), tuple(labels) or (str(job.label),) * len(found))


def _choose_columns(job: TrainingJob, rows: FileRows) -> ColumnOptions:
    if job.label is None and job.target is None and not rows.is_documents:
        raise DataError(f"which column has the labels? Name one of {format_names(rows.names)}")
    if job.label is None and rows.is_documents:
        raise DataError("mail has no labels of its own: say which class all of these messages belong to")
    return ColumnOptions(target=job.target, skip_unlabelled=True)


def _list_rows(columns: ModelColumns, chunk: RowChunk) -> list[str | Row]:
    rows = columns.read_input_rows(chunk)
    return list(rows) if isinstance(rows, list) else rows.to_pylist()
