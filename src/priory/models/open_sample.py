"""A mutable `RowSample`, updated row by row."""

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
    """Weights of the kept rows by their hashes, and the rows added since the sample was opened."""

    def __init__(self, sample: RowSample) -> None:
        self.closed = sample
        self.memory, self.limit = sample.memory, sample.limit
        self.weights: dict[int, float] = dict(zip(sample.hashes.tolist(), sample.weight.tolist(), strict=True))
        self.new_rows: dict[int, tuple[RowT, int]] = {}  # hash -> (row, class)
        self._descending = [-h for h in self.weights]  # a heap, largest hash first; it may contain removed hashes
        heapify(self._descending)

    def __len__(self) -> int:
        return len(self.weights)

    def __contains__(self, row_hash: int) -> bool:
        return row_hash in self.weights

    def add(self, row_hash: int, row: RowT, group: int) -> int:
        """Add a row; return the number of kept rows that were added or removed."""
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
        """Whether a row may have been learned: it is in the sample, or its hash is beyond the limit."""
        weight = self.weights.get(row_hash, 0.0)
        return row_hash >= self.limit or weight - 1.0 >= -ROUNDING_TOLERANCE * weight

    def remove(self, row_hash: int) -> int:
        """Remove a row; return the number of kept rows that were removed."""
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
        """Return the current sample as a `RowSample`; ``sample_rows(rows, group, memory)`` makes a sample of rows."""
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
