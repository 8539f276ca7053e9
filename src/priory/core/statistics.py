"""What was learned: a record that adds, subtracts and scales.

    posterior = prior + statistics(data)

This module is the right-hand term. A record is a frozen dataclass of arrays; ``+`` learns, ``-`` forgets,
``*`` weighs or fades. Two records are first put in the same *frame* (the origin the sums are taken about, the
values that are counted, the classes), then their sums are combined cell by cell.

>>> a, b = RowCounts(np.array([3.0, 1.0])), RowCounts(np.array([1.0, 1.0]))
>>> (a + b - b).n.tolist(), (0.5 * a).n.tolist()
([3.0, 1.0], [1.5, 0.5])
>>> b - a
Traceback (most recent call last):
    ...
priory.errors.NotSeen: cannot forget 3 of 1 (cell 0): only what was learned can be forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np

from priory.core.typing import Array
from priory.errors import NotLearnedError

DerivedT = TypeVar("DerivedT")

ROW_SUM_TOLERANCE = 1e-6  # of the rows seen: how far sums over the same rows may differ

ROUNDING_TOLERANCE = (
    1e-12  # of a count: what is left after subtracting a part with fractional weights is rounding, not rows
)


@dataclass(frozen=True, eq=False)
class Statistics:
    """A record whose fields are arrays, records, or tuples of records; the first axis of an array is the class.

    Every record has ``n``, the weight of the rows seen. Where nothing is left of ``n``, nothing is left at all.
    """

    if TYPE_CHECKING:

        @property
        def n(self) -> Array:
            """The weight of the rows learned of each class."""

    frame_fields: ClassVar[tuple[str, ...]] = ()  # fields that say where the sums are taken, and do not add
    count_fields: ClassVar[tuple[str, ...]] = ("n",)  # fields that can never fall below zero

    def align(self, other: Self) -> tuple[Self, Self]:
        """Both records in one frame."""
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
        """The fields that add."""
        return tuple(f.name for f in fields(self) if f.name not in self.frame_fields)

    def combine(self, other: Self, op: Callable[[Array, Array], Array]) -> Self:
        return replace(
            self, **{f: _combine_values(op, getattr(self, f), getattr(other, f)) for f in self.summed_fields()}
        )

    def map_fields(self, array: Callable[[Array], Array], record: Callable[[Statistics], Statistics]) -> Self:
        """A copy with ``array`` applied to every sum, and ``record`` to every record inside."""
        return replace(self, **{f: _map_value(array, record, getattr(self, f)) for f in self.summed_fields()})

    def regroup_classes(self, index: Array, size: int) -> Self:
        """The same record over ``size`` classes, row ``i`` of this one standing at ``index[i]``."""

        def spread(x: Array) -> Array:
            wide = np.zeros((size, *x.shape[1:]))
            wide[index] = x
            return wide

        return self.map_fields(spread, lambda record: record.regroup_classes(index, size))

    def pool_classes(self) -> Self:
        """All classes together, as one class."""
        return self.map_fields(lambda x: x.sum(axis=0, keepdims=True), lambda record: record.pool_classes())

    def check_subtraction(self, total: Self, part: Self) -> Self:
        """``total - part`` if it can be, else NotSeen. Where no rows are left the sums are nought, not rounding."""
        left: dict[str, Any] = {f: getattr(self, f) for f in self.summed_fields()}
        for name in self.count_fields:
            left[name] = subtract_counts(getattr(total, name), getattr(part, name))
        empty = left["n"] == 0
        for name in self.summed_fields():
            if name not in self.count_fields and isinstance(left[name], np.ndarray):
                nothing = empty.reshape(empty.shape + (1,) * (left[name].ndim - empty.ndim))
                left[name] = np.where(nothing, 0.0, left[name])
        return replace(self, **left)

    def derive(self, name: str, function: Callable[[Self], DerivedT], *depends_on: object) -> DerivedT:
        """``function(self)``, computed once for this record and ``by``: what follows from a record never goes stale."""
        memo: dict[str, tuple[tuple[object, ...], Any]] = self.__dict__.setdefault("_memo", {})
        if name not in memo or memo[name][0] != depends_on:
            memo[name] = (depends_on, function(self))
        value: DerivedT = memo[name][1]
        return value

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_memo"}


@dataclass(frozen=True, eq=False)
class RowCounts(Statistics):
    """How many rows were seen of each class."""

    n: Array


def is_increasing(values: Array) -> bool:
    """Whether values are sorted, each of them once, and of one type so that they can be compared."""
    if values.dtype.kind == "O":
        items = values.tolist()
        return len({type(v) for v in items}) <= 1 and all(a < b for a, b in pairwise(items))
    return bool((values[1:] > values[:-1]).all()) and values.dtype.kind in "biufUS"


def subtract_counts(total: Array, part: Array) -> Array:
    """``total - part`` for counts: the one guard of the library. Never clamps; raises NotSeen."""
    left = np.asarray(total - part)
    dust = ROUNDING_TOLERANCE * np.abs(total)
    if (left < -dust).any():
        cell = tuple(int(i) for i in np.argwhere(left < -dust)[0])
        had, asked = (float(np.broadcast_to(x, left.shape)[cell]) for x in (total, part))
        at = f" (cell {', '.join(map(str, cell))})" if cell else ""
        raise NotLearnedError(f"cannot forget {asked:g} of {had:g}{at}: only what was learned can be forgotten.", cell)
    return np.where(np.abs(left) <= dust, 0.0, left)


def _combine_values(op: Callable[[Array, Array], Array], a: Any, b: Any) -> Any:
    if isinstance(a, tuple):
        return tuple(_combine_values(op, x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, Statistics):
        return a + b if op is np.add else a - b
    return op(a, b)


def _map_value(array: Callable[[Array], Array], record: Callable[[Statistics], Statistics], a: Any) -> Any:
    if isinstance(a, tuple):
        return tuple(_map_value(array, record, x) for x in a)
    return record(a) if isinstance(a, Statistics) else array(a)
