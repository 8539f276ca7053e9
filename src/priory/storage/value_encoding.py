"""Models as trees of plain values and arrays, and back.

    None, truth, whole number, number, string    themselves
    anything else                                an object with one name: {"tuple": […]}, {"array": […]}, {"Words": {…}}

A record is its fields; an estimator its parameters and what it learned. Names with a capital are those of the closed
list in `registry`. Whole numbers lie in the file as narrow as they can be without losing a bit: {"narrow": […]} says
what kind they are widened to, {"steps": […]} that they are sums of what is there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import numpy as np

from priory.core.typing import Array
from priory.errors import KindError, ModelFileError
from priory.storage.container import ARRAY_DTYPES, ArraySections, FileContents, is_storable_dtype
from priory.storage.registry import (
    ESTIMATOR_PATHS,
    RECORD_PATHS,
    collect_learned_attributes,
    find_stored_name,
    import_stored_class,
    use_current_names,
)

MIN_ITEMS_TO_PACK = (
    64  # strings from which on they are stored as an array is, and numbers from which on they are narrowed
)
COLLECTION_TYPES: dict[str, type] = {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset}


# -- out ---------------------------------------------------------------------------------------------------------------


def encode_value(value: Any, sections: ArraySections, where: str = "model") -> Any:
    """The tree of a value; its arrays go to ``sections``."""
    if isinstance(value, np.ndarray):
        return _encode_array(value, sections, where)
    if isinstance(value, np.generic):
        return {"scalar": _encode_array(np.asarray(value), sections, where)}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, type) and find_stored_name(value) in RECORD_PATHS:
        return {"class": find_stored_name(value)}
    if find_stored_name(type(value)) in RECORD_PATHS:
        inside = {name: encode_value(v, sections, f"{where}.{name}") for name, v in _collect_fields(value).items()}
        return {find_stored_name(type(value)): inside}
    if find_stored_name(type(value)) in ESTIMATOR_PATHS:
        return _encode_estimator(value, sections, where)
    if type(value) is dict:
        pairs = [
            [encode_value(k, sections, where), encode_value(v, sections, f"{where}[{k!r}]")] for k, v in value.items()
        ]
        return {"dict": pairs}
    kind = next((name for name, kind in COLLECTION_TYPES.items() if type(value) is kind), None)
    if kind is None:
        raise KindError(
            f"{where} is a {type(value).__name__}, which a model file cannot hold; it holds plain values, arrays, "
            f"Priory's own families and records, and the models {', '.join(ESTIMATOR_PATHS)}."
        )
    items = sorted(value) if isinstance(value, (set, frozenset)) else value
    if len(items) > MIN_ITEMS_TO_PACK and all(type(item) is str for item in items):
        return {kind: _encode_strings(np.array(items, dtype=object), sections)}
    return {kind: [encode_value(item, sections, f"{where}[{i}]") for i, item in enumerate(items)]}


def _collect_fields(record: Any) -> dict[str, Any]:
    names = [f.name for f in fields(record)] if is_dataclass(record) else record._fields
    return {name: getattr(record, name) for name in names}


def _encode_estimator(model: Any, sections: ArraySections, where: str) -> dict[str, Any]:
    parts = {"parameters": model.get_params(deep=False), "learned": collect_learned_attributes(model)}
    return {
        find_stored_name(type(model)): {
            part: {name: encode_value(v, sections, f"{where}.{name}") for name, v in values.items()}
            for part, values in parts.items()
        }
    }


def _encode_array(array: Array, sections: ArraySections, where: str) -> dict[str, Any]:
    """Axes lie in the file as they do in memory: sums over them come out the same to the last bit."""
    if array.dtype.kind == "U" or (array.dtype.kind == "O" and all(type(v) is str for v in array.flat)):
        return _encode_strings(array, sections)
    if array.dtype.kind == "O":
        items = [encode_value(v, sections, where) for v in array.flat]
        return {"objects": [list(array.shape), items]}
    if not is_storable_dtype(array.dtype.newbyteorder("<").str):
        raise KindError(f"{where} is an array of {array.dtype}, which a model file cannot hold.")
    if array.size > MIN_ITEMS_TO_PACK and (small := _encode_narrowed(array, sections, where)) is not None:
        return small
    order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    kind = sections.add_array(array.transpose(order))
    axes = [order] if order != sorted(order) and array.size else []
    return {"array": [kind, list(array.shape), *axes]}


def _encode_narrowed(array: Array, sections: ArraySections, where: str) -> dict[str, Any] | None:
    """Whole numbers in fewer bytes, if that loses nothing: those that only rise as their steps."""
    if array.ndim == 1 and array.dtype == np.int64:
        steps = narrow_whole_numbers(np.diff(array, prepend=0))
        if steps is not None:
            return {"steps": _encode_array(steps, sections, where)}
    less = narrow_whole_numbers(array)
    return (
        None if less is None else {"narrow": [array.dtype.newbyteorder("<").str, _encode_array(less, sections, where)]}
    )


def narrow_whole_numbers(array: Array) -> Array | None:
    """The same numbers in the narrowest unsigned kind; None where a bit would be lost, or none is won.

    >>> narrow_whole_numbers(np.array([0.0, 300.0])).dtype, narrow_whole_numbers(np.array([-0.0, 300.0])), narrow_whole_numbers(np.array([0.5]))
    (dtype('uint16'), None, None)
    """
    if array.dtype.kind not in "iuf" or not 0 <= array.min().item() <= (most := array.max().item()) < 1 << 32:
        return None
    less = array.astype(np.min_scalar_type(int(most)))
    bits = f"u{array.dtype.itemsize}"
    if less.itemsize >= array.itemsize or not np.array_equal(less.astype(array.dtype).view(bits), array.view(bits)):
        return None
    return less


def _encode_strings(array: Array, sections: ArraySections) -> dict[str, Any]:
    """One after the other in UTF-8, and where each ends."""
    try:
        strings = [str(s).encode() for s in array.flat]
    except UnicodeEncodeError as error:
        raise KindError(
            f"{error.object!r} holds half a surrogate pair, which is no text; it cannot be saved."
        ) from None
    ends = _encode_array(np.cumsum([len(s) for s in strings], dtype=np.int64), sections, "strings")
    sections.add_array(np.frombuffer(b"".join(strings), dtype=np.uint8))
    return {"strings": [array.dtype.kind, list(array.shape), ends]}


# -- in ----------------------------------------------------------------------------------------------------------------


class ModelDecoder:
    """Trees back to values; ``record`` and ``estimator`` say what is made of names."""

    def __init__(
        self,
        contents: FileContents,
        build_record: Callable[[str, dict[str, Any]], Any],
        build_estimator: Callable[[str, dict[str, Any], dict[str, Any]], Any],
    ) -> None:
        self.contents = contents
        self.build_record = build_record
        self.build_estimator = build_estimator

    def decode_node(self, node: Any) -> Any:
        if node is None or isinstance(node, (bool, int, float, str)):
            return node
        if not isinstance(node, dict) or len(node) != 1:
            raise ModelFileError("a part of it is neither a plain value nor an object with one name.")
        [(name, inside)] = node.items()
        if name in RECORD_PATHS:
            return self.build_record(name, self._decode_fields(name, inside))
        if name in ESTIMATOR_PATHS:
            if set(_check_object(inside)) != {"parameters", "learned"}:
                raise ModelFileError(f"{name} has no parameters, or has learned nothing.")
            return self.build_estimator(name, *(self._decode_fields(name, part) for part in inside.values()))
        if name in COLLECTION_TYPES:
            items = (
                self.decode_node(inside).tolist()
                if isinstance(inside, dict)
                else map(self.decode_node, _check_list(inside))
            )
            return COLLECTION_TYPES[name](items)
        if name not in VALUE_DECODERS:
            raise ModelFileError(f"this version knows no {name!r}.")
        return VALUE_DECODERS[name](self, inside)

    def _decode_fields(self, name: str, inside: Any) -> dict[str, Any]:
        return use_current_names(name, {field: self.decode_node(v) for field, v in _check_object(inside).items()})

    def _decode_dict(self, pairs: Any) -> dict[Any, Any]:
        return {self.decode_node(key): self.decode_node(value) for key, value in map(_check_pair, _check_list(pairs))}

    def _decode_float(self, text: Any) -> float:
        return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[text]

    def _decode_class(self, name: Any) -> type:
        if name not in RECORD_PATHS:
            raise ModelFileError(f"this version knows no {name!r}.")
        kind: type = import_stored_class(name)
        return kind

    def _decode_scalar(self, node: Any) -> Any:
        return self.decode_node(node)[()]

    def _decode_array(self, inside: Any) -> Array:
        kind, shape, *axes = _check_list(inside)
        order = axes[0] if axes else list(range(len(shape)))
        if sorted(order) != list(range(len(shape))):
            raise ModelFileError(f"an array has the axes {order}.")
        array = self.contents.take_array(kind, [shape[axis] for axis in order])
        return array.transpose(np.argsort(order)) if axes else array

    def _decode_narrow(self, inside: Any) -> Array:
        kind, node = _check_pair(inside)
        less = self._decode_unsigned(node)
        if kind not in ARRAY_DTYPES or not np.can_cast(less.dtype, kind):
            raise ModelFileError(f"{less.dtype} is not widened to {kind!r}.")
        self.contents.reserve_memory(less.size * np.dtype(kind).itemsize)
        return less.astype(kind)

    def _decode_steps(self, inside: Any) -> Array:
        steps = self._decode_unsigned(inside)
        if steps.ndim != 1:
            raise ModelFileError(f"an array of steps has the shape {list(steps.shape)}.")
        self.contents.reserve_memory(steps.size * 8)
        return np.cumsum(steps, dtype=np.int64)

    def _decode_unsigned(self, node: Any) -> Array:
        array = self.decode_node(node)
        if not isinstance(array, np.ndarray) or array.dtype.kind != "u" or array.dtype.itemsize > 4:
            raise ModelFileError("what is to be widened is no array of narrow whole numbers.")
        return array

    def _decode_strings(self, inside: Any) -> Array:
        kind, shape, node = _check_list(inside)
        ends = self.decode_node(node)
        if (
            not isinstance(ends, np.ndarray)
            or ends.dtype != np.int64
            or ends.shape != (math.prod(_check_shape(shape)),)
        ):
            raise ModelFileError("the strings of an array have no ends.")
        arena = self.contents.take_array("|u1", [int(ends[-1]) if len(ends) else 0])
        starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
        if (ends < starts).any():
            raise ModelFileError("the strings of an array overlap.")
        joined = arena.tobytes()
        strings = [joined[a:b].decode() for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        if kind not in ("O", "U"):
            raise ModelFileError(f"this version knows no strings of kind {kind!r}.")
        return np.array(strings, dtype=object if kind == "O" else str).reshape(shape)

    def _decode_objects(self, inside: Any) -> Array:
        shape, items = _check_pair(inside)
        array = np.empty(len(_check_list(items)), dtype=object)
        for i, item in enumerate(items):
            array[i] = self.decode_node(item)
        return array.reshape(_check_shape(shape))


VALUE_DECODERS: dict[str, Callable[[ModelDecoder, Any], Any]] = {
    "array": ModelDecoder._decode_array,
    "class": ModelDecoder._decode_class,
    "dict": ModelDecoder._decode_dict,
    "float": ModelDecoder._decode_float,
    "narrow": ModelDecoder._decode_narrow,
    "objects": ModelDecoder._decode_objects,
    "scalar": ModelDecoder._decode_scalar,
    "steps": ModelDecoder._decode_steps,
    "strings": ModelDecoder._decode_strings,
}


def build_record(name: str, values: dict[str, Any]) -> Any:
    """The record of this name; fields that later versions added have their defaults."""
    kind = import_stored_class(name)
    if is_dataclass(kind):
        known = {f.name for f in fields(kind)}
        needed = {f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING}
    else:
        known, needed = set(kind._fields), set(kind._fields) - set(kind._field_defaults)
    if not needed <= set(values) <= known:
        raise ModelFileError(f"a record {name} has the fields {sorted(values)}; this version knows {sorted(known)}.")
    return kind(**values)


def build_estimator(name: str, parameters: dict[str, Any], learned: dict[str, Any]) -> Any:
    """The estimator of this name with its parameters, and what it learned."""
    kind = import_stored_class(name)
    model = kind()
    unknown = sorted(set(parameters) - set(model.get_params(deep=False)))
    if unknown:
        raise ModelFileError(f"{name} has no parameters {unknown}.")
    for attribute in learned:
        fitted = attribute.isidentifier() and (attribute.endswith("_") or attribute.startswith("_"))
        if not fitted or attribute.startswith("__") or callable(getattr(kind, attribute, None)):
            raise ModelFileError(f"{name} learns no {attribute!r}.")
    vars(model).update(parameters)
    vars(model).update(learned)
    return model


def _check_object(node: Any) -> dict[str, Any]:
    if not isinstance(node, dict):
        raise ModelFileError("a record has no fields.")
    return node


def _check_list(node: Any) -> list[Any]:
    if not isinstance(node, list):
        raise ModelFileError("a list is missing.")
    return node


def _check_pair(node: Any) -> list[Any]:
    if len(_check_list(node)) != 2:
        raise ModelFileError("a pair is missing.")
    return _check_list(node)


def _check_shape(node: Any) -> list[int]:
    if not all(type(n) is int and 0 <= n < 1 << 40 for n in _check_list(node)):
        raise ModelFileError(f"an array has the shape {node}.")
    return _check_list(node)
