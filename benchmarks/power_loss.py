"""Power losses under the journal: is an acknowledged change ever lost, and does a forgotten row come back?

    python benchmarks/power_loss.py [--crashes 10000] [--seed 0] [--write] [--unsafe]    (needs apsw: pip install apsw)

A journal lives through learning, undoing and forgetting on a file system that records every write, and when files are
synchronised. The power then fails at random moments: what was synchronised is on the disk; of the writes since, each is
there, is missing, or is torn into sectors of 512 bytes some of which are there, in any order; so are changes of length.
The journal is opened on what is left. It must be intact, hold all changes that were acknowledged (and of later ones
each in full or not at all), and no byte of a row whose erasure was acknowledged. The exit code is 1 if not. `--unsafe`
does without synchronising, to see that losses are found.
"""

from __future__ import annotations

import argparse
import hashlib
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import numpy as np

from priory.service import journal
from priory.service.journal import Event, Journal, ModelEntry
from priory.service.labelled_rows import RowBatch

RESULTS = Path(__file__).parent / "results" / "power_loss.md"
SECTOR = 512
N_CHANGES = 150
PAGES_OF_LOG = 30  # then it is moved into the database, which takes 1,000 in a service
TABLES = ("model", "event", "learned_row", "erased_row", "answer", "receipt")


# -- a file system that records ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """A change of a file: bytes at an offset, a length, a synchronisation (neither), or its deletion."""

    file: str
    offset: int = 0
    data: bytes | None = None
    length: int | None = None
    is_deleted: bool = False

    @property
    def is_sync(self) -> bool:
        return self.data is None and self.length is None and not self.is_deleted


@dataclass
class Recording:
    """The steps of the journal, and how many changes had been acknowledged before each."""

    steps: list[Step] = field(default_factory=list)
    acknowledged: list[int] = field(default_factory=list)
    states: list[str] = field(default_factory=list)  # the content after each change
    erased: list[tuple[int, bytes]] = field(default_factory=list)  # changes, after which a text is gone

    def add(self, step: Step) -> None:
        self.steps.append(step)
        self.acknowledged.append(len(self.states))


class RecordingSystem(apsw.VFS):
    """A file system of SQLite that notes what is written."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        super().__init__("recording", "")

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        return apsw.VFSFile("", name, flags) if path is None else RecordedFile(self.recording, path, name, flags)

    def xDelete(self, name: str, sync: bool) -> None:
        super().xDelete(name, sync)
        self.recording.add(Step(Path(name).name, is_deleted=True))


class RecordedFile(apsw.VFSFile):
    def __init__(self, recording: Recording, path: str, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self.recording, self.file = recording, Path(path).name

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self.recording.add(Step(self.file, offset, bytes(data)))

    def xTruncate(self, length: int) -> None:
        super().xTruncate(length)
        self.recording.add(Step(self.file, length=length))

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self.recording.add(Step(self.file))


def connect(path: Path, **options: Any) -> Any:
    """A connection through the recording system; without other connections, the index of the log is in memory."""
    connection = apsw.Connection(str(path), vfs="recording")
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute(f"PRAGMA wal_autocheckpoint = {PAGES_OF_LOG}")
    return connection


# -- what the journal lives through ------------------------------------------------------------------------------------


def live(folder: Path, rng: np.random.Generator, is_unsafe: bool) -> Recording:
    """Learn, undo and forget at random, and record it."""
    recording = Recording()
    system = RecordingSystem(recording)
    before = journal.sqlite3
    journal.sqlite3 = SimpleNamespace(connect=connect, OperationalError=apsw.Error)  # type: ignore[assignment]
    try:
        opened = Journal(folder / "journal.sqlite")
        opened._connection.execute(f"PRAGMA synchronous = {'OFF' if is_unsafe else 'FULL'}")
        life = Life(opened, recording, rng)
        for _ in range(N_CHANGES):
            life.change()
        life.journal.close()
    finally:
        journal.sqlite3 = before
        system.unregister()
    return recording


class Life:
    """A journal, and the rows that it has learned."""

    def __init__(self, opened: Journal, recording: Recording, rng: np.random.Generator) -> None:
        self.journal, self.recording, self.rng = opened, recording, rng
        self.number, self.rows = 1, dict[int, list[str]]()
        with opened.transaction():
            opened.add_model(ModelEntry(1, "mail", "text", b"{}", False))
            opened.add_event(Event(1, 1, "create", None, 0, None, 1, "ann", 1e9))
        self._acknowledge()

    def change(self) -> None:
        if self.rows and self.rng.random() < 0.3:
            self._forget()
        elif self.rows and self.rng.random() < 0.2:
            self.number += 1
            target = int(self.rng.choice(list(self.rows)))
            with self.journal.transaction():
                self.journal.add_event(Event(self.number, 1, "undo", target, 1, None, self.number, "ann", 1e9))
                self.journal.set_undone(target, self.number)
            self._acknowledge()
        else:
            self._learn()

    def _learn(self) -> None:
        self.number += 1
        texts = [self._draw_text(place) for place in range(self.rng.integers(1, 4))]
        self._add_event("learn", None, texts)
        self.rows[self.number] = texts
        self._acknowledge()

    def _draw_text(self, place: int) -> str:
        length = int(self.rng.choice([1, 30, 700]))
        return f"secret-{self.number}-{place}-" + "".join(map(chr, self.rng.integers(97, 123, length * 8).tolist()))

    def _add_event(self, operation: Any, target: int | None, texts: list[str]) -> None:
        body = RowBatch("text", tuple(texts), ("spam",) * len(texts)).encode()
        digests = [hashlib.sha256(text.encode()).digest() for text in texts] if operation == "learn" else []
        event = Event(self.number, 1, operation, target, len(texts), body, self.number, "ann", 1e9)
        with self.journal.transaction():
            self.journal.add_event(event, digests)

    def _forget(self) -> None:
        """As `priory.service.writer` does: commit, erase, rebuild the file, note it, and only then answer."""
        learned = int(self.rng.choice(list(self.rows)))
        texts = self.rows.pop(learned)
        self.number += 1
        body = RowBatch("text", tuple(texts), ("spam",) * len(texts)).encode()
        event = Event(self.number, 1, "forget", learned, len(texts), body, self.number, "ann", 1e9, None, "due")
        with self.journal.transaction():
            self.journal.add_event(event)
            self.journal.mark_rows(self.journal.list_rows(learned))
        self._acknowledge()
        with self.journal.transaction():
            self.journal.erase_due_rows()
        self._acknowledge()
        self.journal.rebuild()
        with self.journal.transaction():
            self.journal.note_erasure()
        self._acknowledge()
        self.recording.erased += [(len(self.recording.states), text[:20].encode()) for text in texts]

    def _acknowledge(self) -> None:
        self.recording.states.append(describe_content(self.journal._connection))


def describe_content(connection: Any) -> str:
    """A hash of all tables."""
    rows = [connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall() for table in TABLES]
    return hashlib.sha256(repr([[tuple(row) for row in table] for table in rows]).encode()).hexdigest()


# -- power losses ------------------------------------------------------------------------------------------------------


class Disk:
    """The synchronised bytes of each file, and the steps since."""

    def __init__(self) -> None:
        self.files: dict[str, bytearray] = {}
        self.pending: dict[str, list[Step]] = {}

    def take(self, step: Step) -> None:
        if step.is_deleted:
            self.files.pop(step.file, None)
            self.pending.pop(step.file, None)
        elif step.is_sync:
            for waiting in self.pending.pop(step.file, []):
                apply(self.files.setdefault(step.file, bytearray()), waiting)
        else:
            self.pending.setdefault(step.file, []).append(step)

    def fail(self, rng: np.random.Generator) -> dict[str, bytearray]:
        """What is on the disk after a power loss."""
        left = {file: bytearray(content) for file, content in self.files.items()}
        share, tears, shuffles = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0]), rng.random() < 0.5, rng.random() < 0.5
        for file, steps in self.pending.items():
            kept = [step for step in steps if rng.random() < share]
            for place in rng.permutation(len(kept)) if shuffles else range(len(kept)):
                for piece in tear(kept[place], rng) if tears else [kept[place]]:
                    apply(left.setdefault(file, bytearray()), piece)
        return left


def apply(content: bytearray, step: Step) -> None:
    if step.length is not None:
        content[step.length :] = bytes(max(0, step.length - len(content)))
    elif step.data is not None:
        content.extend(bytes(max(0, step.offset - len(content))))
        content[step.offset : step.offset + len(step.data)] = step.data


def tear(step: Step, rng: np.random.Generator) -> Iterator[Step]:
    """Some sectors of a write."""
    if step.data is None:
        yield step
        return
    start = step.offset
    while start < (end := step.offset + len(step.data)):
        stop = min(end, (start // SECTOR + 1) * SECTOR)
        if rng.random() < 0.5:
            yield Step(step.file, start, step.data[start - step.offset : stop - step.offset])
        start = stop


def find_fault(left: dict[str, bytearray], recording: Recording, acknowledged: int, folder: Path) -> str | None:
    """Open the journal on what is left of it; return what is wrong."""
    for path in folder.iterdir():
        path.unlink()
    for file, content in left.items():
        (folder / file).write_bytes(content)
    if acknowledged:
        gone = [text for after, text in recording.erased if after <= acknowledged]
        if any(text in content for text in gone for content in left.values()):
            return "an erased row is on the disk"
    try:
        opened = Journal(folder / "journal.sqlite")
    except Exception as error:
        return f"cannot be opened: {error}"
    try:
        if (found := opened.check_integrity()) != "ok":
            return found
        state = describe_content(opened._connection)
    except sqlite3.Error as error:
        return f"cannot be read: {error}"
    finally:
        opened.close()
    possible = recording.states[max(acknowledged - 1, 0) : acknowledged + 1]
    return (
        None if not acknowledged or state in possible else "an acknowledged change is lost, or half a change is there"
    )


def fail_often(recording: Recording, crashes: int, rng: np.random.Generator, folder: Path) -> dict[str, int]:
    """Let the power fail at random moments; count what is wrong."""
    moments = np.sort(rng.integers(1, len(recording.steps) + 1, crashes)).tolist()
    disk, done, faults = Disk(), 0, dict[str, int]()
    for moment in moments:
        for step in recording.steps[done:moment]:
            disk.take(step)
        done = moment
        # what was acknowledged before the next step begins
        counts = recording.acknowledged
        acknowledged = counts[moment] if moment < len(counts) else len(recording.states)
        fault = find_fault(disk.fail(rng), recording, acknowledged, folder)
        if fault is not None:
            faults[fault] = faults.get(fault, 0) + 1
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--crashes", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--unsafe", action="store_true", help="synchronise nothing")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as name:
        lived, crashed = Path(name, "lived"), Path(name, "crashed")
        lived.mkdir()
        crashed.mkdir()
        recording = live(lived, rng, given.unsafe)
        faults = fail_often(recording, given.crashes, rng, crashed)
    steps, n_syncs = recording.steps, sum(step.is_sync for step in recording.steps)
    found = "".join(f"| {fault} | {times:,} |\n" for fault, times in faults.items())
    text = f"""# Power losses under the journal

`python benchmarks/power_loss.py --crashes {given.crashes} --seed {given.seed} --write`: a journal of the service
commits {len(recording.states):,} changes (rows are learned, undone and forgotten) in {len(steps) - n_syncs:,} writes
and {n_syncs:,} synchronisations, all of which are recorded (SQLite {apsw.sqlite_lib_version()}). Then the power fails
at random moments: writes since the last synchronisation of a file are there, missing, or torn into sectors, in any
order.

| | power losses |
|---|---:|
| tried | {given.crashes:,} |
| all acknowledged changes there, none by half, no erased row left | {given.crashes - sum(faults.values()):,} |
{found}"""
    print(text)
    if given.write:
        RESULTS.write_text(text, encoding="utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
