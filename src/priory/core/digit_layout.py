"""How the cells of a table are cut into digits, so that sums of their products are exact: see `exact_products`.

Whatever is chosen here, the sums are exact; a good choice leaves few rows that do not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from priory.core.sharding import space_evenly
from priory.core.typing import Array

DIGIT_BITS = 23
MAX_DIGITS = 5  # of one cell: a column that needs more has a few cells far from the others
MAX_DIGIT_EXPONENT = 800  # of the largest digit: units, and what divides by them, are ordinary doubles
N_SAMPLE_RUNS, SAMPLE_RUN_ROWS = 16, 16  # of a shard: what the digits are chosen by
FAR_CELL_SHARE, FAR_BITS = 0.02, 8  # of the sampled cells, so many may be this much larger or finer than all others
SAMPLE_MARGIN = 1.25  # how much larger than in the sample cells are expected to be
MIN_SPARE_BITS = 3  # for cells that are larger or finer than all in the sample
UNUSED_EXPONENT = 4096  # of the lowest bit of zero: above that of any number

TakeRows = Callable[[slice | Array], Array]  # some rows, by a slice or their numbers: (rows, columns), float64


class DigitLayout(NamedTuple):
    """How the cells of each column are cut: columns with the most digits first."""

    order: Array  # (columns,): which column stands where
    limit: Array  # (columns,): the largest cell, as ordered
    columns: Array  # (levels,): how many columns have a digit at this level
    unit: Array  # (levels, columns): what the digit of a level counts
    digit_column: Array  # (digits,): the column of each digit, as it was before it was ordered
    digit_exponent: Array  # (digits,): the exponent of its unit


def choose_layout(take_rows: TakeRows, part: slice) -> DigitLayout:
    """Digits that hold nearly every cell of these rows, from a sample of them; a column out of range gets none."""
    starts = part.start + space_evenly(max(part.stop - part.start - SAMPLE_RUN_ROWS, 0) + 1, N_SAMPLE_RUNS)
    sample = [take_rows(slice(start, min(start + SAMPLE_RUN_ROWS, part.stop))) for start in starts.tolist()]
    top, bottom = measure_exponents(np.concatenate(sample))
    bits = top + 1 - bottom
    n_digits = np.clip(-((-bits - MIN_SPARE_BITS) // DIGIT_BITS), 1, MAX_DIGITS)
    top = top + np.maximum(DIGIT_BITS * n_digits - bits, 0) // 3  # of the spare bits; the others are below the bottom
    n_digits[np.abs(top) > MAX_DIGIT_EXPONENT] = 0
    order = np.argsort(-n_digits, kind="stable")
    top, n_digits = np.where(n_digits > 0, top, 0)[order], n_digits[order]
    level = np.arange(n_digits.max(initial=0))[:, None]
    exponent, used = top + 1 - DIGIT_BITS * (level + 1), n_digits > level  # (levels, columns)
    return DigitLayout(
        order,
        np.where(n_digits > 0, np.ldexp(1.0, top), 0.0),
        used.sum(axis=1),
        np.ldexp(1.0, exponent),
        np.broadcast_to(order, used.shape)[used],
        exponent[used],
    )


def measure_exponents(sample: Array) -> tuple[Array, Array]:
    """Exponents between which nearly every cell of a column has its bits: top (columns,) and bottom (columns,).

    A few cells far from the others do not count: if they did, a single one could leave no digits for the rest.

    >>> measure_exponents(np.array([[0.0, 3.0, 0.5], [1.0, 255.0, 0.75]]))
    (array([1, 9, 0]), array([ 0,  0, -2]))
    """
    cells = np.where(np.isfinite(sample), sample, 0.0)
    mantissa, exponent = np.frexp(cells)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest_bit = np.frexp((whole & -whole).astype(float))[1] + exponent - 54  # (rows, columns)
    far = len(cells) * FAR_CELL_SHARE
    sizes, bits = np.sort(np.abs(cells), axis=0), np.sort(np.where(whole == 0, UNUSED_EXPONENT, lowest_bit), axis=0)
    usual, usual_bit = sizes[-1 - int(far)], bits[int(far)]
    with np.errstate(over="ignore"):
        largest = np.where(usual > 0, np.minimum(sizes[-1] * SAMPLE_MARGIN, usual * 2.0**FAR_BITS), sizes[-1])
    top = np.frexp(np.where(np.isfinite(largest), largest, sizes[-1]))[1].astype(np.int64)
    bottom = np.where(usual_bit < UNUSED_EXPONENT, np.maximum(bits[0], usual_bit - FAR_BITS), bits[0])
    empty = ~whole.any(axis=0)
    return np.where(empty, 1, top), np.where(empty, 0, bottom).astype(np.int64)
