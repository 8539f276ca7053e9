"""A fair sample of rows that changes row by row: what `RowSample` is after each of them, without making a new one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import Generic

import numpy as np

from priory.core.statistics import ROUNDING_TOLERANCE
from priory.core.typing import Array
from priory.models.open_model import RowT
from priory.models.row_sample import RowSample


class OpenSample(Generic[RowT]):
    """The weights of the kept rows by their hashes, and the rows that are not in the sample it was opened from."""

    def __init__(self, sample: RowSample) -> None:
        self.closed = sample
        self.memory, self.limit = sample.memory, sample.limit
        self.weights: dict[int, float] = dict(zip(sample.hashes.tolist(), sample.weight.tolist(), strict=True))
        self.new_rows: dict[int, tuple[RowT, int]] = {}  # and the class of each
        self._descending = [-h for h in self.weights]  # a heap: the largest hash first; some may be gone
        heapify(self._descending)

    def __len__(self) -> int:
        return len(self.weights)

    def __contains__(self, row_hash: int) -> bool:
        return row_hash in self.weights

    def add(self, row_hash: int, row: RowT, group: int) -> int:
        """Learn a row; the number of kept rows that came or went."""
        if row_hash >= self.limit:
            return 0
        if row_hash in self.weights:
            self.weights[row_hash] += 1.0
            return 0
        self.weights[row_hash] = 1.0
        self.new_rows[row_hash] = (row, group)
        heappush(self._descending, -row_hash)
        if len(self.weights) <= self.memory:
            return 1
        dropped = self._pop_largest()
        self.limit = dropped
        return 0 if dropped == row_hash else 2

    def _pop_largest(self) -> int:
        while (largest := -heappop(self._descending)) not in self.weights:
            pass
        del self.weights[largest]
        self.new_rows.pop(largest, None)
        return largest

    def can_remove(self, row_hash: int) -> bool:
        """Whether a row can have been learned: if it would be kept, it is."""
        weight = self.weights.get(row_hash, 0.0)
        return row_hash >= self.limit or weight - 1.0 >= -ROUNDING_TOLERANCE * weight

    def remove(self, row_hash: int) -> int:
        """Forget a row; the number of kept rows that went."""
        if row_hash >= self.limit:
            return 0
        weight = self.weights[row_hash]
        if weight - 1.0 > ROUNDING_TOLERANCE * weight:
            self.weights[row_hash] = weight - 1.0
            return 0
        del self.weights[row_hash]
        self.new_rows.pop(row_hash, None)
        return 1

    def close(self, sample_rows: Callable[[Sequence[RowT], Array, int], RowSample]) -> RowSample:
        """The sample as it is now; ``sample_rows(rows, group, memory)`` makes a sample of rows."""
        before = self.closed
        kept = np.flatnonzero([h in self.weights and h not in self.new_rows for h in before.hashes.tolist()])
        total = before if len(kept) == len(before) else before.take(kept)
        total = replace(total, limit=self.limit)
        if self.new_rows:
            rows, group = zip(*self.new_rows.values(), strict=True)
            more = sample_rows(rows, np.array(group, dtype=np.int32), self.memory)
            total = total + replace(more, limit=self.limit)
        weight = np.array([self.weights[h] for h in total.hashes.tolist()], dtype=float)
        return replace(total, weight=weight)
