"""Estimators in threads: an estimator is a reference to a state that is never changed, only replaced.

A method that changes an estimator works on a copy, whose state then takes the place of the old one in a single step; if
it raises, nothing has happened. Changes of one estimator wait for each other, so no row is lost. A method that only
reads works on the state as it was when it was called, so an answer is that of the model before a change or after it,
never of something between.

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
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from priory.core.typing import P, ReturnT

ObjectT = TypeVar("ObjectT")

_locks: WeakKeyDictionary[object, threading.RLock] = WeakKeyDictionary()
_locks_guard = threading.Lock()


def copy_state(instance: ObjectT) -> ObjectT:
    """A copy with the same attributes, as they are at this moment."""
    twin = object.__new__(type(instance))
    vars(twin).update(vars(instance))
    return twin


def replace_state(method: Callable[P, ReturnT]) -> Callable[P, ReturnT]:
    """A method that changes its object completely or, if it raises, not at all; one such call at a time."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> ReturnT:
        instance: Any = args[0]
        with _find_lock(instance):
            draft = copy_state(instance)
            result: Any = method(draft, *args[1:], **kwargs)  # type: ignore[arg-type]
            instance.__dict__ = draft.__dict__
        return instance if result is draft else result

    return call


def read_state(method: Callable[P, ReturnT]) -> Callable[P, ReturnT]:
    """A method that reads one state of its object, whatever other threads do meanwhile."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> ReturnT:
        return method(copy_state(args[0]), *args[1:], **kwargs)  # type: ignore[arg-type]

    return call


def _find_lock(instance: object) -> threading.RLock:
    with _locks_guard:
        return _locks.setdefault(instance, threading.RLock())
