"""One-dependence: averaged one-dependence estimators (AODE), where columns depend on one another.

Each column in turn is the one that all others depend on, besides the class; the answers are averaged:

    p(c, x)  =  1/d  Σ_p  p(c, x_p)  Π_{j≠p} p(x_j | c, x_p)

All of it follows from counts of pairs of values, and those add and subtract like any others.
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


@register_record("Pairs")
@dataclass(frozen=True, eq=False)
class PairCounts(Statistics):
    """How often each class showed each pair of values; ``sizes`` says how many values each column has."""

    frame_fields: ClassVar[tuple[str, ...]] = ("sizes",)
    count_fields: ClassVar[tuple[str, ...]] = ("n", "counts")

    sizes: Array
    n: Array
    counts: Array  # (classes, values, values), the columns' values one after the other

    @classmethod
    def of(cls, codes: Array, sizes: Array, group: Array, groups: int, weight: Array) -> PairCounts:
        """Of rows whose cells are codes ``0 .. size-1``."""
        shown = encode_one_hot(codes, sizes)
        counts = [(shown[group == c].T * weight[group == c]) @ shown[group == c] for c in range(groups)]
        n = np.bincount(group, weight, minlength=groups).astype(float)
        return cls(sizes, n, np.stack([c.toarray() for c in counts]))

    def regroup_classes(self, index: Array, size: int) -> PairCounts:
        wide = replace(self, n=np.zeros(size), counts=np.zeros((size, *self.counts.shape[1:])))
        wide.n[index], wide.counts[index] = self.n, self.counts
        return wide

    def log_joint(self, codes: Array, own_class: Array | None = None) -> Array:
        """log p(c, x) for each row and class; with ``own`` classes, from the record without the row (of weight one)."""
        rows, classes = np.arange(len(codes)), len(self.n)
        less = np.zeros((len(codes), classes))
        if own_class is not None:
            less[rows, own_class] = 1.0
        place = codes + np.cumsum(self.sizes) - self.sizes
        n = self.n - less
        shown = [self.counts[:, at, at].T - less for at in place.T]
        parents = []
        for p, parent in enumerate(place.T):
            score = np.log(shown[p] + 1 / self.sizes[p]) - np.log(n.sum(axis=1, keepdims=True) + classes)
            for j, child in enumerate(place.T):
                if j != p:
                    both = self.counts[:, parent, child].T - less
                    score += np.log(both + 1 / self.sizes[j]) - np.log(shown[p] + 1)
            parents.append(score)
        return log_sum_exp(np.stack(parents, axis=-1)) - np.log(len(parents))


def encode_one_hot(codes: Array, sizes: Array) -> csr_array:
    """A one for the value of each column, the columns' values one after the other."""
    rows, columns = codes.shape
    ids = codes + np.cumsum(sizes) - sizes
    ends = np.arange(rows + 1) * columns
    return csr_array((np.ones(ids.size), ids.ravel(), ends), shape=(rows, int(sizes.sum())))


def pair_columns(codes: Array, sizes: Array) -> tuple[Array, Array]:
    """Each pair of columns as one column, and how many values it has."""
    first, second = np.triu_indices(len(sizes), 1)
    return codes[:, first] * sizes[second] + codes[:, second], sizes[first] * sizes[second]
