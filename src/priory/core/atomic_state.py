"""Thread safety: an estimator refers to a state that is replaced as a whole, never modified.

A method that changes an estimator works on a copy, whose state then replaces the old one in a single step; if the
method raises, the estimator is unchanged. Changes to one estimator are serialised by a lock, so no update is lost. A
method that only reads works on a snapshot, so its result reflects the model before or after a concurrent change, never
in between.

Methods for single rows are the exception, because copying the state for every row would cost more than the row. They
hold the lock, modify `Guard.stream` in place and defer updating the state, which is brought up to date before it is
next read.

>>> class Counter:
...     total = 0
...     @replace_state
...     def add(self, number):
...         self.total += number
...         if number > 9:
...             raise ValueError("too large")
...         return self
>>> counter = Counter()
>>> counter.add(1).add(2).total
3
>>> counter.add(10)
Traceback (most recent call last):
ValueError: too large
>>> counter.total
3
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from priory.core.typing import P, ReturnT

ObjectT = TypeVar("ObjectT")

StreamT = TypeVar("StreamT", bound="Stream")


class Stream(Protocol):
    """Changes by single rows that the state of an object does not include yet."""

    @property
    def has_pending_rows(self) -> bool:
        """Whether the state of the object needs an update."""


class Guard(Generic[StreamT]):
    """The lock of one object, and its stream of single rows. It holds no reference to the object."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.stream: StreamT | None = None


_guards: WeakKeyDictionary[object, Guard[Any]] = WeakKeyDictionary()
_guards_lock = threading.Lock()


def find_guard(instance: object) -> Guard[Any]:
    """Return the guard of an object, creating it if necessary."""
    guard = _guards.get(instance)
    if guard is None:
        with _guards_lock:
            guard = _guards.setdefault(instance, Guard())
    return guard


def settle_state(instance: Any) -> None:
    """Apply pending rows to the state of an object, by calling its ``_settle``."""
    guard = _guards.get(instance)
    if guard is not None and guard.stream is not None and guard.stream.has_pending_rows:
        with guard.lock:
            # checked again under the lock: another thread may have settled it
            if guard.stream is not None and guard.stream.has_pending_rows:
                instance._settle()


def close_stream(instance: object) -> None:
    """Settle the state and discard the stream, because the object is about to change."""
    guard = _guards.get(instance)
    if guard is not None and guard.stream is not None:
        with guard.lock:
            settle_state(instance)
            guard.stream = None


def copy_state(instance: ObjectT) -> ObjectT:
    """Return a shallow copy with the current attributes."""
    settle_state(instance)
    twin = object.__new__(type(instance))
    vars(twin).update(vars(instance))
    return twin


def replace_state(method: Callable[P, ReturnT]) -> Callable[P, ReturnT]:
    """Decorate a method so that it changes its object completely or, if it raises, not at all; calls are serialised."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> ReturnT:
        instance: Any = args[0]
        guard = find_guard(instance)
        with guard.lock:
            draft = copy_state(instance)
            result: Any = method(draft, *args[1:], **kwargs)  # type: ignore[arg-type]  # the rest of P.args
            # a single assignment, so that other threads see the old state or the new one
            instance.__dict__ = draft.__dict__
            guard.stream = None
        return instance if result is draft else result

    return call


def read_state(method: Callable[P, ReturnT]) -> Callable[P, ReturnT]:
    """Decorate a method so that it reads a snapshot of its object while other threads may change it."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> ReturnT:
        return method(copy_state(args[0]), *args[1:], **kwargs)  # type: ignore[arg-type]  # the rest of P.args

    return call
