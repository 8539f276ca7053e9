"""The models of a data folder: in memory, and on disk as snapshots that name the last event they contain.

    FOLDER/journal.sqlite         every change since each model was created
    FOLDER/models/17.priory       a snapshot of the model that event 17 created
    FOLDER/models/17.salts        the salt of its last receipt, if the service signs receipts
    FOLDER/scratch                temporary files of requests; emptied on start

A snapshot is a model file with the note `version`. On start, a model is loaded from its snapshot and later events are
replayed. File names are numbers: names from requests are never part of a path.
A `ServedModel` is immutable: a change makes the next version of it.
"""

from __future__ import annotations

import copy
import shutil
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

import priory
from priory.errors import DataError, ModelFileError, PrioryError, ServiceError
from priory.service.journal import Event, Journal, ModelEntry, reset_change_counter
from priory.service.labelled_rows import RowBatch, convert_to_input, decode_row_batch, join_row_batches
from priory.storage import load, save
from priory.storage.file_locks import lock_file
from priory.storage.receipts import Issued, ReceiptBook, continue_chain
from priory.storage.signatures import load_signature_key

if TYPE_CHECKING:
    from priory.text.normal_forms import Reader
    from priory.workflows.model_files import TableOrTextClassifier


MAX_PROBABILITIES = 500_000  # rows x classes of one answer


@dataclass(frozen=True)
class ServedModel:
    """A model at one version; ``version`` is the number of the last applied event."""

    entry: ModelEntry
    estimator: TableOrTextClassifier
    version: int

    @property
    def is_fitted(self) -> bool:
        return hasattr(self.estimator, "statistics_")

    @property
    def reader(self) -> Reader:
        """How the model reads mail."""
        return getattr(self.estimator, "reader", "text")

    @property
    def n_rows(self) -> float:
        """The total weight of the learned rows."""
        return float(self.estimator.class_count_.sum()) if self.is_fitted else 0.0

    def learn(self, rows: RowBatch, version: int) -> ServedModel:
        """The model after it has learned these rows."""
        draft = copy.copy(self.estimator)
        draft.partial_fit(convert_to_input(rows, draft), rows.targets)
        return replace(self, estimator=draft, version=version)

    def forget(self, rows: RowBatch, version: int) -> ServedModel:
        """Return the model as if it had never learned these rows."""
        self.check_fitted()
        draft = copy.copy(self.estimator)
        draft.forget(convert_to_input(rows, draft), rows.targets)
        return replace(self, estimator=draft, version=version)

    def forget_with_receipt(
        self, rows: RowBatch, version: int, book: ReceiptBook, last: Sequence[dict[str, Any]]
    ) -> tuple[ServedModel, list[Issued]]:
        """Forget rows, and issue a receipt that follows the last one, after one for what was learned since."""
        self.check_fitted()
        draft = copy.copy(self.estimator)
        for receipt in last:
            continue_chain(draft, receipt)
        issued = [] if book.is_current(draft) else [book.issue_state(draft)]
        issued.append(book.forget(draft, convert_to_input(rows, draft), rows.targets))
        return replace(self, estimator=draft, version=version), issued

    def check_fitted(self) -> None:
        if not self.is_fitted:
            raise ServiceError(409, "the model knows no rows yet; let it learn some first")

    @property
    def max_rows(self) -> int:
        """The number of rows that may be predicted at once, so that (rows, classes) fits into memory."""
        self.check_fitted()
        return max(1, MAX_PROBABILITIES // len(self.estimator.classes_))

    def check_row_count(self, n_rows: int) -> None:
        """Raise ServiceError (413) if there are more than `max_rows` rows."""
        if n_rows > self.max_rows:
            n_classes = len(self.estimator.classes_)
            raise ServiceError(413, f"with {n_classes:,} classes send at most {self.max_rows:,} rows at a time")


def make_estimator(kind: str, parameters: dict[str, Any]) -> TableOrTextClassifier:
    """Create an estimator of this kind; unknown parameters are an error."""
    estimator = priory.TextClassifier() if kind == "text" else priory.NaiveBayes()
    unknown = [name for name in parameters if name not in estimator.get_params()]
    if unknown:
        raise DataError(f"a model of kind {kind!r} has no parameter {unknown[0]!r}")
    # JSON has no tuples, and scikit-learn's own parameters of two numbers are tuples
    given = {name: tuple(value) if name == "ngram_range" else value for name, value in parameters.items()}
    return estimator.set_params(**given)


def create_model(entry: ModelEntry) -> ServedModel:
    """Return a new model without rows."""
    return ServedModel(entry, make_estimator(entry.kind, msgspec.json.decode(entry.parameters)), entry.number)


def replay_events(model: ServedModel, journal: Journal) -> ServedModel:
    """Apply all later events of the journal; events of one batch are applied in one step, as originally."""
    events = journal.read_events(model.entry.number, model.version)
    for _, batch in groupby(events, key=lambda event: event.batch):
        model = apply_batch(model, list(batch), journal)
    return model


def apply_batch(model: ServedModel, batch: Sequence[Event], journal: Journal) -> ServedModel:
    """Apply a batch of events: several learn events together, or one event of another kind."""
    event, version = batch[0], batch[-1].number
    if event.operation == "learn":
        # an erased event has no body: its rows must not be learned again
        bodies = [decode_row_batch(event.body) for event in batch if event.body is not None]
        return model.learn(join_row_batches(bodies), version) if bodies else replace(model, version=version)
    rows, is_learned = read_change(event, journal)
    if rows is None or not len(rows):
        return replace(model, version=version)
    return (model.learn if is_learned else model.forget)(rows, version)


def read_change(event: Event, journal: Journal) -> tuple[RowBatch | None, bool]:
    """Return the rows that an event adds or removes (None if erased), and whether it adds them.

    An undo event is the opposite of its target.
    """
    if event.operation == "undo":
        target = journal.find_event(event.model, event.target or 0)
        if target is None:
            return None, False
        rows, was_learned = read_change(target, journal)
        return rows, not was_learned
    return None if event.body is None else decode_row_batch(event.body), event.operation == "learn"


VERSION_NOTE = "version"  # the number of the last event in a snapshot
LOCK_TIMEOUT_SECONDS_AT_START = 10.0  # a stopping service may still write snapshots
PROBE_BYTES = 1 << 16
EVENTS_PER_SNAPSHOT_AT_START = 100  # so that the next start need not replay these events again


class ModelStore:
    """All models of a folder. Only the writer changes them; other threads read without locking."""

    def __init__(self, folder: Path, sign_key: Path | None = None) -> None:
        if sign_key is not None:
            load_signature_key(sign_key)  # raises before anything is served
        self.folder, self._sign_key = folder, sign_key
        self.models: dict[str, ServedModel] = {}
        self._snapshot_versions: dict[int, int] = {}  # model number -> version of its snapshot
        self._snapshot_lock = threading.Lock()
        self.snapshot_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder_lock = lock_file(folder / "service", LOCK_TIMEOUT_SECONDS_AT_START)
        self._folder_lock.__enter__()  # held until `close`: two services would not see each other's changes
        try:
            self._empty_scratch_folder()
            reset_change_counter(folder / "journal.sqlite")
            self.journal = Journal(folder / "journal.sqlite")
            self.reader = Journal(folder / "journal.sqlite")  # does not wait for the writer
            self._recover()
        except BaseException as error:
            self._folder_lock.__exit__(None, None, None)
            if isinstance(error, sqlite3.Error):
                raise ModelFileError(f"{folder / 'journal.sqlite'}: cannot be used: {error}") from error
            raise

    @property
    def snapshot_folder(self) -> Path:
        return self.folder / "models"

    @property
    def scratch_folder(self) -> Path:
        """The folder for temporary files of requests."""
        return self.folder / "scratch"

    def close(self) -> None:
        self.reader.close()
        self.journal.close()
        self._folder_lock.__exit__(None, None, None)

    def probe_disk(self) -> None:
        """Raise OSError if a small file cannot be written into the folder."""
        path = self.scratch_folder / "probe"
        try:
            path.write_bytes(bytes(PROBE_BYTES))
        finally:
            with suppress(OSError):
                path.unlink()

    def get(self, name: str) -> ServedModel:
        try:
            return self.models[name]
        except KeyError:
            raise ServiceError(404, "there is no model of this name") from None

    def publish(self, *models: ServedModel) -> None:
        """Make these models the current ones."""
        # a new dict, so that readers never see one that is being modified
        self.models = {**self.models, **{model.entry.name: model for model in models}}

    def remove(self, model: ServedModel) -> None:
        """Remove a model and its snapshot."""
        self.models = {name: other for name, other in self.models.items() if name != model.entry.name}
        with suppress(OSError):  # the next start removes orphaned snapshots
            self.remove_snapshot(model.entry)

    def open_book(self, model: ServedModel | None) -> ReceiptBook | None:
        """The receipts of a model, whose salts are beside its snapshot; None if the service signs none."""
        if model is None or self._sign_key is None:
            return None
        return ReceiptBook(self._sign_key, self.find_snapshot(model.entry).with_suffix(".salts"))

    # -- snapshots -----------------------------------------------------------------------------------------------

    def find_snapshot(self, entry: ModelEntry) -> Path:
        return self.snapshot_folder / f"{entry.number}.priory"

    def save_snapshot(self, model: ServedModel) -> None:
        """Write a snapshot of a model, unless a later one has been written already."""
        with self._snapshot_lock:
            if self._snapshot_versions.get(model.entry.number, -1) < model.version:
                save(
                    model.estimator, self.find_snapshot(model.entry), notes={VERSION_NOTE: str(model.version).encode()}
                )
                self._snapshot_versions[model.entry.number] = model.version

    def remove_snapshot(self, entry: ModelEntry) -> None:
        with self._snapshot_lock:
            self.find_snapshot(entry).unlink(missing_ok=True)
            self.find_snapshot(entry).with_suffix(".salts").unlink(missing_ok=True)
            self._snapshot_versions.pop(entry.number, None)

    def count_events_since_snapshot(self, model: ServedModel) -> int:
        """Return how far a model's version is ahead of its snapshot."""
        return model.version - self._snapshot_versions.get(model.entry.number, model.entry.number)

    # -- starting ------------------------------------------------------------------------------------------------

    def _recover(self) -> None:
        entries = self.journal.list_models()
        self.publish(*(replay_events(self._load_snapshot(entry), self.journal) for entry in entries))
        for model in self.models.values():
            if self.count_events_since_snapshot(model) >= EVENTS_PER_SNAPSHOT_AT_START:
                with suppress(OSError):  # the journal is complete; the next start only takes longer
                    self.save_snapshot(model)
        names = {self.find_snapshot(entry).name for entry in entries}
        for path in self.snapshot_folder.iterdir():
            is_orphan = path.suffix == ".priory" and path.stem.isdigit() and path.name not in names
            if is_orphan or path.suffix == ".new":  # left by a deleted model or a killed service
                path.unlink()

    def _empty_scratch_folder(self) -> None:
        """Remove files of a killed service, which may contain rows that are to be forgotten."""
        if self.scratch_folder.exists():
            shutil.rmtree(self.scratch_folder)
        self.scratch_folder.mkdir(mode=0o700)

    def _load_snapshot(self, entry: ModelEntry) -> ServedModel:
        path = self.find_snapshot(entry)
        if not path.exists():
            if entry.has_base:
                # the rows of the base file are not in the journal
                raise ModelFileError(f"{path}: is missing; restore it from a backup")
            return create_model(entry)
        estimator = load(path)
        version = int(estimator.notes.get(VERSION_NOTE, b"0"))
        del estimator.notes
        self._snapshot_versions[entry.number] = version
        return ServedModel(entry, estimator, version)


SECONDS_OF_QUIET = 1.0  # after a change: changes that follow one another are followed once


class StandbyWorker:
    """A thread that prepares the current models; see `priory.learning.standby`."""

    def __init__(self, store: ModelStore) -> None:
        self._store = store
        self._is_due, self._is_closed = threading.Event(), threading.Event()
        self._is_due.set()  # the models that were loaded have no standby sets yet
        self._thread = threading.Thread(target=self._run, name="priory-standby", daemon=True)
        self._thread.start()

    def notify(self) -> None:
        """Prepare the models, after rows were forgotten."""
        self._is_due.set()

    def close(self) -> None:
        """Stop the thread, after the model that it is working on."""
        self._is_closed.set()
        self._is_due.set()
        self._thread.join()

    def _run(self) -> None:
        while self._is_due.wait() and not self._is_closed.wait(SECONDS_OF_QUIET):
            self._is_due.clear()
            for model in self._store.models.values():
                if model.is_fitted and not self._is_closed.is_set():
                    with suppress(PrioryError):  # the next answer derives its corrections, or says what is wrong
                        model.estimator.prepare_standby()
