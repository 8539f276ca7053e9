"""Predictions in small batches: requests that arrive while a batch runs form the next batch.

No request waits for a batch to fill. A hundred rows in one call of the model take about as long as one row.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import accumulate

from numpy import ndarray as Array

from priory.errors import ServiceError
from priory.service.labelled_rows import RowBatch, convert_to_input, join_row_batches
from priory.service.metrics import Metrics
from priory.service.model_store import ModelStore, ServedModel

MAX_BATCH_ROWS = 4096
MAX_WAITING_ROWS = 100_000  # for one model; beyond this requests get 503


# Encodes an answer from the model and the probabilities (rows, classes), in the thread that computed them.
Finish = Callable[[ServedModel, Array], bytes]


@dataclass
class _Waiting:
    rows: RowBatch
    finish: Finish
    future: asyncio.Future[bytes]
    arrived: float  # for the time spent in the queue


class PredictionBatcher:
    """Answers requests batch by batch, one batch per model at a time; used in the event loop only."""

    def __init__(self, store: ModelStore, executor: Executor, metrics: Metrics) -> None:
        self._store, self._executor, self._metrics = store, executor, metrics
        self._queues: dict[str, list[_Waiting]] = {}  # by model
        self._running: dict[str, asyncio.Task[None]] = {}

    async def predict(self, name: str, rows: RowBatch, finish: Finish) -> bytes:
        """Predict rows in the next batch, and return the answer encoded by ``finish``."""
        model = self._store.get(name)
        model.check_row_count(len(rows))
        queue = self._queues.setdefault(name, [])
        if sum(len(waiting.rows) for waiting in queue) > MAX_WAITING_ROWS:
            raise ServiceError(503, "too many rows are waiting; try again later")
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        queue.append(_Waiting(rows, finish, future, time.perf_counter()))
        if name not in self._running:
            max_rows = min(MAX_BATCH_ROWS, model.max_rows)
            self._running[name] = asyncio.create_task(self._answer_all(name, queue, max_rows))
        return await future

    async def _answer_all(self, name: str, queue: list[_Waiting], max_rows: int) -> None:
        """Answer batch after batch, until the queue is empty."""
        loop = asyncio.get_running_loop()
        try:
            while queue:
                totals = accumulate(len(waiting.rows) for waiting in queue)
                n_taken = max(1, sum(total <= max_rows for total in totals))  # one request at least
                batch, queue[:n_taken] = queue[:n_taken], []
                start = time.perf_counter()
                for waiting in batch:
                    self._metrics.observe_stage("queue", start - waiting.arrived)
                outcomes = await loop.run_in_executor(self._executor, self._predict_batch, name, batch)
                self._metrics.observe_stage("model", time.perf_counter() - start)
                self._metrics.count("priory_prediction_batches_total")
                for waiting, outcome in zip(batch, outcomes, strict=True):
                    if waiting.future.done():  # the client has disconnected
                        continue
                    if isinstance(outcome, bytes):
                        waiting.future.set_result(outcome)
                    else:
                        waiting.future.set_exception(outcome)
        finally:
            del self._running[name], self._queues[name]

    def _predict_batch(self, name: str, batch: Sequence[_Waiting]) -> list[bytes | Exception]:
        """Predict all rows together; if that fails, predict each request separately."""
        try:
            model = self._store.get(name)
            model.check_fitted()
            answers = predict_rows(model, join_row_batches([waiting.rows for waiting in batch]))
        except Exception as error:
            if len(batch) == 1:
                return [error]
            return [outcome for waiting in batch for outcome in self._predict_batch(name, [waiting])]
        # split the answers (rows, classes) of the batch by request
        ends = list(accumulate(len(waiting.rows) for waiting in batch))
        return [
            _finish(waiting, model, answers[end - len(waiting.rows) : end])
            for waiting, end in zip(batch, ends, strict=True)
        ]


def _finish(waiting: _Waiting, model: ServedModel, probabilities: Array) -> bytes | Exception:
    try:
        return waiting.finish(model, probabilities)
    except Exception as error:
        return error


def predict_rows(model: ServedModel, rows: RowBatch) -> Array:
    """Return the class probabilities of each row, (rows, classes)."""
    return model.estimator.predict_proba(convert_to_input(rows, model.estimator))
