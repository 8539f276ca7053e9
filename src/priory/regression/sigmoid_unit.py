"""The sigmoid unit: maximum likelihood by gradient ascent, exactly as the rule is written.

    h(x) = 1 / (1 + exp(-w·x)),    w <- w + eta Σ_i (d_i - h(x_i)) x_i

The rule climbs the likelihood of the labels, and so goes down the cross-entropy -Σ d ln h(x) + (1 - d) ln(1 - h(x)).
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from priory.core.input_guard import guard_input
from priory.core.typing import Array, MatrixLike
from priory.errors import DataError


class SigmoidUnit(ClassifierMixin, BaseEstimator):
    """One sigmoid unit for two classes, trained by the rule above from zero weights; columns are used as they are.

    For a model that standardises its columns, finds the optimum quickly and averages over weights, use
    :class:`~priory.BayesianLogisticRegression`.

    Parameters
    ----------
    eta : float, default=0.05
        The learning rate.
    steps : int, default=100
        The number of steps; each goes over all rows.
    fit_intercept : bool, default=True
        Whether there is a weight w0 of a column of ones.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The classes; d is 1 for the second.
    class_prior_ : ndarray of shape (2,)
        P(class): the share of the rows of each class.
    weights_ : ndarray of shape (n_weights,)
        The weights after the last step, w0 first if there is one.
    path_ : ndarray of shape (steps + 1, n_weights)
        The weights before each step, and after the last.
    errors_ : ndarray of shape (steps + 1,)
        The cross-entropy, in nats, with each of these weights.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        The names of the columns, if the table has them.

    References
    ----------
    .. [1] T. M. Mitchell, "Machine Learning", McGraw-Hill, 1997, section 6.5.

    Examples
    --------
    One step from zero weights, where h(x) = 1/2 for both rows: w = 0.1 (-1/2 * 1 + 1/2 * 3) = 0.1:

    >>> unit = SigmoidUnit(eta=0.1, steps=1, fit_intercept=False).fit([[1.0], [3.0]], [0, 1])
    >>> unit.weights_.round(10).tolist(), unit.errors_.round(4).tolist()
    ([0.1], [1.3863, 1.2988])
    """

    classes_: Array
    class_prior_: Array
    path_: Array
    errors_: Array

    def __init__(self, *, eta: float = 0.05, steps: int = 100, fit_intercept: bool = True) -> None:
        self.eta = eta
        self.steps = steps
        self.fit_intercept = fit_intercept

    def fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Train from zero weights."""
        if not 0 < self.eta < np.inf or self.steps < 1:
            raise DataError(f"eta is {self.eta!r} and steps {self.steps!r}; give a rate above 0 and 1 step or more.")
        with guard_input(X):
            x, labels = validate_data(self, X, y, dtype=np.float64)
            check_classification_targets(labels)
        classes, d = np.unique(labels, return_inverse=True)
        if len(classes) != 2:
            raise DataError(f"Only binary classification is supported: y has {len(classes)} class(es), give two.")
        inputs = self._add_ones(x)
        path = [np.zeros(inputs.shape[1])]
        for _ in range(self.steps):
            path.append(path[-1] + self.eta * (d - expit(inputs @ path[-1])) @ inputs)
        self.classes_, self.class_prior_ = classes, np.bincount(d) / len(d)
        self.path_ = np.array(path)
        self.errors_ = np.array([cross_entropy(d, inputs @ weights) for weights in path])
        return self

    @property
    def weights_(self) -> Array:
        """The weights after the last step."""
        return np.asarray(self.path_[-1])

    def decision_function(self, X: MatrixLike) -> Array:
        """Return w·x of each row."""
        check_is_fitted(self, "path_")
        with guard_input(X):
            x = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(self._add_ones(x) @ self.weights_)

    def predict_proba(self, X: MatrixLike) -> Array:
        """Return 1 - h(x) and h(x) of each row."""
        h = expit(self.decision_function(X))
        return np.column_stack([1 - h, h])

    def predict(self, X: MatrixLike) -> Array:
        """Return the more probable class of each row."""
        is_second = self.decision_function(X) > 0
        return np.asarray(self.classes_[is_second.astype(int)])

    def _add_ones(self, x: Array) -> Array:
        return np.column_stack([np.ones(len(x)), x]) if self.fit_intercept else x

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags


def cross_entropy(d: ArrayLike, log_odds: ArrayLike) -> float:
    """Return ``-Σ d ln h + (1 - d) ln(1 - h)`` where h is the sigmoid of the log-odds.

    >>> round(cross_entropy([0, 1], [0.0, 0.0]), 4)  # two rows, both undecided: 2 ln 2
    1.3863
    """
    signs = 1 - 2 * np.asarray(d, dtype=float)
    return float(np.logaddexp(0.0, signs * np.asarray(log_odds)).sum())
