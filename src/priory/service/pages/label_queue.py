"""The rows that a model has learned through the service, and the queue of rows that wait for a label."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from priory.core.typing import Array
from priory.errors import DataError, ServiceError
from priory.service.labelled_rows import Row, RowBatch, RowLabel, contains_phrase, decode_row_batch
from priory.service.model_store import ModelStore, ServedModel
from priory.service.predictions import predict_rows

EVENTS_PER_READ = 500
LATEST_EVENT = 2**53  # larger than any event number, and exact in JavaScript


@dataclass(frozen=True)
class LearnedRow:
    """A row with its label and its learn event; ``digest`` is the hash that identifies it."""

    event: int
    row: str | Row
    label: RowLabel
    digest: str
    is_undone: bool


def iterate_learned_rows(store: ModelStore, model: ServedModel) -> Iterator[LearnedRow]:
    """Yield the rows of the journal, latest first, including those whose event was undone."""
    before = LATEST_EVENT
    while True:
        # in pages, so that the lock is held only briefly
        with store.reader_lock:
            events = store.reader.read_events(model.entry.number, before, EVENTS_PER_READ, newest_first=True)
        for event in events:
            if event.operation == "learn" and event.body is not None:
                batch = decode_row_batch(event.body)
                for row, label, digest in zip(batch.rows, batch.labels or (), batch.digest_rows(), strict=True):
                    yield LearnedRow(event.number, row, label, digest.hex(), event.undone_by is not None)
        if len(events) < EVENTS_PER_READ:
            return
        before = events[-1].number


def read_latest_rows(store: ModelStore, model: ServedModel, max_rows: int) -> RowBatch:
    """Return the latest rows that were not undone, as one batch."""
    rows = (row for row in iterate_learned_rows(store, model) if not row.is_undone)
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
    return list(found.values())


def find_learned_rows(store: ModelStore, model: ServedModel, digests: Iterable[str]) -> list[LearnedRow]:
    """Return every occurrence of the rows with these hashes, undone or not."""
    wanted = set(digests)
    return [row for row in iterate_learned_rows(store, model) if row.digest in wanted]


def join_learned_rows(model: ServedModel, rows: Iterable[LearnedRow]) -> RowBatch:
    listed = list(rows)
    return RowBatch(model.entry.kind, tuple(row.row for row in listed), tuple(row.label for row in listed))


MAX_QUEUE_ROWS = 5000
MAX_STEPS_BACK = 1000  # labels that can be undone


@dataclass(frozen=True)
class QueueItem:
    """A row without a label."""

    id: int
    row: str | Row


@dataclass
class LabelQueue:
    """Rows to be labelled, in memory only: nothing is written to disk before a row is labelled."""

    items: dict[int, QueueItem] = field(default_factory=dict)
    labelled: list[tuple[QueueItem, int]] = field(default_factory=list)  # with the learn event
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _ranked_version: int = -1  # the version of the model that ranked the rows
    _ranking: dict[int, Array | None] = field(default_factory=dict)  # ids in order, with the class probabilities

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
        """Return all rows, least certain first (uncertainty sampling)."""
        items = dict(self.items)  # other requests may remove rows meanwhile
        if self._ranked_version != model.version or not items.keys() <= self._ranking.keys():
            self._ranking = _rank_rows(model, list(items.values()))
            self._ranked_version = model.version
        return [items[number] for number in self._ranking if number in items]

    def find_probabilities(self, item: QueueItem) -> list[float]:
        """Return the class probabilities from the last ranking, or [] if there are none."""
        answer = self._ranking.get(item.id)
        return [] if answer is None else answer.tolist()

    def take(self, number: int) -> QueueItem:
        """Remove a row from the queue."""
        if number not in self.items:
            raise ServiceError(409, "this row is not in the queue any more")
        return self.items.pop(number)

    def note(self, item: QueueItem, event: int) -> None:
        """Remember the event that learned a row, for undo."""
        self.labelled = [*self.labelled[1 - MAX_STEPS_BACK :], (item, event)]

    def put_back(self, item: QueueItem) -> None:
        self.items[item.id] = item

    def discard_forgotten(self, rows: Iterable[str | Row]) -> None:
        """Drop forgotten rows, so that undo cannot show them again."""
        gone = list(rows)
        self.labelled = [(item, event) for item, event in self.labelled if item.row not in gone]
        self.items = {number: item for number, item in self.items.items() if item.row not in gone}


def _rank_rows(model: ServedModel, items: Sequence[QueueItem]) -> dict[int, Array | None]:
    """Return the class probabilities by row id, least certain first; an unfitted model keeps the order."""
    if not items or not model.is_fitted:
        return dict.fromkeys(item.id for item in items)
    answers = predict_rows(model, RowBatch(model.entry.kind, tuple(item.row for item in items)))  # (rows, classes)
    order = np.argsort(answers.max(axis=1), kind="stable").tolist()  # by the largest probability
    return {items[place].id: answers[place] for place in order}
