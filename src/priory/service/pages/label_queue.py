"""The queue of rows that wait for a label: the least certain first, with the way back."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from priory.core.typing import Array
from priory.errors import DataError, ServiceError
from priory.service.predictions import predict_rows
from priory.service.rows import Row, RowBatch, contains_phrase
from priory.service.served_model import ServedModel

MAX_QUEUE_ROWS = 5000
MAX_STEPS_BACK = 1000


@dataclass(frozen=True)
class QueueItem:
    """A row without a label."""

    id: int
    row: str | Row


@dataclass
class LabelQueue:
    """Rows in memory: they are gone when the service stops, and nothing of them is written before it is labelled."""

    items: dict[int, QueueItem] = field(default_factory=dict)
    labelled: list[tuple[QueueItem, int]] = field(default_factory=list)  # with the event that learned it
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _ranked_version: int = -1  # of the model
    _ranking: dict[int, Array | None] = field(default_factory=dict)  # ids in order, with what the model answered

    def add(self, rows: Iterable[str | Row], model: ServedModel) -> int:
        """Add rows for a model to rank; the number of them."""
        new = [QueueItem(next(self._numbers), row) for row in rows]
        max_rows = min(MAX_QUEUE_ROWS, model.max_rows) if model.is_fitted else MAX_QUEUE_ROWS
        if len(self.items) + len(new) > max_rows:
            raise DataError(f"the queue holds {max_rows:,} rows; label some of them first, or add fewer")
        self.items |= {item.id: item for item in new}
        return len(new)

    def search(self, phrase: str) -> list[QueueItem]:
        """The rows in which a phrase occurs."""
        return [item for item in self.items.values() if contains_phrase(item.row, None, phrase)]

    def rank(self, model: ServedModel) -> list[QueueItem]:
        """All rows, those that the model is least certain of first."""
        items = dict(self.items)  # others may label rows meanwhile
        if self._ranked_version != model.version or not items.keys() <= self._ranking.keys():
            self._ranking = _rank_rows(model, list(items.values()))
            self._ranked_version = model.version
        return [items[number] for number in self._ranking if number in items]

    def find_probabilities(self, item: QueueItem) -> list[float]:
        """What the model answered when the queue was ranked; nothing if it could not answer."""
        answer = self._ranking.get(item.id)
        return [] if answer is None else answer.tolist()

    def take(self, number: int) -> QueueItem:
        """Remove a row from the queue."""
        if number not in self.items:
            raise ServiceError(409, "this row is not in the queue any more")
        return self.items.pop(number)

    def note(self, item: QueueItem, event: int) -> None:
        """Remember which event learned a row, to be able to undo it."""
        self.labelled = [*self.labelled[1 - MAX_STEPS_BACK :], (item, event)]

    def put_back(self, item: QueueItem) -> None:
        self.items[item.id] = item

    def discard_forgotten(self, rows: Iterable[str | Row]) -> None:
        """Drop what was forgotten for good, so that no step back shows it again."""
        gone = list(rows)
        self.labelled = [(item, event) for item, event in self.labelled if item.row not in gone]
        self.items = {number: item for number, item in self.items.items() if item.row not in gone}


def _rank_rows(model: ServedModel, items: Sequence[QueueItem]) -> dict[int, Array | None]:
    """The answers to rows by their ids, the least certain first; a model that knows nothing leaves the order."""
    if not items or not model.is_fitted:
        return dict.fromkeys(item.id for item in items)
    answers = predict_rows(model, RowBatch(model.entry.kind, tuple(item.row for item in items)))
    order = np.argsort(answers.max(axis=1), kind="stable").tolist()
    return {items[place].id: answers[place] for place in order}
