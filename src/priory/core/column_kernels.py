"""Columns counted and scored by the compiled kernel, shard by shard: sums, moments, counts of codes and of values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from priory._kernel import tables as kernel
from priory.core.sharding import SHARD, map_threads, over_shards, rows_of, scored, totals, weights_of
from priory.core.typing import Array


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
    return list(map(count, columns) if len(x) < SHARD else map_threads(count, columns))


def rounded(x: Array, bits: int) -> Array:
    """To ``bits`` significant binary digits, as `value_counts` rounds."""
    mantissa, exponent = np.frexp(x)
    return np.asarray(np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits) + 0.0)


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
