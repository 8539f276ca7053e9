"""The common part of the classifiers of counts: additive smoothing, the class prior, scores by matrix products."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags

from priory.core.logspace import log
from priory.core.sample_weight import MAX_SAMPLE_WEIGHT
from priory.core.sharding import score_shards
from priory.core.statistics import Statistics
from priory.core.typing import Array
from priory.errors import DataError
from priory.estimators.base import BaseClassifier
from priory.models.class_prior import check_class_probabilities
from priory.models.model_statistics import ModelStatistics
from priory.naive_bayes.input_checks import Matrix, MatrixT, count_classes, log_declared_prior, transform_sparse

CountsResultT = TypeVar("CountsResultT")
Alpha = float | Array  # one number, or one for each column

MIN_ALPHA = 1e-10
MAX_MULTIPLICATIONS_AT_ONCE = 1 << 18
MAX_COUNT_IN_PRODUCT = 1e290  # beyond it a sum over the columns would overflow; the decision is the same


class CountNB(BaseClassifier[MatrixT]):
    """Naive Bayes with ``alpha`` virtual examples of each value, which are added when a probability is computed."""

    alpha: float | ArrayLike
    force_alpha: bool
    fit_prior: bool
    class_prior: ArrayLike | None

    @abstractmethod
    def _count_records(self, table: MatrixT, n: Array, group: Array, weight: Array | None) -> tuple[Statistics, ...]:
        """The records of the rows; ``n`` (classes,) is the weight of the rows of each class."""

    def _observe(self, table: MatrixT, classes: Array, group: Array, weight: Array | None) -> ModelStatistics:
        self._check_alpha()
        n = count_classes(group, weight, classes)
        if self.class_prior is not None:
            check_class_probabilities(self.class_prior, len(n))
        return ModelStatistics(classes, n, self._count_records(table, n, group, weight))

    def _check_parameters(self) -> None:
        """Raise for parameters that do not fit the columns that were learned."""
        if hasattr(self, "n_features_in_"):
            self._effective_alpha()

    def _check_alpha(self) -> Alpha:
        """The alpha that is used; an error for one that cannot be, a warning for one that is raised to 1e-10."""
        alpha = self._effective_alpha()
        if not self.force_alpha and np.min(self.alpha) < MIN_ALPHA:
            raised = f"setting alpha = {MIN_ALPHA:.1e}. Use `force_alpha=True` to keep alpha unchanged."
            warnings.warn(f"alpha too small will result in numeric errors, {raised}", stacklevel=2)
        return alpha

    def _effective_alpha(self) -> Alpha:
        """The virtual examples of each value: one number, or one for each column."""
        alpha = float(self.alpha) if isinstance(self.alpha, Real) else np.asarray(self.alpha, dtype=float)
        if np.ndim(alpha) and np.shape(alpha) != (self.n_features_in_,):
            found = f"Got {np.size(alpha)} elements instead of {self.n_features_in_}."
            raise DataError(f"When alpha is an array, it should contains `n_features`. {found}")
        if not (np.min(alpha) >= 0 and np.max(alpha) <= MAX_SAMPLE_WEIGHT):
            least = "All values in alpha must be greater than 0, or 0"
            raise DataError(f"{least}, and at most {MAX_SAMPLE_WEIGHT:g}; alpha is {self.alpha}.")
        return alpha if self.force_alpha else np.maximum(alpha, MIN_ALPHA)

    def _derive(self, name: str, function: Callable[[Any, Alpha], CountsResultT], *depends_on: object) -> CountsResultT:
        """``function(records, alpha)``, computed once for these statistics, this alpha, and ``depends_on``."""
        alpha = self._effective_alpha()
        return self._fitted_statistics().derive(
            name, lambda statistics: function(statistics.parts, alpha), np.asarray(alpha).tobytes(), *depends_on
        )

    def _log_prior(self) -> Array:
        return log_declared_prior(self.statistics_.n, self.class_prior, self.fit_prior)

    @property
    def class_log_prior_(self) -> Array:
        """log p(c)."""
        self._fitted_statistics()
        return self._log_prior()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = True
        return tags


def log_shares(smoothed: Array) -> Array:
    """The logarithm of each value's share of its class; equal shares where all are zero, the limit of alpha to 0.

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
        product = np.asarray(x @ table.T)
    return product if np.isfinite(product).all() else _multiply_with_infinities(x, table)


def _multiply_with_infinities(x: Matrix, table: Array) -> Array:
    """The same product where ``table`` (classes, columns) holds -inf, or counts are so large that it overflows."""
    impossible = np.isneginf(table)
    bounded = np.minimum(x, MAX_COUNT_IN_PRODUCT) if isinstance(x, np.ndarray) else x.minimum(MAX_COUNT_IN_PRODUCT)
    product = np.asarray(bounded @ np.where(impossible, 0.0, table).T)
    return np.where((x != 0) @ impossible.T.astype(float) > 0, -np.inf, product)
