"""Canonical order and folds of the rows that corrections are fitted to.

Both depend on the content of the rows and not on their order: equal rows become one row with the sum of their weights,
rows are sorted by a hash of their content, and the hash decides the fold of a row; the few rows of a rare class are
assigned to the folds in turn, in the order of another hash. Rows with equal cells must not be dealt out evenly: every
fold would then look like the others, and noise that is learned in some would be confirmed by the one left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy import ndarray as Array

from priory.core.content_hash import scramble_bits
from priory.model.cells import Cells

MIN_DISTINCT_ROWS_PER_FOLD = 10
MIN_ROWS_BY_CONTENT = 200  # of a class: then one row less changes the fold of no other
MAX_COPIES_PER_ROW = 3  # with more on average, new rows are mostly copies of known ones
MAX_COPIES = 256  # of a row, that are assigned to folds one by one


class RowFolds(NamedTuple):
    """Distinct rows in canonical order, with their weights and folds."""

    rows: Array  # (rows used,): positions
    weight: Array  # (rows used,)
    fold: Array  # (rows used,)


def hash_rows(cells: Sequence[Cells], rows: int) -> Array:
    """(rows,): a 64-bit hash of the content of each row."""
    code = np.zeros(rows, dtype=np.uint64)
    for block in cells:
        for column in block.hash_columns():
            if (column == column[:1]).all():
                continue  # a constant changes no answer
            code = (code ^ column) * np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing, then mix the high bits down
            code ^= code >> np.uint64(29)
    return code


def assign_folds(cells: Sequence[Cells], group: Array, weight: Array, folds: int) -> RowFolds:
    """Assign distinct rows to folds; if few rows are distinct, the copies of a row have folds of their own."""
    code = hash_rows(cells, len(group))
    # Merge equal rows of the same class: ``first`` marks the first of each run in sorted order.
    order = np.lexsort((weight, group, code))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (code[order[1:]] != code[order[:-1]]) | (group[order[1:]] != group[order[:-1]])
    rows = order[first]
    total = np.add.reduceat(weight[order], np.flatnonzero(first))
    few = len(rows) < MIN_DISTINCT_ROWS_PER_FOLD * folds or total.sum() > MAX_COPIES_PER_ROW * len(rows)
    # the model without all copies of a row could not predict it
    copies = np.clip(total.astype(np.int64), 1, MAX_COPIES if few else 1)
    row = np.repeat(np.arange(len(rows)), copies)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(copies) - copies, copies)
    own, n = group[rows[row]], np.bincount(group[rows[row]])
    lot = scramble_bits(code[rows[row]] + scramble_bits((own * MAX_COPIES + nth).astype(np.uint64)))
    # deal the copies of each class to the folds in turn, beginning with another fold for each class
    by_class = np.lexsort((lot, own))
    fold = np.empty(len(row), dtype=np.int64)
    fold[by_class] = (np.arange(len(row)) - np.repeat(np.cumsum(n) - n, n) + own[by_class]) % folds
    if not few:
        by_content = (code[rows] % np.uint64(folds)).astype(np.int64)
        fold = np.where(n[own] >= MIN_ROWS_BY_CONTENT, by_content, fold)
    # whole weights stay whole: what is left over goes to the first copies
    whole = np.floor(total / copies)
    shares = whole[row] + np.clip((total - whole * copies)[row] - nth, 0, 1)
    used, place = np.unique(row * folds + fold, return_inverse=True)
    return RowFolds(rows[used // folds], np.bincount(place, shares), used % folds)
