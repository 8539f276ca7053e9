"""State that the pages keep between requests: training jobs, learned rows, and rows that wait for a label."""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from priory.errors import DataError, PrioryError, ServiceError
from priory.learning.record_export import export_sample
from priory.service.changes import CreateRequest, DeleteRequest, ForgetRequest, LearnRequest
from priory.service.handlers import make_base, write_upload
from priory.service.labelled_rows import (
    ModelKind,
    Row,
    RowBatch,
    RowLabel,
    contains_phrase,
    convert_to_input,
    decode_row_batch,
)
from priory.service.messages import MAX_ROWS_PER_REQUEST
from priory.service.model_store import ModelStore, ServedModel
from priory.sources import FileRows, RowChunk
from priory.sources.byte_streams import peek_first
from priory.sources.column_inference import infer_columns
from priory.sources.column_types import ColumnOptions, LabelReader, ModelColumns, declare_column_families
from priory.sources.discovery import format_names
from priory.sources.document_files import LABEL_COLUMN, PATH_COLUMN
from priory.workflows.model_files import FileTask, find_needed_columns, get_model_columns, load_classifier

if TYPE_CHECKING:
    from priory.service.server import Service


UPLOAD_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".arrow", ".mbox", ".eml")
MODEL_SUFFIX = ".priory"
TYPED_FILE = "typed.csv"  # the name that page.js gives to typed rows
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


def run_training_job(service: Service, job: TrainingJob, body: bytes) -> None:
    """Learn all rows of a file, or none: the whole file is read first, and later failures are rolled back."""
    learned: list[int] = []  # events to roll back after a failure
    is_created = False
    try:
        if job.file_name.lower().endswith(MODEL_SUFFIX):
            _add_model_file(service, job, body)
            return
        _check_suffix(job.file_name)
        with write_upload(service.store, body, job.file_name) as path:
            rows, new_parameters = _read_file(service, job, path)
        if job.model not in service.store.models:
            parameters = msgspec.json.encode(new_parameters, order="deterministic")
            creation = CreateRequest(job.model, job.teacher, kind=rows.kind, parameters=parameters)
            service.writer.submit(creation).result()
            is_created = True
        step = choose_batch_size(job.n_rows)
        for start in range(0, len(rows), step):
            batch = RowBatch(rows.kind, rows.rows[start : start + step], (rows.labels or ())[start : start + step])
            done = service.writer.submit(LearnRequest(job.model, job.teacher, rows=batch)).result()
            learned.append(done.id)
            job.rows_learned += len(batch)
    except Exception as error:
        job.error = _explain_failure(error, job.file_name)
        _take_back(service, job, learned, is_created)
    finally:
        job.is_done = True


def _add_model_file(service: Service, job: TrainingJob, body: bytes) -> None:
    with write_upload(service.store, body, job.file_name) as path:
        base = make_base(job.model, load_classifier(path))
    entry = base.entry
    creation = CreateRequest(job.model, job.teacher, kind=entry.kind, parameters=entry.parameters, base=base)
    service.writer.submit(creation).result()
    job.n_rows = job.rows_learned = int(base.n_rows)


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


def read_given_rows(
    service: Service, model: ServedModel, body: bytes, file_name: str, target: str | None = None
) -> tuple[list[str | Row], list[str]]:
    """Read the rows of a file with the columns of a model, and their labels, if there is a target.

    Typed texts stand in lines of their own, and typed tables are read as CSV.
    """
    if not body.strip():
        raise DataError("choose a file that is not empty, or type rows")
    if file_name == TYPED_FILE and model.entry.kind == "text" and target is None:
        return [line.strip() for line in body.decode("utf-8", "replace").splitlines() if line.strip()], []
    model.check_fitted()
    _check_suffix(file_name)
    with write_upload(service.store, body, file_name) as path:
        opened, others = FileTask(path).open(), () if target is None else (target,)
        columns = _match_columns(model, opened, others)
        reader = LabelReader(target, ColumnOptions(skip_unlabelled=True, labels_as_text=True)) if target else None
        return _list_labelled_rows(columns, opened.read_chunks(find_needed_columns(opened, columns, *others)), reader)


def _match_columns(model: ServedModel, rows: FileRows, others: tuple[str, ...]) -> ModelColumns:
    """Return the columns of a model in a file; a text model takes the only column under any name."""
    columns = get_model_columns(model.estimator)
    features = [name for name in rows.names if name not in (*others, *(DOCUMENT_COLUMNS if rows.is_documents else ()))]
    if columns.is_one_text and len(features) == 1:
        return replace(columns, kinds={features[0]: "text"})
    return columns


def _read_file(service: Service, job: TrainingJob, path: Path) -> tuple[RowBatch, dict[str, object]]:
    """The labelled rows of a file, and the parameters of a new model for them."""
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
    reader = LabelReader(others[0], options) if others else None
    found, labels = _list_labelled_rows(columns, chunks, reader)
    if not found:
        raise DataError(f"{job.file_name}: has no rows with a label")
    job.n_rows, job.rows_skipped = len(found), 0 if reader is None else reader.n_unlabelled
    kind: ModelKind = "text" if columns.is_one_text else "table"
    if known is not None and known.entry.kind != kind:
        raise DataError(
            f"the model {job.model} takes {'texts' if kind == 'table' else 'rows of a table'}; choose another"
        )
    parameters: dict[str, object] = {} if kind == "text" else {"families": declare_column_families(columns, options)}
    return RowBatch(kind, tuple(found), tuple(labels) or (str(job.label),) * len(found)), parameters


def _choose_columns(job: TrainingJob, rows: FileRows) -> ColumnOptions:
    if job.label is None and job.target is None and not rows.is_documents:
        raise DataError(f"which column has the labels? Name one of {format_names(rows.names)}")
    if job.label is None and rows.is_documents:
        raise DataError("mail has no labels of its own: say which class all of these messages belong to")
    return ColumnOptions(target=job.target, skip_unlabelled=True)


def _list_labelled_rows(
    columns: ModelColumns, chunks: Iterable[RowChunk], reader: LabelReader | None
) -> tuple[list[str | Row], list[str]]:
    found: list[str | Row] = []
    labels: list[str] = []
    for chunk in chunks:
        if reader is not None:
            group, chunk = reader.read(chunk)
            labels += reader.names[group].tolist()
        rows = columns.read_input_rows(chunk)
        found += rows if isinstance(rows, list) else rows.to_pylist()
    return found, labels


EVENTS_PER_READ = 500
LATEST_EVENT = 2**53  # larger than any event number, and exact in JavaScript


@dataclass(frozen=True)
class LearnedRow:
    """A row with its label and its learn event; ``digest`` is the hash that identifies it.

    Rows in the sample of a model that began as a file have the event 0; of texts it has only the words, and no digest.
    """

    event: int
    row: str | Row
    label: RowLabel
    digest: str
    is_undone: bool


def iterate_learned_rows(store: ModelStore, model: ServedModel) -> Iterator[LearnedRow]:
    """Yield the rows of the journal, latest first, including those whose event was undone."""
    before = LATEST_EVENT
    while True:
        # in pages, so that others read in between
        events = store.reader.read_events(model.entry.number, before, EVENTS_PER_READ, newest_first=True)
        for event in events:
            if event.operation == "learn" and event.body is not None:
                batch = decode_row_batch(event.body)
                for row, label, digest in zip(batch.rows, batch.labels or (), batch.digest_rows(), strict=True):
                    yield LearnedRow(event.number, row, label, digest.hex(), event.undone_by is not None)
        if len(events) < EVENTS_PER_READ:
            return
        before = events[-1].number


def iterate_kept_rows(model: ServedModel) -> Iterator[LearnedRow]:
    """Yield the rows in the sample of a model that began as a file, each as often as it was learned."""
    learned = model.estimator.learned_
    sample = learned.statistics.sample if model.entry.has_base else None
    for kept in () if sample is None else export_sample(learned, sample)["rows"].values():
        row: Row = {name: " ".join(c["tokens"]) if isinstance(c, dict) else c for name, c in kept["cells"].items()}
        [digest] = RowBatch("table", (row,), (kept["class"],)).digest_rows()
        is_whole = not any(isinstance(cell, dict) for cell in kept["cells"].values())
        found = LearnedRow(0, row, kept["class"], digest.hex() if is_whole else "", False)
        yield from repeat(found, int(float(kept["weight"])) if is_whole else 1)


def read_latest_rows(store: ModelStore, model: ServedModel, max_rows: int) -> RowBatch:
    """Return the latest labelled rows that were not undone, as one batch."""
    rows = (row for row in iterate_learned_rows(store, model) if not row.is_undone and row.label is not None)
    return join_learned_rows(model, islice(rows, max_rows))


def search_learned_rows(store: ModelStore, model: ServedModel, phrase: str, max_rows: int) -> list[LearnedRow]:
    """Return distinct rows that contain a phrase in a cell or in the label, latest first."""
    found: dict[str, LearnedRow] = {}
    for row in iterate_learned_rows(store, model):
        # show a learned occurrence rather than an undone one
        if contains_phrase(row.row, row.label, phrase) and (row.digest not in found or found[row.digest].is_undone):
            found[row.digest] = row
        if len(found) == max_rows:
            break
    words = phrase.split()
    for row in iterate_kept_rows(model):
        if len(found) < max_rows and all(contains_phrase(row.row, row.label, word) for word in words):
            found.setdefault(row.digest or str(row.row), row)
    return list(found.values())


def find_learned_rows(store: ModelStore, model: ServedModel, digests: Iterable[str]) -> list[LearnedRow]:
    """Return every occurrence of the rows with these hashes, undone or not."""
    wanted = set(digests)
    found = [row for row in iterate_learned_rows(store, model) if row.digest in wanted]
    live = Counter(row.digest for row in found if not row.is_undone)
    for row in iterate_kept_rows(model) if wanted else ():
        live[row.digest] -= 1  # the sample counts what was learned here, too
        if row.digest in wanted and live[row.digest] < 0:
            found.append(row)
    return found


def join_learned_rows(model: ServedModel, rows: Iterable[LearnedRow]) -> RowBatch:
    listed = list(rows)
    return RowBatch(model.entry.kind, tuple(row.row for row in listed), tuple(row.label for row in listed))


MAX_QUEUE_ROWS = 5000
MAX_STEPS_BACK = 1000  # labels that can be undone
LABELS_PER_RANKING = 10  # after so many labels rows are ranked again


@dataclass(frozen=True)
class QueueItem:
    """A row without a label, which the model may have learned as such."""

    id: int
    row: str | Row
    is_learned: bool = False


@dataclass
class LabelQueue:
    """Rows to be labelled, in memory only: nothing is written to disk before a row is labelled."""

    items: dict[int, QueueItem] = field(default_factory=dict)
    labelled: list[tuple[QueueItem, int]] = field(default_factory=list)  # with the learn event
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _ranking: list[int] = field(default_factory=list)  # ids in order
    _labels_since: int = 0  # the number of labels since rows were ranked

    def add(self, rows: Iterable[str | Row], model: ServedModel) -> int:
        """Add rows to the queue of a model, and return their number."""
        new = [QueueItem(next(self._numbers), row) for row in rows]
        # ranking predicts all rows of the queue at once
        max_rows = min(MAX_QUEUE_ROWS, model.max_rows) if model.is_fitted else MAX_QUEUE_ROWS
        if len(self.items) + len(new) > max_rows:
            raise DataError(f"the queue holds {max_rows:,} rows; label some of them first, or add fewer")
        self.items |= {item.id: item for item in new}
        return len(new)

    def search(self, phrase: str) -> list[QueueItem]:
        """Return the rows that contain a phrase."""
        return [item for item in self.items.values() if contains_phrase(item.row, None, phrase)]

    def rank(self, model: ServedModel) -> list[QueueItem]:
        """Return all rows in the order of `ask`; an unfitted model keeps the order."""
        items = dict(self.items)  # other requests may remove rows meanwhile
        if not items.keys() <= set(self._ranking) or self._labels_since >= LABELS_PER_RANKING:
            self._ranking, self._labels_since = list(items), 0
            if items and model.is_fitted:
                rows = RowBatch(model.entry.kind, tuple(item.row for item in items.values()))
                found = model.estimator.ask(convert_to_input(rows, model.estimator), len(rows))
                self._ranking = [self._ranking[row] for row in found.rows.tolist()]
        return [items[number] for number in self._ranking if number in items]

    def take(self, number: int) -> QueueItem:
        """Remove a row from the queue."""
        if number not in self.items:
            raise ServiceError(409, "this row is not in the queue any more")
        return self.items.pop(number)

    def note(self, item: QueueItem, event: int) -> None:
        """Remember the event that learned a row, for undo."""
        self.labelled = [*self.labelled[1 - MAX_STEPS_BACK :], (item, event)]
        self._labels_since += 1

    def note_learned(self, items: Iterable[QueueItem]) -> None:
        """Remember that the model has learned rows without label, as long as they wait."""
        self.items |= {item.id: replace(item, is_learned=True) for item in items if item.id in self.items}

    def put_back(self, item: QueueItem) -> None:
        self.items[item.id] = item

    def discard_forgotten(self, rows: Iterable[str | Row]) -> None:
        """Drop forgotten rows, so that undo cannot show them again."""
        gone = list(rows)
        self.labelled = [(item, event) for item, event in self.labelled if item.row not in gone]
        self.items = {number: item for number, item in self.items.items() if item.row not in gone}


Judgement = dict[str, Any]  # what the template of the scores shows
MAX_JUDGEMENTS = 16  # kept in memory
MAX_TRAINING_JOBS = 64


@dataclass
class PageState:
    """State of the web pages in memory; it is lost when the service stops."""

    queues: dict[int, LabelQueue] = field(default_factory=dict)  # by model number
    # by (model number, version); a task, so that several requests wait for one evaluation
    judgements: OrderedDict[tuple[int, int], asyncio.Task[Judgement]] = field(default_factory=OrderedDict)
    jobs: OrderedDict[str, TrainingJob] = field(default_factory=OrderedDict)  # by job id, oldest first
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def add_job(self, job: TrainingJob) -> None:
        self.jobs[job.id] = job
        while len(self.jobs) > MAX_TRAINING_JOBS:
            self.jobs.popitem(last=False)
