"""Check input before NumPy, SciPy or Arrow fail on it, and raise one-line errors that say what to do."""

from __future__ import annotations

import copy
import sys
import unicodedata
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core.value_counts import round_to_bits
from priory.errors import DataError, KindError, PrioryError, shorten_message

if TYPE_CHECKING:
    import pyarrow as pa
    from scipy import sparse


@contextmanager
def guard_input(X: object) -> Iterator[None]:
    """Check ``X`` before other libraries read it, and convert their errors into one-line errors of Priory."""
    if "scipy.sparse" in sys.modules:  # otherwise X cannot be a sparse matrix
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
            if cell is not None and not is_valid_text(cell):
                problem = "holds bytes that are not UTF-8; decode them with the right encoding first."
                raise DataError(f"{locate_row(row)} {problem}") from None
        raise


def is_valid_text(text: str | bytes) -> bool:
    """Whether bytes are UTF-8, and a string has no lone surrogate.

    >>> is_valid_text("été"), is_valid_text(b"\\xff"), is_valid_text("\\ud800")
    (True, False, False)
    """
    if not text.isascii():
        try:
            text.encode() if isinstance(text, str) else text.decode()
        except UnicodeError:
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


def check_sparse_format(X: object) -> None:
    """Raise an error if the index arrays of a sparse matrix would make SciPy read out of bounds."""
    from scipy.sparse import issparse  # a slow import, which only sparse matrices need

    if issparse(X):
        check = SPARSE_CHECKS.get(getattr(X, "format", ""))
        if check is not None:
            check(X)


def _check_compressed(X: sparse.csr_array) -> None:
    """Run SciPy's check on a shallow copy, because it may replace the arrays of the matrix."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # index arrays that are not integers
            copy.copy(X).check_format(full_check=True)
    except (ValueError, IndexError, TypeError, UserWarning) as error:
        raise _make_sparse_error(shorten_message(error)) from None
    if (X.indptr[1:] < X.indptr[:-1]).any():  # SciPy does not check this for a matrix without entries
        raise _make_sparse_error("indptr must be a non-decreasing sequence")


def _check_coordinates(X: sparse.coo_array) -> None:
    for axis, (index, size) in enumerate(zip((X.row, X.col), X.shape, strict=True)):
        if len(index) != len(X.data) or (len(index) and not (index.min() >= 0 and index.max() < size)):
            name = ("row", "column")[axis]
            raise _make_sparse_error(f"{name} indices must be 0 .. {size - 1}, one for each value")


def _check_lists(X: sparse.lil_array) -> None:
    for row, (columns, values) in enumerate(zip(X.rows, X.data, strict=False)):
        lists = isinstance(columns, list) and isinstance(values, list) and len(columns) == len(values)
        if not lists or not all(0 <= column < X.shape[1] for column in columns):
            raise _make_sparse_error(f"row {row} needs column indices 0 .. {X.shape[1] - 1}, one for each value")
    if not len(X.rows) == len(X.data) == X.shape[0]:
        raise _make_sparse_error(f"it has {len(X.rows)} lists of columns and {len(X.data)} of values")


def _check_diagonals(X: sparse.dia_array) -> None:
    if X.data.ndim != 2 or X.offsets.shape != X.data.shape[:1] or X.offsets.dtype.kind not in "iu":
        raise _make_sparse_error("a diagonal matrix needs one whole number as the offset of each diagonal")


SPARSE_CHECKS: dict[str, Callable[[Any], None]] = {
    **dict.fromkeys(("csr", "csc", "bsr"), _check_compressed),
    "coo": _check_coordinates,
    "lil": _check_lists,
    "dia": _check_diagonals,
}


def _make_sparse_error(problem: str) -> DataError:
    return DataError(f"X is not a valid sparse matrix: {problem}; build it again.")


MIN_LETTERS = 3  # shorter labels differ by one letter without a slip
MAX_LETTERS = 60  # of labels in which slips are looked for
MIN_RATIO = 10.0  # a label with a slip is this much rarer than the right one


def find_similar_labels(counts: Mapping[str, float]) -> list[tuple[str, ...]]:
    """Groups of labels that differ by case, blanks or Unicode form, or by one slip in a rare one; commonest first.

    >>> find_similar_labels({"yes": 20, "Yes": 3, "yes ": 1, "yse": 1, "no": 30})
    [('yes', 'Yes', 'yes ', 'yse')]
    >>> find_similar_labels({"cat": 20, "car": 18, "class 1": 30, "class 2": 1})
    []
    """
    spelt: defaultdict[str, list[str]] = defaultdict(list)  # labels that differ in their spelling only
    for label in sorted(counts, key=lambda label: (-counts[label], label)):
        spelt[" ".join(unicodedata.normalize("NFKC", label).casefold().split())].append(label)
    weight = {key: sum(counts[label] for label in labels) for key, labels in spelt.items()}
    meant = {key: key for key in spelt}
    for one, other in _find_slips(spelt):
        common, rare = sorted((one, other), key=lambda key: -weight[key])
        if weight[common] >= MIN_RATIO * weight[rare] and meant[common] == common:
            meant[rare] = common
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for key in sorted(spelt, key=lambda key: -weight[key]):
        groups[meant[key]] += spelt[key]
    return [tuple(labels) for labels in groups.values() if len(labels) > 1]


def describe_similar_labels(counts: Mapping[str, float], max_groups: int = 5) -> str:
    """One line about labels that were probably meant to be one, with their counts; "" if there are none."""
    groups = find_similar_labels(counts)
    shown = [" and ".join(f"{label!r} ({counts[label]:,g})" for label in group[:5]) for group in groups[:max_groups]]
    more = f" and {len(groups) - max_groups} more" if len(groups) > max_groups else ""
    return f"labels that may mean the same are different classes: {'; '.join(shown)}{more}" if groups else ""


def _find_slips(words: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Pairs of words that are one slip apart: they are equal, or with a letter less they are."""
    shorter: defaultdict[str, list[str]] = defaultdict(list)
    for word in words:
        if MIN_LETTERS <= len(word) <= MAX_LETTERS:
            for key in dict.fromkeys([word, *(word[:i] + word[i + 1 :] for i in range(len(word)))]):
                yield from ((other, word) for other in shorter[key] if _is_one_slip(other, word))
                shorter[key].append(word)


def _is_one_slip(one: str, other: str) -> bool:
    """Whether one letter is changed, missing or added, or two neighbours are swapped."""
    while one and other and one[0] == other[0]:
        one, other = one[1:], other[1:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    differs_by_one = len(one) <= 1 and len(other) <= 1
    return (one + other).isalpha() and (differs_by_one or (len(one) == 2 and one == other[::-1]))
