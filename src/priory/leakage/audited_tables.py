"""Read the inputs of an audit: one or two tables or lists of texts, with target, groups and times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import pairwise
from typing import TypeGuard

import narwhals as nw
import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from priory.core.input_guard import check_frame
from priory.errors import DataError, ModelTooLargeError, suggest_name
from priory.leakage.audit_tables import AuditColumn, AuditData
from priory.model.cells import LabelCells
from priory.tables import table_reading as tables
from priory.tables.table import Column, Table

MAX_NUMERIC_CLASSES = 20  # a numeric target with more values is cut into quantiles
MAX_SCORE_CELLS = 1 << 28  # rows x classes: two gigabytes of scores
N_TARGET_BINS = 5  # quantile bins of a continuous target

TableLike = object  # a DataFrame, an Arrow table, an array, a dict of columns, a list of dicts, or a list of texts
ColumnLike = str | ArrayLike | tuple[ArrayLike, ArrayLike]  # a column's name, values, or values of both tables


def read_audit_data(
    train: TableLike,
    test: TableLike | None,
    target: ColumnLike | None,
    groups: ColumnLike | None,
    time: ColumnLike | None,
    pipeline: BaseEstimator | None,
) -> AuditData:
    """Read the inputs of `audit` into columns that hold the training rows first, then the test rows."""
    sides = [_read_table(train), *([] if test is None else [_read_table(test)])]
    first = sides[0]
    names = _find_audited_columns(sides, [name for name in (target, groups, time) if isinstance(name, str)])
    label = _read_side_column("target", target, sides)
    prose = [name for name in names if _is_prose_column(first, first.names.index(name))]
    columns = tuple(_join_column(name, sides) for name in names if name not in prose)
    features = tuple(None if given is None else _drop_target(given, target) for given in (train, test))
    classes, group = ((), None) if label is None else _encode_classes(label, first.rows)
    return AuditData(
        first.rows,
        sum(side.rows for side in sides[1:]),
        columns,
        {name: [str(text) for side in sides for text in side.texts(side.names.index(name))] for name in prose},
        classes,
        group,
        target=label,
        date_columns=tuple(name for name in _find_date_columns(train) if name in names),
        groups=_read_side_column("groups", groups, sides),
        time=_read_side_column("time", time, sides),
        pipeline=pipeline,
        raw_features=(features[0], features[1]),
    )


def _find_audited_columns(sides: Sequence[Table], side_columns: Sequence[str]) -> list[str]:
    """Return the columns that all tables have, without target, groups and time, which train must have."""
    if not all(side.rows for side in sides):
        raise DataError("a table has no rows; there is nothing to audit.")
    first, last = sides[0], sides[-1]
    for name in side_columns:
        if name not in first.names:
            raise DataError(
                f"the table has no column {name!r}{suggest_name(name, first.names)}; "
                f"it has {', '.join(map(repr, first.names[:10]))}."
            )
    names = [name for name in first.names if name not in side_columns and name in last.names]
    if len(sides) > 1 and not names:
        raise DataError(f"train and test have no column in common: {first.names[:5]} and {last.names[:5]}.")
    return names


def _read_table(source: TableLike) -> Table:
    """Read a table of any kind; a list of texts becomes one column, and dates become sortable numbers."""
    if _is_text_list(source):
        texts = np.empty(len(source), dtype=object)
        texts[:] = list(source)
        return tables.read_table({"text": texts})
    check_frame(source)
    frame = nw.from_native(source, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        # dates become datetimes, and datetimes milliseconds
        days = [nw.col(name).cast(nw.Datetime("us")) for name, kind in frame.schema.items() if kind == nw.Date]
        frame = frame.with_columns(*days)
        moments = [nw.col(name).dt.timestamp("ms") for name, kind in frame.schema.items() if kind == nw.Datetime]
        return tables.read_table(frame.with_columns(*(moment.cast(nw.Float64) for moment in moments)).to_native())
    return tables.read_table(source)


def _is_text_list(source: TableLike) -> TypeGuard[Sequence[str]]:
    if hasattr(source, "columns") or isinstance(source, Mapping | str | bytes):
        return False
    if not isinstance(source, Sequence | np.ndarray) and not hasattr(source, "__iter__"):
        return False
    if getattr(source, "ndim", 1) != 1 or not hasattr(source, "__len__") or not len(source):
        return False
    return all(isinstance(text, str) for text in source)


def _is_prose_column(side: Table, column_index: int) -> bool:
    return side.column_kinds()[side.names[column_index]] == "label" and (
        len(side.names) == 1 or side.is_prose(column_index)
    )


def _drop_target(source: TableLike, target: ColumnLike | None) -> TableLike:
    """Return the table without its target, as input of the pipeline."""
    frame = nw.from_native(source, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame) and isinstance(target, str):
        features: TableLike = frame.drop(target, strict=False).to_native()
        return features
    return source


def _find_date_columns(source: TableLike) -> list[str]:
    """Return the names of the columns whose dtype is a date or a time."""
    frame = nw.from_native(source, eager_only=True, pass_through=True)
    schema = frame.schema.items() if isinstance(frame, nw.DataFrame) else ()
    return [str(name) for name, kind in schema if kind in (nw.Date, nw.Datetime)]


def _join_column(name: str, sides: Sequence[Table]) -> AuditColumn:
    """Concatenate one column of all tables; where a table does not have it, its cells are missing."""
    wide = [side.add_missing_columns([name]) for side in sides]
    kinds = {side.column_kinds()[name] for side in wide} - {"empty"}
    if len(kinds) > 1:
        raise DataError(
            f"column {name!r} holds numbers in one table and labels in the other; make it one or the other."
        )
    places = [(side, [side.names.index(name)]) for side in wide]
    if kinds == {"label"}:
        cells = reduce(LabelCells.append, (LabelCells(side.labels(place)) for side, place in places)).data
        return AuditColumn(name, labels=(cells.codes[:, 0], cells.values[0]))
    return AuditColumn(name, np.concatenate([side.numbers(place)[:, 0] for side, place in places]).astype(float))


def _read_side_column(title: str, values: ColumnLike | None, sides: Sequence[Table]) -> AuditColumn | None:
    """Read target, groups or times from a column name, values of the training rows, or a pair for both tables."""
    if values is None:
        return None
    if isinstance(values, str):
        return _join_column(values, sides)
    parts = [_read_values(title, part) for part in _split_pair(values)]
    for part, side in zip(parts, sides, strict=False):
        if part.rows != side.rows:
            raise DataError(
                f"{title} has {part.rows} values, but the table has {side.rows} rows; give one for each row."
            )
    parts += [Table(side.rows, (title,), True, (Column("empty"),)) for side in sides[len(parts) :]]
    return _join_column(title, parts)


def _split_pair(values: object) -> Sequence[object]:
    """Return the values for each table; a tuple of two scalars is taken as values of one table."""
    if not isinstance(values, tuple) or len(values) != 2:
        return [values]
    return values if all(hasattr(part, "__len__") and not isinstance(part, str) for part in values) else [values]


def _read_values(title: str, values: object) -> Table:
    """Return values as a table of one column with this title."""
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return _read_table(series.alias(title).to_frame().to_native())
    cells = np.asarray(values)
    if cells.dtype.kind == "M":
        cells = cells.astype("datetime64[ms]").astype(float)
    return tables.read_table({title: cells})


def _encode_classes(label: AuditColumn, n_train: int) -> tuple[tuple[str, ...], Array]:
    """Return the class names and the class of each row; a continuous target is cut at its quantiles."""
    codes, values = label.codes_and_values
    if label.numbers is None and len(values) * n_train > MAX_SCORE_CELLS:
        raise ModelTooLargeError(
            f"the target {label.name!r} has {len(values):,} values in {n_train:,} rows; "
            "group rare values, or audit fewer rows."
        )
    if (codes[:n_train] < 0).any():
        row = int(np.argmax(codes[:n_train] < 0))
        raise DataError(f"row {row}: the target {label.name!r} is missing; leave such rows out.")
    if label.numbers is not None and len(values) > MAX_NUMERIC_CLASSES:
        # repeated quantiles (many equal values) are merged
        edges = np.unique(np.quantile(label.numbers[:n_train], np.arange(1, N_TARGET_BINS) / N_TARGET_BINS))
        parts = np.searchsorted(edges, label.numbers, side="left")
        bounds = ["-∞", *(f"{edge:g}" for edge in edges), "∞"]
        names = tuple(f"{low} to {high}" for low, high in pairwise(bounds))
        return names, np.where(label.is_missing, -1, parts).astype(np.int32)
    return tuple(f"{v:g}" if label.numbers is not None else str(v) for v in values), codes.astype(np.int32)
