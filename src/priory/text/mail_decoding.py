"""Decode mail: transfer encodings, character sets, encoded words of headers, and Unicode's compatibility forms."""

from __future__ import annotations

import binascii
import re
from encodings.aliases import aliases

from priory.text.mail_structure import MAX_MAIL_BYTES, Flags
from priory.text.normal_forms import limit_marks, normalize_text

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
PIECE_PATTERN = re.compile(r".{65536}\S{0,1024}|.+", re.DOTALL)  # of a long text; ends at white space if it can

ENCODED_WORD_PATTERN = re.compile(r"=\?([^?\s]{1,75})\?([bq])\?([^?\n]*)\?=", re.IGNORECASE)
BASE64_JUNK = bytes(set(range(256)) - set(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"))
BAD_QUOTED_PRINTABLE_PATTERN = re.compile(rb"=(?![0-9A-Fa-f]{2}|\n|\Z)")
CHARSET_SEPARATOR_PATTERN = re.compile("[^a-z0-9]+")
UNENCODED = ("", "7bit", "8bit", "binary")


def decode_transfer_encoding(body: bytes, encoding: str, flags: Flags) -> bytes:
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


def decode_charset(raw: bytes, charset: str, flags: Flags) -> str:
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


def decode_words(value: str, flags: Flags) -> str:
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
    return "".join(decode_charset(data, charset or "", flags) for charset, data in runs)


def normalize_mail(text: str, flags: Flags) -> str:
    """Normalise letters to NFKC, and remove and flag invisible characters."""
    if text.isascii():
        return text
    valid = text.encode("utf-8", "replace").decode()
    visible = INVISIBLE_PATTERN.sub("", valid)
    if len(visible) < len(valid):
        flags["zw"] = None
    # Two marks of Katakana count as letters in their narrow form; NFKC would replace them anyway.
    marked = visible.replace("\uff9e", "\u3099").replace("\uff9f", "\u309a")
    limited = limit_marks(marked)
    if len(limited) < len(marked):
        flags["marks"] = None
    pieces, size = [], 0
    for piece in PIECE_PATTERN.findall(limited):  # a letter can become eighteen
        pieces.append(normalize_text(piece, "NFKC"))
        size += len(pieces[-1])
        if size > MAX_MAIL_BYTES:
            flags["cut"] = None
            break
    return "".join(pieces)[:MAX_MAIL_BYTES]
