"""The readable twin of `exact`: what each function means, in Python's whole numbers.

Limbs are (cells, limbs) arrays of int64: a cell is the sum of ``limbs[cell, j] * 2 ** (32 * (base + j))`` over ``j``.
Every function returns limbs in ``0 .. 2**32 - 1``, the last with a sign, in the smallest window that holds all cells.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

Limbs = tuple[np.ndarray, int]  # limbs and their base


def read_values(limbs: np.ndarray, base: int) -> list[Fraction]:
    """The exact values of the cells."""
    return [
        sum((Fraction(int(v)) * _power(32 * (base + j)) for j, v in enumerate(cell)), Fraction(0)) for cell in limbs
    ]


def write_values(values: list[Fraction]) -> Limbs:
    """The limbs of dyadic numbers."""
    exponent = min((1 - v.denominator.bit_length() for v in values if v), default=0)
    integers = [int(v * _power(-exponent)) for v in values]
    lowest = min(((v & -v).bit_length() - 1 for v in integers if v), default=0)
    base = (exponent + lowest) // 32 if any(integers) else 0
    shifted = [int(v * _power(-32 * base)) for v in values]
    width = max(((v if v >= 0 else ~v).bit_length() // 32 + 1 for v in shifted if v), default=0)
    limbs = [[(v >> 32 * j) & 0xFFFFFFFF if j < width - 1 else v >> 32 * j for j in range(width)] for v in shifted]
    return np.array(limbs, dtype=np.int64).reshape(len(values), width), base


def sum_powers(
    x: np.ndarray, group: np.ndarray, weight: np.ndarray | None, groups: int, squares: bool = True
) -> tuple[np.ndarray, Limbs, Limbs]:
    """Count, sum and sum of squares of each class and column; NaN is left out, infinity an OverflowError(column)."""
    columns = x.shape[1]
    n = np.zeros((groups, columns))
    first, second = ([Fraction(0)] * n.size for _ in range(2))
    weights = np.ones(len(x)) if weight is None else weight
    for row, c, w in zip(x.astype(np.float64), group, weights, strict=True):
        for j, v in enumerate(row.tolist()):
            if math.isinf(v):
                raise OverflowError(j)
            if w and v == v:
                n[c, j] += w
                first[c * columns + j] += Fraction(float(w)) * Fraction(v)
                second[c * columns + j] += Fraction(float(w)) * Fraction(v) ** 2 if squares else 0
    return n, write_values(first), write_values(second)


def combine(a: np.ndarray, a_base: int, b: np.ndarray, b_base: int, sign: int) -> Limbs:
    """``a + sign * b``, where the limbs of both may have any sizes below 2**61."""
    return write_values([v + sign * w for v, w in zip(read_values(a, a_base), read_values(b, b_base), strict=True)])


def divide(limbs: np.ndarray, base: int, n: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """``cell / n`` in units of ``2 ** exponent``, rounded once; NaN where n is zero."""
    return np.array(
        [
            round_fraction(v / Fraction(float(m)) * _power(-int(e))) if m else math.nan
            for v, m, e in zip(read_values(limbs, base), n, exponent, strict=True)
        ]
    )


def split(limbs: np.ndarray, base: int) -> tuple[np.ndarray, np.ndarray]:
    """Mantissas in [0.5, 1) and exponents: the cells rounded to 53 bits, however large or small they are."""
    values = read_values(limbs, base)
    size = [v.numerator.bit_length() - v.denominator.bit_length() if v else 0 for v in values]
    scaled = [math.frexp(float(v * _power(-e))) for v, e in zip(values, size, strict=True)]
    exponent = [s[1] + e if v else 0 for s, e, v in zip(scaled, size, values, strict=True)]
    return np.array([s[0] for s in scaled]), np.array(exponent, dtype=np.int64)


def variances(
    n: np.ndarray, first: np.ndarray, first_base: int, second: np.ndarray, second_base: int, exponent: np.ndarray
) -> np.ndarray:
    """``(n * second - first ** 2) / n ** 2`` in units of ``2 ** (2 * exponent)``, rounded once; NaN where n is zero.

    ``second`` is a sum of squares: it is not negative.
    """
    cells = zip(n, read_values(first, first_base), read_values(second, second_base), exponent, strict=True)
    return np.array(
        [
            round_fraction((q / Fraction(float(m)) - (s / Fraction(float(m))) ** 2) * _power(-2 * int(e)))
            if m
            else math.nan
            for m, s, q, e in cells
        ]
    )


def round_fraction(value: Fraction) -> float:
    """The nearest double; infinity beyond the largest."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent
