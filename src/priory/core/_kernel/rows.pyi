import numpy as np

def add_cells(
    weights: np.ndarray, levels: np.ndarray, sets: np.ndarray, n_levels: int, start: int, out: np.ndarray
) -> None:
    """Add the weight of one cell of each set of columns to ``out`` (classes,).

    ``levels`` (columns,) are below ``n_levels``, and negative for a new label: then the set has no cell. The cells of
    all sets are contiguous in ``weights``, beginning at ``start``.
    """

def add_weights(weights: np.ndarray, places: np.ndarray, start: int, factor: float, out: np.ndarray) -> None:
    """Add the weights (features, classes) of features ``start + places``, times ``factor``, to ``out`` (classes,)."""

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
