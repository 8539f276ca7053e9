"""Suggest a similar name for one that does not exist."""

from __future__ import annotations

from collections.abc import Iterable

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
