"""Exact sums of products of columns, ``Σ w z z'``: the statistics of regressions and multivariate Gaussians.

A cell is split into digits of 23 bits in a unit of its column, and one matrix product sums all pairs of digits of a
block of rows. This is exact, for any order of additions and any instructions that BLAS uses: a digit is an integer of
at most 2^22, so the product of two is at most 2^44, and no sum over 512 rows exceeds 2^53, up to which doubles are
exact integers. The sums of blocks are added as 64-bit integers. A row with a cell that does not fit the digits of its
column (too large, or with bits below the last digit) is left out of the matrix product, and multiplied in integers.

The choice of digits affects only the speed, never the result.

>>> z = np.array([[1.0, 1e200], [1.0, 1e-200], [1.0, -1e200]])
>>> sums = sum_products(z)  # of the pairs (0, 0), (0, 1) and (1, 1)
>>> sums[:2].to_floats().tolist()
[3.0, 1e-200]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, reduce
from itertools import pairwise
from operator import add

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core._kernel import products as kernel
from priory.core.exact_sums import LIMB_BITS, DigitLayout, ExactSums, TakeRows, choose_layout
from priory.core.sharding import limit_blas_threads, map_threads, split_rows
from priory.errors import DataError

PRODUCT_BLOCK_ROWS = 512  # 512 times 2^44, the largest product of two digits, is 2^53
MAX_PRODUCTS_IN_INTEGERS = 100_000  # fewer products than this are faster without a layout
MIN_ROWS_PER_WEIGHT = 512  # where weights repeat this often, rows of equal weight are summed first
MAX_UNSCALED_EXPONENT = 300  # columns of size above 2**300 or below 2**-300 get a unit, because of their squares
MAX_SCALE_EXPONENT = 1000  # so that units and their inverses are normal doubles
LIMBS_OF_PRODUCT, LIMBS_OF_WEIGHTED_PRODUCT = 7, 10  # including one limb for the carry


@lru_cache(maxsize=16)
def list_pairs(columns: int) -> tuple[Array, Array]:
    """The pairs of columns ``i <= j`` in the order in which their sums are kept."""
    left, right = np.triu_indices(columns)
    left.flags.writeable = right.flags.writeable = False
    return left, right


def count_pairs(columns: int) -> int:
    """Number of pairs of columns ``i <= j``.

    >>> count_pairs(3)
    6
    """
    return columns * (columns + 1) // 2


@lru_cache(maxsize=16)
def index_pairs(columns: int) -> Array:
    """Position of each pair of columns in the order of `list_pairs`, (columns, columns).

    >>> index_pairs(3).tolist()
    [[0, 1, 2], [1, 3, 4], [2, 4, 5]]
    """
    left, right = list_pairs(columns)
    index = np.empty((columns, columns), dtype=np.intp)
    index[left, right] = index[right, left] = np.arange(len(left))
    index.flags.writeable = False
    return index


def sum_products(z: Array, weight: Array | None = None) -> ExactSums:
    """Exact sums (pairs,) of ``w z[i] z[j]`` over the rows of ``z`` (rows, columns), for all pairs of columns."""
    z = np.ascontiguousarray(z, dtype=np.float64)
    return sum_products_of_rows(lambda part: z[part], len(z), z.shape[1], weight)


def sum_products_of_rows(take_rows: TakeRows, rows: int, columns: int, weight: Array | None = None) -> ExactSums:
    """`sum_products` of rows that are produced block by block: ``take_rows(part)`` returns the rows of a slice."""
    if weight is not None:
        return _sum_weighted(take_rows, rows, columns, np.ascontiguousarray(weight, dtype=np.float64))
    if rows * count_pairs(columns) <= MAX_PRODUCTS_IN_INTEGERS or kernel.flushes_denormals():
        return _sum_shards(lambda part: sum_in_integers(take_rows(part)), rows)
    with limit_blas_threads():
        return _sum_shards(lambda part: _sum_shard(take_rows, part, columns), rows)


def _sum_shards(sum_shard: Callable[[slice], ExactSums], rows: int) -> ExactSums:
    return reduce(add, map_threads(sum_shard, list(split_rows(rows))))


def _sum_weighted(take_rows: TakeRows, rows: int, columns: int, weight: Array) -> ExactSums:
    """Sum rows of equal weight first and multiply by the weight, if few weights repeat often; else use integers."""
    values, times = np.unique(weight, return_counts=True)
    if len(values) * MIN_ROWS_PER_WEIGHT > rows:
        return _sum_shards(lambda part: sum_in_integers(take_rows(part), weight[part]), rows)
    total = ExactSums.zeros((count_pairs(columns),))
    for value, n in zip(values[values > 0], times[values > 0], strict=True):
        take_equal = pick_rows(take_rows, np.flatnonzero(weight == value))
        total = total + sum_products_of_rows(take_equal, int(n), columns).multiply_exactly(float(value))
    return total


def pick_rows(take_rows: TakeRows, index: Array) -> TakeRows:
    """A function like ``take_rows`` that returns only the rows of ``index``."""
    return lambda part: take_rows(index[part])


def sum_products_by_class(
    take_rows: TakeRows, group: Array, groups: int, columns: int, weight: Array | None = None
) -> ExactSums:
    """Exact sums of products of the rows of each class, (groups, pairs)."""
    # sorted by class, so that the rows of class c are order[bounds[c]:bounds[c + 1]]
    order = np.argsort(group, kind="stable")
    bounds = np.searchsorted(group[order], np.arange(groups + 1))
    classes = [order[start:stop] for start, stop in pairwise(bounds.tolist())]
    return stack_sums(
        [
            sum_products_of_rows(
                pick_rows(take_rows, rows), len(rows), columns, None if weight is None else weight[rows]
            )
            for rows in classes
        ]
    )


def stack_sums(sums: Sequence[ExactSums]) -> ExactSums:
    """Stack arrays of sums of equal shape along a new first axis."""
    limbs, base = _align_windows(sums)
    return ExactSums.from_limbs(np.stack(limbs), base)


def join_sums(sums: Sequence[ExactSums]) -> ExactSums:
    """Concatenate arrays of sums along their last axis."""
    limbs, base = _align_windows(sums)
    return ExactSums.from_limbs(np.concatenate(limbs, axis=-2), base)


def _align_windows(sums: Sequence[ExactSums]) -> tuple[list[Array], int]:
    """The limbs of all arrays in a common window, and the base of the window."""
    windows = [s for s in sums if s.limbs.shape[-1]]
    base = min((s.base for s in windows), default=0)
    top = max((s.base + s.limbs.shape[-1] for s in windows), default=0)
    limbs = [np.zeros((*s.shape, top - base), dtype=np.int64) for s in sums]
    for place, one in zip(limbs, sums, strict=True):
        start = one.base - base if one.limbs.shape[-1] else 0
        place[..., start : start + one.limbs.shape[-1]] = one.limbs
    return limbs, base


def transform_products(sums: ExactSums, index: Array, factor: Array) -> ExactSums:
    """Exact sums of products of new columns, each a linear combination of up to three old ones.

    New column i is the sum of ``factor[i, a]`` times column ``index[i, a]``; both arrays are (new columns, 3).

    >>> sums = sum_products(np.array([[1.0, 1e8 + 1], [1.0, 1e8 + 3]]))
    >>> transform_products(sums, np.array([[1, 0, 0]]), np.array([[1.0, -1e8, 0.0]])).to_floats().tolist()
    [10.0]
    """
    limbs, shift = kernel.transform_sums(
        np.ascontiguousarray(sums.limbs), np.ascontiguousarray(index, dtype=np.int64), np.ascontiguousarray(factor)
    )
    return ExactSums.from_limbs(limbs, sums.base + shift)


def move_columns(sums: ExactSums, step: Array, missing_flags: Iterable[tuple[int, int]] = ()) -> ExactSums:
    """Exact sums of products after adding ``step`` (columns,) to every cell; the first column is all ones.

    ``missing_flags`` lists columns in which missing cells are zero and stay zero, each with the indicator column of its
    missing cells.
    """
    # new column = 1 * column + step * ones (column 0) - step * indicator of missing cells
    index, factor = np.zeros((len(step), 3), dtype=np.int64), np.zeros((len(step), 3))
    index[:, 0], factor[:, 0], factor[:, 1] = np.arange(len(step)), 1.0, step
    for column, flag in missing_flags:
        index[column, 2], factor[column, 2] = flag, -step[column]
    return transform_products(sums, index, factor)


def choose_units(n: ExactSums, squares: ExactSums) -> Array:
    """A power of two for each column: 1, or near the size of the column if its squares would overflow or underflow.

    ``n`` has the weight of the rows, (), and ``squares`` the sums of squares, (columns,).
    """
    mantissa, exponent = squares.to_scaled_floats()
    size = np.where(mantissa != 0, exponent - n.to_scaled_floats()[1], 0) // 2
    size = np.where(np.abs(size) > MAX_UNSCALED_EXPONENT, size, 0)
    return np.ldexp(1.0, np.clip(size, -MAX_SCALE_EXPONENT, MAX_SCALE_EXPONENT))


def divide_integers(numerator: Array, denominator: Array, exponent: ArrayLike = 0) -> Array:
    """Correctly rounded ``numerator / denominator * 2 ** exponent`` for arrays of Python integers.

    The quotient is NaN for a denominator of zero, and infinite if it is beyond the largest double.
    """
    divide = np.frompyfunc(_divide_integers, 3, 1)
    return np.asarray(divide(numerator, denominator, np.asarray(exponent, dtype=object)), dtype=np.float64)


def _divide_integers(numerator: int, denominator: int, exponent: int) -> float:
    if denominator == 0:
        return np.nan
    numerator, denominator = numerator << max(int(exponent), 0), denominator << max(-int(exponent), 0)
    try:
        return numerator / denominator  # Python rounds the quotient of two integers correctly, once
    except OverflowError:
        return np.inf if numerator > 0 else -np.inf


# -- in integers -------------------------------------------------------------------------------------------------------


def sum_in_integers(z: Array, weight: Array | None = None) -> ExactSums:
    """Sums of products of any finite numbers, in integer arithmetic; a few nanoseconds per product."""
    finite, low, high = kernel.find_limb_range(z)
    if not finite:
        row, column = (int(i) for i in np.argwhere(~np.isfinite(z))[0])
        raise DataError(f"row {row}, column {column} is {z[row, column]}; an exact sum needs finite numbers.")
    base, n_limbs = 2 * low, 2 * (high - low) + LIMBS_OF_PRODUCT
    if weight is not None:
        _, low, high = kernel.find_limb_range(weight[:, None])
        base, n_limbs = base + low, n_limbs + high - low + LIMBS_OF_WEIGHTED_PRODUCT - LIMBS_OF_PRODUCT
    columns = z.shape[1]
    limbs = np.zeros((count_pairs(columns), n_limbs), dtype=np.int64)
    kernel.add_rows(z, weight, limbs, base)
    return ExactSums.from_limbs(limbs, base)


# -- in digits ---------------------------------------------------------------------------------------------------------


def _sum_shard(take_rows: TakeRows, part: slice, columns: int) -> ExactSums:
    """The sums of one shard: by digits block by block, and in integers for the rows that do not fit."""
    layout = choose_layout(take_rows, part)
    width = len(layout.digit_column)
    digits, sums, others = np.empty((PRODUCT_BLOCK_ROWS, width)), np.zeros((width, width), dtype=np.int64), []
    for start in range(part.start, part.stop, PRODUCT_BLOCK_ROWS):
        z = take_rows(slice(start, min(start + PRODUCT_BLOCK_ROWS, part.stop)))
        block = digits[: len(z)]
        fits = kernel.cut_digits(z, layout.order, layout.limit, layout.unit, layout.columns, block)
        # (digits, digits): exact, see the module's docstring
        sums += (block.T @ block).astype(np.int64)
        if not fits.all():
            others.append(z[~fits])
    total = _place_digit_sums(sums, layout, columns)
    return total + sum_in_integers(np.concatenate(others)) if others else total


def _place_digit_sums(sums: Array, layout: DigitLayout, columns: int) -> ExactSums:
    if not len(sums):
        return ExactSums.zeros((count_pairs(columns),))
    low, high = int(layout.digit_exponent.min()), int(layout.digit_exponent.max())
    base = 2 * low // LIMB_BITS
    n_limbs = 2 * high // LIMB_BITS - base + 4
    limbs = np.zeros((count_pairs(columns), n_limbs), dtype=np.int64)
    kernel.place_sums(sums, layout.digit_column, layout.digit_exponent, columns, limbs, base)
    return ExactSums.from_limbs(limbs, base)
