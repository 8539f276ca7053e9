"""The journal: a SQLite database of all changes of all models, written to disk before a change is acknowledged.

    model         the models; each has the number of the event that created it
    event         the changes, numbered in order; `batch` is the number of the first event applied in the same step
    learned_row   the hash of each learned row, to find it again, until the row is erased
    erased_row    the place of each erased row, without its content: a restored backup erases it again
    answer        the answer to each request with an idempotency key, until a row of that request is erased
    receipt       the receipts of forgotten rows, numbered for each model; they do not show the rows

The write-ahead log is synchronised at every commit (``synchronous=FULL``). Erased content is overwritten
(``secure_delete``), and the file is then rebuilt (``VACUUM``), so that its layout does not depend on that content.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from priory.errors import ModelFileError
from priory.service.labelled_rows import ModelKind, decode_row_batch

APPLICATION_ID = 0x5052494F  # "PRIO", in the header of the file
SQLITE_MAGIC = b"SQLite format 3\0"
SCHEMA_VERSION = 3
BUSY_TIMEOUT_SECONDS = 30.0  # SQLite waits this long for a lock

SCHEMA = """
CREATE TABLE model (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, parameters BLOB NOT NULL,
    has_base INTEGER NOT NULL, deleted INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX model_name ON model (name) WHERE deleted = 0;
CREATE TABLE event (
    number INTEGER PRIMARY KEY, model INTEGER NOT NULL, operation TEXT NOT NULL, target INTEGER,
    n_rows INTEGER NOT NULL, body BLOB, batch INTEGER NOT NULL, teacher TEXT NOT NULL, time REAL NOT NULL,
    undone_by INTEGER, erasure TEXT NOT NULL DEFAULT 'no'
);
CREATE INDEX event_model ON event (model, number);
CREATE INDEX event_erasure ON event (erasure) WHERE erasure = 'due';
CREATE TABLE learned_row (
    digest BLOB NOT NULL, event INTEGER NOT NULL, position INTEGER NOT NULL, erasure TEXT NOT NULL DEFAULT 'no',
    PRIMARY KEY (digest, event, position)
) WITHOUT ROWID;
CREATE INDEX learned_row_event ON learned_row (event, position);
CREATE INDEX learned_row_erasure ON learned_row (event) WHERE erasure = 'due';
CREATE TABLE erased_row (
    event INTEGER NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (event, position)
) WITHOUT ROWID;
CREATE TABLE answer (
    model INTEGER NOT NULL, key TEXT NOT NULL, event INTEGER NOT NULL, digest BLOB NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (model, key)
) WITHOUT ROWID;
CREATE INDEX answer_event ON answer (event);
CREATE TABLE receipt (
    model INTEGER NOT NULL, counter INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (model, counter)
) WITHOUT ROWID;
"""

# statements that bring a journal from a version to the next one
UPGRADES = {
    2: "CREATE TABLE erased_row (event INTEGER NOT NULL, position INTEGER NOT NULL, PRIMARY KEY (event, position)) "
    "WITHOUT ROWID"
}

Operation = Literal["create", "learn", "forget", "undo", "delete"]
Erasure = Literal["no", "due", "done"]  # "due": marked, but traces may be left on disk
MODEL_COLUMNS = "number, name, kind, parameters, has_base"
EVENT_COLUMNS = "number, model, operation, target, n_rows, body, batch, teacher, time, undone_by, erasure"


@dataclass(frozen=True)
class ModelEntry:
    """A model as declared at its creation."""

    number: int  # of the event that created it
    name: str
    kind: ModelKind
    parameters: bytes  # JSON
    has_base: bool  # whether it began as a file, whose rows are not in the journal


@dataclass(frozen=True)
class Event:
    """One change of a model; ``body`` contains its rows until they are erased."""

    number: int
    model: int
    operation: Operation
    target: int | None  # the event that is undone or forgotten
    n_rows: int
    body: bytes | None  # encoded rows
    batch: int  # the number of the first event of its batch
    teacher: str  # the name of the token
    time: float  # seconds since 1970
    undone_by: int | None = None  # the event that undid this one
    erasure: Erasure = "no"


@dataclass(frozen=True)
class StoredAnswer:
    """The answer to a request with an idempotency key, and the hash of the request."""

    digest: bytes
    body: bytes  # JSON


@dataclass(frozen=True)
class RowPlace:
    """Position of a learned row in the journal, and whether its event was undone."""

    event: int
    position: int
    is_undone: bool


class Journal:
    """A connection to the journal. One thread writes; other threads read through their own connections."""

    def __init__(self, path: Path) -> None:
        self.path, self._lock = path, threading.Lock()  # several threads may read through one connection
        self._connection = _open_database(path)

    def close(self) -> None:
        self._connection.close()

    @staticmethod
    def upgrade(path: Path) -> int:
        """Bring a journal to the version of this program, in one transaction; return the version it had."""
        with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None)) as connection:
            before = int(connection.execute("PRAGMA user_version").fetchone()[0])
            connection.execute("BEGIN IMMEDIATE")
            for version in range(before, SCHEMA_VERSION):
                if version not in UPGRADES:
                    raise ModelFileError(f"{path}: has version {version}, which this program cannot upgrade")
                connection.execute(UPGRADES[version])
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute("COMMIT")
        return before

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all changes of the ``with`` block to disk when it ends, or none of them."""
        self._connection.execute("BEGIN IMMEDIATE")  # takes the write lock at once
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    # -- models --------------------------------------------------------------------------------------------------

    def add_model(self, entry: ModelEntry) -> None:
        values = (*vars(entry).values(),)  # fields and columns have the same order
        self._connection.execute(f"INSERT INTO model ({MODEL_COLUMNS}) VALUES (?, ?, ?, ?, ?)", values)

    def delete_model(self, number: int) -> None:
        """Mark a model as deleted, and erase all its rows."""
        self._connection.execute("UPDATE model SET deleted = 1, parameters = x'' WHERE number = ?", (number,))
        self._connection.execute(
            "UPDATE event SET body = NULL, erasure = 'done' WHERE model = ? AND operation != 'delete'", (number,)
        )
        self._connection.execute(
            "DELETE FROM learned_row WHERE event IN (SELECT number FROM event WHERE model = ?)", (number,)
        )
        self._connection.execute("DELETE FROM answer WHERE model = ?", (number,))
        self._connection.execute("DELETE FROM receipt WHERE model = ?", (number,))

    def list_models(self) -> list[ModelEntry]:
        rows = self._connection.execute(f"SELECT {MODEL_COLUMNS} FROM model WHERE deleted = 0 ORDER BY name")
        return [ModelEntry(number, name, kind, parameters, bool(base)) for number, name, kind, parameters, base in rows]

    # -- events --------------------------------------------------------------------------------------------------

    def find_last_number(self) -> int:
        return int(self._connection.execute("SELECT coalesce(max(number), 0) FROM event").fetchone()[0])

    def add_event(self, event: Event, row_digests: Sequence[bytes] = ()) -> None:
        values = (*vars(event).values(),)
        self._connection.execute(f"INSERT INTO event ({EVENT_COLUMNS}) VALUES ({', '.join('?' * len(values))})", values)
        self._connection.executemany(
            "INSERT INTO learned_row (digest, event, position) VALUES (?, ?, ?)",
            [(digest, event.number, position) for position, digest in enumerate(row_digests)],
        )

    def set_undone(self, number: int, undone_by: int | None) -> None:
        self._connection.execute("UPDATE event SET undone_by = ? WHERE number = ?", (undone_by, number))

    def _select_events(self, which: str, *values: object, columns: str = EVENT_COLUMNS) -> list[Event]:
        with self._lock:
            return [
                Event(*row) for row in self._connection.execute(f"SELECT {columns} FROM event WHERE {which}", values)
            ]

    def find_event(self, model: int, number: int) -> Event | None:
        return next(iter(self._select_events("model = ? AND number = ?", model, number)), None)

    def find_last_learned(self, model: int) -> Event | None:
        """Return the last learn event that was neither undone nor erased."""
        which = "model = ? AND operation = 'learn' AND undone_by IS NULL AND erasure = 'no'"
        return next(iter(self._select_events(f"{which} ORDER BY number DESC LIMIT 1", model)), None)

    def read_events(
        self,
        model: int,
        after: int = 0,
        limit: int = -1,
        newest_first: bool = False,
        with_rows: bool = True,
        operation: str = "",
        teacher: str = "",
    ) -> list[Event]:
        """Return the events of a model after a number, or with ``newest_first`` the events before it.

        With ``operation`` or ``teacher``, only changes of this kind, or by this teacher.
        """
        # bodies may be large: do not read them unless they are needed
        columns = EVENT_COLUMNS if with_rows else EVENT_COLUMNS.replace("body", "NULL")
        where, order = ("number < ?", "DESC") if newest_first else ("number > ?", "ASC")
        which = f"model = ? AND {where} AND ? IN ('', operation) AND ? IN ('', teacher) ORDER BY number {order} LIMIT ?"
        return self._select_events(which, model, after, operation, teacher, limit, columns=columns)

    # -- erasing -------------------------------------------------------------------------------------------------

    def find_rows(self, model: int, digest: bytes) -> list[RowPlace]:
        """Return the positions of a row in the journal, newest first, without erased ones."""
        rows = self._connection.execute(
            "SELECT learned_row.event, position, undone_by IS NOT NULL FROM learned_row JOIN event "
            "ON event.number = learned_row.event WHERE digest = ? AND model = ? AND learned_row.erasure = 'no' "
            "ORDER BY learned_row.event DESC, position DESC",
            (digest, model),
        )
        return [RowPlace(event, position, bool(undone)) for event, position, undone in rows]

    def mark_rows(self, places: Iterable[RowPlace]) -> None:
        """Mark rows to be erased."""
        self._connection.executemany(
            "UPDATE learned_row SET erasure = 'due' WHERE event = ? AND position = ?",
            [(place.event, place.position) for place in places],
        )

    def list_rows(self, event: int) -> list[RowPlace]:
        """Return the rows of an event that are neither erased nor marked to be erased."""
        rows = self._connection.execute(
            "SELECT position FROM learned_row WHERE event = ? AND erasure = 'no' ORDER BY position", (event,)
        )
        return [RowPlace(event, position, False) for (position,) in rows]

    def list_models_to_erase(self) -> list[int]:
        """Return the numbers of the models with forgotten rows that may not be fully erased yet."""
        return [
            model for (model,) in self._connection.execute("SELECT DISTINCT model FROM event WHERE erasure = 'due'")
        ]

    def erase_due_rows(self) -> None:
        """Remove the marked rows from the events that learned them and from the events that forgot them."""
        due = self._connection.execute("SELECT DISTINCT event FROM learned_row WHERE erasure = 'due'").fetchall()
        for (event,) in due:
            states = self._connection.execute(
                "SELECT erasure FROM learned_row WHERE event = ? ORDER BY position", (event,)
            ).fetchall()
            (body,) = self._connection.execute("SELECT body FROM event WHERE number = ?", (event,)).fetchone()
            rest = decode_row_batch(body).keep(state == "no" for (state,) in states)
            # other rows of the same event are kept
            left = (rest.encode(), "no") if len(rest) else (None, "done")
            self._connection.execute("UPDATE event SET body = ?, erasure = ? WHERE number = ?", (*left, event))
            self._connection.execute(  # key and request hash may give the rows away
                "DELETE FROM answer WHERE event IN "
                "(SELECT number FROM event WHERE number = ? OR operation = 'undo' AND target = ?)",
                (event, event),
            )
        self._connection.execute(
            "INSERT OR IGNORE INTO erased_row SELECT event, position FROM learned_row WHERE erasure = 'due'"
        )
        self._connection.execute("DELETE FROM learned_row WHERE erasure = 'due'")
        self._connection.execute("UPDATE event SET body = NULL WHERE erasure = 'due'")

    def note_erasure(self) -> None:
        """Record that the marked rows have been erased completely."""
        self._connection.execute("UPDATE event SET erasure = 'done' WHERE erasure = 'due'")

    def read_bodies(self) -> Iterator[bytes]:
        """Yield the encoded rows of all events."""
        for (body,) in self._connection.execute("SELECT body FROM event WHERE body IS NOT NULL"):
            yield body

    def rebuild(self) -> None:
        """Rebuild the file, so that neither its pages nor its layout depend on erased rows."""
        self.truncate_log()
        self._connection.execute("VACUUM")
        self.truncate_log()

    def truncate_log(self) -> None:
        """Move the write-ahead log into the database and truncate it, so that no old page remains."""
        busy, *_ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise sqlite3.OperationalError("the log could not be truncated: database is busy")

    def check_integrity(self) -> str:
        """Return "ok", or the first problem that SQLite found."""
        return str(self._connection.execute("PRAGMA integrity_check(1)").fetchone()[0])

    # -- answers -------------------------------------------------------------------------------------------------

    def find_answer(self, model: str, key: str) -> StoredAnswer | None:
        """Return the stored answer to a key; for a deleted model only the answer to its deletion is kept."""
        found = self._connection.execute(
            "SELECT digest, body FROM answer JOIN model ON model = number WHERE name = ? AND key = ?", (model, key)
        ).fetchone()
        return None if found is None else StoredAnswer(*found)

    def add_answer(self, event: Event, key: str, answer: StoredAnswer) -> None:
        values = (event.model, key, event.number, answer.digest, answer.body)
        self._connection.execute("INSERT INTO answer (model, key, event, digest, body) VALUES (?, ?, ?, ?, ?)", values)

    # -- receipts ------------------------------------------------------------------------------------------------

    def add_receipt(self, model: int, counter: int, body: bytes) -> None:
        self._connection.execute("INSERT INTO receipt (model, counter, body) VALUES (?, ?, ?)", (model, counter, body))

    def read_receipts(self, model: int, after: int = -1, limit: int = -1) -> list[bytes]:
        """Return the receipts of a model with larger numbers, as JSON."""
        query = "SELECT body FROM receipt WHERE model = ? AND counter > ? ORDER BY counter LIMIT ?"
        with self._lock:
            return [body for (body,) in self._connection.execute(query, (model, after, limit))]


def reset_change_counter(path: Path) -> None:
    """Set the counter of changes in SQLite's header to 1, before anything else opens the file.

    The counter depends on how large erased rows were: it counts how often the file was opened and got other pages.
    """
    if not path.exists() or path.stat().st_size < len(SQLITE_MAGIC):
        return
    with suppress(sqlite3.Error), closing(sqlite3.connect(path, timeout=0.0)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # closing removes the log, unless it is still in use
    log = path.with_name(f"{path.name}-wal")
    with path.open("r+b", buffering=0) as file:
        header = file.read(100)
        is_ours = header.startswith(SQLITE_MAGIC) and header[68:72] == APPLICATION_ID.to_bytes(4, "big")
        # SQLite believes the number of pages in the header only if both counters are equal
        if is_ours and not (log.exists() and log.stat().st_size) and header[24:28] == header[92:96]:
            one = (1).to_bytes(4, "big")
            file.seek(24)
            file.write(one + header[28:92] + one)  # in one sector of the disk
            os.fsync(file.fileno())


def _open_database(path: Path) -> sqlite3.Connection:
    if not path.exists():
        # create the file with private permissions before SQLite opens it
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0), 0o600))
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=64
    )
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "secure_delete = ON",  # overwrite deleted content with zeros
        "trusted_schema = OFF",  # a hostile file must not run functions
        "cell_size_check = ON",  # detect corrupt pages early
    ):
        connection.execute(f"PRAGMA {pragma}")
    try:
        _create_schema(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _create_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Create the tables in an empty database, in a transaction so that no second process creates them too."""
    connection.execute("BEGIN IMMEDIATE")
    # 0 in a new file, and in files of other programs: so also check that there are no tables
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found == 0 and not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
        for statement in filter(str.strip, SCHEMA.split(";")):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")
    is_ours = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if is_ours and version in UPGRADES:
        raise ModelFileError(f"{path}: is of an earlier version; back it up, then run priory serve with --upgrade")
    if not is_ours or version != SCHEMA_VERSION:
        raise ModelFileError(f"{path}: is not a journal that this version of priory can read")
