"""log p(c): the class prior, estimated from what was seen, uniform, or given."""

from __future__ import annotations

from typing import Any

import numpy as np

from priory.core.logspace import log
from priory.core.typing import Array
from priory.errors import DataError


def log_prior(n: Array, class_prior: Any = None, fit_prior: bool = True) -> Array:
    """The given probabilities, or the classes' shares of the rows, or the same for all.

    >>> np.exp(log_prior(np.array([3.0, 1.0]))).round(2).tolist()
    [0.75, 0.25]
    """
    if class_prior is not None:
        return log(check_class_probabilities(class_prior, len(n)))
    return log(n / n.sum()) if fit_prior and n.any() else np.full(len(n), -np.log(len(n)))


def check_class_probabilities(class_prior: Any, classes: int) -> Array:
    """Probabilities: one for each class, none negative, adding up to one."""
    prior = np.asarray(class_prior, dtype=float)
    if prior.shape != (classes,):
        raise DataError(f"Number of priors must match number of classes: {prior.size} for {classes} classes.")
    if not (prior >= 0).all():
        raise DataError(f"Priors must be non-negative; they are {prior.tolist()}.")
    if not np.isclose(prior.sum(), 1.0):
        raise DataError(f"The sum of the priors should be 1; it is {prior.sum():g}.")
    return prior
