"""Rows of a model: the cells of a block of columns, the columns of a block's record, and a uniform sample of rows.

Cells are numbers, labels or texts behind one interface. Models select rows and columns of cells and hash them
independently of their type; only the families read ``data``. Cells of two tables with the same columns can be
concatenated (``append``), and unused values can be dropped (``drop_absent_values``), so that equal rows have equal
bytes in a model file.

A sample can be added and subtracted like counts. Of all distinct rows (cells and class) it keeps the ``memory`` rows
with the smallest content hashes, each with its weight, and at least a tenth more in reserve. The choice does not depend
on order or batches: the sample of a union consists of the smallest hashes of both samples, and a forgotten row is
removed. Rows with a hash of ``limit`` or more were not kept; while no row was dropped (``is_complete``) the sample is
the whole data. The limit is a number of five significant bits, the smallest with enough rows below it: so it is not the
hash of a row, and as long as enough rows are left it is what it would be had the forgotten ones never been there. The
corrections of a model are a function of this sample and of the statistics, so they can be derived without the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Protocol, Self

import numpy as np
from numpy import ndarray as Array

from priory.core.content_hash import WORD_MASK, digest_bytes, hash_bytes, hash_value, scramble_bits, scramble_number
from priory.core.sharding import ColumnSubset, map_shards
from priory.core.statistics import ROUNDING_TOLERANCE, Statistics, register_record
from priory.core.value_counts import CategoricalCells, ValueCounts, drop_absent_labels, take_shown_values
from priory.errors import NotLearnedError
from priory.text.documents import PackedDocuments
from priory.text.normal_forms import Document
from priory.text.token_bags import AnyDocuments, TokenBags, find_nonempty_texts

CellData = Array | ColumnSubset | CategoricalCells | AnyDocuments  # the input of families


ZERO_HASH = np.uint64(0x9E3779B97F4A7C15)  # XORed with the bits of a number, so that 0.0 does not hash to 0 (missing)


NO_DIGEST = bytes(8)  # the hash of an empty document, which is missing


class Cells(Protocol):
    """Rows of one or more columns with the same kind of values."""

    @property
    def data(self) -> CellData:
        """The cells, in the type that families read."""

    def __len__(self) -> int:
        """The number of rows."""

    def take_rows(self, rows: Array | slice) -> Self:
        """The cells of some rows."""

    def take_columns(self, columns: Array) -> Self:
        """The cells of some columns."""

    def view_columns(self, columns: Array) -> CellData:
        """The data of some columns, copied only when they are read."""

    def find_missing(self) -> Array:
        """Whether each cell is missing, (rows, columns)."""

    def hash_columns(self) -> Sequence[Array]:
        """64-bit hashes (rows,) for each column, the same on every machine; zero for missing cells."""

    def append(self, other: Self) -> Self:
        """Concatenate the rows of both."""

    def place_columns(self, other: Self, places: Array) -> Self:
        """A copy with the columns at ``places`` replaced by other cells."""

    def fill_cells(self, places: Array, other: Self) -> Self:
        """A copy with the cells at ``places`` (rows, columns) replaced by the other rows'."""

    def drop_absent_values(self) -> Self:
        """Drop values (or tokens) that no cell has."""


@register_record("NumberCells", axes={"data": "rd"}, finite=False)
@dataclass(frozen=True)
class NumberCells:
    """Columns of numbers; NaN is missing."""

    data: Array  # (rows, columns)

    def __len__(self) -> int:
        return len(self.data)

    def take_rows(self, rows: Array | slice) -> NumberCells:
        return NumberCells(self.data[rows])

    def take_columns(self, columns: Array) -> NumberCells:
        return NumberCells(self.data[:, columns])

    def view_columns(self, columns: Array) -> Array | ColumnSubset:
        return self.data if len(columns) == self.data.shape[1] else ColumnSubset(self.data, columns)

    def find_missing(self) -> Array:
        return np.isnan(self.data)

    def rank_column(self, column: int) -> Array:
        return np.nan_to_num(self.data[:, column].astype(float), nan=-np.inf)

    def hash_columns(self) -> Sequence[Array]:
        numbers = np.ascontiguousarray(np.asarray(self.data, dtype=np.float64).T) + 0.0  # -0.0 becomes 0.0
        bits = numbers.view(np.uint64) ^ ZERO_HASH
        if np.isnan(numbers).any():
            bits[np.isnan(numbers)] = 0
        return list(bits)

    def append(self, other: NumberCells) -> NumberCells:
        return NumberCells(np.concatenate([self.data, other.data]))

    def place_columns(self, other: NumberCells, places: Array) -> NumberCells:
        data = np.array(self.data, dtype=np.float64)
        data[:, places] = other.data
        return NumberCells(data)

    def fill_cells(self, places: Array, other: NumberCells) -> NumberCells:
        return NumberCells(np.where(places, other.data, self.data))

    def drop_absent_values(self) -> NumberCells:
        return NumberCells(np.ascontiguousarray(np.asarray(self.data, dtype=np.float64) + 0.0))


@register_record("LabelCells")
@dataclass(frozen=True)
class LabelCells:
    """Columns of labels, as codes; a negative code is missing."""

    data: CategoricalCells

    def __len__(self) -> int:
        return len(self.data)

    def take_rows(self, rows: Array | slice) -> LabelCells:
        return LabelCells(self.data[rows])

    def take_columns(self, columns: Array) -> LabelCells:
        values = tuple(self.data.values[int(j)] for j in columns)
        return LabelCells(CategoricalCells(self.data.codes[:, columns], values))

    def view_columns(self, columns: Array) -> CategoricalCells:
        return self.take_columns(columns).data

    def find_missing(self) -> Array:
        return self.data.codes < 0

    def rank_column(self, column: int) -> Array:
        codes = self.data.codes[:, column].astype(float)
        return np.where(codes < 0, -np.inf, codes)

    def hash_columns(self) -> Sequence[Array]:
        return [hash_labels(codes, values) for codes, values in zip(self.data.codes.T, self.data.values, strict=True)]

    def append(self, other: LabelCells) -> LabelCells:
        columns = []
        for j, (own, others) in enumerate(zip(self.data.values, other.data.values, strict=True)):
            values = np.union1d(own, others) if len(own) and len(others) else (own if len(own) else others)
            # the new code of each value; -1 at the end, because code -1 (missing) indexes the last element
            places = [np.append(np.searchsorted(values, part), -1) for part in (own, others)]
            codes = np.append(places[0][self.data.codes[:, j]], places[1][other.data.codes[:, j]])
            columns.append((codes, values))
        return LabelCells(CategoricalCells.from_encoded_columns(columns, len(self) + len(other)))

    def place_columns(self, other: LabelCells, places: Array) -> LabelCells:
        columns = list(zip(self.data.codes.T, self.data.values, strict=True))
        for place, column in zip(places.tolist(), zip(other.data.codes.T, other.data.values, strict=True), strict=True):
            columns[place] = column
        return LabelCells(CategoricalCells.from_encoded_columns(columns, len(self)))

    def fill_cells(self, places: Array, other: LabelCells) -> LabelCells:
        both = self.append(other).data
        codes = np.where(places, both.codes[len(self) :], both.codes[: len(self)])
        return LabelCells(CategoricalCells(codes, both.values))

    def drop_absent_values(self) -> LabelCells:
        columns = [drop_absent_labels(*column) for column in zip(self.data.codes.T, self.data.values, strict=True)]
        return LabelCells(CategoricalCells.from_encoded_columns(columns, len(self)))


@register_record("TextCells")
@dataclass(frozen=True)
class TextCells:
    """One column of documents; an empty document is missing."""

    data: list[Document] | PackedDocuments | TokenBags

    def __len__(self) -> int:
        return len(self.data)

    def take_rows(self, rows: Array | slice) -> TextCells:
        if isinstance(self.data, TokenBags):
            return TextCells(self.data[rows])
        if isinstance(rows, slice):
            return TextCells(self.data[rows])
        return TextCells([self.data[i] for i in rows.tolist()])

    def take_columns(self, columns: Array) -> TextCells:
        return self

    def view_columns(self, columns: Array) -> AnyDocuments:
        return self.data

    def find_missing(self) -> Array:
        return ~find_nonempty_texts(self.data)[:, None]

    def hash_columns(self) -> Sequence[Array]:
        if isinstance(self.data, TokenBags):
            return [self.data.hash_documents()]
        encoded = (d if isinstance(d, bytes) else d.encode(errors="surrogatepass") for d in self.data)
        hashes = b"".join(digest_bytes(document) if document else NO_DIGEST for document in encoded)
        return [np.frombuffer(hashes, "<u8").astype(np.uint64)]

    def append(self, other: TextCells) -> TextCells:
        if isinstance(self.data, TokenBags) and isinstance(other.data, TokenBags):
            return TextCells(self.data.append(other.data))
        assert not isinstance(self.data, TokenBags)
        assert not isinstance(other.data, TokenBags)
        return TextCells([*self.data, *other.data])

    def place_columns(self, other: TextCells, places: Array) -> TextCells:
        return other

    def fill_cells(self, places: Array, other: TextCells) -> TextCells:
        rows = np.arange(len(self))
        return self.append(other).take_rows(np.where(places[:, 0], len(self) + rows, rows))

    def drop_absent_values(self) -> TextCells:
        return TextCells(self.data.drop_absent_tokens()) if isinstance(self.data, TokenBags) else self


def hash_labels(codes: Array, values: Array) -> Array:
    """Hash of each cell's label, (rows,); zero for missing cells."""
    codes, values = take_shown_values(codes, values)
    # a hash for each value; 0 at the end, because code -1 (missing) indexes the last element
    return np.array([*map(hash_value, values.tolist()), 0], np.uint64)[codes]


def take_rows(blocks: Sequence[Cells], rows: Array | slice) -> list[Cells]:
    """Select rows of every block."""
    return [block.take_rows(rows) for block in blocks]


# -- the record of a block ---------------------------------------------------------------------------------------------

BlockRecord = Statistics | tuple[ValueCounts, ...]


def take_columns(record: BlockRecord, columns: Array) -> BlockRecord:
    """Select columns of the block."""
    return tuple(record[int(j)] for j in columns) if isinstance(record, tuple) else record.take_columns(columns)


def place_columns(record: BlockRecord, other: BlockRecord, places: Array) -> BlockRecord:
    """Replace the columns at ``places`` by the columns of another record of the same family."""
    if not isinstance(record, tuple):
        assert not isinstance(other, tuple)
        return record.place_columns(other, places)
    assert isinstance(other, tuple)
    columns = list(record)
    for place, counts in zip(places.tolist(), other, strict=True):
        columns[place] = counts
    return tuple(columns)


def find_filled(record: BlockRecord) -> Array:
    """Whether each column has at least one learned cell, (columns,)."""
    if isinstance(record, tuple):
        return np.array([len(counts.values) > 0 for counts in record], dtype=bool)
    return record.find_filled_columns()


# -- a sample of rows --------------------------------------------------------------------------------------------------

DEFAULT_MEMORY = 5000  # rows that are kept
MEMORY_OF_TEXTS = 20_000  # texts that are kept with refine="auto"
MEMORY_TO_REFINE = 50_000  # texts that are kept with refine=True
RESERVE_PART = 10  # one in so many rows is kept besides, to take the place of forgotten ones
NO_LIMIT = (1 << 64) - 1  # above every hash: no row was dropped
LIMIT_BITS = 5  # significant bits of a limit: the next one is 3 to 6 % larger
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
        if not 0 <= self.limit <= NO_LIMIT or (len(self) and self.find_limit(self.memory) < self.limit):
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
        keep_cells: Callable[[Sequence[Cells]], Sequence[Cells]] | None,
    ) -> tuple[RowSample, Array]:
        """Sample rows; also return the position of the first occurrence of each kept row.

        ``names`` are the column names of each block, and ``keep_cells`` converts cells to their stored form; if it is
        None, the sample has no cells yet.
        """
        hashes = hash_labelled_rows(names, cells, classes, group)
        counted = np.arange(len(hashes)) if weight is None else np.flatnonzero(weight > 0)
        least = add_reserve(memory)
        if 4 * least < len(counted):  # a quick preselection, checked: most rows are distinct
            bound = int(np.partition(hashes[counted], 4 * least)[4 * least])
            smallest = counted[hashes[counted] <= bound]
            distinct = np.unique(hashes[smallest])
            is_enough = len(distinct) >= least and find_limit_above(int(distinct[least - 1])) <= bound
            counted = smallest if is_enough else counted
        # distinct hashes in increasing order, the first row of each, and the hash of every row
        kept, first, place = np.unique(hashes[counted], return_index=True, return_inverse=True)
        weights = np.bincount(place, None if weight is None else weight[counted], len(kept)).astype(float)
        every = cls(memory, NO_LIMIT, kept, group[counted[first]].astype(np.int32), weights, ())
        sample = every._trim(memory, NO_LIMIT)
        rows = counted[first[: len(sample)]]
        return sample if keep_cells is None else sample.with_cells(keep_cells(take_rows(cells, rows))), rows

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
    def shortage(self) -> str:
        return describe_shortage(len(self), self.memory, self.limit)

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
        """Keep the rows below the limit, which is lowered if there are enough of them below a smaller one."""
        limit = min(limit, self.find_limit(memory))
        n_rows = int(np.searchsorted(self.hashes, np.uint64(limit))) if limit < NO_LIMIT else len(self)
        if (n_rows, memory, limit) == (len(self), self.memory, self.limit):
            return replace(self, blocks=tuple(block.drop_absent_values() for block in self.blocks))
        return replace(self.take(np.arange(n_rows)), memory=memory, limit=limit)

    def find_limit(self, memory: int) -> int:
        """The smallest limit below which there are ``memory`` rows and the reserve; `NO_LIMIT` if there are fewer."""
        least = add_reserve(memory)
        if len(self) < least:
            return NO_LIMIT
        return find_limit_above(int(self.hashes[least - 1])) if least else 0

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
    """Least number of rows to keep, so that ``memory`` of them can still be used when some were forgotten."""
    return memory + memory // RESERVE_PART


def describe_shortage(n_rows: int, memory: int, limit: int) -> str:
    """One line about a sample with fewer rows than corrections should be derived from; empty if it has enough."""
    if limit == NO_LIMIT or n_rows >= memory:
        return ""
    return f"the sample holds {n_rows:,} of {memory:,} rows; learn or forget with --refresh FILE uses rows of a file"


def find_limit_above(row_hash: int) -> int:
    """The smallest limit above a hash: a number of five significant bits.

    >>> [hex(find_limit_above(h)) for h in (0x1234_5678, 0xFFFF_FFFF)]
    ['0x13000000', '0x100000000']
    """
    shift = max(row_hash.bit_length() - LIMIT_BITS, 0)
    return min(((row_hash >> shift) + 1) << shift, NO_LIMIT)


def find_limit_below(limit: int) -> int:
    """The largest limit below another one."""
    last = limit - 1 if limit < NO_LIMIT else limit  # NO_LIMIT stands for 2^64
    shift = max(last.bit_length() - LIMIT_BITS, 0)
    return last >> shift << shift


def choose_text_memory(declared: int | None, refine: bool | Literal["auto"]) -> int:
    """Number of texts to keep: as declared, or the default."""
    usual = MEMORY_OF_TEXTS if refine == "auto" else MEMORY_TO_REFINE if refine else DEFAULT_MEMORY
    return usual if declared is None else declared


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
