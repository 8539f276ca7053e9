"""An immutable model at one version, and the functions that derive the next version."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec

import priory
from priory.errors import DataError, ServiceError
from priory.service.journal import Event, Journal, ModelEntry
from priory.service.labelled_rows import RowBatch, convert_to_input, decode_row_batch, join_row_batches

if TYPE_CHECKING:
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
    def n_rows(self) -> float:
        """The total weight of the learned rows."""
        return float(self.estimator.class_count_.sum()) if self.is_fitted else 0.0

    def learn(self, rows: RowBatch, version: int) -> ServedModel:
        """The model after it has learned these rows."""
        draft = copy.copy(self.estimator)
        draft.partial_fit(convert_to_input(rows, draft), list(rows.labels or ()))
        return replace(self, estimator=draft, version=version)

    def forget(self, rows: RowBatch, version: int) -> ServedModel:
        """Return the model as if it had never learned these rows."""
        self.check_fitted()
        draft = copy.copy(self.estimator)
        draft.forget(convert_to_input(rows, draft), list(rows.labels or ()))
        return replace(self, estimator=draft, version=version)

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
    for batch in _split_batches(journal.read_events(model.entry.number, model.version)):
        model = apply_batch(model, batch, journal)
    return model


def _split_batches(events: Sequence[Event]) -> Iterator[list[Event]]:
    for _, batch in groupby(events, key=lambda event: event.batch):
        yield list(batch)


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
