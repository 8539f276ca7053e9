"""Folds by content: rows that are alike share a fold, and the order of the rows changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from priory.core.typing import Array
from priory.models.cells import Cells

MIN_DISTINCT_ROWS_PER_FOLD = 10


def assign_folds_by_content(cells: Sequence[Cells], rows: int, folds: int) -> Array:
    """(rows,): a fold for each row, by a hash of what it holds."""
    code = np.zeros(rows, dtype=np.uint64)
    for block in cells:
        for column in block.hash_columns():
            code = (code ^ column) * np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing, then mix the high bits down
            code ^= code >> np.uint64(29)
    if len(np.unique(code)) < MIN_DISTINCT_ROWS_PER_FOLD * folds:
        return np.arange(rows) % folds  # with so few distinct rows, a model without one of them knows nothing of it
    return np.asarray(code % np.uint64(folds), dtype=np.int64)
