"""Bernoulli naive Bayes: every column is there or not."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from priory.core.logspace import log
from priory.core.model_matching import describe_difference
from priory.core.typing import Array
from priory.errors import DataError
from priory.families.bernoulli import Bernoulli, BernoulliStatistics
from priory.naive_bayes.discrete import CountNB, score_matrix
from priory.naive_bayes.input_checks import find_first_cell, is_finite, raise_not_finite, sum_columns


class BernoulliNB(CountNB):
    """Naive Bayes for columns that are there or not: ``p(x_j | c) = (count + alpha) / (rows + 2 alpha)``.

    Parameters
    ----------
    alpha : float, or one for each column
        Virtual rows with the column, and as many without.
    force_alpha : bool
        Whether an alpha below 1e-10 is taken as it is.
    binarize : float or None
        A cell is there if it is above this; None if the cells are 0 and 1 already.
    fit_prior : bool
        Whether the class prior is estimated; else it is uniform.
    class_prior : one probability for each class, optional

    Examples
    --------
    >>> model = BernoulliNB().fit([[1, 1], [1, 0], [0, 0]], ["spam", "spam", "ham"])
    >>> np.exp(model.feature_log_prob_[1]).tolist()  # spam: (2 + 1) / (2 + 2), (1 + 1) / (2 + 2)
    [0.75, 0.5]
    """

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: Any = None,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _read(self, X: Any, reset: bool) -> Any:
        if self.binarize is not None and not 0 <= self.binarize < np.inf:
            raise DataError(f"binarize is {self.binarize!r}; use a threshold from 0, or None for cells of 0 and 1.")
        return super()._read(X, reset)

    def _check_mergeable(self, other: Self) -> None:
        super()._check_mergeable(other)
        if self.binarize != other.binarize:
            raise DataError(
                f"the models differ: {describe_difference('binarize', self.binarize, other.binarize)}; "
                "merge models of one threshold."
            )

    def _make_binariser(self, x: Any) -> Any:
        """Blocks of ``x`` as yes and no."""

        def there(block: Array) -> Array:
            if not is_finite(block):
                raise_not_finite(x)
            if self.binarize is not None:
                return np.asarray(block > self.binarize)
            if not ((block == 0) | (block == 1)).all():
                row, column, value = find_first_cell(x, lambda v: (v != 0) & (v != 1)) or (0, 0, 0.0)
                raise DataError(f"row {row}, column {column} holds {value:g}, not 0 or 1; set binarize to a threshold.")
            return block

        return there

    def _count_records(self, table: Any, n: Array, group: Array, weight: Array | None) -> tuple[BernoulliStatistics]:
        successes = sum_columns(table, group, weight, len(n), self._make_binariser(table))
        return (BernoulliStatistics(n[:, None], successes, np.zeros((len(n), 1))),)

    @property
    def feature_count_(self) -> Array:
        """The weight of the rows of each class in which each column was there."""
        return np.asarray(self._fitted_statistics().parts[0].successes)

    @property
    def feature_log_prob_(self) -> Array:
        """log p(x_j = 1 | c)."""
        return np.asarray(self._derive("log p", _log_success_and_failure)[0])

    def _log_joint(self, table: Any) -> Array:
        """Σ_j x_j log p_j + (1 - x_j) log(1 - p_j), as one product with the log-odds."""
        yes, no = self._derive("log p", _log_success_and_failure)
        never, always = np.isneginf(yes), np.isneginf(no)
        yes, no = (np.where(never | always, 0.0, v) for v in (yes, no))
        there = self._make_binariser(table)
        joint = score_matrix(table, yes - no, no.sum(axis=1) + self._log_prior(), there)
        if never.any() or always.any():
            contradictions = score_matrix(table, never * 1.0 - always * 1.0, always.sum(axis=1), there)
            joint[contradictions > 0] = -np.inf
        return joint


def _log_success_and_failure(records: tuple[BernoulliStatistics], alpha: Any) -> tuple[Array, Array]:
    """log p and log(1 - p), p the mean under Beta(alpha, alpha); a half where nothing was seen or added."""
    belief = Bernoulli(alpha, alpha) + records[0]
    yes, no = np.asarray(belief.a), np.asarray(belief.b)
    nothing = yes + no == 0
    total = np.where(nothing, 2.0, yes + no)
    return log(np.where(nothing, 1.0, yes) / total), log(np.where(nothing, 1.0, no) / total)
