"""Prediction sets: the classes that are plausible for a row, with a promised share of sets that hold the true class.

Nothing is held out: the rows of each fold are scored by the model without it, and so is the new row. A class belongs
to the set unless too many rows gave a larger probability to their own class than the model without them gives to this
one (cross-conformal prediction [1]_, on the sets of [2]_). The model of all rows is better than those that left rows
out: compared with its answers, sets would be too large.

References
----------
.. [1] V. Vovk, "Cross-conformal predictors", Annals of Mathematics and Artificial Intelligence 74, 2015.
.. [2] M. Sadinle, J. Lei and L. Wasserman, "Least ambiguous set-valued classifiers with bounded error levels", Journal
   of the American Statistical Association 114, 2019.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy import ndarray as Array

from priory.errors import DataError


def check_coverage(coverage: float) -> None:
    """Raise an error unless the coverage is between 0 and 1."""
    if not 0 < coverage < 1:
        raise DataError(f"coverage is {coverage!r}; use a share between 0 and 1, such as 0.9.")


class FoldAnswers(NamedTuple):
    """Answers of the model that was fitted without a fold: for the rows of the fold, and for new rows."""

    group: Array  # (rows of the fold,): their classes
    own: Array  # (rows of the fold,): log p of the own class
    weight: Array  # (rows of the fold,)
    new: Array  # (new rows, classes): log p(c | x)


def choose_sets(folds: Iterable[FoldAnswers], coverage: float, by_class: bool) -> Array:
    """(new rows, classes): the classes that belong to the set of each row.

    Of n rows and a new one, each is equally likely to be the k-th likeliest by its own class. With ``by_class`` a class
    is compared with its own rows.

    >>> rows = np.zeros(4, dtype=int), np.array([-3.0, -1.0, -2.0, -4.0]), np.ones(4)
    >>> choose_sets([FoldAnswers(*rows, np.array([[-3.0], [-3.5]]))], 0.6, False).tolist()
    [[True], [False]]
    """
    check_coverage(coverage)
    # (new rows, classes): the weight of rows that are likelier; (classes,): of all rows
    above: Array | float = 0.0
    total: Array | float = 0.0
    for fold in folds:
        classes = np.arange(fold.new.shape[1])
        chosen = [fold.group == c if by_class else slice(None) for c in classes]
        likelier = [
            weigh_larger(fold.own[r], fold.weight[r], fold.new[:, c]) for c, r in zip(classes, chosen, strict=True)
        ]
        above = above + np.column_stack(likelier)
        total = total + np.array([fold.weight[rows].sum() for rows in chosen])
    return np.asarray(above < (1 + total) * coverage * (1 - 1e-12))


def weigh_larger(values: Array, weight: Array, limits: Array) -> Array:
    """(limits,): the weight of the values above each limit."""
    order = np.argsort(values, kind="stable")
    below = np.append(0.0, np.cumsum(weight[order]))
    return np.asarray(below[-1] - below[np.searchsorted(values[order], limits, side="right")])
