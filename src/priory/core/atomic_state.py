"""Estimators in threads: a change is made to a copy of an estimator, whose state then replaces the old one in one step.

Changes of one estimator wait for each other; if one raises, nothing has happened. Classifiers that learn by counting
keep their state in `priory.learning.classifier` instead.

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
from typing import Any
from weakref import WeakKeyDictionary

from priory.core.typing import P, ReturnT

_locks: WeakKeyDictionary[object, threading.RLock] = WeakKeyDictionary()
_locks_lock = threading.Lock()


def find_lock(instance: object) -> threading.RLock:
    """The lock of an object; there is one for each."""
    lock = _locks.get(instance)
    if lock is None:
        with _locks_lock:
            lock = _locks.setdefault(instance, threading.RLock())
    return lock


def replace_state(method: Callable[P, ReturnT]) -> Callable[P, ReturnT]:
    """A method that changes its object completely or, if it raises, not at all; one such call at a time."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> ReturnT:
        instance: Any = args[0]
        with find_lock(instance):
            draft = object.__new__(type(instance))
            vars(draft).update(vars(instance))
            result: Any = method(draft, *args[1:], **kwargs)  # type: ignore[arg-type]  # the rest of P.args
            instance.__dict__ = draft.__dict__
        return instance if result is draft else result

    return call
