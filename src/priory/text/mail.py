"""Convert mail to text, as filters read it.

The text has the subject, the addresses and the visible text of all parts; then, under a prefix, words that say where
they stood: headers (``from:``, ``xmailer:``), links (``url:``), tags of HTML (``html:``), types and names of
attachments (``part:``, ``file:``), hidden text (``hidden:``), words with capitals (``caps:FREE``, ``capital:Free``),
and what was cut or guessed (``flag:``). A colon stands only inside of such words.

Every step has a limit, so that no message takes much time or memory: 1 MB of any mail takes about a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from priory.errors import DataError
from priory.text.mail_decoding import decode_charset, decode_transfer_encoding, decode_words, normalize_mail
from priory.text.mail_html import MAX_WORD_CHARACTERS, WORD_PATTERN, list_hosts, read_html
from priory.text.mail_structure import (
    MAX_MAIL_BYTES,
    Flags,
    Headers,
    MailPart,
    PartCutter,
    cut_header,
    read_header_text,
    read_headers,
    read_parameter,
)
from priory.text.normal_forms import MAX_COMBINING_MARKS, Document, Reader

MARKS: dict[Reader, str] = {"mail": "[=]\n", "mail_body": "[-]\n"}  # the first line of a message that was read: no word
MARK_LENGTH = 4

HEADERS_TO_READ = (b"subject", b"from", b"reply-to", b"to", b"cc")
# Added after delivery (whether it was read, where it is stored, other filters' verdicts); dates; the envelope; the way
# that the message took; and the headers of mailing lists. The last three are dozens of words in a message that say the
# same: the mailbox or list it came through.
HEADERS_TO_SKIP = frozenset(
    b"""x-priory x-bogosity x-spambayes-classification x-dspam-result status x-status x-keywords x-uid x-uidl x-imap
    x-imapbase x-mozilla-status x-mozilla-status2 x-mozilla-keys x-gmail-labels x-folder content-length lines
    received date delivery-date x-original-date x-originalarrivaltime
    delivered-to return-path sender errors-to mailing-list precedence x-beenthere x-loop x-mailing-list
    x-mailman-version""".split()
)
HEADER_PREFIXES_TO_SKIP = (b"x-spam-", b"x-priory-", b"list-")
MAX_VALUES_PER_HEADER = 10
MAX_PREFIX_CHARACTERS = 30
MAX_PREFIXED_WORDS = 20_000  # of a message
MAX_HIDDEN_WORDS = MAX_CAPITALS = 5_000

MAIL_FLAG_MESSAGES = {  # after "3 messages: "
    "cut": "too long; the rest was ignored",
    "headers": "too many headers, or headers that are too long; the rest was ignored",
    "parts": "too many parts; the rest was ignored",
    "mime_depth": "parts nested too deeply; the innermost were ignored",
    "encoding": "parts that do not match their transfer encoding; they were decoded as far as possible",
    "charset": "an unknown or wrong character set; Latin-1 was assumed",
    "binary": "NUL characters; they were replaced by spaces",
    "defects": "not in the mail format; read as far as possible",
    "marks": f"more than {MAX_COMBINING_MARKS} combining marks in a row; the rest were removed",
    "zw": "invisible characters of zero width; they were removed",
}


class MailText(NamedTuple):
    """A message as text, and flags for what was cut or guessed."""

    text: str
    flags: tuple[str, ...] = ()


def read_mail(raw: bytes, reader: Reader = "mail") -> MailText:
    """Convert a message to text; ``reader="text"`` leaves out prefixed words.

    >>> raw = b"Subject: Lunch?\\nContent-Type: text/html\\n\\n<p>At n<!-- -->oon &amp; not later</p>"
    >>> read_mail(raw, "text").text
    'Lunch?\\n\\nAt noon & not later'
    >>> print(read_mail(raw).text)
    [=]
    Lunch?
    <BLANKLINE>
    At noon & not later
    <BLANKLINE>
    capital:Lunch capital:At subject:Lunch contenttype:text contenttype:html part:text part:html
    """
    flags: Flags = {}
    raw = _prepare_message(raw, flags)
    start = raw.find(b"\n") + 1 if raw.startswith((b"From ", b">From ")) else 0
    headers, body_start = read_headers(raw, start, flags) if raw else ({}, 0)
    parts = [_read_part(part, flags) for part in _cut_parts(raw, headers, body_start, flags)]
    visible = _join_texts(_read_head(headers, reader, flags), "\n".join(p.text for p in parts if p.text))
    text = normalize_mail(visible, flags).strip()
    if reader == "text":
        return MailText(text, tuple(flags))
    words = [*_list_capitals(text), *_list_prefixed_words(headers if reader == "mail" else {}, parts, flags)]
    body = _join_texts(text.replace(":", " "), normalize_mail(" ".join(words), flags))
    return MailText(f"{MARKS[reader]}{body}", tuple(flags))


def read_messages(documents: Sequence[Document], reader: Reader) -> list[Document]:
    """Read raw messages, each ``bytes`` or ``str``, as mail; those that were read already stay as they are.

    >>> read_messages(["Subject: hi\\n\\nthere", "[=]\\nhi\\n\\nsubject:hi"], "mail")
    ['[=]\\nhi\\n\\nthere\\n\\nsubject:hi', '[=]\\nhi\\n\\nsubject:hi']
    """
    return [_read_message(document, reader, number) for number, document in enumerate(documents)]


def _read_message(document: Document, reader: Reader, number: int) -> Document:
    start = document[:MARK_LENGTH] if isinstance(document, str) else document[:MARK_LENGTH].decode("latin-1")
    read_by = next((name for name, mark in MARKS.items() if mark == start), None)
    if read_by == reader:
        return document
    if read_by is not None:
        raise DataError(
            f"document {number} was read by the reader {read_by!r}, and the model reads by {reader!r}; "
            "give the message itself."
        )
    raw = document.encode("utf-8", "surrogatepass") if isinstance(document, str) else document
    return read_mail(raw, reader).text


def _prepare_message(raw: bytes, flags: Flags) -> bytes:
    """The message up to the limit, with line feeds; empty if it is white space."""
    if not raw or raw.isspace():
        return b""
    if len(raw) > MAX_MAIL_BYTES:
        raw = raw[:MAX_MAIL_BYTES]
        flags["cut"] = None
    return raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in raw else raw


def _join_texts(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))


def _decode_values(values: list[bytes], flags: Flags) -> Iterator[str]:
    for value in values[:MAX_VALUES_PER_HEADER]:
        yield " ".join(decode_words(decode_charset(cut_header(value, flags), "", flags), flags).split())


def _read_head(headers: Headers, reader: Reader, flags: Flags) -> str:
    """The subject and the addresses, one in each line."""
    names = HEADERS_TO_READ[:1] if reader == "mail_body" else HEADERS_TO_READ
    return "\n".join(filter(None, (value for n in names for value in _decode_values(headers.get(n, []), flags))))


class PartText(NamedTuple):
    """The text of a part, the text in it that is not shown, and words by prefix."""

    text: str
    hidden: str = ""
    words: tuple[tuple[str, Sequence[str]], ...] = ()


def _cut_parts(raw: bytes, headers: Headers, start: int, flags: Flags) -> Iterable[MailPart]:
    if b"content-type" not in headers and b"content-transfer-encoding" not in headers:
        return [MailPart({}, "text/plain", raw[start:])]
    return PartCutter(raw, flags).cut(headers, start)


def _read_part(part: MailPart, flags: Flags) -> PartText:
    """The text of a part; of an attachment, its name."""
    kind = ("part", WORD_PATTERN.findall(part.content_type)) if part.headers else ("part", [])
    if not part.content_type.startswith(("text/", "multipart/")):
        name = _read_file_name(part.headers, flags).strip()
        return PartText(name, "", (kind, ("file", WORD_PATTERN.findall(name))))
    encoding = read_header_text(part.headers, b"content-transfer-encoding", flags).strip().lower()
    charset, _ = read_parameter(read_header_text(part.headers, b"content-type", flags), "charset")
    text = decode_charset(decode_transfer_encoding(part.body, encoding, flags), charset, flags)
    described = (kind, ("part", WORD_PATTERN.findall(f"{charset} {encoding}")))
    if part.content_type != "text/html":
        return PartText(text.strip(), "", (*described, ("url", list_hosts(text))))
    found = read_html(text)
    words = (*described, ("url", list_hosts(text)), ("html", found.names))
    return PartText(found.visible.strip(), found.hidden, words)


def _read_file_name(headers: Headers, flags: Flags) -> str:
    for header, parameter in ((b"content-disposition", "filename"), (b"content-type", "name")):
        name, charset = read_parameter(read_header_text(headers, header, flags), parameter)
        if name:
            return decode_words(decode_charset(name.encode("latin-1"), charset, flags), flags)
    return ""


def _list_prefixed_words(headers: Headers, parts: list[PartText], flags: Flags) -> list[str]:
    """All words that say where they stood; of the body, each once."""
    found = list(_prefix_header_words(headers, flags))
    body: dict[str, None] = {}
    for part in parts:
        hidden = WORD_PATTERN.findall(normalize_mail(part.hidden, flags))[:MAX_HIDDEN_WORDS]
        for prefix, words in (*part.words, ("hidden", hidden)):
            body.update(dict.fromkeys(f"{prefix}:{word[:MAX_WORD_CHARACTERS]}" for word in words))
    return [*found, *body, *(f"flag:{flag}" for flag in flags)][:MAX_PREFIXED_WORDS]


def _list_capitals(text: str) -> list[str]:
    """Words with capitals, each once: the tokens themselves are in lower case."""
    words = [word for word in dict.fromkeys(WORD_PATTERN.findall(text)) if word != word.lower()][:MAX_CAPITALS]
    return [f"{'caps' if w.isupper() and len(w) > 1 else 'capital'}:{w[:MAX_WORD_CHARACTERS]}" for w in words]


def _prefix_header_words(headers: Headers, flags: Flags) -> Iterator[str]:
    for name, values in headers.items():
        if name in HEADERS_TO_SKIP or name.startswith(HEADER_PREFIXES_TO_SKIP):
            continue
        prefix = "".join(WORD_PATTERN.findall(name.decode("latin-1")))[:MAX_PREFIX_CHARACTERS] or "header"
        for value in _decode_values(values, flags):
            for word in WORD_PATTERN.findall(normalize_mail(value, flags)):
                yield f"{prefix}:{word[:MAX_WORD_CHARACTERS]}"
