"""Scores against the number of training rows, without refitting: the model of some rows is ``total - the others``.

Along a stream each block of rows is predicted from the earlier ones, which shows how fast old rows should fade.
"""

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
DECAYS = (1.0, 0.99, 0.97, 0.9, 0.8, 0.6)
MIN_DECAY_GAIN = 0.005  # nats a row: memory does not fade for less
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


def choose_decay(
    model: ClassifierT, X: MatrixLike, y: ArrayLike, rows: int = 50, factors: Sequence[float] = DECAYS
) -> float:
    """The factor for `decay` after every block of rows under which the rows, in the order of time, are most probable.

    Each block is predicted by the model of the blocks before it, uncorrected (prequential evidence); no row that it
    answers has less than 1 / (n + 2) after n rows. A factor below 1 has to be better than none by two standard errors,
    and by 0.005 nats a row.

    Parameters
    ----------
    model : a classifier that counts, whose parameters are used
    X, y : rows in the order of time, and their labels
    rows : int
        The rows of a block, after each of which the model is to decay.
    factors : sequence of float

    Examples
    --------
    >>> from priory import NaiveBayes
    >>> times = np.arange(800)
    >>> X, y = {"x": times % 2}, (times + times // 400) % 2  # halfway 0 and 1 change places
    >>> choose_decay(NaiveBayes(), X, y) < 1, choose_decay(NaiveBayes(), X, times % 2)
    (True, 1.0)
    """
    labels = np.asarray(y)
    if rows < 1 or len(labels) < 3 * rows:
        raise DataError(f"there are {len(labels)} rows; give three blocks of {rows} rows at least, or smaller ones.")
    blocks = np.split(np.arange(len(labels)), range(rows, len(labels), rows))
    losses = {factor: _predict_blocks(model, X, labels, blocks, factor) for factor in (1.0, *factors)}
    best = min(losses, key=lambda factor: float(losses[factor].mean()))
    gain = losses[1.0] - losses[best]
    return best if gain.mean() > max(2 * gain.std() / np.sqrt(len(gain)), MIN_DECAY_GAIN) else 1.0


def _predict_blocks(model: ClassifierT, X: MatrixLike, labels: Array, blocks: Sequence[Array], factor: float) -> Array:
    """(blocks,): the mean log loss of each block but the first, by the model of those before, which decays."""
    learner = type(model)(**model.get_params(deep=False)).without_corrections()
    found = []
    for block in blocks:
        part, own = take_table_rows(X, block), labels[block]
        if hasattr(learner, "statistics_"):
            n = learner.class_count_.sum()
            place = {label: c for c, label in enumerate(learner.classes_.tolist())}
            p = np.column_stack([learner.predict_proba(part), np.zeros(len(block))])  # the last: an unknown class
            known = [place.get(label, -1) for label in own.tolist()]
            found.append(-np.log(np.maximum(p[np.arange(len(block)), known], 1 / (n + 2))).mean())
            learner.decay(factor)
        learner.partial_fit(part, own)
    return np.array(found)
