"""Dates that are written as text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from priory.models.date_parts import Dates

# The date, and the hour as it is written: the time of day where the row was made, whatever its time zone.
DATE_AND_HOUR = (
    r"^(?P<date>[^T:]*?)(?:(?:T| +)(?P<hour>\d{1,2}):\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|UTC|[+-]\d{2}:?\d{2}))?)?$"
)
YEAR = r"(^|\D)\d{4}(\D|$)"  # of four digits: 24 could also be a day
DATE_FORMATS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d %b %Y", "%d-%b-%Y", "%b %d, %Y", "%b %d %Y")
DAY_LENGTH = len("2024-05-31")
PLAIN_LENGTHS = pa.array([DAY_LENGTH, len("2024-05-31 12:00"), len("2024-05-31 12:00:00")], pa.int32())


def parse_dates(cells: pa.Array) -> Dates:
    """For each cell the days since 1970, NaN if it is no date, and the hour, NaN if it has none.

    Years come first, or days before months with points or names between them; 03/04/2024 could be either and is none.

    >>> days, hours = parse_dates(pa.array(["1970-01-02T03:59:00+02:00", "2.1.1970", "03/04/2024"]))
    >>> days.tolist(), hours.tolist()
    ([1.0, 1.0, nan], [3.0, nan, nan])
    """
    if not (pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type)):
        cells = cells.cast(pa.string())
    plain = _parse_plain_dates(cells)
    return _parse_any_dates(cells) if plain is None else plain


def parse_date_strings(cells: Sequence[str | None]) -> Dates:
    """The same for a list of strings."""
    return parse_dates(pa.array(cells, pa.string()))


def _parse_plain_dates(cells: pa.Array) -> Dates | None:
    """Dates as 2024-05-31 12:00:00, which Arrow reads much faster; None if a cell is written in another way."""
    lengths = pc.utf8_length(cells)
    if not pc.all(pc.is_in(lengths.cast(pa.int32()), PLAIN_LENGTHS).filter(cells.is_valid())).as_py():
        return None
    try:
        seconds = cells.cast(pa.timestamp("s")).cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    moments = _make_floats(seconds)
    days = np.floor(moments / 86_400)
    has_hour = np.asarray(lengths.fill_null(0)) > DAY_LENGTH
    return days, np.where(has_hour, np.floor((moments - 86_400 * days) / 3_600), np.nan)


def _parse_any_dates(cells: pa.Array) -> Dates:
    parts = pc.extract_regex(pc.utf8_trim_whitespace(cells), DATE_AND_HOUR)
    dates, hours = (pc.struct_field(parts, name) for name in ("date", "hour"))
    coded = dates.dictionary_encode()  # of many moments there are few days
    days = np.append(_parse_days(coded.dictionary), np.nan)[np.asarray(coded.indices.fill_null(-1))]
    blank = pc.or_kleene(hours.is_null(), pc.equal(hours, ""))
    written = pc.if_else(blank, pa.scalar(None, hours.type), hours)
    return days, np.where(np.isnan(days), np.nan, _make_floats(written.cast(pa.int64())))


def _parse_days(dates: pa.Array) -> np.ndarray:
    has_year = pc.match_substring_regex(dates, YEAR)
    dates = pc.if_else(has_year, dates, pa.scalar(None, dates.type))
    stamps = [pc.strptime(dates, format=form, unit="s", error_is_null=True) for form in DATE_FORMATS]
    return _make_floats(pc.coalesce(*stamps).cast(pa.date32()).cast(pa.int32()))


def _make_floats(cells: pa.Array) -> np.ndarray:
    return np.asarray(cells.cast(pa.float64()).to_numpy(zero_copy_only=False))
