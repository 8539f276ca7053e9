"""Arrays in: scikit-learn's checks, and the place of what cannot be used.

scikit-learn reads every array twice before it learns from it. Here the statistics, or a sum of each shard while it is
in the cache, tell whether something is wrong; only then are the cells searched for the one to name.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from priory.core.column_kernels import sum_by_class
from priory.core.input_guard import guard_input
from priory.core.sharding import map_shards, split_rows
from priory.core.typing import Array
from priory.errors import DataError, PrioryWarning

BlockTransform = Callable[[Array], Array]


def read_matrix(estimator: Any, X: Any, reset: bool, accept_sparse: bool = False) -> Any:
    """A matrix of numbers, dense or CSR, with the columns the estimator knows. NaN and infinity are not looked for."""
    form = "csr" if accept_sparse else False
    with guard_input(X):
        x = validate_data(estimator, X, accept_sparse=form, ensure_all_finite=False, reset=reset)
        if getattr(x.dtype, "kind", "f") not in "biuf":
            x = x.astype(float)
    return _make_canonical(x) if is_sparse(x) else x


def is_sparse(x: Any) -> bool:
    return bool(sparse.issparse(x))


def _make_canonical(x: Any) -> Any:
    """CSR with every cell there once: duplicates are summed, in a copy."""
    if not x.has_canonical_format:
        x = x.copy()
        x.sum_duplicates()
    return x


def count_classes(group: Array, weight: Array | None, classes: Array) -> Array:
    """The weight of the rows of each class."""
    return np.bincount(group, weight, minlength=len(classes)).astype(float)


def sum_columns(x: Any, group: Array, weight: Array | None, groups: int, transform: BlockTransform) -> Array:
    """Column sums of ``transform(x)`` for each class, weighted, from a dense or a sparse matrix."""
    if not is_sparse(x):
        return sum_by_class(x, group, weight, groups, transform)
    cells = transform_sparse(x, transform)
    rows = np.arange(x.shape[0])
    ones = np.ones(len(rows)) if weight is None else weight
    return np.asarray((sparse.csr_array((ones, (group, rows)), shape=(groups, len(rows))) @ cells).todense())


def transform_sparse(x: Any, transform: BlockTransform) -> Any:
    """A sparse matrix with ``transform`` applied to the cells it holds."""
    return sparse.csr_array((np.asarray(transform(x.data), dtype=float), x.indices, x.indptr), shape=x.shape)


# -- what cannot be used -----------------------------------------------------------------------------------------------


def check_finite(x: Any) -> None:
    """No cell is NaN or infinite."""
    cells = x.data if is_sparse(x) else x
    if not all(map_shards(lambda part: is_finite(cells[part]), len(cells))):
        raise_not_finite(x)


def is_finite(block: Array) -> bool:
    """A sum is not finite if a cell is not."""
    if block.dtype.kind != "f":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.add.reduce(block, axis=None))) or bool(np.isfinite(block).all())


def raise_not_finite(x: Any) -> None:
    missing, infinite = find_first_cell(x, np.isnan), find_first_cell(x, np.isinf)
    if missing:
        remedy = "fill it, or use priory.NaiveBayes, which leaves missing cells out."
        raise DataError(f"Input X contains NaN: row {missing[0]}, column {missing[1]}; {remedy}")
    if infinite:
        at = f"row {infinite[0]}, column {infinite[1]}"
        raise DataError(f"Input X contains infinity or a value too large for dtype('float64'): {at}.")


def make_count_checker(x: Any, name: str) -> BlockTransform:
    """Passes blocks of ``x`` on as they are if no cell is negative, NaN or infinite."""

    def checked(block: Array) -> Array:
        if block.size and not (block.min() >= 0 and (block.dtype.kind != "f" or block.max() < np.inf)):
            raise_not_finite(x)
            raise_negative(x, name)
        return block

    return checked


def raise_negative(x: Any, name: str) -> None:
    cell = find_first_cell(x, lambda v: v < 0)
    if cell:
        row, column, value = cell
        where = f"row {row}, column {column} holds {value:g}"
        raise DataError(f"Negative values in data passed to {name} (input X): {where}; nothing below 0 is a count.")


def warn_of_fractions(x: Array) -> bool:
    """Whether there are any. scikit-learn's CategoricalNB cuts them off without a word."""

    def fraction(v: Array) -> Array:
        return np.asarray(v != np.floor(v))

    if x.dtype.kind != "f" or not any(map_shards(lambda part: bool(fraction(x[part]).any()), len(x))):
        return False
    row, column, value = find_first_cell(x, fraction) or (0, 0, 0.0)
    found = f"row {row}, column {column} holds {value:g}, which is not a whole number"
    warnings.warn(f"{found}; fractions are cut off: round or bin the column first.", PrioryWarning, stacklevel=2)
    return True


def find_first_cell(x: Any, is_bad: Callable[[Array], Array]) -> tuple[int, int, Any] | None:
    """Row, column and value of the first cell that is ``bad``."""
    if is_sparse(x):
        cells = x.tocoo()
        at = np.flatnonzero(is_bad(cells.data))
        return (int(cells.row[at[0]]), int(cells.col[at[0]]), cells.data[at[0]]) if len(at) else None
    for part in split_rows(len(x)):
        hits = np.argwhere(is_bad(x[part]))
        if len(hits):
            row, column = part.start + int(hits[0, 0]), int(hits[0, 1])
            return row, column, x[row, column]
    return None
