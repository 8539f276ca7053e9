"""The type of a text, the ways to read one, and its Unicode normal form."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, get_args

Document = str | bytes
# How a model reads: texts as they are, mail with its headers, or mail with only its subject.
Reader = Literal["text", "mail", "mail_body"]
READERS: tuple[Reader, ...] = get_args(Reader)

MAX_COMBINING_MARKS = 30  # in a row, as in the stream-safe text format of Unicode
MARKS_PATTERN = re.compile("[^\\w\\s\\x00-\u02ff]{31,}")  # combining marks, and what else is neither letter nor digit


def normalize_text(text: str, form: Literal["NFC", "NFKC"] = "NFC") -> str:
    """The text in a Unicode normal form, with at most 30 combining marks in a row; the same object if it has it.

    >>> normalize_text("cafe\u0301")
    'café'
    """
    if form == "NFC" and _is_latin_1(text):  # has no marks, and all its letters are composed
        return text
    limited = limit_marks(text)
    if unicodedata.is_normalized(form, limited):
        return text if limited == text else limited
    return unicodedata.normalize(form, limited)


def _is_latin_1(text: str) -> bool:
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True


def limit_marks(text: str) -> str:
    """The text with at most 30 combining marks in a row: sorting n of them, as normal forms do, takes n * n steps."""
    return MARKS_PATTERN.sub(_limit_run, text)


def _limit_run(run: re.Match[str]) -> str:
    """Limit the marks of a match, which contains whole runs of them."""
    kept, count = [], 0
    for character in run[0]:
        count = count + 1 if unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) else 0
        if count <= MAX_COMBINING_MARKS:
            kept.append(character)
    return "".join(kept)
