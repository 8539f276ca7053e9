from collections.abc import Sequence

import numpy as np

class MomentsGuard:
    """Running means and sums of squares about them of columns of numbers, in units: whether a row can be removed.

    Removing it must leave more spread than rounding errors could, or none in a constant column.
    """

    def __init__(self, unit: np.ndarray, n: np.ndarray, mean: np.ndarray, spread: np.ndarray) -> None: ...
    def allows(self, x: np.ndarray) -> bool: ...
    def count(self, x: np.ndarray, rows: int) -> None: ...

class RoundedGuard:
    """Counts of numbers, rounded to ``bits`` significant bits: whether a row can be removed.

    ``values`` are the sorted values of each column, and ``counts`` the rows that have them, which are not changed.
    """

    def __init__(self, values: Sequence[np.ndarray], counts: Sequence[np.ndarray], bits: int) -> None: ...
    def allows(self, x: np.ndarray) -> bool: ...
    def count(self, x: np.ndarray, rows: int) -> None: ...

class SupportGuard:
    """Rows inside and outside of the support ``low`` .. ``high`` of a family, and the sum of the numbers inside.

    A row can be removed if one of its kind is left, and a sum that is possible. ``whole``: only whole numbers are
    inside; without ``total`` sums are not looked at.
    """

    def __init__(
        self, low: float, high: float, whole: bool, n: np.ndarray, outside: np.ndarray, total: np.ndarray | None = None
    ) -> None: ...
    def allows(self, x: np.ndarray) -> bool: ...
    def count(self, x: np.ndarray, rows: int) -> None: ...

def add_cells(
    weights: np.ndarray, levels: np.ndarray, sets: np.ndarray, n_levels: int, start: int, out: np.ndarray
) -> None:
    """Add the weight of one cell of each set of columns to ``out`` (classes,).

    ``levels`` (columns,) are below ``n_levels``, and negative for a new label: then the set has no cell. The cells of
    all sets are contiguous in ``weights``, beginning at ``start``.
    """

def add_weights(weights: np.ndarray, places: np.ndarray, start: int, factor: float, out: np.ndarray) -> None:
    """Add the weights (features, classes) of features ``start + places``, times ``factor``, to ``out`` (classes,)."""

def hash_numbers(x: np.ndarray, keys: np.ndarray) -> int:
    """The sum, modulo 2^64, of the hashes of the numbers (columns,) under the keys of their columns; NaN is skipped."""

def mix_members(logits: np.ndarray, exponents: np.ndarray, share: float, out: np.ndarray) -> None:
    """Write the log probabilities of a pool of members to ``out`` (classes,).

    The result is a mixture: ``share`` of the geometric mean of the members, weighted by ``exponents``, and the rest of
    the base rate, which is the first row of ``logits`` (1 + members, classes).
    """

def step_parts(
    values: np.ndarray,
    parts: np.ndarray,
    lengths: np.ndarray,
    group: int,
    count: float,
    lowest: float,
    max_weight: float,
    max_exponent: float,
    weights: np.ndarray,
    exponents: np.ndarray,
    precision: np.ndarray,
) -> None:
    """Update weights and exponents in place by a Fisher scoring step for a row of class ``group``, ``count`` times.

    ``precision`` is the Fisher information of the weights, then of the exponents; the row's information is added first.
    Only the first weight (of the class prior) may be negative.
    """

def weigh_parts(
    values: np.ndarray,
    parts: np.ndarray,
    lengths: np.ndarray,
    weights: np.ndarray,
    exponents: np.ndarray,
    lowest: float,
    out: np.ndarray,
) -> None:
    """Add the evidence of parts to ``out`` (classes,), each times its weight and a power of its length.

    ``values`` (classes, parts) are taken relative to the best class of each part, bounded from below by ``lowest``.
    """
