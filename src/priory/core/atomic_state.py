"""Estimators in threads: an estimator is a reference to a state that is never changed, only replaced.

A method that changes an estimator works on a copy, whose state then takes the place of the old one in a single step; if
it raises, nothing has happened. Changes of one estimator wait for each other, so no row is lost. A method that only
reads works on the state as it was when it was called, so an answer is that of the model before a change or after it,
never of something between.

Methods for single rows are the exception: a copy for every row would cost more than the row. They hold the lock, change
what `Guard.stream` refers to in place, and put off what the state needs. Whoever looks at the state settles that first.

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

import os
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from priory.core.typing import P, ReturnT

ObjectT = TypeVar("ObjectT")

MAX_WAIT_TO_FORK = 0.2  # seconds, for each object that single rows have changed

StreamT = TypeVar("StreamT", bound="Stream")


class Stream(Protocol):
    """What single rows have changed."""

    @property
    def has_pending_rows(self) -> bool:
        """Whether the state of the object lacks rows."""


class Guard(Generic[StreamT]):
    """The lock of one object, and what single rows have changed. It holds no reference to the object."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.stream: StreamT | None = None


_guards: WeakKeyDictionary[object, Guard[Any]] = WeakKeyDictionary()
_guards_lock = threading.Lock()


def find_guard(instance: object) -> Guard[Any]:
    """The guard of an object; there is one for each."""
    guard = _guards.get(instance)
    if guard is None:
        with _guards_lock:
            guard = _guards.setdefault(instance, Guard())
    return guard


class ForkedLocks:
    """A fork copies locks, but not the threads that hold them: in the child they would be held for ever.

    So a fork waits until no single row is being counted, which takes microseconds, and the child gets new locks. It
    does not wait for methods that hold a lock for long: they change nothing before they end.
    """

    def __init__(self) -> None:
        self.held: list[Guard[Any]] = []

    def acquire(self) -> None:
        """Wait until no stream is being changed."""
        _guards_lock.acquire()
        streams = [guard for guard in _guards.values() if guard.stream is not None]
        self.held = [guard for guard in streams if guard.lock.acquire(timeout=MAX_WAIT_TO_FORK)]

    def release(self) -> None:
        """Go on in the parent."""
        while self.held:
            self.held.pop().lock.release()
        _guards_lock.release()

    def renew(self) -> None:
        """Go on in the child, where there are no other threads."""
        global _guards_lock
        for guard in _guards.values():
            guard.lock = threading.RLock()
        self.held, _guards_lock = [], threading.Lock()


if hasattr(os, "register_at_fork"):
    _locks = ForkedLocks()
    os.register_at_fork(before=_locks.acquire, after_in_parent=_locks.release, after_in_child=_locks.renew)


def settle_state(instance: Any) -> None:
    """Bring the state of an object up to date with the rows that were put off: its ``_settle`` does that."""
    guard = _guards.get(instance)
    if guard is not None and guard.stream is not None and guard.stream.has_pending_rows:
        with guard.lock:
            if guard.stream is not None and guard.stream.has_pending_rows:
                instance._settle()


def close_stream(instance: object) -> None:
    """Settle the state, and go on without a stream: what it was made for is about to change."""
    guard = _guards.get(instance)
    if guard is not None and guard.stream is not None:
        with guard.lock:
            settle_state(instance)
            guard.stream = None


def copy_state(instance: ObjectT) -> ObjectT:
    """A copy with the same attributes, as they are at this moment."""
    settle_state(instance)
    twin = object.__new__(type(instance))
    vars(twin).update(vars(instance))
    return twin


def replace_state(method: Callable[P, ReturnT]) -> Callable[P, ReturnT]:
    """A method that changes its object completely or, if it raises, not at all; one such call at a time."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> ReturnT:
        instance: Any = args[0]
        guard = find_guard(instance)
        with guard.lock:
            draft = copy_state(instance)
            result: Any = method(draft, *args[1:], **kwargs)  # type: ignore[arg-type]  # the rest of P.args
            instance.__dict__ = draft.__dict__
            guard.stream = None
        return instance if result is draft else result

    return call


def read_state(method: Callable[P, ReturnT]) -> Callable[P, ReturnT]:
    """A method that reads one state of its object, whatever other threads do meanwhile."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> ReturnT:
        return method(copy_state(args[0]), *args[1:], **kwargs)  # type: ignore[arg-type]  # the rest of P.args

    return call
