"""The queue of rows that wait for a label: the least certain first, with the way back."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from priory.core.typing import Array
from priory.errors import DataError, ServiceError
from priory.service.predictions import predict_rows
from priory.service.rows import Row, RowBatch
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
    _ranking: tuple[int, list[int]] | None = None  # the version of the model, and the ids in order
    _certainty: dict[int, Array] = field(default_factory=dict)

    def add(self, rows: Iterable[str | Row]) -> int:
        """Add rows; the number of them."""
        new = [QueueItem(next(self._numbers), row) for row in rows]
        if len(self.items) + len(new) > MAX_QUEUE_ROWS:
            raise DataError(f"the queue holds {MAX_QUEUE_ROWS:,} rows; label some of them first, or add fewer")
        self.items |= {item.id: item for item in new}
        self._ranking = None
        return len(new)

    def rank(self, model: ServedModel) -> list[QueueItem]:
        """All rows, those that the model is least certain of first."""
        if self._ranking is None or self._ranking[0] != model.version:
            items = list(self.items.values())
            order = list(range(len(items)))
            self._certainty = {}
            if items and model.is_fitted:
                answers = predict_rows(model, RowBatch(model.entry.kind, tuple(item.row for item in items)))
                self._certainty = {item.id: answer for item, answer in zip(items, answers, strict=True)}
                order = np.argsort(answers.max(axis=1), kind="stable").tolist()
            self._ranking = (model.version, [items[place].id for place in order])
        return [self.items[number] for number in self._ranking[1] if number in self.items]

    def find_probabilities(self, item: QueueItem) -> list[float]:
        """What the model answered when the queue was ranked; nothing if it could not answer."""
        return self._certainty[item.id].tolist() if item.id in self._certainty else []

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
        self._ranking = None

    def discard_forgotten(self, rows: Iterable[str | Row]) -> None:
        """Drop what was forgotten for good, so that no step back shows it again."""
        gone = list(rows)
        self.labelled = [(item, event) for item, event in self.labelled if item.row not in gone]
        self.items = {number: item for number, item in self.items.items() if item.row not in gone}
