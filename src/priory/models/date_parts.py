"""The parts of a date that a model can learn: the hour, the weekday, the month, and the day as a number.

A part of a column is a column of its own, such as ``when (weekday)`` of the column ``when``. It is computed wherever a
table has the column but not the part, so a model that has learned it reads any table with the same dates. Dates are two
arrays: the days since 1970 and the hour as it is written, the time of day where the row was made. NaN is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date, datetime

import numpy as np

from priory.core.typing import Array
from priory.models.table import Column

HOUR, WEEKDAY, MONTH, DAY = "hour", "weekday", "month", "days since 2000"
KIND_BY_DATE_PART = {HOUR: "label", WEEKDAY: "label", MONTH: "label", DAY: "number"}
DATE_PART_ENDINGS = tuple(f" ({part})" for part in KIND_BY_DATE_PART)
DAY_ENDING = f" ({DAY})"
FIRST_DAY = 10957  # of 2000, in days since 1970
FIRST_ORDINAL = date(1970, 1, 1).toordinal()
PART_NAMES = {
    HOUR: tuple(f"{hour:02d}:00 to {hour + 1:02d}:00" for hour in range(24)),
    WEEKDAY: ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    MONTH: (
        "January", "February", "March", "April", "May", "June",
        "July", "August", "September", "October", "November", "December",
    ),
}  # fmt: skip

Dates = tuple[Array, Array]  # (rows,) days since 1970, and (rows,) hours


def name_date_part(column: str, part: str) -> str:
    """The name of a part of a column of dates.

    >>> name_date_part("when", WEEKDAY)
    'when (weekday)'
    """
    return f"{column} ({part})"


def split_part_name(name: str) -> tuple[str, str]:
    """The column and the part that a name stands for; the name and no part if it is not that of a part.

    >>> split_part_name("when (weekday)"), split_part_name("when")
    (('when', 'weekday'), ('when', ''))
    """
    if not name.endswith(DATE_PART_ENDINGS):
        return name, ""
    part = next(part for part in KIND_BY_DATE_PART if name.endswith(f" ({part})"))
    return name.removesuffix(f" ({part})"), part


def find_source_column(name: str, columns: Collection[str]) -> str:
    """The column of a table that the cells of a model's column come from.

    >>> find_source_column("when (weekday)", ["when"]), find_source_column("n", ["when", "n"])
    ('when', 'n')
    """
    source, _ = split_part_name(name)
    return source if name not in columns and source in columns else name


def encode_date_part(dates: Dates, part: str) -> Array:
    """The number of a part's name in `PART_NAMES` for each date, -1 where it is missing.

    >>> noon = np.array([8892.0 + FIRST_DAY]), np.array([12.0])
    >>> PART_NAMES[WEEKDAY][encode_date_part(noon, WEEKDAY)[0]], PART_NAMES[MONTH][encode_date_part(noon, MONTH)[0]]
    ('Monday', 'May')
    """
    days, hours = dates
    cells = hours if part == HOUR else days
    whole = np.nan_to_num(cells).astype(np.int64)
    if part == WEEKDAY:
        whole = (whole + 3) % 7  # 1970 began on a Thursday
    if part == MONTH:
        whole = whole.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12
    return np.where(np.isnan(cells), -1, whole)


def make_part_column(dates: Dates, part: str, zone: str | None) -> Column:
    """A part of each date as a column: names as a person would say them, or the day as a number."""
    if part == DAY:
        return Column("number", dates[0] - FIRST_DAY, zone=zone)
    codes = encode_date_part(dates, part)
    used = sorted(set(codes[codes >= 0].tolist()), key=lambda code: PART_NAMES[part][code])
    if not used:
        return Column("empty")
    rank = np.full(len(PART_NAMES[part]) + 1, -1, dtype=np.int32)
    rank[used] = np.arange(len(used))
    labels = rank[codes], np.array([PART_NAMES[part][code] for code in used], dtype=object)
    return Column("label", labels=labels, zone=zone)


def split_dates(name: str, dates: Dates, zone: str | None) -> dict[str, Column]:
    """The parts of a column of dates, by name: the hour if any date has one, and all others.

    ``zone`` is that of moments, "" if they have none; days have no zone. A column without a single date is empty, as
    any column: which parts it has is open.
    """
    days, hours = dates
    if np.isnan(days).all():
        return {name: Column("empty")}
    parts = [part for part in KIND_BY_DATE_PART if part != HOUR or not np.isnan(hours).all()]
    return {name_date_part(name, part): make_part_column(dates, part, zone) for part in parts}


def list_dates(names: Collection[str]) -> set[str]:
    """The columns of dates whose parts are among some names."""
    return {name.removesuffix(DAY_ENDING) for name in names if name.endswith(DAY_ENDING)}


def list_parts(column: str, names: Collection[str]) -> list[str]:
    """The parts of a column of dates that are among some names, in their one order."""
    return [name for part in KIND_BY_DATE_PART if (name := name_date_part(column, part)) in names]


def join_date_names(names: Sequence[str], given: Collection[str]) -> tuple[str, ...]:
    """Names of columns with the parts of dates that are given too, in the place of the column, known or not.

    >>> join_date_names(["when", "n"], ["when (weekday)", "when (month)", "when (days since 2000)"])
    ('when (weekday)', 'when (month)', 'when (days since 2000)', 'n')
    """
    dates, joined = list_dates(given), dict[str, None]()
    for name in names:
        column = split_part_name(name)[0] if name not in dates else name
        parts = list_parts(column, {*names, *given}) if column in dates else [name]
        joined |= dict.fromkeys(parts)
    return tuple(joined)


def drop_empty_parts(names: Sequence[str], filled: Collection[str], declared: Collection[str]) -> tuple[str, ...]:
    """Names of columns without the parts of dates that hold nothing; a column of dates without any is one name again.

    Dates with a declared part are as they are.
    """
    dates, left = {column for column in list_dates(names) if not list_parts(column, declared)}, dict[str, None]()
    for name in names:
        column = split_part_name(name)[0]
        left |= dict.fromkeys(list_parts(column, filled) or [column] if column in dates else [name])
    return tuple(left)


def read_moments(cells: Array, has_hours: bool) -> Dates:
    """Dates of an array of NumPy's ``datetime64``."""
    hours = cells.astype("datetime64[h]")
    days, missing = hours.astype("datetime64[D]"), np.isnat(cells)
    numbers = days.astype(np.int64), (hours - days).astype(np.int64)
    return np.where(missing, np.nan, numbers[0]), np.where(missing | (not has_hours), np.nan, numbers[1])


def read_date_objects(cells: Sequence[object]) -> Dates:
    """Dates of Python's ``date`` and ``datetime``; whatever else is missing. The hour is that of their time zone."""
    days = [cell.toordinal() - FIRST_ORDINAL if isinstance(cell, date) else np.nan for cell in cells]
    hours = [cell.hour if isinstance(cell, datetime) else np.nan for cell in cells]
    return np.array(days, dtype=float), np.array(hours, dtype=float)


def find_unread_dates(names: Collection[str], known: Collection[str]) -> dict[str, list[str]]:
    """The parts in ``known`` that a table with these columns lacks, by the column of dates they are parts of."""
    found: dict[str, list[str]] = {}
    for name in known:
        if name.endswith(DATE_PART_ENDINGS) and name not in names:
            column, part = split_part_name(name)
            if column in names and column not in known:
                found.setdefault(column, []).append(part)
    return found
