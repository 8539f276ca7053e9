"""Sparse rows: their entries sorted, added up and counted, and their product with a dense table, on all cores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy import ndarray as Array

from priory.core._kernel import sparse as kernel
from priory.core.sharding import N_THREADS, choose_threads, map_threads

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


def unite_parts(ends: Array, ids: Array, part_ends: Array, parts: Array, width: int) -> tuple[Array, Array]:
    """The distinct parts of the entries of each row, as row pointers and columns below ``width``.

    The parts of entry ``e`` are ``parts[part_ends[e] : part_ends[e + 1]]``.

    >>> united = unite_parts(np.array([0, 2]), np.array([1, 0]), np.array([0, 2, 4]), np.array([7, 8, 9, 7]), 10)
    >>> [found.tolist() for found in united]
    [[0, 3], [9, 7, 8]]
    """
    given = ends.astype(np.int64), ids.astype(np.int64), part_ends.astype(np.int64), parts.astype(np.int32)
    found_ends = np.zeros(len(ends), dtype=np.int64)
    kernel.unite_rows(*given, np.full(width, -1, dtype=np.int64), None, found_ends)
    found = np.empty(found_ends[-1], dtype=np.int32)
    kernel.unite_rows(*given, np.full(width, -1, dtype=np.int64), found, found_ends)
    return found_ends, found


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


LANE = 8  # the width of a dense table is padded to a multiple of this, for SIMD instructions
MAX_LOGITS = 1024  # of one row, in dual ascent
MIN_PRODUCTS_PER_THREAD = 1 << 23  # starting a thread takes as long as two million products


def pad_to_lane(width: int) -> int:
    """Round up to a multiple of LANE.

    >>> pad_to_lane(1), pad_to_lane(8), pad_to_lane(9)
    (8, 8, 16)
    """
    return -(-width // LANE) * LANE


def pad_columns(table: Array) -> Array:
    """Append columns of zeros up to a width that `SparseRows.multiply` takes."""
    wide = np.zeros((len(table), pad_to_lane(table.shape[1])), dtype=np.float32)
    wide[:, : table.shape[1]] = table
    return wide


@dataclass(frozen=True, eq=False)
class SparseRows:
    """A sparse matrix in CSR format; without ``data`` every entry is one."""

    ends: Array  # (rows + 1,), int64: where the entries of each row end
    indices: Array  # (entries,), int32: columns
    data: Array | None  # (entries,), float32
    width: int

    @classmethod
    def from_dense(cls, table: Array) -> SparseRows:
        """Convert a dense table, dropping zeros."""
        row, column = np.nonzero(table)
        ends = np.append(0, np.cumsum(np.bincount(row, minlength=len(table))))
        return cls(ends, column.astype(np.int32), table[row, column].astype(np.float32), table.shape[1])

    @property
    def n_rows(self) -> int:
        return len(self.ends) - 1

    @cached_property
    def transposed(self) -> SparseRows:
        """The transposed matrix."""
        # a stable sort of the entries by column; ``row`` (entries,) is the row of each
        order = kernel.order_entries(self.indices, self.width)
        row = np.repeat(np.arange(self.n_rows, dtype=np.int32), np.diff(self.ends))
        ends = np.append(0, np.cumsum(np.bincount(self.indices, minlength=self.width)))
        return SparseRows(ends, row[order], None if self.data is None else self.data[order], self.n_rows)

    def take_columns(self, columns: Array) -> SparseRows:
        """Select columns, given in increasing order."""
        # the new position of each column; -1 if it is dropped
        place = np.full(self.width, -1, dtype=np.int32)
        place[columns] = np.arange(len(columns), dtype=np.int32)
        indices = place[self.indices]
        kept = indices >= 0
        ends = np.append(0, np.cumsum(sum_entries(self.ends, kept)))
        return SparseRows(ends, indices[kept], None if self.data is None else self.data[kept], len(columns))

    @cached_property
    def values(self) -> Array:
        """Values of all entries, (entries,)."""
        return np.ones(len(self.indices), np.float32) if self.data is None else self.data

    @cached_property
    def squared_lengths(self) -> Array:
        """Sum of squares of each row, (rows,)."""
        return sum_entries(self.ends, np.square(self.values, dtype=float)).astype(np.float32)

    def take_rows(self, rows: Array) -> SparseRows:
        """Select rows, in the order given."""
        ends, indices = take_entries(self.ends, rows, self.indices)
        data = None if self.data is None else take_entries(self.ends, rows, self.data)[1]
        return SparseRows(ends, indices, data, self.width)

    def multiply_columns(self, dense: Array) -> Array:
        """`multiply` by a table of any width."""
        if dense.shape[1] == 1:
            return multiply_entries(self.ends, self.indices, self.values, np.asarray(dense, np.float32))
        wide = np.zeros((len(dense), pad_to_lane(dense.shape[1])), dtype=np.float32)
        wide[:, : dense.shape[1]] = dense
        return self.multiply(wide)[:, : dense.shape[1]]

    def multiply(self, dense: Array) -> Array:
        """Product with ``dense`` (columns, width) in float32, (rows, width); the width must be a multiple of LANE."""
        assert dense.shape[0] == self.width
        assert dense.shape[1] % LANE == 0
        table = np.ascontiguousarray(dense, dtype=np.float32)
        out = np.empty((self.n_rows, table.shape[1]), dtype=np.float32)

        def multiply_span(span: tuple[int, int]) -> None:
            kernel.multiply_rows(self.ends, self.indices, self.data, table, out, *span)

        list(map_threads(multiply_span, self._split_rows(table.shape[1])))
        return out

    def multiply_transposed(self, dense: Array) -> Array:
        """Product of the transpose with ``dense`` (rows, width) in float32, (columns, width)."""
        out = np.zeros((self.width, dense.shape[1]), np.float32)
        kernel.add_transposed_products(
            self.ends, self.indices, self.values, np.ascontiguousarray(dense, np.float32), out
        )
        return out

    def _split_rows(self, columns: int) -> list[tuple[int, int]]:
        """Row ranges (start, stop) for the threads, with about the same number of entries each."""
        parts = min(N_THREADS, 1 + len(self.indices) * columns // MIN_PRODUCTS_PER_THREAD)
        if parts == 1:
            return [(0, self.n_rows)]
        bounds = np.searchsorted(self.ends, np.linspace(0, len(self.indices), parts + 1))
        bounds[0], bounds[-1] = 0, self.n_rows
        return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))

    def count_by_class(self, group: Array, weight: Array, classes: int) -> Array:
        """Total weight of the rows of each class that have an entry in each column, (columns, classes)."""
        return sum_entries_by_class(self.ends, self.indices, None, group, weight, (self.width, classes))

    def score_left_out(self, counts: Array, group: Array, weight: Array, smoothing: float) -> tuple[Array, Array]:
        """Leave-one-out ``Σ log(count + smoothing)`` over the columns of each row, and the number of columns summed.

        Returns (rows, classes) and (rows,). The counts (columns, classes) include the rows of positive weight, so each
        of these is subtracted from the counts of its own class; columns that no other row has are ignored.
        """
        scores, remaining = np.zeros((self.n_rows, counts.shape[1])), np.zeros(self.n_rows, np.int64)
        given = group.astype(np.int32), weight.astype(float), smoothing
        # counts (columns, classes), their totals (columns,), and the logarithms for all classes but a row's own
        tables = counts, counts.sum(axis=1), np.log(counts + smoothing)

        def score_span(span: tuple[int, int]) -> None:
            kernel.score_left_out(self.ends, self.indices, *given, *tables, scores, remaining, *span)

        list(map_threads(score_span, self._split_rows(LANE * counts.shape[1])))
        return scores, remaining


def multiply_entries(ends: Array, indices: Array, values: Array, dense: Array) -> Array:
    """Product of sparse rows and ``dense`` (columns, width), in the precision of ``dense``: (rows, width)."""
    out = np.zeros((len(ends) - 1, dense.shape[1]), dense.dtype)
    kernel.add_products(ends, indices, values.astype(dense.dtype, copy=False), np.ascontiguousarray(dense), out)
    return out


def compute_log_losses(logits: Array, group: Array, weight: Array, n_logits: int) -> tuple[Array, Array]:
    """Log loss (rows, models) of the logits of several models, and its weighted gradient, of the shape of ``logits``.

    ``logits`` (rows, padded) has ``n_logits`` columns for each model; a single logit is for the second of two classes.
    ``weight`` is (rows, models).
    """
    wrong, losses = np.zeros(logits.shape, np.float32), np.empty(weight.shape, np.float32)
    kernel.judge_logits(logits, group.astype(np.int32), weight, n_logits, wrong, losses)
    return losses, wrong


def score_column_sets(levels: Array, sets: Array, n_levels: int, wrong: Array, chance: Array) -> Array:
    """Score (sets, width) how far the residuals in the cells of each set of columns exceed chance.

    ``levels`` (rows, columns) are below ``n_levels``; rows with a negative level are in no cell. ``wrong`` and
    ``chance`` (rows, width) are residuals and their variances; the score of a set is the sum over its cells of
    (residual² - variance) / (1 + variance).
    """
    by_column = np.ascontiguousarray(levels.T, dtype=np.int32)
    columns = np.ascontiguousarray(sets, dtype=np.int32)
    out = np.empty((len(sets), wrong.shape[1]), dtype=np.float32)
    cells = n_levels ** sets.shape[1]

    def score_span(span: range) -> None:
        # working memory of this thread: residual and variance of each cell of one set
        sums = np.empty((2, cells, wrong.shape[1]), dtype=np.float32)
        kernel.score_cells(by_column, columns, n_levels, wrong, chance, sums, out, span.start, span.stop)

    parts = min(N_THREADS, 1 + out.size * len(levels) // MIN_PRODUCTS_PER_THREAD)
    bounds = np.linspace(0, len(sets), parts + 1).astype(int).tolist()
    list(map_threads(score_span, [range(a, b) for a, b in pairwise(bounds)]))
    return out


def ascend_answers(
    rows: SparseRows,
    common: Array,
    offset: Array,
    group: Array,
    weight: Array,
    strength: float,
    order: Array,
    answers: Array,
    weights: Array,
    shift: Array,
    moved: Array,
) -> None:
    """Run one pass of dual coordinate ascent over the rows in ``order``.

    ``answers``, ``weights``, ``shift`` and ``moved`` are updated in place. See `priory.calibration.solvers`.
    """
    assert offset.shape[1] <= MAX_LOGITS
    kernel.ascend_rows(
        rows.ends,
        rows.indices,
        rows.values,
        rows.squared_lengths - common**2,
        common,
        offset,
        group.astype(np.int32),
        weight.astype(np.float32),
        strength,
        order,
        offset.shape[1],
        answers,
        weights,
        shift,
        moved,
    )


def join_columns(parts: list[SparseRows]) -> SparseRows:
    """Concatenate matrices with the same rows, column-wise."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.array([np.diff(part.ends) for part in parts])  # (parts, rows)
    ends = np.append(0, np.cumsum(sizes.sum(axis=0)))
    indices = np.empty(ends[-1], dtype=np.int32)
    data = None if all(part.data is None for part in parts) else np.empty(ends[-1], dtype=np.float32)
    left, starts = 0, ends[:-1].copy()  # columns to the left of a part, and its first entry in each row
    for part, size in zip(parts, sizes, strict=True):
        # (entries,): where the entries of this part go
        place = np.repeat(starts - part.ends[:-1], size) + np.arange(len(part.indices))
        indices[place] = part.indices + left
        if data is not None:
            data[place] = part.values
        left, starts = left + part.width, starts + size
    return SparseRows(ends, indices, data, left)
