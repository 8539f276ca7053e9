"""Libraries that this process does without, or imports late: importing them takes longer than what it was started for.

Only the command line avoids any: it knows that nobody else uses its process.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from threading import RLock
from types import ModuleType
from typing import Any

_avoided: set[str] = set()


def avoid_import(library: str) -> None:
    """Do without a library where there is another way."""
    _avoided.add(library)


def is_avoided(library: str) -> bool:
    """Whether this process does without a library."""
    return library in _avoided


class ImportBlocker:
    """Lets a library seem not to be installed, to others that import it just in case, as pyarrow does pandas."""

    def __init__(self, library: str) -> None:
        self.library = library

    def install(self) -> None:
        """Block the library from now on."""
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        """Refuse to find the library; what Python asks before it looks for a module."""
        if name == self.library:
            raise ModuleNotFoundError(f"{name} is not needed here", name=name)


class LateModule(ModuleType):
    """Stands for a library until something in it is used; many answers to a row use none of it."""

    _lock = RLock()  # a thread that comes second waits for the one that imports

    def install(self) -> None:
        """Stand for the library, if it is not imported already."""
        sys.modules.setdefault(self.__name__, self)

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
            return getattr(import_module(self.__name__), name)
