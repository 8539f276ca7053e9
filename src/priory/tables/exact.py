"""Exact sums for anybody: the same bits in any order of the rows, on any number of threads."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import reduce
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy import ndarray as Array

from priory.core.column_kernels import sum_exactly
from priory.errors import DataError, KindError, suggest_name

HALF_BITS = 32  # whole numbers are summed in two halves, each of which is exact as a double


def group_sums(table: object, by: str | Sequence[str]) -> pa.Table:
    """Sum the columns of numbers by group: each sum is the double nearest to the exact one.

    Sums of doubles depend on their order elsewhere, so that two runs of one query may differ. These do not: rows in
    another order, in other batches or on more threads give the same bits.

    Parameters
    ----------
    table : data frame, Arrow table, or dict of column to cells
        Columns that are neither numbers nor in ``by`` are left out. Missing cells and NaN are not summed.
    by : str or sequence of str
        The columns that make a group; a missing cell is a group of its own.

    Returns
    -------
    pyarrow.Table
        One row for each group, sorted: the columns ``by``, then the sums. Whole numbers and truth values have sums of
        64 bits, or decimals where these are too few.

    Examples
    --------
    >>> sums = group_sums({"shop": ["a", "b", "a", "a"], "paid": [1e16, 0.5, 1.0, -1e16]}, by="shop")
    >>> sums.to_pydict()
    {'shop': ['a', 'b'], 'paid': [1.0, 0.5]}
    """
    rows: Any = pa.table(table) if isinstance(table, dict) else table
    if not isinstance(rows, pa.Table):
        frame: Any = nw.from_native(rows, eager_only=True)
        rows = pa.table({name: frame[name].to_arrow() for name in frame.columns})  # without the index of pandas
    names = [by] if isinstance(by, str) else list(by)
    for name in names:
        if name not in rows.column_names:
            raise DataError(f"the table has no column {name!r}{suggest_name(name, rows.column_names)}.")
    if not names:
        raise DataError("by names no column; give at least one.")
    keys, group = find_groups(rows.select(names))
    found = {name: keys.column(name) for name in names}
    for name in rows.column_names:
        if name not in found and (sums := sum_column(rows.column(name), group, len(keys))) is not None:
            found[name] = sums
    return pa.table(found).sort_by([(name, "ascending") for name in names])


def find_groups(keys: pa.Table) -> tuple[pa.Table, Array]:
    """The distinct rows of a table, and the number of each row among them (rows,)."""
    coded = [column.combine_chunks().dictionary_encode("encode") for column in keys.columns]
    codes = [np.asarray(column.indices.to_numpy(zero_copy_only=False), dtype=np.int64) for column in coded]
    joined = reduce(lambda a, b: np.unique(a, return_inverse=True)[1] * (int(b.max(initial=0)) + 1) + b, codes)
    _, first, group = np.unique(joined, return_index=True, return_inverse=True)
    return keys.take(first), group.astype(np.int32)


def sum_column(column: pa.ChunkedArray, group: Array, groups: int) -> pa.Array | None:
    """The sum of each group; None if the column holds no numbers."""
    kind = column.type
    if pa.types.is_decimal(kind):
        raise KindError("a column of decimals is exact already; sum it with Arrow, or cast it to doubles.")
    if pa.types.is_floating(kind):
        x = np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
        return pa.array(sum_exactly(x[:, None], group, None, groups).first.to_floats()[:, 0])
    if not (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        return None
    whole = column.cast(pa.uint64() if pa.types.is_uint64(kind) else pa.int64()).fill_null(0).to_numpy()
    halves = np.stack([whole >> HALF_BITS, whole & ((1 << HALF_BITS) - 1)], axis=1).astype(np.float64)
    integers, exponent = sum_exactly(halves, group, None, groups).first.to_integers()
    high, low = (np.array([int(v) << exponent for v in part], dtype=object) for part in integers.T)
    sums = [int(a << HALF_BITS) + int(b) for a, b in zip(high, low, strict=True)]
    if all(-(1 << 63) <= s < 1 << 63 for s in sums):
        return pa.array(sums, pa.int64())
    return pa.array([Decimal(s) for s in sums], pa.decimal128(38, 0))
