"""Choose how cells are split into digits for exact sums of products (see `exact_products`).

The sums are exact for any choice; a good choice leaves few rows that do not fit into the digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from priory.core.sharding import space_evenly
from priory.core.typing import Array

DIGIT_BITS = 23
MAX_DIGITS = 5  # of one cell: a column that needs more has outliers
MAX_DIGIT_EXPONENT = 800  # of the largest digit, so that units and their inverses are normal doubles
N_SAMPLE_RUNS, SAMPLE_RUN_ROWS = 16, 16  # runs of rows of a shard that the choice is based on
FAR_CELL_SHARE, FAR_BITS = 0.02, 8  # share of sampled cells that may exceed the others by more than these bits
SAMPLE_MARGIN = 1.25  # cells may be this much larger than those sampled
MIN_SPARE_BITS = 3  # for cells outside the range of the sample
UNUSED_EXPONENT = 4096  # stands for the lowest bit of zero; larger than any exponent

TakeRows = Callable[[slice | Array], Array]  # returns the rows of a slice or of indices as float64 (rows, columns)


class DigitLayout(NamedTuple):
    """How the cells of each column are split into digits; columns with the most digits come first."""

    order: Array  # (columns,): the original position of each column
    limit: Array  # (columns,): bound of the absolute values, in this order
    columns: Array  # (levels,): number of columns with a digit at this level
    unit: Array  # (levels, columns): the unit of each digit
    digit_column: Array  # (digits,): the original column of each digit
    digit_exponent: Array  # (digits,): the exponent of its unit


def choose_layout(take_rows: TakeRows, part: slice) -> DigitLayout:
    """Choose digits that represent nearly every cell of these rows, from a sample; none for a column out of range."""
    starts = part.start + space_evenly(max(part.stop - part.start - SAMPLE_RUN_ROWS, 0) + 1, N_SAMPLE_RUNS)
    sample = [take_rows(slice(start, min(start + SAMPLE_RUN_ROWS, part.stop))) for start in starts.tolist()]
    top, bottom = measure_exponents(np.concatenate(sample))
    bits = top + 1 - bottom
    n_digits = np.clip(-((-bits - MIN_SPARE_BITS) // DIGIT_BITS), 1, MAX_DIGITS)
    # a third of the spare bits extends the range upwards, the others downwards
    top = top + np.maximum(DIGIT_BITS * n_digits - bits, 0) // 3
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
    """Exponents of the highest and lowest bit of nearly all cells of each column: top and bottom, both (columns,).

    A few outliers are ignored, because a single one could leave no digits for the other cells.

    >>> measure_exponents(np.array([[0.0, 3.0, 0.5], [1.0, 255.0, 0.75]]))
    (array([1, 9, 0]), array([ 0,  0, -2]))
    """
    cells = np.where(np.isfinite(sample), sample, 0.0)
    mantissa, exponent = np.frexp(cells)
    # the mantissa as an integer (rows, columns); x & -x isolates its lowest bit
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
