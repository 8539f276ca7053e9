"""The time zone of a column of dates: that of the first dates learned, into which rows to be answered are converted.

A zone is a name such as "Europe/Berlin", "UTC" or "+05:30"; "" is that of dates without one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from priory.errors import DataError, KindError

if TYPE_CHECKING:
    import pyarrow as pa

    from priory.core.typing import Array

ZONE_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{2}):?(\d{2})")
WRITTEN_OFFSET = re.compile(r":\d{2}(?:[.,]\d+)? ?(Z|UTC|[+-]\d{2}:?\d{2})$")
NAMES_OF_UTC = {"Z", "Zulu", "GMT", "Etc/UTC", "Etc/GMT", "Etc/Zulu", "Etc/UCT", "UCT", "Universal", "+00:00", "-00:00"}

Zones = Mapping[str, str]  # of columns of dates, by name


def name_zone(zone: tzinfo | str | None) -> str:
    """The one name of a time zone; "" for none.

    >>> name_zone("Etc/UTC"), name_zone(timezone(timedelta(hours=2))), name_zone(None)
    ('UTC', '+02:00', '')
    """
    name = "" if zone is None else str(zone)
    offset = ZONE_OFFSET.fullmatch(name)
    name = f"{offset[1]}{offset[2]}:{offset[3]}" if offset else name
    return "UTC" if name in NAMES_OF_UTC else name


def find_zone(name: str) -> tzinfo:
    """The time zone of a name; an error if this machine does not know it."""
    offset = ZONE_OFFSET.fullmatch(name)
    if offset:
        length = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(-length if offset[1] == "-" else length)
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):  # an unknown name is a LookupError
        raise DataError(f"the time zone {name!r} is not known here; install tzdata, or convert the dates.") from None


def choose_zone(own: str, column: str, zones: Zones | None) -> str:
    """The zone to convert a column to: the one learned, or its own if none was; an error where only one has a zone."""
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
    """Moments of an Arrow array with a time zone, as local times of another."""
    import pyarrow as pa
    import pyarrow.compute as pc

    local = pc.local_timestamp(moments.cast(pa.timestamp("us", zone), safe=False))
    return local.to_numpy(zero_copy_only=False) if isinstance(local, pa.Array) else local.to_numpy()


def convert_objects(cells: Sequence[object], column: str, zones: Zones | None) -> tuple[Sequence[object], str | None]:
    """Python's dates as local times of one zone, and the zone, None for days; dates to be learned must have one."""
    first: dict[str, int] = {}
    for row, cell in enumerate(cells):
        if isinstance(cell, datetime):
            first.setdefault(name_zone(cell.tzinfo), row)
    known = zones is not None and column in zones
    if len(first) > 1 and not known:
        shown = " and ".join(f"{zone or 'none'} (row {row})" for zone, row in list(first.items())[:2])
        raise KindError(f"column {column!r} holds dates of several time zones, {shown}; convert them to one.")
    targets = {own: choose_zone(own, column, zones) for own in first}
    zone = next(iter(targets.values()), None)
    if zone is None or targets.keys() == {zone}:
        return cells, zone
    target = find_zone(zone)
    return [cell.astimezone(target) if isinstance(cell, datetime) else cell for cell in cells], zone


def convert_written(values: Sequence[str | None], column: str, zone: str) -> list[str | None]:
    """Dates that are written with an offset, such as 2024-05-31T12:00+02:00, as local times; others as they are."""
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
    """Whether a file may name this as a time zone."""
    return isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9_+\-:/]{1,60}", name) is not None and ".." not in name
