"""One pass over the memory: split the rows into shards, count each on its own thread, add the records.

The shards have a fixed size and are added in order, so the result does not depend on the number of threads. A shard is
converted to float64 rows on its own: the extra memory is a few shards, whatever the type or layout of the table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from priory.core.typing import Array

ROWS_PER_SHARD = 1 << 15  # rows
N_THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

S = TypeVar("S")
ShardResultT = TypeVar("ShardResultT")


def split_rows(rows: int) -> Iterator[slice]:
    """The row ranges that are counted one by one.

    >>> [(s.start, s.stop) for s in split_rows(ROWS_PER_SHARD + 1)] == [(0, ROWS_PER_SHARD), (ROWS_PER_SHARD, ROWS_PER_SHARD + 1)]
    True
    """
    return (slice(start, min(start + ROWS_PER_SHARD, rows)) for start in range(0, max(rows, 1), ROWS_PER_SHARD))


def map_threads(function: Callable[[S], ShardResultT], items: Sequence[S]) -> Iterable[ShardResultT]:
    """``function`` of every item, in order; on all cores where there is more than one of either."""
    if len(items) == 1 or N_THREADS == 1:
        return map(function, items)
    with ThreadPoolExecutor(N_THREADS) as pool:
        return list(pool.map(function, items))


def map_shards(function: Callable[[slice], ShardResultT], rows: int) -> Iterable[ShardResultT]:
    """``function`` of every shard, in order."""
    return map_threads(function, list(split_rows(rows)))


def sum_shards(parts: Iterable[tuple[Array, ...]]) -> tuple[Array, ...]:
    """The sum of the shards' records, field by field."""
    total, *rest = parts
    for part in rest:
        for sums, more in zip(total, part, strict=True):
            sums += more
    return total


def take_float_rows(x: Array | ColumnSubset, part: slice) -> Array:
    return np.ascontiguousarray(x[part], dtype=np.float64)


class ColumnSubset:
    """Some columns of a block, copied a shard at a time."""

    def __init__(self, x: Array, columns: Array) -> None:
        self._x, self._columns = x, columns
        self.shape = (len(x), len(columns))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, part: slice) -> Array:
        return np.take(self._x[part], self._columns, axis=1)


def take_weights(weight: Array | None, part: slice) -> Array | None:
    return None if weight is None else np.ascontiguousarray(weight[part], dtype=np.float64)


def score_shards(function: Callable[[slice], Array], rows: int, groups: int) -> Array:
    """Scores (rows, classes) filled shard by shard."""
    scores = np.empty((rows, groups))

    def score(part: slice) -> None:
        scores[part] = function(part)

    for _ in map_shards(score, rows):
        pass
    return scores


def space_evenly(rows: int, max_rows: int) -> Array:
    """At most ``max_rows`` row numbers, evenly spaced from first to last.

    >>> space_evenly(10, 4).tolist(), space_evenly(3, 100).tolist()
    ([0, 3, 6, 9], [0, 1, 2])
    """
    return np.unique(np.linspace(0, rows - 1, min(rows, max_rows)).astype(int))
