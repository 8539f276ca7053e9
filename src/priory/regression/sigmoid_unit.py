"""The sigmoid unit: maximum likelihood by the textbook rule of gradient ascent.

    h(x) = 1 / (1 + exp(-w·x)),    w <- w + eta Σ_i (d_i - h(x_i)) x_i

The rule ascends the likelihood of the labels, and so descends the cross-entropy -Σ d ln h(x) + (1 - d) ln(1 - h(x)).
``fit`` sums over all rows in each step; ``partial_fit`` and ``learn_one`` take a step for each row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from priory.core.estimator_methods import ProbabilisticClassifier, replace_state
from priory.core.input_guard import guard_input
from priory.core.typing import MatrixLike
from priory.errors import DataError
from priory.regression.design_matrix import encode_declared_classes, resolve_declared_classes


@dataclass(eq=False, repr=False, kw_only=True)
class SigmoidUnit(ClassifierMixin, ProbabilisticClassifier, BaseEstimator):
    """One sigmoid unit for two classes, trained from zero weights by gradient ascent on unscaled columns.

    For a model that standardises its columns, finds the optimum quickly and averages over weights, use
    :class:`~priory.BayesianLogisticRegression`.

    Parameters
    ----------
    eta : float, default=0.05
        The learning rate.
    steps : int, default=100
        The number of steps; each goes over all rows.
    fit_intercept : bool, default=True
        Whether to add a column of ones with weight w0.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The classes; d is 1 for the second.
    class_prior_ : ndarray of shape (2,)
        P(class): the share of the rows of each class.
    class_count_ : ndarray of shape (2,)
        The number of learned rows of each class.
    weights_ : ndarray of shape (n_weights,)
        The weights after the last step, w0 first if there is one.
    path_ : ndarray of shape (steps + 1, n_weights)
        The weights before each step of the last ``fit`` or ``partial_fit``, and after the last step.
    errors_ : ndarray of shape (steps + 1,)
        The cross-entropy of its rows, in nats, with each of these weights.
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

    eta: float = 0.05
    steps: int = 100
    fit_intercept: bool = True

    _multiclass = False

    def fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Train from zero weights."""
        inputs, labels = self._read_rows(X, y, reset=True)
        classes, d = np.unique(labels, return_inverse=True)
        _check_two_classes(classes)
        path = [np.zeros(inputs.shape[1])]
        for _ in range(self.steps):
            path.append(self._take_step(path[-1], inputs, d))
        self.classes_, self.class_count_ = classes, np.zeros(2)
        self._keep_path(path, inputs, d)
        return self

    @replace_state
    def partial_fit(self, X: MatrixLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Take one step for each row, in the order of the rows; the first call needs both classes."""
        known = self.classes_ if self._has_learned() else None
        self.classes_ = _check_two_classes(resolve_declared_classes(classes, known))
        inputs, labels = self._read_rows(X, y, reset=known is None)
        d = encode_declared_classes(labels, self.classes_)
        if known is None:
            self.class_count_ = np.zeros(2)
        path = [np.zeros(inputs.shape[1]) if known is None else self.weights_]
        for row in range(len(d)):
            path.append(self._take_step(path[-1], inputs[row : row + 1], d[row : row + 1]))
        self._keep_path(path, inputs, d)
        return self

    def _explain_absence(self, method: str) -> str | None:
        return "a step cannot be taken back; call fit with the rows that are left." if method == "forget_one" else None

    def _read_rows(self, X: MatrixLike, y: ArrayLike, reset: bool) -> tuple[Array, Array]:
        """Return the rows, with a column of ones if there is an intercept, and their labels."""
        if not 0 < self.eta < np.inf or self.steps < 1:
            raise DataError(f"eta is {self.eta!r} and steps {self.steps!r}; give a rate above 0 and 1 step or more.")
        with guard_input(X):
            x, labels = validate_data(self, X, y, dtype=np.float64, reset=reset)
            check_classification_targets(labels)
        return self._add_ones(x), labels

    def _take_step(self, weights: Array, inputs: Array, d: Array) -> Array:
        """Return the weights after one step with these rows."""
        return np.asarray(weights + self.eta * (d - expit(inputs @ weights)) @ inputs)

    def _keep_path(self, path: list[Array], inputs: Array, d: Array) -> None:
        self.path_ = np.array(path)
        self.errors_ = np.array([cross_entropy(d, inputs @ weights) for weights in path])
        self.class_count_ = self.class_count_ + np.bincount(d, minlength=2)
        self.class_prior_ = self.class_count_ / self.class_count_.sum()

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

    def _add_ones(self, x: Array) -> Array:
        return np.column_stack([np.ones(len(x)), x]) if self.fit_intercept else x

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags


def _check_two_classes(classes: Array) -> Array:
    if len(classes) != 2:
        raise DataError(f"Only binary classification is supported: y has {len(classes)} class(es), give two.")
    return classes


def cross_entropy(d: ArrayLike, log_odds: ArrayLike) -> float:
    """Return ``-Σ d ln h + (1 - d) ln(1 - h)`` where h is the sigmoid of the log-odds.

    >>> round(cross_entropy([0, 1], [0.0, 0.0]), 4)  # two rows, both undecided: 2 ln 2
    1.3863
    """
    signs = 1 - 2 * np.asarray(d, dtype=float)
    return float(np.logaddexp(0.0, signs * np.asarray(log_odds)).sum())
