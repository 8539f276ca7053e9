"""Parse dates and split them into the parts that a model learns (hour, weekday, month, day number)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy import ndarray as Array

from priory.errors import DataError, KindError

# The date, and the hour as written, in local time: an offset after it is matched but not applied.
DATE_AND_HOUR = (
    r"^(?P<date>[^T:]*?)(?:(?:T| +)(?P<hour>\d{1,2}):\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|UTC|[+-]\d{2}:?\d{2}))?)?$"
)
YEAR = r"(^|\D)\d{4}(\D|$)"  # of four digits: 24 could also be a day
DATE_FORMATS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d %b %Y", "%d-%b-%Y", "%b %d, %Y", "%b %d %Y")
DAY_FIRST, MONTH_FIRST = "31/12/2024", "12/31/2024"  # notations of dates with slashes, as the last day of 2024
ORDERED_FORMATS = {DAY_FIRST: ("%d/%m/%Y", "%d-%m-%Y", "%d/%m/%y"), MONTH_FIRST: ("%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y")}
DAY_LENGTH = len("2024-05-31")
PLAIN_LENGTHS = (DAY_LENGTH, len("2024-05-31 12:00"), len("2024-05-31 12:00:00"))


def parse_dates(cells: pa.Array, form: str | None = None) -> Dates:
    """Parse strings to days since 1970 and hours, both (rows,); NaN where there is none.

    The year comes first, or else the day before the month, as in 31.5.2024; 03/04/2024 is a date only in a known
    ``form``, `DAY_FIRST` or `MONTH_FIRST`.

    >>> days, hours = parse_dates(pa.array(["1970-01-02T03:59:00+02:00", "2.1.1970", "03/04/2024"]))
    >>> days.tolist(), hours.tolist()
    ([1.0, 1.0, nan], [3.0, nan, nan])
    >>> parse_dates(pa.array(["03/01/1970"]), DAY_FIRST)[0].tolist()
    [2.0]
    """
    if not (pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type)):
        cells = cells.cast(pa.string())
    plain = _parse_plain_dates(cells)
    return _parse_any_dates(cells, form) if plain is None else plain


def parse_date_strings(cells: Sequence[str | None], form: str | None = None) -> Dates:
    """Parse a list of strings, as `parse_dates`."""
    return parse_dates(pa.array(cells, pa.string()), form)


def find_date_formats(cells: pa.Array) -> list[str | None]:
    """Find the notations in which all cells are dates; both if the column leaves open what 03/04/2024 is.

    >>> find_date_formats(pa.array(["03/04/2024"])), find_date_formats(pa.array(["03/04/2024", "31/05/2024"]))
    (['31/12/2024', '12/31/2024'], ['31/12/2024'])
    """
    present = np.asarray(cells.is_valid())
    found: dict[bytes, str | None] = {}
    for form in (None, DAY_FIRST, MONTH_FIRST):
        days = parse_dates(cells, form)[0][present]
        if not np.isnan(days).any():
            found.setdefault(days.tobytes(), form)
    return list(found.values())


def _parse_plain_dates(cells: pa.Array) -> Dates | None:
    """Parse dates such as 2024-05-31 12:00:00 by Arrow's fast cast; None if a cell has another format."""
    lengths = np.asarray(pc.utf8_length(cells).fill_null(DAY_LENGTH))
    if not np.isin(lengths, PLAIN_LENGTHS).all():
        return None
    try:
        seconds = cells.cast(pa.timestamp("s")).cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    # seconds since 1970, NaN where missing
    moments = _make_floats(seconds)
    days = np.floor(moments / 86_400)
    return days, np.where(lengths > DAY_LENGTH, np.floor((moments - 86_400 * days) / 3_600), np.nan)


def _parse_any_dates(cells: pa.Array, form: str | None) -> Dates:
    # a cell that does not match is null in both fields
    parts = pc.extract_regex(pc.utf8_trim_whitespace(cells), DATE_AND_HOUR)
    dates, hours = (pc.struct_field(parts, name) for name in ("date", "hour"))
    coded = dates.dictionary_encode()  # of many moments there are few days
    days = np.append(_parse_days(coded.dictionary, form), np.nan)[np.asarray(coded.indices.fill_null(-1))]
    blank = pc.or_kleene(hours.is_null(), pc.equal(hours, ""))
    written = pc.if_else(blank, pa.scalar(None, hours.type), hours)
    return days, np.where(np.isnan(days), np.nan, _make_floats(written.cast(pa.int64())))


def _parse_days(dates: pa.Array, form: str | None) -> np.ndarray:
    has_year, nothing = pc.match_substring_regex(dates, YEAR), pa.scalar(None, dates.type)
    long, short = pc.if_else(has_year, dates, nothing), pc.if_else(has_year, nothing, dates)  # 2024 or 24
    # every format is tried on all cells; the first that fits wins
    stamps = [
        pc.strptime(short if pattern.endswith("%y") else long, format=pattern, unit="s", error_is_null=True)
        for pattern in (*DATE_FORMATS, *ORDERED_FORMATS.get(form or "", ()))
    ]
    return _make_floats(pc.coalesce(*stamps).cast(pa.date32()).cast(pa.int32()))


def _make_floats(cells: pa.Array) -> np.ndarray:
    return np.asarray(cells.cast(pa.float64()).to_numpy(zero_copy_only=False))


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
    """Name a part of a column of dates.

    >>> name_date_part("when", WEEKDAY)
    'when (weekday)'
    """
    return f"{column} ({part})"


def split_part_name(name: str) -> tuple[str, str]:
    """Split a name into column and date part; the part is "" if it is not a date part.

    >>> split_part_name("when (weekday)"), split_part_name("when")
    (('when', 'weekday'), ('when', ''))
    """
    if not name.endswith(DATE_PART_ENDINGS):
        return name, ""
    part = next(part for part in KIND_BY_DATE_PART if name.endswith(f" ({part})"))
    return name.removesuffix(f" ({part})"), part


def find_source_column(name: str, columns: Collection[str]) -> str:
    """Find the column of a table that a model's column is read from.

    >>> find_source_column("when (weekday)", ["when"]), find_source_column("n", ["when", "n"])
    ('when', 'n')
    """
    source, _ = split_part_name(name)
    return source if name not in columns and source in columns else name


def encode_date_part(dates: Dates, part: str) -> Array:
    """Encode a part of each date as an index into `PART_NAMES`, -1 where missing: (rows,).

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


def read_date_part(dates: Dates, part: str) -> Array | tuple[Array, Array] | None:
    """Read a part of each date: day numbers (rows,), or codes (rows,) and sorted labels; None if all are missing."""
    if part == DAY:
        return np.asarray(dates[0] - FIRST_DAY)
    codes = encode_date_part(dates, part)
    used = sorted(set(codes[codes >= 0].tolist()), key=lambda code: PART_NAMES[part][code])
    if not used:
        return None
    # from codes of PART_NAMES to places among the sorted labels; code -1 reads the last entry, -1
    rank = np.full(len(PART_NAMES[part]) + 1, -1, dtype=np.int32)
    rank[used] = np.arange(len(used))
    return rank[codes], np.array([PART_NAMES[part][code] for code in used], dtype=object)


def list_shown_parts(dates: Dates) -> list[str]:
    """List the parts that dates have: none without a single date, and the hour only if a date has one."""
    days, hours = dates
    if np.isnan(days).all():
        return []
    return [part for part in KIND_BY_DATE_PART if part != HOUR or not np.isnan(hours).all()]


def list_dates(names: Collection[str]) -> set[str]:
    """Find the columns of dates that have parts among ``names``."""
    return {name.removesuffix(DAY_ENDING) for name in names if name.endswith(DAY_ENDING)}


def list_parts(column: str, names: Collection[str]) -> list[str]:
    """List the parts of a column of dates that are among ``names``, in the order of `KIND_BY_DATE_PART`."""
    return [name for part in KIND_BY_DATE_PART if (name := name_date_part(column, part)) in names]


def join_date_names(names: Sequence[str], given: Collection[str]) -> tuple[str, ...]:
    """Replace columns of dates by their parts, known or given, in the same places.

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
    """Drop the parts of dates without cells; a column of dates without any part gets its own name back.

    Dates with a declared part are left unchanged.
    """
    dates, left = {column for column in list_dates(names) if not list_parts(column, declared)}, dict[str, None]()
    for name in names:
        column = split_part_name(name)[0]
        left |= dict.fromkeys(list_parts(column, filled) or [column] if column in dates else [name])
    return tuple(left)


def read_moments(cells: Array, has_hours: bool) -> Dates:
    """Read an array of ``datetime64``."""
    # the unit truncates downwards, also before 1970
    hours = cells.astype("datetime64[h]")
    days, missing = hours.astype("datetime64[D]"), np.isnat(cells)
    numbers = days.astype(np.int64), (hours - days).astype(np.int64)
    return np.where(missing, np.nan, numbers[0]), np.where(missing | (not has_hours), np.nan, numbers[1])


def read_date_objects(cells: Sequence[object]) -> Dates:
    """Read Python's ``date`` and ``datetime``, hours in their own zone; other objects are missing."""
    days = [cell.toordinal() - FIRST_ORDINAL if isinstance(cell, date) else np.nan for cell in cells]
    hours = [cell.hour if isinstance(cell, datetime) else np.nan for cell in cells]
    return np.array(days, dtype=float), np.array(hours, dtype=float)


def find_unread_dates(names: Collection[str], known: Collection[str]) -> dict[str, list[str]]:
    """Map each column that should be dates to the parts in ``known`` that the table lacks."""
    found: dict[str, list[str]] = {}
    for name in known:
        if name.endswith(DATE_PART_ENDINGS) and name not in names:
            column, part = split_part_name(name)
            if column in names and column not in known:
                found.setdefault(column, []).append(part)
    return found


ZONE_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{2}):?(\d{2})")
WRITTEN_OFFSET = re.compile(r":\d{2}(?:[.,]\d+)? ?(Z|UTC|[+-]\d{2}:?\d{2})$")
NAMES_OF_UTC = {"Z", "Zulu", "GMT", "Etc/UTC", "Etc/GMT", "Etc/Zulu", "Etc/UCT", "UCT", "Universal", "+00:00", "-00:00"}

Zones = Mapping[str, str]  # of columns of dates, by name


def name_zone(zone: tzinfo | str | None) -> str:
    """Return the canonical name of a time zone; "" for none.

    >>> name_zone("Etc/UTC"), name_zone(timezone(timedelta(hours=2))), name_zone(None)
    ('UTC', '+02:00', '')
    """
    name = "" if zone is None else str(zone)
    offset = ZONE_OFFSET.fullmatch(name)
    name = f"{offset[1]}{offset[2]}:{offset[3]}" if offset else name
    return "UTC" if name in NAMES_OF_UTC else name


def find_zone(name: str) -> tzinfo:
    """Find a time zone by name; raise an error if this machine does not know it."""
    offset = ZONE_OFFSET.fullmatch(name)
    if offset:
        length = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(-length if offset[1] == "-" else length)
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):  # an unknown name is a LookupError
        raise DataError(f"the time zone {name!r} is not known here; install tzdata, or convert the dates.") from None


def choose_zone(own: str, column: str, zones: Zones | None) -> str:
    """Choose the zone to convert a column to: learned, or else its own; raise if only one of them has a zone."""
    learned = own if zones is None else zones.get(column, own)
    if own and not learned:
        raise KindError(
            f"column {column!r} holds dates of {own}; the model has learned dates without a time zone: take their "
            "local time, such as with .dt.tz_localize(None)."
        )
    if learned and not own:
        raise KindError(
            f"column {column!r} holds dates without a time zone; the model has learned dates of {learned}: say which "
            f"zone they are of, such as with .dt.tz_localize({learned!r})."
        )
    return learned


def convert_moments(moments: pa.Array, zone: str) -> Array:
    """Convert an Arrow array of moments to local times in another zone."""
    local = pc.local_timestamp(moments.cast(pa.timestamp("us", zone), safe=False))
    return local.to_numpy(zero_copy_only=False) if isinstance(local, pa.Array) else local.to_numpy()


def convert_objects(cells: Sequence[object], column: str, zones: Zones | None) -> tuple[Sequence[object], str | None]:
    """Convert Python's dates to local times of one zone; also return the zone, None for days."""
    first: dict[str, int] = {}
    for row, cell in enumerate(cells):
        if isinstance(cell, datetime):
            first.setdefault(name_zone(cell.tzinfo), row)
    known = zones is not None and column in zones
    if len(first) > 1 and not known:
        shown = " and ".join(f"{zone or 'none'} (row {row})" for zone, row in list(first.items())[:2])
        raise KindError(f"column {column!r} holds dates of several time zones, {shown}; convert them to one.")
    # rows to be answered may have several zones; all are converted to the learned one
    targets = {own: choose_zone(own, column, zones) for own in first}
    zone = next(iter(targets.values()), None)
    if zone is None or targets.keys() == {zone}:
        return cells, zone
    target = find_zone(zone)
    return [cell.astimezone(target) if isinstance(cell, datetime) else cell for cell in cells], zone


def convert_written(values: Sequence[str | None], column: str, zone: str) -> list[str | None]:
    """Convert strings with an offset, such as 2024-05-31T12:00+02:00, to local times; keep others."""
    return [_convert_text(value, column, zone) if WRITTEN_OFFSET.search(value or "") else value for value in values]


def _convert_text(value: str | None, column: str, zone: str) -> str:
    value = str(value)
    try:
        moment = datetime.fromisoformat(value.removesuffix("UTC").strip() + ("Z" if value.endswith("UTC") else ""))
    except ValueError:
        raise DataError(
            f"column {column!r} holds {value!r}, which is not converted to {zone}; write it as 2024-05-31T12:00+02:00."
        ) from None
    return str(moment.astimezone(find_zone(zone)).replace(tzinfo=None))


def is_zone(name: object) -> bool:
    """Whether a name has the form of a time zone; names in files are not trusted."""
    return isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9_+\-:/]{1,60}", name) is not None and ".." not in name
