"""Predictions in small batches: whatever has arrived while the last batch ran is answered together.

Nobody waits for a batch to fill. One call of the model for a hundred rows costs about what it costs for one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from priory.core.typing import Array
from priory.errors import ServiceError
from priory.service.metrics import Metrics
from priory.service.model_store import ModelStore
from priory.service.rows import RowBatch, convert_to_input, join_row_batches
from priory.service.served_model import ServedModel

MAX_BATCH_ROWS = 4096
MAX_WAITING_ROWS = 100_000


@dataclass(frozen=True)
class Answered:
    """The probabilities of some rows, and the model that gave them."""

    model: ServedModel
    probabilities: Array  # (rows, classes)


@dataclass
class _Waiting:
    rows: RowBatch
    future: asyncio.Future[Answered]
    arrived: float


class PredictionBatcher:
    """Answers the rows that wait for one model, a batch at a time; lives in the event loop."""

    def __init__(self, store: ModelStore, executor: Executor, metrics: Metrics) -> None:
        self._store, self._executor, self._metrics = store, executor, metrics
        self._waiting: dict[str, list[_Waiting]] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    async def predict(self, name: str, rows: RowBatch) -> Answered:
        model = self._store.get(name)
        model.check_fitted()
        if sum(len(waiting.rows) for waiting in self._waiting.get(name, ())) > MAX_WAITING_ROWS:
            raise ServiceError(503, "too many rows are waiting; try again later")
        future: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(name, []).append(_Waiting(rows, future, time.perf_counter()))
        if name not in self._running:
            self._running[name] = asyncio.create_task(self._answer_all(name))
        return await future

    async def _answer_all(self, name: str) -> None:
        """Answer batch after batch, until nobody waits."""
        loop = asyncio.get_running_loop()
        try:
            while batch := self._take_batch(name):
                start = time.perf_counter()
                for waiting in batch:
                    self._metrics.observe_stage("queue", start - waiting.arrived)
                outcomes = await loop.run_in_executor(self._executor, self._predict_batch, name, batch)
                self._metrics.observe_stage("model", time.perf_counter() - start)
                self._metrics.count("priory_prediction_batches_total")
                for waiting, outcome in zip(batch, outcomes, strict=True):
                    if not waiting.future.done():
                        _resolve(waiting.future, outcome)
        finally:
            del self._running[name]
            self._waiting.pop(name, None)

    def _take_batch(self, name: str) -> list[_Waiting]:
        queue, n_rows = self._waiting.get(name, []), 0
        for place, waiting in enumerate(queue):
            n_rows += len(waiting.rows)
            if n_rows > MAX_BATCH_ROWS and place:
                batch, self._waiting[name] = queue[:place], queue[place:]
                return batch
        self._waiting[name] = []
        return queue

    def _predict_batch(self, name: str, batch: Sequence[_Waiting]) -> list[Answered | Exception]:
        """Predict all rows together; if that fails, those of each request for itself."""
        try:
            model = self._store.get(name)
            model.check_fitted()
            answers = predict_rows(model, join_row_batches([waiting.rows for waiting in batch]))
        except Exception as error:
            if len(batch) == 1:
                return [error]
            return [outcome for waiting in batch for outcome in self._predict_batch(name, [waiting])]
        outcomes: list[Answered | Exception] = []
        start = 0
        for waiting in batch:
            outcomes.append(Answered(model, answers[start : start + len(waiting.rows)]))
            start += len(waiting.rows)
        return outcomes


def _resolve(future: asyncio.Future[Answered], outcome: Answered | Exception) -> None:
    if isinstance(outcome, Answered):
        future.set_result(outcome)
    else:
        future.set_exception(outcome)


def predict_rows(model: ServedModel, rows: RowBatch) -> Array:
    """The probability of each class for each row."""
    return model.estimator.predict_proba(convert_to_input(rows, model.estimator))
