"""Base class of the statistics of texts: documents of each class, and counts of tokens by class."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np

from priory.bag_of_words.sparse_counts import (
    CountTable,
    SparseCounts,
    is_kept_sparse,
    make_dense_counts,
    move_classes,
    subtract_tables,
)
from priory.core.statistics import Statistics, subtract_counts
from priory.core.typing import Array


class BagCounts(Statistics):
    """Number of documents of each class, and counts of each token (or bucket of tokens) in each class.

    Subclasses declare the fields, each in its own order.
    """

    n: Array  # (classes,)
    counts: CountTable  # (tokens, classes)

    def __len__(self) -> int:
        return len(self.counts)

    def regroup_classes(self, index: Array, size: int) -> Self:
        n = np.zeros(size)
        n[index] = self.n
        return self._replace_counts(n, move_classes(self.counts, index, size))

    def take_classes(self, classes: Array) -> Self:
        # the new number of each class; -1 if it is dropped
        index = np.full(len(self.n), -1)
        index[classes] = np.arange(len(classes))
        return self._replace_counts(self.n[classes], move_classes(self.counts, index, len(classes)))

    def pool_classes(self) -> Self:
        return self._replace_counts(self.n.sum(keepdims=True), self.counts.sum(axis=1)[:, None])

    def __sub__(self, other: Self) -> Self:
        total, part = self.align(other)
        return self.check_subtraction(total, part)

    def check_subtraction(self, total: Self, part: Self) -> Self:
        n = subtract_counts(total.n, part.n)
        return total._replace_counts(n, subtract_tables(total.counts, part.counts, 0.0, n))

    def sort_content(self) -> Self:
        """Return the record with dense or sparse counts, depending on the number of classes."""
        counts = self.counts
        if isinstance(counts, SparseCounts) == is_kept_sparse(counts.shape[1]) or counts.shape[1] != len(self.n):
            return self
        if isinstance(counts, SparseCounts) and counts.find_fault():
            return self
        return self._replace_counts(self.n, move_classes(self.counts, np.arange(len(self.n)), len(self.n)))

    def make_dense(self) -> Self:
        """The record with its counts as a dense array; raises ModelTooLargeError if they do not fit into memory."""
        if not isinstance(self.counts, SparseCounts):
            return self
        return self.derive("dense", lambda words: words._replace_counts(words.n, make_dense_counts(words.counts)))

    def _replace_counts(self, n: Array, counts: CountTable) -> Self:
        return replace(self, **{"n": n, "counts": counts})

    def take_columns(self, columns: Array) -> Self:
        """Return the record itself, because texts are one column."""
        return self

    def place_columns(self, other: Self, places: Array) -> Self:
        """Return the other record, because texts are one column."""
        return other

    def find_filled_columns(self) -> Array:
        return np.array([bool(self.n.any())])
