"""Lazy or skipped imports: public names on first use, and commands that finish faster than the import.

Only the command line skips libraries, because no other code shares its process.
"""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Any


def attach_stub(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package: each name in its stub, `__init__.pyi`, is imported on first use."""

    @cache
    def read_homes() -> dict[str, str]:
        stub = Path(str(sys.modules[package].__file__)).with_suffix(".pyi")
        imports = [node for node in ast.parse(stub.read_text("utf-8")).body if isinstance(node, ast.ImportFrom)]
        return {alias.name: str(node.module) for node in imports for alias in node.names}

    def get_attribute(name: str) -> Any:
        if name == "__all__":
            return sorted(read_homes())
        if name.startswith("__") or name not in read_homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = read_homes()[name]
        module = import_module(home)
        found = getattr(module, name) if home != package and hasattr(module, name) else import_module(f"{home}.{name}")
        setattr(sys.modules[package], name, found)  # so that the next use does not come here
        return found

    return get_attribute, lambda: sorted([*vars(sys.modules[package]), *read_homes()])


_avoided: set[str] = set()


def avoid_import(library: str) -> None:
    """Use alternatives to a library where they exist, in this process."""
    _avoided.add(library)


def is_avoided(library: str) -> bool:
    """Whether `avoid_import` was called for a library."""
    return library in _avoided


class ImportBlocker:
    """Makes a library look uninstalled to code that imports it optionally, as pyarrow imports pandas."""

    def __init__(self, library: str) -> None:
        self.library = library

    def install(self) -> None:
        """Block the library from now on."""
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        """Raise ModuleNotFoundError for the library; Python calls this before it searches for a module."""
        if name == self.library:
            raise ModuleNotFoundError(f"{name} is not needed here", name=name)


class LateModule(ModuleType):
    """Placeholder that imports a library on first use; many single-row predictions never use it."""

    _lock = RLock()  # a second thread waits for the import

    def install(self) -> None:
        """Register the placeholder, unless the library is already imported."""
        sys.modules.setdefault(self.__name__, self)

    def __getattr__(self, name: str) -> Any:
        if placeholder := sys.modules.get(f"{self.__name__}.{name}"):  # import pyarrow.compute as pc
            return placeholder
        with self._lock:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
            return getattr(import_module(self.__name__), name)


OBJECTS_BETWEEN_COLLECTIONS = 100_000  # imported modules are never garbage: collect rarely


def skip_slow_imports() -> None:
    """Do without scikit-learn and pandas, and import SciPy and Arrow only if they are used."""
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    avoid_import("sklearn")
    ImportBlocker("pandas").install()
    for library in ("scipy", "pyarrow", "pyarrow.compute"):
        LateModule(library).install()
