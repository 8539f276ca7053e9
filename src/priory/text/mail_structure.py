"""Split an mbox into messages, and a message into headers and parts.

Limits are applied before any work is done, and every step takes time linear in the bytes that it reads. Python's
email package is not used: its parser is recursive, and a hostile message of 1 MB can keep it busy for minutes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

MAX_MIME_DEPTH, MAX_MIME_PARTS, MAX_HEADERS, MAX_HEADER_BYTES, MAX_HEADER_VALUE_LENGTH = 30, 1000, 1000, 256 << 10, 4096
MAX_MAIL_BYTES = 25 << 20

FIELD_NAME_PATTERN = re.compile(rb"([!-9;-~]++)[ \t]*+:")
FIELD_END_PATTERN = re.compile(rb"\n(?![ \t])|\Z")  # a line that begins with a blank continues the field
CONTENT_TYPE_PATTERN = re.compile(r"\s*([^\s;/()]+/[^\s;/()]+)")
PARAMETER_PATTERN = re.compile(r';\s*([^\s=;"]+)\s*=\s*("(?:[^"\\]|\\.)*+"?|[^;]*)', re.DOTALL)
DASHED_LINE_PATTERN = re.compile(rb"^--.*", re.MULTILINE)
MBOX_SEPARATOR_PATTERN = re.compile(rb"\n[ \t]{0,80}\r?\nFrom ")  # a blank line, then a line that begins with "From "
MBOX_SEPARATOR_MAX_BYTES = 100
QUOTED_FROM_PATTERN = re.compile(rb"^>(?=>*+From )", re.MULTILINE)

Flags = dict[str, None]  # what had to be cut or guessed, in the order in which it was found
Headers = dict[bytes, list[bytes]]  # the values of each header by its name in lower case, cut a little above the limit


class MailPart(NamedTuple):
    """A part of a message that contains no other parts."""

    headers: Headers
    content_type: str
    body: bytes


class OpenPart(NamedTuple):
    """A part whose beginning was read: ``level`` is its place among the open multiparts, 0 if it is not a multipart."""

    headers: Headers
    content_type: str
    body_start: int
    level: int


class Multipart(NamedTuple):
    """A part that contains parts: the line between them, and how deeply they are nested."""

    delimiter: bytes
    depth: int
    default_type: str  # of parts that do not name their content type


def split_mbox(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The messages of an mbox: each begins with a line ``From `` after an empty line; ``>From`` becomes ``From``."""
    message, rest = bytearray(), b""
    for block in blocks:
        *ended, rest = MBOX_SEPARATOR_PATTERN.split(rest + block)
        for end in ended:
            _append_limited(message, end)
            yield _unquote_message(message)
            message = bytearray()
        _append_limited(message, rest[:-MBOX_SEPARATOR_MAX_BYTES])
        rest = rest[-MBOX_SEPARATOR_MAX_BYTES:]  # may hold the beginning of a separator
    _append_limited(message, rest)
    if message:
        yield _unquote_message(message)


def _append_limited(message: bytearray, piece: bytes) -> None:
    """Add to a message, up to a byte more than the limit, which shows that it was cut."""
    message += piece[: MAX_MAIL_BYTES + 1 - len(message)]


def _unquote_message(message: bytearray) -> bytes:
    """A message of an mbox without its first line, the one that begins with ``From ``."""
    return QUOTED_FROM_PATTERN.sub(b"", message.partition(b"\n")[2])


def read_headers(raw: bytes, start: int, flags: Flags, delimiters: Delimiters | None = None) -> tuple[Headers, int]:
    """The headers that begin at a position, and where the body after them begins.

    The headers end at an empty line, at a line that is not a header, or at a delimiter of an open multipart.
    """
    headers: Headers = {}
    position, count = start, 0
    while field := FIELD_NAME_PATTERN.match(raw, position):
        if delimiters and raw.startswith(b"--", position) and _read_line(raw, position).rstrip() in delimiters:
            return headers, position
        found_end = FIELD_END_PATTERN.search(raw, field.end())
        end = found_end.start() if found_end else len(raw)
        count += 1
        limit = min(end, start + MAX_HEADER_BYTES, field.end() + MAX_HEADER_VALUE_LENGTH + 1)
        if count <= MAX_HEADERS and limit > field.end():
            headers.setdefault(field[1].lower(), []).append(raw[field.end() : limit])
        if count > MAX_HEADERS or end > start + MAX_HEADER_BYTES:
            flags["headers"] = None
        position = end + 1
    if raw.startswith(b"\n", position):
        position += 1
    elif headers and position < len(raw):
        flags["defects"] = None  # no empty line between headers and body
    return headers, position


def _read_line(raw: bytes, start: int) -> bytes:
    end = raw.find(b"\n", start)
    return raw[start:] if end < 0 else raw[start:end]


def read_header_text(headers: Headers, name: bytes, flags: Flags) -> str:
    """The first value of a header, up to the limit, each byte as one character; empty if there is none."""
    values = headers.get(name)
    if values is None:
        return ""
    return cut_header(values[0], flags).decode("latin-1")


def cut_header(value: bytes, flags: Flags) -> bytes:
    """The value of a header in one line, up to the limit; it is flagged if there is more."""
    if len(value) > MAX_HEADER_VALUE_LENGTH:
        flags["headers"] = None
    return value[:MAX_HEADER_VALUE_LENGTH].replace(b"\n", b"")


def read_parameter(header: str, name: str) -> tuple[str, str]:
    """A parameter of a header such as Content-Type, and its charset if that is given (RFC 2231); empty if absent.

    >>> read_parameter('text/plain; charset="UTF-8"; format=flowed', "charset")
    ('UTF-8', '')
    >>> read_parameter("image/png; name*0*=utf-8''na%C3%AF; name*1=ve.png", "name")
    ('naÃ¯ve.png', 'utf-8')
    """
    if ";" not in header:
        return "", ""
    parameters: dict[str, str] = {}
    for parameter in PARAMETER_PATTERN.finditer(header):
        parameters.setdefault(parameter[1].lower(), _unquote_parameter(parameter[2]))
    if name in parameters:
        return parameters[name], ""
    pieces = [_find_piece(parameters, f"{name}{at}") for at in ("", *(f"*{i}" for i in range(len(parameters))))]
    whole = "".join(unquote(piece, "latin-1") if is_encoded else piece for piece, is_encoded in pieces)
    charset, quote, rest = whole.partition("'")
    if quote and any(is_encoded for _, is_encoded in pieces):
        return rest.partition("'")[2], charset
    return whole, ""


def _find_piece(parameters: dict[str, str], name: str) -> tuple[str, bool]:
    """A piece of a continued parameter, and whether it is percent-encoded, as the star at the end of a name says."""
    encoded = parameters.get(f"{name}*")
    return (parameters.get(name, ""), False) if encoded is None else (encoded, True)


def _unquote_parameter(value: str) -> str:
    if not value.startswith('"'):
        return value.strip()
    return re.sub(r"\\(.)", r"\1", value[1:].removesuffix('"'), flags=re.DOTALL)


Delimiters = dict[bytes, tuple[int, bool]]  # line: the level of its multipart, from 1, and whether it is the last one


class PartCutter:
    """Cuts one message into the parts that contain no other parts, in one pass over its lines."""

    def __init__(self, raw: bytes, flags: Flags) -> None:
        self.raw, self.flags = raw, flags
        self.multiparts: list[Multipart] = []
        self.delimiters: Delimiters = {}

    def cut(self, headers: Headers, body_start: int) -> Iterator[MailPart]:
        """The parts in order; what is nested too deeply is left out, and so are parts beyond the limit."""
        part = self._enter(headers, body_start, 0, "text/plain")
        count = 1
        for line in DASHED_LINE_PATTERN.finditer(self.raw, body_start) if self.multiparts else ():
            level, is_last = self.delimiters.get(line[0].rstrip(), (0, False))
            if not level:
                continue
            yield from self._finish(part, line.start() - 1, level)
            multipart = self.multiparts[level - 1]
            self._set_open(self.multiparts[: level - is_last])
            part = None
            if is_last:
                continue
            count += 1
            if count > MAX_MIME_PARTS:
                self.flags["parts"] = None
                return
            inner, start = read_headers(self.raw, line.end() + 1, self.flags, self.delimiters)
            part = self._enter(inner, start, multipart.depth, multipart.default_type)
        if self.multiparts:
            self.flags["defects"] = None  # the last line of a multipart is missing
        yield from self._finish(part, len(self.raw), 0)

    def _enter(self, headers: Headers, body_start: int, depth: int, default_type: str) -> OpenPart | None:
        """Begin a part; None if it contains others and is nested too deeply."""
        content_type, header = self._read_content_type(headers, default_type)
        while content_type.startswith("message/") and content_type != "message/delivery-status" and not _is_over(depth):
            headers, body_start = read_headers(self.raw, body_start, self.flags, self.delimiters)
            content_type, header = self._read_content_type(headers, "text/plain")
            depth += 1
        boundary = read_parameter(header, "boundary")[0] if content_type.startswith("multipart/") else ""
        if _is_over(depth) and (boundary or content_type.startswith("message/")):
            self.flags["mime_depth"] = None
            return None
        if not boundary:
            return OpenPart(headers, content_type, body_start, 0)
        inner_type = "message/rfc822" if content_type == "multipart/digest" else "text/plain"
        delimiter = b"--" + boundary.encode("latin-1", "replace").rstrip()
        self._set_open([*self.multiparts, Multipart(delimiter, depth + 1, inner_type)])
        return OpenPart(headers, content_type, body_start, len(self.multiparts))

    def _read_content_type(self, headers: Headers, default_type: str) -> tuple[str, str]:
        header = read_header_text(headers, b"content-type", self.flags)
        found = CONTENT_TYPE_PATTERN.match(header)
        return (found[1].lower() if found else "text/plain" if header else default_type), header

    def _finish(self, part: OpenPart | None, end: int, level: int) -> Iterator[MailPart]:
        """End a part; a multipart without delimiters is text, and the preamble before the first one is skipped."""
        if part is None or (part.level and part.level == level):
            return
        if part.content_type.startswith("multipart/"):
            self.flags["defects"] = None
        yield MailPart(part.headers, part.content_type, self.raw[part.body_start : max(end, part.body_start)])

    def _set_open(self, multiparts: list[Multipart]) -> None:
        """Set the open multiparts; a delimiter that two of them share belongs to the outer one."""
        self.multiparts = multiparts
        self.delimiters = {}
        for level, multipart in enumerate(multiparts, 1):
            self.delimiters.setdefault(multipart.delimiter, (level, False))
            self.delimiters.setdefault(multipart.delimiter + b"--", (level, True))


def _is_over(depth: int) -> bool:
    return depth >= MAX_MIME_DEPTH
