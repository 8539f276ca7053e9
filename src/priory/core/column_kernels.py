"""Count and score columns with the compiled kernel, shard by shard: sums, moments, counts of codes and of values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from priory._kernel import tables as kernel
from priory.core.sharding import (
    ROWS_PER_SHARD,
    ColumnSubset,
    map_shards,
    map_threads,
    score_shards,
    sum_shards,
    take_float_rows,
    take_weights,
)
from priory.core.typing import Array


def sum_by_class(
    x: Array, group: Array, weight: Array | None, groups: int, transform: Callable[[Array], Array] | None = None
) -> Array:
    """Return the weighted column sums of ``transform(x)`` for each class, as (classes, columns)."""

    def count(part: slice) -> tuple[Array, ...]:
        block = (
            take_float_rows(x, part)
            if transform is None
            else np.ascontiguousarray(transform(x[part]), dtype=np.float64)
        )
        return (kernel.group_sums(block, group[part], take_weights(weight, part), groups),)

    return sum_shards(map_shards(count, len(x)))[0]


def compute_moments(
    x: Array, group: Array, weight: Array | None, origin: Array, unit: Array
) -> tuple[Array, Array, Array]:
    """Return count, sum and sum of squares of ``x / unit - origin`` per class and column; missing cells are skipped."""
    inverse = 1.0 / unit

    def count(part: slice) -> tuple[Array, ...]:
        return tuple(kernel.moments(take_float_rows(x, part), group[part], take_weights(weight, part), origin, inverse))

    n, first, second = sum_shards(map_shards(count, len(x)))
    return n, first, second


def count_codes(codes: Array, widths: Array, group: Array, weight: Array | None, groups: int) -> list[Array]:
    """Return, for each column, the counts (classes, values) of codes ``0 .. width-1``; negative codes are missing."""
    starts = _column_offsets(widths)

    def count(part: slice) -> tuple[Array, ...]:
        block = np.ascontiguousarray(codes[part], dtype=np.int32)
        return (kernel.code_counts(block, starts, group[part], take_weights(weight, part), groups),)

    counts = sum_shards(map_shards(count, len(codes)))[0]
    return [np.ascontiguousarray(part) for part in np.split(counts, starts[1:-1], axis=1)] if len(widths) else []


def count_values(x: Array, group: Array, weight: Array | None, groups: int, bits: int) -> list[tuple[Array, Array]]:
    """Return, for each column, its distinct values rounded to ``bits`` significant bits, and their counts per class."""

    def count(j: int) -> tuple[Array, Array]:
        column = np.ascontiguousarray(x[:, j], dtype=np.float64)
        return kernel.value_counts(column, group, take_weights(weight, slice(None)), groups, bits)

    columns = range(x.shape[1])
    return list(map(count, columns) if len(x) < ROWS_PER_SHARD else map_threads(count, columns))


def round_to_bits(x: Array, bits: int) -> Array:
    """Round to ``bits`` significant bits, exactly as `count_values` does."""
    mantissa, exponent = np.frexp(x)
    return np.asarray(np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits) + 0.0)


def score_gaussian(x: Array | ColumnSubset, unit: Array, centre: Array, precision: Array, constant: Array) -> Array:
    """Return the Gaussian log density summed over the columns, as (rows, classes)."""
    tables = [np.ascontiguousarray(t) for t in (1.0 / unit, centre, precision, constant)]
    return score_shards(lambda part: kernel.quadratic(take_float_rows(x, part), *tables), len(x), len(centre))


def score_student_t(
    x: Array | ColumnSubset, unit: Array, centre: Array, precision: Array, power: Array, constant: Array
) -> Array:
    """Return the Student-t log density summed over the columns, as (rows, classes)."""
    tables = [np.ascontiguousarray(t) for t in (1.0 / unit, centre, precision, power, constant)]
    return score_shards(lambda part: kernel.student(take_float_rows(x, part), *tables), len(x), len(centre))


def score_student_mixture(
    x: Array | ColumnSubset,
    unit: Array,
    centre: Array,
    precision: Array,
    power: Array,
    constant: Array,
    inclusion: Array,
) -> Array:
    """Return (rows, classes) Student-t log densities, each column counting with the probability that it matters.

    The last row of every parameter table describes all classes together. A column contributes the log of
    ``inclusion * p(x | class) + (1 - inclusion) * p(x)``, minus the term ``log p(x)`` that all classes share.
    """
    tables = [np.ascontiguousarray(t) for t in (1.0 / unit, centre, precision, power, constant, inclusion)]
    return score_shards(lambda part: kernel.student_mixture(take_float_rows(x, part), *tables), len(x), len(centre) - 1)


def score_by_lookup(codes: Callable[[slice], Array], rows: int, tables: list[Array]) -> Array:
    """Return (rows, classes) sums over the columns of ``tables[j][class, code]``; a negative code adds nothing."""
    starts = _column_offsets(np.array([table.shape[1] for table in tables]))
    table = np.ascontiguousarray(np.concatenate(tables, axis=1))
    return score_shards(
        lambda part: kernel.lookup(np.ascontiguousarray(codes(part), dtype=np.int32), starts, table), rows, len(table)
    )


def assign_single_class(rows: int) -> Array:
    """Return class codes that put every row into class 0."""
    return np.zeros(rows, dtype=np.int32)


def _column_offsets(widths: Array) -> Array:
    """Return where the values of each column start when all columns share one axis, and the total width."""
    return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
