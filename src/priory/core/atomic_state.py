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

import os
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from priory.core.typing import P, ReturnT

MAX_WAIT_TO_FORK = 0.2  # seconds, for each object that is being changed in place


class LockOwner:
    """An object with a lock, which is a new one after a fork."""

    changes_in_place = False  # whether somebody who holds the lock may be in the middle of a change

    def __init__(self) -> None:
        self.lock = threading.RLock()
        _owners.add(self)


_owners: WeakSet[LockOwner] = WeakSet()
_locks: WeakKeyDictionary[object, LockOwner] = WeakKeyDictionary()
_locks_lock = threading.Lock()


def find_lock(instance: object) -> threading.RLock:
    """The lock of an object; there is one for each."""
    owner = _locks.get(instance)
    if owner is None:
        with _locks_lock:
            owner = _locks.setdefault(instance, LockOwner())
    return owner.lock


class ForkedLocks:
    """A fork copies locks, but not the threads that hold them: in the child they would be held for ever.

    So a fork waits until no single row is being counted, which takes microseconds, and the child gets new locks. It
    does not wait for methods that hold a lock for long: they change nothing before they end.
    """

    def __init__(self) -> None:
        self.held: list[LockOwner] = []

    def acquire(self) -> None:
        """Wait until no object is being changed in place."""
        _locks_lock.acquire()
        changing = [owner for owner in list(_owners) if owner.changes_in_place]
        self.held = [owner for owner in changing if owner.lock.acquire(timeout=MAX_WAIT_TO_FORK)]

    def release(self) -> None:
        """Go on in the parent."""
        while self.held:
            self.held.pop().lock.release()
        _locks_lock.release()

    def renew(self) -> None:
        """Go on in the child, where there are no other threads."""
        global _locks_lock
        for owner in list(_owners):
            owner.lock = threading.RLock()
        self.held, _locks_lock = [], threading.Lock()


if hasattr(os, "register_at_fork"):
    _forked = ForkedLocks()
    os.register_at_fork(before=_forked.acquire, after_in_parent=_forked.release, after_in_child=_forked.renew)


def replace_state(method: Callable[P, ReturnT]) -> Callable[P, ReturnT]:
    """Decorate a method so that it changes its object completely or, if it raises, not at all; calls are serialised."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> ReturnT:
        instance: Any = args[0]
        with find_lock(instance):
            draft = object.__new__(type(instance))
            vars(draft).update(vars(instance))
            result: Any = method(draft, *args[1:], **kwargs)  # type: ignore[arg-type]  # the rest of P.args
            # a single assignment, so that other threads see the old state or the new one
            instance.__dict__ = draft.__dict__
        return instance if result is draft else result

    return call
