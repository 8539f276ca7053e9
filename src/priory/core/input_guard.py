"""What the libraries below crash on, or report in their own words: checked first, and said in one line."""

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
    """Check ``X`` before other libraries read it, and turn their errors about it into Priory's, on one line."""
    if "scipy.sparse" in sys.modules:  # otherwise nobody has a sparse matrix
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
    """Whether cells are NumPy's masked array; its module is not imported for any other."""
    return isinstance(cells, np.ndarray) and type(cells) is not np.ndarray and isinstance(cells, np.ma.MaskedArray)


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


def name_cells(row: Mapping[Any, object]) -> Mapping[str, object]:
    """A row whose columns are named by strings; other names, such as numbers, are written as strings.

    >>> name_cells({0: 1.5, "b": 2})
    {'0': 1.5, 'b': 2}
    """
    if all(isinstance(name, str) for name in row):
        return row
    check_unique_names([str(name) for name in row])
    return {str(name): cell for name, cell in row.items()}


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
