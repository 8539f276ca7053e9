"""Encode the columns of a data frame as terms of a regression.

The rules:

- a column of numbers (or of booleans) is one term, its value; a missing cell is replaced by the mean of the cells
  present, and a second term, a flag, marks it as missing;
- a column of text or categories is one term per level, with the same prior for each; no level needs to be dropped as a
  reference, because the prior makes the weights identifiable; a missing cell is a level of its own;
- a level that was never learned does not change the expected prediction, but adds the prior variance of a level.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import narwhals as nw
import numpy as np

from priory.core.input_guard import check_frame
from priory.core.typing import Array
from priory.errors import DataError, KindError
from priory.regression.cross_products import Term

MAX_CATEGORY_LEVELS = 1000  # a column with more levels is an identifier

NarwhalsFrame = nw.DataFrame[Any]


def as_data_frame(table: object) -> NarwhalsFrame | None:
    """Return the table as a narwhals data frame, or None if it is not a data frame."""
    check_frame(table)
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def has_non_numeric_columns(frame: NarwhalsFrame) -> bool:
    """Return whether some column does not hold numbers."""
    return not all(_is_numeric(dtype) for dtype in frame.schema.values())


def encode_design_columns(frame: NarwhalsFrame, columns: Iterable[str]) -> tuple[Array, tuple[Term, ...]]:
    """Return the named columns as numbers, (rows, terms), and the term of each resulting column.

    >>> import polars as pl
    >>> frame = nw.from_native(pl.DataFrame({"cm": [3.0, None], "sex": ["F", "M"]}))
    >>> x, terms = encode_design_columns(frame, ["cm", "sex"])
    >>> x.tolist(), [(t.column, t.level) for t in terms]
    ([[3.0, 1.0, 0.0], [nan, 0.0, 1.0]], [('cm', None), ('sex', 'F'), ('sex', 'M')])
    """
    names = list(columns)
    absent = [name for name in names if name not in frame.columns]
    if absent:
        raise DataError(f"column {', '.join(map(repr, absent))} is missing from the table; it has {frame.columns}.")
    parts = [
        _encode_numbers(frame[name]) if _is_numeric(frame.schema[name]) else _encode_levels(frame[name])
        for name in names
    ]
    terms = tuple(term for _, part in parts for term in part)
    return np.concatenate([cells for cells, _ in parts], axis=1), terms


def _is_numeric(dtype: nw.dtypes.DType) -> bool:
    return bool(dtype.is_numeric()) or dtype == nw.Boolean


def _encode_numbers(series: nw.Series[Any]) -> tuple[Array, list[Term]]:
    """Return the cells as (rows, 1), NaN where missing, and their one term."""
    cells = np.asarray(series.cast(nw.Float64).to_numpy(), dtype=float)
    if np.isinf(cells).any():
        row = int(np.argmax(np.isinf(cells)))
        raise DataError(
            f"row {row} of column {series.name!r} holds an infinite number; leave it empty if it is missing."
        )
    return cells[:, None], [Term(series.name)]


def _encode_levels(series: nw.Series[Any]) -> tuple[Array, list[Term]]:
    """Return the cells one-hot encoded as (rows, levels), and one term per level."""
    if series.dtype not in (nw.String, nw.Categorical, nw.Enum, nw.Object):
        raise KindError(f"column {series.name!r} holds {series.dtype}; give numbers or categories.")
    cells = [None if v is None or v != v else str(v) for v in series.to_list()]
    levels = sorted({cell for cell in cells if cell is not None}) + [None] * (None in cells)
    if len(levels) > MAX_CATEGORY_LEVELS:
        raise DataError(
            f"column {series.name!r} holds {len(levels):,} different values; leave it out, or give numbers."
        )
    code = {level: i for i, level in enumerate(levels)}
    return np.eye(len(levels))[[code[cell] for cell in cells]], [Term(series.name, "level", lv) for lv in levels]
