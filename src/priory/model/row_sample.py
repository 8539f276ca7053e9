"""A uniform sample of the learned rows, which can be added and subtracted like counts.

Of all distinct rows (cells and class) it keeps the ``memory`` rows with the smallest content hashes, each with its
weight. The choice does not depend on order or batches: the sample of a union consists of the smallest hashes of both
samples, and a forgotten row is removed. Rows with a hash of ``limit`` or more were not kept; while no row was dropped
(``is_complete``) the sample is the whole data.

The corrections of a model are a function of this sample and of the statistics, so they can be derived without the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy import ndarray as Array

from priory.core.content_hash import WORD_MASK, scramble_bits, scramble_number
from priory.core.sharding import map_shards
from priory.core.statistics import ROUNDING_TOLERANCE, Statistics, register_record
from priory.errors import NotLearnedError
from priory.model.cells import Cells, hash_bytes, hash_value, take_rows

DEFAULT_MEMORY = 5000  # rows that are kept
MEMORY_OF_TEXTS = 20_000  # texts that are kept with refine="auto"
MEMORY_TO_REFINE = 50_000  # rows that are kept with refine=True
RESERVE_PART = 10  # one in so many rows is kept besides, to take the place of forgotten ones
NO_LIMIT = (1 << 64) - 1  # above every hash: no row was dropped
TEXT_COLUMN_NAMES = ("text",)  # the column name of a model of texts, in hashes


@register_record(
    "RowSample",
    axes={"hashes": "r", "group": "r", "weight": "r"},
    dtypes={"hashes": "u8", "group": "i4"},
    finite=False,
    reveals="the cells of single training rows, and their classes",
)
@dataclass(frozen=True, eq=False)
class RowSample(Statistics):
    """Sampled rows, sorted by hash."""

    count_fields: ClassVar[tuple[str, ...]] = ("weight",)

    memory: int  # the largest number of distinct rows that corrections are derived from, as declared
    limit: int  # upper bound (exclusive) of the hashes
    hashes: Array  # (rows,), uint64
    group: Array  # (rows,): the number of each row's class
    weight: Array  # (rows,)
    blocks: tuple[Cells, ...]  # texts as bags of tokens

    def find_fault(self) -> str | None:
        if not 0 <= self.limit <= NO_LIMIT or not 0 <= len(self) <= add_reserve(self.memory):
            return "it has more rows than it may have"
        if (self.hashes[1:] <= self.hashes[:-1]).any() or (len(self) and int(self.hashes[-1]) >= self.limit):
            return "its rows are not in order"
        if not ((self.weight > 0) & (self.weight < np.inf)).all() or self.group.min(initial=0) < 0:
            return "a row has no class, or no possible weight"
        return None if all(len(block) == len(self) for block in self.blocks) else "a column has another number of rows"

    @classmethod
    def of(
        cls,
        names: Sequence[Sequence[str]],
        cells: Sequence[Cells],
        classes: Array,
        group: Array,
        weight: Array | None,
        memory: int,
        keep_cells: Callable[[Sequence[Cells]], Sequence[Cells]],
    ) -> tuple[RowSample, Array]:
        """Sample rows; also return the position of the first occurrence of each kept row.

        ``names`` are the column names of each block, and ``keep_cells`` converts cells to their stored form.
        """
        sample, rows = cls.choose_rows(names, cells, classes, group, weight, memory)
        return sample.with_cells(keep_cells(take_rows(cells, rows))), rows

    @classmethod
    def choose_rows(
        cls,
        names: Sequence[Sequence[str]],
        cells: Sequence[Cells],
        classes: Array,
        group: Array,
        weight: Array | None,
        memory: int,
    ) -> tuple[RowSample, Array]:
        """Sample rows without storing cells; also return the position of the first occurrence of each kept row."""
        hashes = hash_labelled_rows(names, cells, classes, group)
        counted = np.arange(len(hashes)) if weight is None else np.flatnonzero(weight > 0)
        most = add_reserve(memory)
        if 4 * most < len(counted):  # a quick preselection, checked below: most rows are distinct
            bound = np.partition(hashes[counted], 4 * most)[4 * most]
            smallest = counted[hashes[counted] <= bound]
            counted = smallest if len(np.unique(hashes[smallest])) > most else counted
        # distinct hashes in increasing order, the first row of each, and the hash of every row
        kept, first, place = np.unique(hashes[counted], return_index=True, return_inverse=True)
        weights = np.bincount(place, None if weight is None else weight[counted], len(kept)).astype(float)
        rows, limit = counted[first[:most]], int(kept[most]) if len(kept) > most else NO_LIMIT
        return cls(memory, limit, kept[:most], group[rows].astype(np.int32), weights[:most], ()), rows

    def with_cells(self, blocks: Sequence[Cells]) -> RowSample:
        """Set the cells of the sampled rows."""
        return replace(self, blocks=tuple(block.drop_absent_values() for block in blocks))

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def n(self) -> Array:
        """Weight of the kept rows of each class, up to the last class that has any: (classes,)."""
        return np.bincount(self.group, self.weight).astype(float)

    def take_used(self) -> RowSample:
        """The rows that corrections are derived from: those with the smallest hashes, without the reserve."""
        if len(self) <= self.memory:
            return self
        return replace(self.take(np.arange(self.memory)), limit=int(self.hashes[self.memory]))

    def estimate_rows(self) -> float:
        """The weight of all learned rows, estimated from the share of all hashes that are below the limit."""
        share = 1.0 if self.is_complete else self.limit / NO_LIMIT
        return float(self.weight.sum()) / share

    @property
    def is_complete(self) -> bool:
        """Whether the sample contains every learned row."""
        return self.limit == NO_LIMIT

    def take(self, rows: Array, weight: Array | None = None) -> RowSample:
        """Select rows in the order of the sample, optionally with other weights."""
        return replace(
            self,
            hashes=self.hashes[rows],
            group=self.group[rows],
            weight=self.weight[rows] if weight is None else weight,
            blocks=tuple(block.drop_absent_values() for block in take_rows(self.blocks, rows)),
        )

    def __add__(self, other: RowSample) -> RowSample:
        memory, limit = min(self.memory, other.memory), min(self.limit, other.limit)
        if not len(other) or int(other.hashes[0]) >= limit:
            return self._trim(memory, limit)
        # union of the rows; the weights of equal rows are added
        both = np.append(self.hashes, other.hashes)
        hashes, first, place = np.unique(both, return_index=True, return_inverse=True)
        weight = np.bincount(place, np.append(self.weight, other.weight), len(hashes))
        blocks = tuple(a.append(b).take_rows(first) for a, b in zip(self.blocks, other.blocks, strict=True))
        group = np.append(self.group, other.group)[first]
        return replace(self, hashes=hashes, group=group, weight=weight, blocks=blocks)._trim(memory, limit)

    def _trim(self, memory: int, limit: int) -> RowSample:
        """Keep the rows below the limit, and at most ``memory`` of them with the reserve."""
        if len(self) > (most := add_reserve(memory)):
            # the smallest hash that is dropped
            limit = min(limit, int(self.hashes[most]))
        n_rows = int(np.searchsorted(self.hashes, np.uint64(limit))) if limit < NO_LIMIT else len(self)
        if (n_rows, memory, limit) == (len(self), self.memory, self.limit):
            return replace(self, blocks=tuple(block.drop_absent_values() for block in self.blocks))
        return replace(self.take(np.arange(n_rows)), memory=memory, limit=limit)

    def __sub__(self, other: RowSample) -> RowSample:
        part = other.take(np.flatnonzero(other.hashes < np.uint64(self.limit))) if not self.is_complete else other
        if not len(part):
            return self
        # the position of each row of the part in this sample; ``found`` whether it is there
        place = np.searchsorted(self.hashes, part.hashes)
        found = place < len(self)
        found[found] = self.hashes[place[found]] == part.hashes[found]
        if not found.all():
            raise NotLearnedError("only rows that were learned can be forgotten.", subject="this row, as a whole,")
        weight = self.weight.copy()
        weight[place] -= part.weight
        tolerance = ROUNDING_TOLERANCE * self.weight
        if (weight < -tolerance).any():
            raise NotLearnedError("a row was not learned this often.", subject="this row, as a whole,")
        left = np.flatnonzero(weight > tolerance)
        return self.take(left, weight[left])

    def __mul__(self, weight: float) -> RowSample:
        return replace(self, weight=self.weight * weight) if weight else self.take(np.arange(0))

    __rmul__ = __mul__

    def regroup_classes(self, index: Array, size: int) -> RowSample:
        if np.array_equal(index, np.arange(len(index))):
            return self
        return replace(self, group=np.asarray(index, dtype=np.int32)[self.group])

    def take_classes(self, classes: Array) -> RowSample:
        # the new number of each class; -1 if it is dropped
        rank = np.full(1 + max(classes.max(initial=0), self.group.max(initial=0)), -1, dtype=np.int32)
        rank[classes] = np.arange(len(classes))
        left = np.flatnonzero(rank[self.group] >= 0)
        kept = self if len(left) == len(self) else self.take(left)
        group = rank[kept.group]
        return kept if np.array_equal(group, kept.group) else replace(kept, group=group)

    def pool_classes(self) -> RowSample:
        return replace(self, group=np.zeros_like(self.group))

    def count_changes(self, other: RowSample) -> int:
        """Number of rows that are in only one of two samples."""
        if self.hashes is other.hashes:
            return 0
        return len(np.setxor1d(self.hashes, other.hashes, assume_unique=True))


def add_reserve(memory: int) -> int:
    """Number of rows to keep, so that ``memory`` of them can still be used when some were forgotten."""
    return memory + memory // RESERVE_PART


def choose_memory(declared: int | None, refine: bool) -> int:
    """Number of rows to keep: as declared, or the default."""
    return declared if declared is not None else MEMORY_TO_REFINE if refine else DEFAULT_MEMORY


def choose_text_memory(declared: int | None, refine: bool | Literal["auto"]) -> int:
    """Number of texts to keep: as declared, or the default."""
    return MEMORY_OF_TEXTS if declared is None and refine == "auto" else choose_memory(declared, bool(refine))


def hash_labelled_rows(names: Sequence[Sequence[str]], cells: Sequence[Cells], classes: Array, group: Array) -> Array:
    """64-bit hash of the cells and the class of each row, (rows,).

    A missing cell contributes nothing, and a column is identified by its name: neither the order of the columns nor
    empty columns matter.
    """
    keys = [[np.uint64(hash_column_name(name)) for name in n] for n in names]
    labels = np.array([hash_value(label) for label in classes.tolist()], dtype=np.uint64)
    total = np.empty(len(group), dtype=np.uint64)

    def hash_shard(part: slice) -> None:
        # sums of 64-bit integers, modulo 2^64
        sums = labels[group[part]]
        for block_keys, block in zip(keys, take_rows(cells, part), strict=False):
            for key, column in zip(block_keys, block.hash_columns(), strict=True):
                sums += np.where(column == 0, np.uint64(0), scramble_bits(column ^ key))
        total[part] = scramble_bits(sums)

    for _ in map_shards(hash_shard, len(group)):
        pass
    return np.minimum(total, np.uint64(NO_LIMIT - 1))


def hash_column_name(name: str) -> int:
    """The key that the hashes of a column's cells are XORed with."""
    return hash_bytes(b"column " + name.encode(errors="surrogatepass"))


def finish_row_hash(label_hash: int, cells_hash: int) -> int:
    """Hash of a labelled row, from the sum of the hashes of its cells; see `hash_labelled_rows`."""
    return min(scramble_number((label_hash + cells_hash) & WORD_MASK), NO_LIMIT - 1)


def split_weights(sample: RowSample, folds: int) -> Array:
    """Weight of each row in each fold, (folds, rows); a row that occurs repeatedly is in several folds.

    Each class is spread evenly in the order of the hashes, so that folds do not depend on the order of the rows.
    """
    start = np.empty(len(sample), dtype=np.int64)  # the first fold of each row
    whole = np.floor(sample.weight)
    for c in np.unique(sample.group):
        own = np.flatnonzero(sample.group == c)
        start[own] = np.cumsum(np.append(0.0, np.maximum(whole[own], 1.0))[:-1]) % folds
    turn = (np.arange(folds)[:, None] - start) % folds  # (folds, rows): 0 in the first fold of a row, then 1, 2, ...
    rounds, rest = whole // folds, whole % folds
    # whole rounds over all folds, then one each for the next folds, then the fractional part of the weight
    return np.asarray(rounds + (turn < rest) + (sample.weight - whole) * (turn == rest % folds))
