"""Encode a table as the terms of a regression; the scale of each term and the strength of its prior."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import narwhals as nw
import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike
from scipy.linalg import eigh
from scipy.optimize import brentq

from priory.core.input_guard import check_frame
from priory.errors import DataError, KindError
from priory.regression.cross_products import CrossProducts, Term, centre_products


def resolve_declared_classes(declared: ArrayLike | None, known: Array | None) -> Array:
    """Return the sorted classes, which must be declared on the first call and cannot change later."""
    if known is None:
        if declared is None:
            raise DataError("classes must be passed on the first call to partial_fit.")
        return np.unique(np.asarray(declared))
    if declared is not None and not np.array_equal(np.unique(np.asarray(declared)), known):
        raise DataError(f"`classes={declared}` is not the same as on last call to partial_fit, was: {known}")
    return known


def encode_declared_classes(labels: Array, classes: Array) -> Array:
    """Return the index of each label among the classes, (rows,).

    >>> encode_declared_classes(np.array(["yes", "no", "yes"]), np.array(["no", "yes"])).tolist()
    [1, 0, 1]
    """
    code = {label: number for number, label in enumerate(classes.tolist())}
    new = next((label for label in labels.tolist() if label not in code), None)
    if new is not None:
        raise DataError(f"label {new!r} is not one of the classes {list(code)[:10]}; call fit again with all rows.")
    return np.array([code[label] for label in labels.tolist()], dtype=np.int64)


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


MIN_STRENGTH_PER_ROW, MAX_STRENGTH_PER_ROW = 1e-12, 1e8  # the range of prior strengths searched, per row
MIN_UNSPANNED_STRENGTH = 1e-7  # per row, in directions not spanned by the rows
N_STRENGTH_GRID_POINTS = 41


def term_scales(statistics: CrossProducts, unit: ArrayLike = 1.0) -> Array:
    """Return the scale of each term in ``unit``: the standard deviation of a value, and 1 for a level or a flag."""
    units = np.broadcast_to(np.asarray(unit, dtype=float), (1 + len(statistics.terms),))
    squares = np.diag(centre_products(statistics, statistics.centre(), units).second)[1:]
    values = np.array([term.kind == "value" for term in statistics.terms], dtype=bool)
    return np.where(values & (squares > 0), np.sqrt(squares / max(float(statistics.n), 1.0)), 1.0)


def choose_linear_strength(statistics: CrossProducts, scale: Array, level: bool = True, unit: ArrayLike = 1.0) -> float:
    """Return the prior strength λ, common to all weights of terms divided by ``scale``, that maximises the evidence.

    This is the evidence approximation (Bishop 2006, section 3.5). One eigendecomposition, X'X = V diag(e) V', gives the
    evidence of every strength; with c = V'X'y it is

        log p(y | λ) = ½ Σ log(λ / (λ + e)) - ν/2 log(y'y - Σ c² / (e + λ)) + constant,    ν = n - 1 (the level)
    """
    units = np.broadcast_to(np.asarray(unit, dtype=float), (1 + len(statistics.terms),))
    about = centre_products(statistics, statistics.centre() if level else np.zeros(len(units)), units)
    products = about.scatter() if level else about.second
    values, vectors = eigh(products[1:, 1:] / np.outer(scale, scale), check_finite=False)
    e = np.maximum(values, 0.0)  # (terms,), ascending
    c2 = (vectors.T @ (products[1:, 0] / scale)) ** 2  # (terms,)
    square, freedom = float(products[0, 0]), max(float(statistics.n) - level, 0.0)
    if square <= 0 or freedom == 0 or not len(e):
        return 1.0
    floor = np.finfo(float).eps * square  # the residual of a perfect fit is rounding

    def cost(log_strength: Array) -> Array:  # (points,) -> (points,)
        shrunk = e + 10.0 ** log_strength[:, None]  # (points, terms)
        left = np.maximum(square - (c2 / shrunk).sum(axis=1), floor)
        return 0.5 * (np.log(shrunk) - np.log(10.0) * log_strength[:, None]).sum(axis=1) + 0.5 * freedom * np.log(left)

    def slope(log_strength: float) -> float:
        strength = 10.0**log_strength
        left = max(square - float((c2 / (e + strength)).sum()), floor)
        return float(freedom * (c2 * strength / (e + strength) ** 2).sum() / left - (e / (e + strength)).sum())

    # In directions that the rows do not span, a weaker prior would turn rounding errors into weights.
    weakest = max(
        MIN_UNSPANNED_STRENGTH * float(statistics.n) - float(e[0]), MIN_STRENGTH_PER_ROW * float(statistics.n)
    )
    coarse = np.linspace(
        np.log10(weakest), np.log10(MAX_STRENGTH_PER_ROW * float(statistics.n)), N_STRENGTH_GRID_POINTS
    )
    at = int(np.argmin(cost(coarse)))
    low, high = coarse[max(at - 1, 0)], coarse[min(at + 1, len(coarse) - 1)]
    # The root of the derivative is accurate to twice as many digits as the minimum of the cost.
    best = brentq(slope, low, high, xtol=1e-14) if slope(low) < 0 < slope(high) else coarse[at]
    return float(10.0**best)
