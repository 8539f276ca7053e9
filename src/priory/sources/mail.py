"""Mail: raw RFC 822 messages, mboxes and maildirs as rows of text.

A message becomes one text: its subject and addresses, then what a person would read. Everything is limited, so that
no message takes much time or memory; ``flags`` say what had to be cut or guessed.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from email import errors, header, message, message_from_bytes, policy
from typing import NamedTuple

MAX_MIME_DEPTH, MAX_MIME_PARTS, MAX_HEADERS, MAX_HEADER_BYTES, MAX_HEADER_VALUE_LENGTH = 30, 1000, 1000, 256 << 10, 4096
HEADERS_TO_READ = ("Subject", "From", "Reply-To", "To", "Cc")
MAX_MAIL_BYTES = 25 << 20

ZERO_WIDTH_CHARACTERS = dict.fromkeys(
    [*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2065), 0xFEFF, 0xAD]
)
HIDDEN_HTML_PATTERN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|head)\b.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL
)
HTML_BREAK_PATTERN = re.compile(
    r"<(?:/?(?:p|div|br|hr|t[rdh]|table|li|[uo]l|h[1-6]|blockquote|title|body)\b)[^>]*(?:>|\Z)", re.I
)
HTML_TAG_PATTERN = re.compile(r"<[a-z/!?][^>]*(?:>|\Z)", re.IGNORECASE)
MAIL_FIELD_PATTERN = re.compile(rb"^[!-9;-~]+[ \t]*:")


MAIL_FLAG_MESSAGES = {  # "3 of the messages ..."
    "cut": "were too long; the rest was ignored",
    "headers": "had too many headers; the rest was ignored",
    "parts": "had too many parts; the rest was ignored",
    "mime_depth": "had parts nested too deeply; the innermost were ignored",
    "encoding": "had parts that do not match their transfer encoding; they were decoded as far as possible",
    "charset": "had an unknown or wrong character set; Latin-1 was assumed",
    "binary": "contained NUL characters; they were replaced by spaces",
    "defects": "did not follow the mail format; they were read as far as possible",
    "zw": "contained invisible characters of zero width; they were removed",
}


class MailText(NamedTuple):
    """A message as text, and the flags that say what had to be cut or guessed."""

    text: str
    flags: tuple[str, ...] = ()


def read_mail(raw: bytes) -> MailText:
    """One message as text.

    >>> read_mail(b"Subject: Lunch?\\nContent-Type: text/html\\n\\n<p>At n<!-- -->oon &amp; not later</p>").text
    'Lunch?\\n\\nAt noon & not later'
    """
    flags: dict[str, None] = {}
    if len(raw) > MAX_MAIL_BYTES:
        raw = raw[:MAX_MAIL_BYTES]
        flags["cut"] = None
    parsed = message_from_bytes(_cut_headers(raw, flags), policy=policy.compat32)
    head = [
        _decode_header(str(value)[:MAX_HEADER_VALUE_LENGTH], flags)
        for name in HEADERS_TO_READ
        for value in parsed.get_all(name, [])[:10]
    ]
    body = [text for part in _find_leaf_parts(parsed, flags) if (text := _read_part_text(part, flags).strip())]
    if parsed.defects:
        flags["defects"] = None
    whole = _normalize_text("\n".join(filter(None, head)) + "\n\n" + "\n".join(body), flags)
    return MailText(whole.strip(), tuple(flags))


def _cut_headers(raw: bytes, flags: dict[str, None]) -> bytes:
    """The message with a limited number of headers; a message without any is all body."""
    if not MAIL_FIELD_PATTERN.match(raw) and not raw.startswith((b"From ", b">From ")):
        return b"\n" + raw
    end = min((at for at in (raw.find(b"\n\n"), raw.find(b"\r\n\r\n")) if at >= 0), default=len(raw))
    if end <= MAX_HEADER_BYTES and raw.count(b"\n", 0, end) <= MAX_HEADERS:
        return raw
    flags["headers"] = None
    kept = b"\n".join(raw[: min(end, MAX_HEADER_BYTES)].split(b"\n")[:MAX_HEADERS])
    return kept + b"\n\n" + raw[end:].lstrip(b"\r\n")


def _find_leaf_parts(parsed: message.Message, flags: dict[str, None]) -> Iterator[message.Message]:
    """The parts without parts of their own, in order, up to a maximal depth."""
    stack, seen = [(parsed, 0)], 0
    while stack:
        part, depth = stack.pop()
        seen += 1
        if seen > MAX_MIME_PARTS:
            flags["parts"] = None
            return
        inside = part.get_payload() if part.is_multipart() else None
        if not isinstance(inside, list):
            yield part
        elif depth >= MAX_MIME_DEPTH:
            flags["mime_depth"] = None
        else:
            stack.extend((p, depth + 1) for p in reversed(inside) if isinstance(p, message.Message))


def _read_part_text(part: message.Message, flags: dict[str, None]) -> str:
    kind = part.get_content_type()
    if not kind.startswith("text/"):
        return str(part.get_filename() or "")[:MAX_HEADER_VALUE_LENGTH].encode("ascii", "replace").decode()
    try:
        raw = part.get_payload(decode=True)
    except (ValueError, LookupError, AssertionError):
        raw = None
    if not isinstance(raw, bytes):
        flags["encoding"] = None
        return ""
    if part.defects:
        flags["encoding"] = None
    text = _decode_charset(raw, part.get_content_charset(), flags)
    if "\0" in text:
        flags["binary"] = None
        text = text.replace("\0", " ")
    return strip_html(text) if kind == "text/html" else text


def _decode_charset(raw: bytes, charset: str | None, flags: dict[str, None]) -> str:
    try:
        return raw.decode(charset or "utf-8")
    except (LookupError, ValueError):  # an unknown charset, or bytes that are not in it
        flags["charset"] = None
        return raw.decode("latin-1")


def _decode_header(value: str, flags: dict[str, None]) -> str:
    """A header with its encoded words decoded."""
    plain = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        parts = header.decode_header(plain)
    except (errors.HeaderParseError, ValueError):
        return plain
    words = [part if isinstance(part, str) else _decode_charset(part, charset, flags) for part, charset in parts]
    return " ".join("".join(words).split())


def strip_html(markup: str) -> str:
    """The text of HTML as a person reads it: a comment inside a word does not split it, a paragraph does.

    >>> strip_html("Dear <b>f</b>riend,<br>c<!-- x -->lick &lt;here&gt;<script>alert(1)</script>")
    'Dear friend, click <here>'
    """
    return html.unescape(HTML_TAG_PATTERN.sub("", HTML_BREAK_PATTERN.sub(" ", HIDDEN_HTML_PATTERN.sub("", markup))))


def _normalize_text(text: str, flags: dict[str, None]) -> str:
    """The text with letters as they look (NFKC) and without invisible characters, which are flagged."""
    valid = text.encode("utf-8", "replace").decode()
    visible = valid.translate(ZERO_WIDTH_CHARACTERS)
    if len(visible) < len(valid):
        flags["zw"] = None
    return unicodedata.normalize("NFKC", visible)


def split_mbox(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The messages of an mbox: each begins with a line ``From `` after an empty line; ``>From`` becomes ``From``."""
    lines: list[bytes] = []
    size, blank = 0, True
    for line in _split_lines(blocks):
        if blank and line.startswith(b"From ") and lines:
            yield b"".join(lines[1:])
            lines, size = [], 0
        blank = not line.strip()
        if size <= MAX_MAIL_BYTES:
            lines.append(re.sub(rb"^>(>*From )", rb"\1", line))
            size += len(line)
    if lines:
        yield b"".join(lines[1:])


def _split_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        lines = (rest + block).splitlines(keepends=True) if b"\r\n" not in block else _split_crlf_lines(rest + block)
        rest = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
        yield from lines
        if len(rest) > MAX_MAIL_BYTES:
            yield rest
            rest = b""
    if rest:
        yield rest


def _split_crlf_lines(data: bytes) -> list[bytes]:
    return data.replace(b"\r\n", b"\n").splitlines(keepends=True)
