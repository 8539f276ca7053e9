"""Registration of the classes that model files may contain.

`register_record` is for the parts of a fitted model, `register_estimator` for the model itself, and
`priory.families.base.register_family` for families. A model file may only name classes that were registered by code
that has been imported, and its content is checked against the declarations of the class.

>>> from dataclasses import dataclass
>>> from priory.core.statistics import Statistics
>>> @register_record("Visits", axes="cd")
... @dataclass(frozen=True, eq=False)
... class VisitStatistics(Statistics):
...     n: Array
...     visits: Array
>>> find_registration(VisitStatistics).axes
{'n': 'cd', 'visits': 'cd'}
>>> find_registered_name("Visits").cls is VisitStatistics
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, runtime_checkable

import numpy as np

from priory.core.typing import ClassT

BY_NAME: dict[str, Registration] = {}
BY_CLASS: dict[type, Registration] = {}


@runtime_checkable
class SelfChecking(Protocol):
    """A record that can check whether its fields are consistent."""

    def find_fault(self) -> str | None:
        """Describe what is wrong in a short clause such as "a count is negative"; None if the record is valid."""


@dataclass(frozen=True)
class Registration:
    """The declarations of a registered class.

    ``axes`` names the axes of arrays and of exact sums by letters: ``c`` classes, ``d`` columns, ``e`` columns or one
    for all columns, ``t`` pairs of columns, ``v`` values or tokens, ``k`` bytes, ``b`` parts of a model, ``q`` their
    parameters, ``r`` rows, and "" for a scalar. Axes with the same letter must have the same length in all fields of a
    record.
    """

    cls: type
    name: str  # in model files; it stays the same even if the class is renamed
    axes: Mapping[str, str] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)  # of fields other than float64; "" accepts any dtype
    finite: bool = True  # whether NaN and infinity are refused
    reveals: str = ""  # what the file reveals about individual training rows


@dataclass(frozen=True)
class EstimatorRegistration(Registration):
    """What an estimator declared: attributes that it has once fitted, and a check that they fit together."""

    required: tuple[str, ...] = ()
    find_fault: Callable[[Any], str | None] = lambda model: None


def register_record(
    name: str,
    *,
    axes: str | Mapping[str, str] | None = None,
    dtypes: Mapping[str, str] | None = None,
    finite: bool = True,
    reveals: str = "",
) -> Callable[[ClassT], ClassT]:
    """Allow instances of a dataclass or NamedTuple in model files; a single string ``axes`` applies to every field.

    If the class has a method ``find_fault``, invalid records are neither saved nor loaded.
    """

    def register(cls: ClassT) -> ClassT:
        per_field = {f.name: axes for f in fields(cls)} if isinstance(axes, str) else axes or {}
        return add_registration(Registration(cls, name, per_field, dtypes or {}, finite, reveals), cls)

    return register


def register_estimator(
    *,
    find_fault: Callable[[Any], str | None],
    required: tuple[str, ...] = ("statistics_", "n_features_in_"),
) -> Callable[[ClassT], ClassT]:
    """Allow an estimator in model files, under the name of its class.

    A fitted one must have the attributes ``required``. Models that ``find_fault`` finds fault with are not saved or
    loaded; it is asked about models whose parameters and attributes have the declared types.
    """

    def register(cls: ClassT) -> ClassT:
        return add_registration(EstimatorRegistration(cls, cls.__name__, required=required, find_fault=find_fault), cls)

    return register


def add_registration(registration: Registration, cls: ClassT) -> ClassT:
    """Add a registration; raise ValueError if another class has the same name."""
    if not (registration.name.isidentifier() and registration.name[0].isupper()):
        raise ValueError(f"cannot register {registration.name!r}: names in model files start with a capital letter.")
    other = BY_NAME.get(registration.name)
    if other is not None and (other.cls.__module__, other.cls.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(
            f"cannot register {cls.__module__}.{cls.__qualname__} as {registration.name!r}: "
            f"{other.cls.__module__}.{other.cls.__qualname__} has this name; choose another."
        )
    BY_NAME[registration.name] = BY_CLASS[cls] = registration
    return cls


def find_registration(cls: type) -> Registration | None:
    """The registration of exactly this class (not inherited), or None."""
    return BY_CLASS.get(cls)


def find_registered_name(name: str) -> Registration | None:
    """The registration with this name, or None."""
    return BY_NAME.get(name)


# -- sizes of records --------------------------------------------------------------------------------------------------


def find_axis_length(record: object, axis: str) -> int | None:
    """Length of an axis such as ``d`` in a record; None if no field has this axis."""
    registration = find_registration(type(record))
    for name, axes in registration.axes.items() if registration else ():
        if axis in axes:
            return int(find_shape(getattr(record, name))[axes.index(axis)])
    return None


def find_shape(value: object) -> tuple[int, ...]:
    """Shape of an array, a number, or a record that is an array of sums."""
    shape: tuple[int, ...] = value.shape if hasattr(value, "shape") else np.shape(np.asarray(value))
    return shape


def count_columns(record: object, default: int | None = None) -> int | None:
    """Number of columns of a record; a tuple has one record for each column."""
    if isinstance(record, tuple) and type(record) is tuple:
        return len(record)
    found = find_axis_length(record, "d")
    return default if found is None else found


def list_record_types(parts: object) -> object:
    """The types of records, in tuples nested in the same way."""
    return tuple(map(list_record_types, parts)) if type(parts) is tuple else type(parts)
