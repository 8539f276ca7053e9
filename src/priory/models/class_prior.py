"""log p(c): the class prior, estimated from the rows of each class, uniform, or declared."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from priory.core.logspace import log
from priory.core.typing import Array
from priory.errors import DataError

ClassPrior = str | Mapping[Hashable, float] | Sequence[float] | Array  # "estimated", "uniform", or probabilities


def check_class_prior(class_prior: ClassPrior, classes: Array) -> str | Array:
    """The declared prior as "estimated", "uniform", or one probability for each class, in the order of ``classes``."""
    if isinstance(class_prior, str):
        if class_prior not in ("estimated", "uniform"):
            raise DataError(f"class_prior is {class_prior!r}; use 'estimated', 'uniform', or probabilities.")
        return class_prior
    if isinstance(class_prior, Mapping):
        absent = [c for c in classes.tolist() if c not in class_prior]
        if absent:
            raise DataError(f"class_prior has no probability for class {absent[0]!r}.")
        class_prior = [class_prior[c] for c in classes.tolist()]
    prior = np.asarray(class_prior, dtype=float)
    if prior.shape != classes.shape:
        raise DataError(f"class_prior has {prior.size} probabilities for {len(classes)} classes.")
    if not (prior >= 0).all() or not np.isclose(prior.sum(), 1.0):
        raise DataError(f"class_prior is {prior.tolist()}; probabilities must not be negative and must sum to 1.")
    return prior


def log_class_prior(n: Array, class_prior: str | Array) -> Array:
    """Log probability of each class before a row is read; ``n`` is the weight of the rows learned of each class.

    A class without rows counts as half a row.
    """
    if isinstance(class_prior, str) and class_prior == "uniform":
        return np.full(len(n), -np.log(len(n)))
    if isinstance(class_prior, str):
        counts = np.where(n > 0, n, 0.5)
        return log(counts / counts.sum())
    return log(class_prior)
