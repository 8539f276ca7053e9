"""The HTML of mail: visible text, hidden text, addresses (URLs) and the words of tags.

Every step is a regular expression that takes time linear in the markup, and what is taken from it is limited.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

REMOVED_PATTERN = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style|head)\b.*?(?:</\1\s*>|\Z)", re.IGNORECASE | re.DOTALL)
BREAK_PATTERN = re.compile(
    r"<(?:/?(?:p|div|br|hr|t[rdh]|table|li|[uo]l|h[1-6]|blockquote|title|body)\b)[^>]*(?:>|\Z)", re.I
)
TAG_PATTERN = re.compile(r"<[a-z/!?][^>]*(?:>|\Z)", re.IGNORECASE)
LONG_NUMBER_PATTERN = re.compile(r"&#(?:[0-9]{13,}|x[0-9a-f]{13,});?", re.IGNORECASE)  # of no character

HIDING_STYLE = (
    r"display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0(?![.\d])|\shidden(?=[\s>])"
    r"|font-size\s*:\s*(?:0+(?:\.0+)?(?![\d.])|[01](?:\.\d+)?(?:px|pt))"
)
WHITE = r"(?:#?fff(?:fff)?\b|white\b|rgb\(\s*255\s*,\s*255\s*,\s*255\s*\))"
WHITE_TEXT = rf"(?<![\w-])color\s*[:=]\s*[\"']?\s*{WHITE}"
HIDING_PATTERN = re.compile(rf"<([a-z][a-z0-9]*)\b[^<>]*?(?:{HIDING_STYLE})[^<>]*>", re.I)
HIDING_OR_WHITE_PATTERN = re.compile(rf"<([a-z][a-z0-9]*)\b[^<>]*?(?:{HIDING_STYLE}|{WHITE_TEXT})[^<>]*>", re.I)
COLOURED_GROUND_PATTERN = re.compile(
    rf"(?:bgcolor|background(?:-color)?)\s*[:=]\s*[\"']?\s*(?!{WHITE}|transparent|none|inherit|[\"'\s;>])", re.I
)
VOID_ELEMENTS = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "wbr"))
INLINE_ELEMENTS = frozenset(("a", "b", "big", "em", "font", "i", "s", "small", "span", "strong", "sub", "sup", "u"))
MAX_HIDDEN_ELEMENTS = 200

URL_PATTERN = re.compile(r"(?:(?:https?|ftp)://|\b(?=www\.))([^\s\"'<>\\^`{|}]{1,300})", re.IGNORECASE)
TAG_NAME_PATTERN = re.compile(r"<([a-z][a-z0-9]*)", re.IGNORECASE)
COMMON_NAMES = frozenset(  # all that they say is that it is HTML, each of them again
    """
    html head body meta title p br div span table tbody thead tr td th a b i u em strong font img center hr ul ol li
    h1 h2 h3 h4 h5 h6 big small blockquote pre tt style link href src width height border cellpadding cellspacing
    align valign bgcolor color face size class name content http-equiv alt target text vlink alink type value colspan
    rowspan background id lang dir hspace vspace xmlns nowrap
    """.split()  # noqa: SIM905
)
ATTRIBUTE_PATTERN = re.compile(r"\s([a-z][a-z-]*)\s*=", re.IGNORECASE)
WORD_PATTERN = re.compile(r"\w+")
MAX_URLS, MAX_TAG_CHARACTERS = 500, 1 << 18
MAX_WORD_CHARACTERS = 60  # of a prefixed word


class HtmlText(NamedTuple):
    """The text that is shown, the text that is not, and unusual names of tags and attributes."""

    visible: str
    hidden: str
    names: list[str]


def read_html(markup: str) -> HtmlText:
    """Split HTML into visible and hidden text, and list the names in its tags that few messages have.

    >>> read_html("<p>Dear <b>f</b>riend</p><form style='display:none'>lunch</form>")
    HtmlText(visible=' Dear friend  ', hidden='lunch', names=['form'])
    """
    kept = REMOVED_PATTERN.sub("", markup)
    visible, hidden = _split_hidden(kept)
    return HtmlText(strip_html(visible), strip_html(hidden), _list_names(kept[:MAX_TAG_CHARACTERS]))


def _list_names(markup: str) -> list[str]:
    tags = " ".join(dict.fromkeys(TAG_PATTERN.findall(markup)))
    names = dict.fromkeys(name.lower() for name in (*TAG_NAME_PATTERN.findall(tags), *ATTRIBUTE_PATTERN.findall(tags)))
    return [name.replace("-", "_")[:MAX_WORD_CHARACTERS] for name in names if name not in COMMON_NAMES]


def strip_html(markup: str) -> str:
    """Strip HTML to its text: a comment inside a word does not split it, a paragraph does.

    >>> strip_html("Dear <b>f</b>riend,<br>c<!-- x -->lick &lt;here&gt;<script>alert(1)</script>")
    'Dear friend, click <here>'
    """
    text = TAG_PATTERN.sub("", BREAK_PATTERN.sub(" ", REMOVED_PATTERN.sub("", markup)))
    return html.unescape(LONG_NUMBER_PATTERN.sub("\ufffd", text))


def _split_hidden(markup: str) -> tuple[str, str]:
    """The markup outside and inside of elements that are not shown; white text counts if no ground is coloured."""
    visible, hidden, end = [], [], 0
    for name, start, stop in _find_hidden_elements(markup):
        visible += [markup[end:start], "" if name in INLINE_ELEMENTS else " "]
        hidden.append(markup[start:stop])
        end = stop
    return "".join([*visible, markup[end:]]), " ".join(hidden)


def _find_hidden_elements(markup: str) -> Iterator[tuple[str, int, int]]:
    pattern = HIDING_PATTERN if COLOURED_GROUND_PATTERN.search(markup) else HIDING_OR_WHITE_PATTERN
    end = found = 0
    while element := pattern.search(markup, end):
        end = element.end()
        name = element[1].lower()
        if name in VOID_ELEMENTS:
            continue
        found += 1
        end = _find_element_end(markup, name, end) if found <= MAX_HIDDEN_ELEMENTS else len(markup)
        yield name, element.start(), end


def _find_element_end(markup: str, name: str, start: int) -> int:
    """Where the element ends that begins before ``start``: at its end tag, or never."""
    depth = 1
    for tag in re.compile(rf"<(/?){name}\b[^>]*>", re.I).finditer(markup, start):
        depth += -1 if tag[1] or name == "p" else 1  # a paragraph ends where the next begins
        if not depth:
            return tag.end()
    return len(markup)


def list_hosts(text: str) -> list[str]:
    """The hosts of URLs and their last two labels, with a colon for each dot.

    >>> list_hosts("see http://www.example.com/a/free-prize now")
    ['www:example:com', 'example:com']
    """
    hosts: dict[str, None] = {}
    for url in islice(URL_PATTERN.finditer(text), MAX_URLS):
        address = re.split(r"[/?#]", html.unescape(url[1]).lower(), maxsplit=1)[0]
        labels = WORD_PATTERN.findall(address.rpartition("@")[2].partition(":")[0].replace("-", "_"))[:8]
        hosts.update(dict.fromkeys(":".join(part) for part in (labels, labels[-2:]) if part))
    return [host[:MAX_WORD_CHARACTERS] for host in hosts]
