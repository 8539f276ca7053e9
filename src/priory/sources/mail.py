"""Mail: raw RFC 822 messages, mboxes and maildirs as rows of text.

A message becomes one text: its subject and addresses, then what a person would read of it. Everything is capped, so
that no message takes long or much; what had to be cut or guessed is said in ``flags``.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from email import errors, header, message, message_from_bytes, policy
from typing import NamedTuple

DEPTH, PARTS, HEADERS, HEADER_BYTES, VALUE = 30, 1000, 1000, 256 << 10, 4096
SHOWN = ("Subject", "From", "Reply-To", "To", "Cc")
MOST_IN_A_MAIL = 25 << 20

ZERO_WIDTH = dict.fromkeys([*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2065), 0xFEFF, 0xAD])
UNSEEN = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style|head)\b.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL)
BREAKS = re.compile(r"<(?:/?(?:p|div|br|hr|t[rdh]|table|li|[uo]l|h[1-6]|blockquote|title|body)\b)[^>]*(?:>|\Z)", re.I)
TAG = re.compile(r"<[a-z/!?][^>]*(?:>|\Z)", re.IGNORECASE)
FIELD = re.compile(rb"^[!-9;-~]+[ \t]*:")


FLAGS = {  # what had to be cut or guessed, for people
    "cut": "were too long and were cut",
    "headers": "had more headers than are read",
    "parts": "had more parts than are read",
    "mime_depth": "were packed into one another too deeply; what is inside was left out",
    "encoding": "had parts packed otherwise than they say; they were read as far as they go",
    "charset": "name no charset that is known; it was guessed",
    "binary": "had parts that are no text; they were left out",
    "defects": "are not well formed; they were read as far as they go",
    "zw": "hid letters without a width; they were taken out",
}


class Mail(NamedTuple):
    text: str
    flags: tuple[str, ...] = ()


def read(raw: bytes) -> Mail:
    """One message as text.

    >>> read(b"Subject: Lunch?\\nContent-Type: text/html\\n\\n<p>At n<!-- -->oon &amp; not later</p>").text
    'Lunch?\\n\\nAt noon & not later'
    """
    flags: dict[str, None] = {}
    if len(raw) > MOST_IN_A_MAIL:
        raw = raw[:MOST_IN_A_MAIL]
        flags["cut"] = None
    parsed = message_from_bytes(_cut_headers(raw, flags), policy=policy.compat32)
    head = [_decoded(str(value)[:VALUE], flags) for name in SHOWN for value in parsed.get_all(name, [])[:10]]
    body = [text for part in _leaves(parsed, flags) if (text := _text(part, flags).strip())]
    if parsed.defects:
        flags["defects"] = None
    whole = _clean("\n".join(filter(None, head)) + "\n\n" + "\n".join(body), flags)
    return Mail(whole.strip(), tuple(flags))


def _cut_headers(raw: bytes, flags: dict[str, None]) -> bytes:
    """The message with no more headers than an honest one has. Without a single one it is all body."""
    if not FIELD.match(raw) and not raw.startswith((b"From ", b">From ")):
        return b"\n" + raw
    end = min((at for at in (raw.find(b"\n\n"), raw.find(b"\r\n\r\n")) if at >= 0), default=len(raw))
    if end <= HEADER_BYTES and raw.count(b"\n", 0, end) <= HEADERS:
        return raw
    flags["headers"] = None
    kept = b"\n".join(raw[: min(end, HEADER_BYTES)].split(b"\n")[:HEADERS])
    return kept + b"\n\n" + raw[end:].lstrip(b"\r\n")


def _leaves(parsed: message.Message, flags: dict[str, None]) -> Iterator[message.Message]:
    """The parts that hold something, in order, to a depth."""
    stack, seen = [(parsed, 0)], 0
    while stack:
        part, depth = stack.pop()
        seen += 1
        if seen > PARTS:
            flags["parts"] = None
            return
        inside = part.get_payload() if part.is_multipart() else None
        if not isinstance(inside, list):
            yield part
        elif depth >= DEPTH:
            flags["mime_depth"] = None
        else:
            stack.extend((p, depth + 1) for p in reversed(inside) if isinstance(p, message.Message))


def _text(part: message.Message, flags: dict[str, None]) -> str:
    kind = part.get_content_type()
    if not kind.startswith("text/"):
        return str(part.get_filename() or "")[:VALUE].encode("ascii", "replace").decode()
    try:
        raw = part.get_payload(decode=True)
    except (ValueError, LookupError, AssertionError):
        raw = None
    if not isinstance(raw, bytes):
        flags["encoding"] = None
        return ""
    if part.defects:
        flags["encoding"] = None
    text = _in_charset(raw, part.get_content_charset(), flags)
    if "\0" in text:
        flags["binary"] = None
        text = text.replace("\0", " ")
    return stripped(text) if kind == "text/html" else text


def _in_charset(raw: bytes, charset: str | None, flags: dict[str, None]) -> str:
    try:
        return raw.decode(charset or "utf-8")
    except (LookupError, ValueError):  # no such charset, or not in it
        flags["charset"] = None
        return raw.decode("latin-1")


def _decoded(value: str, flags: dict[str, None]) -> str:
    """A header with its encoded words spelt out."""
    plain = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        parts = header.decode_header(plain)
    except (errors.HeaderParseError, ValueError):
        return plain
    words = [part if isinstance(part, str) else _in_charset(part, charset, flags) for part, charset in parts]
    return " ".join("".join(words).split())


def stripped(markup: str) -> str:
    """What a person reads of HTML: a comment inside of a word does not part it, a paragraph does.

    >>> stripped("Dear <b>f</b>riend,<br>c<!-- x -->lick &lt;here&gt;<script>alert(1)</script>")
    'Dear friend, click <here>'
    """
    return html.unescape(TAG.sub("", BREAKS.sub(" ", UNSEEN.sub("", markup))))


def _clean(text: str, flags: dict[str, None]) -> str:
    """Letters as they look, without what cannot be seen; that there was such is a word of its own."""
    valid = text.encode("utf-8", "replace").decode()
    visible = valid.translate(ZERO_WIDTH)
    if len(visible) < len(valid):
        flags["zw"] = None
    return unicodedata.normalize("NFKC", visible)


def messages(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The messages of an mbox: each begins with a line ``From `` after an empty line, and ``>From`` loses its sign."""
    lines: list[bytes] = []
    size, blank = 0, True
    for line in _lines(blocks):
        if blank and line.startswith(b"From ") and lines:
            yield b"".join(lines[1:])
            lines, size = [], 0
        blank = not line.strip()
        if size <= MOST_IN_A_MAIL:
            lines.append(re.sub(rb"^>(>*From )", rb"\1", line))
            size += len(line)
    if lines:
        yield b"".join(lines[1:])


def _lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        lines = (rest + block).splitlines(keepends=True) if b"\r\n" not in block else _split(rest + block)
        rest = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
        yield from lines
        if len(rest) > MOST_IN_A_MAIL:
            yield rest
            rest = b""
    if rest:
        yield rest


def _split(data: bytes) -> list[bytes]:
    return data.replace(b"\r\n", b"\n").splitlines(keepends=True)
