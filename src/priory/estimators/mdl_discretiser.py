"""Discretisation by minimum description length: cut numbers into bins that separate the classes.

A column is cut where that separates the classes best, then each side again, as long as the cut shortens the
description: the bits saved on the classes must exceed the bits that describe the cut and the classes on both sides.
"""

from __future__ import annotations

import math
from typing import Self, final

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from priory.core.input_guard import guard_input
from priory.core.logspace import log, x_log_y
from priory.core.typing import MatrixLike


@final
class MDLDiscretiser(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Replace each number by the index of its bin, with bins that separate the classes (Fayyad and Irani).

    A value on a cut belongs to the bin below it. A missing cell stays NaN.

    Attributes
    ----------
    edges_ : list of ndarray
        The cuts of each column; none if the column does not help to predict the class.
    n_bins_ : ndarray of shape (n_features,)
        The number of bins of each column.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        The names of the columns, if the table has them.

    References
    ----------
    .. [1] U. M. Fayyad and K. B. Irani, "Multi-interval discretization of continuous-valued attributes for
       classification learning", Proceedings of the 13th International Joint Conference on Artificial Intelligence
       (IJCAI), 1993.

    Examples
    --------
    >>> x = np.array([[1.0], [2.0], [3.0], [10.0], [11.0], [12.0]] * 2)
    >>> binned = MDLDiscretiser().fit(x, [0, 0, 0, 1, 1, 1] * 2)
    >>> binned.edges_[0].tolist(), binned.transform([[4.0], [100.0]]).tolist()
    ([6.5], [[0.0], [1.0]])
    """

    edges_: list[Array]
    n_bins_: Array

    def fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Find the cuts of each column."""
        with guard_input(X):
            table, labels = validate_data(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan")
            check_classification_targets(labels)
        _, codes = np.unique(labels, return_inverse=True)
        self.edges_ = [find_mdl_cuts(column, codes) for column in table.T]
        self.n_bins_ = np.array([len(edges) + 1 for edges in self.edges_])
        return self

    def transform(self, X: MatrixLike) -> Array:
        """Return the bin of each cell, counted from 0."""
        check_is_fitted(self)
        with guard_input(X):
            table = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        binned = [np.searchsorted(edges, column) for edges, column in zip(self.edges_, table.T, strict=True)]
        return np.where(np.isnan(table), np.nan, np.column_stack(binned))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        return tags


def find_mdl_cuts(column: Array, codes: Array) -> Array:
    """Return the cuts of one column, given the class code (0, 1, ...) of each row."""
    present = ~np.isnan(column)
    values, where = np.unique(column[present], return_inverse=True)
    classes = int(codes.max(initial=0)) + 1
    # (values, classes): the number of rows with each value and class
    counts = np.bincount(where * classes + codes[present], minlength=len(values) * classes).reshape(-1, classes)
    borders = find_boundaries(counts)
    if len(borders) == 0:
        return np.zeros(0)
    # (values + 1, classes): the rows below each place between two values
    total = np.vstack([np.zeros(classes), np.cumsum(counts, axis=0)])
    accepted = _find_accepted_cuts(total[np.concatenate([[0], borders, [len(values)]])])
    places = borders[np.array(sorted(accepted), dtype=int) - 1]
    return values[places - 1] / 2 + values[places] / 2  # halved first: 1e308 + 1e308 would overflow


def find_boundaries(counts: Array) -> Array:
    """Return where the best cut can be: between two values, unless both occur with one and the same class only.

    This is Theorem 1 of Fayyad and Irani. ``counts`` is (values, classes).

    >>> find_boundaries(np.array([[2, 0], [1, 0], [0, 3], [1, 1], [0, 1]])).tolist()
    [2, 3, 4]
    """
    # (values,): whether a value occurs with several classes, and its commonest class
    mixed = (counts > 0).sum(axis=1) > 1
    common = counts.argmax(axis=1)
    return np.flatnonzero(mixed[1:] | mixed[:-1] | (common[1:] != common[:-1])) + 1


def _find_accepted_cuts(counts_below: Array) -> list[int]:
    """Return the accepted cuts; ``counts_below`` is (places, classes), the rows of each class below each place."""
    accepted, pending = [], [(0, len(counts_below) - 1)]
    while pending:
        start, stop = pending.pop()
        if stop - start < 2:
            continue
        left, whole = counts_below[start + 1 : stop] - counts_below[start], counts_below[stop] - counts_below[start]
        bits = total_entropy(left) + total_entropy(whole - left)  # (cuts,)
        cut = int(np.argmin(bits.round(8)))  # the first of those that are equally good up to rounding
        if is_worth_cutting(whole, left[cut]):
            place = start + 1 + cut
            accepted.append(place)
            pending += [(start, place), (place, stop)]
    return accepted


def total_entropy(counts: Array) -> Array:
    """Return ``n H = Σ -n_c log2 (n_c / n)``: the bits of the classes of n rows, given the share of each class.

    >>> total_entropy(np.array([[2, 2], [4, 0]])).tolist()
    [4.0, 0.0]
    """
    n = counts.sum(axis=-1)
    return np.asarray(x_log_y(n, log(n)) - x_log_y(counts, log(counts)).sum(axis=-1)) / math.log(2)


def is_worth_cutting(whole: Array, left: Array) -> bool:
    """Return Fayyad and Irani's criterion: ``N Gain > log2(N - 1) + log2(3^k - 2) - [k H - k1 H1 - k2 H2]``."""
    parts = np.stack([whole, left, whole - left])  # (3, classes)
    n, classes, bits = parts.sum(axis=-1), (parts > 0).sum(axis=-1), total_entropy(parts)
    saved = bits[0] - bits[1] - bits[2]
    k, entropy = classes.astype(float), bits / n
    delta = _log2_3k_minus_2(int(classes[0])) - (k[0] * entropy[0] - k[1] * entropy[1] - k[2] * entropy[2])
    return bool(saved > math.log2(n[0] - 1) + delta)


def _log2_3k_minus_2(k: int) -> float:
    """Return ``log2(3^k - 2)`` without overflow."""
    return k * math.log2(3) + math.log2(1 - 2 * 3.0**-k)
