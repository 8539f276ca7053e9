"""Numbers written as text: decimal commas, thousands, currencies, units, per cent, negatives in parentheses.

A format is written as the number 1234.5 in it: ``1.234,5 €`` has a decimal comma, points between thousands, and the
euro sign behind every number. All cells of a column have one format.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy import ndarray as Array

BLANKS = str.maketrans(dict.fromkeys("\u00a0\u2007\u2009\u202f", " ") | {"\u2212": "-", "\u2019": "'"})
SEPARATORS = ((",", "."), (".", ","), (" ", ","), (" ", "."), ("'", "."), ("'", ","), ("", "."), ("", ","))
CELL = re.compile(r"(\()?([+-]?)([^\d.,()+-]*)([+-]?)(\d[\d.,' ]*?)(\s*[^\d\s.,()][^\d.,()]*)?(\))?")
CURRENCY_CODE = re.compile(
    "AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|ILS|INR|JPY|KRW|MXN|NOK|NZD|PLN|SEK|SGD|THB|TRY|USD|ZAR|Fr|Kč|kr|zł"
)
UNIT = re.compile(r"[^\W\d_°µ²³/]*[°µ]?[^\W\d_]{0,8}(?:[²³]|/[^\W\d_]{1,4})?")
PLAIN_FORMAT = "1234.5"  # of Python's numbers
MAX_FORMAT_LENGTH = 40
MAX_CELLS_TRIED = 2000
MIN_NUMBERS, MAX_ODD, MAX_AFFIXES, MAX_ODD_SHARE = 20, 3, 3, 0.1  # of the different cells of a column of numbers


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written."""

    thousands: str  # between groups of three digits; "" for none
    decimal: str
    prefix: str = ""  # before each number: a currency
    suffix: str = ""  # behind each number: a currency, a unit or a per cent sign

    def __str__(self) -> str:
        return f"{self.prefix}1{self.thousands}234{self.decimal}5{self.suffix}"

    @classmethod
    def parse(cls, text: str) -> NumberFormat | None:
        """Read a format that is written as the number 1234.5; None if it is not one.

        >>> NumberFormat.parse("1.234,5 €")
        NumberFormat(thousands='.', decimal=',', prefix='', suffix=' €')
        """
        found = re.fullmatch(r"(\D*)1([,.' ]?)234([.,])5(\D*)", text) if len(text) <= MAX_FORMAT_LENGTH else None
        if found is None or found[2] == found[3] or not _are_affixes(found[1], found[4]):
            return None
        return cls(found[2], found[3], found[1], found[4])

    @property
    def is_plain(self) -> bool:
        """Whether it is the format of Python's numbers."""
        return str(self) == PLAIN_FORMAT

    def read(self, cells: Sequence[str]) -> Array:
        """Parse cells of this format, (cells,); NaN where a cell is written otherwise."""
        body = _compile_body(self.thousands, self.decimal)
        return np.array([self._read_cell(cell, body) for cell in cells], dtype=float)

    def _read_cell(self, cell: str, body: re.Pattern[str]) -> float:
        parts = _split_cell(cell)
        if parts is None or not body.fullmatch(parts.digits):
            return np.nan
        # a number may lack the currency or the unit, but it may not have another one
        if parts.prefix not in ("", self.prefix) or parts.suffix.strip() not in ("", self.suffix.strip()):
            return np.nan
        digits = parts.digits.replace(self.thousands, "") if self.thousands else parts.digits
        return parts.sign * float(digits.replace(self.decimal, "."))


@dataclass(frozen=True)
class CellParts:
    """A cell that may be a number."""

    sign: float
    prefix: str
    digits: str  # with separators
    suffix: str


def _split_cell(cell: str) -> CellParts | None:
    found = CELL.fullmatch(cell.translate(BLANKS).strip())
    if found is None or bool(found[1]) != bool(found[7]) or (found[2] and found[4]):
        return None
    sign = -1.0 if found[1] or "-" in (found[2], found[4]) else 1.0
    return CellParts(sign, found[3].strip(), found[5].strip(), found[6] or "")


@lru_cache(maxsize=len(SEPARATORS))
def _compile_body(thousands: str, decimal: str) -> re.Pattern[str]:
    """The digits of a number: groups of three, or no groups at all; a number does not begin with a needless zero."""
    grouped = rf"[1-9]\d{{0,2}}(?:{re.escape(thousands)}\d{{3}})+|" if thousands else ""
    return re.compile(rf"(?:{grouped}0|[1-9]\d*)(?:{re.escape(decimal)}\d*)?", re.ASCII)


def _has_cents(digits: str, decimal: str) -> bool:
    """Whether an amount of money has at most two decimals: $1,000 is a thousand."""
    return len(digits.partition(decimal)[2]) <= 2


def _are_affixes(prefix: str, suffix: str) -> bool:
    """Whether these are a currency before, and a currency, a unit or a sign such as % behind a number."""
    before, behind = prefix.strip(), suffix.strip()
    is_unit = behind in ("", "%", "‰") or UNIT.fullmatch(behind) is not None
    return (not before or _is_currency(before)) and (is_unit or _is_currency(behind)) and not (before and behind)


def _is_currency(affix: str) -> bool:
    return CURRENCY_CODE.fullmatch(affix) is not None or all(unicodedata.category(sign) == "Sc" for sign in affix)


def find_number_formats(cells: Iterable[str], decimal: str | None = None, thousands: str | None = None) -> list[str]:
    """Find the formats in which all cells are numbers; several are left if cells can be read in several ways.

    ``decimal`` and ``thousands`` are known separators. Cells that only differ in separators that do not occur are read
    alike, so that one format is enough.

    >>> find_number_formats(["12,5", "1.234,5"]), find_number_formats(["45%"]), find_number_formats(["red"])
    (['1.234,5'], ['1234.5%'], [])
    >>> find_number_formats(["1,234", "5,678"]), find_number_formats(["1,234", "5,678"], decimal=",")
    (['1,234.5', '1234,5'], ['1234,5'])
    """
    parts: list[CellParts] = []
    for cell in cells:
        split = _split_cell(cell)
        if split is None or (parts and not _have_same_affixes(parts[0], split)):
            return []
        parts.append(split)
    if not parts or not _are_affixes(parts[0].prefix, parts[0].suffix):
        return []
    first, digits = parts[0], [part.digits for part in parts]
    is_money = _is_currency(first.prefix or first.suffix.strip() or "?")
    # Of formats that read every cell alike, the one with the fewest separators stands for all.
    formats: dict[bytes, NumberFormat] = {}
    for group, point in sorted(_list_separators(digits, decimal, thousands), key=lambda pair: len(pair[0])):
        form = NumberFormat(group, point)
        if not is_money or all(_has_cents(number, point) for number in digits):
            formats.setdefault(form.read(digits).tobytes(), form)
    chosen = sorted(formats.values(), key=lambda form: SEPARATORS.index((form.thousands, form.decimal)))
    return [str(NumberFormat(form.thousands, form.decimal, first.prefix, first.suffix)) for form in chosen]


def find_common_format(cells: Sequence[str]) -> str | None:
    """Find the format of most of the different cells of a column of numbers in which some are written otherwise.

    More than 20 of them are numbers with at most three units or currencies, and the others are at most three words, or
    a tenth; None if a column is not like that.
    """
    cells = cells[:: 1 + len(cells) // MAX_CELLS_TRIED]
    parts = [
        part
        for cell in cells
        if len(cell) <= MAX_FORMAT_LENGTH
        and (part := _split_cell(cell)) is not None
        and _are_affixes(part.prefix, part.suffix)
    ]
    affixes = Counter((part.prefix, part.suffix) for part in parts)
    n_odd = len(cells) - len(parts)
    if len(parts) <= MIN_NUMBERS or len(affixes) > MAX_AFFIXES or n_odd > max(MAX_ODD, MAX_ODD_SHARE * len(cells)):
        return None
    n_read = {
        pair: sum(_compile_body(*pair).fullmatch(part.digits) is not None for part in parts) for pair in SEPARATORS
    }
    # of separators that read equally many, the fewest
    thousands, decimal = max(sorted(SEPARATORS, key=lambda pair: len(pair[0])), key=n_read.__getitem__)
    common = NumberFormat(thousands, decimal, *affixes.most_common(1)[0][0])
    return str(common) if 3 * n_read[thousands, decimal] > len(cells) else None


def find_odd_cell(cells: Sequence[str]) -> str | None:
    """The first of the different cells that keeps a column of numbers from being one; None if there is none.

    >>> find_odd_cell([f"{i}.5" for i in range(30)] + ["unknown"]), find_odd_cell(["A1", "B2"])
    ('unknown', None)
    """
    common = find_common_format(cells)
    form = None if common is None else NumberFormat.parse(common)
    return None if form is None else next((cell for cell in cells if np.isnan(form.read([cell])[0])), None)


def _have_same_affixes(first: CellParts, other: CellParts) -> bool:
    return (first.prefix, first.suffix.strip()) == (other.prefix, other.suffix.strip())


def _list_separators(digits: Sequence[str], decimal: str | None, thousands: str | None) -> Iterator[tuple[str, str]]:
    """The separators of thousands and of decimals with which all digits are numbers."""
    for group, point in SEPARATORS:
        if decimal in (None, point) and thousands in (None, group):
            body = _compile_body(group, point)
            if all(body.fullmatch(number) for number in digits):
                yield group, point
