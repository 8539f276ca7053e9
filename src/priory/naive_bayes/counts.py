"""Naive Bayes of counts: multinomial and its complement, Bernoulli and categorical, with additive smoothing."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike
from sklearn.preprocessing import normalize
from sklearn.utils import Tags

from priory.core.column_kernels import count_codes, score_by_lookup
from priory.core.estimator_methods import optional_attribute
from priory.core.input_guard import MAX_SAMPLE_WEIGHT, describe_difference
from priory.core.logspace import log
from priory.core.sharding import map_shards, score_shards
from priory.core.statistics import Statistics, register_estimator, register_record
from priory.errors import DataError
from priory.estimators.learned_classifier import LearnedClassifier, find_classifier_fault
from priory.families.bernoulli import Bernoulli, BernoulliStatistics
from priory.families.value_counts import ValueCounts
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


class BernoulliModel(CountModel):
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
        joint = score_matrix(cells, yes - no, no.sum(axis=1) + self.log_prior(), binarise)
        if never.any() or always.any():
            # for each row and class, the columns that contradict a probability of 0 or 1
            contradictions = score_matrix(cells, never * 1.0 - always * 1.0, always.sum(axis=1), binarise)
            joint[contradictions > 0] = -np.inf
        return joint


class BernoulliRows(CountRows):
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
class BernoulliNB(CountNB):
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


MAX_CATEGORY_CELLS = 1 << 28  # two gigabytes of counts
MAX_CATEGORIES = 1 << 40
FREE_CATEGORY_CELLS = 1 << 20  # counts that any model file may ask for
MAX_CELLS_PER_COUNT = 64  # more counts that it may ask for, per count stored in it


class CategoricalModel(CountModel):
    """``p(k | c)`` for every category of every column."""

    def count_categories(self) -> Array:
        """The number of categories of each column: as declared, or one more than the largest that occurred."""
        shown = [tally.values[-1] + 1 if len(tally.values) else 0 for tally in self.statistics.parts]
        return np.maximum(shown, check_min_categories(self.parameters, self.rows.n_columns)).astype(np.int64)

    def list_counts(self) -> list[Array]:
        """For each column the weight of each class and category, (classes, categories)."""
        return [
            # adding zeros gives a count to every category from 0 to k - 1
            (tally + ValueCounts(np.arange(k), np.zeros((len(tally.counts), k)))).counts
            for tally, k in zip(self.statistics.parts, self.count_categories(), strict=True)
        ]

    def log_probability_tables(self) -> list[Array]:
        """For each column log p(k | c), (classes, categories + 1); the last is 0: an unseen category is ignored."""

        def compute(records: tuple[ValueCounts, ...], alpha: Alpha) -> list[Array]:
            return [np.pad(log_shares(counts + alpha), ((0, 0), (0, 1))) for counts in self.list_counts()]

        return list(
            self.derive("tables", compute, check_min_categories(self.parameters, self.rows.n_columns).tobytes())
        )

    def log_joint(self, cells: Array) -> Array:
        tables = self.log_probability_tables()
        unseen = np.array([t.shape[1] - 1 for t in tables])
        counted = array_rows.make_count_checker(cells, self.rows.estimator)
        # every row reads one entry of the first table, so the prior can be part of it
        tables[0] = tables[0] + self.log_prior()[:, None]

        def encode_rows(part: slice) -> Array:
            block = counted(cells[part])
            # categories beyond the table read its last entry
            return np.minimum(block, unseen, out=np.empty(block.shape, dtype=np.int32), casting="unsafe")

        return score_by_lookup(encode_rows, len(cells), tables)


class CategoricalRows(CountRows):
    """Rows of numbered categories."""

    estimator = "CategoricalNB"
    model_class = CategoricalModel
    takes_sparse = False

    def check(self) -> None:
        if np.ndim(self.parameters.alpha):
            raise DataError(f"alpha is {self.parameters.alpha!r}; all categories share one alpha: use a number.")

    def convert(self, x: Array) -> Array:
        if x.dtype.kind == "f":
            array_rows.check_finite(x)
            array_rows.warn_of_fractions(x)
        return x

    def count_records(self, cells: Array, n: Array, group: Array, weight: Array | None) -> tuple[ValueCounts, ...]:
        check_min_categories(self.parameters, self.n_columns)
        widths = _count_categories(cells, len(n))
        counts = count_codes(cells, widths, group, weight, len(n))
        return tuple(ValueCounts.of(np.arange(c.shape[1]), c) for c in counts)

    def find_fault(self, statistics: ModelStatistics) -> str | None:
        """Check that categories are whole numbers, and their table not much larger than the file."""
        compute_alpha(self.parameters, self.n_columns)
        parts = statistics.parts
        if not all(isinstance(p, ValueCounts) and p.values.dtype.kind == "i" and (p.values >= 0).all() for p in parts):
            return "a category is not a whole number"
        if len(parts) != self.n_columns:
            return "the records do not match the columns"
        model = CategoricalModel(self, statistics)
        cells = len(statistics.n) * float(model.count_categories().astype(float).sum())
        if cells > FREE_CATEGORY_CELLS + MAX_CELLS_PER_COUNT * sum(p.counts.size for p in parts):
            raise DataError(
                f"CategoricalNB needs {cells:,.0f} counts for categories that hardly occur; "
                "number the categories from 0."
            )
        return None


@register_estimator(find_fault=find_classifier_fault)
@dataclass(eq=False, repr=False, kw_only=True)
class CategoricalNB(CountNB):
    """Naive Bayes for numbered categories: ``p(k | c) = (count + alpha) / (rows + alpha * categories)``.

    A category that no row had gives no evidence for any class.

    Parameters
    ----------
    alpha : float
        The number of virtual rows of each category.
    force_alpha : bool
        Whether an ``alpha`` below 1e-10 is used as it is; if not, it is raised to 1e-10 with a warning.
    fit_prior : bool
        Whether the class prior is estimated from the rows; if not, it is uniform.
    class_prior : array-like of shape (n_classes,), optional
        The probability of each class, in the order of ``classes_``; nothing is then estimated.
    min_categories : int or array-like of shape (n_features,), optional
        The smallest number of categories that a column has, even if fewer occur.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    class_count_ : ndarray of shape (n_classes,)
        The weight of the rows learned of each class.
    class_log_prior_ : ndarray of shape (n_classes,)
        The logarithm of the probability of each class.
    n_categories_ : ndarray of shape (n_columns,)
        The number of categories of each column.
    category_count_ : list of n_columns ndarrays of shape (n_classes, n_categories)
        For each column the weight of the rows of each class in each category.
    feature_log_prob_ : list of n_columns ndarrays of shape (n_classes, n_categories)
        For each column the logarithm of p(category | c).
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
    T. M. Mitchell (1997). Machine Learning, chapter 6. McGraw-Hill.

    Examples
    --------
    >>> model = CategoricalNB().fit([[0], [0], [2]], ["yes", "yes", "no"])
    >>> np.exp(model.feature_log_prob_[0][1]).round(4).tolist()  # yes: (2 + 1) / (2 + 3), then 1 / 5 twice
    [0.6, 0.2, 0.2]
    """

    _rows_class = CategoricalRows

    alpha: float = 1.0
    min_categories: ArrayLike | None = None

    @property
    def n_categories_(self) -> Array:
        """The number of categories of each column: as declared, or one more than the largest that occurred."""
        return np.asarray(self._learned().model().count_categories())

    @property
    def category_count_(self) -> list[Array]:
        """For each column the weight of the rows of each class in each category."""
        return list(self._learned().model().list_counts())

    @optional_attribute
    def feature_log_prob_(self) -> list[Array]:
        """For each column log p(k | c)."""
        return [table[:, :-1] for table in self._learned().model().log_probability_tables()]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.sparse = False
        tags.input_tags.positive_only = True
        return tags


def check_min_categories(parameters: Parameters, n_columns: int) -> Array:
    """Check and return the declared number of categories of each column, (columns,)."""
    declared = np.asarray(0 if parameters.min_categories is None else parameters.min_categories)
    if declared.dtype.kind not in "iu":
        raise DataError(f"'min_categories' should have integral type. Got {declared.dtype} instead.")
    if declared.max(initial=0) > MAX_CATEGORIES:
        raise DataError(f"'min_categories' is {declared.max()}; a column has at most {MAX_CATEGORIES:,} categories.")
    if declared.shape not in ((), (n_columns,)):
        expected = f"({n_columns},) when an array-like is provided. Got {declared.shape} instead."
        raise DataError(f"'min_categories' should have shape {expected}")
    return np.broadcast_to(declared, (n_columns,))


def _count_categories(x: Array, classes: int) -> Array:
    """Count the categories of each column: one more than the largest that occurs."""
    counted = array_rows.make_count_checker(x, CategoricalNB.__name__)
    # (columns,): the maximum over all shards of rows
    largest = np.max(list(map_shards(lambda part: counted(x[part]).max(axis=0), len(x))), axis=0)
    if float(largest.astype(float).sum()) * classes > MAX_CATEGORY_CELLS:
        column = int(largest.argmax())
        remedy = "its counts would not fit in memory: number the categories from 0 (OrdinalEncoder)"
        raise DataError(f"column {column} holds category {largest[column]:.0f}; {remedy}.")
    return largest.astype(np.int64) + 1
