"""`Calibrated`: calibrated probabilities from any scikit-learn classifier."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Literal, Self

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import BaseCrossValidator, cross_val_predict
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from priory.calibration import calibration_maps
from priory.core.estimator_methods import ProbabilisticClassifier
from priory.core.logspace import log, log_normalise
from priory.core.typing import MatrixLike
from priory.errors import DataError
from priory.estimators.folds import check_any_rows, make_splitter

PREDICTION_METHODS = ("predict_log_proba", "predict_proba", "decision_function")


@dataclass(eq=False, repr=False)
class Calibrated(ClassifierMixin, MetaEstimatorMixin, ProbabilisticClassifier, BaseEstimator):
    """A classifier with calibrated probabilities, fitted to out-of-fold predictions of another classifier.

    Every row is predicted by a classifier fitted on the other folds. A calibration map is fitted to these predictions
    and applied to the predictions of a classifier fitted on all rows.

    Parameters
    ----------
    estimator : scikit-learn classifier
        The classifier to calibrate, with ``predict_proba``, ``predict_log_proba`` or ``decision_function``.
    method : {"temperature", "platt", "beta", "isotonic"}, default="temperature"
        The calibration map. "temperature" scales all log probabilities by one number; "platt" also shifts each class;
        "beta" scales and shifts each class; "isotonic" fits any rising function of each class's log-odds.
    cv : int or scikit-learn splitter, default=5
        The folds.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    class_prior_ : ndarray of shape (n_classes,)
        P(class): the share of the rows of each class.
    estimator_ : classifier
        The classifier fitted on all rows.
    map_ : CalibrationMap
        The fitted map, a function of log probabilities.
    n_features_in_ : int
        The number of columns.

    References
    ----------
    .. [1] J. Platt, "Probabilistic outputs for support vector machines and comparisons to regularized likelihood
       methods", Advances in Large Margin Classifiers, 1999.
    .. [2] M. Kull, T. Silva Filho and P. Flach, "Beta calibration", Proceedings of the 20th International Conference on
       Artificial Intelligence and Statistics (AISTATS), 2017.
    .. [3] V. Vovk and I. Petej, "Venn-Abers predictors", Proceedings of the 30th Conference on Uncertainty in
       Artificial Intelligence (UAI), 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from priory import Scores
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> plain, calibrated = GaussianNB().fit(X[::2], y[::2]), Calibrated(GaussianNB()).fit(X[::2], y[::2])
    >>> for model in (plain, calibrated):
    ...     scores = Scores.of(y[1::2], model.predict_proba(X[1::2]), model.classes_)
    ...     print(round(scores.log_loss.value, 2))
    0.62
    0.15
    """

    estimator: ClassifierMixin
    _: KW_ONLY
    method: Literal["temperature", "platt", "isotonic", "beta"] = "temperature"
    cv: int | BaseCrossValidator = 5

    _takes_texts = True

    def fit(self, X: MatrixLike, y: ArrayLike) -> Self:
        """Fit the classifier on all rows, and the calibration map on out-of-fold predictions."""
        if self.method not in calibration_maps.CALIBRATION_METHODS:
            raise DataError(f"method is {self.method!r}; use one of {', '.join(calibration_maps.CALIBRATION_METHODS)}.")
        X, labels = check_any_rows(self, X, y)
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise DataError(f"y has {len(classes)} class(es); a classifier needs rows of at least two.")
        log_p = predict_out_of_fold(self.estimator, X, labels, self.cv)
        estimator = clone(self.estimator).fit(X, labels)
        self.map_ = calibration_maps.fit_calibration_map(self.method, log_p, codes)
        self.estimator_, self.classes_, self.class_prior_ = estimator, classes, np.bincount(codes) / len(codes)
        # kept for the intervals
        self._out_of_fold_log_proba, self._class_codes = log_p, codes
        return self

    def _uncalibrated_log_proba(self, X: MatrixLike) -> Array:
        """Return the log probabilities of the fitted classifier, (rows, classes)."""
        check_is_fitted(self)
        method = _find_prediction_method(self.estimator_)
        with np.errstate(divide="ignore"):
            return _convert_to_log_probabilities(getattr(self.estimator_, method)(X), method)

    def predict_log_proba(self, X: MatrixLike) -> Array:
        """Return the calibrated log probability of each class."""
        log_p = self._uncalibrated_log_proba(X)
        return self.map_(log_p)

    def predict_proba(self, X: MatrixLike) -> Array:
        """Return the calibrated probability of each class."""
        return np.exp(self.predict_log_proba(X))

    def _explain_absence(self, method: str) -> str:
        return (
            "its map is fitted to folds of all rows; call fit with all of them, or use priory.NaiveBayes or "
            "TextClassifier, which calibrate themselves."
        )

    def interval(self, X: MatrixLike) -> tuple[Array, Array]:
        """Return Venn-Abers bounds on each probability: narrow where there were many similar rows, wide where few.

        Both bounds are (rows, classes).
        """
        # (rows, classes) log-odds of each class against the others; the classes are calibrated one by one
        queries = calibration_maps.log_odds(calibration_maps.replace_impossible(self._uncalibrated_log_proba(X)))
        known = calibration_maps.log_odds(calibration_maps.replace_impossible(self._out_of_fold_log_proba))
        bounds = [
            calibration_maps.venn_abers_bounds(known[:, c], self._class_codes == c, queries[:, c])
            for c in range(len(self.classes_))
        ]
        return np.column_stack([low for low, _ in bounds]), np.column_stack([high for _, high in bounds])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def predict_out_of_fold(
    estimator: ClassifierMixin, X: MatrixLike, labels: Array, cv: int | BaseCrossValidator = 5
) -> Array:
    """Return log probabilities (rows, classes), each row predicted by a classifier fitted on the other folds."""
    method = _find_prediction_method(estimator)
    with warnings.catch_warnings(), np.errstate(divide="ignore"):  # a class missing from a fold has probability 0
        warnings.filterwarnings("ignore", "Number of classes in training fold", RuntimeWarning)
        predictions = cross_val_predict(estimator, X, labels, cv=make_splitter(cv, labels, 0), method=method)
    return _convert_to_log_probabilities(predictions, method)


def _find_prediction_method(estimator: ClassifierMixin) -> str:
    """Return the name of the most informative prediction method that the classifier has."""
    for name in PREDICTION_METHODS:
        if hasattr(estimator, name):
            return name
    raise DataError(
        f"{type(estimator).__name__} has none of {', '.join(PREDICTION_METHODS)}; there is nothing to calibrate."
    )


def _convert_to_log_probabilities(predictions: Array, method: str) -> Array:
    """Return log probabilities (rows, classes); a decision function is read as log-odds."""
    if method == "predict_proba":
        return log(predictions)
    if method == "predict_log_proba":
        return np.asarray(predictions, dtype=float)
    # two classes have one decision value, the log-odds of the second: (rows,) to (rows, 2)
    return log_normalise(
        np.column_stack([np.zeros(len(predictions)), predictions]) if predictions.ndim == 1 else predictions
    )
