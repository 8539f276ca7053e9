"""Check labels and encode them as class indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core.input_guard import guard_input, is_masked_array, is_valid_text, list_arrow_cells
from priory.core.statistics import find_members
from priory.core.value_counts import make_object_array
from priory.errors import DataError, KindError

CONTAINERS = {"set", "frozenset", "dict", "list", "tuple", "ndarray"}  # types of what holds several labels


def encode_labels(y: ArrayLike | None, classes: Array | None = None, strict: bool = True) -> tuple[Array, Array]:
    """Encode labels: the sorted classes, and the index of each row's class, (rows,).

    Labels that are not in ``classes`` join them, or raise an error if ``strict``.
    """
    labels = check_labels(y)
    if classes is not None and len(labels) and len(classes):
        _check_same_type(labels, classes)
    low = int(labels.min()) if labels.dtype.kind in "iu" and len(labels) else 0
    if labels.dtype.kind in "iu" and len(labels) and int(labels.max()) - low < 1 << 16:
        # a counting sort: one pass over small integers
        group = np.subtract(labels, labels.dtype.type(low)).astype(np.int32, copy=False)
        place = np.flatnonzero(np.bincount(group))
        found = (place + low).astype(labels.dtype)
        if len(place) <= place[-1]:  # not every integer in between is a label
            rank = np.zeros(place[-1] + 1, dtype=np.int32)
            rank[place] = np.arange(len(place))
            group = rank[group]
    else:
        found, group = np.unique(labels, return_inverse=True)
    found = unify_label_type(found)
    if classes is None:
        return found, group.astype(np.int32, copy=False)
    # found and classes are sorted; unseen are labels that classes lack
    unseen = found[~find_members(found, classes)]
    if len(unseen) and strict:
        raise DataError(
            f"The target label(s) {_format_labels(unseen)} in y do not exist in the initial classes "
            f"{_format_labels(classes)}"
        )
    known = np.union1d(classes, found) if len(unseen) else classes
    # (found,) positions among known, then one for each row
    return known, np.searchsorted(known, found)[group].astype(np.int32)


def sort_labels(labels: ArrayLike) -> Array:
    """Sort distinct labels, as `encode_labels` returns them."""
    return unify_label_type(np.unique(check_labels(labels)))


def unify_label_type(labels: Array) -> Array:
    """Convert labels to the type used in every model: object for strings, int64, float64 or bool."""
    if labels.dtype.kind == "U":
        return labels.astype(object)
    if labels.dtype.kind in "iu" and (not len(labels) or int(labels[-1]) < 1 << 63):
        return labels.astype(np.int64, copy=False)
    return labels.astype(float, copy=False) if labels.dtype.kind == "f" else labels


def _format_labels(labels: Array, max_labels: int = 10) -> str:
    """Format the first labels for a message, as NumPy would print them."""
    listed = " ".join(repr(label)[:40] for label in labels.tolist()[:max_labels])
    return f"[{listed} ...]" if len(labels) > max_labels else f"[{listed}]"


def check_labels(y: ArrayLike | None) -> Array:
    """Convert labels to a 1-D array; raise if they are missing, of mixed types or continuous."""
    if y is None:
        raise DataError("requires y to be passed, but the target y is None.")
    if is_masked_array(y) and np.ma.is_masked(y):
        raise DataError(f"y[{int(np.argmax(np.ma.getmaskarray(y)))}] is masked: the row has no label; leave it out.")
    if hasattr(y, "to_pylist"):  # Arrow
        y = list_arrow_cells(y, "y[{}]".format)
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] > 1:
        raise _make_multi_label_error(f"y has {shape[1]} columns")
    if isinstance(y, (list, tuple)):
        distinct = set(y) if set(map(type, y)) == {str} else y  # of strings, each is checked once
        types = {_name_type(label) for label in distinct}
        is_column = types <= {"list"} and all(len(label) == 1 for label in y)
        is_mixed = len(types - {"missing"}) > 1 or types == {"str", "missing"} or bool(types & CONTAINERS)
        if not is_column and (is_mixed or any(map(_ends_with_nul, distinct))):
            # NumPy would turn 1 and "1" into the same label, NaN into "nan", and "a\0" into "a"
            y = make_object_array(y)
    with guard_input(y):
        labels = flatten_labels(convert_to_numpy(y))
    if labels.dtype.kind == "O":
        labels = _check_object_labels(labels)
    if labels.dtype.kind == "f":
        if not np.isfinite(labels).all():
            row = int(np.flatnonzero(~np.isfinite(labels))[0])
            raise DataError(f"Input y contains NaN or infinity (row {row}); give every row a label.")
        if (labels != np.floor(labels)).any():
            raise DataError(
                "Unknown label type: continuous. y looks like a number to predict; bin it, or pass strings."
            )
    elif labels.dtype.kind not in "iubOUS":
        raise DataError(f"Unknown label type: {labels.dtype}. A label is a string, a whole number or a boolean.")
    return labels


def _make_multi_label_error(place: str) -> KindError:
    return KindError(
        f"{place}: several labels for a row (multi-label) are not one class; use MultiLabelClassifier, which has "
        "a probability for each label."
    )


def _check_object_labels(labels: Array) -> Array:
    # the first row of each type of label, for the message
    first: dict[str, int] = {}
    for row, label in enumerate(labels):
        kind = _name_type(label)
        if kind == "missing":
            raise DataError(f"Input y contains NaN: row {row} has no label; label it or leave it out.")
        if kind in CONTAINERS:
            raise _make_multi_label_error(f"y[{row}] is a {kind}")
        first.setdefault(kind, row)
        if kind == "str" and not is_valid_text(label):
            raise DataError(f"y[{row}] holds a lone surrogate; it is not text: decode it first.")
    if len(first) > 1:
        found = " and ".join(f"{kind} (first in row {row})" for kind, row in first.items())
        raise KindError(f"y mixes labels of types {found}; use one type.")
    return np.asarray(labels.tolist()) if first.keys() & {"number", "bool"} else labels


def _name_type(label: object) -> str:
    """Name the type of a label for an error message."""
    if label is None or type(label).__name__ in ("NAType", "NaTType") or (isinstance(label, float) and label != label):
        return "missing"
    if isinstance(label, str):
        return "str"
    if isinstance(label, (bool, np.bool_)):
        return "bool"
    return "number" if isinstance(label, (int, float, np.number)) else type(label).__name__


def _ends_with_nul(label: object) -> bool:
    return isinstance(label, str) and label.endswith("\0")


def _check_same_type(labels: Array, classes: Array) -> None:
    """Raise an error if labels and classes are not of the same type: NumPy would turn 5 into "5"."""
    names = [_name_type(values.tolist()[0]) for values in (labels, classes)]
    if names[0] != names[1]:
        raise KindError(
            f"y holds labels such as {labels.tolist()[0]!r} ({names[0]}), the classes are such as "
            f"{classes.tolist()[0]!r} ({names[1]}); use one type."
        )


def convert_to_numpy(array: Any) -> Any:
    """Convert an array of another library to NumPy if scikit-learn is set to accept it; return others unchanged."""
    if isinstance(array, np.ndarray) or not hasattr(array, "dtype"):
        return array
    from priory.estimators.sklearn_compat import convert_array_to_numpy, get_namespace

    xp, foreign = get_namespace(array)
    return convert_array_to_numpy(array, xp) if foreign else array


def flatten_labels(y: ArrayLike) -> Array:
    """Convert labels to a 1-D array; scikit-learn raises the error for other shapes."""
    labels = np.asarray(y)
    if labels.ndim == 1:
        return labels
    from sklearn.utils.validation import column_or_1d

    return np.asarray(column_or_1d(labels, warn=True))
