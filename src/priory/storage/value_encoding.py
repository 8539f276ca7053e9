"""Encode models as trees of plain values, with arrays stored separately; `value_decoding` is the inverse.

    None, bool, int, float, string    themselves
    anything else                     an object with one name: {"tuple": [...]}, {"array": [...]}, {"Words": {...}}

Attributes are stored in alphabetical order. A record is stored as its fields, an estimator as its parameters and its
learned attributes. Names with a capital letter are registered classes. Whole numbers are stored losslessly in as few
bytes as possible: {"narrow": [...]} names the dtype to widen them to, {"steps": ...} means that the array is the
cumulative sum of the stored one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import numpy as np

from priory.core.typing import Array
from priory.errors import KindError
from priory.storage.container import ArraySections
from priory.storage.fitted_state import Estimator
from priory.storage.manifest import Json, is_storable_dtype
from priory.storage.registry import collect_learned_attributes, find_estimator, find_record, list_estimators
from priory.storage.validation import list_fields

MIN_ITEMS_TO_PACK = 64  # longer collections of strings become arrays, and longer arrays of integers are narrowed
COLLECTION_TYPES: dict[str, type[Collection[object]]] = {
    "tuple": tuple,
    "list": list,
    "set": set,
    "frozenset": frozenset,
}


def encode_value(value: object, sections: ArraySections, where: str = "model") -> Json:
    """Return the tree of a value, and add its arrays to ``sections``."""
    if isinstance(value, np.ndarray):
        return _encode_array(value, sections, where)
    if isinstance(value, np.generic):
        return {"scalar": _encode_array(np.asarray(value), sections, where)}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, type) and (found := find_record(value)) is not None:
        return {"class": found.name}
    if (record := find_record(type(value))) is not None:
        return {record.name: _encode_fields({f: getattr(value, f) for f in list_fields(type(value))}, sections, where)}
    if (estimator := find_estimator(type(value))) is not None:
        return {estimator.name: _encode_estimator(value, sections, where)}  # type: ignore[arg-type]
    if type(value) is dict:
        return {
            "dict": [
                [encode_value(k, sections, where), encode_value(v, sections, f"{where}[{k!r}]")]
                for k, v in value.items()
            ]
        }
    for kind, cls in COLLECTION_TYPES.items():
        if type(value) is cls:
            return {kind: _encode_items(value, sections, where)}
    raise KindError(
        f"{where} is a {type(value).__name__}, which a model file cannot hold; it holds plain values, arrays, "
        f"registered families and records, and the models {', '.join(list_estimators())}."
    )


def _encode_items(values: Collection[object], sections: ArraySections, where: str) -> Json:
    # the order of a set depends on hashes: sort it, so that equal models have equal bytes
    items = sorted(values) if isinstance(values, (set, frozenset)) else list(values)
    if len(items) > MIN_ITEMS_TO_PACK and all(type(item) is str for item in items):
        return _encode_strings(np.array(items, dtype=object), sections)
    return [encode_value(item, sections, f"{where}[{i}]") for i, item in enumerate(items)]


def _encode_fields(values: Mapping[str, object], sections: ArraySections, where: str) -> dict[str, Json]:
    return {name: encode_value(value, sections, f"{where}.{name}") for name, value in values.items()}


def _encode_estimator(model: Estimator, sections: ArraySections, where: str) -> dict[str, Json]:
    parameters = model.get_params(deep=False)
    return {
        "parameters": _encode_fields(parameters, sections, where),
        "learned": _encode_fields(dict(sorted(collect_learned_attributes(model, parameters).items())), sections, where),
    }


def _encode_array(array: Array, sections: ArraySections, where: str) -> dict[str, Json]:
    """Encode an array with its axes in the order of memory, so that sums over the loaded array give the same bits."""
    if array.dtype.kind == "U" or (array.dtype.kind == "O" and all(type(v) is str for v in array.flat)):
        return _encode_strings(array, sections)
    if array.dtype.kind == "O":
        return {"objects": [list(array.shape), [encode_value(v, sections, where) for v in array.flat]]}
    if not is_storable_dtype(array.dtype.newbyteorder("<").str):
        raise KindError(f"{where} is an array of {array.dtype}, which a model file cannot hold.")
    if array.size > MIN_ITEMS_TO_PACK and (narrowed := _encode_narrowed(array, sections, where)) is not None:
        return narrowed
    if array.flags.c_contiguous:
        return {"array": [sections.add_array(array), list(array.shape)]}
    order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))  # slowest axis first
    kind = sections.add_array(array.transpose(order))
    return {"array": [kind, list(array.shape), list(order)]}


def _encode_narrowed(array: Array, sections: ArraySections, where: str) -> dict[str, Json] | None:
    """Encode whole numbers in fewer bytes, increasing ones as differences; None if that is not lossless."""
    # offsets, for example: their differences need far fewer bytes
    if array.ndim == 1 and array.dtype == np.int64:
        steps = narrow_whole_numbers(np.diff(array, prepend=0))
        if steps is not None:
            return {"steps": _encode_array(steps, sections, where)}
    narrow = narrow_whole_numbers(array)
    if narrow is None:
        return None
    return {"narrow": [array.dtype.newbyteorder("<").str, _encode_array(narrow, sections, where)]}


def narrow_whole_numbers(array: Array) -> Array | None:
    """Return the numbers in the narrowest unsigned dtype, or None if that loses a bit or saves no byte.

    >>> narrow_whole_numbers(np.array([0.0, 300.0])).dtype
    dtype('uint16')
    >>> narrow_whole_numbers(np.array([-0.0, 300.0])), narrow_whole_numbers(np.array([0.5]))
    (None, None)
    """
    if array.dtype.kind not in "iuf" or not 0 <= array.min().item() <= (largest := array.max().item()) < 1 << 32:
        return None
    narrow = array.astype(np.min_scalar_type(int(largest)))
    bits = f"u{array.dtype.itemsize}"  # compare bits, so that -0.0 is not taken for 0
    if narrow.itemsize >= array.itemsize or not np.array_equal(narrow.astype(array.dtype).view(bits), array.view(bits)):
        return None
    return narrow


def _encode_strings(array: Array, sections: ArraySections) -> dict[str, Json]:
    """Encode strings as their concatenated UTF-8 bytes and the end offset of each."""
    try:
        strings = [str(s).encode() for s in array.flat]
    except UnicodeEncodeError as error:
        raise KindError(f"{error.object!r} holds half of a surrogate pair, which cannot be saved.") from None
    ends = _encode_array(np.cumsum([len(s) for s in strings], dtype=np.int64), sections, "strings")
    sections.add_array(np.frombuffer(b"".join(strings), dtype=np.uint8))
    return {"strings": [array.dtype.kind, list(array.shape), ends]}
