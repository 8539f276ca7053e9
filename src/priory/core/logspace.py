"""Probabilities as logarithms: the only exp/log tricks in the library.

Bayes' rule in log space is addition, so everything is computed there; what leaves is normalised here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from priory.core.typing import Array


def log_sum_exp(log_terms: ArrayLike, axis: int = -1) -> Array:
    """Log of a sum whose terms are given as logarithms, without leaving log space.

    >>> float(log_sum_exp([-120, -121]))
    -119.68673831248178
    >>> float(log_sum_exp([-np.inf, -np.inf]))
    -inf
    """
    terms = np.asarray(log_terms, dtype=float)
    top = np.max(terms, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total = np.log(np.sum(np.exp(terms - top), axis=axis, keepdims=True)) + top
    return np.asarray(np.squeeze(total, axis=axis))


def log_normalise(log_joint: ArrayLike, fallback: ArrayLike | None = None) -> Array:
    """Scale each row to sum to one: log p(c, x) becomes log p(c | x).

    The largest term is taken out *before* the sum is subtracted, so that rows near -1e17 still sum to one.
    A row that rules out every class answers with ``fallback`` (the log prior), or uniformly.

    >>> np.exp(log_normalise([[-1e17, -1e17]])).tolist()
    [[0.5, 0.5]]
    >>> np.exp(log_normalise([[-np.inf, -np.inf]], fallback=np.log([0.9, 0.1]))).round(3).tolist()
    [[0.9, 0.1]]
    """
    joint = _subtract_row_max(log_joint, fallback)
    joint -= np.log(np.exp(joint).sum(axis=0))
    return np.moveaxis(joint, 0, -1)


def normalise(log_joint: ArrayLike, fallback: ArrayLike | None = None) -> Array:
    """The same as probabilities: p(c | x), with one exponential for each and no logarithm.

    >>> normalise([[-120.0, -121.0]]).round(4).tolist()
    [[0.7311, 0.2689]]
    """
    joint = _subtract_row_max(log_joint, fallback)
    np.exp(joint, out=joint)
    joint /= joint.sum(axis=0)
    return np.moveaxis(joint, 0, -1)


def _subtract_row_max(log_joint: ArrayLike, fallback: ArrayLike | None) -> Array:
    """Each row less its largest term; classes first, so that maximum and sum run along the rows: twice as fast."""
    joint = np.array(np.moveaxis(np.asarray(log_joint, dtype=float), -1, 0), order="C")
    top = joint.max(axis=0)
    if not np.isfinite(top).all():
        ruled_out = np.isneginf(top)
        prior = np.broadcast_to(0.0 if fallback is None else fallback, np.shape(log_joint))
        joint[:, ruled_out] = np.moveaxis(prior, -1, 0)[:, ruled_out]
        top = joint.max(axis=0)
    joint -= top
    return joint


def log(x: ArrayLike) -> Array:
    """Logarithm with ``log 0 = -inf`` and no warning: an impossible event is not an accident."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(x))


def x_log_y(x: ArrayLike, log_y: ArrayLike) -> Array:
    """``x * log y`` where nothing times an impossibility is nothing: ``0 * -inf = 0``.

    >>> x_log_y([0, 2], [-np.inf, -1.0]).tolist()
    [0.0, -2.0]
    """
    x, log_y = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(log_y, dtype=float))
    product: Array = np.multiply(x, log_y, out=np.zeros(x.shape), where=x != 0)
    return product
