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

SHARD = 1 << 15  # rows
THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

S = TypeVar("S")
T = TypeVar("T")


def shards(rows: int) -> Iterator[slice]:
    """The row ranges that are counted one by one.

    >>> [(s.start, s.stop) for s in shards(SHARD + 1)] == [(0, SHARD), (SHARD, SHARD + 1)]
    True
    """
    return (slice(start, min(start + SHARD, rows)) for start in range(0, max(rows, 1), SHARD))


def map_threads(function: Callable[[S], T], items: Sequence[S]) -> Iterable[T]:
    """``function`` of every item, in order; on all cores where there is more than one of either."""
    if len(items) == 1 or THREADS == 1:
        return map(function, items)
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(function, items))


def over_shards(function: Callable[[slice], T], rows: int) -> Iterable[T]:
    """``function`` of every shard, in order."""
    return map_threads(function, list(shards(rows)))


def totals(parts: Iterable[tuple[Array, ...]]) -> tuple[Array, ...]:
    """The sum of the shards' records, field by field."""
    total, *rest = parts
    for part in rest:
        for sums, more in zip(total, part, strict=True):
            sums += more
    return total


def rows_of(x: Array | Picked, part: slice) -> Array:
    return np.ascontiguousarray(x[part], dtype=np.float64)


class Picked:
    """Some columns of a block, copied a shard at a time."""

    def __init__(self, x: Array, places: Array) -> None:
        self._x, self._places = x, places
        self.shape = (len(x), len(places))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, part: slice) -> Array:
        return np.take(self._x[part], self._places, axis=1)


def weights_of(weight: Array | None, part: slice) -> Array | None:
    return None if weight is None else np.ascontiguousarray(weight[part], dtype=np.float64)


def scored(function: Callable[[slice], Array], rows: int, groups: int) -> Array:
    """Scores (rows, classes) filled shard by shard."""
    scores = np.empty((rows, groups))

    def score(part: slice) -> None:
        scores[part] = function(part)

    for _ in over_shards(score, rows):
        pass
    return scores
