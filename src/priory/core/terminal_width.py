"""How wide texts are on a terminal: Chinese characters take two columns, accents none."""

from __future__ import annotations

from unicodedata import combining, east_asian_width


def display_width(text: str) -> int:
    """The columns a text takes.

    >>> display_width("评论"), display_width("cafe\\u0301")
    (4, 4)
    """
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def pad_to_width(text: str, columns: int) -> str:
    """The text, filled up to so many columns."""
    return text + " " * (columns - display_width(text))
