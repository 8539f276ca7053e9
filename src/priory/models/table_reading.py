"""Any table as a `Table`: pandas, polars, pyarrow, NumPy, dicts.

What a column holds is decided by its type, never by its values, so it is known before any row is learned. Nothing is
repaired: a cell that is neither a number nor a label is an error that names the cell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, time, timedelta
from numbers import Real
from typing import Any, SupportsFloat, TypeGuard

import narwhals as nw
import numpy as np

from priory.core.input_guard import check_frame, check_unique_names, guard_input, list_arrow_cells
from priory.core.typing import Array
from priory.errors import DataError, KindError
from priory.families.value_counts import encode_values, find_missing
from priory.models.table import MAX_EXACT_INTEGER, Column, Table, check_exact_integer, check_exact_integers

MAX_NAMES_SHOWN = 10
DATE_TYPES = (nw.Date, nw.Datetime, nw.Duration, nw.Time)


def read_table(X: object) -> Table:
    """A table from a pandas, polars or pyarrow table, a dict of columns, a list of dicts, or an array.

    Columns without names are called x0, x1, …
    """
    if isinstance(X, Table):
        return X
    check_frame(X)
    if hasattr(X, "toarray") or hasattr(X, "todense"):
        raise KindError(
            "X is a sparse matrix; a table of columns is dense: call .toarray(), or use priory.naive_bayes."
        )
    if isinstance(X, Mapping):
        check_unique_names([str(name) for name in X])
        return _table_from_columns({str(name): _read_mapped_cells(values, str(name)) for name, values in X.items()})
    if isinstance(X, (list, tuple)) and X and all(isinstance(row, Mapping) for row in X):
        names = dict.fromkeys(str(name) for row in X for name in row)
        return _table_from_columns({name: _make_object_array([row.get(name) for row in X]) for name in names})
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise KindError("X is a lazy frame, whose rows are not there yet; call .collect() first.")
    if isinstance(frame, nw.DataFrame):
        return _table_from_frame(frame)
    return _table_from_array(X)


def take_text_column(X: object) -> object:
    """The texts of a table with one column, or of an array (rows, 1); anything else as it is."""
    check_frame(X)
    if isinstance(X, np.ndarray) and X.ndim == 2:
        if X.shape[1] != 1:
            raise KindError(f"X is an array with {X.shape[1]} columns; give one column of texts: X[:, 0].")
        return X[:, 0].tolist()
    if not hasattr(type(X), "columns") and not hasattr(type(X), "column_names"):
        return X  # a list, a series or a stream of texts
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise KindError("X is a lazy frame, whose rows are not there yet; call .collect() first.")
    if not isinstance(frame, nw.DataFrame):
        return X
    if len(frame.columns) != 1:
        names = ", ".join(map(repr, frame.columns[:MAX_NAMES_SHOWN]))
        raise KindError(
            f"X is a table with {len(frame.columns)} columns ({names}); give one column of texts, such as "
            f"X[{next(iter(frame.columns), 'text')!r}], or use NaiveBayes, which learns from all columns."
        )
    texts = next(frame.iter_columns())  # by position: a name may be any object
    return texts.to_native() if hasattr(type(X), "column_names") else texts.to_list()  # Arrow's may not be UTF-8


def _fill_mask(cells: object) -> Array:
    """Cells as an array, with the masked ones missing."""
    if not isinstance(cells, np.ma.MaskedArray):
        return np.asarray(cells)
    is_number = cells.dtype.kind in "biuf"
    filled = np.array(cells.data, dtype=float if is_number else object)
    filled[np.ma.getmaskarray(cells)] = np.nan if is_number else None
    return filled


def _read_mapped_cells(values: object, name: str) -> Array:
    """The cells of one column of a dict: a list, a series or an array of one dimension."""
    with guard_input(values):
        cells = _make_object_array(values) if _is_mixed_list(values) else _fill_mask(values)
    if cells.ndim != 1:
        raise KindError(f"column {name!r} has {cells.ndim} dimensions; give a list of cells.")
    return cells


def _is_mixed_list(values: object) -> TypeGuard[Sequence[object]]:
    """Whether NumPy would change the cells of a list: numbers next to strings become strings."""
    return isinstance(values, list | tuple) and len({isinstance(value, str) for value in values}) > 1


def _table_from_array(X: object) -> Table:
    with guard_input(X):
        cells = _array_from_rows(X) if isinstance(X, list) else _fill_mask(X)
    if np.iscomplexobj(cells):
        raise DataError(
            "Complex data not supported: X holds complex numbers; give real and imaginary parts as columns."
        )
    if cells.ndim != 2:
        hint = "Reshape your data: reshape(-1, 1) if it is one column, reshape(1, -1) if it is one row."
        raise DataError(f"Expected 2D array, got {cells.ndim}D array instead. {hint}")
    rows, columns = cells.shape
    names = tuple(f"x{j}" for j in range(columns))
    if cells.dtype.kind in "biuf":
        return Table(rows, names, False, matrix=cells)
    return Table(rows, names, False, tuple(_column_from_array(cells[:, j], name) for j, name in enumerate(names)))


def _table_from_columns(columns: dict[str, Array]) -> Table:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"the columns differ in length: {lengths}.")
    rows = next(iter(lengths.values()), 0)
    return Table(
        rows, tuple(columns), True, tuple(_column_from_array(column, name) for name, column in columns.items())
    )


def _table_from_frame(frame: nw.DataFrame[Any]) -> Table:
    names = tuple(str(name) for name in frame.columns)
    blank = [place for place, name in enumerate(names) if not name.strip()]
    if blank:
        raise DataError(f"the column at position {blank[0]} has no name; name it, or leave it out.")
    named = all(isinstance(name, str) for name in frame.columns)
    columns = zip(frame.iter_columns(), names, strict=True)  # by position: frame[0] is a row, not the column called 0
    return Table(len(frame), names, named, tuple(_column_from_series(series, name) for series, name in columns))


def _column_from_series(series: nw.Series[Any], name: str) -> Column:
    series = _decode_series(series)
    kind = series.dtype
    if kind.is_integer():
        _check_exact(series, name)
    if kind.is_numeric() or kind == nw.Boolean:
        return Column("number", np.asarray(series.cast(nw.Float64).to_numpy(), dtype=float))
    if len(series) == int(series.is_null().sum()):
        return Column("empty")
    if kind in (nw.String, nw.Categorical, nw.Enum):
        return Column("label", labels=_encode_series(series, name))
    if kind == nw.Object:
        cells = _make_object_array(series.to_list())
        cells[series.is_null().to_numpy()] = None
        return _column_from_array(cells, name)
    if kind in DATE_TYPES:
        raise make_date_error(name, str(kind))
    held = series.to_native().dtype if kind == nw.Unknown and hasattr(series.to_native(), "dtype") else kind
    held = series.to_native().type if kind == nw.Unknown and hasattr(series.to_native(), "type") else held
    raise KindError(f"column {name!r} holds {held}; turn it into a number or a string, or leave it out.")


def _decode_series(series: nw.Series[Any]) -> nw.Series[Any]:
    """The series without an encoding that only saves space: pandas' sparse and Arrow's run-end encoding."""
    native = series.to_native()
    if series.dtype != nw.Unknown:
        return series
    if hasattr(native, "sparse") and hasattr(native.sparse, "to_dense"):
        return nw.from_native(native.sparse.to_dense(), series_only=True)
    if "run_end_encoded" in str(getattr(native, "type", "")):
        import pyarrow as pa
        import pyarrow.compute

        return nw.from_native(pa.chunked_array(map(pyarrow.compute.run_end_decode, native.chunks)), series_only=True)
    return series


def _check_exact(series: nw.Series[Any], name: str) -> None:
    """Raise an error if a whole number is too large to be a float: neighbours would become one value."""
    if max(abs(int(series.min() or 0)), abs(int(series.max() or 0))) <= MAX_EXACT_INTEGER:
        return
    for row, value in enumerate(series.to_list()):
        if value is not None:
            check_exact_integer(int(value), row, name)


def _encode_series(series: nw.Series[Any], name: str) -> tuple[Array, Array]:
    """Codes (rows,) and sorted labels, by Arrow's dictionary encoding."""
    import pyarrow as pa

    present = ~np.asarray(series.is_null().to_numpy(), dtype=bool)
    # without the missing cells, which pandas before version 3 would cast to the strings "None" and "nan"
    array = series.drop_nulls().cast(nw.String).to_arrow()
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    coded = array.dictionary_encode()
    values = _make_object_array(list_arrow_cells(coded.dictionary, lambda code: f"column {name!r}, value {code}"))
    order = np.argsort(values)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order))
    codes = np.full(len(series), -1, dtype=np.int32)
    codes[present] = rank[coded.indices.to_numpy(zero_copy_only=False)]
    return codes, values[order]


def _column_from_array(cells: Array, name: str) -> Column:
    """A column of Python objects, or of a NumPy type, read by the types it holds."""
    if cells.dtype.kind in "biuf":
        check_exact_integers(cells[:, None], [name])
        return Column("number", cells.astype(float))
    if cells.dtype.kind in "US":
        return Column("label", labels=encode_values(cells.astype(object)))
    if cells.dtype.kind in "Mm":
        raise make_date_error(name, str(cells.dtype))
    if cells.dtype.kind != "O":
        raise KindError(f"column {name!r} holds {cells.dtype}; turn it into a number or a string, or leave it out.")
    present = np.flatnonzero(~find_missing(cells))
    if not len(present):
        return Column("empty")
    first: dict[str, int] = {}
    for row in present:
        first.setdefault(_check_cell_kind(cells[row], int(row), name), int(row))
    if len(first) > 1:
        shown = ", ".join(f"row {row} holds {cells[row]!r}" for row in first.values())
        raise KindError(f"column {name!r} mixes numbers and strings ({shown}); make it one or the other.")
    if "label" in first:
        return Column("label", labels=encode_values(cells))
    numbers = np.full(len(cells), np.nan)
    for row in present:
        numbers[row] = _convert_to_float(cells[row], int(row), name)
    return Column("number", numbers)


def _check_cell_kind(value: object, row: int, name: str) -> str:
    if isinstance(value, (Real, np.bool_)):
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
    """The error for a column of dates, times or durations, which no family explains."""
    return KindError(
        f"column {name!r} holds dates ({held}); turn it into a number or a string, or leave it out: its year, its "
        "month or the days since an event can be columns of numbers."
    )


def _convert_to_float(value: SupportsFloat, row: int, name: str) -> float:
    if isinstance(value, int):
        check_exact_integer(value, row, name)
    try:
        return float(value)
    except OverflowError:
        raise DataError(f"row {row}, column {name!r} holds a number too large for a float.") from None


def _make_object_array(values: Sequence[object]) -> Array:
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    return cells


def _array_from_rows(rows: list[object]) -> Array:
    """A list of rows as an array; strings and numbers in one row keep their types."""
    lengths = {len(row): place for place, row in reversed(list(enumerate(rows))) if isinstance(row, list | tuple)}
    if len(lengths) > 1:
        shown = " and ".join(f"row {place} has {length}" for length, place in list(lengths.items())[:2])
        raise DataError(f"the rows of X differ in length: {shown} cells; give every row the same cells.")
    plain = np.asarray(rows)
    if plain.ndim == 2 and plain.dtype.kind in "US":
        return np.array(rows, dtype=object)
    return plain
