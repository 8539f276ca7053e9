"""Standby corrections, which can answer at once after a kept row was forgotten.

Corrections depend on the kept rows, and deriving them anew takes part of a second. The kept rows are divided into
blocks by their hashes, and each standby set is derived from a model that has never seen the rows of one block. When a
row of that block is forgotten, its set answers until the corrections have been derived anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from priory.calibration.corrections import Corrections
from priory.learning.live_evidence import can_follow_counts

if TYPE_CHECKING:
    from priory.learning.learned import Learned
    from priory.model.cells import RowSample

N_BLOCKS = 4  # by the last bits of the hash: kept rows have the smallest hashes, so the first bits are alike


@dataclass(frozen=True)
class Standby:
    """Corrections by the block that they have never seen."""

    sets: Mapping[int, Corrections] = field(default_factory=dict)
    limit: int = 0  # rows with such a hash, or a larger one, were not kept when the sets were derived
    is_live: bool = False  # whether the sets depend on such rows by counts alone

    def keep_unseen(self, forgotten: Iterable[int]) -> Standby:
        """The sets that have never seen the forgotten rows, given by their hashes."""
        sets = self.sets
        for row_hash in forgotten if sets else ():
            if row_hash < self.limit:
                sets = {block: found for block, found in sets.items() if block == find_block(row_hash)}
            elif not self.is_live:
                sets = {}
        return self if sets is self.sets else replace(self, sets=sets)


def find_block(row_hash: int) -> int:
    """The block of a kept row."""
    return row_hash % N_BLOCKS


def derive_standby(learned: Learned) -> Standby:
    """Corrections without each block; a block that is empty, or holds all rows of a class, has none."""
    sample = learned.statistics.sample
    if sample is None:
        return Standby()
    sets = {block: found for block in range(N_BLOCKS) if (found := _derive_without_block(learned, sample, block))}
    return Standby(sets, sample.limit, all(can_follow_counts(one, learned) for one in sets.values()))


def _derive_without_block(learned: Learned, sample: RowSample, block: int) -> Corrections | None:
    total = learned.statistics
    is_inside = sample.hashes % np.uint64(N_BLOCKS) == block
    part, rest = sample.take(np.flatnonzero(is_inside)), sample.take(np.flatnonzero(~is_inside))
    if not len(part):
        return None
    left = replace(total, sample=None) - learned.model().observe(part.blocks, part.group, part.weight)
    if not (left.n > 0).all():
        return None
    return replace(learned, statistics=replace(left, sample=rest)).derive_corrections()
