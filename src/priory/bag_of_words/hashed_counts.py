"""What was learned from texts whose words are not kept: counts of hashed tokens, in a space of declared size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from priory.core.registration import register_record
from priory.core.statistics import Statistics
from priory.core.typing import Array


@register_record(
    "Buckets",
    axes={"n": "c", "counts": "vc"},
    reveals="counts of hashed words, and the salt with which a guessed word can be looked up",
)
@dataclass(frozen=True, eq=False)
class HashedCounts(Statistics):
    """Documents of each class, and how often each class showed a token of each bucket; no word is kept."""

    count_fields: ClassVar[tuple[str, ...]] = ("n", "counts")

    n: Array
    counts: Array  # (buckets, classes)

    def __len__(self) -> int:
        return len(self.counts)

    def regroup_classes(self, index: Array, size: int) -> HashedCounts:
        n, counts = np.zeros(size), np.zeros((len(self), size))
        n[index], counts[:, index] = self.n, self.counts
        return replace(self, n=n, counts=counts)

    def pool_classes(self) -> HashedCounts:
        return HashedCounts(self.n.sum(keepdims=True), self.counts.sum(axis=1, keepdims=True))
