"""Sample weights: how many times each row counts.

Records count in double precision. Whole numbers add up without rounding there, but 0.3 + 2.7 - 2.7 is not 0.3. So a
fractional weight is rounded to single precision once, when it is given: 24 bits of it leave 29 for sums. Counts are
then exact, and rows can be forgotten in any order, as long as the sum is at most 2^29 times the smallest weight.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from priory.core.column_kernels import round_to_bits
from priory.core.typing import Array
from priory.errors import DataError

MAX_SAMPLE_WEIGHT = 1e100
WEIGHT_BITS = 24  # of a fractional weight


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


def round_weights(weight: Array) -> Array:
    """Whole weights as they are, and others with 24 significant bits, so that their sums have no rounding error.

    >>> kept = round_weights(np.array([3.0, 0.3, 2.7]))
    >>> kept[0].item(), abs(kept[1] - 0.3) < 1e-7 * 0.3, kept[1] + kept[2] - kept[2] == kept[1]
    (3.0, np.True_, np.True_)
    """
    return np.where(weight == np.rint(weight), weight, round_to_bits(weight, WEIGHT_BITS))
