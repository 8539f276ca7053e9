"""Rows as numbers: one 64-bit hash a row, the sum of its cells' hashes. A column leaves it by subtraction.

Two readings of a cell: *exact*, and *loose*, where case, white space and rounding do not count, nor the punctuation of
a text. Columns are found by name, so their order never counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from priory.core.typing import Array
from priory.leakage.audit_tables import Cells, Evidence

DIGITS = 6  # significant, of a typical number: what lies beyond is rounding
SAMPLE = 10_000


@dataclass(frozen=True)
class Hashes:
    """The hash of every row, training rows first, and of every column's cells."""

    rows: Array
    columns: tuple[Array, ...]

    @classmethod
    def of(cls, evidence: Evidence, loose: bool) -> Hashes:
        parts = [_cells(column, evidence.train, loose) for column in evidence.columns]
        parts += [_hashed(map(bare, texts) if loose else texts) for texts in evidence.texts.values()]
        salts = np.arange(1, len(parts) + 1, dtype=np.uint64) * GOLDEN
        columns = tuple(mixed(part + salt) for salt, part in zip(salts, parts, strict=True))
        return cls(np.asarray(sum(columns)), columns)


GOLDEN = np.uint64(0x9E3779B97F4A7C15)
ALL = (1 << 64) - 1
SIGNS = bytes(code for code in range(128) if not chr(code).isalnum())


def mixed(x: Array) -> Array:
    """Every bit of the input in every bit of the output (splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _cells(column: Cells, train: int, loose: bool) -> Array:
    if column.numbers is not None:
        numbers = np.where(column.missing, np.nan, column.numbers) + 0.0  # one NaN, and no negative nought
        return (np.round(numbers, decimals(numbers, train)) + 0.0 if loose else numbers).view(np.uint64)
    codes, values = column.coded
    readings = (str(value) for value in values)
    return np.append(_hashed(map(folded, readings) if loose else readings), np.uint64(0))[codes]


def _hashed(texts: Iterable[str]) -> Array:
    return np.array([hash(text) & ALL for text in texts], dtype=np.uint64)


def folded(label: str) -> str:
    """Without case, and with every run of white space as one blank.

    >>> folded("  Hello \\n World")
    'hello world'
    """
    return " ".join(label.casefold().split())


def bare(text: str) -> str:
    """The letters and digits of a text, without case: tokenising, quoting and wrapping do not count.

    >>> bare("It 's -- ``fine'' !") == bare("It's fine")
    True
    """
    if text.isascii():
        return text.encode().lower().translate(None, SIGNS).decode() or text
    return re.sub(r"[\W_]+", "", text.casefold()) or text


def decimals(numbers: Array, train: int) -> int:
    """Decimals that both tables write: those of the coarser one, of `DIGITS` significant digits at most.

    >>> decimals(np.array([3.14159, 2.71828, 3.14, 2.72]), 2)
    2
    """
    return min(_written(side) for side in (numbers[:train], numbers[train:]) if len(side))


def _written(numbers: Array) -> int:
    sample = numbers[:: max(1, len(numbers) // SAMPLE)]
    sample = np.abs(sample[np.isfinite(sample) & (sample != 0)])
    if not len(sample):
        return DIGITS
    size = math.ceil(math.log10(float(np.median(sample))) + 1e-9)
    most = max(0, DIGITS - size)
    for places in range(most):
        if (np.abs(sample - np.round(sample, places)) <= 1e-9 * sample).all():
            return places
    return most
