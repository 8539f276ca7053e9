"""Base classes of classifiers of counts: additive smoothing, the class prior, scores by matrix products."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import Tags

from priory.core.input_guard import MAX_SAMPLE_WEIGHT
from priory.core.logspace import log
from priory.core.sharding import score_shards
from priory.core.typing import Array
from priory.errors import DataError
from priory.estimators.learned_classifier import LearnedClassifier
from priory.learning.row_kind import Parameters
from priory.model.model_statistics import ModelStatistics
from priory.naive_bayes.array_rows import ArrayBatch, ArrayModel, ArrayRows, Matrix, transform_sparse

CountsResultT = TypeVar("CountsResultT")
Alpha = float | Array  # one number, or one for each column

MIN_ALPHA = 1e-10
MAX_MULTIPLICATIONS_AT_ONCE = 1 << 18
MAX_COUNT_IN_PRODUCT = 1e290  # beyond it a sum over the columns would overflow; the decision is the same


class CountModel(ArrayModel):
    """Additive smoothing: ``alpha`` virtual examples of each value are added when a probability is computed."""

    def derive(self, name: str, function: Callable[[Any, Alpha], CountsResultT], *depends_on: object) -> CountsResultT:
        """Compute ``function(records, alpha)``, cached for these statistics, this alpha and ``depends_on``."""
        alpha = compute_alpha(self.parameters, self.rows.n_columns)
        return self.statistics.derive(
            name, lambda statistics: function(statistics.parts, alpha), np.asarray(alpha).tobytes(), *depends_on
        )


class CountRows(ArrayRows):
    """Rows whose cells are counted."""

    def count(self, batch: ArrayBatch, classes: Array, group: Array, weight: Array | None) -> ModelStatistics:
        check_alpha(self.parameters, self.n_columns)
        return super().count(batch, classes, group, weight)

    def find_fault(self, statistics: ModelStatistics) -> str | None:
        compute_alpha(self.parameters, self.n_columns)
        return super().find_fault(statistics)


class CountNB(LearnedClassifier):
    """Attributes common to classifiers of counts."""

    __slots__ = ()

    @property
    def class_log_prior_(self) -> Array:
        """log p(c)."""
        return np.asarray(self._learned().model().log_prior())

    @property
    def n_features_in_(self) -> int:
        """The number of columns."""
        return int(vars(self).get("n_features_in_", 0)) or super().n_features_in_

    @n_features_in_.setter
    def n_features_in_(self, n_columns: int) -> None:
        self.__dict__["n_features_in_"] = n_columns  # scikit-learn's tests declare it before they call _check_alpha

    def _check_alpha(self) -> Alpha:
        """Return the pseudo-counts in use, under the name that scikit-learn's classifiers have for it."""
        return check_alpha(Parameters(**self.get_params(deep=False)), getattr(self, "n_features_in_", 0))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = True
        return tags


def compute_alpha(parameters: Parameters, n_columns: int) -> Alpha:
    """Check and return the pseudo-count: one number, or one for each column."""
    declared = parameters.alpha
    alpha = float(declared) if isinstance(declared, Real) else np.asarray(declared, dtype=float)
    if np.ndim(alpha) and np.shape(alpha) != (n_columns,):
        found = f"Got {np.size(alpha)} elements instead of {n_columns}."
        raise DataError(f"When alpha is an array, it should contains `n_features`. {found}")
    if not (np.min(alpha) >= 0 and np.max(alpha) <= MAX_SAMPLE_WEIGHT):
        least = "All values in alpha must be greater than 0, or 0"
        raise DataError(f"{least}, and at most {MAX_SAMPLE_WEIGHT:g}; alpha is {declared}.")
    return alpha if parameters.force_alpha else np.maximum(alpha, MIN_ALPHA)


def check_alpha(parameters: Parameters, n_columns: int) -> Alpha:
    """Return the pseudo-counts in use; warn if they were raised to a positive number."""
    alpha = compute_alpha(parameters, n_columns)
    if not parameters.force_alpha and np.min(parameters.alpha) < MIN_ALPHA:
        raised = f"setting alpha = {MIN_ALPHA:.1e}. Use `force_alpha=True` to keep alpha unchanged."
        warnings.warn(f"alpha too small will result in numeric errors, {raised}", stacklevel=3)
    return alpha


def log_shares(smoothed: Array) -> Array:
    """Log share of each value in its class, along the last axis; equal shares where all are 0, the limit of alpha to 0.

    >>> np.exp(log_shares(np.array([[3.0, 1.0], [0.0, 0.0]]))).round(4).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    total = smoothed.sum(axis=-1, keepdims=True)
    return np.where(
        total > 0, log(smoothed) - np.log(np.where(total > 0, total, 1.0)), -np.log(max(smoothed.shape[-1], 1))
    )


def score_matrix(x: Matrix, table: Array, constant: Array, transform: Callable[[Array], Array]) -> Array:
    """``transform(x) @ table.T + constant``, where 0 * -inf = 0, shard by shard: (rows, classes)."""
    if not isinstance(x, np.ndarray):
        return _multiply(transform_sparse(x, transform), table) + constant
    # pieces so small that BLAS multiplies them on one core: the shards already use all cores
    step = max(64, MAX_MULTIPLICATIONS_AT_ONCE // table.size)

    def score(part: slice) -> Array:
        block = np.asarray(transform(x[part]), dtype=float)
        pieces = [_multiply(block[i : i + step], table) + constant for i in range(0, max(len(block), 1), step)]
        return np.concatenate(pieces)

    return score_shards(score, len(x), len(table))


def _multiply(x: Matrix, table: Array) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        # (rows, columns) @ (columns, classes); 0 * -inf would be NaN
        product = np.asarray(x @ table.T)
    return product if np.isfinite(product).all() else _multiply_with_infinities(x, table)


def _multiply_with_infinities(x: Matrix, table: Array) -> Array:
    """``x @ table.T`` where ``table`` (classes, columns) holds -inf, or large counts overflow."""
    impossible = np.isneginf(table)
    bounded = np.minimum(x, MAX_COUNT_IN_PRODUCT) if isinstance(x, np.ndarray) else x.minimum(MAX_COUNT_IN_PRODUCT)
    product = np.asarray(bounded @ np.where(impossible, 0.0, table).T)
    # (rows, classes): whether a row has any token that a class rules out
    return np.where((x != 0) @ impossible.T.astype(float) > 0, -np.inf, product)
