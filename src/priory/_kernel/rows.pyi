import numpy as np

def add_cells(
    weights: np.ndarray, levels: np.ndarray, sets: np.ndarray, n_levels: int, start: int, out: np.ndarray
) -> None:
    """Add the weight of one cell of each set of columns to ``out`` (classes,).

    ``levels`` (columns,) are below ``n_levels``, and negative where a label is new: then the set has no cell. The cells
    of all sets follow one another in ``weights``, from ``start``.
    """

def add_weights(weights: np.ndarray, places: np.ndarray, start: int, factor: float, out: np.ndarray) -> None:
    """Add the weights (features, classes) of features ``start + places``, times ``factor``, to ``out`` (classes,)."""

def mix_members(logits: np.ndarray, exponents: np.ndarray, share: float, out: np.ndarray) -> None:
    """The log probabilities of all members together, into ``out`` (classes,).

    The first row of ``logits`` (1 + members, classes) is the base rate, which has the rest of the share; the geometric
    mean of the others, by their exponents, has the share.
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
    """Move weights and exponents, in place, by a Fisher step for a row of class ``group`` that occurs ``count`` times.

    ``precision`` is that of the weights, then of the exponents; what the row says about them is added to it before.
    Only the first weight, that of the class prior, may be negative.
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
    """Add the evidence of parts to ``out`` (classes,), each by its weight and a power of its length.

    ``values`` (classes, parts) count by how far they are below that of the best class, at most as far as ``lowest``.
    """
