"""The rows that a model has learned through the service, as its journal has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from priory.service.model_store import ModelStore
from priory.service.rows import Row, RowBatch, RowLabel, decode_row_batch
from priory.service.served_model import ServedModel

EVENTS_PER_READ = 500
LATEST_EVENT = 2**53


@dataclass(frozen=True)
class LearnedRow:
    """A row with its label and the event that learned it; ``digest`` is the keyed hash that finds it again."""

    event: int
    row: str | Row
    label: RowLabel
    digest: str

    def contains(self, phrase: str) -> bool:
        """Whether the phrase occurs in the text or in a cell, in capitals or not."""
        cells = [self.row] if isinstance(self.row, str) else [str(cell) for cell in self.row.values()]
        return any(phrase.casefold() in cell.casefold() for cell in cells)


def iterate_learned_rows(store: ModelStore, model: ServedModel) -> Iterator[LearnedRow]:
    """The rows that count, the latest first: neither undone nor erased."""
    before = LATEST_EVENT
    while True:
        with store.reader_lock:
            events = store.reader.read_events(model.entry.number, before, EVENTS_PER_READ, newest_first=True)
        for event in events:
            if event.operation == "learn" and event.undone_by is None and event.body is not None:
                batch = decode_row_batch(event.body)
                digests = batch.digest_rows(store.reader.secret)
                for row, label, digest in zip(batch.rows, batch.labels or (), digests, strict=True):
                    yield LearnedRow(event.number, row, label, digest.hex())
        if len(events) < EVENTS_PER_READ:
            return
        before = events[-1].number


def read_latest_rows(store: ModelStore, model: ServedModel, max_rows: int) -> RowBatch:
    """The rows that were learned last, as one batch."""
    return join_learned_rows(model, islice(iterate_learned_rows(store, model), max_rows))


def search_learned_rows(store: ModelStore, model: ServedModel, phrase: str, max_rows: int) -> list[LearnedRow]:
    """The rows in which a phrase occurs, the latest first."""
    found = (row for row in iterate_learned_rows(store, model) if row.contains(phrase))
    return list(islice(found, max_rows))


def find_learned_rows(store: ModelStore, model: ServedModel, digests: Iterable[str]) -> list[LearnedRow]:
    """The rows with these hashes, every time that they were learned."""
    wanted = set(digests)
    return [row for row in iterate_learned_rows(store, model) if row.digest in wanted]


def join_learned_rows(model: ServedModel, rows: Iterable[LearnedRow]) -> RowBatch:
    listed = list(rows)
    return RowBatch(model.entry.kind, tuple(row.row for row in listed), tuple(row.label for row in listed))
