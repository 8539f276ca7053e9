"""Everything Priory raises on purpose, as one tree.

    PrioryError
    ├── DataError (ValueError)        the data given cannot be used; the model is as it was
    │   └── NotSeen                   asked to forget what was never learned
    ├── KindError (TypeError)         a cell or a label is of the wrong kind
    ├── Stale (RuntimeError)          a question the statistics can no longer answer
    ├── TooLarge (MemoryError)        a model that would not fit into memory, said before it is built
    ├── Missing (ImportError)         a method needs an extra that is not installed
    ├── BadModel (ValueError)         a file is no model, or not one that can be trusted
    ├── Busy (TimeoutError)           somebody else is changing the file
    └── PrioryWarning (UserWarning)   the answer is defined, but look at this

Each message is one line: what was given, where, and what to do.
"""

from __future__ import annotations


class PrioryError(Exception):
    """The root: ``except PrioryError`` catches all that Priory raises on purpose."""


class DataError(PrioryError, ValueError):
    """The data given cannot be used."""


class NotSeen(DataError):
    """Asked to forget what was never learned; ``index`` is the cell of the record that would fall below zero."""

    def __init__(self, message: str, index: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.index = index


class KindError(PrioryError, TypeError):
    """A cell or a label is of the wrong kind."""


class Stale(PrioryError, RuntimeError):
    """A question that the statistics can no longer answer."""


class TooLarge(PrioryError, MemoryError):
    """A model that would not fit into memory."""


class Missing(PrioryError, ImportError):
    """A method needs an extra that is not installed."""


class BadModel(PrioryError, ValueError):
    """A file is no model, or not one that can be trusted."""


class Busy(PrioryError, TimeoutError):
    """Somebody else is changing the file."""


class PrioryWarning(PrioryError, UserWarning):
    """The answer is defined, but worth a look."""
