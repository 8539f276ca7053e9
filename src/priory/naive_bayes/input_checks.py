"""Arrays as input: scikit-learn's checks, and messages that name the first cell that cannot be used.

scikit-learn reads every array twice before it learns from it. Here the statistics, or a sum of each shard while it is
in the cache, show whether something is wrong; only then are the cells searched for the one to name.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from priory.core.column_kernels import sum_by_class
from priory.core.input_guard import guard_input
from priory.core.sharding import map_shards, split_rows
from priory.core.typing import Array
from priory.errors import DataError, PrioryWarning
from priory.models.class_prior import check_class_probabilities, log_class_prior

Matrix = Array | sparse.csr_array
MatrixT = TypeVar("MatrixT", bound=Matrix)
BlockTransform = Callable[[Array], Array]
CellsResultT = TypeVar("CellsResultT")


def read_matrix(estimator: BaseEstimator, X: object, reset: bool) -> Matrix:
    """A matrix of numbers, dense or CSR, with the columns that the estimator knows; NaN and infinity may be in it.

    It is in the array library it came in, if scikit-learn is configured to accept others.
    """
    with guard_input(X):
        x: Matrix = validate_data(estimator, X, accept_sparse="csr", ensure_all_finite=False, reset=reset)
        if getattr(x.dtype, "kind", "f") not in "biuf":
            x = x.astype(float)
    return _make_canonical(x) if sparse.issparse(x) else x


def read_array(estimator: BaseEstimator, X: object, reset: bool) -> Array:
    """A dense matrix of numbers with the columns that the estimator knows; NaN and infinity may be in it."""
    with guard_input(X):
        x: Array = validate_data(estimator, X, ensure_all_finite=False, reset=reset)
        if getattr(x.dtype, "kind", "f") not in "biuf":
            x = x.astype(float)
    return np.asarray(x)


def _make_canonical(x: sparse.csr_array) -> sparse.csr_array:
    """CSR with every index in range and every cell once: duplicates are summed, in a copy."""
    if not x.has_canonical_format:
        x = x.copy()
        x.sum_duplicates()
    return x


def count_classes(group: Array, weight: Array | None, classes: Array) -> Array:
    """The weight of the rows of each class."""
    return np.bincount(group, weight, minlength=len(classes)).astype(float)


def log_declared_prior(n: Array, class_prior: ArrayLike | None, fit_prior: bool = True) -> Array:
    """Log probability of each class: as declared, estimated from the rows ``n`` of each class, or uniform."""
    if class_prior is not None:
        return log_class_prior(n, check_class_probabilities(class_prior, len(n)))
    return log_class_prior(n, "estimated" if fit_prior else "uniform", rows_of_empty_class=0.0)


def sum_columns(x: Matrix, group: Array, weight: Array | None, groups: int, transform: BlockTransform) -> Array:
    """Weighted column sums of ``transform(x)`` for each class: (groups, columns)."""
    if isinstance(x, np.ndarray):
        return sum_by_class(x, group, weight, groups, transform)
    cells = transform_sparse(x, transform)
    rows = np.arange(x.shape[0])
    ones = np.ones(len(rows)) if weight is None else weight
    return np.asarray((sparse.csr_array((ones, (group, rows)), shape=(groups, len(rows))) @ cells).todense())


def transform_sparse(x: sparse.csr_array, transform: BlockTransform) -> sparse.csr_array:
    """A sparse matrix with ``transform`` applied to the cells that it stores."""
    return sparse.csr_array((np.asarray(transform(x.data), dtype=float), x.indices, x.indptr), shape=x.shape)


# -- cells that cannot be used -----------------------------------------------------------------------------------------


def check_finite(x: Matrix) -> None:
    """Raise if a cell is NaN or infinite."""
    if not all(map_cells(is_finite, x)):
        raise_not_finite(x)


def map_cells(function: Callable[[Array], CellsResultT], x: Matrix) -> Iterable[CellsResultT]:
    """``function`` of all cells, shard by shard; of a sparse matrix, of those that it stores."""
    cells = x if isinstance(x, np.ndarray) else x.data
    return map_shards(lambda part: function(cells[part]), len(cells))


def is_finite(block: Array) -> bool:
    """Whether all cells are finite; if one is not, the sum of all is not."""
    if block.dtype.kind != "f":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.add.reduce(block, axis=None))) or bool(np.isfinite(block).all())


def raise_not_finite(x: Matrix) -> None:
    """Raise for the first cell that is NaN, or else infinite; return if there is none."""
    missing, infinite = find_first_cell(x, np.isnan), find_first_cell(x, np.isinf)
    if missing:
        remedy = "fill it, or use priory.NaiveBayes, which leaves missing cells out."
        raise DataError(f"Input X contains NaN: row {missing[0]}, column {missing[1]}; {remedy}")
    if infinite:
        at = f"row {infinite[0]}, column {infinite[1]}"
        raise DataError(f"Input X contains infinity or a value too large for dtype('float64'): {at}.")


def make_count_checker(x: Matrix, name: str) -> BlockTransform:
    """A function that returns blocks of ``x`` unchanged, and raises if a cell is negative, NaN or infinite."""

    def check_block(block: Array) -> Array:
        if block.size and not (block.min() >= 0 and (block.dtype.kind != "f" or block.max() < np.inf)):
            raise_not_finite(x)
            raise_negative(x, name)
        return block

    return check_block


def raise_negative(x: Matrix, name: str) -> None:
    """Raise for the first negative cell; return if there is none."""
    cell = find_first_cell(x, lambda v: v < 0)
    if cell:
        row, column, value = cell
        where = f"row {row}, column {column} holds {value:g}"
        raise DataError(f"Negative values in data passed to {name} (input X): {where}; counts are 0 or more.")


def warn_of_fractions(x: Matrix) -> bool:
    """Warn of numbers that are not whole, and return whether there are any; scikit-learn's CategoricalNB is silent."""

    def is_fraction(v: Array) -> Array:
        return np.asarray(v != np.floor(v))

    if x.dtype.kind != "f" or not any(map_cells(lambda v: bool(is_fraction(v).any()), x)):
        return False
    row, column, value = find_first_cell(x, is_fraction) or (0, 0, 0.0)
    found = f"row {row}, column {column} holds {value:g}, which is not a whole number"
    warnings.warn(f"{found}; fractions are cut off: round or bin the column first.", PrioryWarning, stacklevel=2)
    return True


def find_first_cell(x: Matrix, is_bad: Callable[[Array], Array]) -> tuple[int, int, float] | None:
    """Row, column and value of the first cell that ``is_bad``."""
    if not isinstance(x, np.ndarray):
        cells = x.tocoo()
        at = np.flatnonzero(is_bad(cells.data))
        return (int(cells.row[at[0]]), int(cells.col[at[0]]), cells.data[at[0]]) if len(at) else None
    for part in split_rows(len(x)):
        hits = np.argwhere(is_bad(x[part]))
        if len(hits):
            row, column = part.start + int(hits[0, 0]), int(hits[0, 1])
            return row, column, x[row, column]
    return None
