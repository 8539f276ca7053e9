"""Dates as columns that a model can learn: the hour, the weekday, the month, and the day as a number.

A part of a column is a column of its own, such as ``when (weekday)`` of the column ``when``. It is computed whenever a
file has the column but not the part, so a model that has learned it reads any file with the same dates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from priory.sources.cell_parsing import is_text_column, mask_missing_cells, shorten_cell
from priory.sources.chunk import RowChunk

HOUR, WEEKDAY, MONTH, DAY = "hour", "weekday", "month", "days since 2000"
KIND_BY_DATE_PART = {HOUR: "label", WEEKDAY: "label", MONTH: "label", DAY: "number"}
DATE_PART_ENDINGS = tuple(f" ({part})" for part in KIND_BY_DATE_PART)
FIRST_DAY = 10957  # of 2000, in days since 1970
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
# The date, and the hour as it is written: the time of day where the row was made, whatever its time zone.
DATE_AND_HOUR = (
    r"^(?P<date>[^T:]*?)(?:(?:T| +)(?P<hour>\d{1,2}):\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|UTC|[+-]\d{2}:?\d{2}))?)?$"
)
YEAR = r"(^|\D)\d{4}(\D|$)"  # of four digits: 24 could also be a day
DATE_FORMATS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d %b %Y", "%d-%b-%Y", "%b %d, %Y", "%b %d %Y")


def name_date_part(column: str, part: str) -> str:
    """The name of a part of a column of dates.

    >>> name_date_part("when", WEEKDAY)
    'when (weekday)'
    """
    return f"{column} ({part})"


def find_date_column(name: str, file_columns: Sequence[str]) -> tuple[str, str] | None:
    """The column and the part that a name stands for; None if it is not a part of a column of the file.

    >>> find_date_column("when (weekday)", ["when"]), find_date_column("when", ["when"])
    (('when', 'weekday'), None)
    """
    for part in KIND_BY_DATE_PART:
        column = name.removesuffix(f" ({part})")
        if column != name and column in file_columns and name not in file_columns:
            return column, part
    return None


def find_source_column(name: str, file_columns: Sequence[str]) -> str:
    """The column of a file that the cells of a model's column come from."""
    found = find_date_column(name, file_columns)
    return name if found is None else found[0]


def read_date_part(chunk: RowChunk, column: str, part: str, missing: frozenset[str]) -> pa.Array:
    """A part of each date of a column, null where it is missing; a cell that is no date is an error that names it."""
    cells = mask_missing_cells(chunk.batch.column(column), missing)
    days, hours = parse_dates(cells)
    bad = np.array(pc.and_(cells.is_valid(), days.is_null()))
    if bad.any():
        row = int(bad.argmax())
        problem = f"{shorten_cell(str(cells[row].as_py()))} is not a date"
        raise chunk.make_cell_error(row, column, problem, "write it as 2024-05-31, or leave the cell empty")
    return compute_date_part(days, hours, part)


def parse_dates(cells: pa.Array) -> tuple[pa.Int32Array, pa.Int32Array]:
    """For each cell the days since 1970, null if it is no date, and the hour, null if it has none.

    Years come first, or days before months with points or names between them; 03/04/2024 could be either and is none.

    >>> days, hours = parse_dates(pa.array(["1970-01-02T03:59:00+02:00", "2.1.1970", "03/04/2024"]))
    >>> days.to_pylist(), hours.to_pylist()
    ([1, 1, None], [3, None, None])
    """
    text = cells if is_text_column(cells) else cells.cast(pa.string())
    parts = pc.extract_regex(pc.utf8_trim_whitespace(text), DATE_AND_HOUR)
    dates, hours = (pc.struct_field(parts, name) for name in ("date", "hour"))
    has_year = pc.match_substring_regex(dates, YEAR)
    dates = pc.if_else(has_year, dates, pa.scalar(None, pa.string()))
    stamps = [pc.strptime(dates, format=form, unit="s", error_is_null=True) for form in DATE_FORMATS]
    days = pc.coalesce(*stamps).cast(pa.date32()).cast(pa.int32())
    blank = pc.or_kleene(hours.is_null(), pc.equal(hours, ""))
    return days, pc.if_else(blank, pa.scalar(None, pa.string()), hours).cast(pa.int32())


def compute_date_part(days: pa.Int32Array, hours: pa.Int32Array, part: str) -> pa.Array:
    """A part of each date: in words, as a person would say it, or the day as a number.

    >>> [compute_date_part(*parse_dates(pa.array(["2024-05-06 03:15"])), part)[0].as_py() for part in KIND_BY_DATE_PART]
    ['03:00 to 04:00', 'Monday', 'May', 8892.0]
    """
    if part == DAY:
        return pc.subtract(days, FIRST_DAY).cast(pa.float64())
    if part == HOUR:
        names = [f"{hour:02d}:00 to {hour + 1:02d}:00" for hour in range(24)]
        return pa.array(names, pa.string()).take(hours)
    if part == WEEKDAY:
        numbers = np.asarray(days.fill_null(0)) + 3  # 1970 began on a Thursday
        return pa.array(WEEKDAYS, pa.string()).take(pa.array(numbers % 7, mask=np.asarray(days.is_null())))
    return pa.array(MONTHS, pa.string()).take(pc.subtract(pc.month(days.cast(pa.date32())), 1))


def choose_date_parts(cells: pa.Array) -> list[str]:
    """The parts of a column of dates that differ between its rows."""
    days, hours = parse_dates(cells)
    return [p for p in KIND_BY_DATE_PART if len(pc.unique(compute_date_part(days, hours, p).drop_null())) > 1]
