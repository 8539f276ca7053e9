"""`Calibrated`: honest probabilities from any scikit-learn classifier."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import KFold, StratifiedKFold, check_cv, cross_val_predict
from sklearn.utils import assert_all_finite, get_tags, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from priory.calibration.calibration_maps import (
    CALIBRATION_METHODS,
    CalibrationMap,
    fit_calibration_map,
    log_odds,
    replace_impossible,
    venn_abers_bounds,
)
from priory.core.logspace import log, log_normalise
from priory.core.typing import Array
from priory.errors import DataError

PREDICTION_METHODS = ("predict_log_proba", "predict_proba", "decision_function")


class Calibrated(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier whose probabilities are mended by what they were worth on rows it had not seen.

    Every row is predicted by a model fitted on the other folds; a map from these scores to the labels is learned
    (`priory.calibration.calibration_maps`), and put behind a model fitted on all rows.

    Parameters
    ----------
    estimator : any scikit-learn classifier, with probabilities or a decision function
    method : "temperature", "platt", "beta" or "isotonic"
        One number for all; and one for each class; two for each class; or any rising function of each.
    cv : int or what scikit-learn takes for it

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from priory import Scores
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> plain, mended = GaussianNB().fit(X[::2], y[::2]), Calibrated(GaussianNB()).fit(X[::2], y[::2])
    >>> [round(Scores.of(y[1::2], m.predict_proba(X[1::2]), m.classes_).log_loss.value, 2) for m in (plain, mended)]
    [0.62, 0.15]
    """

    classes_: Array
    estimator_: Any
    map_: CalibrationMap

    def __init__(
        self,
        estimator: Any,
        *,
        method: Literal["temperature", "platt", "isotonic", "beta"] = "temperature",
        cv: Any = 5,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the classifier on all rows, and the map on what it says of rows left out."""
        if self.method not in CALIBRATION_METHODS:
            raise DataError(f"method is {self.method!r}; use one of {', '.join(CALIBRATION_METHODS)}.")
        validate_data(self, X, skip_check_array=True)
        X, labels = indexable(X, column_or_1d(y, warn=True))
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise DataError(f"y has {len(classes)} class(es); a classifier needs rows of at least two.")
        log_p = predict_out_of_fold(self.estimator, X, labels, self.cv)
        estimator = clone(self.estimator).fit(X, labels)
        self.map_ = fit_calibration_map(self.method, log_p, codes)
        self.estimator_, self.classes_, self._out_of_fold_log_proba, self._class_codes = (
            estimator,
            classes,
            log_p,
            codes,
        )
        return self

    def _uncalibrated_log_proba(self, X: Any) -> Array:
        check_is_fitted(self)
        answer = _find_prediction_method(self.estimator_)
        with np.errstate(divide="ignore"):
            return _convert_to_log_probabilities(getattr(self.estimator_, answer)(X), answer)

    def predict_log_proba(self, X: Any) -> Array:
        told = self._uncalibrated_log_proba(X)
        return self.map_(told)

    def predict_proba(self, X: Any) -> Array:
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Array:
        best = self.predict_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def interval(self, X: Any) -> tuple[Array, Array]:
        """Venn-Abers bounds on each probability: narrow where many rows like it were seen, wide where few were."""
        asked, seen = (
            log_odds(replace_impossible(self._uncalibrated_log_proba(X))),
            log_odds(replace_impossible(self._out_of_fold_log_proba)),
        )
        bounds = [venn_abers_bounds(seen[:, c], self._class_codes == c, asked[:, c]) for c in range(len(self.classes_))]
        return np.column_stack([low for low, _ in bounds]), np.column_stack([high for _, high in bounds])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def predict_out_of_fold(estimator: Any, X: Any, labels: Array, cv: Any = 5) -> Array:
    """Log probabilities of each row from a model fitted on the other folds."""
    fewest = int(np.unique(labels, return_counts=True)[1].min())
    if isinstance(cv, int):
        kind, most = (StratifiedKFold, fewest) if fewest > 1 else (KFold, len(labels))
        folds = kind(min(cv, most), shuffle=True, random_state=0)
    else:
        folds = check_cv(cv, labels, classifier=True)
    answer = _find_prediction_method(estimator)
    with warnings.catch_warnings(), np.errstate(divide="ignore"):  # a class that a fold lacks is impossible to it
        warnings.filterwarnings("ignore", "Number of classes in training fold", RuntimeWarning)
        told = cross_val_predict(estimator, X, labels, cv=folds, method=answer)
    return _convert_to_log_probabilities(told, answer)


def _find_prediction_method(estimator: Any) -> str:
    """The method that says most."""
    for name in PREDICTION_METHODS:
        if hasattr(estimator, name):
            return name
    raise DataError(
        f"{type(estimator).__name__} has none of {', '.join(PREDICTION_METHODS)}; there is nothing to calibrate."
    )


def _convert_to_log_probabilities(predictions: Array, method: str) -> Array:
    """Log probabilities of each class; a decision function is taken for log-odds."""
    if method == "predict_proba":
        return log(predictions)
    if method == "predict_log_proba":
        return np.asarray(predictions, dtype=float)
    return log_normalise(
        np.column_stack([np.zeros(len(predictions)), predictions]) if predictions.ndim == 1 else predictions
    )
