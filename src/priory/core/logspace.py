"""Log-space arithmetic.

Bayes' rule is an addition in log space, so everything is computed there and normalised only at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from priory.core.typing import Array

LOG_TWO_PI = float(np.log(2 * np.pi))


def log_sum_exp(log_terms: ArrayLike, axis: int = -1) -> Array:
    """Return the log of a sum whose terms are given as logarithms, without overflow or underflow.

    >>> float(log_sum_exp([-120, -121]))
    -119.68673831248178
    >>> float(log_sum_exp([-np.inf, -np.inf]))
    -inf
    """
    terms = np.asarray(log_terms, dtype=float)
    top = np.max(terms, axis=axis, keepdims=True)
    # a slice of -inf only: avoid -inf - (-inf)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total = np.log(np.sum(np.exp(terms - top), axis=axis, keepdims=True)) + top
    return np.asarray(np.squeeze(total, axis=axis))


def log_normalise(log_joint: ArrayLike, fallback: ArrayLike | None = None) -> Array:
    """Normalise each row: log p(c, x) becomes log p(c | x).

    The largest term is subtracted *before* the log of the sum, so that rows near -1e17 still sum to one. A row in
    which every class is impossible becomes ``fallback`` (usually the log prior), or uniform without one.

    >>> np.exp(log_normalise([[-1e17, -1e17]])).tolist()
    [[0.5, 0.5]]
    >>> np.exp(log_normalise([[-np.inf, -np.inf]], fallback=np.log([0.9, 0.1]))).round(3).tolist()
    [[0.9, 0.1]]
    """
    joint = _subtract_row_max(log_joint, fallback)
    joint -= np.log(np.exp(joint).sum(axis=0))
    return np.moveaxis(joint, 0, -1)


def normalise(log_joint: ArrayLike, fallback: ArrayLike | None = None) -> Array:
    """Return p(c | x) from log p(c, x): each row of probabilities sums to one. See `log_normalise` for ``fallback``.

    >>> normalise([[-120.0, -121.0]]).round(4).tolist()
    [[0.7311, 0.2689]]
    """
    joint = _subtract_row_max(log_joint, fallback)
    np.exp(joint, out=joint)
    joint /= joint.sum(axis=0)
    return np.moveaxis(joint, 0, -1)


def log_normalise_row(log_joint: Array, fallback: Callable[[], Array] | None = None) -> Array:
    """`log_normalise` of one row (classes,); ``fallback()`` is the result if every class is impossible.

    >>> np.exp(log_normalise_row(np.array([-120.0, -121.0]))).round(4).tolist()
    [0.7311, 0.2689]
    """
    top = log_joint.max()
    if top == -np.inf:
        log_joint = np.zeros(len(log_joint)) if fallback is None else fallback()
        top = log_joint.max()
    relative = log_joint - top
    return np.asarray(relative - math.log(np.exp(relative).sum()))


def _subtract_row_max(log_joint: ArrayLike, fallback: ArrayLike | None) -> Array:
    """Subtract the largest term of each row, and return the result with the classes as the first axis."""
    # (classes, ...rows): reducing over the first axis is twice as fast as over the last
    joint = np.array(np.moveaxis(np.asarray(log_joint, dtype=float), -1, 0), order="C")
    top = joint.max(axis=0)
    if not np.isfinite(top).all():
        ruled_out = np.isneginf(top)  # rows in which every class is impossible
        prior = np.broadcast_to(0.0 if fallback is None else fallback, np.shape(log_joint))
        joint[:, ruled_out] = np.moveaxis(prior, -1, 0)[:, ruled_out]
        top = joint.max(axis=0)
    joint -= top
    return joint


def log(x: ArrayLike) -> Array:
    """Return the logarithm, with ``log 0 = -inf`` and no warning: probability zero is a valid input."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(x))


def log_or_zero(x: ArrayLike) -> Array:
    """Return the logarithm, and zero where ``x`` is not positive.

    >>> log_or_zero([0.0, 1.0]).tolist()
    [0.0, 0.0]
    """
    return np.asarray(np.log(np.where(np.asarray(x) > 0, x, 1.0)))


def x_log_y(x: ArrayLike, log_y: ArrayLike) -> Array:
    """Return ``x * log y`` with the convention ``0 * -inf = 0``.

    >>> x_log_y([0, 2], [-np.inf, -1.0]).tolist()
    [0.0, -2.0]
    """
    x, log_y = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(log_y, dtype=float))
    product: Array = np.multiply(x, log_y, out=np.zeros(x.shape), where=x != 0)
    return product
