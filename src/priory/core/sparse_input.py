"""Validate sparse matrices whose index arrays would make SciPy read out of bounds."""

from __future__ import annotations

import copy
import warnings

from scipy import sparse

from priory.errors import DataError, shorten_message

CompressedMatrix = (
    sparse.csr_array | sparse.csr_matrix | sparse.csc_array | sparse.csc_matrix | sparse.bsr_array | sparse.bsr_matrix
)
CoordinateMatrix = sparse.coo_array | sparse.coo_matrix


def check_sparse_format(X: object) -> None:
    """Raise an error if the index arrays of a sparse matrix are invalid."""
    if isinstance(X, CompressedMatrix):
        _check_compressed(X)
    elif isinstance(X, CoordinateMatrix):
        _check_coordinates(X)
    elif isinstance(X, sparse.dia_array | sparse.dia_matrix):
        if X.data.ndim != 2 or X.offsets.shape != X.data.shape[:1] or X.offsets.dtype.kind not in "iu":
            raise _make_sparse_error("a diagonal matrix needs one whole number as the offset of each diagonal")
    elif isinstance(X, sparse.lil_array | sparse.lil_matrix):
        _check_lists(X)


def _check_compressed(X: CompressedMatrix) -> None:
    """Run SciPy's check on a shallow copy, because it may replace the arrays of the matrix."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # index arrays that are not integers
            copy.copy(X).check_format(full_check=True)
    except (ValueError, IndexError, TypeError, UserWarning) as error:
        raise _make_sparse_error(shorten_message(error)) from None
    if (X.indptr[1:] < X.indptr[:-1]).any():  # SciPy does not check this for a matrix without entries
        raise _make_sparse_error("indptr must be a non-decreasing sequence")


def _check_coordinates(X: CoordinateMatrix) -> None:
    for axis, (index, size) in enumerate(zip((X.row, X.col), X.shape, strict=True)):
        if len(index) != len(X.data) or (len(index) and not (index.min() >= 0 and index.max() < size)):
            name = ("row", "column")[axis]
            raise _make_sparse_error(f"{name} indices must be 0 .. {size - 1}, one for each value")


def _check_lists(X: sparse.lil_array | sparse.lil_matrix) -> None:
    for row, (columns, values) in enumerate(zip(X.rows, X.data, strict=False)):
        lists = isinstance(columns, list) and isinstance(values, list) and len(columns) == len(values)
        if not lists or not all(0 <= column < X.shape[1] for column in columns):
            raise _make_sparse_error(f"row {row} needs column indices 0 .. {X.shape[1] - 1}, one for each value")
    if not len(X.rows) == len(X.data) == X.shape[0]:
        raise _make_sparse_error(f"it has {len(X.rows)} lists of columns and {len(X.data)} of values")


def _make_sparse_error(problem: str) -> DataError:
    return DataError(f"X is not a valid sparse matrix: {problem}; build it again.")
