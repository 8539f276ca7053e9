"""64-bit row hashes: the sum of the hashes of the cells, so that a column can be left out by subtraction.

Cells are compared *exactly*, or *loosely*: ignoring case, white space and rounding, and the punctuation of texts.
Columns are matched by name, so their order does not matter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from priory.core.content_hash import scramble_bits
from priory.core.typing import Array
from priory.leakage.audit_tables import AuditColumn, AuditData

SIGNIFICANT_DIGITS = 6  # of a typical number; further digits count as rounding
MAX_NUMBERS_SAMPLED = 10_000


@dataclass(frozen=True)
class RowHashes:
    """The hash of every row, (rows,), training rows first, and of the cells of every column, (rows,) each."""

    rows: Array
    columns: tuple[Array, ...]

    @classmethod
    def of(cls, data: AuditData, loose: bool) -> RowHashes:
        parts = [_hash_column(column, data.n_train, loose) for column in data.columns]
        parts += [_hash_texts(map(keep_alphanumerics, texts) if loose else texts) for texts in data.texts.values()]
        salts = np.arange(1, len(parts) + 1, dtype=np.uint64) * GOLDEN_RATIO_64  # equal cells of two columns differ
        columns = tuple(scramble_bits(part + salt) for salt, part in zip(salts, parts, strict=True))
        return cls(np.asarray(sum(columns)), columns)


GOLDEN_RATIO_64 = np.uint64(0x9E3779B97F4A7C15)
UINT64_MASK = (1 << 64) - 1
NON_ALPHANUMERIC_ASCII = bytes(code for code in range(128) if not chr(code).isalnum())


def _hash_column(column: AuditColumn, n_train: int, loose: bool) -> Array:
    if column.numbers is not None:
        numbers = np.where(column.is_missing, np.nan, column.numbers) + 0.0  # one NaN pattern, and no negative zero
        return (np.round(numbers, count_shared_decimals(numbers, n_train)) + 0.0 if loose else numbers).view(np.uint64)
    codes, values = column.codes_and_values
    readings = (str(value) for value in values)
    return np.append(_hash_texts(map(normalize_label, readings) if loose else readings), np.uint64(0))[codes]


def _hash_texts(texts: Iterable[str]) -> Array:
    return np.array([hash(text) & UINT64_MASK for text in texts], dtype=np.uint64)


def normalize_label(label: str) -> str:
    """Normalise case and white space of a label.

    >>> normalize_label("  Hello \\n World")
    'hello world'
    """
    return " ".join(label.casefold().split())


def keep_alphanumerics(text: str) -> str:
    """Return the letters and digits of a text in lower case, without punctuation and white space.

    >>> keep_alphanumerics("It 's -- ``fine'' !") == keep_alphanumerics("It's fine")
    True
    """
    if text.isascii():
        return text.encode().lower().translate(None, NON_ALPHANUMERIC_ASCII).decode() or text
    return re.sub(r"[\W_]+", "", text.casefold()) or text


def count_shared_decimals(numbers: Array, n_train: int) -> int:
    """Return the number of decimals of the coarser table, at most `SIGNIFICANT_DIGITS` significant digits.

    >>> count_shared_decimals(np.array([3.14159, 2.71828, 3.14, 2.72]), 2)
    2
    """
    return min(_count_decimals(side) for side in (numbers[:n_train], numbers[n_train:]) if len(side))


def _count_decimals(numbers: Array) -> int:
    sample = numbers[:: max(1, len(numbers) // MAX_NUMBERS_SAMPLED)]
    sample = np.abs(sample[np.isfinite(sample) & (sample != 0)])
    if not len(sample):
        return SIGNIFICANT_DIGITS
    size = math.ceil(math.log10(float(np.median(sample))) + 1e-9)  # digits before the decimal point
    max_decimals = max(0, SIGNIFICANT_DIGITS - size)
    for decimals in range(max_decimals):
        if (np.abs(sample - np.round(sample, decimals)) <= 1e-9 * sample).all():
            return decimals
    return max_decimals
