"""One pass over the memory: split the rows into shards, count each on its own thread, add the records.

The shards have a fixed size and are added in order, so the result does not depend on the number of threads. A shard is
converted to float64 rows on its own: the extra memory is a few shards, whatever the type or layout of the table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from priory._kernel import compiled as kernel
from priory.logspace import Array

SHARD = 1 << 15  # rows
THREADS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

T = TypeVar("T")


def shards(rows: int) -> Iterator[slice]:
    """The row ranges that are counted one by one.

    >>> [(s.start, s.stop) for s in shards(SHARD + 1)] == [(0, SHARD), (SHARD, SHARD + 1)]
    True
    """
    return (slice(start, min(start + SHARD, rows)) for start in range(0, max(rows, 1), SHARD))


def over_shards(function: Callable[[slice], T], rows: int) -> Iterable[T]:
    """``function`` of every shard, in order; on all cores where there is more than one shard."""
    parts = list(shards(rows))
    if len(parts) == 1 or THREADS == 1:
        return map(function, parts)
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(function, parts))


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


def group_sums(
    x: Array, group: Array, weight: Array | None, groups: int, transform: Callable[[Array], Array] | None = None
) -> Array:
    """Column sums of ``transform(x)`` for each class, weighted."""

    def count(part: slice) -> tuple[Array, ...]:
        block = rows_of(x, part) if transform is None else np.ascontiguousarray(transform(x[part]), dtype=np.float64)
        return (kernel.group_sums(block, group[part], weights_of(weight, part), groups),)

    return totals(over_shards(count, len(x)))[0]


def moments(x: Array, group: Array, weight: Array | None, origin: Array, unit: Array) -> tuple[Array, Array, Array]:
    """Count, sum, and sum of squares of ``x / unit - origin`` for each class and column; missing cells are left out."""
    inverse = 1.0 / unit

    def count(part: slice) -> tuple[Array, ...]:
        return tuple(kernel.moments(rows_of(x, part), group[part], weights_of(weight, part), origin, inverse))

    n, first, second = totals(over_shards(count, len(x)))
    return n, first, second


def tally(codes: Array, widths: Array, group: Array, weight: Array | None, groups: int) -> list[Array]:
    """For each column the counts (classes, values) of integer codes ``0 .. width-1``; a negative code is missing."""
    starts = _starts(widths)

    def count(part: slice) -> tuple[Array, ...]:
        block = np.ascontiguousarray(codes[part], dtype=np.int32)
        return (kernel.tally(block, starts, group[part], weights_of(weight, part), groups),)

    counts = totals(over_shards(count, len(codes)))[0]
    return [np.ascontiguousarray(part) for part in np.split(counts, starts[1:-1], axis=1)] if len(widths) else []


def value_counts(x: Array, group: Array, weight: Array | None, groups: int, bits: int) -> list[tuple[Array, Array]]:
    """For each column its distinct values at ``bits`` significant binary digits, and their counts per class."""

    def count(j: int) -> tuple[Array, Array]:
        column = np.ascontiguousarray(x[:, j], dtype=np.float64)
        return kernel.value_counts(column, group, weights_of(weight, slice(None)), groups, bits)

    columns = range(x.shape[1])
    if len(x) < SHARD or THREADS == 1:
        return list(map(count, columns))
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(count, columns))


def rounded(x: Array, bits: int) -> Array:
    """To ``bits`` significant binary digits, as `value_counts` rounds."""
    mantissa, exponent = np.frexp(x)
    return np.asarray(np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits) + 0.0)


def scored(function: Callable[[slice], Array], rows: int, groups: int) -> Array:
    """Scores (rows, classes) filled shard by shard."""
    scores = np.empty((rows, groups))

    def score(part: slice) -> None:
        scores[part] = function(part)

    for _ in over_shards(score, rows):
        pass
    return scores


def quadratic(x: Array, unit: Array, centre: Array, precision: Array, constant: Array) -> Array:
    """Gaussian log density, summed over the columns, for each row and class."""
    tables = [np.ascontiguousarray(t) for t in (1.0 / unit, centre, precision, constant)]
    return scored(lambda part: kernel.quadratic(rows_of(x, part), *tables), len(x), len(centre))


def student(x: Array, unit: Array, centre: Array, precision: Array, power: Array, constant: Array) -> Array:
    """Student-t log density, summed over the columns, for each row and class."""
    tables = [np.ascontiguousarray(t) for t in (1.0 / unit, centre, precision, power, constant)]
    return scored(lambda part: kernel.student(rows_of(x, part), *tables), len(x), len(centre))


def blended(
    x: Array, unit: Array, centre: Array, precision: Array, power: Array, constant: Array, matters: Array
) -> Array:
    """The same for columns that may matter, less what all classes share; the last row of a table is all classes."""
    tables = [np.ascontiguousarray(t) for t in (1.0 / unit, centre, precision, power, constant, matters)]
    return scored(lambda part: kernel.blended(rows_of(x, part), *tables), len(x), len(centre) - 1)


def lookup(codes: Callable[[slice], Array], rows: int, tables: list[Array]) -> Array:
    """Sum over the columns of ``tables[j][class, code]`` for each row and class; a negative code adds nothing."""
    starts = _starts(np.array([table.shape[1] for table in tables]))
    table = np.ascontiguousarray(np.concatenate(tables, axis=1))
    return scored(
        lambda part: kernel.lookup(np.ascontiguousarray(codes(part), dtype=np.int32), starts, table), rows, len(table)
    )


def one_group(rows: int) -> Array:
    """Every row in the same class."""
    return np.zeros(rows, dtype=np.int32)


def _starts(widths: Array) -> Array:
    return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
