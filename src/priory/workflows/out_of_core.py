"""Learning from more rows than fit into memory: worker threads count batches, and their statistics are added.

Neither the batches nor the number of workers change the result, because statistics add; they include the sample of rows
that corrections are derived from. A second sample keeps raw rows of the files, to score, audit and report.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, TypeVar, cast, final

import numpy as np
import pyarrow as pa
from numpy import ndarray as Array

from priory.core import sharding
from priory.core.statistics import Statistics
from priory.learning.counting import add_parts
from priory.model.cells import TEXT_COLUMN_NAMES, Cells, RowSample, TextCells, hash_labelled_rows, take_rows
from priory.model.model_statistics import ModelStatistics
from priory.sources.byte_streams import peek_first
from priory.text.documents import PackedDocuments
from priory.text.sparse_counts import is_kept_sparse
from priory.text.token_counts import TokenCounts, count_tokens
from priory.text.tokenizer import TokenCounter, Tokenizer
from priory.text.vocabulary import GrowingVocabulary

if TYPE_CHECKING:
    from priory.estimators.naive_bayes import NaiveBayes
    from priory.estimators.text_classifier import TextClassifier
    from priory.learning.counting import PartCounter
    from priory.learning.learned import Learned
    from priory.tables.table import Table

DEFAULT_SAMPLE_ROWS = 5000
MAX_SAMPLE_BYTES = 1 << 27
MAX_WAITING_BATCHES = 2  # of a worker
MAX_PARTS = 16  # records of batches that wait to be added up
SWITCH_INTERVAL_SECONDS = 0.0005  # how soon a thread gives way: batches pass from the reader to the workers


CountedT = TypeVar("CountedT", bound=Statistics)
WorkerT = TypeVar("WorkerT", bound="CountingWorker")


@dataclass
class LabelledBatch:
    """Rows in the form that a model reads, and the class of each.

    ``group`` has for each row the position of its class in ``classes``, which are all classes met so far, in the order
    in which they first appeared.
    """

    rows: Table | PackedDocuments
    group: Array
    classes: Array


class CountingWorker(ABC):
    """Counts the batches it is given, one after the other, on a thread of its own."""

    def __init__(self) -> None:
        self.thread, self.waiting = ThreadPoolExecutor(1), deque[Future[None]]()

    @abstractmethod
    def count(self, batch: LabelledBatch) -> None: ...

    def put_batch(self, batch: LabelledBatch) -> None:
        """Take a batch once few others wait; what went wrong with an earlier one is raised."""
        if len(self.waiting) > MAX_WAITING_BATCHES:
            self.waiting.popleft().result()
        self.waiting.append(self.thread.submit(self.count, batch))


@final
class TableWorker(CountingWorker):
    """Counts rows of a table."""

    def __init__(self, counter: PartCounter) -> None:
        self.counter = counter
        self.total: Learned | None = None
        super().__init__()

    def count(self, batch: LabelledBatch) -> None:
        classes, rank = sort_classes(batch.classes)
        part = self.counter.count_encoded(batch.rows, classes, rank[batch.group])
        assert part is not None  # every row has the weight one
        self.total = part if self.total is None else self.total + part


@final
class TextWorker(CountingWorker):
    """Counts the tokens of documents in one table of counts, replaced when a new class does not fit into it.

    With many classes there is no such table: each batch has its own sparse counts, and these are added.
    """

    def __init__(self, tokenizer: Tokenizer, binary: bool, max_tokens: int | None, memory: int) -> None:
        self.tokenizer, self.binary, self.max_tokens, self.memory = tokenizer, binary, max_tokens, memory
        self.samples: list[RowSample] = []  # of batches; added up when together they are as many as are kept
        self.parts: list[ModelStatistics] = []  # of batches of many classes; added up when they are many
        self.counter: TokenCounter | None = None
        self.n = np.zeros(0)  # documents of each class in the counter
        self.classes = np.zeros(0, dtype=object)
        self.earlier_statistics: ModelStatistics | None = None
        super().__init__()

    def count(self, batch: LabelledBatch) -> None:
        documents = cast(PackedDocuments, batch.rows)  # a model of texts is given no tables
        if is_kept_sparse(len(batch.classes)):
            self._count_many_classes(documents, batch)
        else:
            self._count_into_table(documents, batch)
        self.classes = batch.classes
        if self.memory:
            self.samples.append(self._sample_texts(documents, batch))
            # samples[0] is a sum already; the others are added once they exceed the rows to keep
            if sum(map(len, self.samples[1:])) > self.memory:
                self.samples = [_add_in_pairs(self.samples)]

    def _count_into_table(self, documents: PackedDocuments, batch: LabelledBatch) -> None:
        if self.counter is None or len(batch.classes) > len(self.n):
            # twice the width, so that many classes do not take as many counters
            width = max(len(batch.classes), 2 * len(self.n) if self.counter else 0)
            self.earlier_statistics = self.collect_statistics()
            self.counter, self.n = TokenCounter(width, self.tokenizer, self.binary, self.max_tokens), np.zeros(width)
        self.counter.add(documents, batch.group, threads=1)
        # (width,): classes beyond those met so far have zero documents
        self.n += np.bincount(batch.group, minlength=len(self.n))

    def _count_many_classes(self, documents: PackedDocuments, batch: LabelledBatch) -> None:
        if self.counter is not None:
            self.earlier_statistics = self.collect_statistics()
        classes, rank = sort_classes(batch.classes)
        tokens = count_tokens(
            documents, rank[batch.group], len(rank), self.tokenizer, binary=self.binary, max_tokens=self.max_tokens
        )
        self.parts.append(ModelStatistics(classes, tokens.n, (tokens,)))
        if len(self.parts) > MAX_PARTS:
            self.parts = [_add_in_pairs(self.parts)]

    def _sample_texts(self, documents: PackedDocuments, batch: LabelledBatch) -> RowSample:
        cells: list[Cells] = [TextCells(documents)]
        group = batch.group
        if self.samples and not self.samples[0].is_complete:  # the others would be dropped anyway
            hashes = hash_labelled_rows([TEXT_COLUMN_NAMES], cells, batch.classes, group)
            # a full sample keeps the rows with the smallest hashes, all below its limit
            below = np.flatnonzero(hashes < np.uint64(self.samples[0].limit))
            cells, group = take_rows(cells, below), group[below]
        names = [TEXT_COLUMN_NAMES]
        return RowSample.of(names, cells, batch.classes, group, None, self.memory, self._keep_cells)[0]

    def _keep_cells(self, cells: Sequence[Cells]) -> list[Cells]:
        vocabulary = GrowingVocabulary(self.tokenizer)
        return [TextCells(vocabulary.read_bags(c.data)) for c in cells if isinstance(c, TextCells)]

    def collect_statistics(self) -> ModelStatistics | None:
        if self.counter is not None:
            self.parts.append(self._collect_table(self.counter))
        if not self.parts:
            return self.earlier_statistics
        _, rank = sort_classes(self.classes)
        # the sample covers all batches so far, so only one part may hold it
        sample = _add_in_pairs(self.samples).regroup_classes(rank, len(rank)) if self.samples else None
        part = replace(_add_in_pairs(self.parts), sample=sample)
        self.counter, self.parts, self.samples = None, [], []
        return part if self.earlier_statistics is None else self.earlier_statistics + part

    def _collect_table(self, counter: TokenCounter) -> ModelStatistics:
        """Convert the table of counts to statistics."""
        arena, ends, counts, missed = counter.result()  # counts: (tokens, classes)
        classes, rank = sort_classes(self.classes)
        # order: from sorted classes to the order of first appearance, in which they were counted
        n, order = self.n[: len(rank)], np.argsort(rank)
        tokens = TokenCounts(n[order], arena, ends, np.ascontiguousarray(counts[:, order]), missed)
        return ModelStatistics(classes, n[order], (tokens,))


def _add_in_pairs(parts: Sequence[CountedT]) -> CountedT:
    """Sum records pairwise, so that each row is copied only log2(parts) times."""
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        parts = [*(a + b for a, b in pairs), *(parts[-1:] if len(parts) % 2 else ())]
    return parts[0]


def sort_classes(classes: Array) -> tuple[Array, Array]:
    """Sort the classes; also return the rank of each, (classes,)."""
    order = np.argsort(classes)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order))
    return classes[order], rank


def count_batches(
    batches: Iterable[LabelledBatch], make_worker: Callable[[], WorkerT], threads: int | None = None
) -> list[WorkerT]:
    """Distribute all batches among worker threads; return the workers when they have finished."""
    workers = [make_worker() for _ in range(threads or sharding.choose_threads())]
    usual_interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    try:
        for number, batch in enumerate(batches):
            # round robin: which worker counts a batch does not change the sum
            workers[number % len(workers)].put_batch(batch)
    finally:
        for worker in workers:
            worker.thread.shutdown()
        sys.setswitchinterval(usual_interval)
    for done in chain.from_iterable(worker.waiting for worker in workers):
        done.result()  # raises what went wrong
    return workers


def count_texts(
    batches: Iterable[LabelledBatch], make_worker: Callable[[], TextWorker], threads: int | None = None
) -> tuple[Table | PackedDocuments, ModelStatistics]:
    """Count documents; return the first batch, and the statistics of all."""
    first, stream = peek_first(iter(batches))
    collected = [worker.collect_statistics() for worker in count_batches(stream, make_worker, threads)]
    parts = [part for part in collected if part is not None]
    return first.rows, sum(parts[1:], start=parts[0])


def learn_texts(model: TextClassifier, first_rows: Table | PackedDocuments, statistics: ModelStatistics) -> None:
    """Load statistics of documents into a new model."""
    model.adopt(model.counter(samples=False).make_part(first_rows, statistics), finish=False)


def learn_tables(model: NaiveBayes, batches: Iterable[LabelledBatch], threads: int | None = None) -> None:
    """Fit a new model to all batches in one pass; the first batch defines the columns."""
    counter = model.counter(samples=False)
    first, stream = peek_first(iter(batches))
    known = replace(counter, rows=counter.rows.read(first.rows, "fit")[0])
    total = add_parts(worker.total for worker in count_batches(stream, partial(TableWorker, known), threads))
    model.adopt(total, finish=False)


class DrawnRows:
    """A uniform sample of rows, independent of the batches: each row draws a random key, the smallest are kept.

    Each file has its own stream of random numbers, so that samples of files add up to the sample of all files.
    """

    def __init__(self, size: int = DEFAULT_SAMPLE_ROWS, seed: int = 0) -> None:
        self.size, self.seed, self.bound = size, seed, 1.0
        self.file, self.random = 0, np.random.default_rng(seed)
        self.keys = np.zeros(0)
        self.files = np.zeros(0, dtype=np.int64)  # the number of the file of each row
        self.kept: list[pa.RecordBatch] = []
        self.rows, self.bytes = 0, 0

    def add(self, batch: pa.RecordBatch, file: int = 0) -> None:
        if file != self.file:
            # jumped streams do not overlap
            self.file, self.random = file, np.random.Generator(np.random.PCG64(self.seed).jumped(file))
        keys = self.random.random(batch.num_rows)
        self.rows += batch.num_rows
        chosen = np.flatnonzero(keys < self.bound)
        if len(chosen):
            self.keys = np.concatenate([self.keys, keys[chosen]])
            self.files = np.concatenate([self.files, np.full(len(chosen), file)])
            self.kept.append(batch.take(chosen) if len(chosen) < len(keys) else batch)
            self.bytes += self.kept[-1].nbytes
        if len(self.keys) > 2 * self.size or self.bytes > MAX_SAMPLE_BYTES:
            self._drop_rows()

    def __add__(self, other: DrawnRows) -> DrawnRows:
        total = DrawnRows(min(self.size, other.size), self.seed)
        total.bound, total.rows = min(self.bound, other.bound), self.rows + other.rows
        total.keys, total.files = np.append(self.keys, other.keys), np.append(self.files, other.files)
        total.kept, total.bytes = [*self.kept, *other.kept], self.bytes + other.bytes
        if total.kept:
            total._drop_rows()
        return total

    def _drop_rows(self) -> None:
        if self.bytes > MAX_SAMPLE_BYTES:  # fewer rows will do where they are long
            self.size = max(1, min(self.size, len(self.keys) // 2))
        if len(self.keys) > self.size:
            # the smallest key that is dropped: later rows with larger keys need not be stored
            self.bound = float(np.partition(self.keys, self.size)[self.size])
        chosen = np.flatnonzero(self.keys < self.bound)
        table = pa.Table.from_batches(self.kept).take(chosen).combine_chunks()
        self.keys, self.files = self.keys[chosen], self.files[chosen]
        self.kept, self.bytes = table.to_batches(), table.nbytes

    def batch(self) -> pa.RecordBatch:
        """Return the sampled rows, in the order of the files and of their rows."""
        self._drop_rows()
        # stable: rows of one file stay in order
        return self.kept[0].take(np.argsort(self.files, kind="stable"))
