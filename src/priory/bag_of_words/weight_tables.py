"""Tables of weights (tokens, classes), computed cell by cell from counts.

If counts are sparse, the weight of a cell with count zero depends only on its class, or only on its token. So a table
is stored as these weights, plus a sparse correction for the cells with a positive count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from priory.bag_of_words.sparse_counts import CountTable, SparseCounts, check_dense_size, make_csr
from priory.core.sparse_rows import multiply_entries
from priory.core.typing import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False)
class SparseTable:
    """A table (tokens, classes): ``shown[w] * (by_class[c] + by_token[w])``, plus the sparse matrix ``own``."""

    own: csr_array
    by_class: Array  # (classes,)
    by_token: Array  # (tokens,)
    shown: Array  # (tokens,): 0 for tokens without counts, else 1

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.by_token), len(self.by_class)

    def __len__(self) -> int:
        return len(self.by_token)

    def __add__(self, by_class: Array) -> SparseTable:
        return replace(self, by_class=self.by_class + by_class)

    def take_rows(self, tokens: Array) -> Array:
        """Weights of some tokens, (some tokens, classes)."""
        check_dense_size(len(tokens), len(self.by_class))
        empty = self.by_class + self.by_token[tokens, None]
        return np.asarray(self.own[tokens].toarray() + self.shown[tokens, None] * empty)

    def sum(self, axis: int) -> Array:
        """The sum over all tokens (``axis=0``)."""
        assert axis == 0
        return np.asarray(self.own.sum(axis=0) + self.shown.sum() * self.by_class + self.shown @ self.by_token)

    def multiply_rows(self, rows: csr_array) -> Array:
        """Product of sparse rows (rows, tokens) with the table, (rows, classes)."""
        product: Array = (rows @ self.own).toarray()
        product += np.outer(rows @ self.shown, self.by_class)
        product += (rows @ (self.shown * self.by_token))[:, None]
        return product

    def measure_spread(self) -> Array:
        """Range of the weights of each token, (tokens,), assuming that its lowest class has count zero."""
        highest = np.full(len(self), self.by_class.max(initial=-np.inf))
        token = np.repeat(np.arange(len(self)), np.diff(self.own.indptr))
        np.maximum.at(highest, token, self.own.data + self.by_class[self.own.indices])
        return self.shown * (highest - self.by_class.min(initial=np.inf))


WeightTable = Array | SparseTable  # (tokens, classes)


def map_by_class(counts: CountTable, function: Callable[..., Array], *by_class: Array) -> WeightTable:
    """Apply ``function(count, *by_class)`` to every cell; ``by_class`` are arrays (classes,)."""
    if not isinstance(counts, SparseCounts):
        return function(counts, *by_class)
    empty = np.broadcast_to(function(np.zeros(counts.n_classes), *by_class), counts.n_classes)
    # (entries,): the difference from a count of zero
    own = function(counts.values, *(numbers[counts.classes] for numbers in by_class)) - empty[counts.classes]
    return _make_table(counts, own, empty, np.zeros(len(counts)))


def map_by_token(counts: CountTable, function: Callable[..., Array], by_token: Array) -> WeightTable:
    """Apply ``function(count, by_token)`` to every cell; ``by_token`` is (tokens,)."""
    if not isinstance(counts, SparseCounts):
        return function(counts, by_token[:, None])
    empty, tokens = function(np.zeros(len(counts)), by_token), counts.tokens
    own = function(counts.values, by_token[tokens]) - empty[tokens]
    return _make_table(counts, own, np.zeros(counts.n_classes), empty)


def _make_table(counts: SparseCounts, own: Array, by_class: Array, by_token: Array) -> SparseTable:
    matrix = make_csr((own, counts.classes, np.append(0, counts.ends)), counts.shape)
    return SparseTable(matrix, by_class, by_token, np.ones(len(counts)))


def silence_tokens(table: WeightTable, counts: CountTable) -> WeightTable:
    """Set the weights of tokens without counts to zero."""
    shown = np.asarray(counts.any(axis=1))
    if isinstance(table, SparseTable):
        return replace(table, shown=shown.astype(float))
    return np.where(shown[:, None], table, 0.0)


def score_entries(ends: Array, tokens: Array, values: Array, table: WeightTable) -> Array:
    """Product of sparse rows of tokens with a table (tokens, classes): (rows, classes)."""
    if not isinstance(table, SparseTable):
        return multiply_entries(ends, tokens, values, table)
    return table.multiply_rows(make_csr((values, tokens, ends), (len(ends) - 1, len(table))))


def take_token_rows(table: WeightTable, tokens: Array) -> Array:
    """Weights of some tokens, (some tokens, classes)."""
    return table.take_rows(tokens) if isinstance(table, SparseTable) else np.asarray(table[tokens])


def measure_spread(table: WeightTable) -> Array:
    """Range of the weights of each token, (tokens,)."""
    if isinstance(table, SparseTable):
        return table.measure_spread()
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nan_to_num(table.max(axis=1) - table.min(axis=1), posinf=1e3))
