"""What was learned: a record that adds, subtracts and scales.

    posterior = prior + statistics(data)

This module is the right-hand term. A record is a frozen dataclass of arrays; ``+`` learns, ``-`` forgets,
``*`` weighs or fades. Two records are first put in the same *frame* (the origin the sums are taken about, the
values that are counted, the classes), then their sums are combined cell by cell.

>>> a, b = Rows(np.array([3.0, 1.0])), Rows(np.array([1.0, 1.0]))
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
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from priory.core.typing import Array
from priory.errors import NotSeen

T = TypeVar("T")

DUST = 1e-12  # of a count: what is left after subtracting a part with fractional weights is rounding, not rows


@dataclass(frozen=True, eq=False)
class Statistics:
    """A record whose fields are arrays, records, or tuples of records; the first axis of an array is the class.

    Every record has ``n``, the weight of the rows seen. Where nothing is left of ``n``, nothing is left at all.
    """

    frame: ClassVar[tuple[str, ...]] = ()  # fields that say where the sums are taken, and do not add
    tallied: ClassVar[tuple[str, ...]] = ("n",)  # fields that can never fall below zero

    def aligned(self, other: Self) -> tuple[Self, Self]:
        """Both records in one frame."""
        return self, other

    def __add__(self, other: Self) -> Self:
        a, b = self.aligned(other)
        return a.combined(b, np.add)

    def __radd__(self, other: int) -> Self:
        return self  # the start of sum()

    def __sub__(self, other: Self) -> Self:
        a, b = self.aligned(other)
        return a.combined(b, np.subtract).guarded(a, b)

    def __mul__(self, weight: float) -> Self:
        return self.mapped(lambda x: x * weight, lambda record: record * weight)

    __rmul__ = __mul__

    def summed(self) -> tuple[str, ...]:
        """The fields that add."""
        return tuple(f.name for f in fields(self) if f.name not in self.frame)

    def combined(self, other: Self, op: Callable[[Array, Array], Array]) -> Self:
        return replace(self, **{f: _both(op, getattr(self, f), getattr(other, f)) for f in self.summed()})

    def mapped(self, array: Callable[[Array], Array], record: Callable[[Statistics], Statistics]) -> Self:
        """A copy with ``array`` applied to every sum, and ``record`` to every record inside."""
        return replace(self, **{f: _each(array, record, getattr(self, f)) for f in self.summed()})

    def regrouped(self, index: Array, size: int) -> Self:
        """The same record over ``size`` classes, row ``i`` of this one standing at ``index[i]``."""

        def spread(x: Array) -> Array:
            wide = np.zeros((size, *x.shape[1:]))
            wide[index] = x
            return wide

        return self.mapped(spread, lambda record: record.regrouped(index, size))

    def pooled(self) -> Self:
        """All classes together, as one class."""
        return self.mapped(lambda x: x.sum(axis=0, keepdims=True), lambda record: record.pooled())

    def guarded(self, total: Self, part: Self) -> Self:
        """``total - part`` if it can be, else NotSeen. Where no rows are left the sums are nought, not rounding."""
        left: dict[str, Any] = {f: getattr(self, f) for f in self.summed()}
        for name in self.tallied:
            left[name] = remaining(getattr(total, name), getattr(part, name))
        empty = left["n"] == 0
        for name in self.summed():
            if name not in self.tallied and isinstance(left[name], np.ndarray):
                nothing = empty.reshape(empty.shape + (1,) * (left[name].ndim - empty.ndim))
                left[name] = np.where(nothing, 0.0, left[name])
        return replace(self, **left)

    def derived(self, name: str, function: Callable[[Self], T], *by: object) -> T:
        """``function(self)``, computed once for this record and ``by``: what follows from a record never goes stale."""
        memo: dict[str, tuple[tuple[object, ...], Any]] = self.__dict__.setdefault("_memo", {})
        if name not in memo or memo[name][0] != by:
            memo[name] = (by, function(self))
        value: T = memo[name][1]
        return value

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_memo"}


@dataclass(frozen=True, eq=False)
class Rows(Statistics):
    """How many rows were seen of each class."""

    n: Array


def remaining(total: Array, part: Array) -> Array:
    """``total - part`` for counts: the one guard of the library. Never clamps; raises NotSeen."""
    left = np.asarray(total - part)
    dust = DUST * np.abs(total)
    if (left < -dust).any():
        cell = tuple(int(i) for i in np.argwhere(left < -dust)[0])
        had, asked = (float(np.broadcast_to(x, left.shape)[cell]) for x in (total, part))
        at = f" (cell {', '.join(map(str, cell))})" if cell else ""
        raise NotSeen(f"cannot forget {asked:g} of {had:g}{at}: only what was learned can be forgotten.", cell)
    return np.where(np.abs(left) <= dust, 0.0, left)


def _both(op: Callable[[Array, Array], Array], a: Any, b: Any) -> Any:
    if isinstance(a, tuple):
        return tuple(_both(op, x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, Statistics):
        return a + b if op is np.add else a - b
    return op(a, b)


def _each(array: Callable[[Array], Array], record: Callable[[Statistics], Statistics], a: Any) -> Any:
    if isinstance(a, tuple):
        return tuple(_each(array, record, x) for x in a)
    return record(a) if isinstance(a, Statistics) else array(a)
