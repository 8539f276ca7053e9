"""Dates in rows for a model that has learned parts of them: strings, single rows, and dates that are all missing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date

import numpy as np

from priory.errors import DataError, KindError
from priory.models.date_parts import (
    DATE_PART_ENDINGS,
    DAY,
    Dates,
    find_unread_dates,
    make_part_column,
    name_date_part,
    split_part_name,
)
from priory.models.table import Column, Table
from priory.models.table_reading import read_table


def add_known_parts(table: Table, known: Collection[str]) -> Table:
    """A table with those parts of its dates that a model knows: of dates that are strings, or all missing.

    A table of days has no hours: they are missing.
    """
    wanted = [name for name in known if name.endswith(DATE_PART_ENDINGS) and name not in table.names]
    if not wanted or not table.has_names or table.matrix is not None:
        return table
    columns = dict(zip(table.names, table.columns, strict=True))
    for name, parts in find_unread_dates(table.names, known).items():
        dates = _read_label_dates(columns.pop(name), name, table.rows)
        columns |= {name_date_part(name, part): make_part_column(dates, part) for part in parts}
    days = {name.removesuffix(f" ({DAY})") for name in columns if name.endswith(f" ({DAY})")}
    columns |= {name: Column("empty") for name in wanted if name not in columns and split_part_name(name)[0] in days}
    return Table(table.rows, tuple(columns), True, tuple(columns.values()))


def _read_label_dates(column: Column, name: str, n_rows: int) -> Dates:
    """Dates that were read as labels; all missing if there are none."""
    if column.kind == "empty":
        return np.full(n_rows, np.nan), np.full(n_rows, np.nan)
    if column.labels is None:
        raise KindError(f"column {name!r} holds {column.kind}s; the model has learned dates there.")
    from priory.models.date_parsing import parse_date_strings  # it imports pyarrow

    codes, values = column.labels
    days, hours = parse_date_strings(values.tolist())
    bad = np.append(np.isnan(days), False)[codes]  # a missing cell, whose code is -1, is not bad
    if bad.any():
        row = int(bad.argmax())
        raise DataError(f"row {row}, column {name!r} holds {values[codes[row]]!r}, which is not a date; give a date.")
    return np.append(days, np.nan)[codes], np.append(hours, np.nan)[codes]


def split_row(row: Mapping[str, object], known: Collection[str]) -> Mapping[str, object]:
    """One row, a dict, with the parts of its dates in the place of the dates.

    >>> from datetime import datetime
    >>> split_row({"when": datetime(2024, 5, 6, 3, 15), "n": 2}, ())["when (hour)"]
    '03:00 to 04:00'
    """
    if not any(isinstance(value, date) for value in row.values()) and not find_unread_dates(row.keys(), known):
        return row
    parts = add_known_parts(read_table([dict(row)]), known)
    return {name: row[name] if name in row else parts.get_cell(0, j) for j, name in enumerate(parts.names)}
