"""Check input before NumPy, SciPy or Arrow fail on it, and raise one-line errors that say what to do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from priory.core.column_kernels import round_to_bits
from priory.core.typing import Array
from priory.errors import DataError, KindError, PrioryError, shorten_message

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


MAX_SAMPLE_WEIGHT = 1e100
WEIGHT_BITS = 24  # of a fractional weight


def check_sample_weight(sample_weight: ArrayLike | None, rows: int) -> Array | None:
    """Return one non-negative weight per row, or None if every row counts once.

    >>> check_sample_weight(2, 3).tolist()
    [2.0, 2.0, 2.0]
    """
    if sample_weight is None:
        return None
    try:
        weight = np.asarray(sample_weight, dtype=float)
    except (TypeError, ValueError):
        raise DataError("sample_weight holds something else than numbers; give one number for each row.") from None
    weight = np.full(rows, float(weight)) if weight.ndim == 0 else weight
    if weight.ndim > 1:
        raise DataError(f"Sample weights must be 1D array or scalar: got {weight.ndim} dimensions.")
    if weight.shape != (rows,):
        raise DataError(f"sample_weight.shape == {weight.shape}, expected ({rows},)!")
    valid = (weight >= 0) & (weight <= MAX_SAMPLE_WEIGHT)
    if not valid.all():
        row = int(np.argmin(valid))
        raise DataError(
            f"sample_weight of row {row} is {weight[row]:g}; give a number from 0 to {MAX_SAMPLE_WEIGHT:g}."
        )
    if not weight.any():
        raise DataError("every sample_weight is zero: there is nothing to learn; give some row a positive weight.")
    return weight


def round_weights(weight: Array) -> Array:
    """Whole weights as they are, and others with 24 significant bits, so that their sums have no rounding error.

    >>> kept = round_weights(np.array([3.0, 0.3, 2.7]))
    >>> kept[0].item(), abs(kept[1] - 0.3) < 1e-7 * 0.3, kept[1] + kept[2] - kept[2] == kept[1]
    (3.0, np.True_, np.True_)
    """
    return np.where(weight == np.rint(weight), weight, round_to_bits(weight, WEIGHT_BITS))


def check_same_type(model: object, other: object) -> None:
    """Raise an error unless both models have the same type."""
    if type(other) is not type(model):
        raise DataError(
            f"a {type(model).__name__} cannot be merged with a {type(other).__name__}; merge models of the same type."
        )


def check_same_columns(model: object, other: object) -> None:
    """Raise an error unless both fitted models have the same columns, by number and names."""
    numbers = [int(getattr(fitted, "n_features_in_", 0)) for fitted in (model, other)]
    if numbers[0] != numbers[1]:
        raise DataError(
            f"one model has {_format_count(numbers[0])}, the other {_format_count(numbers[1])}; "
            "merge models of the same columns."
        )
    names = [list(getattr(fitted, "feature_names_in_", ())) for fitted in (model, other)]
    if names[0] and names[1] and names[0] != names[1]:
        place = next(j for j, (one, two) in enumerate(zip(*names, strict=True)) if one != two)
        raise DataError(
            f"column {place} is {names[0][place]!r} in one model and {names[1][place]!r} in the other; "
            "merge models of the same columns, in the same order."
        )


def describe_difference(name: str, value: object, other: object, max_length: int = 40) -> str:
    """Describe how two models differ in a parameter."""
    shown = [repr(v) for v in (value, other)]
    return f"{name} differs" if max(map(len, shown)) > max_length else f"{name} is {shown[0]} and {shown[1]}"


def _format_count(columns: int) -> str:
    return "1 column" if columns == 1 else f"{columns} columns"
