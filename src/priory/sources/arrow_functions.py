"""Arrow's functions on columns, called by their names.

`pyarrow.compute` makes a documented wrapper of each of some 300 functions when it is imported, and methods such as
`Array.cast` import it. That takes longer than answering a row, so what every row needs is called without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

try:
    from pyarrow import _compute as functions  # where the public names come from
except ImportError:
    import pyarrow.compute as functions


def _call(name: str, *arguments: object, options: object = None) -> Any:
    return functions.call_function(name, list(arguments), options)


def cast(column: pa.Array, to: pa.DataType) -> pa.Array:
    """The cells as another type; an error where that loses anything."""
    return column if column.type == to else _call("cast", column, options=functions.CastOptions.safe(to))


def fill_missing(column: pa.Array, value: object) -> pa.Array:
    """The column with ``value`` in place of missing cells."""
    return _call("coalesce", column, pa.scalar(value, column.type)) if column.null_count else column


def find_present(column: pa.Array) -> np.ndarray:
    """Which cells are not missing."""
    return unpack_column(_call("is_valid", column))


def take(column: pa.Array, places: pa.Array) -> pa.Array:
    """The cells at some places."""
    return _call("take", column, places, options=functions.TakeOptions())


def number_texts(column: pa.Array) -> tuple[np.ndarray, list[str]]:
    """The values in the order in which they appear, and the number of each cell's value, -1 where it is missing."""
    coded = _call("dictionary_encode", column, options=functions.DictionaryEncodeOptions("mask"))
    return unpack_column(fill_missing(coded.indices, -1)), coded.dictionary.to_pylist()


def make_column(values: np.ndarray) -> pa.Array:
    """Numbers as a column; `pa.array` would ask for numpy.ma, which nothing else needs."""
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def unpack_column(column: pa.Array) -> np.ndarray:
    """The cells as an array, NaN where a number is missing."""
    return np.asarray(column.to_numpy(zero_copy_only=False))


def trim(column: pa.Array) -> pa.Array:
    """Texts without white space at either end."""
    return _call("utf8_trim_whitespace", column)


def match_pattern(column: pa.Array, pattern: str) -> pa.Array:
    """Which texts have a part that matches."""
    return _call("match_substring_regex", column, options=functions.MatchSubstringOptions(pattern))


def is_one_of(column: pa.Array, values: Iterable[str]) -> pa.Array:
    """Which cells are one of some texts."""
    return _call("is_in", column, options=functions.SetLookupOptions(value_set=pa.array(values, pa.string())))


def blank(column: pa.Array, where: pa.Array) -> pa.Array:
    """The column with some cells missing."""
    return _call("replace_with_mask", column, where, pa.scalar(None, column.type))


def invert(flags: pa.Array) -> pa.Array:
    """True for false."""
    return _call("invert", flags)


def are_both(first: pa.Array, second: pa.Array) -> pa.Array:
    """Where both are true."""
    return _call("and", first, second)


def choose(where: pa.Array, one: pa.Array, other: pa.Array) -> pa.Array:
    """The cells of one column where something is true, and of the other elsewhere."""
    return _call("if_else", where, one, other)


def join_texts(parts: Iterable[pa.Array | str], delimiter: str = "") -> pa.Array:
    """The texts of each row, one after the other."""
    return _call("binary_join_element_wise", *parts, delimiter, options=functions.JoinOptions())


def replace_text(column: pa.Array, old: str, new: str) -> pa.Array:
    """The texts with every ``old`` replaced."""
    return _call("replace_substring", column, options=functions.ReplaceSubstringOptions(old, new))
