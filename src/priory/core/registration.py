"""Registration: a class says, where it is defined, what model files need to know about it.

`register_record` is for everything a fitted model is made of, `register_estimator` for the model itself, and
`priory.families.registry.register_family` for families. A model file may only name classes that were registered by code
that has been imported; what a file says is checked against what its class declared here.

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
from typing import Protocol, runtime_checkable

import numpy as np

from priory.core.typing import ClassT

BY_NAME: dict[str, Registration] = {}
BY_CLASS: dict[type, Registration] = {}


@runtime_checkable
class SelfChecking(Protocol):
    """A record that can tell whether its fields agree with each other."""

    def find_fault(self) -> str | None:
        """What is wrong, as a short clause such as "a count is negative"; None if nothing is."""


@dataclass(frozen=True)
class Registration:
    """What a class declared about itself.

    ``axes`` gives the axes of arrays and of exact sums, a letter for each: ``c`` classes, ``d`` columns, ``e`` columns
    or one for all of them, ``t`` pairs of columns, ``v`` values or tokens, ``k`` bytes, ``b`` parts of a model, ``q``
    their parameters, ``r`` rows, and "" for a scalar. Axes with the same letter must have the same length in all fields
    of a record.
    """

    cls: type
    name: str  # in model files; it never changes, even if the class is renamed
    axes: Mapping[str, str] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)  # of fields that are not float64; "" for any
    finite: bool = True  # whether NaN and infinity are refused
    reveals: str = ""  # what somebody who has the file can learn about single training rows


@dataclass(frozen=True)
class EstimatorRegistration(Registration):
    """What an estimator declared: attributes that it has once fitted, and the records of ``statistics_.parts``."""

    required: tuple[str, ...] = ()
    records: tuple[type, ...] = ()


def register_record(
    name: str,
    *,
    axes: str | Mapping[str, str] | None = None,
    dtypes: Mapping[str, str] | None = None,
    finite: bool = True,
    reveals: str = "",
) -> Callable[[ClassT], ClassT]:
    """Let model files hold instances of a dataclass or NamedTuple; ``axes`` as one string holds for every field.

    If the class has a method ``find_fault``, records that it finds fault with are neither saved nor loaded.
    """

    def register(cls: ClassT) -> ClassT:
        per_field = {f.name: axes for f in fields(cls)} if isinstance(axes, str) else axes or {}
        return add_registration(Registration(cls, name, per_field, dtypes or {}, finite, reveals), cls)

    return register


def register_estimator(
    *,
    required: tuple[str, ...] = ("statistics_", "n_features_in_"),
    records: tuple[type, ...] = (),
) -> Callable[[ClassT], ClassT]:
    """Let model files hold an estimator, under the name of its class.

    A fitted one must have the attributes ``required``, and either these ``records`` as its ``statistics_.parts``, each
    with a value for every column, or a method ``_is_consistent`` that says whether what it learned fits together.
    """

    def register(cls: ClassT) -> ClassT:
        if not records and not hasattr(cls, "_is_consistent"):
            raise TypeError(f"{cls.__name__} is registered without records and has no method _is_consistent.")
        return add_registration(EstimatorRegistration(cls, cls.__name__, required=required, records=records), cls)

    return register


def add_registration(registration: Registration, cls: ClassT) -> ClassT:
    """Enter a class into the list; a name that belongs to another class is refused."""
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
    """What exactly this class declared; None if it, rather than a parent of it, was not registered."""
    return BY_CLASS.get(cls)


def find_registered_name(name: str) -> Registration | None:
    """What was registered under this name by code that has been imported so far."""
    return BY_NAME.get(name)


# -- sizes of records --------------------------------------------------------------------------------------------------


def find_axis_length(record: object, axis: str) -> int | None:
    """The length that an axis such as ``d`` has in a record; None if no field of the record has this axis."""
    registration = find_registration(type(record))
    for name, axes in registration.axes.items() if registration else ():
        if axis in axes:
            return int(find_shape(getattr(record, name))[axes.index(axis)])
    return None


def find_shape(value: object) -> tuple[int, ...]:
    """The shape of an array, of a number, or of a record that is an array of sums."""
    shape: tuple[int, ...] = value.shape if hasattr(value, "shape") else np.shape(np.asarray(value))
    return shape


def count_columns(record: object, default: int | None = None) -> int | None:
    """The number of columns that a record describes: its own, or one for each item of a tuple of records."""
    if isinstance(record, tuple) and type(record) is tuple:
        return len(record)
    found = find_axis_length(record, "d")
    return default if found is None else found


def list_record_types(parts: object) -> object:
    """The classes of records, in tuples nested as the records are."""
    return tuple(map(list_record_types, parts)) if type(parts) is tuple else type(parts)
