"""Prediction sets: the classes that are plausible for a row, with a promised share of sets that hold the true class.

A class belongs to the set if its probability is not below a threshold, which is the conformal quantile of the
probabilities that left-out rows gave to their own classes [1]_. Nothing is held out: the left-out answers of all
learned rows take the place of a calibration set (cross-conformal prediction [2]_).

References
----------
.. [1] M. Sadinle, J. Lei and L. Wasserman, "Least ambiguous set-valued classifiers with bounded error levels", Journal
   of the American Statistical Association 114, 2019.
.. [2] V. Vovk, "Cross-conformal predictors", Annals of Mathematics and Artificial Intelligence 74, 2015.
"""

from __future__ import annotations

import numpy as np
from numpy import ndarray as Array

from priory.errors import DataError
from priory.evaluation.scores import Scores


def check_coverage(coverage: float) -> None:
    """Raise an error unless the coverage is between 0 and 1."""
    if not 0 < coverage < 1:
        raise DataError(f"coverage is {coverage!r}; use a share between 0 and 1, such as 0.9.")


def find_set_thresholds(left_out: Scores, coverage: float, by_class: bool) -> Array:
    """(classes,): the least log probability with which a class belongs to a set; -inf if there are too few rows.

    With ``by_class`` the coverage holds among the rows of each class, otherwise among all rows.
    """
    check_coverage(coverage)
    own = left_out.log_probabilities[np.arange(len(left_out.truth)), left_out.truth]
    if not by_class:
        return np.full(len(left_out.classes), find_lower_quantile(own, left_out.weight, coverage))
    of_class = [left_out.truth == c for c in range(len(left_out.classes))]
    return np.array([find_lower_quantile(own[rows], left_out.weight[rows], coverage) for rows in of_class])


def find_lower_quantile(values: Array, weight: Array, coverage: float) -> float:
    """The largest value such that a new one is at least as large with probability ``coverage``; -inf if there is none.

    Of n values and a new one, each is equally likely to be the k-th largest: the quantile is the value with the rank
    (n + 1) coverage, rounded up, from the top.

    >>> find_lower_quantile(np.array([3.0, 1.0, 2.0, 4.0]), np.ones(4), 0.6)
    2.0
    """
    order = np.argsort(-values, kind="stable")
    above = np.cumsum(weight[order])  # (values,): the weight of this value and all larger ones
    place = int(np.searchsorted(above, (1 + weight.sum()) * coverage * (1 - 1e-12)))
    return float(values[order[place]]) if place < len(values) else -np.inf
