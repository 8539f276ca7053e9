"""Arrays of other libraries: what kind an answer is given in where scikit-learn is told to accept them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils._array_api import device, get_namespace

from priory.core.typing import Array


def empty_like(x: Any) -> Any:
    """An empty array of the kind the attributes are given in: the library of ``x``, float32 or float64."""
    xp, foreign = get_namespace(x)
    if not foreign:
        return np.zeros(0, dtype=np.float32 if x.dtype == np.float32 else np.float64)
    kind = x.dtype if xp.isdtype(x.dtype, "real floating") else xp.float64
    return xp.zeros(0, dtype=kind, device=device(x))


def find_array_library(x: Any) -> tuple[str, ...]:
    """The array library and the device of an array."""
    xp, foreign = get_namespace(x)
    return (xp.__name__, str(device(x))) if foreign and not isinstance(x, np.ndarray) else ("numpy",)


def is_single_precision(x: Any) -> bool:
    """Whether an array of any library is float32."""
    return str(getattr(x, "dtype", "")).endswith("float32")


def convert_like(answer: Array, template: Any, labels: bool = False) -> Any:
    """Numbers in the library, on the device and in the precision of ``kind``; labels keep their type."""
    xp, foreign = get_namespace(template) if hasattr(template, "dtype") else (np, False)
    if not foreign:
        return answer.astype(np.float32) if is_single_precision(template) and not labels else answer
    if answer.dtype.kind in "OUS":
        return answer
    precise = not labels and xp.isdtype(template.dtype, "real floating")
    return xp.asarray(answer, dtype=template.dtype if precise else None, device=device(template))
