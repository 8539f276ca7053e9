"""The rows that a model has learned through the service, read from the journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from priory.service.model_store import ModelStore
from priory.service.rows import Row, RowBatch, RowLabel, contains_phrase, decode_row_batch
from priory.service.served_model import ServedModel

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
