"""Sample weights: how many times each row counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from priory.core.typing import Array
from priory.errors import DataError

MAX_SAMPLE_WEIGHT = 1e100


def check_sample_weight(sample_weight: ArrayLike | None, rows: int) -> Array | None:
    """Return one non-negative weight per row, or None if every row counts once.

    >>> check_sample_weight(2, 3).tolist()
    [2.0, 2.0, 2.0]
    """
    if sample_weight is None:
        return None
    try:
        weight = np.asarray(sample_weight, dtype=float)
    except (TypeError, ValueError):
        raise DataError("sample_weight holds something else than numbers; give one number for each row.") from None
    weight = np.full(rows, float(weight)) if weight.ndim == 0 else weight
    if weight.ndim > 1:
        raise DataError(f"Sample weights must be 1D array or scalar: got {weight.ndim} dimensions.")
    if weight.shape != (rows,):
        raise DataError(f"sample_weight.shape == {weight.shape}, expected ({rows},)!")
    valid = (weight >= 0) & (weight <= MAX_SAMPLE_WEIGHT)
    if not valid.all():
        row = int(np.argmin(valid))
        raise DataError(
            f"sample_weight of row {row} is {weight[row]:g}; give a number from 0 to {MAX_SAMPLE_WEIGHT:g}."
        )
    if not weight.any():
        raise DataError("every sample_weight is zero: there is nothing to learn; give some row a positive weight.")
    return weight
