"""The width of text on a terminal: East Asian characters take two columns, combining accents none."""

from __future__ import annotations

from unicodedata import combining, east_asian_width


def display_width(text: str) -> int:
    """Return the number of terminal columns that a text takes.

    >>> display_width("评论"), display_width("cafe\\u0301")
    (4, 4)
    """
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def pad_to_width(text: str, columns: int) -> str:
    """Return the text, padded with spaces to a width of ``columns``."""
    return text + " " * (columns - display_width(text))
