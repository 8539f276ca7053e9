"""What the libraries below crash on, or report in their own words: checked first, and said in one line."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from scipy import sparse

from priory.errors import DataError, KindError, PrioryError

if TYPE_CHECKING:
    import pyarrow as pa

MAX_MESSAGE_LENGTH = 400
CompressedMatrix = (
    sparse.csr_array | sparse.csr_matrix | sparse.csc_array | sparse.csc_matrix | sparse.bsr_array | sparse.bsr_matrix
)
CoordinateMatrix = sparse.coo_array | sparse.coo_matrix


@contextmanager
def guard_input(X: object) -> Iterator[None]:
    """Check ``X`` before other libraries read it, and turn their errors about it into Priory's, on one line."""
    check_sparse_format(X)
    check_frame(X)
    try:
        yield
    except PrioryError:
        raise
    except TypeError as error:
        raise KindError(_shorten_message(error)) from error
    except (ValueError, ArithmeticError, AttributeError, NotImplementedError) as error:
        raise DataError(_shorten_message(error)) from error


def _shorten_message(error: Exception) -> str:
    """The message of another library on one line, without the whole array that scikit-learn prints."""
    text = re.sub(r":\s*array=.*?\.\s+Reshape", ". Reshape", str(error), flags=re.DOTALL)
    line = " ".join(text.split()) or type(error).__name__
    return line if len(line) <= MAX_MESSAGE_LENGTH else f"{line[: MAX_MESSAGE_LENGTH // 2]} ... {line[-100:]}"


def check_sparse_format(X: object) -> None:
    """Raise an error if the index arrays of a sparse matrix are invalid: SciPy would read or write out of bounds."""
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
    """SciPy's own check, of a shallow copy: the check may replace the arrays of the matrix that it is given."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # index arrays that are not integers
            copy.copy(X).check_format(full_check=True)
    except (ValueError, IndexError, TypeError, UserWarning) as error:
        raise _make_sparse_error(_shorten_message(error)) from None
    if (X.indptr[1:] < X.indptr[:-1]).any():  # SciPy does not look at it in a matrix without cells
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


def check_frame(X: object) -> None:
    """Raise an error if two columns of a data frame have the same name, or if a text of Arrow's is not UTF-8."""
    names = _find_column_names(X)
    check_unique_names(names)
    if hasattr(type(X), "column_names"):
        for name, column in zip(names, X.columns, strict=True):  # type: ignore[attr-defined]
            _check_arrow_text(column, partial("row {1}, column {0!r}".format, name))
    elif hasattr(type(X), "to_pylist"):  # an array of Arrow's
        _check_arrow_text(X, "row {}".format)


def _check_arrow_text(column: pa.Array | pa.ChunkedArray, locate_row: Callable[[int], str]) -> None:
    import pyarrow as pa

    value_type = getattr(column.type, "value_type", column.type)
    if pa.types.is_string(value_type) or pa.types.is_large_string(value_type):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            list_arrow_cells(column, locate_row)  # raises, naming the row


def check_unique_names(names: Sequence[str]) -> None:
    """Raise an error that names a column that is there twice."""
    if len(set(names)) == len(names):
        return
    name = next(name for place, name in enumerate(names) if name in names[:place])
    places = [place for place, other in enumerate(names) if other == name]
    raise DataError(f"column {name!r} is there twice (positions {places[0]} and {places[1]}); rename one.")


def _find_column_names(X: object) -> Sequence[str]:
    """The names of the columns of a pandas, polars or pyarrow table; none for everything else."""
    kind = type(X)
    if hasattr(kind, "column_names"):  # pyarrow
        return [str(name) for name in X.column_names]  # type: ignore[attr-defined]
    if hasattr(kind, "iloc") and hasattr(X, "columns"):  # pandas; others do not allow it
        return [str(name) for name in X.columns]
    return ()


def list_arrow_cells(array: pa.Array | pa.ChunkedArray, locate_row: Callable[[int], str]) -> list[Any]:
    """The cells of an Arrow array as Python objects; a text that is not UTF-8 is an error that says where it is."""
    import pyarrow as pa

    try:
        return array.to_pylist()
    except (UnicodeDecodeError, pa.ArrowException):
        text = array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array
        for row, cell in enumerate(text.cast(pa.large_binary()).to_pylist()):
            if cell is not None and not _is_utf8(cell):
                problem = "holds bytes that are not UTF-8; decode them with the right encoding first."
                raise DataError(f"{locate_row(row)} {problem}") from None
        raise


def _is_utf8(cell: bytes) -> bool:
    try:
        cell.decode()
    except UnicodeDecodeError:
        return False
    return True
