"""Dates and numbers in rows for a model that has learned them: strings, single rows, dates that are all missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date

import numpy as np

from priory.errors import DataError, KindError
from priory.model.schema import Schema
from priory.tables.dates import (
    DATE_PART_ENDINGS,
    Dates,
    convert_written,
    find_unread_dates,
    list_dates,
    list_parts,
    name_date_part,
    parse_date_strings,
    split_part_name,
)
from priory.tables.number_formats import NumberFormat
from priory.tables.table import Column, Table, make_part_column
from priory.tables.table_reading import read_table


def read_known_table(X: object, schema: Schema, is_counted: bool = False) -> Table:
    """A table as a model with this schema reads it: dates, also those that are strings, as the parts it knows.

    Dates in rows to be answered are converted to the time zone learned. Those in rows to be counted, learned or
    forgotten, must be of that zone: what is learned does not depend on which batch came first.
    """
    zones = schema.find_zones()
    table = _add_known_parts(_read_known_numbers(read_table(X, None if is_counted else zones), schema), schema)
    for name, column in zip(table.names, table.columns, strict=False):
        learned = zones.get(split_part_name(name)[0])
        if None not in (column.zone, learned) and column.zone != learned:
            raise KindError(
                f"column {split_part_name(name)[0]!r} holds dates of {column.zone or 'no time zone'}; the model has "
                f"learned dates of {learned or 'no time zone'}: convert them."
            )
    return table


def _read_known_numbers(table: Table, schema: Schema) -> Table:
    """A table whose strings are numbers where the model has learned numbers that were written as text."""
    if table.matrix is not None or not schema.formats:
        return table
    columns = dict(zip(table.names, table.columns, strict=True))
    for name, text in schema.formats:
        form, column = NumberFormat.parse(text), columns.get(name)
        if form is not None and column is not None and column.labels is not None:
            codes, values = column.labels
            numbers = np.append(form.read(values.tolist()), np.nan)[codes]
            bad = np.isnan(numbers) & (codes >= 0)
            if bad.any():
                row = int(bad.argmax())
                shown = f"row {row}, column {name!r} holds {values[codes[row]]!r}"
                raise KindError(f"{shown}; this column is numbers, written like {text}.")
            columns[name] = Column("number", numbers, format=text)
    return replace(table, columns=tuple(columns.values()))


def _add_known_parts(table: Table, schema: Schema) -> Table:
    """A table with those parts of its dates that a model knows: of dates that are strings, or all missing.

    A table of days has no hours: they are missing.
    """
    wanted = [name for name in schema.names if name.endswith(DATE_PART_ENDINGS) and name not in table.names]
    if not wanted or not table.has_names or table.matrix is not None:
        return table
    columns, zones = dict(zip(table.names, table.columns, strict=True)), schema.find_zones()
    for name, parts in find_unread_dates(table.names, schema.names).items():
        zone = zones.get(name)
        dates = _read_label_dates(columns.pop(name), name, table.rows, zone, dict(schema.formats).get(name))
        columns |= {name_date_part(name, part): make_part_column(dates, part, zone) for part in parts}
    days = list_dates(columns)
    columns |= {name: Column("empty") for name in wanted if name not in columns and split_part_name(name)[0] in days}
    return Table(table.rows, tuple(columns), True, tuple(columns.values()))


def drop_open_parts(table: Table, schema: Schema) -> Table:
    """A table without dates in the columns that the model has only seen empty: they say nothing to it."""
    opened = [name for name in list_dates(table.names) if name in schema.names and name not in table.names]
    if not opened:
        return table
    dropped = {part for name in opened for part in list_parts(name, table.names)}
    columns = {name: c for name, c in zip(table.names, table.columns, strict=True) if name not in dropped}
    columns |= {name: Column("empty") for name in opened}
    return Table(table.rows, tuple(columns), True, tuple(columns.values()))


def _read_label_dates(column: Column, name: str, n_rows: int, zone: str | None, form: str | None) -> Dates:
    """Dates that were read as labels, in a time zone if they say theirs; all missing if there are none."""
    if column.kind == "empty":
        return np.full(n_rows, np.nan), np.full(n_rows, np.nan)
    if column.labels is None:
        raise KindError(f"column {name!r} holds {column.kind}s; the model has learned dates there.")
    codes, values = column.labels
    written = values.tolist()
    days, hours = parse_date_strings(convert_written(written, name, zone) if zone else written, form)
    bad = np.append(np.isnan(days), False)[codes]  # a missing cell, whose code is -1, is not bad
    if bad.any():
        row = int(bad.argmax())
        raise DataError(f"row {row}, column {name!r} holds {values[codes[row]]!r}, which is not a date; give a date.")
    return np.append(days, np.nan)[codes], np.append(hours, np.nan)[codes]


def split_row(row: Mapping[str, object], schema: Schema, is_counted: bool) -> Mapping[str, object]:
    """One row, a dict, with the parts of its dates in the place of the dates.

    >>> from datetime import datetime
    >>> split_row({"when": datetime(2024, 5, 6, 3, 15), "n": 2}, Schema(()), True)["when (hour)"]
    '03:00 to 04:00'
    """
    if not any(isinstance(value, date) for value in row.values()) and not find_unread_dates(row.keys(), schema.names):
        return row
    parts = read_known_table([dict(row)], schema, is_counted)
    return {name: row[name] if name in row else parts.get_cell(0, j) for j, name in enumerate(parts.names)}
