"""Numbers into bins that tell about the class: minimum description length discretisation (Fayyad & Irani, 1993).

A column is cut where the classes are told apart best, and each side again, for as long as a cut shortens the
description: the bits saved on the classes must pay for naming the cut and the classes on either side of it.
"""

from __future__ import annotations

import math
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from priory.core.logspace import log, x_log_y
from priory.core.typing import Array


@final
class MDLDiscretiser(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Replaces each number by the index of its bin, counted from 0; a missing cell stays NaN.

    ``edges_`` holds the cuts of each column: none where the column says nothing about the class. A value on a cut
    belongs to the bin below it.

    >>> x = np.array([[1.0], [2.0], [3.0], [10.0], [11.0], [12.0]] * 2)
    >>> binned = MDLDiscretiser().fit(x, [0, 0, 0, 1, 1, 1] * 2)
    >>> binned.edges_[0].tolist(), binned.transform([[4.0], [100.0]]).tolist()
    ([6.5], [[0.0], [1.0]])
    """

    edges_: list[Array]
    n_bins_: Array

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        table, labels = validate_data(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan")
        check_classification_targets(labels)
        _, codes = np.unique(labels, return_inverse=True)
        self.edges_ = [find_cuts(column, codes) for column in table.T]
        self.n_bins_ = np.array([len(edges) + 1 for edges in self.edges_])
        return self

    def transform(self, X: ArrayLike) -> Array:
        check_is_fitted(self)
        table = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        binned = [np.searchsorted(edges, column) for edges, column in zip(self.edges_, table.T, strict=True)]
        return np.where(np.isnan(table), np.nan, np.column_stack(binned))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = True
        return tags


def find_cuts(column: Array, codes: Array) -> Array:
    """Where to cut one column, given the class (0, 1, ...) of each row."""
    known = ~np.isnan(column)
    values, where = np.unique(column[known], return_inverse=True)
    classes = int(codes.max(initial=0)) + 1
    counts = np.bincount(where * classes + codes[known], minlength=len(values) * classes).reshape(-1, classes)
    borders = find_boundaries(counts)
    if len(borders) == 0:
        return np.zeros(0)
    total = np.vstack([np.zeros(classes), np.cumsum(counts, axis=0)])
    accepted = _find_accepted_cuts(total[np.concatenate([[0], borders, [len(values)]])])
    places = borders[np.array(sorted(accepted), dtype=int) - 1]
    return values[places - 1] / 2 + values[places] / 2  # halved first: 1e308 + 1e308 would overflow


def find_boundaries(counts: Array) -> Array:
    """Where the best cut can be: between two values unless both are seen with the same class alone (their Theorem 1).

    >>> find_boundaries(np.array([[2, 0], [1, 0], [0, 3], [1, 1], [0, 1]])).tolist()
    [2, 3, 4]
    """
    mixed = (counts > 0).sum(axis=1) > 1
    common = counts.argmax(axis=1)
    return np.flatnonzero(mixed[1:] | mixed[:-1] | (common[1:] != common[:-1])) + 1


def _find_accepted_cuts(counts_below: Array) -> list[int]:
    """The accepted cuts among the rows of ``below``, which count the classes under each place to cut."""
    found, waiting = [], [(0, len(counts_below) - 1)]
    while waiting:
        start, stop = waiting.pop()
        if stop - start < 2:
            continue
        left, whole = counts_below[start + 1 : stop] - counts_below[start], counts_below[stop] - counts_below[start]
        spent = total_entropy(left) + total_entropy(whole - left)
        cut = int(np.argmin(spent.round(8)))  # of cuts equally good but for rounding, the first
        if is_worth_cutting(whole, left[cut]):
            place = start + 1 + cut
            found.append(place)
            waiting += [(start, place), (place, stop)]
    return found


def total_entropy(counts: Array) -> Array:
    """``n H``: bits of the classes of ``n`` rows once their shares are known, ``Σ -n_c log2 (n_c / n)``.

    >>> total_entropy(np.array([[2, 2], [4, 0]])).tolist()
    [4.0, 0.0]
    """
    n = counts.sum(axis=-1)
    return np.asarray(x_log_y(n, log(n)) - x_log_y(counts, log(counts)).sum(axis=-1)) / math.log(2)


def is_worth_cutting(whole: Array, left: Array) -> bool:
    """Fayyad and Irani's criterion: ``N Gain > log2(N - 1) + log2(3^k - 2) - [k H - k1 H1 - k2 H2]``."""
    parts = np.stack([whole, left, whole - left])
    n, classes, spent = parts.sum(axis=-1), (parts > 0).sum(axis=-1), total_entropy(parts)
    saved = spent[0] - spent[1] - spent[2]
    k, entropy = classes.astype(float), spent / n
    delta = _log2_3k_minus_2(int(classes[0])) - (k[0] * entropy[0] - k[1] * entropy[1] - k[2] * entropy[2])
    return bool(saved > math.log2(n[0] - 1) + delta)


def _log2_3k_minus_2(k: int) -> float:
    return k * math.log2(3) + math.log2(1 - 2 * 3.0**-k)
