"""Canonical order and folds of the rows that corrections are fitted to.

Both depend on the content of the rows and not on their order: equal rows become one row with the sum of their weights,
rows are sorted by a hash of their content, and the hash decides the fold of a row; the few rows of a rare class are
assigned to the folds in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy import ndarray as Array

from priory.model.cells import Cells

MIN_DISTINCT_ROWS_PER_FOLD = 10
MIN_ROWS_BY_CONTENT = 200  # of a class: then one row less changes the fold of no other
MAX_COPIES_PER_ROW = 3  # with more on average, new rows are mostly copies of known ones


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


def assign_folds_by_content(cells: Sequence[Cells], rows: int, folds: int) -> Array:
    """(rows,): the fold of each row, from its hash alone."""
    return np.asarray(hash_rows(cells, rows) % np.uint64(folds), dtype=np.int64)


def assign_folds(cells: Sequence[Cells], group: Array, weight: Array, folds: int) -> RowFolds:
    """Assign distinct rows to folds; if few rows are distinct, spread the copies of a row over several folds."""
    code = hash_rows(cells, len(group))
    # Merge equal rows of the same class: ``first`` marks the first of each run in sorted order.
    order = np.lexsort((weight, group, code))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (code[order[1:]] != code[order[:-1]]) | (group[order[1:]] != group[order[:-1]])
    rows = order[first]
    total = np.add.reduceat(weight[order], np.flatnonzero(first))
    few = len(rows) < MIN_DISTINCT_ROWS_PER_FOLD * folds or total.sum() > MAX_COPIES_PER_ROW * len(rows)
    if few:  # the model without all copies of a row could not predict it
        copies = np.clip(total.astype(np.int64), 1, folds)
        ends = np.cumsum(copies)
        # nth is the number of each copy among the copies of its row; the weight left over goes to the first ones
        nth = np.arange(ends[-1]) - np.repeat(ends - copies, copies)
        whole = np.floor(total / copies)  # whole weights stay whole
        extra = np.repeat(total - whole * copies, copies)
        rows, total = np.repeat(rows, copies), np.repeat(whole, copies) + np.clip(extra - nth, 0, 1)
    own, n = group[rows], np.bincount(group[rows])
    # deal the rows of each class to the folds in turn, beginning with another fold for each class
    by_class = np.argsort(own, kind="stable")
    fold = np.empty(len(rows), dtype=np.int64)
    fold[by_class] = (np.arange(len(rows)) - np.repeat(np.cumsum(n) - n, n) + own[by_class]) % folds
    if not few:
        by_content = (code[rows] % np.uint64(folds)).astype(np.int64)
        fold = np.where(n[own] >= MIN_ROWS_BY_CONTENT, by_content, fold)
    return RowFolds(rows, total, fold)
