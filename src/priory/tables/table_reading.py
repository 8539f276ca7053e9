"""Read any table in memory: data frames, Arrow tables, arrays, lists of dicts or a dict of columns become a `Table`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeGuard

import numpy as np
from numpy import ndarray as Array

from priory.core.input_guard import check_frame, check_unique_names, guard_input, is_masked_array, name_cells
from priory.core.value_counts import make_object_array
from priory.errors import DataError, KindError
from priory.tables import table
from priory.tables.dates import Zones
from priory.tables.table import Table, make_named_table


def read_table(X: object, zones: Zones | None = None) -> Table:
    """Read a pandas, polars or pyarrow table, a dict of columns, a list of dicts, or an array.

    A column of dates becomes a column for each of its parts (`priory.tables.dates`), converted to the time zone
    that ``zones`` has for it. Columns without names are called x0, x1, …
    """
    if isinstance(X, Table):
        return X
    check_frame(X)
    if hasattr(X, "toarray") or hasattr(X, "todense"):
        raise KindError(
            "X is a sparse matrix; a table of columns is dense: call .toarray(), or use BernoulliNB, MultinomialNB "
            "or GaussianNB of priory.naive_bayes."
        )
    if isinstance(X, Mapping):
        check_unique_names([str(name) for name in X])
        columns = {str(name): _read_mapped_cells(values, str(name)) for name, values in X.items()}
        return _table_from_columns(columns, zones)
    if isinstance(X, Iterator):
        X = list(X)
    if isinstance(X, (list, tuple)) and X and all(issubclass(kind, Mapping) for kind in set(map(type, X))):
        return _table_from_dicts(X, zones)
    if isinstance(X, (list, tuple, np.ndarray)):
        return _table_from_array(X)
    from priory.tables.frame_reading import find_frame, read_frame  # it imports narwhals

    frame = find_frame(X)
    return _table_from_array(X) if frame is None else read_frame(frame, zones)


def list_rows_as_dicts(X: Any) -> list[dict[str, object]] | None:
    """The rows of a small table with names, without reading its columns; None if it is of another type."""
    if isinstance(X, list | tuple):
        return list(X) if all(isinstance(row, dict) for row in X) else None
    if hasattr(X, "iloc") and hasattr(X, "columns"):  # pandas
        names = X.columns.tolist()
        return [dict(zip(names, cells, strict=True)) for cells in X.to_numpy(dtype=object).tolist()]
    list_rows = getattr(X, "to_dicts", None) or getattr(X, "to_pylist", None)  # polars, Arrow
    return None if list_rows is None else list_rows()


def _fill_mask(cells: object) -> Array:
    """Convert cells to an array, masked ones to NaN or None."""
    if not is_masked_array(cells):
        return np.asarray(cells)
    is_number = cells.dtype.kind in "biuf"
    filled = np.array(cells.data, dtype=float if is_number else object)
    filled[np.ma.getmaskarray(cells)] = np.nan if is_number else None
    return filled


def _read_mapped_cells(values: object, name: str) -> Array:
    """Read the cells of one column of a dict: a list, a series or a 1-D array."""
    with guard_input(values):
        cells = make_object_array(values) if _is_mixed_list(values) else _fill_mask(values)
    if cells.ndim != 1:
        raise KindError(f"column {name!r} has {cells.ndim} dimensions; give a list of cells.")
    return cells


def _is_mixed_list(values: object) -> TypeGuard[Sequence[object]]:
    """Whether a list mixes numbers and strings, which NumPy would convert to strings."""
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
    return Table(rows, names, False, tuple(table.read_array_column(cells[:, j], name) for j, name in enumerate(names)))


def _table_from_dicts(rows: Sequence[Mapping[Any, object]], zones: Zones | None) -> Table:
    """Columns in order of first appearance; a cell that a row lacks is missing."""
    if not all(isinstance(name, str) for name in set(chain.from_iterable(rows))):
        rows = [name_cells(row) for row in rows]
    names = dict.fromkeys(chain.from_iterable(rows))
    columns = {name: make_object_array([row.get(name) for row in rows]) for name in names}
    return _table_from_columns(columns, zones)


def _table_from_columns(columns: dict[str, Array], zones: Zones | None) -> Table:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"the columns differ in length: {lengths}.")
    rows = next(iter(lengths.values()), 0)
    parts = [table.read_named_column(column, name, zones) for name, column in columns.items()]
    return make_named_table(rows, True, parts)


def _array_from_rows(rows: list[object]) -> Array:
    """Convert a list of rows to an array; strings and numbers in one row keep their types."""
    # the first row of each length: reversed, so that earlier rows overwrite later ones
    lengths = {len(row): place for place, row in reversed(list(enumerate(rows))) if isinstance(row, list | tuple)}
    if len(lengths) > 1:
        shown = " and ".join(f"row {place} has {length}" for length, place in list(lengths.items())[:2])
        raise DataError(f"the rows of X differ in length: {shown} cells; give every row the same cells.")
    plain = np.asarray(rows)
    # NumPy has turned numbers beside strings into strings: convert again as objects
    if plain.ndim == 2 and plain.dtype.kind in "US":
        return np.array(rows, dtype=object)
    return plain
