"""Back up the data folder of a running service, and restore it without the rows that were forgotten since.

A backup is a tar archive of the journal and the snapshots of one moment. Rows that were forgotten after it was made are
still in it, so a restore needs the list of erased rows: their places in the journal, without any content.
"""

from __future__ import annotations

import os
import sqlite3
import tarfile
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from priory.errors import DataError, ModelFileError
from priory.service.changes import DeleteRequest, ForgetRequest
from priory.service.journal import BUSY_TIMEOUT_SECONDS, Journal
from priory.service.labelled_rows import decode_row_batch, join_row_batches
from priory.service.model_store import ModelStore
from priory.service.writer import Writer

JOURNAL_NAME, SNAPSHOT_FOLDER = "journal.sqlite", "models"
TEACHER = "restore"


class ErasedRow(msgspec.Struct, frozen=True, array_like=True):
    """The place of a row in the journal, and the time of the event that learned it."""

    event: int
    position: int
    time: float


class Erasures(msgspec.Struct, frozen=True):
    """What a service has erased: rows, deleted models, and rows of models that began as files."""

    rows: list[ErasedRow] = []
    models: list[int] = []
    unlisted: list[str] = []  # one line for each event that forgot rows which are not in the journal

    @classmethod
    def parse(cls, text: bytes) -> Erasures:
        """Read a list that `to_json` has written."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.MsgspecError as error:
            raise DataError(f"the list of erased rows cannot be read: {error}") from None

    def to_json(self) -> bytes:
        """The list as JSON."""
        return msgspec.json.encode(self)


def list_erasures(folder: Path) -> Erasures:
    """Read from a data folder what has been erased; the service may be running."""
    with closing(_open_for_reading(folder)) as connection:
        rows = connection.execute(
            "SELECT event, position, time FROM erased_row JOIN event ON event = number ORDER BY event, position"
        )
        erased = [ErasedRow(*row) for row in rows]
        deleted = [number for (number,) in connection.execute("SELECT number FROM model WHERE deleted = 1")]
        files = connection.execute(
            "SELECT event.number, name, n_rows FROM event JOIN model ON model = model.number "
            "WHERE operation = 'forget' AND has_base = 1 AND deleted = 0"
        )
        unlisted = [f"event {number}: {name} forgot {count} rows" for number, name, count in files]
    return Erasures(erased, deleted, unlisted)


def back_up(folder: Path, archive: Path) -> None:
    """Write journal and snapshots of one moment to an archive; the service may be running.

    Changes wait while the copies are made. A snapshot is never ahead of the journal, because it is written after its
    event is committed, and no row is erased before the snapshot without it exists; both hold while changes wait.
    """
    new = archive.with_name(archive.name + ".new")
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch, closing(_open_for_reading(folder)) as reader:
        copy = Path(scratch, JOURNAL_NAME)
        with closing(sqlite3.connect(folder / JOURNAL_NAME, timeout=BUSY_TIMEOUT_SECONDS)) as lock:
            lock.execute("BEGIN IMMEDIATE")
            with closing(sqlite3.connect(copy)) as target:
                reader.backup(target)
            with tarfile.open(new, "w") as tar:
                tar.add(copy, JOURNAL_NAME)
                for snapshot in sorted((folder / SNAPSHOT_FOLDER).glob("*.priory")):
                    tar.add(snapshot, f"{SNAPSHOT_FOLDER}/{snapshot.name}")
    with new.open("rb") as written:
        os.fsync(written.fileno())
    new.replace(archive)


def _open_for_reading(folder: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{_find_journal(folder)}?mode=ro", uri=True, timeout=BUSY_TIMEOUT_SECONDS)


def _find_journal(folder: Path) -> Path:
    path = folder / JOURNAL_NAME
    if not path.exists():
        raise DataError(f"{folder}: is not the data folder of a service")
    return path


def restore(archive: Path, folder: Path, erasures: Erasures) -> int:
    """Restore a backup into a new folder, and erase again what was erased since; return the number of rows erased."""
    if folder.exists() and any(folder.iterdir()):
        raise DataError(f"{folder}: is not empty; restore into a new folder")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _unpack(archive, folder)
    store = ModelStore(folder)
    writer = Writer(store)
    try:
        for model in list(store.models.values()):
            if model.entry.number in erasures.models:
                writer.submit(DeleteRequest(model.entry.name, TEACHER)).result()
        return sum(
            _erase_rows(store, writer, name, model.entry.number, erasures.rows) for name, model in store.models.items()
        )
    finally:
        writer.close()
        store.close()


def _unpack(archive: Path, folder: Path) -> None:
    try:
        with tarfile.open(archive) as tar:
            names = tar.getnames()
            if JOURNAL_NAME not in names:
                raise DataError(f"{archive}: is not a backup of a service")
            tar.extractall(folder, filter="data")
    except tarfile.TarError as error:
        raise ModelFileError(f"{archive}: cannot be read: {error}") from None


def _erase_rows(store: ModelStore, writer: Writer, name: str, model: int, listed: Sequence[ErasedRow]) -> int:
    """Forget the listed rows of a model that the backup still holds."""
    found = []
    for number in sorted({row.event for row in listed}):
        event = store.journal.find_event(model, number)
        if event is None or event.body is None:
            continue
        positions = {row.position for row in listed if row.event == number}
        if any(row.time != event.time for row in listed if row.event == number):
            raise DataError("the list of erased rows is of another service; nothing was erased")
        # rows erased before the backup have left the body: the others are in the order of their positions
        left = [place.position for place in store.journal.list_rows(number)]
        found.append(decode_row_batch(event.body).keep(position in positions for position in left))
    rows = [batch for batch in found if len(batch)]
    if not rows:
        return 0
    writer.submit(ForgetRequest(name, TEACHER, rows=join_row_batches(rows))).result()
    return sum(map(len, rows))


def upgrade(folder: Path) -> int:
    """Bring the journal of a data folder to the version of this program; return the version it had."""
    return Journal.upgrade(_find_journal(folder))
