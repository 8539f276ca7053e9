"""Everything Priory raises on purpose, as one tree.

    PrioryError
    ├── DataError (ValueError)                   the data cannot be used; the model is unchanged
    │   └── NotLearnedError                      asked to forget something that was never learned
    ├── KindError (TypeError)                    a cell or a label has the wrong type
    ├── StaleModelError (RuntimeError)           the statistics can no longer answer the question
    ├── ModelTooLargeError (MemoryError)         the model would not fit into memory; raised before it is built
    ├── MissingDependencyError (ImportError)     an optional dependency is not installed
    ├── ModelFileError (ValueError)              the file is not a model, or not one that can be trusted
    ├── FileBusyError (TimeoutError)             another process is changing the file
    └── PrioryWarning (UserWarning)              the answer is defined, but deserves a look

Each message is one line: what was given, where, and what to do.
"""

from __future__ import annotations

import warnings


class PrioryError(Exception):
    """The root: ``except PrioryError`` catches all that Priory raises on purpose."""


class DataError(PrioryError, ValueError):
    """The data given cannot be used."""


class NotLearnedError(DataError):
    """Asked to forget what was never learned; ``index`` is the cell of the record that would fall below zero."""

    def __init__(self, message: str, index: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.index = index


class KindError(PrioryError, TypeError):
    """A cell or a label is of the wrong kind."""


class StaleModelError(PrioryError, RuntimeError):
    """A question that the statistics can no longer answer."""


class ModelTooLargeError(PrioryError, MemoryError):
    """A model that would not fit into memory."""


class MissingDependencyError(PrioryError, ImportError):
    """A method needs an extra that is not installed."""


class ModelFileError(PrioryError, ValueError):
    """A file is no model, or not one that can be trusted."""


class FileBusyError(PrioryError, TimeoutError):
    """Somebody else is changing the file."""


class PrioryWarning(PrioryError, UserWarning):
    """The answer is defined, but worth a look."""


_FORMER_NAMES = {
    "NotSeen": NotLearnedError,
    "Stale": StaleModelError,
    "TooLarge": ModelTooLargeError,
    "Missing": MissingDependencyError,
    "BadModel": ModelFileError,
    "Busy": FileBusyError,
}


def __getattr__(name: str) -> type[PrioryError]:
    """Errors under the names they had before 0.2."""
    if name not in _FORMER_NAMES:
        raise AttributeError(f"module 'priory.errors' has no attribute {name!r}")
    error = _FORMER_NAMES[name]
    warnings.warn(f"priory.errors.{name} is now {error.__name__}.", FutureWarning, stacklevel=2)
    return error
