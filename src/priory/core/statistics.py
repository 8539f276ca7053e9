"""Sufficient statistics: records that can be added, subtracted and scaled; and the classes allowed in model files.

    posterior = prior + statistics(data)

This module is the right-hand term. A record is a frozen dataclass of arrays; ``+`` learns, ``-`` forgets, and ``*``
weights or decays. Two records are first aligned to the same *frame* (such as the values that are counted, or the
classes); then their sums are combined element by element.

>>> a, b = RowCounts(np.array([3.0, 1.0])), RowCounts(np.array([1.0, 1.0]))
>>> (a + b - b).n.tolist(), (0.5 * a).n.tolist()
([3.0, 1.0], [1.5, 0.5])
>>> b - a
Traceback (most recent call last):
    ...
priory.errors.NotLearnedError: cannot forget 3 of 1 (cell 0): only what was learned can be forgotten.

A model file may only name classes that were registered by code that has been imported, and its content is checked
against the declarations of the class. `register_record` is for the parts of a fitted model, `register_estimator` for
the model itself, and `priory.families.base.register_family` for families.

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
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar, cast, runtime_checkable

import numpy as np
from numpy import ndarray as Array

from priory.core.typing import ClassT
from priory.errors import NotLearnedError

DerivedT = TypeVar("DerivedT")

ROW_SUM_TOLERANCE = 1e-6  # relative difference that sums over the same rows may have
# Relative to a count: a smaller remainder after subtracting fractional weights is a rounding error.
ROUNDING_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Statistics:
    """A record whose fields are arrays, records, or tuples of records; the first axis of an array is the class.

    Every record has a field ``n``, the total weight of the rows it has seen. Where ``n`` is zero, all sums are zero.
    """

    if TYPE_CHECKING:

        @property
        def n(self) -> Array:
            """The total weight of the rows of each class."""

    frame_fields: ClassVar[tuple[str, ...]] = ()  # fields that describe the frame and are not summed
    count_fields: ClassVar[tuple[str, ...]] = ("n",)  # fields that must not be negative

    def align(self, other: Self) -> tuple[Self, Self]:
        """Return both records in a common frame."""
        return self, other

    def __add__(self, other: Self) -> Self:
        a, b = self.align(other)
        return a.combine(b, np.add)

    def __radd__(self, other: int) -> Self:
        return self  # the start of sum()

    def __sub__(self, other: Self) -> Self:
        a, b = self.align(other)
        return a.combine(b, np.subtract).check_subtraction(a, b)

    def __mul__(self, weight: float) -> Self:
        return self.map_fields(lambda x: x * weight, lambda record: record * weight)

    __rmul__ = __mul__

    def summed_fields(self) -> tuple[str, ...]:
        """Return the names of the fields that are summed."""
        return tuple(f.name for f in fields(self) if f.name not in self.frame_fields)

    def combine(self, other: Self, op: Callable[[Array, Array], Array]) -> Self:
        """Return a copy with ``op`` applied to every pair of sums; both records must be in the same frame."""
        return replace(
            self, **{f: _combine_values(op, getattr(self, f), getattr(other, f)) for f in self.summed_fields()}
        )

    def map_fields(self, array: Callable[[Array], Array], record: Callable[[Statistics], Statistics]) -> Self:
        """Return a copy with ``array`` applied to every sum, and ``record`` to every nested record."""
        return replace(self, **{f: _map_value(array, record, getattr(self, f)) for f in self.summed_fields()})

    def regroup_classes(self, index: Array, size: int) -> Self:
        """Return this record over ``size`` classes, with class ``i`` moved to ``index[i]``."""

        def move_classes(x: Array) -> Array:  # (classes, ...) -> (size, ...)
            wide = np.zeros((size, *x.shape[1:]))
            wide[index] = x
            return wide

        return self.map_fields(move_classes, lambda record: record.regroup_classes(index, size))

    def take_classes(self, classes: Array) -> Self:
        """Return the record of some classes, given by their numbers."""
        taken = {f.name: self._take_classes_of(f.name, getattr(self, f.name), classes) for f in fields(self)}
        return replace(self, **taken)

    def _take_classes_of(self, name: str, value: object, classes: Array) -> object:
        """Select classes of a field; a field without a class axis is returned unchanged."""
        if isinstance(value, tuple):
            return tuple(self._take_classes_of(name, item, classes) for item in value)
        if isinstance(value, Statistics):
            return value.take_classes(classes)
        declared = find_registration(type(self))
        axes = declared.axes.get(name, "") if declared else "c" * (name not in self.frame_fields)
        return np.take(cast(Array, value), classes, axes.index("c")) if "c" in axes else value

    def pool_classes(self) -> Self:
        """Return the sum over all classes, as a record with one class."""
        return self.map_fields(lambda x: x.sum(axis=0, keepdims=True), lambda record: record.pool_classes())

    def take_columns(self, columns: Array) -> Self:
        """Return the record of some columns, which are the last axis of every array."""
        taken: dict[str, Any] = {}
        for name, value in ((f.name, getattr(self, f.name)) for f in fields(self)):
            if isinstance(value, np.ndarray):
                taken[name] = value[..., columns]
            elif isinstance(value, Statistics):
                taken[name] = value.take_columns(columns)
        return replace(self, **taken)

    def place_columns(self, other: Self, places: Array) -> Self:
        """Return a copy with the columns at ``places`` (last axis of every array) replaced by those in ``other``."""
        placed: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, Statistics):
                placed[name] = value.place_columns(getattr(other, name), places)
            elif isinstance(value, np.ndarray):
                placed[name] = value.copy()
                placed[name][..., places] = getattr(other, name)
        return replace(self, **placed)

    def find_filled_columns(self) -> Array:
        """Return whether each column had a value in any class, including values that its family does not accept."""
        counts: dict[str, Array] = vars(self)
        return np.asarray((counts["n"] + counts.get("outside", 0.0)).any(axis=0))

    def check_subtraction(self, total: Self, part: Self) -> Self:
        """Return ``total - part``, or raise NotLearnedError; sums are set to zero where no rows are left."""
        left: dict[str, Any] = {f: getattr(self, f) for f in self.summed_fields()}
        for name in self.count_fields:
            left[name] = subtract_counts(getattr(total, name), getattr(part, name))
        empty = left["n"] == 0  # (classes, ...)
        for name in self.summed_fields():
            if isinstance(left[name], Statistics):
                left[name] = left[name].clear_cells(empty, getattr(part, name))
            elif name not in self.count_fields and isinstance(left[name], np.ndarray):
                # (classes, ..., 1, ..., 1), to broadcast against the field
                no_rows = empty.reshape(empty.shape + (1,) * (left[name].ndim - empty.ndim))
                left[name] = np.where(no_rows, 0.0, left[name])
        return replace(self, **left)

    def sort_content(self) -> Self:
        """Return this record in canonical order; called when a model file is read."""
        return self

    def clear_cells(self, empty: Array, subtracted: Self) -> Self:
        """Return a copy with zeros in the cells that have no rows left, after ``subtracted`` was subtracted."""
        return self

    def derive(self, name: str, function: Callable[[Self], DerivedT], *depends_on: object) -> DerivedT:
        """Return ``function(self)``, computed once and cached for as long as ``depends_on`` stays the same."""
        memo: dict[str, tuple[tuple[object, ...], Any]] = self.__dict__.setdefault("_memo", {})
        known = memo.get(name)
        if known is None or known[0] != depends_on:
            known = memo[name] = (depends_on, function(self))  # two threads may both compute the same value
        value: DerivedT = known[1]
        return value

    def find_derived(self, name: str) -> object:
        """The last value that `derive` cached under this name, or None."""
        known = self.__dict__.get("_memo", {}).get(name)
        return None if known is None else known[1]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_memo"}


@dataclass(frozen=True, eq=False)
class RowCounts(Statistics):
    """The number of rows of each class."""

    n: Array


def is_increasing(values: Array) -> bool:
    """Whether values are strictly increasing, and of one type that can be compared."""
    if values.dtype.kind == "O":
        items = values.tolist()
        return len({type(v) for v in items}) <= 1 and all(a < b for a, b in pairwise(items))
    return bool((values[1:] > values[:-1]).all()) and values.dtype.kind in "biufUS"


def find_members(values: Array, known: Array) -> Array:
    """Whether each value is among the known ones; objects are looked up in a set, because they may not be sortable."""
    if values.dtype.kind != "O" and known.dtype.kind != "O":
        return np.isin(values, known)
    members = set(known.tolist())
    return np.fromiter((value in members for value in values.tolist()), bool, len(values))


def subtract_counts(total: Array, part: Array) -> Array:
    """Return ``total - part``, or raise NotLearnedError if a count would be negative; counts are never clamped."""
    left = np.asarray(total - part)
    # exact counts may leave no error; after fractional weights, a remainder within rounding error is zero
    tolerance = np.where(_is_exact(total) & _is_exact(part), 0.0, ROUNDING_TOLERANCE * np.abs(total))
    if (left < -tolerance).any():
        cell = tuple(int(i) for i in np.argwhere(left < -tolerance)[0])
        learned, removed = (float(np.broadcast_to(x, left.shape)[cell]) for x in (total, part))
        where = f" (cell {', '.join(map(str, cell))})" if cell else ""
        raise NotLearnedError(
            f"cannot forget {removed:g} of {learned:g}{where}: only what was learned can be forgotten.", cell
        )
    return np.where(np.abs(left) <= tolerance, 0.0, left)


def _is_exact(counts: Array) -> Array:
    """Which counts are multiples of 2^-12 below 2^40: their sums and differences have no rounding error."""
    units = counts * 2.0**12
    return (units == np.rint(units)) & (np.abs(units) < 2.0**52)


def _combine_values(op: Callable[[Array, Array], Array], a: object, b: object) -> object:
    if a is None or b is None:  # a field that only one record has is unknown for the sum
        return None
    if isinstance(a, tuple) and isinstance(b, tuple):
        return tuple(_combine_parts(op, x, y, place) for place, (x, y) in enumerate(zip(a, b, strict=True)))
    if isinstance(a, Statistics) and isinstance(b, Statistics):
        return a + b if op is np.add else a - b
    return op(cast(Array, a), cast(Array, b))


def _combine_parts(op: Callable[[Array, Array], Array], a: object, b: object, place: int) -> object:
    """Combine two parts of records; errors are annotated with the position of the part."""
    try:
        return _combine_values(op, a, b)
    except NotLearnedError as error:
        error.path = (place, *error.path)
        raise


def _map_value(array: Callable[[Array], Array], record: Callable[[Statistics], Statistics], value: object) -> object:
    if value is None:
        return None
    if isinstance(value, tuple):
        return tuple(_map_value(array, record, x) for x in value)
    return record(value) if isinstance(value, Statistics) else array(cast(Array, value))


def find_unlearned_row(
    subtract: Callable[[int], object], n_rows: int, error: NotLearnedError
) -> tuple[int, NotLearnedError]:
    """Return the first row that cannot be forgotten after the rows before it, and its error; found by bisection.

    ``subtract(n)`` raises if the first n rows cannot be subtracted; ``error`` is what it raised for all ``n_rows``.
    """
    n_possible, n_failing = 0, n_rows
    while n_failing - n_possible > 1:
        n_tried = (n_possible + n_failing) // 2
        try:
            subtract(n_tried)
            n_possible = n_tried
        except NotLearnedError as found:
            n_failing, error = n_tried, found
    return n_failing - 1, error


# -- what model files may contain --------------------------------------------------------------------------------------

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
    *, find_fault: Callable[[Any], str | None], required: tuple[str, ...] = ("statistics_", "n_features_in_")
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
