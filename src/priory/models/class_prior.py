"""log p(c): the class prior, estimated from the rows of each class, weighted, uniform, or declared.

To weight all rows of a class scales its statistics, which changes nothing but the class prior, apart from smoothing. So
weights of classes multiply the estimated prior: the statistics remain those of the rows, and rows can be learned and
forgotten as ever. Balanced classes have a uniform prior.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from priory.core.logspace import log
from priory.core.typing import Array
from priory.errors import DataError

ClassPrior = str | Mapping[Hashable, float] | Sequence[float] | Array  # "estimated", "uniform", or probabilities


ClassWeight = Literal["balanced"] | Mapping[Hashable, float]  # how much the rows of classes count


@dataclass(frozen=True, eq=False)
class WeightedPrior:
    """The shares of the rows, each times the weight of its class."""

    weights: Array  # (classes,)


ResolvedPrior = str | Array | WeightedPrior  # "estimated", "uniform", probabilities of classes in order, or weights


def check_class_weight(class_weight: ClassWeight | None, class_prior: ClassPrior) -> None:
    """Raise an error if weights of classes are impossible, or given besides a prior."""
    if class_weight is None:
        return
    if not isinstance(class_weight, Mapping) and class_weight != "balanced":
        raise DataError(f"class_weight is {class_weight!r}; use 'balanced', a dict of class to weight, or None.")
    if not isinstance(class_prior, str) or class_prior != "estimated":
        raise DataError("class_weight multiplies the estimated class prior, and class_prior declares one; give one.")
    for label, number in class_weight.items() if isinstance(class_weight, Mapping) else ():
        if not 0 <= number < np.inf:
            raise DataError(f"class {label!r} has the weight {number:g}; give a number that is 0 or more")


def resolve_class_prior(class_prior: ClassPrior, class_weight: ClassWeight | None, classes: Array) -> ResolvedPrior:
    """The prior of these classes, as declared; a class without a weight has the weight 1."""
    check_class_weight(class_weight, class_prior)
    if class_weight is None:
        return check_class_prior(class_prior, classes)
    if isinstance(class_weight, str):
        return "uniform"
    weights = np.array([class_weight.get(label, 1.0) for label in classes.tolist()], dtype=float)
    if not weights.any():
        raise DataError("every class has the weight 0; give at least one class a weight above 0")
    return WeightedPrior(weights)


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


def log_class_prior(n: Array, class_prior: ResolvedPrior, rows_of_empty_class: float = 0.5) -> Array:
    """Log probability of each class before a row is read; ``n`` is the weight of the rows learned of each class.

    A class without rows counts as ``rows_of_empty_class`` rows.

    >>> np.exp(log_class_prior(np.array([3.0, 1.0]), "estimated")).round(2).tolist()
    [0.75, 0.25]
    """
    if isinstance(class_prior, WeightedPrior):
        weighted = np.where(n > 0, n, rows_of_empty_class) * class_prior.weights
        return log(weighted / weighted.sum())
    if isinstance(class_prior, str):
        counts = np.where(n > 0, n, rows_of_empty_class)
        uniform = class_prior == "uniform" or not counts.any()
        return np.full(len(n), -np.log(len(n))) if uniform else log(counts / counts.sum())
    return log(class_prior)
