"""The Bayes rate, the error of the best classifier there could be, bounded by the nearest neighbour."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import KDTree

from priory.core.typing import Array
from priory.errors import DataError
from priory.evaluation.intervals import Interval, proportion_interval
from priory.regression.design_matrix import as_data_frame, encode_design_columns


class BayesRate(NamedTuple):
    """The best possible error lies between ``at_least`` and ``at_most``, each known up to its interval."""

    at_least: Interval
    at_most: Interval

    def __str__(self) -> str:
        return f"at least {self.at_least:.1%}, at most {self.at_most:.1%}"


def bayes_rate(X: Any, y: Any) -> BayesRate:
    """Cover and Hart's bounds: with rows enough, the error of the nearest neighbour is at most twice the Bayes rate.

    Each row is given the class of the row nearest to it, columns scaled to unit spread. With few rows or many columns
    neighbours are far away, and the bounds too high.

    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 4000)
    >>> x = rng.normal(size=(4000, 1)) + 2 * y[:, None]  # the best classifier errs 15.9 times in 100
    >>> print(bayes_rate(x, y))
    at least 12.6% [11.8%, 13.5%], at most 22.0% [20.7%, 23.3%]
    """
    x, labels = _scale_columns(X), np.asarray(y)
    if len(x) != len(labels) or len(x) < 2:
        raise DataError(f"X has {len(x)} rows, y {len(labels)}; give as many of both, and at least two.")
    near = np.asarray(KDTree(x).query(x, k=2)[1])
    own = near[:, 0] == np.arange(len(x))
    error = float((labels[np.where(own, near[:, 1], near[:, 0])] != labels).sum())
    k = len(np.unique(labels))
    neighbour = proportion_interval(error, len(x))
    return BayesRate(Interval(*(_cover_hart_bound(e, k) for e in neighbour)), neighbour)


def _cover_hart_bound(error: float, classes: int) -> float:
    """The least Bayes rate that lets the nearest neighbour err so often: (1 - √(1 - e/m)) m with m = 1 - 1/classes."""
    most = 1 - 1 / classes
    return most * (1 - math.sqrt(max(0.0, 1 - error / most))) if most else 0.0


def _scale_columns(X: Any) -> Array:
    frame = as_data_frame(X)
    x = np.asarray(X, dtype=float) if frame is None else encode_design_columns(frame, frame.columns)[0]
    if x.ndim != 2:
        raise DataError(f"X has {x.ndim} dimension(s); give a table of rows and columns.")
    mean, spread = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
    return np.nan_to_num((x - mean) / np.where(spread > 0, spread, 1.0))
