"""Attributes that exist only on some fitted models, so that ``hasattr``, ``dir`` and completion work."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import MethodType
from typing import Any, cast

from priory.core.typing import P, ReturnT
from priory.errors import NotAvailableError, PrioryError


def optional_attribute(get: Callable[P, ReturnT]) -> Callable[P, ReturnT]:
    """Decorate the getter of a property so that errors of Priory become AttributeErrors.

    scikit-learn's ``dir`` calls ``hasattr`` for every property, and ``hasattr`` handles only AttributeError.

    >>> class Model:
    ...     @property
    ...     @optional_attribute
    ...     def draws_(self):
    ...         raise PrioryError("this model makes no draws.")
    >>> hasattr(Model(), "draws_")
    False
    """

    @wraps(get)
    def get_or_raise(*args: P.args, **kwargs: P.kwargs) -> ReturnT:
        try:
            return get(*args, **kwargs)
        except PrioryError as error:
            raise NotAvailableError(*error.args) from error

    return get_or_raise


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
