"""Standby corrections, which can answer at once after a kept row was forgotten.

Corrections depend on the kept rows, and deriving them anew takes part of a second. The kept rows are divided into
blocks by their hashes, and each standby set is derived from a model that has never seen the rows of one block. When a
row of that block is forgotten, its set answers until the corrections have been derived anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from priory.calibration.corrections import Corrections

if TYPE_CHECKING:
    from priory.learning.learned import Learned

BITS_OF_BLOCK = 2  # of the hash of a row: four blocks
Standby = Mapping[int, Corrections]  # by the number of the block that the corrections have never seen
NO_STANDBY: Standby = {}


def find_block(row_hash: int) -> int:
    """The block of a kept row."""
    return row_hash >> (64 - BITS_OF_BLOCK)


def derive_standby(learned: Learned) -> Standby:
    """Corrections without each block; a block that holds all rows of a class has none."""
    found = {block: _derive_without_block(learned, block) for block in range(1 << BITS_OF_BLOCK)}
    return {block: corrections for block, corrections in found.items() if corrections is not None}


def _derive_without_block(learned: Learned, block: int) -> Corrections | None:
    total = learned.statistics
    sample = total.sample
    if sample is None:
        return None
    is_inside = sample.hashes >> np.uint64(64 - BITS_OF_BLOCK) == block
    part, rest = sample.take(np.flatnonzero(is_inside)), sample.take(np.flatnonzero(~is_inside))
    counted = learned.model().observe(part.blocks, part.group, part.weight)
    left = replace(total, sample=None) - counted
    if not (left.n > 0).all():
        return None
    return replace(learned, statistics=replace(left, sample=rest)).derive_corrections()


def keep_standby(standby: Standby, forgotten: Iterable[int] | None) -> Standby:
    """The sets that have never seen the forgotten rows, given by their hashes; None if one of them was not kept."""
    if not standby or forgotten is None:
        return NO_STANDBY
    blocks = set(map(find_block, forgotten))
    return {block: corrections for block, corrections in standby.items() if blocks <= {block}}
