"""The record that every bag of words is computed from: documents of each class, and counts of tokens by class."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np

from priory.core.statistics import Statistics
from priory.core.typing import Array


class BagCounts(Statistics):
    """The number of documents of each class, and how often each class showed each token (or bucket of tokens).

    The fields are declared by the records that derive from it, each in its own order.
    """

    n: Array  # (classes,)
    counts: Array  # (tokens, classes)

    def __len__(self) -> int:
        return len(self.counts)

    def regroup_classes(self, index: Array, size: int) -> Self:
        n, counts = np.zeros(size), np.zeros((len(self), size))
        n[index], counts[:, index] = self.n, self.counts
        return self._replace_counts(n, counts)

    def pool_classes(self) -> Self:
        return self._replace_counts(self.n.sum(keepdims=True), self.counts.sum(axis=1, keepdims=True))

    def _replace_counts(self, n: Array, counts: Array) -> Self:
        return replace(self, **{"n": n, "counts": counts})

    def take_columns(self, columns: Array) -> Self:
        """The record itself: texts are one column."""
        return self

    def place_columns(self, other: Self, places: Array) -> Self:
        """The other record: texts are one column."""
        return other

    def find_filled_columns(self) -> Array:
        return np.array([bool(self.n.any())])
