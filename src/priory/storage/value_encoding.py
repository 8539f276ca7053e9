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
from priory.errors import BadModel, KindError
from priory.storage.container import KINDS, Contents, Sections, is_kind
from priory.storage.registry import ESTIMATORS, RECORDS, class_of, learned_by, name_of

MANY = 64  # strings from which on they are stored as an array is, and numbers from which on they are narrowed
COLLECTIONS: dict[str, type] = {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset}


# -- out ---------------------------------------------------------------------------------------------------------------


def encoded(value: Any, sections: Sections, where: str = "model") -> Any:
    """The tree of a value; its arrays go to ``sections``."""
    if isinstance(value, np.ndarray):
        return _array(value, sections, where)
    if isinstance(value, np.generic):
        return {"scalar": _array(np.asarray(value), sections, where)}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, type) and name_of(value) in RECORDS:
        return {"class": name_of(value)}
    if name_of(type(value)) in RECORDS:
        inside = {name: encoded(v, sections, f"{where}.{name}") for name, v in _fields(value).items()}
        return {name_of(type(value)): inside}
    if name_of(type(value)) in ESTIMATORS:
        return _estimator(value, sections, where)
    if type(value) is dict:
        pairs = [[encoded(k, sections, where), encoded(v, sections, f"{where}[{k!r}]")] for k, v in value.items()]
        return {"dict": pairs}
    kind = next((name for name, kind in COLLECTIONS.items() if type(value) is kind), None)
    if kind is None:
        raise KindError(
            f"{where} is a {type(value).__name__}, which a model file cannot hold; it holds plain values, arrays, "
            f"Priory's own families and records, and the models {', '.join(ESTIMATORS)}."
        )
    items = sorted(value) if isinstance(value, (set, frozenset)) else value
    if len(items) > MANY and all(type(item) is str for item in items):
        return {kind: _strings(np.array(items, dtype=object), sections)}
    return {kind: [encoded(item, sections, f"{where}[{i}]") for i, item in enumerate(items)]}


def _fields(record: Any) -> dict[str, Any]:
    names = [f.name for f in fields(record)] if is_dataclass(record) else record._fields
    return {name: getattr(record, name) for name in names}


def _estimator(model: Any, sections: Sections, where: str) -> dict[str, Any]:
    parts = {"parameters": model.get_params(deep=False), "learned": learned_by(model)}
    return {
        name_of(type(model)): {
            part: {name: encoded(v, sections, f"{where}.{name}") for name, v in values.items()}
            for part, values in parts.items()
        }
    }


def _array(array: Array, sections: Sections, where: str) -> dict[str, Any]:
    """Axes lie in the file as they do in memory: sums over them come out the same to the last bit."""
    if array.dtype.kind == "U" or (array.dtype.kind == "O" and all(type(v) is str for v in array.flat)):
        return _strings(array, sections)
    if array.dtype.kind == "O":
        items = [encoded(v, sections, where) for v in array.flat]
        return {"objects": [list(array.shape), items]}
    if not is_kind(array.dtype.newbyteorder("<").str):
        raise KindError(f"{where} is an array of {array.dtype}, which a model file cannot hold.")
    if array.size > MANY and (small := _small(array, sections, where)) is not None:
        return small
    order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    kind = sections.put(array.transpose(order))
    axes = [order] if order != sorted(order) and array.size else []
    return {"array": [kind, list(array.shape), *axes]}


def _small(array: Array, sections: Sections, where: str) -> dict[str, Any] | None:
    """Whole numbers in fewer bytes, if that loses nothing: those that only rise as their steps."""
    if array.ndim == 1 and array.dtype == np.int64:
        steps = narrowed(np.diff(array, prepend=0))
        if steps is not None:
            return {"steps": _array(steps, sections, where)}
    less = narrowed(array)
    return None if less is None else {"narrow": [array.dtype.newbyteorder("<").str, _array(less, sections, where)]}


def narrowed(array: Array) -> Array | None:
    """The same numbers in the narrowest unsigned kind; None where a bit would be lost, or none is won.

    >>> narrowed(np.array([0.0, 300.0])).dtype, narrowed(np.array([-0.0, 300.0])), narrowed(np.array([0.5]))
    (dtype('uint16'), None, None)
    """
    if array.dtype.kind not in "iuf" or not 0 <= array.min().item() <= (most := array.max().item()) < 1 << 32:
        return None
    less = array.astype(np.min_scalar_type(int(most)))
    bits = f"u{array.dtype.itemsize}"
    if less.itemsize >= array.itemsize or not np.array_equal(less.astype(array.dtype).view(bits), array.view(bits)):
        return None
    return less


def _strings(array: Array, sections: Sections) -> dict[str, Any]:
    """One after the other in UTF-8, and where each ends."""
    try:
        strings = [str(s).encode() for s in array.flat]
    except UnicodeEncodeError as error:
        raise KindError(
            f"{error.object!r} holds half a surrogate pair, which is no text; it cannot be saved."
        ) from None
    ends = _array(np.cumsum([len(s) for s in strings], dtype=np.int64), sections, "strings")
    sections.put(np.frombuffer(b"".join(strings), dtype=np.uint8))
    return {"strings": [array.dtype.kind, list(array.shape), ends]}


# -- in ----------------------------------------------------------------------------------------------------------------


class Decoder:
    """Trees back to values; ``record`` and ``estimator`` say what is made of names."""

    def __init__(
        self,
        contents: Contents,
        record: Callable[[str, dict[str, Any]], Any],
        estimator: Callable[[str, dict[str, Any], dict[str, Any]], Any],
    ) -> None:
        self.contents = contents
        self.record = record
        self.estimator = estimator

    def decoded(self, node: Any) -> Any:
        if node is None or isinstance(node, (bool, int, float, str)):
            return node
        if not isinstance(node, dict) or len(node) != 1:
            raise BadModel("a part of it is neither a plain value nor an object with one name.")
        [(name, inside)] = node.items()
        if name in RECORDS:
            return self.record(name, {f: self.decoded(v) for f, v in _object(inside).items()})
        if name in ESTIMATORS:
            if set(_object(inside)) != {"parameters", "learned"}:
                raise BadModel(f"{name} has no parameters, or has learned nothing.")
            parts = [{f: self.decoded(v) for f, v in _object(part).items()} for part in inside.values()]
            return self.estimator(name, *parts)
        if name in COLLECTIONS:
            items = self.decoded(inside).tolist() if isinstance(inside, dict) else map(self.decoded, _listed(inside))
            return COLLECTIONS[name](items)
        if name not in PLAIN:
            raise BadModel(f"this version knows no {name!r}.")
        return PLAIN[name](self, inside)

    def _dict(self, pairs: Any) -> dict[Any, Any]:
        return {self.decoded(key): self.decoded(value) for key, value in map(_pair, _listed(pairs))}

    def _float(self, text: Any) -> float:
        return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[text]

    def _class(self, name: Any) -> type:
        if name not in RECORDS:
            raise BadModel(f"this version knows no {name!r}.")
        kind: type = class_of(name)
        return kind

    def _scalar(self, node: Any) -> Any:
        return self.decoded(node)[()]

    def _array(self, inside: Any) -> Array:
        kind, shape, *axes = _listed(inside)
        order = axes[0] if axes else list(range(len(shape)))
        if sorted(order) != list(range(len(shape))):
            raise BadModel(f"an array has the axes {order}.")
        array = self.contents.take(kind, [shape[axis] for axis in order])
        return array.transpose(np.argsort(order)) if axes else array

    def _narrow(self, inside: Any) -> Array:
        kind, node = _pair(inside)
        less = self._unsigned(node)
        if kind not in KINDS or not np.can_cast(less.dtype, kind):
            raise BadModel(f"{less.dtype} is not widened to {kind!r}.")
        self.contents.claim(less.size * np.dtype(kind).itemsize)
        return less.astype(kind)

    def _steps(self, inside: Any) -> Array:
        steps = self._unsigned(inside)
        if steps.ndim != 1:
            raise BadModel(f"an array of steps has the shape {list(steps.shape)}.")
        self.contents.claim(steps.size * 8)
        return np.cumsum(steps, dtype=np.int64)

    def _unsigned(self, node: Any) -> Array:
        array = self.decoded(node)
        if not isinstance(array, np.ndarray) or array.dtype.kind != "u" or array.dtype.itemsize > 4:
            raise BadModel("what is to be widened is no array of narrow whole numbers.")
        return array

    def _strings(self, inside: Any) -> Array:
        kind, shape, node = _listed(inside)
        ends = self.decoded(node)
        if not isinstance(ends, np.ndarray) or ends.dtype != np.int64 or ends.shape != (math.prod(_shape(shape)),):
            raise BadModel("the strings of an array have no ends.")
        arena = self.contents.take("|u1", [int(ends[-1]) if len(ends) else 0])
        starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
        if (ends < starts).any():
            raise BadModel("the strings of an array overlap.")
        joined = arena.tobytes()
        strings = [joined[a:b].decode() for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        if kind not in ("O", "U"):
            raise BadModel(f"this version knows no strings of kind {kind!r}.")
        return np.array(strings, dtype=object if kind == "O" else str).reshape(shape)

    def _objects(self, inside: Any) -> Array:
        shape, items = _pair(inside)
        array = np.empty(len(_listed(items)), dtype=object)
        for i, item in enumerate(items):
            array[i] = self.decoded(item)
        return array.reshape(_shape(shape))


PLAIN: dict[str, Callable[[Decoder, Any], Any]] = {
    "array": Decoder._array,
    "class": Decoder._class,
    "dict": Decoder._dict,
    "float": Decoder._float,
    "narrow": Decoder._narrow,
    "objects": Decoder._objects,
    "scalar": Decoder._scalar,
    "steps": Decoder._steps,
    "strings": Decoder._strings,
}


def built_record(name: str, given: dict[str, Any]) -> Any:
    """The record of this name; fields that later versions added have their defaults."""
    kind = class_of(name)
    if is_dataclass(kind):
        known = {f.name for f in fields(kind)}
        needed = {f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING}
    else:
        known, needed = set(kind._fields), set(kind._fields) - set(kind._field_defaults)
    if not needed <= set(given) <= known:
        raise BadModel(f"a record {name} has the fields {sorted(given)}; this version knows {sorted(known)}.")
    return kind(**given)


def built_estimator(name: str, parameters: dict[str, Any], learned: dict[str, Any]) -> Any:
    """The estimator of this name with its parameters, and what it learned."""
    kind = class_of(name)
    model = kind()
    unknown = sorted(set(parameters) - set(model.get_params(deep=False)))
    if unknown:
        raise BadModel(f"{name} has no parameters {unknown}.")
    for attribute in learned:
        fitted = attribute.isidentifier() and (attribute.endswith("_") or attribute.startswith("_"))
        if not fitted or attribute.startswith("__") or callable(getattr(kind, attribute, None)):
            raise BadModel(f"{name} learns no {attribute!r}.")
    vars(model).update(parameters)
    vars(model).update(learned)
    return model


def _object(node: Any) -> dict[str, Any]:
    if not isinstance(node, dict):
        raise BadModel("a record has no fields.")
    return node


def _listed(node: Any) -> list[Any]:
    if not isinstance(node, list):
        raise BadModel("a list is missing.")
    return node


def _pair(node: Any) -> list[Any]:
    if len(_listed(node)) != 2:
        raise BadModel("a pair is missing.")
    return _listed(node)


def _shape(node: Any) -> list[int]:
    if not all(type(n) is int and 0 <= n < 1 << 40 for n in _listed(node)):
        raise BadModel(f"an array has the shape {node}.")
    return _listed(node)
