"""Shorten other libraries' error messages to one line."""

from __future__ import annotations

import re

MAX_MESSAGE_LENGTH = 400


def shorten_message(error: Exception) -> str:
    """The message of an error on one line, without the array that scikit-learn prints."""
    text = re.sub(r":\s*array=.*?\.\s+Reshape", ". Reshape", str(error), flags=re.DOTALL)
    line = " ".join(text.split()) or type(error).__name__
    return line if len(line) <= MAX_MESSAGE_LENGTH else f"{line[: MAX_MESSAGE_LENGTH // 2]} ... {line[-100:]}"
