"""Operations on the entries of sparse rows in CSR format: take, sort, sum, and count by class."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from priory._kernel import sparse as kernel
from priory.core.sharding import choose_threads, map_threads
from priory.core.typing import Array

MIN_ENTRIES_PER_THREAD = 1 << 18


def take_entries(ends: Array, rows: Array | slice, entries: Array) -> tuple[Array, Array]:
    """Row pointers and entries of some rows; the entries of row i are ``entries[ends[i]:ends[i + 1]]``.

    >>> [found.tolist() for found in take_entries(np.array([0, 2, 2, 3]), np.array([2, 0]), np.array([7, 8, 9]))]
    [[0, 1, 3], [9, 7, 8]]
    """
    numbers = np.arange(len(ends) - 1)[rows]
    taken_ends = np.append(0, np.cumsum(np.diff(ends)[numbers]))
    taken = np.empty(taken_ends[-1], dtype=entries.dtype)
    kernel.copy_rows(ends, entries.view(np.uint8), entries.itemsize, numbers, taken.view(np.uint8))
    return taken_ends, taken


def sort_entries(ends: Array, columns: Array, values: Array) -> tuple[Array, Array]:
    """Sort the entries of each row by column (zero or above); sorted entries are returned unchanged."""
    if are_entries_sorted(ends, columns):
        return columns, values
    columns, values = columns.astype(np.int64), values.astype(float)
    room = np.empty_like(columns), np.empty_like(values)

    def sort_span(span: tuple[int, int]) -> None:
        kernel.sort_rows(ends, columns, values, *room, *span)

    parts = min(choose_threads(), 1 + len(columns) // MIN_ENTRIES_PER_THREAD)
    list(map_threads(sort_span, list(pairwise(np.linspace(0, len(ends) - 1, parts + 1).astype(int).tolist()))))
    return columns, values


def sum_entries(ends: Array, values: Array) -> Array:
    """Sum of the values of each row's entries, (rows,); for booleans the number of True.

    >>> sum_entries(np.array([0, 2, 2, 3]), np.array([True, False, True])).tolist()
    [1, 0, 1]
    """
    # differences of cumulative sums, because reduceat does not handle empty rows
    sums = np.zeros(len(values) + 1, dtype=np.int64 if values.dtype == bool else values.dtype)
    np.cumsum(values, out=sums[1:])
    return np.diff(sums[ends])


def are_entries_sorted(ends: Array, columns: Array) -> bool:
    """Whether the columns of each row are strictly increasing."""
    rises = np.append(columns[1:] > columns[:-1], True)
    rises[ends[1:][ends[1:] > 0] - 1] = True  # the last entry of a row has no successor
    return bool(rises.all())


def sum_entries_by_class(
    ends: Array, columns: Array, values: Array | None, group: Array, weight: Array | None, shape: tuple[int, int]
) -> Array:
    """Sum of the values of each column over the rows of each class, (columns, classes); values default to 1.

    ``group`` and ``weight`` (rows,) are the class and the weight of each row; ``shape`` is (columns, classes).
    """
    counts = np.zeros(shape)
    weights = np.ones(len(ends) - 1) if weight is None else weight.astype(float)
    kernel.count_entries(ends, columns, values, group.astype(np.int32), weights, counts)
    return counts
