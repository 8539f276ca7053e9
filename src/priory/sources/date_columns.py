"""Columns of dates in files: the parts of them that a model learns, computed where a file has no such column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from priory.models.date_parsing import parse_dates
from priory.models.date_parts import (
    DAY,
    FIRST_DAY,
    KIND_BY_DATE_PART,
    PART_NAMES,
    Dates,
    encode_date_part,
    find_unread_dates,
    name_date_part,
)
from priory.models.time_zones import Zones, choose_zone, convert_written, name_zone
from priory.sources.cell_parsing import mask_missing_cells, shorten_cell
from priory.sources.chunk import RowChunk


def add_date_parts(chunk: RowChunk, names: Sequence[str], missing: frozenset[str], zones: Zones) -> RowChunk:
    """A chunk with those of the named columns that are parts of its dates, in the time zones that were learned."""
    batch = chunk.batch
    for column, parts in find_unread_dates(batch.schema.names, names).items():
        dates = read_dates(chunk, column, missing, zones)
        for part in parts:
            batch = batch.append_column(name_date_part(column, part), compute_date_part(dates, part))
    return chunk if batch is chunk.batch else chunk._replace(batch=batch)


def read_dates(chunk: RowChunk, column: str, missing: frozenset[str], zones: Zones) -> Dates:
    """The dates of a column; a cell that is no date is an error that names it."""
    cells = _convert_zone(chunk, mask_missing_cells(chunk.batch.column(column), missing), column, zones)
    dates = parse_dates(cells)
    bad = np.asarray(cells.is_valid()) & np.isnan(dates[0])
    if bad.any():
        row = int(bad.argmax())
        problem = f"{shorten_cell(str(cells[row].as_py()))} is not a date"
        raise chunk.make_cell_error(row, column, problem, "write it as 2024-05-31, or leave the cell empty")
    return dates


def _convert_zone(chunk: RowChunk, cells: pa.Array, column: str, zones: Zones) -> pa.Array:
    """Dates as local times of the zone that was learned, if they say which zone they are of."""
    own = find_declared_zone(chunk, column)
    zone = zones.get(column) if own is None else choose_zone(own, column, zones)
    return pa.array(convert_written(cells.to_pylist(), column, zone), pa.string()) if zone and zone != own else cells


def find_declared_zone(chunk: RowChunk, column: str) -> str | None:
    """The time zone that the type of a column has, "" for moments without one; None where there are no such types."""
    schema = getattr(chunk.file, "schema", None)
    kind = schema.field(column).type if isinstance(schema, pa.Schema) and column in schema.names else None
    return name_zone(kind.tz) if kind is not None and pa.types.is_timestamp(kind) else None


def compute_date_part(dates: Dates, part: str) -> pa.Array:
    """A part of each date: in words, as a person would say it, or the day as a number.

    >>> [compute_date_part(parse_dates(pa.array(["2024-05-06 03:15"])), part)[0].as_py() for part in KIND_BY_DATE_PART]
    ['03:00 to 04:00', 'Monday', 'May', 8892.0]
    """
    if part == DAY:
        return pa.array(dates[0] - FIRST_DAY, from_pandas=True)
    codes = encode_date_part(dates, part)
    return pa.array(PART_NAMES[part], pa.string()).take(pa.array(codes, mask=codes < 0))


def choose_date_parts(cells: pa.Array) -> list[str]:
    """The parts of a column of dates that differ between its rows."""
    dates = parse_dates(cells)
    return [part for part in KIND_BY_DATE_PART if len(pc.unique(compute_date_part(dates, part).drop_null())) > 1]
