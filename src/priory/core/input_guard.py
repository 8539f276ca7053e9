"""What the libraries below crash on, or report in their own words: checked first, and said in one line."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from scipy import sparse

from priory.errors import DataError, KindError, PrioryError

if TYPE_CHECKING:
    import pyarrow as pa

CompressedMatrix = (
    sparse.csr_array | sparse.csr_matrix | sparse.csc_array | sparse.csc_matrix | sparse.bsr_array | sparse.bsr_matrix
)
CoordinateMatrix = sparse.coo_array | sparse.coo_matrix


@contextmanager
def guard_input(X: object) -> Iterator[None]:
    """Check ``X`` before other libraries read it, and turn their errors about it into Priory's, on one line."""
    check_sparse_format(X)
    check_unique_columns(X)
    try:
        yield
    except PrioryError:
        raise
    except (ValueError, OverflowError) as error:
        raise DataError(_join_lines(error)) from error
    except TypeError as error:
        raise KindError(_join_lines(error)) from error


def _join_lines(error: Exception) -> str:
    return " ".join(str(error).split())


def check_sparse_format(X: object) -> None:
    """Raise an error if the index arrays of a sparse matrix are invalid: SciPy would read or write out of bounds."""
    if isinstance(X, CompressedMatrix):
        _check_compressed(X)
    elif isinstance(X, CoordinateMatrix):
        _check_coordinates(X)


def _check_compressed(X: CompressedMatrix) -> None:
    """SciPy's own check, of a shallow copy: the check may replace the arrays of the matrix that it is given."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # index arrays that are not integers
            copy.copy(X).check_format(full_check=True)
    except (ValueError, IndexError, TypeError, UserWarning) as error:
        raise DataError(f"X is not a valid sparse matrix: {_join_lines(error)}; build it again.") from None


def _check_coordinates(X: CoordinateMatrix) -> None:
    for axis, (index, size) in enumerate(zip((X.row, X.col), X.shape, strict=True)):
        if len(index) != len(X.data) or (len(index) and not (index.min() >= 0 and index.max() < size)):
            name = ("row", "column")[axis]
            raise DataError(
                f"X is not a valid sparse matrix: {name} indices must be 0 .. {size - 1}, one for each value; "
                "build it again."
            )


def check_unique_columns(X: object) -> None:
    """Raise an error if two columns of a data frame have the same name."""
    check_unique_names(_find_column_names(X))


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
