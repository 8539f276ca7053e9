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

from priory.bag_of_words.token_counts import Words
from priory.bag_of_words.tokenizer import Counting, Tokens
from priory.core import sharding
from priory.core.typing import Array
from priory.sources.prefetch import peeked

if TYPE_CHECKING:
    from priory.estimators.naive_bayes import NaiveBayes
    from priory.estimators.text_classifier import TextClassifier
    from priory.models.naive_bayes import Seen

SAMPLE = 5000
MOST_BYTES = 1 << 27  # of the sample
PATIENCE = 0.0005  # seconds that a thread waits for the interpreter: chunks go from hand to hand


@dataclass
class Batch:
    """Some rows as a model takes them, and the class of each: its place among ``classes``, in the order they came."""

    rows: Any
    group: Array
    classes: Array  # all met so far


class Lane(ABC):
    """A thread that counts what it is given; ``seen`` is the record of it all."""

    def __init__(self) -> None:
        self.waiting: queue.Queue[Batch | None] = queue.Queue(2)
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    @abstractmethod
    def count(self, batch: Batch) -> None: ...

    @abstractmethod
    def seen(self) -> Seen | None: ...

    def _run(self) -> None:
        while (batch := self.waiting.get()) is not None:
            if self.error is None:
                try:
                    self.count(batch)
                except BaseException as error:
                    self.error = error

    def give(self, batch: Batch | None) -> None:
        if self.error is not None:
            raise self.error
        self.waiting.put(batch)

    def finish(self) -> None:
        self.waiting.put(None)
        self.thread.join()


@final
class TableLane(Lane):
    """Rows of a table, observed by the model and added up."""

    def __init__(self, model: NaiveBayes) -> None:
        self.model, self.total = copy.copy(model), None
        super().__init__()

    total: Seen | None

    def count(self, batch: Batch) -> None:
        classes, rank = ordered(batch.classes)
        seen = self.model._learned(batch.rows, classes, rank[batch.group], None)
        self.total = seen if self.total is None else self.total + seen

    def seen(self) -> Seen | None:
        return self.total


@final
class TextLane(Lane):
    """Documents, counted in one place as long as no new class comes."""

    def __init__(self, tokens: Tokens, once: bool, most: int | None) -> None:
        self.tokens, self.once, self.most = tokens, once, most
        self.counting: Counting | None = None
        self.n = np.zeros(0)
        self.classes = np.zeros(0, dtype=object)
        self.before: Seen | None = None
        super().__init__()

    def count(self, batch: Batch) -> None:
        if self.counting is None or len(batch.classes) > len(self.n):
            self.before, wide = self.seen(), max(len(batch.classes), 2 * len(self.n) if self.counting else 0)
            self.counting, self.n = Counting(wide, self.tokens, self.once, self.most), np.zeros(wide)
        self.classes = batch.classes
        self.sharding.add(batch.rows, batch.group, threads=1)
        self.n += np.bincount(batch.group, minlength=len(self.n))

    def seen(self) -> Seen | None:
        if self.counting is None:
            return self.before
        from priory.models.naive_bayes import Seen

        arena, ends, counts, missed = self.sharding.result()
        classes, rank = ordered(self.classes)
        n, order = self.n[: len(rank)], np.argsort(rank)
        words = Words(n[order], arena, ends, np.ascontiguousarray(counts[:, order]), missed)
        mine = Seen(classes, n[order], (words,))
        self.counting = None
        return mine if self.before is None else self.before + mine


def ordered(classes: Array) -> tuple[Array, Array]:
    """The classes sorted, and the place of each among them."""
    order = np.argsort(classes)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order))
    return classes[order], rank


def fed(batches: Iterable[Batch], lane: Callable[[], Lane], threads: int | None = None) -> list[Lane]:
    """Lanes that have counted all rows, in one pass."""
    lanes, patience = [lane() for _ in range(threads or sharding.THREADS)], sys.getswitchinterval()
    sys.setswitchinterval(PATIENCE)
    try:
        for number, batch in enumerate(batches):
            lanes[number % len(lanes)].give(batch)
    finally:
        for each in lanes:
            each.finish()
        sys.setswitchinterval(patience)
    for each in lanes:
        if each.error is not None:
            raise each.error
    return lanes


def added(lanes: list[Lane]) -> Seen:
    """What they have seen together."""
    seen = [part for lane in lanes if (part := lane.seen()) is not None]
    return sum(seen[1:], start=seen[0])


def learn(model: NaiveBayes | TextClassifier, batches: Iterable[Batch], threads: int | None = None) -> None:
    """All rows in one pass. The model has to be new; it is set up by the first batch."""
    first, stream = peeked(iter(batches))
    model._read(first.rows, reset=True)
    model.seen_ = added(fed(stream, lane_of(model), threads))


def lane_of(model: NaiveBayes | TextClassifier) -> Callable[[], Lane]:
    from priory.bag_of_words.models import MODELS
    from priory.estimators.naive_bayes import NaiveBayes

    if isinstance(model, NaiveBayes):
        return partial(TableLane, model)
    return partial(TextLane, model._vocabulary().tokens, MODELS[model.model].once, model.most)


class Sample:
    """A uniform sample of all rows, whatever the chunks: the rows with the smallest of as many random numbers."""

    def __init__(self, size: int = SAMPLE, seed: int = 0) -> None:
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
        if len(self.keys) > 2 * self.size or self.bytes > MOST_BYTES:
            self._thin()

    def _thin(self) -> None:
        import pyarrow as pa

        if self.bytes > MOST_BYTES:  # of long documents fewer are enough
            self.size = max(1, min(self.size, len(self.keys) // 2))
        if len(self.keys) > self.size:
            self.bound = float(np.partition(self.keys, self.size)[self.size])
        chosen = np.flatnonzero(self.keys < self.bound)
        table = pa.Table.from_batches(self.kept).take(chosen).combine_chunks()
        self.keys, self.kept, self.bytes = self.keys[chosen], table.to_batches(), table.nbytes

    def batch(self) -> Any:
        """The rows kept, in the order they came, as one Arrow batch."""
        self._thin()
        return self.kept[0]
