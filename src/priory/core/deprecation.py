"""Renamed parameters: the old names still work, with a FutureWarning that names the new ones."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

from priory.core.typing import ClassT, P, ReturnT


def rename_arguments(**new_names: str) -> Callable[[Callable[P, ReturnT]], Callable[P, ReturnT]]:
    """Let a function accept arguments under the names they had before: ``old="new"``.

    >>> @rename_arguments(most="max_tokens")
    ... def list_tokens(max_tokens=20):
    ...     return max_tokens
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     list_tokens(most=5)
    5
    >>> print(caught[0].message)
    list_tokens: the parameter 'most' is now called 'max_tokens'; the old name will be removed.
    """

    def decorate(function: Callable[P, ReturnT]) -> Callable[P, ReturnT]:
        owner = function.__qualname__.rsplit("<locals>.", 1)[-1].removesuffix(".__init__")

        @functools.wraps(function)  # inspect.signature, and so scikit-learn, sees the parameters of the function
        def call_with_new_names(*args: P.args, **kwargs: P.kwargs) -> ReturnT:
            for old in new_names.keys() & kwargs.keys():
                _rename_argument(owner, old, new_names[old], kwargs)
            return function(*args, **kwargs)

        return call_with_new_names

    return decorate


def rename_parameters(**new_names: str) -> Callable[[ClassT], ClassT]:
    """Let a class accept parameters under the names they had before, in its constructor and in ``set_params``."""

    def decorate(cls: ClassT) -> ClassT:
        for method in ("__init__", "set_params"):
            if hasattr(cls, method):
                setattr(cls, method, rename_arguments(**new_names)(getattr(cls, method)))
        return cls

    return decorate


def _rename_argument(owner: str, old: str, new: str, arguments: dict[str, object]) -> None:
    if new in arguments:
        raise TypeError(f"{owner}: {old!r} and {new!r} are the same parameter; give {new!r} only.")
    message = f"{owner}: the parameter {old!r} is now called {new!r}; the old name will be removed."
    warnings.warn(message, FutureWarning, stacklevel=3)
    arguments[new] = arguments.pop(old)
