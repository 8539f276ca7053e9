"""Arrays of other libraries, such as PyTorch, if scikit-learn is configured to accept them (array API dispatch)."""

from __future__ import annotations

from typing import cast

import numpy as np

from priory.core.typing import Array
from priory.estimators.sklearn_compat import device, get_namespace


def empty_like(x: Array) -> Array:
    """An empty array of the library of ``x``, float32 or float64: attributes are returned in this kind of array."""
    xp, is_foreign = get_namespace(x)
    if not is_foreign:
        return np.zeros(0, dtype=np.float32 if x.dtype == np.float32 else np.float64)
    dtype = x.dtype if xp.isdtype(x.dtype, "real floating") else xp.float64
    return cast(Array, xp.zeros(0, dtype=dtype, device=device(x)))


def find_array_library(x: Array) -> tuple[str, ...]:
    """The array library and the device of an array."""
    xp, is_foreign = get_namespace(x)
    return (xp.__name__, str(device(x))) if is_foreign and not isinstance(x, np.ndarray) else ("numpy",)


def is_single_precision(x: object) -> bool:
    """Whether an array of any library is float32."""
    return str(getattr(x, "dtype", "")).endswith("float32")


def convert_like(answer: Array, template: object, labels: bool = False) -> Array:
    """The answer in the library, on the device and in the precision of ``template``; labels keep their type."""
    xp, is_foreign = get_namespace(template) if hasattr(template, "dtype") else (np, False)
    if not is_foreign or not hasattr(template, "dtype"):
        return answer.astype(np.float32) if is_single_precision(template) and not labels else answer
    if answer.dtype.kind in "OUS":
        return answer
    keeps_precision = not labels and xp.isdtype(template.dtype, "real floating")
    dtype = template.dtype if keeps_precision else None
    return cast(Array, xp.asarray(answer, dtype=dtype, device=device(template)))
