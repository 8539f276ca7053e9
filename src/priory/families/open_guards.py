"""Whether a single row can be forgotten, decided from what is left of its cells in one class.

Statistics refuse to subtract what was not learned (`Statistics.check_subtraction`). A guard decides the same for one
row, at the cost of that row: what it allows, the statistics will not refuse when rows are subtracted together later.
It may refuse what they would allow, such as the last number of a column in a class; then the statistics decide.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from priory.core.column_kernels import round_to_bits
from priory.core.logspace import MAX_EXACT_COUNT
from priory.core.typing import Array
from priory.errors import NotLearnedError
from priory.families.moments import Moments
from priory.families.open_columns import OpenRecord
from priory.families.value_counts import ValueCounts

if TYPE_CHECKING:
    from priory.families.base import AnyFamily

MIN_SHARE_LEFT = 1e-9  # of the largest sum so far: less may be a rounding error


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


class ValueGuard:
    """Counts of values: labels, or numbers that ``bits`` rounds."""

    def __init__(self, records: Sequence[ValueCounts], group: int, bits: int | None = None) -> None:
        self.records, self.group, self.bits = records, group, bits
        self._left: list[dict[object, float]] = [{} for _ in records]  # of the values that have occurred since

    def allows(self, cells: Any) -> bool:
        return all(self._find_count(column, value) >= 1 for column, value in self._list_values(cells))

    def count(self, cells: Any, rows: int) -> None:
        for column, value in self._list_values(cells):
            self._left[column][value] = self._find_count(column, value) + rows

    def _list_values(self, cells: Any) -> Iterator[tuple[int, Any]]:
        values = cells if self.bits is None else round_to_bits(cells, self.bits).tolist()
        return ((column, value) for column, value in enumerate(values) if value is not None and value == value)

    def _find_count(self, column: int, value: Any) -> float:
        known = self._left[column].get(value)
        if known is not None:
            return known
        record = self.records[column]
        place = bisect_left(record.values, value)
        is_found = place < len(record.values) and record.values[place] == value
        return float(record.counts[self.group, place]) if is_found else 0.0


class KindGuard:
    """Counts of the kinds of number that a family distinguishes, and the sum of the numbers of the first kind."""

    def __init__(
        self, find_kinds: Callable[[Array], Array], counts: Sequence[Array], total: Array | None = None
    ) -> None:
        self.find_kinds = find_kinds
        self.left = np.array(counts)  # (kinds, columns)
        self.total = np.full(self.left.shape[1], np.inf) if total is None else total  # (columns,)
        self.margin = _find_rounding(self.total)
        self._columns = np.arange(self.left.shape[1])

    def allows(self, cells: Array) -> bool:
        kinds = self.find_kinds(cells)  # (columns,)
        is_left = self.left[kinds, self._columns] >= 1
        is_left &= self.total - np.where(kinds == 0, cells, 0.0) >= self.margin
        return bool((is_left | (cells != cells)).all())

    def count(self, cells: Array, rows: int) -> None:
        kinds = self.find_kinds(cells)
        self.left[kinds, self._columns] += np.where(cells == cells, rows, 0)
        self.total = self.total + np.where(kinds == 0, rows * cells, 0.0)
        self.margin = np.maximum(self.margin, _find_rounding(self.total))


def _find_rounding(total: Array) -> Array:
    """Bound of the rounding errors of a sum of whole numbers: none up to 2^53."""
    return np.where((total > MAX_EXACT_COUNT) & (total < np.inf), MIN_SHARE_LEFT * total, 0.0)


class MomentsGuard:
    """Mean and spread of numbers: removing a number must leave a sum of squares about the mean that is possible."""

    def __init__(self, record: Moments, group: int) -> None:
        own = record.take_classes(np.array([group]))
        exponent = own.find_exponents()
        self.unit, [n] = own.units(), own.n
        self.n = n.copy()  # (columns,), as are all fields
        self.mean = np.where(n > 0, own.means(exponent)[0], 0.0)
        self.spread = n * np.maximum(own.variances(exponent)[0], 0.0)  # sum of squares about the mean, in units
        self.top = self.spread  # the largest so far

    def allows(self, cells: Array) -> bool:
        with np.errstate(all="ignore"):
            away = cells / self.unit - self.mean
            spread = self.spread - away**2 * self.n / (self.n - 1)
        # a number equal to the mean leaves the spread as it is: in a constant column, none
        is_left = (self.n > 1) & ((spread > MIN_SHARE_LEFT * self.top) | (away == 0))
        return bool((is_left | (cells != cells)).all())

    def count(self, cells: Array, rows: int) -> None:
        shown, n = cells == cells, self.n + rows
        with np.errstate(all="ignore"):
            # Welford's update, with rows = -1 backwards
            away = cells / self.unit - self.mean
            self.spread = np.where(shown, self.spread + rows * away**2 * self.n / n, self.spread)
            self.mean = np.where(shown, self.mean + rows * away / n, self.mean)
        self.n, self.top = np.where(shown, n, self.n), np.maximum(self.top, self.spread)
