"""Rows, in batches or one at a time, as the input of members; and the completion of missing cells.

Cells may be missing when a row is answered, in columns that were hardly ever missing when they were learned.
Where gaps were learned they mean something, and members read them as a value. Elsewhere nothing is known about rows
with gaps, so the row is completed by each of its nearest kept rows in turn, and the answers are averaged. The more
cells are missing, the less it has in common with these rows, and the more tempered naive Bayes decides, to which a
missing cell is no evidence. With all cells missing it answers with the class prior:

    p(c | x)  =  (Σ_k weight_k p(c | x completed by row k))^(1 - m^3)  p_tempered(c | x)^(m^3) / Z

m is the share of such gaps, among them and the cells that are there. If no rows are kept, members read gaps as missing,
and m is not cubed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy import ndarray as Array

from priory.calibration.code_counts import CodeEvidence
from priory.calibration.table_encoding import (
    RANK_STEPS,
    ColumnCodes,
    TableEncoding,
    make_one_hot,
)
from priory.core.sparse_rows import SparseRows, pad_columns
from priory.core.statistics import register_record
from priory.core.value_counts import VALUE_BITS, round_number_to_bits, score_by_lookup
from priory.model.cells import Cells, LabelCells, NumberCells, TextCells, take_rows


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows as the input of members; everything is computed when it is first used."""

    encoding: TableEncoding
    cells: Sequence[Cells]
    encode_tokens: Callable[[], list[SparseRows]]  # the tokens of texts, as sparse rows
    text_logits: Array  # (rows, classes): the tempered evidence of texts
    evidence: CodeEvidence | None = None  # None while corrections are fitted

    def __len__(self) -> int:
        return len(self.codes)

    def take_rows(self, rows: Array, cells: Sequence[Cells] | None = None) -> EncodedRows:
        """Select rows, optionally with other cells."""
        return replace(
            self,
            cells=take_rows(self.cells, rows) if cells is None else cells,
            encode_tokens=lambda: [tokens.take_rows(rows) for tokens in self.tokens],
            text_logits=self.text_logits[rows],
        )

    @property
    def n_texts(self) -> int:
        """The number of columns of texts."""
        return sum(not columns for columns in self.encoding.blocks)

    @cached_property
    def codes(self) -> Array:
        """(rows, columns): the code of each cell."""
        return self.encoding.encode(self.cells)

    @cached_property
    def levels(self) -> Array:
        """(rows, columns): coarse codes, for pairs."""
        return self.encoding.encode_levels(self.codes)

    @cached_property
    def scores(self) -> Array:
        """(rows, columns of numbers): normal scores."""
        return self.encoding.normal_scores(self.cells)

    @cached_property
    def standardised(self) -> Array:
        """(rows, columns of numbers): numbers less their mean, in standard deviations."""
        return self.encoding.standardise(self.values)

    @cached_property
    def values(self) -> Array:
        """(rows, columns of numbers): the numbers themselves."""
        return self.encoding.take_numbers(self.cells)

    @cached_property
    def varied(self) -> Array:
        """(varied columns,): the columns that do not have the same cell in all rows."""
        return np.flatnonzero(self.encoding.find_varied(self.cells))

    @cached_property
    def tokens(self) -> list[SparseRows]:
        """The token features of each text."""
        return self.encode_tokens()

    def look_up(self, weights: Array) -> Array:
        """(rows, classes): the intercept, and the weights of a row's codes (1 + codes, classes)."""
        return look_up_table(weights, self.codes, self.encoding.starts)


def look_up_table(table: Array, codes: Array, starts: Array) -> Array:
    """(rows, classes): the intercept and the weights of a row's codes, from (1 + codes, classes); -1 adds nothing."""
    tables = [np.ascontiguousarray(part.T) for part in np.split(table[1:], starts[1:-1])]
    if len(starts) == 1:
        return np.repeat(table[:1], len(codes), axis=0)
    return np.asarray(table[0] + score_by_lookup(lambda part: codes[part], len(codes), tables))


def look_up_codes(table: Array, codes: Array, starts: Array) -> Array:
    """(rows, classes): the entries of ``table`` (classes, all codes) at a row's codes, summed; -1 adds nothing."""
    dense = pad_columns(table.T)
    return np.asarray(make_one_hot(codes, starts).multiply(dense)[:, : len(table)], dtype=float)


class RowCodes:
    """The codes of one column, as lists and dictionaries for single cells."""

    def __init__(self, codes: ColumnCodes) -> None:
        self.missing = codes.n_codes - 1
        self.edges = codes.edges_or_labels.tolist() if codes.is_number else []
        self.code_of_label = {} if codes.is_number else {v: k for k, v in enumerate(codes.edges_or_labels.tolist())}
        self.is_number = codes.is_number
        self.has_rare = codes.n_rare > 0
        self.levels = codes.level_of_code.tolist()
        self.standardise = codes.standardise
        self.knots, self.scores = codes.knots.tolist(), codes.scores.tolist()

    def encode(self, cell: Any) -> int:
        """Return the code of a cell, like `ColumnCodes.encode_column`; None and NaN are missing."""
        if cell is None or cell != cell:
            return self.missing
        if not self.is_number:
            return self.code_of_label.get(cell, -1)
        return bisect_right(self.edges, round_number_to_bits(cell, VALUE_BITS))

    def normal_score(self, cell: float) -> float:
        """Return a number as a quantile of the standard normal distribution; 0 if missing."""
        knots, scores = self.knots, self.scores
        if len(knots) < 2 or cell != cell:
            return 0.0
        place = bisect_right(knots, cell)
        if place == 0 or place == len(knots):
            return scores[0] if place == 0 else scores[-1]
        share = (cell - knots[place - 1]) / (knots[place] - knots[place - 1])
        return scores[place - 1] + share * (scores[place] - scores[place - 1])


class EncodedRow:
    """One row as the input of opened members; levels and scores are computed when they are first used."""

    def __init__(self, columns: Sequence[RowCodes], cells: Sequence[Any], tokens: Sequence[Array]) -> None:
        self.columns, self.cells, self.tokens = columns, cells, tokens
        self.codes = [column.encode(cell) for column, cell in zip(columns, cells, strict=True)]

    @cached_property
    def levels(self) -> Array:
        """(columns,): coarse codes, for pairs."""
        levels = [column.levels[code] for column, code in zip(self.columns, self.codes, strict=True)]
        return np.array(levels, dtype=np.int64)

    @cached_property
    def scores(self) -> Array:
        """(numbers,): normal scores."""
        return np.array([column.normal_score(cell) for column, cell in self._list_numbers()])

    @cached_property
    def standardised(self) -> Array:
        """(numbers,): numbers less their mean, in standard deviations."""
        return np.array([column.standardise(cell) for column, cell in self._list_numbers()])

    def _list_numbers(self) -> list[tuple[RowCodes, float]]:
        pairs = zip(self.columns, self.cells, strict=True)
        return [(column, cell) for column, cell in pairs if column.is_number]


# -- cells that are missing --------------------------------------------------------------------------------------------


MIN_ROWS_WITH_GAP = 5.0  # from this many learned rows on, a gap in a column means something
N_NEAREST = 10
MAX_KEPT_ROWS = 1000  # rows that complete others; 200 are too few
MAX_ROWS_AT_ONCE = 256  # rows with gaps, of which each is answered ten times
OTHER_LABEL = (RANK_STEPS // 2) ** 2  # the distance of different labels: as of numbers half of the ranks apart


@register_record(
    "GapCompletion",
    axes={"is_completed": "d", "weight": "r"},
    dtypes={"is_completed": "b1"},
    reveals="the cells of single training rows, and their classes",
)
@dataclass(frozen=True, eq=False)
class GapCompletion:
    """The columns whose gaps are completed, and the rows that complete them."""

    is_completed: Array  # (columns + texts,): columns in the order of their codes
    weight: Array  # (kept rows,)
    blocks: tuple[Cells, ...]  # the kept rows' cells of each block with codes, in canonical order

    def find_fault(self) -> str | None:
        if not ((self.weight > 0) & (self.weight < np.inf)).all():
            return "a row has no possible weight"
        return None if all(len(block) == len(self.weight) for block in self.blocks) else "a block has other rows"

    def find_misfit(self, encoding: TableEncoding) -> str | None:
        """Describe why it cannot complete rows of this encoding; None if it can."""
        coded = [block for block in encoding.blocks if block]
        n_texts = len(encoding.blocks) - len(coded)
        fits = len(self.is_completed) == len(encoding.columns) + n_texts and len(coded) == len(self.blocks)
        if not fits or not all(map(_has_columns, self.blocks, coded)):
            return "rows that complete others have other columns"
        return None

    @classmethod
    def of(cls, encoding: TableEncoding, cells: Sequence[Cells], weight: Array, keeps_rows: bool) -> Self | None:
        """Find the columns without gaps in learned rows; keep the first of these rows if ``keeps_rows``.

        A column with one code tells nothing, so its gaps need not be completed. None if rows without any cell were
        learned: then a gap means something in every column, and in all of them together.
        """
        coded = [b for b, columns in enumerate(encoding.blocks) if columns]
        texts = [b for b, columns in enumerate(encoding.blocks) if not columns]
        # (rows, columns + texts)
        missing = np.concatenate([cells[b].find_missing() for b in (*coded, *texts)], axis=1)
        is_varied = _find_varied(encoding, len(texts))
        if is_varied.any() and weight @ missing[:, is_varied].all(axis=1) >= MIN_ROWS_WITH_GAP:
            return None
        kept = slice(0, MAX_KEPT_ROWS if keeps_rows else 0)
        blocks = tuple(cells[b].take_rows(kept).drop_absent_values() for b in coded)
        return cls((weight @ missing < MIN_ROWS_WITH_GAP) & is_varied, weight[kept], blocks)

    def find_gaps(self, rows: EncodedRows) -> Array:
        """(rows, columns + texts): whether each cell is missing in a column whose gaps are completed, or all are."""
        missing, is_varied = find_missing_cells(rows), _find_varied(rows.encoding, rows.n_texts)
        is_empty = (missing | ~is_varied).all(axis=1, keepdims=True)
        return missing & (self.is_completed | is_empty & is_varied)

    def weigh_tempered(self, rows: EncodedRows, gaps: Array) -> Array:
        """(rows, 1): the exponent of tempered naive Bayes."""
        n_gaps = gaps.sum(axis=1, keepdims=True)
        is_there = ~find_missing_cells(rows) & _find_varied(rows.encoding, rows.n_texts)
        share = n_gaps / (n_gaps + is_there.sum(axis=1, keepdims=True))
        return np.asarray(share**3 if len(self.weight) else share)

    def list_blocks(self, encoding: TableEncoding) -> list[Cells]:
        """The cells of the kept rows, with an empty text in each column of texts."""
        blocks, no_texts = iter(self.blocks), TextCells([""] * len(self.weight))
        return [next(blocks) if columns else no_texts for columns in encoding.blocks]

    def find_nearest(self, rows: EncodedRows, gaps: Array, kept_ranks: Array) -> Array:
        """(rows, nearest): the kept rows nearest to each row, by the cells that it has; ties in canonical order."""
        # whole numbers, so that rounding does not choose, and neither does the size of the batch
        key = np.zeros((len(rows), len(self.weight)), dtype=np.int64)
        ranks = rows.encoding.rank_cells(rows.cells)
        for j, is_number in enumerate(rows.encoding.is_number):
            away = ranks[:, j, None] - kept_ranks[:, j]
            key += np.where(gaps[:, j, None], 0, away * away if is_number else OTHER_LABEL * (away != 0))
        key = key * len(self.weight) + np.arange(len(self.weight))  # no two are equal
        k = min(N_NEAREST, len(self.weight))
        return np.sort(np.argpartition(key, k - 1, axis=1)[:, :k], axis=1)

    def complete_cells(self, rows: EncodedRows, gaps: Array, nearest: Array) -> list[Cells]:
        """The cells of each row once for each of its nearest rows, which fills the gaps."""
        repeated = np.repeat(np.arange(len(rows)), nearest.shape[1])
        completed, kept, start = take_rows(rows.cells, repeated), iter(self.blocks), 0
        for b, columns in enumerate(rows.encoding.blocks):
            if columns:
                own = gaps[repeated, start : start + len(columns)]
                completed[b] = completed[b].fill_cells(own, next(kept).take_rows(nearest.ravel()))
            start += len(columns)
        return completed


def find_missing_cells(rows: EncodedRows) -> Array:
    """(rows, columns + texts): whether each cell is missing."""
    texts = [rows.cells[b].find_missing() for b, columns in enumerate(rows.encoding.blocks) if not columns]
    return np.concatenate([rows.codes == rows.encoding.missing_codes, *texts], axis=1)


def _find_varied(encoding: TableEncoding, n_texts: int) -> Array:
    """(columns + texts,): whether a column has several codes besides the one of missing cells; a text always counts."""
    return np.append(np.diff(encoding.starts) > 2, np.ones(n_texts, dtype=bool))


def _has_columns(cells: Cells, columns: Sequence[ColumnCodes]) -> bool:
    """Whether cells are of the columns that have these codes."""
    kind = NumberCells if columns[0].is_number else LabelCells
    return isinstance(cells, kind) and cells.find_missing().shape[1] == len(columns)
