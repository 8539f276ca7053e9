"""Cross-validation folds that also work with very small classes."""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import BaseCrossValidator, KFold, StratifiedKFold, check_cv

from priory.core.typing import Array, RandomState


def make_splitter(cv: int | BaseCrossValidator, labels: Array, random_state: RandomState) -> BaseCrossValidator:
    """Return shuffled folds, stratified unless a class has a single row; or the given splitter."""
    if not isinstance(cv, int):
        return check_cv(cv, labels, classifier=True)
    smallest_class = int(np.unique(labels, return_counts=True)[1].min())
    kind, max_folds = (StratifiedKFold, smallest_class) if smallest_class > 1 else (KFold, len(labels))
    return kind(min(cv, max_folds), shuffle=True, random_state=random_state)
