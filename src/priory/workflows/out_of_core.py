"""Learning from more rows than fit into memory: chunks are counted on lanes, one to a thread, and added up.

Statistics add, so neither the chunks nor the lanes change what is learned. A uniform sample of the rows is kept, on
which a model is judged and made honest.
"""

from __future__ import annotations

import copy
import queue
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, final

import numpy as np

from priory.bag_of_words.token_counts import TokenCounts
from priory.bag_of_words.tokenizer import TokenCounter, Tokenizer
from priory.core import sharding
from priory.core.typing import Array
from priory.sources.prefetch import peek_first

if TYPE_CHECKING:
    from priory.estimators.naive_bayes import NaiveBayes
    from priory.estimators.text_classifier import TextClassifier
    from priory.models.model_statistics import ModelStatistics

DEFAULT_SAMPLE_ROWS = 5000
MAX_SAMPLE_BYTES = 1 << 27  # of the sample
SWITCH_INTERVAL_SECONDS = 0.0005  # seconds that a thread waits for the interpreter: chunks go from hand to hand


@dataclass
class LabelledBatch:
    """Some rows as a model takes them, and the class of each: its place among ``classes``, in the order they came."""

    rows: Any
    group: Array
    classes: Array  # all met so far


class CountingWorker(ABC):
    """A thread that counts what it is given; ``seen`` is the record of it all."""

    def __init__(self) -> None:
        self.pending_batches: queue.Queue[LabelledBatch | None] = queue.Queue(2)
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    @abstractmethod
    def count(self, batch: LabelledBatch) -> None: ...

    @abstractmethod
    def collect_statistics(self) -> ModelStatistics | None: ...

    def _run(self) -> None:
        while (batch := self.pending_batches.get()) is not None:
            if self.error is None:
                try:
                    self.count(batch)
                except BaseException as error:
                    self.error = error

    def put_batch(self, batch: LabelledBatch | None) -> None:
        if self.error is not None:
            raise self.error
        self.pending_batches.put(batch)

    def finish(self) -> None:
        self.pending_batches.put(None)
        self.thread.join()


@final
class TableWorker(CountingWorker):
    """Rows of a table, observed by the model and added up."""

    def __init__(self, model: NaiveBayes) -> None:
        self.model, self.total = copy.copy(model), None
        super().__init__()

    total: ModelStatistics | None

    def count(self, batch: LabelledBatch) -> None:
        classes, rank = sort_classes(batch.classes)
        seen = self.model._compute_statistics(batch.rows, classes, rank[batch.group], None)
        self.total = seen if self.total is None else self.total + seen

    def collect_statistics(self) -> ModelStatistics | None:
        return self.total


@final
class TextWorker(CountingWorker):
    """Documents, counted in one place as long as no new class comes."""

    def __init__(self, tokenizer: Tokenizer, binary: bool, max_tokens: int | None) -> None:
        self.tokens, self.binary, self.max_tokens = tokenizer, binary, max_tokens
        self.counting: TokenCounter | None = None
        self.n = np.zeros(0)
        self.classes = np.zeros(0, dtype=object)
        self.earlier_statistics: ModelStatistics | None = None
        super().__init__()

    def count(self, batch: LabelledBatch) -> None:
        if self.counting is None or len(batch.classes) > len(self.n):
            self.earlier_statistics, wide = (
                self.collect_statistics(),
                max(len(batch.classes), 2 * len(self.n) if self.counting else 0),
            )
            self.counting, self.n = TokenCounter(wide, self.tokens, self.binary, self.max_tokens), np.zeros(wide)
        self.classes = batch.classes
        self.counting.add(batch.rows, batch.group, threads=1)
        self.n += np.bincount(batch.group, minlength=len(self.n))

    def collect_statistics(self) -> ModelStatistics | None:
        if self.counting is None:
            return self.earlier_statistics
        from priory.models.model_statistics import ModelStatistics

        arena, ends, counts, missed = self.counting.result()
        classes, rank = sort_classes(self.classes)
        n, order = self.n[: len(rank)], np.argsort(rank)
        words = TokenCounts(n[order], arena, ends, np.ascontiguousarray(counts[:, order]), missed)
        mine = ModelStatistics(classes, n[order], (words,))
        self.counting = None
        return mine if self.earlier_statistics is None else self.earlier_statistics + mine


def sort_classes(classes: Array) -> tuple[Array, Array]:
    """The classes sorted, and the place of each among them."""
    order = np.argsort(classes)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order))
    return classes[order], rank


def count_batches(
    batches: Iterable[LabelledBatch], make_worker: Callable[[], CountingWorker], threads: int | None = None
) -> list[CountingWorker]:
    """Lanes that have counted all rows, in one pass."""
    lanes, patience = [make_worker() for _ in range(threads or sharding.N_THREADS)], sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    try:
        for number, batch in enumerate(batches):
            lanes[number % len(lanes)].put_batch(batch)
    finally:
        for each in lanes:
            each.finish()
        sys.setswitchinterval(patience)
    for each in lanes:
        if each.error is not None:
            raise each.error
    return lanes


def add_worker_statistics(workers: list[CountingWorker]) -> ModelStatistics:
    """What they have seen together."""
    seen = [part for lane in workers if (part := lane.collect_statistics()) is not None]
    return sum(seen[1:], start=seen[0])


def learn_batches(
    model: NaiveBayes | TextClassifier, batches: Iterable[LabelledBatch], threads: int | None = None
) -> None:
    """All rows in one pass. The model has to be new; it is set up by the first batch."""
    first, stream = peek_first(iter(batches))
    model._read(first.rows, reset=True)
    model.statistics_ = add_worker_statistics(count_batches(stream, make_worker_factory(model), threads))


def make_worker_factory(model: NaiveBayes | TextClassifier) -> Callable[[], CountingWorker]:
    from priory.bag_of_words.models import BAG_MODELS
    from priory.estimators.naive_bayes import NaiveBayes

    if isinstance(model, NaiveBayes):
        return partial(TableWorker, model)
    return partial(TextWorker, model._build_vocabulary().tokens, BAG_MODELS[model.model].binary, model.max_tokens)


class RowSample:
    """A uniform sample of all rows, whatever the chunks: the rows with the smallest of as many random numbers."""

    def __init__(self, size: int = DEFAULT_SAMPLE_ROWS, seed: int = 0) -> None:
        self.size, self.random, self.bound = size, np.random.default_rng(seed), 1.0
        self.keys = np.zeros(0)
        self.kept: list[Any] = []  # Arrow batches
        self.rows, self.bytes = 0, 0

    def add(self, batch: Any) -> None:
        keys = self.random.random(batch.num_rows)
        self.rows += batch.num_rows
        chosen = np.flatnonzero(keys < self.bound)
        if len(chosen):
            self.keys = np.concatenate([self.keys, keys[chosen]])
            self.kept.append(batch.take(chosen) if len(chosen) < len(keys) else batch)
            self.bytes += self.kept[-1].nbytes
        if len(self.keys) > 2 * self.size or self.bytes > MAX_SAMPLE_BYTES:
            self._drop_rows()

    def _drop_rows(self) -> None:
        import pyarrow as pa

        if self.bytes > MAX_SAMPLE_BYTES:  # of long documents fewer are enough
            self.size = max(1, min(self.size, len(self.keys) // 2))
        if len(self.keys) > self.size:
            self.bound = float(np.partition(self.keys, self.size)[self.size])
        chosen = np.flatnonzero(self.keys < self.bound)
        table = pa.Table.from_batches(self.kept).take(chosen).combine_chunks()
        self.keys, self.kept, self.bytes = self.keys[chosen], table.to_batches(), table.nbytes

    def batch(self) -> Any:
        """The rows kept, in the order they came, as one Arrow batch."""
        self._drop_rows()
        return self.kept[0]
