"""Attributes that a fitted model may lack: ``hasattr``, ``dir`` and completion in notebooks work with them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from priory.core.typing import P, ReturnT
from priory.errors import NotAvailableError, PrioryError


def optional_attribute(get: Callable[P, ReturnT]) -> Callable[P, ReturnT]:
    """Let the getter of a property raise an AttributeError wherever it raises an error of Priory.

    scikit-learn's ``dir`` calls ``hasattr`` for every property, and ``hasattr`` passes on all errors but this one.

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
