"""Scores against the number of training rows, without refitting: the model of some rows is ``total - the others``."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core.typing import MatrixLike, Seed
from priory.errors import DataError
from priory.estimators.learned_classifier import LearnedClassifier
from priory.estimators.sklearn_compat import take_table_rows
from priory.evaluation.scores import Scores

ClassifierT = TypeVar("ClassifierT", bound=LearnedClassifier)
DEFAULT_SHARES = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8)


def score_by_rows(
    model: ClassifierT, X: MatrixLike, y: ArrayLike, sizes: Sequence[int] | None = None, random_state: Seed = 0
) -> dict[int, Scores]:
    """Score the model of n of its rows on its other rows, for several n; `plots.learning_curve` draws the result.

    Nothing is fitted again: the other rows are forgotten, exactly. What is scored is the model before corrections.

    Parameters
    ----------
    model : a fitted naive Bayes classifier
    X, y : all the rows that it has learned, and their labels
    sizes : sequence of int, optional
        The numbers of rows; by default 5, 10, 20, 40, 60 and 80 % of them.
    random_state : int or Generator

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from priory.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> curve = score_by_rows(GaussianNB().fit(X, y), X, y, [15, 75])
    >>> [bool(scores.accuracy.value > 0.8) for scores in curve.values()]
    [True, True]
    """
    labels = np.asarray(y)
    n, least = len(labels), max(2, len(np.unique(labels)))
    chosen = sizes if sizes is not None else sorted({max(least, round(share * n)) for share in DEFAULT_SHARES})
    if not all(least <= size < n for size in chosen):
        raise DataError(
            f"sizes are {list(chosen)}; each must be from {least} to {n - 1}: a row of each class, and some to score."
        )
    order = order_rows(labels, random_state)
    found = {}
    for size in chosen:
        rest = np.sort(order[size:])
        rows = take_table_rows(X, rest)
        part = copy.deepcopy(model).forget(rows, labels[rest])
        found[int(size)] = Scores.of(labels[rest], part.predict_log_proba(rows), part.classes_, logs=True)
    return found


def order_rows(labels: Array, random_state: Seed) -> Array:
    """Permute the rows at random, with one row of each class first."""
    order = np.random.default_rng(random_state).permutation(len(labels))
    # positions in order of the first row of each class
    first = np.sort(np.unique(labels[order], return_index=True)[1])
    return np.concatenate([order[first], np.delete(order, first)])
