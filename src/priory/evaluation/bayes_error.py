"""Upper bound on the Bayes rate (the lowest possible error) from the error of the nearest neighbour."""

from __future__ import annotations

import math
from typing import NamedTuple, cast

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike
from scipy.spatial import KDTree

from priory.core.typing import MatrixLike
from priory.errors import DataError
from priory.evaluation.intervals import Interval, proportion_interval
from priory.regression.design_matrix import as_data_frame, encode_design_columns


class BayesRate(NamedTuple):
    """Bounds on the Bayes rate, the lowest error that any classifier can have, with 95 % intervals.

    Attributes
    ----------
    at_most : Interval
        The leave-one-out error of the nearest neighbour. The error of any classifier is an upper bound on the Bayes
        rate.
    with_near_neighbours : Interval
        The lower bound of Cover and Hart for this error. It holds only in the limit of many rows, where a row and its
        nearest neighbour have the same class probabilities. With many columns the neighbours are far away, and the
        Bayes rate can be much lower.
    """

    at_most: Interval
    with_near_neighbours: Interval

    def __str__(self) -> str:
        return f"at most {self.at_most:.1%}"


def bayes_rate(X: MatrixLike, y: ArrayLike) -> BayesRate:
    """Return an upper bound on the Bayes rate, the error of the best possible classifier, from nearest neighbours.

    Each row is predicted to have the class of its nearest neighbour, with the columns scaled to unit variance. The
    error of any classifier on unseen rows is an upper bound. No lower bound holds for every table; the lower bound of
    Cover and Hart, which is returned too, holds in the limit of many rows.

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_columns)
        The rows; text columns are one-hot encoded, and missing cells replaced by the mean.
    y : array-like of shape (n_rows,)
        The class of each row.

    Returns
    -------
    BayesRate
        The upper bound ``at_most``, and the limit ``with_near_neighbours``, each with its interval.

    References
    ----------
    .. [1] T. M. Cover and P. E. Hart, "Nearest neighbor pattern classification", IEEE Transactions on Information
       Theory 13(1), 1967.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 4000)
    >>> x = rng.normal(size=(4000, 1)) + 2 * y[:, None]  # the Bayes rate is 15.9 %
    >>> print(bayes_rate(x, y))
    at most 22.0% [20.7%, 23.3%]
    """
    x, labels = _scale_columns(X), np.asarray(y)
    if len(x) != len(labels) or len(x) < 2:
        raise DataError(f"X has {len(x)} rows and y has {len(labels)}; give the same number of both, and at least two.")
    # (rows, 2): the two rows nearest to each row. One of them is the row itself, except among duplicates.
    near = np.asarray(KDTree(x).query(x, k=2)[1])
    neighbour = np.where(near[:, 0] == np.arange(len(x)), near[:, 1], near[:, 0])
    error = proportion_interval(float((labels[neighbour] != labels).sum()), len(x))
    k = len(np.unique(labels))
    return BayesRate(error, Interval(*(_cover_hart_bound(e, k) for e in error)))


def _cover_hart_bound(error: float, classes: int) -> float:
    """Return the bound of Cover and Hart for k classes and error e: m (1 - √(1 - e/m)) with m = 1 - 1/k."""
    largest = 1 - 1 / classes  # the error of guessing uniformly
    return largest * (1 - math.sqrt(max(0.0, 1 - error / largest))) if largest else 0.0


def _scale_columns(X: MatrixLike) -> Array:
    """Return the columns as numbers with mean 0 and variance 1; missing cells are 0."""
    frame = as_data_frame(X)
    x = np.asarray(cast(ArrayLike, X), dtype=float) if frame is None else encode_design_columns(frame, frame.columns)[0]
    if x.ndim != 2:
        raise DataError(f"X has {x.ndim} dimension(s); give a table of rows and columns.")
    # (columns,); a constant column has spread 0 and becomes all zeros
    mean, spread = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
    return np.nan_to_num((x - mean) / np.where(spread > 0, spread, 1.0))
