"""Validate the values of a model file: types, array shapes, finite numbers, non-negative counts.

A checksum shows that a file is unchanged, not that it was written in good faith. So every value is checked against the
type hints and the declared axes of its class (see `priory.core.registration`) and by its own method ``find_fault``. A
model is checked in the same way before it is saved, so that every file that is written can be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from priory.core.registration import Registration, SelfChecking, find_shape
from priory.core.statistics import Statistics
from priory.errors import ModelFileError
from priory.storage.registry import find_record

MAX_COUNT = 1e100  # largest weight of rows or tokens: sums and squares of counts stay finite
TypeHint = object  # what `typing.get_type_hints` returns: a class, a union, a generic alias, Any


def check_value(value: object, where: str, finite: bool = True) -> None:
    """Raise ModelFileError, naming the attribute, if a value or anything inside of it is invalid."""
    record = find_record(type(value))
    if isinstance(value, (np.ndarray, float)) and finite:
        _check_finite(np.asarray(value), where)
    elif isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise ModelFileError(f"{where} is a number of {value.bit_length()} bits; whole numbers have 64 at most.")
    elif isinstance(value, dict):
        for key, item in value.items():
            check_value(item, f"{where}[{key!r}]", finite)
    elif record is not None:
        _check_record(value, record, where, finite and record.finite)
    elif isinstance(value, (tuple, list)):
        for i, item in enumerate(value):
            check_value(item, f"{where}[{i}]", finite)


def _check_finite(numbers: np.ndarray[Any, Any], where: str) -> None:
    # The extremes are enough, because NaN propagates to both; no mask of the array's size is allocated.
    extremes = [numbers.min(initial=0.0), numbers.max(initial=0.0)] if numbers.dtype.kind == "f" else []
    if not np.isfinite(extremes).all():
        raise ModelFileError(f"{where} holds {numbers[~np.isfinite(numbers)].flat[0]}; numbers must be finite.")


def _check_record(record: object, declared: Registration, where: str, finite: bool) -> None:
    for name, hint in find_field_types(declared.cls).items():
        value = getattr(record, name)
        if not matches_type_hint(value, hint):
            raise ModelFileError(
                f"{where}.{name} is a {type(value).__name__}, which a {declared.name} cannot have there."
            )
        check_value(value, f"{where}.{name}", finite)
    _check_axes(record, declared, where)
    if isinstance(record, Statistics):
        for name in dict.fromkeys([*record.count_fields, "counts"]):
            counts = getattr(record, name, None)
            if not isinstance(counts, np.ndarray):
                continue  # there are none, or they are a record of their own
            if name in record.count_fields and counts.min(initial=0.0) < 0:
                raise ModelFileError(f"{where}.{name} is negative; counts never are.")
            if counts.max(initial=0.0) > MAX_COUNT:
                raise ModelFileError(f"{where}.{name} is {counts.max():g}; counts are at most {MAX_COUNT:g}.")
    fault = record.find_fault() if isinstance(record, SelfChecking) else None
    if fault:
        raise ModelFileError(f"{where} is not a valid {declared.name}: {fault}.")


@cache
def find_field_types(cls: type) -> Mapping[str, TypeHint]:
    """Return the type hints of the fields of a dataclass or NamedTuple."""
    hints = get_type_hints(cls)
    return {name: hints[name] for name in list_fields(cls) if get_origin(hints[name]) is not ClassVar}


def list_fields(cls: type) -> tuple[str, ...]:
    """Return the names of the fields of a dataclass or NamedTuple."""
    names: tuple[str, ...] = tuple(f.name for f in fields(cls)) if is_dataclass(cls) else getattr(cls, "_fields", ())
    return names


def matches_type_hint(value: object, hint: TypeHint) -> bool:
    """Whether a value matches a type hint.

    >>> matches_type_hint((1, 2), tuple[int, int]), matches_type_hint(("a", 2), tuple[str, ...])
    (True, False)
    >>> matches_type_hint(True, float | None), matches_type_hint(1, float)
    (False, True)
    """
    origin, inside = get_origin(hint), get_args(hint)
    alias_of = getattr(origin or hint, "__value__", None)
    if alias_of is not None:  # a type alias, such as NDArray since NumPy 2.5
        return matches_type_hint(value, alias_of)
    if isinstance(hint, TypeVar):
        return matches_type_hint(value, hint.__bound__ or object)
    if hint is Any or _is_static_protocol(origin or hint):
        return True
    if origin in (Union, UnionType):
        return any(matches_type_hint(value, option) for option in inside)
    if origin is Literal:
        return any(type(value) is type(option) and value == option for option in inside)
    # a tuple of fixed length, such as tuple[int, str]
    if origin is tuple and inside[-1] is not Ellipsis:
        return isinstance(value, tuple) and len(value) == len(inside) and all(map(matches_type_hint, value, inside))
    if origin is type:
        return isinstance(value, type) and issubclass(value, get_origin(inside[0]) or inside[0])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            matches_type_hint(key, inside[0]) and matches_type_hint(item, inside[1]) for key, item in value.items()
        )
    if isinstance(origin, type) and issubclass(origin, Iterable) and origin is not np.ndarray:
        # a string is a sequence of strings only where the hint asks for strings
        if isinstance(value, str) and inside[0] is not str:
            return False
        return isinstance(value, origin) and all(matches_type_hint(item, inside[0]) for item in value)
    # NumPy scalars are allowed, bools are not
    if hint in (int, float):
        return isinstance(value, Integral if hint is int else Real) and not isinstance(value, bool)
    if hint is bool:
        return isinstance(value, (bool, np.bool_))
    cls = origin or (NoneType if hint is None else hint)
    return isinstance(cls, type) and isinstance(value, cls)


def _is_static_protocol(hint: TypeHint) -> bool:
    """Whether a hint is a Protocol that cannot be checked at run time."""
    return getattr(hint, "_is_protocol", False) and not getattr(hint, "_is_runtime_protocol", False)


def _check_axes(record: object, declared: Registration, where: str) -> None:
    """Raise unless every array has its declared dtype and axes, and axes of the same letter have the same length."""
    lengths: dict[str, int] = {}
    for name, axes in declared.axes.items():
        value = getattr(record, name)
        dtype = "" if isinstance(value, Statistics) else declared.dtypes.get(name, "f8")
        if dtype and np.asarray(value).dtype != np.dtype(dtype):
            raise ModelFileError(f"{where}.{name} holds {np.asarray(value).dtype} instead of {np.dtype(dtype)}.")
        # axes of the same letter must have the same length
        shape = find_shape(value)
        if len(shape) != len(axes) or any(
            size != lengths.setdefault(axis, size) for axis, size in zip(axes, shape, strict=True)
        ):
            raise ModelFileError(f"{where}.{name} has the shape {shape}, which does not fit its other fields.")
    # axis "e" is either shared by all columns (length 1) or has one entry for each of the "d" columns
    if lengths.get("e", 1) not in (1, lengths.get("d", 1)):
        raise ModelFileError(f"{where} has sums for {lengths['e']} columns, and others for {lengths['d']}.")
