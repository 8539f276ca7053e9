"""Exceptions and warnings that Priory raises, as one tree, and what their messages need."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any


class PrioryError(Exception):
    """The base class: ``except PrioryError`` catches everything that Priory raises deliberately."""


class DataError(PrioryError, ValueError):
    """The given data cannot be used; the model is unchanged."""


class NotLearnedError(DataError):
    """Asked to forget something that was never learned.

    Attributes
    ----------
    index : tuple of int
        The position in the array of the count that would become negative.
    path : tuple of int
        Which of several nested records the array is in.
    subject : str
        What was not learned, such as a token, if it is known.
    row : int or None
        The first row that cannot be forgotten, counted from 0, if rows were given.
    column : str or None
        The column whose cell was not learned, if it is known.
    """

    def __init__(self, message: str, index: tuple[int, ...] = (), *, subject: str = "", row: int | None = None) -> None:
        super().__init__(message)
        self.index, self.subject, self.row = index, subject, row
        self.path: tuple[int, ...] = ()
        self.column: str | None = None


class KindError(PrioryError, TypeError):
    """A cell or a label has the wrong type."""


class StaleModelError(PrioryError, RuntimeError):
    """The statistics can no longer answer the question."""


class NotAvailableError(DataError, StaleModelError, AttributeError):
    """This model does not have the attribute, so ``hasattr`` is False and ``dir`` leaves it out."""


class ModelTooLargeError(PrioryError, MemoryError):
    """The model would not fit into memory."""


class MissingDependencyError(PrioryError, ImportError):
    """An optional dependency is not installed."""


def import_extra(module: str, problem: str, package: str) -> Any:
    """Import a module of an optional dependency; the error says what needs it, and how it is installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependencyError(f"{problem}: pip install {package}.", name=error.name) from None


class ModelFileError(PrioryError, ValueError):
    """The file is not a model, or not one that can be trusted."""


class FileBusyError(PrioryError, TimeoutError):
    """Another process is changing the file."""


class ServiceError(PrioryError, RuntimeError):
    """The service rejected a request.

    Attributes
    ----------
    status : int
        The HTTP status: 404 if there is no such model, 409 if its state does not allow the change, 422 if the rows
        cannot be used, 503 if the service is too busy, 507 if the disk is full.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class PrioryWarning(PrioryError, UserWarning):
    """The result is valid, but may need attention."""


MAX_MESSAGE_LENGTH = 400


def shorten_message(error: Exception) -> str:
    """The message of an error on one line, without the array that scikit-learn prints."""
    text = re.sub(r":\s*array=.*?\.\s+Reshape", ". Reshape", str(error), flags=re.DOTALL)
    line = " ".join(text.split()) or type(error).__name__
    return line if len(line) <= MAX_MESSAGE_LENGTH else f"{line[: MAX_MESSAGE_LENGTH // 2]} ... {line[-100:]}"


MIN_LIKENESS = 0.6  # ratio of difflib: 1 for equal names


def suggest_name(name: str, known_names: Iterable[str]) -> str:
    """Format the most similar name as a question in parentheses, ignoring case; empty if none is similar.

    >>> suggest_name("clas", ["class", "x"]), suggest_name("price", ["class", "x"])
    (" (did you mean 'class'?)", '')
    """
    from difflib import get_close_matches

    spelt = {known.strip().casefold(): known for known in known_names}
    close = get_close_matches(name.strip().casefold(), spelt, 1, MIN_LIKENESS)
    return f" (did you mean {spelt[close[0]]!r}?)" if close else ""
