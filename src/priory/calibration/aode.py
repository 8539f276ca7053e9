"""Averaged one-dependence estimators (AODE): every column may depend on one other column as well as on the class.

Each column in turn is the parent of all others, and the answers are averaged:

    p(c, x)  =  1/d  Σ_p  p(c, x_p)  Π_{j≠p} p(x_j | c, x_p)

All of it follows from counts of pairs of values, which add and subtract like any other record. A value that was never
learned says nothing about the class: it is neither parent nor child.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array

from priory.core.logspace import log_sum_exp
from priory.core.registration import register_record
from priory.core.statistics import Statistics
from priory.core.typing import Array


@register_record("Pairs", axes={"sizes": "d", "n": "c", "counts": "cvv"}, dtypes={"sizes": "i8"})
@dataclass(frozen=True, eq=False)
class PairCounts(Statistics):
    """How often each pair of values occurred in each class."""

    frame_fields: ClassVar[tuple[str, ...]] = ("sizes",)
    count_fields: ClassVar[tuple[str, ...]] = ("n", "counts")

    sizes: Array  # (columns,): the number of values of each column
    n: Array  # (classes,)
    counts: Array  # (classes, values, values), the values of all columns one after the other

    def find_fault(self) -> str | None:
        values = self.counts.shape[1]
        possible = ((self.sizes >= 1) & (self.sizes <= values)).all() and self.sizes.sum() == values
        return None if possible else "there is not one count for each pair of values"

    @classmethod
    def of(cls, codes: Array, sizes: Array, group: Array, groups: int, weight: Array) -> PairCounts:
        """The record of rows whose cells are codes ``0 .. size-1``; ``codes`` is (rows, columns)."""
        values = encode_one_hot(codes, sizes)
        counts = [(values[group == c].T * weight[group == c]) @ values[group == c] for c in range(groups)]
        n = np.bincount(group, weight, minlength=groups).astype(float)
        return cls(sizes, n, np.stack([c.toarray() for c in counts]))

    def regroup_classes(self, index: Array, size: int) -> PairCounts:
        wide = replace(self, n=np.zeros(size), counts=np.zeros((size, *self.counts.shape[1:])))
        wide.n[index], wide.counts[index] = self.n, self.counts
        return wide

    def log_joint(self, codes: Array, own_class: Array | None = None) -> Array:
        """(rows, classes): log p(c, x); with ``own_class``, from the record without the row (of weight one)."""
        rows, classes = np.arange(len(codes)), len(self.n)
        own_row = np.zeros((len(codes), classes))  # what the row itself adds to every count it is in
        if own_class is not None:
            own_row[rows, own_class] = 1.0
        place = codes + np.cumsum(self.sizes) - self.sizes  # (rows, columns): positions among all values
        n = self.n - own_row
        single = [self.counts[:, at, at].T - own_row for at in place.T]  # for each column (rows, classes)
        known = [np.asarray(counts.any(axis=1)) for counts in single]  # for each column (rows,): was its value learned?
        total = n.sum(axis=1, keepdims=True) + classes
        parents = []
        for p, parent in enumerate(place.T):
            score = np.log(single[p] + 1 / self.sizes[p]) - np.log(total)
            for j, child in enumerate(place.T):
                if j != p:
                    both = self.counts[:, parent, child].T - own_row
                    term = np.log(both + 1 / self.sizes[j]) - np.log(single[p] + 1)
                    score += np.where(known[j][:, None], term, 0.0)
            parents.append(np.where(known[p][:, None], score, -np.inf))
        n_parents = np.sum(known, axis=0)[:, None]  # (rows, 1)
        answer = log_sum_exp(np.stack(parents, axis=-1)) - np.log(np.maximum(n_parents, 1))
        return np.where(n_parents > 0, answer, np.log(n + 1) - np.log(total))


def encode_one_hot(codes: Array, sizes: Array) -> csr_array:
    """(rows, values): a one for the value of each column, the values of all columns one after the other."""
    rows, columns = codes.shape
    ids = codes + np.cumsum(sizes) - sizes
    ends = np.arange(rows + 1) * columns
    return csr_array((np.ones(ids.size), ids.ravel(), ends), shape=(rows, int(sizes.sum())))


def pair_columns(codes: Array, sizes: Array) -> tuple[Array, Array]:
    """Each pair of columns as one column (rows, pairs), and the number of values of each (pairs,)."""
    first, second = np.triu_indices(len(sizes), 1)
    return codes[:, first] * sizes[second] + codes[:, second], sizes[first] * sizes[second]
