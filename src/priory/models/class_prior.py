"""The class prior log p(c): estimated from the rows of each class, uniform, or declared."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from priory.core.logspace import log
from priory.core.typing import Array
from priory.errors import DataError

ClassPrior = str | Mapping[Hashable, float] | Sequence[float] | Array  # "estimated", "uniform", or probabilities


def check_class_prior(class_prior: ClassPrior, classes: Array) -> str | Array:
    """Validate a declared prior: "estimated", "uniform", or probabilities in the order of ``classes``."""
    if isinstance(class_prior, str):
        if class_prior not in ("estimated", "uniform"):
            raise DataError(f"class_prior is {class_prior!r}; use 'estimated', 'uniform', or probabilities.")
        return class_prior
    if isinstance(class_prior, Mapping):
        absent = [c for c in classes.tolist() if c not in class_prior]
        if absent:
            raise DataError(f"class_prior has no probability for class {absent[0]!r}.")
        class_prior = [class_prior[c] for c in classes.tolist()]
    return check_class_probabilities(class_prior, len(classes))


def check_class_probabilities(class_prior: ArrayLike, n_classes: int) -> Array:
    """Validate probabilities: one for each class, non-negative, summing to 1."""
    prior = np.asarray(class_prior, dtype=float)
    # these messages begin like scikit-learn's
    if prior.shape != (n_classes,):
        raise DataError(f"Number of priors must match number of classes: {prior.size} for {n_classes} classes.")
    if not (prior >= 0).all():
        raise DataError(f"Priors must be non-negative; they are {prior.tolist()}.")
    if not np.isclose(prior.sum(), 1.0):
        raise DataError(f"The sum of the priors should be 1; it is {prior.sum():g}.")
    return prior


def log_class_prior(n: Array, class_prior: str | Array, rows_of_empty_class: float = 0.5) -> Array:
    """Log prior probability of each class; ``n`` (classes,) is the weight of the learned rows.

    A class without rows counts as ``rows_of_empty_class`` rows.

    >>> np.exp(log_class_prior(np.array([3.0, 1.0]), "estimated")).round(2).tolist()
    [0.75, 0.25]
    """
    if isinstance(class_prior, str):
        # so that an empty class is not impossible
        counts = np.where(n > 0, n, rows_of_empty_class)
        uniform = class_prior == "uniform" or not counts.any()
        return np.full(len(n), -np.log(len(n))) if uniform else log(counts / counts.sum())
    return log(class_prior)
