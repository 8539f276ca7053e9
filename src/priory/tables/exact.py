"""Exact sums for anybody: the same bits in any order of the rows, on any number of threads."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import reduce
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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
    rows, names = read_rows(table), [by] if isinstance(by, str) else list(by)
    for name in names:
        if name not in rows.column_names:
            raise DataError(f"the table has no column {name!r}{suggest_name(name, rows.column_names)}.")
    if not names:
        raise DataError("by names no column; give at least one.")
    found = {name: make_key(name, rows.column(name)) for name in names}
    group = reduce(lambda a, b: encode(pa.array(a * (b.max(initial=0) + 1) + b)), map(encode, found.values()))
    row = np.zeros(group.max(initial=-1) + 1, dtype=np.int64)  # one of each group
    row[group] = np.arange(len(group))
    found = {name: key.take(row) for name, key in found.items()}
    for name in rows.column_names:
        if name not in found and (sums := sum_column(rows.column(name), group.astype(np.int32), len(row))) is not None:
            found[name] = sums
    return pa.table(found).sort_by([(name, "ascending") for name in found if name in names])


def read_rows(table: object) -> pa.Table:
    """A table of any kind as an Arrow table, without the index of pandas."""
    try:
        if isinstance(table, dict):
            return pa.table(table)
        frame: Any = nw.from_native(table, eager_only=True)
        return table if isinstance(table, pa.Table) else pa.table({n: frame[n].to_arrow() for n in frame.columns})
    except (TypeError, ValueError) as error:  # of Arrow, too
        cause = str(error).splitlines()[0]
        raise DataError(f"table cannot be read ({cause}); give a data frame, an Arrow table or a dict.") from None


def make_key(name: str, column: pa.ChunkedArray) -> pa.Array:
    """The cells of a column to group by: a dictionary as its values, and one zero for both."""
    kind = column.type
    if pa.types.is_nested(kind):
        raise KindError(f"column {name!r} holds cells of several values ({kind}); group by columns of single values.")
    column = column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column
    column = pc.add(column, pa.scalar(0, kind)) if pa.types.is_floating(kind) else column
    return column.combine_chunks()


def encode(cells: pa.Array) -> Array:
    """The number of each cell among the distinct cells (rows,)."""
    return np.asarray(cells.dictionary_encode("encode").indices.to_numpy(), dtype=np.int64)


def sum_column(column: pa.ChunkedArray, group: Array, groups: int) -> pa.Array | None:
    """The sum of each group; None if the column holds no numbers."""
    kind = column.type
    if pa.types.is_decimal(kind):
        raise KindError("a column of decimals is exact already; sum it with Arrow, or cast it to doubles.")
    if pa.types.is_floating(kind):
        x = np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
        return pa.array(sum_exactly(x[:, None], group, None, max(groups, 1)).first.to_floats()[:groups, 0])
    if not (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        return None
    whole = column.cast(pa.uint64() if pa.types.is_uint64(kind) else pa.int64()).fill_null(0).to_numpy()
    halves = np.stack([whole >> HALF_BITS, whole & ((1 << HALF_BITS) - 1)], axis=1).astype(np.float64)
    integers, exponent = sum_exactly(halves, group, None, max(groups, 1)).first.to_integers()
    sums = [((int(high) << HALF_BITS) + int(low)) << exponent for high, low in integers[:groups]]
    if all(-(1 << 63) <= s < 1 << 63 for s in sums):
        return pa.array(sums, pa.int64())
    return pa.array([Decimal(s) for s in sums], pa.decimal128(38, 0))
