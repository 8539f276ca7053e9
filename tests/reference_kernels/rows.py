"""The readable twin of `rows`: what corrections say of a single row, in NumPy."""

from __future__ import annotations

import numpy as np


def add_weights(weights: np.ndarray, places: np.ndarray, start: int, factor: float, out: np.ndarray) -> None:
    """Add the weights (features, classes) of features ``start + places``, times ``factor``, to ``out`` (classes,)."""
    out += factor * weights[start + places].sum(axis=0)


def add_cells(
    weights: np.ndarray, levels: np.ndarray, sets: np.ndarray, n_levels: int, start: int, out: np.ndarray
) -> None:
    """Add the weight of one cell of each set of columns to ``out`` (classes,).

    ``levels`` (columns,) are below ``n_levels``, and negative where a label is new: then the set has no cell. The cells
    of all sets follow one another in ``weights``, from ``start``.
    """
    own = levels[sets]  # (sets, columns of a set)
    cells = np.arange(len(sets))
    for column in own.T:
        cells = cells * n_levels + column
    out += weights[start + cells[(own >= 0).all(axis=1)]].sum(axis=0)


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
    out += shrink_parts(values, parts, lengths, exponents, lowest) @ weights[parts]


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
    """
    size = len(weights)
    relative = shrink_parts(values, parts, lengths, exponents, lowest)
    logits = relative @ weights[parts]
    answer = np.exp(logits - np.logaddexp.reduce(logits))
    expected = answer @ relative
    slope = count * (expected - relative[group])
    spread = count * (answer @ relative**2 - expected**2)
    along = -np.log(lengths) * weights[parts]  # the slope of a weighted value along its exponent, by the value
    precision[parts] += spread
    precision[size + parts] += spread * along**2
    weights[parts] = np.clip(weights[parts] - slope / precision[parts], 0.0, max_weight)
    steps = slope * along / precision[size + parts]
    exponents[parts] = np.clip(exponents[parts] - steps, -max_exponent, max_exponent)


def shrink_parts(
    values: np.ndarray, parts: np.ndarray, lengths: np.ndarray, exponents: np.ndarray, lowest: float
) -> np.ndarray:
    """(classes, parts): evidence below that of the best class, by a power of its length."""
    best = values.max(axis=0)
    relative = np.maximum(values - np.where(np.isfinite(best), best, 0.0), lowest)
    return relative * lengths ** -exponents[parts]


def mix_members(logits: np.ndarray, exponents: np.ndarray, share: float, out: np.ndarray) -> None:
    """The log probabilities of all members together, into ``out`` (classes,).

    The first row of ``logits`` (1 + members, classes) is the base rate, which has the rest of the share; the geometric
    mean of the others, by their exponents, has the share.
    """
    answers = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    pooled = exponents @ answers[1:]
    with np.errstate(divide="ignore"):
        out[:] = np.log(share * np.exp(pooled - np.logaddexp.reduce(pooled)) + (1 - share) * np.exp(answers[0]))
