"""Counts of values (the statistics of Categorical and Histogram), rounded numbers, and columns encoded as codes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core._kernel import tables as kernel
from priory.core.sharding import score_shards
from priory.core.statistics import Statistics, is_increasing, register_record, subtract_counts
from priory.errors import KindError, NotLearnedError


@register_record(
    "Tally",
    axes={"values": "v", "counts": "cv"},
    dtypes={"values": ""},
    reveals="the values of its columns, rare and extreme ones too (labels, and numbers to three digits)",
)
@dataclass(frozen=True, eq=False)
class ValueCounts(Statistics):
    """Counts of each value in each class. Values without rows are dropped, so forgetting all rows removes a value."""

    frame_fields: ClassVar[tuple[str, ...]] = ("values",)

    values: Array  # sorted
    counts: Array  # (classes, values)

    def find_fault(self) -> str | None:
        if not is_increasing(self.values):
            return "the values are not sorted, or one of them is there twice"
        return "a count is negative" if self.counts.min(initial=0.0) < 0 else None

    @classmethod
    def of(cls, values: Array, counts: Array) -> ValueCounts:
        """Build from values and counts, dropping values without rows; -0.0 becomes 0.0."""
        shown = counts.any(axis=0) if counts.ndim > 1 else counts != 0
        kept = values[shown] + 0.0 if values.dtype.kind == "f" else values[shown]
        return cls(kept, np.ascontiguousarray(counts if shown.all() else counts[..., shown]))

    @property
    def n(self) -> Array:
        """Number of rows with a value, (classes,)."""
        return np.asarray(self.counts.sum(axis=-1))

    def align(self, other: ValueCounts) -> tuple[ValueCounts, ValueCounts]:
        if np.array_equal(self.values, other.values):
            return self, other
        if len(self.values) and len(other.values) and _holds_text(self.values) != _holds_text(other.values):
            raise KindError(
                f"values such as {self.values.tolist()[0]!r} and {other.values.tolist()[0]!r} are of different types; "
                "use strings or numbers for all cells of a column."
            )
        # an empty array has no meaningful type
        some = [values for values in (self.values, other.values) if len(values)]
        values = np.union1d(*some) if len(some) == 2 else some[0]
        return self._expand_values(values), other._expand_values(values)

    def __add__(self, other: ValueCounts) -> ValueCounts:
        places = self._find_places(other)
        if places is None:
            return super().__add__(other)
        counts = self.counts.copy()
        counts[..., places] += other.counts
        return ValueCounts(self.values, counts)

    def __sub__(self, other: ValueCounts) -> ValueCounts:
        places = self._find_places(other)
        if places is None:
            return super().__sub__(other)
        try:
            left = subtract_counts(self.counts[..., places], other.counts)
        except NotLearnedError:
            return super().__sub__(other)  # it raises with the position
        counts, kept = self.counts.copy(), np.ones(len(self.values), dtype=bool)
        counts[..., places] = left
        kept[places] = left.any(axis=tuple(range(left.ndim - 1)))
        return ValueCounts(self.values[kept], np.ascontiguousarray(counts if kept.all() else counts[..., kept]))

    def _find_places(self, other: ValueCounts) -> Array | None:
        """Positions of the values of a smaller record among these; None if some are missing here."""
        if not len(other.values) < len(self.values) or other.counts.shape[:-1] != self.counts.shape[:-1]:
            return None
        if len(other.values) and _holds_text(self.values) != _holds_text(other.values):
            return None
        places = self.find_positions(other.values)
        return None if (places == len(self.values)).any() else places

    def _expand_values(self, values: Array) -> ValueCounts:
        counts = np.zeros((*self.counts.shape[:-1], len(values)))
        counts[..., np.searchsorted(values, self.values)] = self.counts
        return ValueCounts(values, counts)

    def check_subtraction(self, total: ValueCounts, part: ValueCounts) -> ValueCounts:
        return ValueCounts.of(self.values, subtract_counts(total.counts, part.counts))

    def regroup_classes(self, index: Array, size: int) -> ValueCounts:
        counts = np.zeros((size, len(self.values)))
        counts[index] = self.counts
        return replace(self, counts=counts)

    def find_positions(self, values: Array) -> Array:
        """Position of each of ``values``; one past the end for values that were never counted."""
        place = np.searchsorted(self.values, values)
        found = place < len(self.values)
        found[found] = self.values[place[found]] == np.asarray(values)[found]
        return np.where(found, place, len(self.values))


def _holds_text(values: Array) -> bool:
    return values.dtype.kind in "OUS" and isinstance(values[0], str)


@register_record("CategoricalCells", axes={"codes": "rd"}, dtypes={"codes": "i4"})
@dataclass(frozen=True)
class CategoricalCells:
    """Columns of labels: an integer code for each cell (negative if missing), and the sorted labels of each column."""

    codes: Array  # (rows, columns), int32
    values: tuple[Array, ...]  # (labels,) for each column

    def find_fault(self) -> str | None:
        if len(self.values) != self.codes.shape[1] or not all(map(is_increasing, self.values)):
            return "there are not sorted values for each column"
        sizes = np.array([len(values) for values in self.values], dtype=int)
        return None if ((self.codes >= -1) & (self.codes < sizes)).all() else "a cell holds a value that is not there"

    @classmethod
    def of(cls, x: ArrayLike) -> CategoricalCells:
        """Encode one column (rows,) or several (rows, columns) of strings, numbers, or other sortable objects."""
        cells = np.asarray(x)
        pairs = [encode_values(column) for column in cells.reshape(len(cells), math.prod(cells.shape[1:])).T]
        return cls.from_encoded_columns(pairs, len(cells))

    @classmethod
    def from_encoded_columns(cls, columns: Sequence[tuple[Array, Array]], n_rows: int) -> CategoricalCells:
        codes = np.empty((n_rows, len(columns)), dtype=np.int32)
        for j, (code, _) in enumerate(columns):
            codes[:, j] = code
        return cls(codes, tuple(values for _, values in columns))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, part: slice | Array) -> CategoricalCells:
        return CategoricalCells(self.codes[part], self.values)


def encode_values(column: Array) -> tuple[Array, Array]:
    """Encode one column: return codes and sorted values; None and NaN are missing.

    >>> codes, values = encode_values(np.array(["b", None, "a", "b"], dtype=object))
    >>> codes.tolist(), values.tolist()
    ([1, -1, 0, 1], ['a', 'b'])
    """
    missing = find_missing(column)
    codes = np.full(len(column), -1, dtype=np.int32)
    values, codes[~missing] = np.unique(column[~missing], return_inverse=True)
    return codes, values


def drop_absent_labels(codes: Array, values: Array) -> tuple[Array, Array]:
    """Drop the values of a column that no cell has; return the new codes and values."""
    shown = np.unique(codes[codes >= 0])
    # the new code of each old code; code -1 (missing) indexes the last element and stays -1
    place = np.full(len(values) + 1, -1)
    place[shown] = np.arange(len(shown))
    return place[codes], values[shown] if len(shown) else np.array([], dtype=object)


def take_shown_values(codes: Array, values: Array) -> tuple[Array, Array]:
    """Codes and values of one column, without unused values if there are more values than rows.

    Work for each value then costs no more than the rows, even for a short part of a long table.
    """
    return (codes, values) if len(values) <= len(codes) else drop_absent_labels(codes, values)


def find_missing(column: Array) -> Array:
    """Which cells are None or NaN."""
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind != "O":
        return np.zeros(len(column), dtype=bool)
    try:
        return np.fromiter((v is None or v != v for v in column), dtype=bool, count=len(column))
    except (TypeError, ValueError, ArithmeticError):  # cells that cannot be compared, such as pandas.NA
        return np.array([_is_missing(v) for v in column], dtype=bool)


def _is_missing(value: object) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError, ArithmeticError):
        return False


def make_object_array(values: Sequence[object]) -> Array:
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    return cells


VALUE_BITS = 10  # binary digits of rounded numbers: three decimal digits


def round_to_bits(x: Array, bits: int) -> Array:
    """Round to ``bits`` significant bits, exactly as `count_values` does; a finite number stays finite."""
    mantissa, exponent = np.frexp(x)
    whole = np.round(np.ldexp(mantissa, bits))
    too_large = (exponent == 1024) & (np.abs(whole) == 2.0**bits)
    return np.asarray(np.ldexp(whole - np.where(too_large, np.sign(whole), 0.0), exponent - bits) + 0.0)


def round_number_to_bits(x: float, bits: int) -> float:
    """`round_to_bits` of one finite number.

    >>> round_number_to_bits(1234.5, 10) == float(round_to_bits(np.array(1234.5), 10))
    True
    """
    mantissa, exponent = math.frexp(x)
    whole = round(math.ldexp(mantissa, bits))
    if exponent == 1024 and abs(whole) == 1 << bits:
        whole -= 1 if whole > 0 else -1
    return math.ldexp(whole, exponent - bits)


def score_by_lookup(codes: Callable[[slice], Array], rows: int, tables: list[Array]) -> Array:
    """Return (rows, classes) sums over the columns of ``tables[j][class, code]``; a negative code adds nothing."""
    starts = find_column_offsets(np.array([table.shape[1] for table in tables]))
    table = np.ascontiguousarray(np.concatenate(tables, axis=1).T)  # (codes of all columns, classes)
    return score_shards(
        lambda part: kernel.lookup(np.ascontiguousarray(codes(part), dtype=np.int32), starts, table),
        rows,
        table.shape[1],
    )


def find_column_offsets(widths: Array) -> Array:
    """Return the offset of each column when the values of all columns share one axis, and the total width."""
    return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
