"""Methods that estimators share: changes in one step, attributes that only some instances have, and single rows.

A change is made to a copy of an estimator, whose state then replaces the old one in one step. Changes of one estimator
wait for each other; if one raises, nothing has happened. Classifiers that learn by counting keep their state in
`priory.learning.classifier` instead.

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
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import MethodType
from typing import TYPE_CHECKING, Any, Self, cast
from weakref import WeakKeyDictionary, WeakSet

import numpy as np
from numpy import ndarray as Array

from priory.core.input_guard import name_cells
from priory.core.typing import Label, P, ReturnT
from priory.errors import DataError, KindError, NotAvailableError, PrioryError

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


# -- attributes that exist only on some instances, so that hasattr, dir and completion work ----------------------------


if TYPE_CHECKING:  # which knows what a property returns
    optional_attribute = property
else:

    def optional_attribute(get: Callable[[Any], Any]) -> property:
        """Make a property that some instances lack: its errors of Priory become AttributeErrors.

        scikit-learn's ``dir`` calls ``hasattr`` for every property, and ``hasattr`` handles only AttributeError.

        >>> class Model:
        ...     @optional_attribute
        ...     def draws_(self):
        ...         raise PrioryError("this model makes no draws.")
        >>> hasattr(Model(), "draws_")
        False
        """

        @wraps(get)
        def get_or_raise(instance: Any) -> Any:
            try:
                return get(instance)
            except PrioryError as error:
                raise NotAvailableError(*error.args) from error

        return property(get_or_raise)


class OptionalMethod:
    """A method that some instances lack: ``_explain_absence(name)`` returns the reason, or None if it exists."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Callable[..., Any]:
        if instance is None:
            return self.method
        name = self.method.__name__
        reason = instance._explain_absence(name)
        if reason is not None:
            raise NotAvailableError(f"{type(instance).__name__} has no {name}: {reason}")
        return MethodType(self.method, instance)


def optional_method(method: Callable[P, ReturnT]) -> Callable[P, ReturnT]:
    """Decorate a method that some instances lack.

    >>> class Model:
    ...     def _explain_absence(self, method):
    ...         return "it learns from all rows at once; call fit."
    ...     @optional_method
    ...     def forget_one(self, x, y):
    ...         return self
    >>> hasattr(Model(), "forget_one")
    False
    >>> Model().forget_one({}, "spam")
    Traceback (most recent call last):
    priory.errors.NotAvailableError: Model has no forget_one: it learns from all rows at once; call fit.
    """
    return cast("Callable[P, ReturnT]", OptionalMethod(method))


# -- rows one at a time ------------------------------------------------------------------------------------------------


class ProbabilisticClassifier:
    """What follows from ``predict_proba``: the most probable class, and methods for one row at a time, as in river.

    A row is a dict from column to cell or, for classifiers of texts, a string; here it becomes a table of one row.
    Classifiers that count rows have a shorter way (`priory.learning.row_buffer`), and only they forget. A classifier
    that cannot learn or forget single rows lacks the method, and says what to use instead.
    """

    classes_: Array

    _supervised = _multiclass = True  # read by river's pipelines and evaluators
    _takes_texts = False

    # -- implemented by classifiers -------------------------------------------------------------------------------

    @abstractmethod
    def predict_proba(self, X: Any) -> Array:
        """The probability of each class."""

    def _explain_absence(self, method: str) -> str | None:
        """Why ``learn_one`` or ``forget_one`` is missing, and what to use instead; None if it exists."""
        return None

    def _has_learned(self) -> bool:
        return "classes_" in vars(self)

    # -- all rows ------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Array:
        """The most probable class of each row."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[best])

    # -- rows one at a time --------------------------------------------------------------------------------------

    def _wrap_row(self, x: Any) -> object:
        """Convert one row to a table, with the columns in the order in which they were learned."""
        if self._takes_texts and isinstance(x, str | bytes):
            return [x]
        return wrap_named_row(x, vars(self).get("feature_names_in_"), self._has_learned())

    @optional_method
    def learn_one(self, x: Any, y: Label) -> Self:
        """Learn one row; classifiers without ``partial_fit`` define the method or explain its absence."""
        model: Any = self
        model.partial_fit(self._wrap_row(x), [y])
        return self

    @optional_method
    def forget_one(self, x: Any, y: Label) -> Self:
        """Forget one learned row: the model is then as if it had never been learned."""
        raise NotImplementedError

    def predict_proba_one(self, x: Any) -> dict[Label, float]:
        """The probability of each class for one row; empty before anything was learned."""
        if not self._has_learned():
            return {}
        probabilities = np.asarray(self.predict_proba(self._wrap_row(x)))[0]
        return dict(zip(self.classes_.tolist(), probabilities.tolist(), strict=True))

    def predict_one(self, x: Any) -> Label | None:
        """The most probable class of one row; None before anything was learned."""
        answer = self.predict_proba_one(x)
        return max(answer, key=answer.__getitem__) if answer else None


def wrap_named_row(x: Any, names: Sequence[str] | Array | None, has_learned: bool) -> object:
    """A dict as a table of one row, its columns in the order of ``names``, if those that were learned have any."""
    if not isinstance(x, Mapping):
        raise KindError(f"x is a {type(x).__name__}; give one row as a dict of column to cell.")
    x = name_cells(x)
    known = list(x if names is None else names)
    if set(known) != x.keys():
        name = next(iter(set(known) ^ x.keys()))
        raise DataError(f"the row {'lacks' if name in known else 'has'} column {name!r}; the model knows {known[:10]}.")
    if names is None and has_learned:
        return np.array([list(x.values())])
    import pyarrow as pa  # of all tables the one with names that every installation has

    return pa.table({name: [x[name]] for name in known})
