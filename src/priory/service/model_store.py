"""The models of a data folder: in memory, and on disk as snapshots that name the last event they contain.

    FOLDER/journal.sqlite         every change since each model was created
    FOLDER/models/17.priory       a snapshot of the model that event 17 created
    FOLDER/scratch                temporary files of requests; emptied on start

A snapshot is a model file with the note `version`. On start, a model is loaded from its snapshot and later events are
replayed. File names are numbers: names from requests are never part of a path.
"""

from __future__ import annotations

import shutil
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path

from priory.errors import ModelFileError, ServiceError
from priory.service.journal import Journal, ModelEntry
from priory.service.served_model import ServedModel, create_model, replay_events
from priory.storage import load, save
from priory.storage.file_locks import lock_file

VERSION_NOTE = "version"  # the number of the last event in a snapshot
LOCK_TIMEOUT_SECONDS_AT_START = 10.0  # a stopping service may still write snapshots
PROBE_BYTES = 1 << 16
EVENTS_PER_SNAPSHOT_AT_START = 100  # so that the next start need not replay these events again


class ModelStore:
    """All models of a folder. Only the writer changes them; other threads read without locking."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.models: dict[str, ServedModel] = {}
        self._snapshot_versions: dict[int, int] = {}  # model number -> version of its snapshot
        self._snapshot_lock = threading.Lock()
        self.snapshot_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder_lock = lock_file(folder / "service", LOCK_TIMEOUT_SECONDS_AT_START)
        self._folder_lock.__enter__()  # held until `close`: two services would not see each other's changes
        try:
            self._empty_scratch_folder()
            self.journal = Journal(folder / "journal.sqlite")
            self._readers = Journal(folder / "journal.sqlite")  # does not wait for the writer
            self.reader_lock = threading.Lock()
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

    @property
    def reader(self) -> Journal:
        """A connection for reading; use it under ``reader_lock``."""
        return self._readers

    def close(self) -> None:
        self._readers.close()
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
