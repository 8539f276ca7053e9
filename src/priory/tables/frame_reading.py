"""Convert data frames of pandas, polars and pyarrow to a `Table`."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy import ndarray as Array

from priory.core.value_counts import make_object_array
from priory.errors import DataError, KindError
from priory.tables import table
from priory.tables.dates import Zones, choose_zone, convert_moments, name_zone, read_moments

TIME_TYPES = (nw.Duration, nw.Time)


def find_frame(X: object) -> nw.DataFrame[Any] | None:
    """Wrap the input as a narwhals DataFrame; None if it is not a data frame."""
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise KindError("X is a lazy frame, whose rows are not there yet; call .collect() first.")
    return frame if isinstance(frame, nw.DataFrame) else None


def take_only_column(X: object) -> object:
    """The texts of a data frame with one column; other input unchanged."""
    frame = find_frame(X)
    if frame is None:
        return X
    if len(frame.columns) != 1:
        raise KindError(
            f"X is a table with {len(frame.columns)} columns ({table.format_column_names(frame.columns)}); give one "
            f"column of texts, such as X[{next(iter(frame.columns), 'text')!r}], or use NaiveBayes, which learns from "
            "all columns."
        )
    texts = next(frame.iter_columns())  # by position: a name may be any object
    return texts.to_native() if hasattr(type(X), "column_names") else texts.to_list()  # Arrow's may not be UTF-8


def read_frame(frame: nw.DataFrame[Any], zones: Zones | None = None) -> table.Table:
    """Read a data frame; dates are converted to the time zone that ``zones`` has for their column."""
    names = tuple(str(name) for name in frame.columns)
    blank = [place for place, name in enumerate(names) if not name.strip()]
    if blank:
        raise DataError(f"the column at position {blank[0]} has no name; name it, or leave it out.")
    named = all(isinstance(name, str) for name in frame.columns)
    columns = zip(frame.iter_columns(), names, strict=True)  # by position: frame[0] is a row, not the column called 0
    return table.make_named_table(len(frame), named, [_read_series(series, name, zones) for series, name in columns])


def _read_series(series: nw.Series[Any], name: str, zones: Zones | None) -> dict[str, table.Column]:
    """Read a series as one named column, or as a column for each part of dates."""
    series = _decode_series(series)
    if series.dtype == nw.Object:
        # pandas has several missing values; all become None
        cells = make_object_array(series.to_list())
        cells[series.is_null().to_numpy()] = None
        return table.read_named_column(cells, name, zones)
    if series.dtype == nw.Date:
        days = np.asarray(series.cast(nw.Datetime("us")).to_numpy(), dtype="datetime64[us]")
        return table.split_dates(name, read_moments(days, has_hours=False), None)
    own = _find_zone(series)
    if own is None:
        return {name: _column_from_series(series, name)}
    zone = choose_zone(own, name, zones)
    moments = convert_moments(series.to_arrow(), zone) if zone else series.to_numpy()
    return table.split_dates(name, read_moments(np.asarray(moments, dtype="datetime64[us]"), has_hours=True), zone)


def _find_zone(series: nw.Series[Any]) -> str | None:
    """The time zone of a series, "" for none; None if it holds no dates."""
    if series.dtype == nw.Datetime:
        return name_zone(series.dtype.time_zone)  # type: ignore[attr-defined]  # of this type
    native = series.to_native()
    # narwhals does not recognise pandas' dates of some zones, such as America/New_York
    return name_zone(native.dt.tz) if str(getattr(native, "dtype", "")).startswith("datetime64") else None


def _column_from_series(series: nw.Series[Any], name: str) -> table.Column:
    kind = series.dtype
    if kind.is_integer():
        _check_exact(series.fill_null(0), name)
    if kind.is_numeric() or kind == nw.Boolean:
        return table.Column("number", np.asarray(series.cast(nw.Float64).to_numpy(), dtype=float))
    if len(series) == int(series.is_null().sum()):
        return table.Column("empty")
    if kind in (nw.String, nw.Categorical, nw.Enum):
        return table.make_label_column(*_encode_series(series, name))
    if kind in TIME_TYPES:
        raise table.make_date_error(name, str(kind))
    # report the type as pandas or pyarrow names it, if narwhals does not know it
    held = series.to_native().dtype if kind == nw.Unknown and hasattr(series.to_native(), "dtype") else kind
    held = series.to_native().type if kind == nw.Unknown and hasattr(series.to_native(), "type") else held
    raise KindError(f"column {name!r} holds {held}; turn it into a number or a string, or leave it out.")


def _decode_series(series: nw.Series[Any]) -> nw.Series[Any]:
    """Decode pandas' sparse and Arrow's run-end encoded series."""
    native = series.to_native()
    if series.dtype != nw.Unknown:
        return series
    if hasattr(native, "sparse") and hasattr(native.sparse, "to_dense"):
        return nw.from_native(native.sparse.to_dense(), series_only=True)
    if "run_end_encoded" in str(getattr(native, "type", "")):
        return nw.from_native(pa.chunked_array(map(pyarrow.compute.run_end_decode, native.chunks)), series_only=True)
    return series


def _check_exact(series: nw.Series[Any], name: str) -> None:
    """Raise an error if an integer is not exactly representable as a float; NumPy does not hold 128 bits."""
    if len(series) and max(abs(int(series.min())), abs(int(series.max()))) > table.MAX_EXACT_INTEGER:
        for row, value in enumerate(series.to_list()):
            table.check_exact_integer(int(value), row, name)


def _encode_series(series: nw.Series[Any], name: str) -> tuple[Array, Array]:
    """Codes (rows,) and sorted labels, by Arrow's dictionary encoding."""
    present = ~np.asarray(series.is_null().to_numpy(), dtype=bool)
    # missing cells are dropped first, because pandas before version 3 casts them to the strings "None" and "nan"
    array = series.drop_nulls().cast(nw.String).to_arrow()
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    codes = np.full(len(series), -1, dtype=np.int32)
    codes[present], values = table.encode_strings(array, name)
    return codes, values
