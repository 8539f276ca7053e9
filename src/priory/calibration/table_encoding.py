"""Encode the cells of columns as integer codes, independent of the classes.

Numbers are binned into bins of about equal weight; a frequent value gets a bin of its own. The code of a label is its
rank among the most frequent labels that occur in at least two rows. The last code of a column means missing. Other
labels have code -1 and are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import erfc, sqrt

import numpy as np
from numpy import ndarray as Array

from priory.core.logspace import find_normal_quantiles
from priory.core.sparse_rows import SparseRows
from priory.core.statistics import is_increasing, register_record
from priory.core.value_counts import VALUE_BITS, round_to_bits, take_shown_values
from priory.model.cells import Cells, LabelCells, NumberCells

# With more rows than these there are more codes, one for each unit that the root of their number grows by.
MANY_ROWS = 5000
MAX_CODES, MAX_CODES_OF_MANY_ROWS = 24, 64
# Of a column with many labels, those with few kept rows are rare: members weigh them by their evidence alone, which
# follows the counts of all rows. The more rows are learned for each kept row, the more is few.
MANY_LABELS, MAX_COMMON_LABELS = 64, 1000
ENOUGH_ROWS_PER_KEPT_ROW, ROWS_OF_RARE_LABEL, MOST_ROWS_OF_RARE_LABEL = 1.25, 80, 30
BLENDED_SHARE = 0.25  # of a bin's count, for each neighbour; less where there are many rows
MAX_SCORE = 1e70  # far above normal scores and their statistics; squares of products are finite
MISSING_LEVEL = 8  # of a column in a pair; values have the levels below it
N_LEVELS = MISSING_LEVEL + 1
MAX_STANDARD_SCORE = 6.0  # standardised numbers beyond it count as this
MAX_KNOTS = 65  # of the map to normal scores
RANK_STEPS = 256  # ranks are whole numbers from 0 to this


@register_record(
    "ColumnCodes",
    axes={"levels": "v", "blends": "v", "knots": "k", "scores": "k", "mean": "", "deviation": ""},
    dtypes={"levels": "i8"},
)
@dataclass(frozen=True, eq=False)
class ColumnCodes:
    """The codes of one column: the inner edges of its bins, or its labels."""

    edges_or_labels: Array  # labels beyond the levels are rare
    is_number: bool
    levels: (
        Array  # (codes - 1,): the coarse level of each code except the last, which means missing, and of rare labels
    )
    blends: Array  # (codes - 1,): the share of a bin's count that smoothing moves to the next one
    knots: Array  # (knots,): values of the map to normal scores; empty for labels
    scores: Array  # (knots,): the normal scores of these values
    mean: float = 0.0
    deviation: float = 1.0  # the standard deviation

    def find_fault(self) -> str | None:
        spare = len(self.edges_or_labels) + self.is_number - len(self.levels)
        if self.edges_or_labels.ndim != 1 or spare < 0 or (spare and self.is_number):
            return "there is not one level for each code"
        if self.is_number and (self.edges_or_labels.dtype != float or not is_increasing(self.edges_or_labels)):
            return "its edges are not sorted numbers"
        if self.blends.min(initial=0.0) < 0 or self.blends.max(initial=0.0) > BLENDED_SHARE:
            return "a share of a bin is impossible"
        if len(self.levels) and not (self.levels.min() >= 0 and self.levels.max() < MISSING_LEVEL):
            return "a level is not one of the few there are"
        if not self.is_number and len(set(self.edges_or_labels.tolist())) < len(self.edges_or_labels):
            return "a label is there twice"
        if np.abs(self.scores).max(initial=0.0) > MAX_SCORE or not self.deviation > 0:
            return "a score is too large, or a standard deviation not positive"
        return None if is_increasing(self.knots) else "its knots are not sorted"

    @property
    def n_codes(self) -> int:
        """The number of codes, including the one of missing cells."""
        return len(self.levels) + self.n_rare + 1

    @property
    def n_rare(self) -> int:
        """The number of rare labels."""
        return len(self.edges_or_labels) + self.is_number - len(self.levels)

    @cached_property
    def level_of_code(self) -> Array:
        """(codes + 1,): the coarse level of each code, and of code -1; -1 for rare and for unknown labels."""
        return np.concatenate([self.levels, np.full(self.n_rare, -1), [MISSING_LEVEL, -1]]).astype(np.int64)

    @cached_property
    def tree_codes(self) -> Array:
        """(codes + 1,): what trees test for each code of a label, and for code -1; rare labels count as unknown."""
        n_common = len(self.levels)
        return np.concatenate([np.arange(n_common), np.full(self.n_rare, n_common + 1), [n_common, n_common + 1]])

    @classmethod
    def from_labels(cls, labels: Array, counts: Array, rows_per_kept_row: float = 1.0) -> ColumnCodes:
        """Encode the labels that occur in at least two rows, the most frequent first."""
        ranked = np.argsort(-counts, kind="stable")  # ties in the order of the labels
        ranked = ranked[counts[ranked] >= 2]
        few = min(ROWS_OF_RARE_LABEL * (rows_per_kept_row - ENOUGH_ROWS_PER_KEPT_ROW), MOST_ROWS_OF_RARE_LABEL)
        is_common = counts[ranked] >= (few if len(ranked) > MANY_LABELS else 0)
        n_common = min(int(is_common.sum()), MAX_COMMON_LABELS)
        levels = np.minimum(np.arange(n_common), MISSING_LEVEL - 1)
        return cls(labels[ranked], False, levels, np.zeros(n_common), np.zeros(0), np.zeros(0))

    def replace_rare(self, labels: Array, counts: Array) -> ColumnCodes:
        """With the labels that occur in at least two of all learned rows as rare ones, if there are any already."""
        if not self.n_rare:
            return self
        common = self.edges_or_labels[: len(self.levels)]
        rare = labels[(counts >= 2) & ~np.isin(labels, common)]
        return replace(self, edges_or_labels=np.concatenate([common, rare]))

    @classmethod
    def from_numbers(cls, values: Array, counts: Array, n_rows: float) -> ColumnCodes:
        """Bin sorted distinct values with their counts into bins of about equal weight; ``n_rows`` were learned."""
        rows, further = counts.sum(), max(0, int(np.sqrt(n_rows) - np.sqrt(MANY_ROWS)))
        wanted = min(min(3 + np.sqrt(rows) / 2, MAX_CODES) + further, MAX_CODES_OF_MANY_ROWS)
        bins = assign_bins(counts, int(wanted))
        last = np.flatnonzero(np.diff(bins))  # the last value of each bin but the final one
        edges = values[last] / 2 + values[last + 1] / 2 if len(values) else np.zeros(0)
        n_bins = len(edges) + 1
        by_bin = np.bincount(bins, counts, minlength=n_bins) if len(values) else np.zeros(n_bins)
        levels = assign_bins(by_bin, MISSING_LEVEL)
        # normal scores: the quantiles of the mid-ranks at evenly spaced values
        middle = np.cumsum(counts) - counts / 2
        knots = np.unique(np.linspace(0, len(values) - 1, MAX_KNOTS).astype(int)) if len(values) else np.zeros(0, int)
        shares = np.clip(middle[knots] / max(rows, 1), 0.5 / (rows + 1), 1 - 0.5 / (rows + 1))
        scores = find_normal_quantiles(shares)
        # a frequent value with a bin of its own, among many values, is not smoothed with its neighbours
        spike = (np.bincount(bins, minlength=n_bins) == 1) & (len(values) > 2 * n_bins)
        share = BLENDED_SHARE * min(1.0, MANY_ROWS / max(n_rows, 1.0))
        blends = np.append(share * ~(spike[:-1] | spike[1:]), 0.0)
        return cls(edges, True, levels, blends, values[knots], scores, *find_moments(values, counts))

    def encode_values(self, values: Array) -> Array:
        """Return the code of each value: labels, or rounded numbers."""
        if self.is_number:
            return np.searchsorted(self.edges_or_labels, values, side="right")
        code = {value: k for k, value in enumerate(self.edges_or_labels.tolist())}
        return np.array([code.get(value, -1) for value in values.tolist()], dtype=np.int64)

    def encode_column(self, cells: Cells, j: int) -> Array:
        """(rows,): the code of each cell of column ``j``."""
        missing = self.n_codes - 1
        if isinstance(cells, LabelCells):
            own, values = take_shown_values(cells.data.codes[:, j], cells.data.values[j])
            codes = np.append(self.encode_values(values), missing)  # index -1 is a missing cell
            return np.asarray(codes[own], dtype=np.int64)
        assert isinstance(cells, NumberCells)
        x = np.asarray(cells.data[:, j], dtype=float)
        return np.where(np.isnan(x), missing, self.encode_values(round_to_bits(x, VALUE_BITS)))

    def normal_scores(self, x: Array) -> Array:
        """Return numbers as quantiles of the standard normal distribution; 0 if missing."""
        if len(self.knots) < 2:
            return np.zeros(len(x))
        return np.where(np.isnan(x), 0.0, np.interp(x, self.knots, self.scores))

    def standardise(self, x: float) -> float:
        """Return a number less the mean, in standard deviations, between bounds; 0 if missing."""
        # halves do not overflow
        away = (x / 2 - self.mean / 2) / (self.deviation / 2) if x == x else 0.0
        return max(-MAX_STANDARD_SCORE, min(away, MAX_STANDARD_SCORE))

    @cached_property
    def ranks(self) -> Array:
        """(knots,): the rank of each knot among the rows."""
        # the normal distribution function of the scores
        return RANK_STEPS * np.array([erfc(-score / sqrt(2)) / 2 for score in self.scores.tolist()])

    def rank_column(self, cells: Cells, j: int) -> Array:
        """(rows,): the rank of each number of column ``j``, or the code of each label; missing is below all ranks."""
        if not isinstance(cells, NumberCells):
            codes = self.encode_column(cells, j)
            return np.where(self.level_of_code[codes] < 0, -1, codes)  # rare labels are as near as unknown ones
        x = np.asarray(cells.data[:, j], dtype=float)
        ranks = np.interp(x, self.knots, self.ranks) if len(self.knots) else np.zeros(len(x))
        return np.where(np.isnan(x), -RANK_STEPS // 2, np.rint(np.nan_to_num(ranks))).astype(np.int64)


def find_moments(values: Array, counts: Array) -> tuple[float, float]:
    """Return mean and standard deviation of values with counts; the deviation is 1 if there is none."""
    unit = float(np.abs(values).max(initial=0.0))
    if not unit:
        return 0.0, 1.0
    share = counts / counts.sum()
    mean = float(share @ (values / unit))
    deviation = unit * float(np.sqrt(share @ (values / unit - mean) ** 2))
    return unit * mean, deviation if deviation > 1e-12 * unit else max(unit, 1.0)


def assign_bins(counts: Array, bins: int) -> Array:
    """Return the bin of each sorted value, given counts; a bin is filled to its share of the remaining weight.

    >>> assign_bins(np.array([1.0, 1, 1, 9, 1, 1]), 3).tolist()
    [0, 0, 0, 1, 2, 2]
    """
    found, current, filled, left = np.zeros(len(counts), dtype=np.int64), 0, 0.0, float(counts.sum())
    share = left / max(bins, 1)
    for v, count in enumerate(counts.tolist()):
        # closed if the value fits better into the next bin, or fills a bin by itself
        full = filled > 0 and (filled + count / 2 > share or count >= share)
        if full and current < bins - 1:
            left -= filled
            current, filled = current + 1, 0.0
            share = left / (bins - current)
        filled += count
        found[v] = current
    return found


@register_record("TableCodes")
@dataclass(frozen=True, eq=False)
class TableEncoding:
    """The codes of all columns, block by block; a text has none."""

    blocks: tuple[tuple[ColumnCodes, ...], ...]

    @classmethod
    def of(cls, cells: Sequence[Cells], weight: Array, n_rows: float | None = None) -> TableEncoding:
        """Fit codes to rows, a sample of ``n_rows`` rows unless these are all."""
        n_rows = float(weight.sum()) if n_rows is None else n_rows
        return cls(tuple(tuple(_fit_column_codes(x, j, weight, n_rows) for j in _columns(x)) for x in cells))

    @cached_property
    def columns(self) -> list[ColumnCodes]:
        """All columns, block by block."""
        return [column for block in self.blocks for column in block]

    @cached_property
    def starts(self) -> Array:
        """(columns + 1,): the offset of each column's codes among all codes, and the number of all codes."""
        return np.concatenate([[0], np.cumsum([column.n_codes for column in self.columns])]).astype(np.int64)

    @cached_property
    def is_number(self) -> Array:
        """(columns,): whether each column holds numbers."""
        return np.array([column.is_number for column in self.columns], dtype=bool)

    @property
    def n_numbers(self) -> int:
        """The number of columns of numbers."""
        return int(self.is_number.sum())

    @cached_property
    def blends(self) -> Array:
        """(codes,): the share of each code's count that smoothing moves to the next code."""
        parts = (np.append(column.blends, np.zeros(column.n_rare + 1)) for column in self.columns)
        return np.concatenate([np.zeros(0), *parts])

    @cached_property
    def is_rare(self) -> Array:
        """(codes,): whether each code is a rare label, which no member gives a weight of its own."""
        levels = (column.level_of_code[:-1] for column in self.columns)
        return np.concatenate([np.zeros(0, dtype=np.int64), *levels]) < 0

    @cached_property
    def n_weighed(self) -> int:
        """The number of codes but for rare labels."""
        return int((~self.is_rare).sum())

    def place_weights(self, weights: Array) -> Array:
        """(1 + codes, classes): an intercept and the weights of all codes but rare labels, and zeros for these."""
        placed = np.zeros((1 + self.n_codes, weights.shape[1]))
        placed[np.append(True, ~self.is_rare)] = weights
        return placed

    @cached_property
    def column_of_code(self) -> Array:
        """(codes,): the index of each code's column."""
        return np.repeat(np.arange(len(self.columns)), np.diff(self.starts))

    def replace_rare(self, count_values: Callable[[int, int], tuple[Array, Array] | None]) -> TableEncoding:
        """The rare labels of all learned rows, given how a model counts the values of a block's column."""
        if not self.is_rare.any():
            return self

        def place(b: int, j: int, column: ColumnCodes) -> ColumnCodes:
            counted = count_values(b, j) if column.n_rare else None
            return column if counted is None else column.replace_rare(counted[0], counted[1].sum(axis=0))

        return TableEncoding(
            tuple(tuple(place(b, j, own) for j, own in enumerate(block)) for b, block in enumerate(self.blocks))
        )

    @property
    def n_codes(self) -> int:
        """The number of codes of all columns."""
        return int(self.starts[-1])

    @cached_property
    def missing_codes(self) -> Array:
        """(columns,): the code of a missing cell."""
        return np.diff(self.starts) - 1

    def encode(self, cells: Sequence[Cells]) -> Array:
        """(rows, columns): the code of each cell, -1 for an unknown label."""
        return self._map_columns(ColumnCodes.encode_column, cells)

    def rank_cells(self, cells: Sequence[Cells]) -> Array:
        """(rows, columns): the rank of each number, and the code of each label."""
        return self._map_columns(ColumnCodes.rank_column, cells)

    def _map_columns(self, function: Callable[[ColumnCodes, Cells, int], Array], cells: Sequence[Cells]) -> Array:
        columns = [
            function(column, x, j)
            for block, x in zip(self.blocks, cells, strict=True)
            for j, column in enumerate(block)
        ]
        return np.stack(columns, axis=1) if columns else np.zeros((len(cells[0]), 0), dtype=np.int64)

    def find_varied(self, cells: Sequence[Cells]) -> Array:
        """(columns,): whether the rows have different codes or numbers in a column."""
        codes, numbers = self.encode(cells), self.take_numbers(cells)
        varies = (codes != codes[:1]).any(axis=0)
        varies[self.is_number] |= ((numbers != numbers[:1]) & (numbers == numbers)).any(axis=0)
        return varies

    def take_numbers(self, cells: Sequence[Cells]) -> Array:
        """(rows, columns of numbers): the numbers themselves."""
        numbers = [np.asarray(block.data, dtype=float) for block in cells if isinstance(block, NumberCells)]
        return np.concatenate([np.zeros((len(cells[0]), 0)), *numbers], axis=1)

    def normal_scores(self, cells: Sequence[Cells]) -> Array:
        """(rows, columns of numbers): the normal scores."""
        numbers = self.take_numbers(cells)
        maps = (column.normal_scores for column in self.columns if column.is_number)
        scores = [to_scores(x) for to_scores, x in zip(maps, numbers.T, strict=True)]
        return np.stack(scores, axis=1) if scores else numbers

    def sum_levels(self, shares: Array) -> Array:
        """(columns, levels): the shares of codes (codes,), summed over the codes of each coarse level."""
        own = zip(self.columns, np.split(shares, self.starts[1:-1]), strict=True)
        return np.stack(
            [
                np.bincount(column.level_of_code[:-1] % (N_LEVELS + 1), share, N_LEVELS + 1)[:N_LEVELS]
                for column, share in own
            ]
        )

    def standardise(self, numbers: Array) -> Array:
        """(rows, columns of numbers): numbers less their mean, in standard deviations, between bounds; 0 if missing."""
        mean, deviation = np.array([(c.mean, c.deviation) for c in self.columns if c.is_number]).reshape(-1, 2).T
        with np.errstate(over="ignore"):  # infinite is beyond the bounds
            away = (numbers / 2 - mean / 2) / (deviation / 2)
        return np.clip(np.where(np.isnan(numbers), 0.0, away), -MAX_STANDARD_SCORE, MAX_STANDARD_SCORE)

    def encode_levels(self, codes: Array) -> Array:
        """(rows, columns): the coarse level of each code, -1 for an unknown label; the last level means missing."""
        levels = np.full(codes.shape, -1, dtype=np.int32)
        for j, column in enumerate(self.columns):
            levels[:, j] = column.level_of_code[codes[:, j]]
        return levels


def make_one_hot(codes: Array, starts: Array) -> SparseRows:
    """(rows, all codes): the one-hot codes of each column; none for code -1."""
    known = codes >= 0
    ends = np.concatenate([[0], np.cumsum(known.sum(axis=1))]).astype(np.int64)
    indices = (codes + starts[:-1])[known].astype(np.int32)
    return SparseRows(ends, indices, None, int(starts[-1]))


def _columns(cells: Cells) -> range:
    """Return the columns that have codes; texts have tokens instead."""
    match cells:
        case NumberCells(data):
            return range(data.shape[1])
        case LabelCells(data):
            return range(data.codes.shape[1])
    return range(0)


def _fit_column_codes(cells: Cells, j: int, weight: Array, n_rows: float) -> ColumnCodes:
    """Fit the codes of one column to its cells."""
    if isinstance(cells, LabelCells):
        codes, labels = cells.data.codes[:, j], cells.data.values[j]
        counts = np.bincount(codes[codes >= 0], weight[codes >= 0], minlength=len(labels))
        return ColumnCodes.from_labels(labels, counts, n_rows / max(float(weight.sum()), 1.0))
    assert isinstance(cells, NumberCells)
    x = np.asarray(cells.data[:, j], dtype=float)
    present = ~np.isnan(x)
    values, place = np.unique(round_to_bits(x[present], VALUE_BITS), return_inverse=True)
    counts = np.bincount(place, weight[present], minlength=len(values))
    return ColumnCodes.from_numbers(values, counts, n_rows)
