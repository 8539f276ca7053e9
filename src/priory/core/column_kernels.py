"""Count and score columns with the compiled kernels, shard by shard: sums, counts of codes and of values, densities."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy import ndarray as Array

from priory.core import sharding
from priory.core._kernel import exact as exact_kernel
from priory.core._kernel import tables as kernel
from priory.core.exact_sums import ExactSums
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
from priory.core.value_counts import find_column_offsets, round_to_bits
from priory.errors import DataError

EXACT_KERNEL_DTYPES = tuple(np.dtype(t) for t in (np.float64, np.float32, np.int64, np.int32))
MIN_CELLS_PER_THREAD = 1 << 16
MAX_ROWS_PER_SUM = 1 << 26  # limbs may overflow with more rows before carries are propagated
MAX_DISTINCT_WEIGHTS, MAX_WEIGHT_SAMPLE = 16, 1024
MAX_CLASSES_TO_COUNT_AS_MET = 64  # with more, growing a table of counts is slower than sorting the values first
MAX_COUNTS_UNCHECKED = 1 << 24  # values x classes: smaller tables are not checked against the memory limit
TABLES_OF_COUNTS = 3  # the counts and two temporary tables


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


class ExactColumnSums(NamedTuple):
    """Sums over the cells of each class and column that are not missing."""

    n: Array  # (classes, columns): the weight of the cells, rounded
    weight: ExactSums
    first: ExactSums
    second: ExactSums


def sum_exactly(
    x: Array,
    group: Array,
    weight: Array | None,
    groups: int,
    transform: Callable[[Array], Array] | None = None,
    squares: bool = False,
) -> ExactColumnSums:
    """Return count, sum and (optionally) sum of squares of ``transform(x)`` per class and column.

    The sums are exact, so they do not depend on how the rows are split. An infinite cell raises DataError.
    """
    if weight is not None and (found := _find_few_weights(weight)) is not None:
        return _sum_by_weight(x, group, found, groups, transform, squares)
    direct = transform is None and x.dtype in EXACT_KERNEL_DTYPES

    def count(part: slice) -> list[ExactSums]:
        block = x[part] if direct else take_float_rows(x, part) if transform is None else transform(x[part])
        block = block if direct else np.ascontiguousarray(block, dtype=np.float64)
        w = take_weights(weight, part)
        n, *sums = exact_kernel.sum_powers(block, group[part], w, groups, squares)
        found = [ExactSums(limbs.reshape(*n.shape, -1), base) for limbs, base in sums]
        if w is None:
            return [ExactSums.from_floats(n), *found]
        weights = np.where(np.isnan(block), np.nan, w[:, None])  # a missing cell has no weight
        _, (limbs, base), _ = exact_kernel.sum_powers(weights, group[part], None, groups, False)
        return [ExactSums(limbs.reshape(*n.shape, -1), base), *found]

    try:
        first, *rest = map_threads(count, _split_evenly(x.shape)) if direct else map_shards(count, len(x))
        total = [sum(parts[1:], start=parts[0]) for parts in zip(first, *rest, strict=True)]
        return ExactColumnSums(total[0].to_floats(), *total)
    except OverflowError as error:
        column = int(error.args[0])
        values = (transform or np.asarray)(x[:, [column]])[:, 0]
        row = int(np.argmax(np.isinf(values.astype(np.float64))))
        raise DataError(f"row {row}, column {column} holds an infinite number; use NaN for what is missing.") from None


def _split_evenly(shape: tuple[int, ...]) -> list[slice]:
    """Split the rows evenly over the threads, with a minimum of cells and a maximum of rows per part."""
    rows, columns = shape
    parts = max(min(sharding.choose_threads(), rows * columns // MIN_CELLS_PER_THREAD), -(-rows // MAX_ROWS_PER_SUM), 1)
    ends = [rows * k // parts for k in range(parts + 1)]
    return [slice(*pair) for pair in pairwise(ends)]


def _find_few_weights(weight: Array) -> tuple[Array, Array] | None:
    """The distinct weights, and the index of each row's weight among them; None if there are more than a few."""
    values = np.unique(weight[:MAX_WEIGHT_SAMPLE])
    if len(values) > MAX_DISTINCT_WEIGHTS or 2 * len(values) > len(weight):
        return None
    # a weight beyond the sample is detected by comparing with what its index stands for
    index = np.minimum(np.searchsorted(values, weight), len(values) - 1)
    return (values, index) if np.array_equal(values[index], weight) else None


def _sum_by_weight(
    x: Array,
    group: Array,
    weights: tuple[Array, Array],
    groups: int,
    transform: Callable[[Array], Array] | None,
    squares: bool,
) -> ExactColumnSums:
    """Sum rows with few distinct weights: treat each class and weight as a class, then multiply by the weights."""
    values, index = weights
    # (rows,): the combined class, weight by weight
    apart = (index * groups + group).astype(np.int32)
    sums = sum_exactly(x, apart, None, groups * len(values), transform, squares)

    def add_up(sums: ExactSums) -> ExactSums:
        # (weights, classes, columns), summed over the weights
        cells = sums.reshape((len(values), groups, x.shape[1]))
        first, *rest = (cells[k].multiply_exactly(w) for k, w in enumerate(values))
        return sum(rest, start=first)

    exact_n, first, second = (add_up(s) for s in sums[1:])
    return ExactColumnSums(exact_n.to_floats(), exact_n, first, second)


def count_codes(codes: Array, widths: Array, group: Array, weight: Array | None, groups: int) -> list[Array]:
    """Return, for each column, the counts (classes, values) of codes ``0 .. width-1``; negative codes are missing."""
    starts = find_column_offsets(widths)
    check_count_memory(int(starts[-1]), groups)

    def count(part: slice) -> tuple[Array, ...]:
        block = np.ascontiguousarray(codes[part], dtype=np.int32)
        return (kernel.code_counts(block, starts, group[part], take_weights(weight, part), groups),)

    counts = sum_shards(map_shards(count, len(codes)))[0]
    return [np.ascontiguousarray(part) for part in np.split(counts, starts[1:-1], axis=1)] if len(widths) else []


def count_values(x: Array, group: Array, weight: Array | None, groups: int, bits: int) -> list[tuple[Array, Array]]:
    """Return, for each column, its distinct values rounded to ``bits`` significant bits, and their counts per class."""

    def count(j: int) -> tuple[Array, Array]:
        column = np.ascontiguousarray(x[:, j], dtype=np.float64)
        if groups > MAX_CLASSES_TO_COUNT_AS_MET:
            return _count_sorted_values(round_to_bits(column, bits), group, weight, groups)
        return kernel.value_counts(column, group, take_weights(weight, slice(None)), groups, bits)

    columns = range(x.shape[1])
    most = x.size * groups  # counts in the worst case: all values differ
    if most > MAX_COUNTS_UNCHECKED and sharding.exceeds_memory(TABLES_OF_COUNTS * 8 * most):
        check_count_memory(sum(len(np.unique(round_to_bits(x[:, j], bits))) for j in columns), groups)
    return list(map(count, columns) if len(x) < ROWS_PER_SHARD else map_threads(count, columns))


def _count_sorted_values(column: Array, group: Array, weight: Array | None, groups: int) -> tuple[Array, Array]:
    """The distinct values of a column and their counts (classes, values), by sorting the values first."""
    present = np.flatnonzero(~np.isnan(column))
    values, place = np.unique(column[present], return_inverse=True)
    # flat index into (classes, values)
    cell = group[present].astype(np.int64) * len(values) + place
    counts = np.bincount(cell, None if weight is None else weight[present], minlength=groups * len(values))
    return values, counts.astype(float, copy=False).reshape(groups, len(values))


def check_count_memory(values: int, classes: int) -> None:
    """Raise ModelTooLargeError if counts of this number of values in each class do not fit into memory."""
    if values * classes > MAX_COUNTS_UNCHECKED:
        remedy = "use fewer classes, round numbers, or declare a family that counts no values: families='gaussian'"
        what = f"counts of {values:,} different values in {classes:,} classes"
        sharding.check_memory(TABLES_OF_COUNTS * 8 * values * classes, what, remedy)


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


def assign_single_class(rows: int) -> Array:
    """Return class codes that put every row into class 0."""
    return np.zeros(rows, dtype=np.int32)
