"""Naive Bayes of discrete values: Bernoulli and categorical, with additive smoothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike
from sklearn.utils import Tags

from priory.core.column_kernels import count_codes
from priory.core.estimator_methods import optional_attribute
from priory.core.input_guard import describe_difference
from priory.core.logspace import log
from priory.core.sharding import map_shards
from priory.core.statistics import register_estimator
from priory.core.value_counts import ValueCounts, score_by_lookup
from priory.errors import DataError
from priory.estimators.learned_classifier import find_classifier_fault
from priory.families.bernoulli import Bernoulli, BernoulliStatistics
from priory.learning.row_kind import Parameters
from priory.model.model_statistics import ModelStatistics
from priory.naive_bayes import array_rows
from priory.naive_bayes.array_rows import Matrix
from priory.naive_bayes.counts import (
    Alpha,
    CountModel,
    CountNB,
    CountRows,
    compute_alpha,
    log_shares,
    score_matrix,
)


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
