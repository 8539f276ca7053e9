"""Convert mail to text: subject and addresses, then the visible text of its parts.

Every step has a limit, so that no message takes much time or memory: 1 MB of any mail takes less than a second.
``flags`` name what was cut or guessed.
"""

from __future__ import annotations

import binascii
import html
import re
import unicodedata
from encodings.aliases import aliases
from typing import NamedTuple

from priory.sources.mail_structure import (
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

HEADERS_TO_READ = (b"subject", b"from", b"reply-to", b"to", b"cc")
MAX_VALUES_PER_HEADER = 10
MAX_COMBINING_MARKS = 30  # in a row, as in the stream-safe text format of Unicode; sorting n of them takes n * n steps

# Codecs that take time in proportion to their input; punycode and idna, for example, do not.
SAFE_CODECS = frozenset(
    """
    ascii utf_8 utf_8_sig utf_7 utf_16 utf_16_be utf_16_le utf_32 utf_32_be utf_32_le
    latin_1 iso8859_2 iso8859_3 iso8859_4 iso8859_5 iso8859_6 iso8859_7 iso8859_8 iso8859_9 iso8859_10 iso8859_11
    iso8859_13 iso8859_14 iso8859_15 iso8859_16 cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258
    cp437 cp720 cp737 cp775 cp850 cp852 cp855 cp857 cp858 cp860 cp861 cp862 cp863 cp864 cp865 cp866 cp869 cp874
    koi8_r koi8_t koi8_u kz1048 ptcp154 tis_620 mac_roman mac_cyrillic mac_greek mac_latin2 mac_turkish
    big5 big5hkscs cp950 gb2312 gbk gb18030 hz cp932 shift_jis shift_jisx0213 shift_jis_2004 euc_jp euc_jisx0213
    euc_jis_2004 iso2022_jp iso2022_jp_1 iso2022_jp_2 iso2022_jp_2004 iso2022_jp_3 iso2022_jp_ext cp949 euc_kr johab
    iso2022_kr
    """.split()  # noqa: SIM905
)
BYTES_THAT_ARE_NOT_UTF8 = {0xDC00 + byte: byte for byte in range(0x80, 0x100)}  # Python's escape: the Latin-1 letter
INVISIBLE_PATTERN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\u00ad\u061c]+")
MARKS_PATTERN = re.compile("[^\\w\\s\\x00-\u02ff]{31,}")  # combining marks, and what else is neither letter nor digit
PIECE_PATTERN = re.compile(r".{65536}\S{0,1024}|.+", re.DOTALL)  # of a long text; ends at white space if it can

ENCODED_WORD_PATTERN = re.compile(r"=\?([^?\s]{1,75})\?([bq])\?([^?\n]*)\?=", re.IGNORECASE)
BASE64_JUNK = bytes(set(range(256)) - set(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"))
BAD_QUOTED_PRINTABLE_PATTERN = re.compile(rb"=(?![0-9A-Fa-f]{2}|\n|\Z)")
CHARSET_SEPARATOR_PATTERN = re.compile("[^a-z0-9]+")
UNENCODED = ("", "7bit", "8bit", "binary")

HIDDEN_HTML_PATTERN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(script|style|head)\b.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL
)
HTML_BREAK_PATTERN = re.compile(
    r"<(?:/?(?:p|div|br|hr|t[rdh]|table|li|[uo]l|h[1-6]|blockquote|title|body)\b)[^>]*(?:>|\Z)", re.I
)
HTML_TAG_PATTERN = re.compile(r"<[a-z/!?][^>]*(?:>|\Z)", re.IGNORECASE)
LONG_NUMBER_PATTERN = re.compile(r"&#(?:[0-9]{13,}|x[0-9a-f]{13,});?", re.IGNORECASE)  # of no character


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


def read_mail(raw: bytes) -> MailText:
    """Convert a message to text.

    >>> read_mail(b"Subject: Lunch?\\nContent-Type: text/html\\n\\n<p>At n<!-- -->oon &amp; not later</p>").text
    'Lunch?\\n\\nAt noon & not later'
    """
    if not raw or raw.isspace():
        return MailText("")
    flags: Flags = {}
    if len(raw) > MAX_MAIL_BYTES:
        raw = raw[:MAX_MAIL_BYTES]
        flags["cut"] = None
    if b"\r" in raw:
        raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    start = raw.find(b"\n") + 1 if raw.startswith((b"From ", b">From ")) else 0
    headers, body_start = read_headers(raw, start, flags)
    head = _read_head(headers, flags) if headers else ""
    body = _read_body(raw, headers, body_start, flags).strip()
    text = f"{head}\n\n{body}".strip() if head else body
    return MailText(text if text.isascii() else _normalize_text(text, flags).strip(), tuple(flags))


def _read_head(headers: Headers, flags: Flags) -> str:
    """The subject and the addresses, one in each line."""
    lines = [
        " ".join(_decode_words(_decode_charset(cut_header(value, flags), "", flags), flags).split())
        for name in HEADERS_TO_READ
        for value in headers.get(name, ())[:MAX_VALUES_PER_HEADER]
    ]
    return "\n".join(filter(None, lines))


def _read_body(raw: bytes, headers: Headers, start: int, flags: Flags) -> str:
    """The text of all parts."""
    if b"content-type" not in headers and b"content-transfer-encoding" not in headers:
        return _decode_charset(raw[start:], "", flags)
    texts = (_read_part_text(part, flags).strip() for part in PartCutter(raw, flags).cut(headers, start))
    return "\n".join(filter(None, texts))


def _read_part_text(part: MailPart, flags: Flags) -> str:
    """The text of a part; of an attachment, its name."""
    if not part.content_type.startswith(("text/", "multipart/")):
        return _read_file_name(part.headers, flags)
    encoding = read_header_text(part.headers, b"content-transfer-encoding", flags).strip().lower()
    charset, _ = read_parameter(read_header_text(part.headers, b"content-type", flags), "charset")
    text = _decode_charset(_decode_transfer_encoding(part.body, encoding, flags), charset, flags)
    return strip_html(text) if part.content_type == "text/html" else text


def _read_file_name(headers: Headers, flags: Flags) -> str:
    for header, parameter in ((b"content-disposition", "filename"), (b"content-type", "name")):
        name, charset = read_parameter(read_header_text(headers, header, flags), parameter)
        if name:
            return _decode_words(_decode_charset(name.encode("latin-1"), charset, flags), flags)
    return ""


def _decode_transfer_encoding(body: bytes, encoding: str, flags: Flags) -> bytes:
    if encoding == "base64":
        return _decode_base64(body, flags)
    if encoding == "quoted-printable":
        if BAD_QUOTED_PRINTABLE_PATTERN.search(body):
            _flag_bad_encoding(flags)
        return binascii.a2b_qp(body)
    if encoding not in UNENCODED:
        _flag_bad_encoding(flags)
    return body


def _decode_base64(encoded: bytes, flags: Flags) -> bytes:
    """The bytes up to the padding; characters that do not belong to the alphabet are ignored, and flagged."""
    compact = encoded.translate(None, b" \t\n")
    digits = compact.partition(b"=")[0].translate(None, BASE64_JUNK)
    whole = digits + b"=" * (-len(digits) % 4)
    if compact != whole or len(digits) % 4 == 1:
        _flag_bad_encoding(flags)
    return binascii.a2b_base64(whole if len(digits) % 4 != 1 else digits[:-1])


def _flag_bad_encoding(flags: Flags) -> None:
    flags["encoding"] = None
    flags["defects"] = None


def _decode_charset(raw: bytes, charset: str, flags: Flags) -> str:
    """Decode text, by default as UTF-8; invalid bytes, and unknown charsets, are read as Latin-1.

    Only allowed names are looked up: searching Python's codecs for an unknown name is slow.
    """
    codec = _find_codec(charset) if charset else "utf_8"
    try:
        text = raw.decode(codec if codec in SAFE_CODECS else "ascii")
    except ValueError:
        flags["charset"] = None
        text = _decode_damaged_utf8(raw) if codec == "utf_8" else raw.decode("latin-1")
    if codec not in SAFE_CODECS:
        flags["charset"] = None
    if "\0" in text:
        flags["binary"] = None
        text = text.replace("\0", " ")
    return text


def _decode_damaged_utf8(raw: bytes) -> str:
    """Decode damaged UTF-8: if most non-ASCII bytes are valid, only the others become Latin-1, else all do."""
    escaped = raw.decode("utf-8", "surrogateescape")
    wrong = len(raw) - len(escaped.encode("utf-8", "ignore"))
    is_mostly_right = len(raw) - len(escaped) > wrong  # a character that is right has one byte or more after its first
    return escaped.translate(BYTES_THAT_ARE_NOT_UTF8) if is_mostly_right else raw.decode("latin-1")


def _find_codec(charset: str) -> str:
    name = CHARSET_SEPARATOR_PATTERN.sub("_", charset.lower())
    return aliases.get(name, name)


def _decode_words(value: str, flags: Flags) -> str:
    """Decode the encoded words of a header (RFC 2047); blanks between two of them are dropped."""
    if "=?" not in value:
        return value
    runs: list[tuple[str | None, bytes]] = []  # a charset and bytes in it; None is text that was not encoded
    end = 0
    for word in ENCODED_WORD_PATTERN.finditer(value):
        between, charset = value[end : word.start()], word[1].partition("*")[0].lower()
        if between.strip() or not end:
            runs.append((None, between.encode()))
        encoded = word[3].encode()
        data = _decode_base64(encoded, flags) if word[2] in "bB" else binascii.a2b_qp(encoded, header=True)
        if runs[-1][0] == charset:  # a character may begin in one word and end in the next
            data = runs.pop()[1] + data
        runs.append((charset, data))
        end = word.end()
    runs.append((None, value[end:].encode()))
    return "".join(_decode_charset(data, charset or "", flags) for charset, data in runs)


def strip_html(markup: str) -> str:
    """Strip HTML to its visible text: a comment inside a word does not split it, a paragraph does.

    >>> strip_html("Dear <b>f</b>riend,<br>c<!-- x -->lick &lt;here&gt;<script>alert(1)</script>")
    'Dear friend, click <here>'
    """
    text = HTML_TAG_PATTERN.sub("", HTML_BREAK_PATTERN.sub(" ", HIDDEN_HTML_PATTERN.sub("", markup)))
    return html.unescape(LONG_NUMBER_PATTERN.sub("\ufffd", text))


def _normalize_text(text: str, flags: Flags) -> str:
    """Normalise letters to NFKC, and remove and flag invisible characters."""
    valid = text.encode("utf-8", "replace").decode()
    visible = INVISIBLE_PATTERN.sub("", valid)
    if len(visible) < len(valid):
        flags["zw"] = None
    # Two marks of Katakana count as letters in their narrow form; NFKC would replace them anyway.
    marked = visible.replace("\uff9e", "\u3099").replace("\uff9f", "\u309a")
    limited = MARKS_PATTERN.sub(_limit_marks, marked)
    if len(limited) < len(marked):
        flags["marks"] = None
    pieces, size = [], 0
    for piece in PIECE_PATTERN.findall(limited):  # a letter can become eighteen
        pieces.append(unicodedata.normalize("NFKC", piece))
        size += len(pieces[-1])
        if size > MAX_MAIL_BYTES:
            flags["cut"] = None
            break
    return "".join(pieces)[:MAX_MAIL_BYTES]


def _limit_marks(run: re.Match[str]) -> str:
    """Keep at most 30 combining marks in a row; a match contains whole runs of them."""
    kept, count = [], 0
    for character in run[0]:
        count = count + 1 if unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) else 0
        if count <= MAX_COMBINING_MARKS:
            kept.append(character)
    return "".join(kept)
