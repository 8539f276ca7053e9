"""Arrow's compute functions, called by name without importing `pyarrow.compute`.

That module wraps some 300 functions on import, and methods such as `Array.cast` import it, which takes longer than
predicting a row.
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
    """Cast to another type; a lossy cast is an error."""
    return column if column.type == to else _call("cast", column, options=functions.CastOptions.safe(to))


def fill_missing(column: pa.Array, value: object) -> pa.Array:
    """Replace missing cells by ``value``."""
    return _call("coalesce", column, pa.scalar(value, column.type)) if column.null_count else column


def find_present(column: pa.Array) -> np.ndarray:
    """Whether each cell is present."""
    return unpack_column(_call("is_valid", column))


def take(column: pa.Array, places: pa.Array) -> pa.Array:
    """Take cells by position."""
    return _call("take", column, places, options=functions.TakeOptions())


def number_texts(column: pa.Array) -> tuple[np.ndarray, list[str]]:
    """The code of each cell, -1 where it is missing, and the values in order of appearance."""
    coded = _call("dictionary_encode", column, options=functions.DictionaryEncodeOptions("mask"))
    return unpack_column(fill_missing(coded.indices, -1)), coded.dictionary.to_pylist()


def make_column(values: np.ndarray) -> pa.Array:
    """Convert an array to a column without `pa.array`, which imports numpy.ma."""
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])


def unpack_column(column: pa.Array) -> np.ndarray:
    """Convert a column to an array, NaN where a number is missing."""
    return np.asarray(column.to_numpy(zero_copy_only=False))


def trim(column: pa.Array) -> pa.Array:
    """Strip white space at both ends."""
    return _call("utf8_trim_whitespace", column)


def match_pattern(column: pa.Array, pattern: str) -> pa.Array:
    """Whether each text contains a match."""
    return _call("match_substring_regex", column, options=functions.MatchSubstringOptions(pattern))


def is_one_of(column: pa.Array, values: Iterable[str]) -> pa.Array:
    """Whether each cell is one of the values."""
    return _call("is_in", column, options=functions.SetLookupOptions(value_set=pa.array(values, pa.string())))


def blank(column: pa.Array, where: pa.Array) -> pa.Array:
    """Make cells missing where ``where`` is true."""
    return _call("replace_with_mask", column, where, pa.scalar(None, column.type))


def invert(flags: pa.Array) -> pa.Array:
    """Logical not."""
    return _call("invert", flags)


def are_both(first: pa.Array, second: pa.Array) -> pa.Array:
    """Logical and."""
    return _call("and", first, second)


def choose(where: pa.Array, one: pa.Array, other: pa.Array) -> pa.Array:
    """Take cells from ``one`` where true, from ``other`` elsewhere."""
    return _call("if_else", where, one, other)


def join_texts(parts: Iterable[pa.Array | str], delimiter: str = "") -> pa.Array:
    """Concatenate the texts of each row."""
    return _call("binary_join_element_wise", *parts, delimiter, options=functions.JoinOptions())


def replace_text(column: pa.Array, old: str, new: str) -> pa.Array:
    """Replace every occurrence of ``old``."""
    return _call("replace_substring", column, options=functions.ReplaceSubstringOptions(old, new))
