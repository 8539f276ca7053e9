"""Libraries that this process does without, because importing them takes longer than what it was started for.

Only the command line avoids any: it knows that nobody else uses its process.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

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
