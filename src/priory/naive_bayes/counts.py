"""Naive Bayes of counts: multinomial and its complement, and the additive smoothing that discrete values share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike
from sklearn.preprocessing import normalize
from sklearn.utils import Tags

from priory.core.estimator_methods import optional_attribute
from priory.core.input_guard import MAX_SAMPLE_WEIGHT
from priory.core.logspace import log
from priory.core.sharding import score_shards
from priory.core.statistics import Statistics, register_estimator, register_record
from priory.errors import DataError
from priory.estimators.learned_classifier import LearnedClassifier, find_classifier_fault
from priory.learning.row_kind import Parameters
from priory.model.model_statistics import ModelStatistics
from priory.naive_bayes import array_rows
from priory.naive_bayes.array_rows import ArrayBatch, Matrix

CountsResultT = TypeVar("CountsResultT")
Alpha = float | Array  # one number, or one for each column

MIN_ALPHA = 1e-10
MAX_COUNT_IN_PRODUCT = 1e290  # beyond it a sum over the columns would overflow; the decision is the same


class CountModel(array_rows.ArrayModel):
    """Additive smoothing: ``alpha`` virtual examples of each value are added when a probability is computed."""

    def derive(self, name: str, function: Callable[[Any, Alpha], CountsResultT], *depends_on: object) -> CountsResultT:
        """Compute ``function(records, alpha)``, cached for these statistics, this alpha and ``depends_on``."""
        alpha = compute_alpha(self.parameters, self.rows.n_columns)
        return self.statistics.derive(
            name, lambda statistics: function(statistics.parts, alpha), np.asarray(alpha).tobytes(), *depends_on
        )


class CountRows(array_rows.ArrayRows):
    """Rows whose cells are counted."""

    def count(self, batch: ArrayBatch, classes: Array, group: Array, weight: Array | None) -> ModelStatistics:
        check_alpha(self.parameters, self.n_columns)
        return super().count(batch, classes, group, weight)

    def find_fault(self, statistics: ModelStatistics) -> str | None:
        compute_alpha(self.parameters, self.n_columns)
        return super().find_fault(statistics)


@dataclass(eq=False, repr=False, kw_only=True)
class CountNB(LearnedClassifier):
    """Parameters and attributes common to classifiers of counts."""

    __slots__ = ()

    alpha: float | ArrayLike = 1.0
    force_alpha: bool = True
    fit_prior: bool = True
    class_prior: ArrayLike | None = None

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
        return _multiply(array_rows.transform_sparse(x, transform), table) + constant

    def score(part: slice) -> Array:
        block = np.asarray(transform(x[part]), dtype=float)
        return array_rows.map_pieces(lambda piece: _multiply(piece, table) + constant, block, table.size)

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


@register_record("Occurrences", axes={"n": "c", "tokens": "cd"})
@dataclass(frozen=True, eq=False)
class Occurrences(Statistics):
    """The weight of the rows of each class, and how often each token (column) occurred in them."""

    count_fields: ClassVar[tuple[str, ...]] = ("n", "tokens")

    n: Array
    tokens: Array


class MultinomialModel(CountModel):
    """Scores rows by ``x @ weights.T``."""

    def weights(self) -> Array:
        """(classes, columns): the weight of one occurrence of each token, log p(token | c)."""
        return self.derive("weights", lambda records, alpha: log_shares(records[0].tokens + alpha))

    def class_term(self) -> Array:
        """(classes,): the constant added to the score of each row."""
        return self.log_prior()

    def log_joint(self, cells: Matrix) -> Array:
        return score_matrix(
            cells, self.weights(), self.class_term(), array_rows.make_count_checker(cells, self.rows.estimator)
        )


class TokenRows(CountRows):
    """Rows of counts."""

    estimator = "MultinomialNB"
    records = (Occurrences,)
    model_class = MultinomialModel

    def count_records(self, cells: Matrix, n: Array, group: Array, weight: Array | None) -> tuple[Occurrences]:
        with np.errstate(over="ignore", invalid="ignore"):
            tokens = array_rows.sum_columns(
                cells, group, weight, len(n), array_rows.make_count_checker(cells, self.estimator)
            )
        if not np.isfinite(tokens).all():
            array_rows.raise_not_finite(cells)
            column = int(np.argwhere(~np.isfinite(tokens))[0, 1])
            raise DataError(f"the counts of column {column} add up to infinity; scale them.")
        return (Occurrences(n, tokens),)


class TokenNB(CountNB):
    """Attributes common to the multinomial and its complement."""

    __slots__ = ()

    @property
    def feature_count_(self) -> Array:
        """How often each token occurred in the rows of each class, weighted."""
        return np.asarray(self.statistics_.parts[0].tokens)

    @optional_attribute
    def feature_log_prob_(self) -> Array:
        """The weight of one occurrence of each token for each class."""
        return np.asarray(self._learned().model().weights())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


@register_estimator(find_fault=find_classifier_fault)
class MultinomialNB(TokenNB):
    """Naive Bayes for counts: ``p(token | c) = (occurrences + alpha) / (all occurrences + alpha * tokens)``.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,)
        The number of virtual occurrences of each token in each class.
    force_alpha : bool
        Whether an ``alpha`` below 1e-10 is used as it is; if not, it is raised to 1e-10 with a warning.
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
        How often each token occurred in the rows of each class, weighted.
    feature_log_prob_ : ndarray of shape (n_classes, n_columns)
        The logarithm of p(token | c).
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
    >>> model = MultinomialNB().fit([[2, 0], [1, 1]], ["spam", "ham"])
    >>> np.exp(model.feature_log_prob_[1]).round(4).tolist()  # spam: (2 + 1) / (2 + 2), (0 + 1) / (2 + 2)
    [0.75, 0.25]
    """

    _rows_class: ClassVar[type[TokenRows]] = TokenRows


class DocumentShareRows(TokenRows):
    """Rows of counts, divided by the total of their document."""

    estimator = "DocumentAverageNB"

    def count_records(self, cells: Matrix, n: Array, group: Array, weight: Array | None) -> tuple[Occurrences]:
        super().count_records(cells, n, group, weight)  # raises if they are not counts
        return super().count_records(normalize(cells, norm="l1"), n, group, weight)


@register_estimator(find_fault=find_classifier_fault)
class DocumentAverageNB(MultinomialNB):
    """Multinomial naive Bayes in which every document counts the same, however long it is.

    ``p(token | c)`` is the mean, over the documents of the class, of the token's share of the document. `MultinomialNB`
    gives every occurrence the same weight instead, so that long documents count more.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,)
        The number of virtual documents of each token alone, in each class.
    force_alpha : bool
        Whether an ``alpha`` below 1e-10 is used as it is; if not, it is raised to 1e-10 with a warning.
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
        The sum of each token's shares of the rows of each class, weighted.
    feature_log_prob_ : ndarray of shape (n_classes, n_columns)
        The logarithm of p(token | c).
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
    >>> documents = [[2, 1, 0], [8, 0, 0], [0, 3, 1]]
    >>> for model in (MultinomialNB(alpha=0), DocumentAverageNB(alpha=0)):
    ...     np.exp(model.fit(documents, ["c", "c", "c"]).feature_log_prob_[0]).round(4).tolist()
    [0.6667, 0.2667, 0.0667]
    [0.5556, 0.3611, 0.0833]
    """

    _rows_class = DocumentShareRows


class ComplementModel(MultinomialModel):
    """Weighs a token by minus the logarithm of its share of the occurrences in the other classes."""

    def weights(self) -> Array:
        return self.derive("weights", self._compute_weights, self.parameters.norm)

    def _compute_weights(self, records: tuple[Occurrences], alpha: Alpha) -> Array:
        tokens = records[0].tokens  # (classes, columns)
        # weights must be finite: without smoothing a token that never occurred gets the smallest positive float
        others = np.maximum(tokens.sum(axis=0) - tokens + alpha, np.finfo(float).tiny)
        logged = log_shares(others)
        if not self.parameters.norm:
            return -logged
        # logarithms and their sum are both negative, so the normalised weights are positive
        total = logged.sum(axis=1, keepdims=True)
        return np.where(total != 0, logged / np.where(total != 0, total, 1.0), 0.0)

    def class_term(self) -> Array:
        # as in scikit-learn, the prior counts only if there is a single class
        return self.log_prior() if len(self.statistics.n) == 1 else np.zeros(len(self.statistics.n))


class ComplementRows(TokenRows):
    """Rows of counts, for the complement."""

    estimator = "ComplementNB"
    model_class = ComplementModel


@register_estimator(find_fault=find_classifier_fault)
@dataclass(eq=False, repr=False, kw_only=True)
class ComplementNB(TokenNB):
    """Complement naive Bayes for counts: a class is scored by how badly a row fits all *other* classes.

    The weight of a token is minus the logarithm of its share of the occurrences in the other classes.

    Parameters
    ----------
    alpha : float or array-like of shape (n_features,)
        The number of virtual occurrences of each token outside of each class.
    force_alpha : bool
        Whether an ``alpha`` below 1e-10 is used as it is; if not, it is raised to 1e-10 with a warning.
    fit_prior : bool
        Whether the class prior is estimated from the rows; used only if there is a single class.
    class_prior : array-like of shape (n_classes,), optional
        The probability of each class; used only if there is a single class.
    norm : bool
        Whether the weights of a class are divided by their sum.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    class_count_ : ndarray of shape (n_classes,)
        The weight of the rows learned of each class.
    class_log_prior_ : ndarray of shape (n_classes,)
        The logarithm of the probability of each class.
    feature_count_ : ndarray of shape (n_classes, n_columns)
        How often each token occurred in the rows of each class, weighted.
    feature_all_ : ndarray of shape (n_columns,)
        How often each token occurred in all classes together.
    feature_log_prob_ : ndarray of shape (n_classes, n_columns)
        The weight of one occurrence of each token for each class.
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
    J. D. Rennie, L. Shih, J. Teevan and D. R. Karger (2003). Tackling the poor assumptions of naive Bayes text
    classifiers. ICML.

    Examples
    --------
    >>> model = ComplementNB().fit([[2, 0], [1, 1]], ["spam", "ham"])
    >>> np.exp(-model.feature_log_prob_[1]).round(4).tolist()  # all but spam: (1 + 1) / (2 + 2), (1 + 1) / (2 + 2)
    [0.5, 0.5]
    """

    _rows_class = ComplementRows

    norm: bool = False

    @property
    def feature_all_(self) -> Array:
        """How often each token occurred in all classes together."""
        return np.asarray(self.feature_count_.sum(axis=0))
