"""Check input before NumPy, SciPy or Arrow fail on it, and raise one-line errors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from priory.core.error_messages import shorten_message
from priory.errors import DataError, KindError, PrioryError

if TYPE_CHECKING:
    import pyarrow as pa


@contextmanager
def guard_input(X: object) -> Iterator[None]:
    """Check ``X`` before other libraries read it, and convert their errors into one-line errors of Priory."""
    if "scipy.sparse" in sys.modules:  # otherwise X cannot be a sparse matrix
        from priory.core.sparse_input import check_sparse_format

        check_sparse_format(X)
    check_frame(X)
    try:
        yield
    except PrioryError:
        raise
    except TypeError as error:
        raise KindError(shorten_message(error)) from error
    except (ValueError, ArithmeticError, AttributeError, NotImplementedError) as error:
        raise DataError(shorten_message(error)) from error


def is_masked_array(cells: object) -> TypeGuard[np.ma.MaskedArray[Any, Any]]:
    """Whether cells are a NumPy masked array; imports ``numpy.ma`` only if they may be."""
    return isinstance(cells, np.ndarray) and type(cells) is not np.ndarray and isinstance(cells, np.ma.MaskedArray)


def check_frame(X: object) -> None:
    """Raise an error if two columns of a data frame have the same name, or if an Arrow string is not UTF-8."""
    names = _find_column_names(X)
    check_unique_names(names)
    if hasattr(type(X), "column_names"):
        for name, column in zip(names, X.columns, strict=True):  # type: ignore[attr-defined]
            _check_arrow_text(column, partial("row {1}, column {0!r}".format, name))
    elif hasattr(type(X), "to_pylist"):  # an Arrow array
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
    """Raise an error that names the first duplicate column."""
    if len(set(names)) == len(names):
        return
    name = next(name for place, name in enumerate(names) if name in names[:place])
    places = [place for place, other in enumerate(names) if other == name]
    raise DataError(f"column {name!r} is there twice (positions {places[0]} and {places[1]}); rename one.")


def name_cells(row: Mapping[Any, object]) -> Mapping[str, object]:
    """Convert the column names of a row to strings.

    >>> name_cells({0: 1.5, "b": 2})
    {'0': 1.5, 'b': 2}
    """
    if all(isinstance(name, str) for name in row):
        return row
    check_unique_names([str(name) for name in row])
    return {str(name): cell for name, cell in row.items()}


def _find_column_names(X: object) -> Sequence[str]:
    """Column names of a pandas or pyarrow table; empty for other types."""
    kind = type(X)
    if hasattr(kind, "column_names"):  # pyarrow
        return [str(name) for name in X.column_names]  # type: ignore[attr-defined]
    if hasattr(kind, "iloc") and hasattr(X, "columns"):  # pandas; polars does not allow duplicate names
        return [str(name) for name in X.columns]
    return ()


def list_arrow_cells(array: pa.Array | pa.ChunkedArray, locate_row: Callable[[int], str]) -> list[Any]:
    """Convert an Arrow array to Python objects; raise an error that locates a string that is not UTF-8."""
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
