"""Check rows of any type, and split them into training and test rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.model_selection import (
    BaseCrossValidator,
    KFold,
    LeaveOneGroupOut,
    StratifiedKFold,
    TimeSeriesSplit,
    check_cv,
)
from sklearn.utils import assert_all_finite, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from priory.calibration.calibrator import CALIBRATION_FOLDS
from priory.core.input_guard import guard_input
from priory.core.typing import MatrixLike, RandomState


def check_any_rows(model: BaseEstimator, X: MatrixLike, y: ArrayLike) -> tuple[MatrixLike, Array]:
    """Check labels, and that there is one for each row; what the rows hold is for the inner classifiers to check."""
    with guard_input(X):
        validate_data(model, X, skip_check_array=True)
        X, labels = indexable(X, column_or_1d(y, warn=True))
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
    return X, labels


def make_splitter(cv: int | BaseCrossValidator, labels: Array, random_state: RandomState) -> BaseCrossValidator:
    """Return shuffled folds, stratified unless a class has a single row; or the given splitter."""
    if not isinstance(cv, int):
        return check_cv(cv, labels, classifier=True)
    smallest_class = int(np.unique(labels, return_counts=True)[1].min())
    kind, max_folds = (StratifiedKFold, smallest_class) if smallest_class > 1 else (KFold, len(labels))
    return kind(min(cv, max_folds), shuffle=True, random_state=random_state)


def split_learned_rows(
    folds: str | int | BaseCrossValidator, group: Array, groups: ArrayLike | None, time: ArrayLike | None
) -> Iterator[tuple[Array, Array]]:
    """Yield training and test rows for each split: by time, by group or by folds."""
    if time is not None:
        # TimeSeriesSplit splits positions: map them back to rows in order of time
        order = np.argsort(np.asarray(time), kind="stable")
        splitter = TimeSeriesSplit(CALIBRATION_FOLDS if isinstance(folds, str) else folds)
        return ((order[train], order[test]) for train, test in splitter.split(group))
    if isinstance(folds, str):
        return LeaveOneGroupOut().split(group, group, groups)
    return check_cv(folds, group, classifier=True).split(group[:, None], group, groups)
