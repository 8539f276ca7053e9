"""Whether a single row can be forgotten, decided from what is left of its cells in one class.

Statistics refuse to subtract what was not learned (`Statistics.check_subtraction`). A guard decides the same for one
row, at the cost of that row: what it allows, the statistics will not refuse when rows are subtracted together later.
It may refuse what they would allow, such as the last number of a column in a class; then the statistics decide.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy import ndarray as Array

from priory.core._kernel import rows as kernel
from priory.errors import NotLearnedError
from priory.families.moments import Moments
from priory.families.open_columns import OpenRecord
from priory.families.value_counts import ValueCounts

if TYPE_CHECKING:
    from priory.families.base import AnyFamily


class ColumnGuard(Protocol):
    """What is left of the columns of a block in one class; cells are numbers (columns,), NaN if missing, or labels."""

    def allows(self, cells: Any) -> bool:
        """Whether these cells can be subtracted."""

    def count(self, cells: Any, rows: int) -> None:
        """Add the cells ``rows`` times; -1 subtracts them."""


class RecordGuard:
    """A guard for any family, which subtracts the row from the statistics."""

    def __init__(self, family: AnyFamily, record: Any, group: int) -> None:
        self.columns, self.group = OpenRecord(family, record), group

    def allows(self, cells: Any) -> bool:
        try:
            copy(self.columns).add(cells, self.group, -1.0)
        except NotLearnedError:
            return False
        return True

    def count(self, cells: Any, rows: int) -> None:
        self.columns.add(cells, self.group, rows)


class LabelGuard:
    """Counts of labels."""

    def __init__(self, records: Sequence[ValueCounts], group: int) -> None:
        self.records, self.group = records, group
        self._left: list[dict[object, float]] = [{} for _ in records]  # of the labels that have occurred since

    def allows(self, cells: Sequence[Any]) -> bool:
        return all(self._find_count(*place) >= 1 for place in enumerate(cells) if place[1] is not None)

    def count(self, cells: Sequence[Any], rows: int) -> None:
        for column, label in enumerate(cells):
            if label is not None:
                self._left[column][label] = self._find_count(column, label) + rows

    def _find_count(self, column: int, label: Any) -> float:
        known = self._left[column].get(label)
        if known is not None:
            return known
        record = self.records[column]
        place = bisect_left(record.values, label)
        is_found = place < len(record.values) and record.values[place] == label
        return float(record.counts[self.group, place]) if is_found else 0.0


def guard_rounded_numbers(records: Sequence[ValueCounts], group: int, bits: int) -> ColumnGuard:
    """A guard on counts of numbers rounded to ``bits``."""
    values = [np.ascontiguousarray(record.values, dtype=float) for record in records]
    return kernel.RoundedGuard(values, [record.counts[group] for record in records], bits)


def guard_support(
    low: float, high: float, whole: bool, n: Array, outside: Array, total: Array | None = None
) -> ColumnGuard:
    """A guard on the numbers (columns,) inside and outside of a family's support, and on the sum of those inside."""
    return kernel.SupportGuard(low, high, whole, n, outside, total)


def guard_moments(record: Moments, group: int) -> ColumnGuard:
    """A guard on means and variances: what is left must have a possible sum of squares about the mean."""
    own = record.take_classes(np.array([group]))
    exponent, [n] = own.find_exponents(), own.n
    spread = n * own.variances(exponent)[0]
    spread[spread < 0] = np.nan  # a rounding error, of which the statistics decide how much is too much
    return kernel.MomentsGuard(own.units(), n, np.where(n > 0, own.means(exponent)[0], 0.0), spread)
