"""Bernoulli naive Bayes: every column is present or absent in a row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy import ndarray as Array

from priory.core.estimator_methods import optional_attribute
from priory.core.input_guard import describe_difference
from priory.core.logspace import log
from priory.core.statistics import register_estimator
from priory.errors import DataError
from priory.estimators.learned_classifier import find_classifier_fault
from priory.families.bernoulli import Bernoulli, BernoulliStatistics
from priory.naive_bayes import array_rows
from priory.naive_bayes.array_rows import Alpha, Matrix


class BernoulliModel(array_rows.CountModel):
    """``p(x_j = 1 | c)``, the posterior mean under Beta(alpha, alpha)."""

    def log_probabilities(self) -> tuple[Array, Array]:
        """log p(x_j = 1 | c) and log p(x_j = 0 | c), (classes, columns) each."""
        return self.derive("log p", _log_success_and_failure)

    def log_joint(self, cells: Matrix) -> Array:
        """Σ_j x_j log p_j + (1 - x_j) log(1 - p_j), as one matrix product with the log-odds."""
        yes, no = self.log_probabilities()
        never, always = np.isneginf(yes), np.isneginf(no)
        # 0 * -inf is NaN: columns with probability 0 or 1 are left out of the product
        yes, no = (np.where(never | always, 0.0, v) for v in (yes, no))
        binarise = make_binariser(cells, self.parameters.binarize)
        # x log p + (1 - x) log(1 - p) = x (log p - log(1 - p)) + log(1 - p)
        joint = array_rows.score_matrix(cells, yes - no, no.sum(axis=1) + self.log_prior(), binarise)
        if never.any() or always.any():
            # for each row and class, the columns that contradict a probability of 0 or 1
            contradictions = array_rows.score_matrix(cells, never * 1.0 - always * 1.0, always.sum(axis=1), binarise)
            joint[contradictions > 0] = -np.inf
        return joint


class BernoulliRows(array_rows.CountRows):
    """Rows in which every column is present or absent."""

    estimator = "BernoulliNB"
    records = (BernoulliStatistics,)
    model_class = BernoulliModel

    def check(self) -> None:
        binarize = self.parameters.binarize
        if binarize is not None and not 0 <= binarize < np.inf:
            raise DataError(f"binarize is {binarize!r}; use a threshold from 0, or None for cells of 0 and 1.")

    def join(self, other: Self) -> Self:
        mine, theirs = self.parameters.binarize, other.parameters.binarize
        if mine != theirs:
            difference = describe_difference("binarize", mine, theirs)
            raise DataError(f"the models differ: {difference}; merge models of one threshold.")
        return super().join(other)

    def count_records(self, cells: Matrix, n: Array, group: Array, weight: Array | None) -> tuple[BernoulliStatistics]:
        binarise = make_binariser(cells, self.parameters.binarize)
        successes = array_rows.sum_columns(cells, group, weight, len(n), binarise)
        # n (classes, 1) holds for all columns: the drop-in allows no missing cells
        return (BernoulliStatistics(n[:, None], successes, np.zeros((len(n), 1))),)


@register_estimator(find_fault=find_classifier_fault)
@dataclass(eq=False, repr=False, kw_only=True)
class BernoulliNB(array_rows.CountNB):
    """Naive Bayes for binary columns: ``p(x_j = 1 | c) = (count + alpha) / (rows + 2 alpha)``.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,)
        The number of virtual rows in which a column is present, and of as many in which it is absent.
    force_alpha : bool
        Whether an ``alpha`` below 1e-10 is used as it is; if not, it is raised to 1e-10 with a warning.
    binarize : float or None
        Cells above this threshold are present. With None the cells must be 0 or 1.
    fit_prior : bool
        Whether the class prior is estimated from the rows; if not, it is uniform.
    class_prior : array-like of shape (n_classes,), optional
        The probability of each class, in the order of ``classes_``; nothing is then estimated.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    class_count_ : ndarray of shape (n_classes,)
        The weight of the rows learned of each class.
    class_log_prior_ : ndarray of shape (n_classes,)
        The logarithm of the probability of each class.
    feature_count_ : ndarray of shape (n_classes, n_columns)
        The weight of the rows of each class in which each column was present.
    feature_log_prob_ : ndarray of shape (n_classes, n_columns)
        The logarithm of p(x_j = 1 | c).
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of shape (n_columns,)
        The names of the columns, if ``fit`` was given a table with names.
    statistics_ : ModelStatistics
        Everything that was learned; all other attributes are computed from it.
    clock_ : float
        The product of all factors given to ``decay``; 1.0 if there were none.

    References
    ----------
    A. McCallum and K. Nigam (1998). A comparison of event models for naive Bayes text classification. AAAI-98 Workshop
    on Learning for Text Categorization.

    Examples
    --------
    >>> model = BernoulliNB().fit([[1, 1], [1, 0], [0, 0]], ["spam", "spam", "ham"])
    >>> np.exp(model.feature_log_prob_[1]).tolist()  # spam: (2 + 1) / (2 + 2), (1 + 1) / (2 + 2)
    [0.75, 0.5]
    """

    _rows_class = BernoulliRows

    binarize: float | None = 0.0

    @property
    def feature_count_(self) -> Array:
        """The weight of the rows of each class in which each column was present."""
        return np.asarray(self.statistics_.parts[0].successes)

    @property
    @optional_attribute
    def feature_log_prob_(self) -> Array:
        """log p(x_j = 1 | c)."""
        return np.asarray(self._learned().model().log_probabilities()[0])


def make_binariser(x: Matrix, threshold: float | None) -> array_rows.BlockTransform:
    """Make a function that converts a block of ``x`` to 0 and 1."""

    def binarise(block: Array) -> Array:
        if not array_rows.is_finite(block):
            array_rows.raise_not_finite(x)
        if threshold is not None:
            return np.asarray(block > threshold)
        if not ((block == 0) | (block == 1)).all():
            row, column, value = array_rows.find_first_cell(x, lambda v: (v != 0) & (v != 1)) or (0, 0, 0.0)
            raise DataError(f"row {row}, column {column} holds {value:g}, not 0 or 1; set binarize to a threshold.")
        return block

    return binarise


def _log_success_and_failure(records: tuple[BernoulliStatistics], alpha: Alpha) -> tuple[Array, Array]:
    """log p and log(1 - p), where p is the posterior mean under Beta(alpha, alpha), or 1/2 without data and prior."""
    belief = Bernoulli(alpha, alpha) + records[0]
    yes, no = np.asarray(belief.a), np.asarray(belief.b)
    # without rows and with alpha=0 both counts are 0
    nothing = yes + no == 0
    total = np.where(nothing, 2.0, yes + no)
    return log(np.where(nothing, 1.0, yes) / total), log(np.where(nothing, 1.0, no) / total)
