"""Cells that are missing when a row is answered, in columns that were hardly ever missing when they were learned.

Where gaps were learned they mean something, and members read them as a value. Elsewhere nothing is known about rows
with gaps, so the row is completed by each of its nearest kept rows in turn, and the answers are averaged. The more
cells are missing, the less it has in common with these rows, and the more tempered naive Bayes decides, to which a
missing cell is no evidence. With all cells missing it answers with the class prior:

    p(c | x)  =  (Σ_k weight_k p(c | x completed by row k))^(1 - m^3)  p_tempered(c | x)^(m^3) / Z

m is the share of such gaps, among them and the cells that are there. If no rows are kept, members read gaps as missing,
and m is not cubed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy import ndarray as Array

from priory.calibration.members import EncodedRows
from priory.calibration.table_encoding import RANK_STEPS, ColumnCodes, TableEncoding
from priory.core.statistics import register_record
from priory.model.cells import Cells, LabelCells, NumberCells, TextCells, take_rows

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
    def of(cls, encoding: TableEncoding, cells: Sequence[Cells], weight: Array, keeps_rows: bool) -> GapCompletion:
        """Find the columns without gaps in learned rows; keep the first of these rows if ``keeps_rows``.

        A column with one code tells nothing, so its gaps need not be completed.
        """
        coded = [b for b, columns in enumerate(encoding.blocks) if columns]
        texts = [b for b, columns in enumerate(encoding.blocks) if not columns]
        # (rows, columns + texts)
        missing = np.concatenate([cells[b].find_missing() for b in (*coded, *texts)], axis=1)
        kept = slice(0, MAX_KEPT_ROWS if keeps_rows else 0)
        blocks = tuple(cells[b].take_rows(kept).drop_absent_values() for b in coded)
        return cls((weight @ missing < MIN_ROWS_WITH_GAP) & _find_varied(encoding, len(texts)), weight[kept], blocks)

    def find_gaps(self, rows: EncodedRows) -> Array:
        """(rows, columns + texts): whether each cell is missing in a column whose gaps are completed."""
        return find_missing_cells(rows) & self.is_completed

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
