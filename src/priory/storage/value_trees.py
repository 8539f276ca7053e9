"""Models as trees of plain values whose arrays lie elsewhere, and trees back into models.

Only registered classes are built, only arrays that the file declares are read, and everything that is widened counts
against the memory of the machine before it is allocated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import numpy as np
from numpy import ndarray as Array

from priory.core.statistics import EstimatorRegistration, Registration, Statistics
from priory.errors import KindError, ModelFileError
from priory.storage import validation
from priory.storage.container import ARRAY_DTYPES, MAX_AXIS_LENGTH, ArraySections, FileContents, Json, is_storable_dtype
from priory.storage.validation import Estimator

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
    if isinstance(value, type) and (found := validation.find_record(value)) is not None:
        return {"class": found.name}
    if (record := validation.find_record(type(value))) is not None:
        return {
            record.name: _encode_fields(
                {f: getattr(value, f) for f in validation.list_fields(type(value))}, sections, where
            )
        }
    if (estimator := validation.find_estimator(type(value))) is not None:
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
        f"registered families and records, and the models {', '.join(validation.list_estimators())}."
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
        "learned": _encode_fields(
            dict(sorted(validation.collect_learned_attributes(model, parameters).items())), sections, where
        ),
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


STRING_BYTES = 64  # memory of a short string besides its characters


class ModelDecoder:
    """Decodes the nodes of a file's tree, reading the arrays in the order in which they were stored."""

    def __init__(self, contents: FileContents) -> None:
        self.contents = contents

    def decode_node(self, node: Json) -> Any:
        """Return the value of a node, decoded recursively."""
        if node is None or isinstance(node, (bool, int, float, str)):
            return node
        if not isinstance(node, dict) or len(node) != 1:
            raise ModelFileError("a part of it is neither a plain value nor an object with one name.")
        [(name, inside)] = node.items()
        if name in VALUE_DECODERS:
            return VALUE_DECODERS[name](self, inside)
        if name in COLLECTION_TYPES:
            return self._decode_collection(name, inside)
        return self.decode_object(name, check_object(inside))

    def decode_object(self, name: str, inside: Mapping[str, Json]) -> Any:
        """Build the record or estimator of this name."""
        found = _find_known_class(name)
        if not isinstance(found, EstimatorRegistration):
            record = build_record(found, self.decode_fields(inside))
            return record.sort_content() if isinstance(record, Statistics) else record
        if set(inside) != {"parameters", "learned"}:
            raise ModelFileError(f"{name} lacks its parameters or what it learned.")
        parts = {part: self.decode_fields(check_object(values)) for part, values in inside.items()}
        return validation.build_model(found, parts["parameters"], parts["learned"])

    def decode_fields(self, inside: Mapping[str, Json]) -> dict[str, Any]:
        """Decode the fields of an object."""
        return {name: self.decode_node(value) for name, value in inside.items()}

    def decode_class(self, name: Json) -> object:
        """Return the class of a record or family that is stored by its name."""
        found = _find_known_class(name)
        if isinstance(found, EstimatorRegistration):
            raise ModelFileError(f"this version does not know {name!r}.")
        return found.cls

    def _decode_collection(self, name: str, inside: Json) -> object:
        if isinstance(inside, dict):  # many strings, stored as an array
            return COLLECTION_TYPES[name](self.decode_node(inside).tolist())  # type: ignore[call-arg]
        return COLLECTION_TYPES[name](map(self.decode_node, _check_list(inside)))  # type: ignore[call-arg]

    def _decode_dict(self, pairs: Json) -> dict[Any, Any]:
        return {self.decode_node(key): self.decode_node(value) for key, value in map(_check_pair, _check_list(pairs))}

    def _decode_array(self, inside: Json) -> Array:
        kind, shape, *axes = _check_list(inside)
        lengths = _check_shape(shape)
        order = _check_shape(axes[0]) if axes else list(range(len(lengths)))
        if not isinstance(kind, str) or sorted(order) != list(range(len(lengths))):
            raise ModelFileError(f"an array has the axes {order}.")
        # stored with its axes in the order of memory; `order` says which axis each of them is
        array = self.contents.take_array(kind, [lengths[axis] for axis in order])
        return array.transpose(np.argsort(order)) if axes else array

    def _decode_narrow(self, inside: Json) -> Array:
        kind, node = _check_pair(inside)
        narrow = self._decode_unsigned(node)
        if not isinstance(kind, str) or kind not in ARRAY_DTYPES or not np.can_cast(narrow.dtype, kind):
            raise ModelFileError(f"{narrow.dtype} cannot be widened to {kind!r}.")
        self.contents.reserve_memory(narrow.size * np.dtype(kind).itemsize)
        return narrow.astype(kind)

    def _decode_steps(self, inside: Json) -> Array:
        steps = self._decode_unsigned(inside)
        if steps.ndim != 1:
            raise ModelFileError(f"an array of steps has the shape {list(steps.shape)}.")
        self.contents.reserve_memory(steps.size * 8)  # int64
        return np.cumsum(steps, dtype=np.int64)

    def _decode_unsigned(self, node: Json) -> Array:
        array = self.decode_node(node)
        if not isinstance(array, np.ndarray) or array.dtype.kind != "u" or array.dtype.itemsize > 4:
            raise ModelFileError("a narrowed array does not hold unsigned integers of at most 32 bits.")
        return array

    def _decode_strings(self, inside: Json) -> Array:
        kind, shape, node = _check_list(inside)
        ends = self.decode_node(node)
        lengths = _check_shape(shape)
        if not isinstance(ends, np.ndarray) or ends.dtype != np.int64 or ends.shape != (math.prod(lengths),):
            raise ModelFileError("the ends of the strings of an array are missing.")
        arena = self.contents.take_array("|u1", [int(ends[-1]) if len(ends) else 0])
        # string i is arena[starts[i]:ends[i]]
        starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
        if (ends < starts).any():
            raise ModelFileError("the strings of an array overlap.")
        longest = int((ends - starts).max(initial=0)) if kind == "U" else 0  # "U" pads every string to the longest
        self.contents.reserve_memory(2 * arena.size + len(ends) * (STRING_BYTES + 4 * longest))
        joined = arena.tobytes()
        strings = [joined[a:b].decode() for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        if kind not in ("O", "U"):
            raise ModelFileError(f"this version does not know strings of kind {kind!r}.")
        return np.array(strings, dtype=object if kind == "O" else str).reshape(lengths)

    def _decode_objects(self, inside: Json) -> Array:
        shape, items = _check_pair(inside)
        array = np.empty(len(_check_list(items)), dtype=object)
        for i, item in enumerate(_check_list(items)):
            array[i] = self.decode_node(item)
        return array.reshape(_check_shape(shape))


VALUE_DECODERS: dict[str, Callable[[ModelDecoder, Json], object]] = {
    "array": ModelDecoder._decode_array,
    "class": lambda decoder, name: decoder.decode_class(name),
    "dict": ModelDecoder._decode_dict,
    "float": lambda _, text: {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[str(text)],
    "narrow": ModelDecoder._decode_narrow,
    "objects": ModelDecoder._decode_objects,
    "scalar": lambda decoder, node: decoder.decode_node(node)[()],
    "steps": ModelDecoder._decode_steps,
    "strings": ModelDecoder._decode_strings,
}


def build_record(declared: Registration, values: Mapping[str, Any]) -> object:
    """Build a record from its fields; absent fields take their defaults."""
    cls: Any = declared.cls
    known = set(validation.list_fields(cls))
    if is_dataclass(cls):
        needed = {f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING}
    else:
        needed = known - set(cls._field_defaults)
    # required fields are there, and no unknown ones
    if not needed <= set(values) <= known:
        raise ModelFileError(
            f"a record {declared.name} has the fields {sorted(values)}; this version knows {sorted(known)}."
        )
    return cls(**values)


def _find_known_class(name: Json) -> Registration:
    found = validation.find_class(name) if isinstance(name, str) else None
    if found is None:
        raise ModelFileError(f"this version does not know {name!r}; if it is a class of your own, import it first.")
    return found


def check_object(node: Json) -> dict[str, Json]:
    if not isinstance(node, dict):
        raise ModelFileError("a record has no fields.")
    return node


def _check_list(node: Json) -> list[Json]:
    if not isinstance(node, list):
        raise ModelFileError("a list is missing.")
    return node


def _check_pair(node: Json) -> list[Json]:
    if len(_check_list(node)) != 2:
        raise ModelFileError("a pair is missing.")
    return _check_list(node)


def _check_shape(node: Json) -> list[int]:
    shape = [n for n in _check_list(node) if type(n) is int and 0 <= n < MAX_AXIS_LENGTH]
    if len(shape) != len(_check_list(node)):
        raise ModelFileError(f"an array has the shape {node}.")
    return shape
