"""Corrections after a row was forgotten: standby sets, and the evidence of all rows, followed row by row.

Corrections depend on the kept rows, and deriving them anew takes part of a second. The kept rows are divided into
blocks by their hashes, and each standby set is derived from a model that has never seen the rows of one block. When a
row of that block is forgotten, its set answers until the corrections have been derived anew.

Corrections are fitted to the kept rows. Of the other rows they hold only the evidence of each code, which is a function
of counts: when such a row is forgotten, it is counted out, and nothing has to be fitted again. The evidence of texts is
in no correction: the model itself gives it with each answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray as Array

from priory.calibration.code_counts import count_learned_codes
from priory.calibration.corrections import Corrections
from priory.calibration.encoded_rows import RowCodes
from priory.model.model_statistics import log_class_prior
from priory.model.open_model import RowT

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


# -- the evidence of all rows, followed row by row ---------------------------------------------------------------------


def can_follow_counts(corrections: Corrections | None, learned: Learned) -> bool:
    """Whether corrections, as they were derived, depend on the kept rows alone, and the rest is counts."""
    return corrections is not None and bool(corrections.members) and learned.reads_sample_alone()


class LiveCounts:
    """How often each code of the corrections was learned, in each class."""

    def __init__(self, corrections: Corrections, model: Any) -> None:
        self.encoding = corrections.encoding
        self.columns = [RowCodes(column) for column in self.encoding.columns]
        self.starts = self.encoding.starts[:-1].tolist()
        # (classes, codes), and (codes,): whether the model counts the values of the column
        self.total, self.is_counted = count_learned_codes(self.encoding, model, len(model.classes))
        self._n_learned = self._n_forgotten = 0

    def count_pending(
        self,
        learned: Sequence[tuple[RowT, int]],
        forgotten: Sequence[tuple[RowT, int]],
        list_cells: Callable[[RowT], Sequence[Any]],
    ) -> None:
        """Count the rows with their classes that were learned and forgotten since, besides those counted before."""
        for rows, start, times in ((learned, self._n_learned, 1), (forgotten, self._n_forgotten, -1)):
            for row, group in islice(rows, start, None):
                self._count(list_cells(row), group, times)
        self._n_learned, self._n_forgotten = len(learned), len(forgotten)

    def _count(self, cells: Sequence[Any], group: int, times: int) -> None:
        for start, column, cell in zip(self.starts, self.columns, cells, strict=True):
            code = column.encode(cell)
            if 0 <= code < column.missing:
                self.total[group, start + code] += times

    def update(self, corrections: Corrections, n: Array) -> Corrections:
        """The same corrections with the evidence of all rows; ``n`` (classes,) is the number of rows of each class."""
        evidence = corrections.evidence
        assert evidence is not None
        if not self.columns:
            return replace(corrections, evidence=replace(evidence, log_prior=log_class_prior(n, "estimated")))
        return replace(corrections, evidence=evidence.follow_counts(self.encoding, self.total, self.is_counted, n))
