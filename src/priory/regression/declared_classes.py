"""Classes declared on the first call to ``partial_fit``; models with weights per class cannot add classes later."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from priory.core.typing import Array
from priory.errors import DataError


def resolve_declared_classes(declared: ArrayLike | None, known: Array | None) -> Array:
    """Return the sorted classes, which must be declared on the first call and cannot change later."""
    if known is None:
        if declared is None:
            raise DataError("classes must be passed on the first call to partial_fit.")
        return np.unique(np.asarray(declared))
    if declared is not None and not np.array_equal(np.unique(np.asarray(declared)), known):
        raise DataError(f"`classes={declared}` is not the same as on last call to partial_fit, was: {known}")
    return known


def encode_declared_classes(labels: Array, classes: Array) -> Array:
    """Return the index of each label among the classes, (rows,).

    >>> encode_declared_classes(np.array(["yes", "no", "yes"]), np.array(["no", "yes"])).tolist()
    [1, 0, 1]
    """
    code = {label: number for number, label in enumerate(classes.tolist())}
    new = next((label for label in labels.tolist() if label not in code), None)
    if new is not None:
        raise DataError(f"label {new!r} is not one of the classes {list(code)[:10]}; call fit again with all rows.")
    return np.array([code[label] for label in labels.tolist()], dtype=np.int64)
