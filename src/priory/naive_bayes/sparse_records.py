"""Records of sparse rows: those of the same rows in a dense table, bit for bit, at the cost of the stored cells.

A cell that is not stored is zero: it adds nothing to a sum, and it is counted with its row. So every stored cell is
summed as a row of its own, whose group is its class and its column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from priory.core.column_kernels import sum_exactly
from priory.core.exact_sums import ExactSums
from priory.core.special_functions import log_factorial
from priory.core.typing import Array
from priory.families.moments import Moments
from priory.families.poisson import PoissonStatistics

MAX_DENSE_CELLS = 1 << 22  # of sparse rows that are made dense at once: 32 MiB


class SparseSums(NamedTuple):
    """Exact sums of sparse rows for each class and column."""

    weight: ExactSums
    first: ExactSums
    second: ExactSums


def observe_sparse_moments(x: sparse.csr_array, group: Array, weight: Array | None, groups: int) -> Moments:
    """The record of `priory.families.Gaussian`; every cell must be finite."""
    exact_n, first, second = sum_sparse_exactly(x, x.data, group, weight, groups, squares=True)
    return Moments(exact_n.to_floats(), exact_n, first, second)


def observe_sparse_counts(x: sparse.csr_array, group: Array, weight: Array | None, groups: int) -> PoissonStatistics:
    """The record of `priory.families.Poisson`; every cell must be a count."""
    exact_n, events, _ = sum_sparse_exactly(x, x.data, group, weight, groups)
    logged = sum_sparse_exactly(x, log_factorial(x.data), group, weight, groups)  # that of zero is zero
    n = exact_n.to_floats()
    return PoissonStatistics(n, events, logged.first, np.zeros(n.shape))


def sum_sparse_exactly(
    x: sparse.csr_array, cells: Array, group: Array, weight: Array | None, groups: int, squares: bool = False
) -> SparseSums:
    """The sums that `priory.core.column_kernels.sum_exactly` has of the dense rows; ``cells`` take the place of x's."""
    shape = groups, x.shape[1]
    row = number_stored_rows(x)
    place = (group[row].astype(np.int64) * x.shape[1] + x.indices).astype(np.int32)  # (cells,): class and column
    values = np.asarray(cells, dtype=float)[:, None]
    stored = sum_exactly(values, place, None if weight is None else weight[row], groups * x.shape[1], squares=squares)
    rows = sum_exactly(np.zeros((x.shape[0], 1)), np.asarray(group, dtype=np.int32), weight, groups)
    exact_n = ExactSums.zeros(shape) + rows.weight  # the same for every column
    return SparseSums(exact_n, stored.first.reshape(shape), stored.second.reshape(shape))


def number_stored_rows(x: sparse.csr_array) -> Array:
    """The row of each stored cell, (cells,)."""
    return np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))


def split_sparse_rows(x: sparse.csr_array) -> Iterator[sparse.csr_array]:
    """Blocks of rows that may be made dense."""
    step = max(1, MAX_DENSE_CELLS // max(x.shape[1], 1))
    return (x[start : start + step] for start in range(0, max(x.shape[0], 1), step))


def score_stored_cells(x: sparse.csr_array, score: Callable[[Array, Array], Array], groups: int, step: int) -> Array:
    """The sums (rows, groups) of ``score(cells, columns)``, which is (groups, cells), about ``step`` cells at once."""
    bounds = np.unique(np.append(np.searchsorted(x.indptr, np.arange(0, x.indptr[-1], step)), x.shape[0]))
    sums = np.zeros((x.shape[0], groups))
    for first, last in zip(np.append(0, bounds[:-1]), bounds, strict=True):
        part = slice(x.indptr[first], x.indptr[last])
        row = np.repeat(np.arange(last - first), np.diff(x.indptr[first : last + 1]))
        scores = score(x.data[part], x.indices[part])
        for k in range(groups):
            sums[first:last, k] = np.bincount(row, scores[k], minlength=last - first)
    return sums
