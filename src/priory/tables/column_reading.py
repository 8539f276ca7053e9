"""Read one column from an array of Python objects or of a NumPy type."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import SupportsFloat

import numpy as np

from priory.core.typing import Array
from priory.errors import DataError, KindError
from priory.families.value_counts import encode_values, find_missing
from priory.tables.dates import Zones, choose_zone, convert_objects, read_date_objects, read_moments, split_dates
from priory.tables.number_formats import NumberFormat, find_number_formats
from priory.tables.table import Column, check_exact_integer, check_exact_integers

MIN_CELLS_OF_FORMAT = 10  # strings that must be numbers before they are read as numbers
SUBDAY_UNITS = ("h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")  # units of NumPy dates with a time of day


def read_named_column(cells: Array, name: str, zones: Zones | None = None) -> dict[str, Column]:
    """Read cells as one named column, or as a column for each part of dates.

    Dates are converted to ``zones``, where their column has one.
    """
    if cells.dtype.kind == "M":
        has_hours = np.datetime_data(cells.dtype)[0] in SUBDAY_UNITS
        zone = choose_zone("", name, zones) if has_hours else None
        return split_dates(name, read_moments(cells, has_hours), zone)
    if cells.dtype.kind == "O":
        missing = find_missing(cells)
        present = cells[~missing].tolist()
        if present and all(isinstance(cell, date | np.datetime64) for cell in present):
            # NaT and None become None, so that only dates are left to convert
            objects = [None if gap else convert_moment(cell) for cell, gap in zip(cells.tolist(), missing, strict=True)]
            local, zone = convert_objects(objects, name, zones)
            return split_dates(name, read_date_objects(local), zone)
    return {name: read_array_column(cells, name)}


def convert_moment(cell: object) -> object:
    """Convert a NumPy date to a Python date; return other objects unchanged."""
    return cell.astype("datetime64[us]").item() if isinstance(cell, np.datetime64) else cell


def read_array_column(cells: Array, name: str) -> Column:
    """Read cells as a column of numbers or labels."""
    if cells.dtype.kind in "biuf":
        check_exact_integers(cells[:, None], [name])
        return Column("number", cells.astype(float))
    if cells.dtype.kind in "US":
        return make_label_column(*encode_values(cells.astype(object)))
    if cells.dtype.kind in "Mm":
        raise make_date_error(name, str(cells.dtype))
    if cells.dtype.kind != "O":
        raise KindError(f"column {name!r} holds {cells.dtype}; turn it into a number or a string, or leave it out.")
    present = np.flatnonzero(~find_missing(cells))
    if not len(present):
        return Column("empty")
    # the first row of each kind of cell, for the message
    first: dict[str, int] = {}
    for row in present:
        first.setdefault(_check_cell_kind(cells[row], int(row), name), int(row))
    if len(first) > 1:
        shown = ", ".join(f"row {row} holds {cells[row]!r}" for row in first.values())
        raise KindError(f"column {name!r} mixes numbers and strings ({shown}); make it one or the other.")
    if "label" in first:
        return make_label_column(*encode_values(cells))
    numbers = np.full(len(cells), np.nan)
    for row in present:
        numbers[row] = _convert_to_float(cells[row], int(row), name)
    return Column("number", numbers)


def make_label_column(codes: Array, values: Array) -> Column:
    """Make a column of strings: labels, or numbers if all are written in one notation that is not Python's.

    Plain digits stay labels: whoever has strings of them chose that. A few cells do not show a notation.
    """
    formats = find_number_formats(values.tolist()) if (codes >= 0).sum() >= MIN_CELLS_OF_FORMAT else []
    form = NumberFormat.parse(formats[0]) if len(formats) == 1 else None
    if form is None or form.is_plain:
        return Column("label", labels=(codes, values))
    return Column("number", np.append(form.read(values.tolist()), np.nan)[codes], format=formats[0])


def _check_cell_kind(value: object, row: int, name: str) -> str:
    if isinstance(value, (Real, Decimal, np.bool_)):
        return "number"
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise DataError(
                f"row {row}, column {name!r} holds a lone surrogate; it is not text: decode it first."
            ) from None
        return "label"
    if isinstance(value, bytes):
        raise KindError(f"row {row}, column {name!r} holds bytes; decode them to a string first.")
    if isinstance(value, (date, time, timedelta, np.datetime64, np.timedelta64)):
        raise make_date_error(name, f"a {type(value).__name__} in row {row}")
    raise KindError(
        f"row {row}, column {name!r} holds a {type(value).__name__}; argument must be a string or a number."
    )


def make_date_error(name: str, held: str) -> KindError:
    """Return the error for dates in a table without column names, and for times of day and durations."""
    return KindError(
        f"column {name!r} holds dates or times ({held}); dates are learned from tables with names; turn others into a "
        "number, such as hours, or leave them out."
    )


def _convert_to_float(value: SupportsFloat, row: int, name: str) -> float:
    if isinstance(value, int):
        check_exact_integer(value, row, name)
    try:
        return float(value)
    except OverflowError:
        raise DataError(f"row {row}, column {name!r} holds a number too large for a float.") from None
    except ValueError:  # Decimal("sNaN")
        raise DataError(f"row {row}, column {name!r} holds {value!r}; use NaN for what is missing.") from None


def make_object_array(values: Sequence[object]) -> Array:
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    return cells
