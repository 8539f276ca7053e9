"""The algebra of the records as a scikit-learn classifier.

    fit           statistics_ = statistics(rows)
    partial_fit   statistics_ = statistics_ + statistics(rows)
    forget        statistics_ = statistics_ - statistics(rows)
    merge         statistics_ = statistics_ + other.statistics_
    decay         statistics_ = factor * statistics_

A classifier defines how to read a table, the statistics of its rows, and log p(c, x); everything else is here, once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from priory.core.atomic_state import copy_state, read_state, replace_state, settle_state
from priory.core.display_table import join_html
from priory.core.logspace import log_normalise, normalise
from priory.core.machine import find_memory_limit
from priory.core.model_matching import check_same_columns, check_same_type
from priory.core.optional_attribute import optional_attribute
from priory.core.sharding import score_shards
from priory.core.statistics import find_members
from priory.core.typing import Array
from priory.errors import DataError, ModelTooLargeError, NotLearnedError, StaleModelError
from priory.estimators.labels import encode_labels, read_weights, sort_labels
from priory.estimators.model_summary import summarise_model
from priory.estimators.scikit_learn import BaseEstimator, ClassifierMixin, check_is_fitted, flatten_labels
from priory.estimators.single_rows import RowStreamMethods
from priory.models.model_statistics import ModelStatistics

DECLARED_ATTRIBUTES = ("target_", "missing_", "notes")  # what a model has besides its parameters and what it learned
ANSWERS_AT_A_TIME = 1 << 23  # rows x classes
TableT = TypeVar("TableT")  # what a classifier reads its input into
Normaliser = Callable[[Array, Array], Array]  # makes log p(c | x) or p(c | x) of log p(c, x) and log p(c)


class BaseClassifier(ClassifierMixin, RowStreamMethods, BaseEstimator, Generic[TableT]):
    """The methods of every Priory classifier. ``statistics_`` is all it has learned.

    A classifier may be used by several threads at once: see `priory.core.atomic_state`.
    """

    @property
    def statistics_(self) -> ModelStatistics:
        """Everything that was learned: it adds, subtracts and scales."""
        settle_state(self)
        if "statistics_" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has learned nothing yet; call fit first.")
        learned: ModelStatistics = vars(self)["statistics_"]
        return learned

    @statistics_.setter
    def statistics_(self, statistics: ModelStatistics) -> None:
        self.__dict__["statistics_"] = statistics

    # -- what a classifier provides -------------------------------------------------------------------------------

    @abstractmethod
    def _read(self, X: object, reset: bool) -> TableT:
        """The input as this classifier reads it; ``reset`` when a model starts anew."""

    @abstractmethod
    def _observe(self, table: TableT, classes: Array, group: Array, weight: Array | None) -> ModelStatistics:
        """The statistics of the rows."""

    @abstractmethod
    def _log_joint(self, table: TableT) -> Array:
        """log p(c, x) for each row and class."""

    @abstractmethod
    def _log_prior(self) -> Array:
        """log p(c): the answer where every class is ruled out."""

    def _read_more(self, X: object, learns: bool) -> TableT:
        """More rows to learn after the first, or rows to forget."""
        return self._read(X, reset=False)

    # -- learning ------------------------------------------------------------------------------------------------

    @replace_state
    def fit(self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from all rows, forgetting whatever was learned before."""
        self.__dict__.pop("clock_", None)
        table = self._read(X, reset=True)
        classes, group = encode_labels(y)
        learned = self._compute_statistics(table, classes, group, sample_weight)
        self._set_statistics(learned.declare_classes(classes) if self._has_declared_class_prior() else learned)
        weight = read_weights(sample_weight, len(group))
        if len(self.classes_) < len(classes):  # rows of weight zero, of classes that have no other rows
            rows = np.flatnonzero(find_members(classes, self.classes_)[group])
            table, group = _take_rows(table, rows), np.searchsorted(self.classes_, classes[group[rows]])
            weight = None if weight is None else weight[rows]
        self._finish_fit(table, group, weight)
        return self

    @replace_state
    def partial_fit(
        self, X: object, y: ArrayLike | None, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from more rows: the result of all calls together is that of one ``fit``."""
        strict, is_first = self._requires_all_classes, not hasattr(self, "statistics_")
        table, labels, group = self._read_labelled_rows(X, y, classes, strict)
        if not is_first:
            weight = read_weights(sample_weight, len(group))
            self._prepare_partial_fit(table, labels, group, weight)
        self._learn_rows(table, labels, group, classes, sample_weight)
        self._finish_partial_fit()
        return self

    def _read_labelled_rows(
        self, X: object, y: ArrayLike | None, classes: ArrayLike | None, strict: bool
    ) -> tuple[TableT, Array, Array]:
        """Rows to learn, all labels, and the number of each row's; ``strict`` if all classes have to be declared."""
        is_first = not hasattr(self, "statistics_")
        if is_first and isinstance(alpha := getattr(self, "alpha", None), str) and alpha == "loo":
            raise DataError("alpha='loo' is chosen by fit, from all rows at once; call fit first, or give a number.")
        table = self._read(X, reset=True) if is_first else self._read_more(X, learns=True)
        if strict or classes is not None:
            known = self._resolve_classes(classes, is_first)
        else:
            known = None if is_first else self.classes_
        labels, group = encode_labels(y) if known is None else encode_labels(y, known, strict)
        return table, labels, group

    def _learn_rows(
        self,
        table: TableT,
        labels: Array,
        group: Array,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        """Learn from more rows; ``classes`` are declared with them."""
        more = self._compute_statistics(table, labels, group, sample_weight)
        total = self.statistics_ + more if hasattr(self, "statistics_") else more
        declared = labels if self._has_declared_class_prior() else classes
        self._replace_statistics(total if declared is None else total.declare_classes(sort_labels(declared)))

    @replace_state
    def _learn_table(self, X: object, y: ArrayLike | None) -> None:
        self._learn_rows(*self._read_labelled_rows(X, y, None, strict=False))

    def _forget_table(self, X: object, y: ArrayLike | None) -> None:
        self.forget(X, y)

    def _has_declared_class_prior(self) -> bool:
        """Whether probabilities of classes are declared, and with them the classes."""
        prior = getattr(self, "class_prior", getattr(self, "priors", None))
        return prior is not None and not isinstance(prior, str)

    def _set_statistics(self, statistics: ModelStatistics) -> None:
        """Keep what was learned: classes leave with their last row; without any class the model is not fitted."""
        left = statistics.drop_absent_classes()
        if len(left.classes):
            self.statistics_ = left
            return
        kept = {*self.get_params(deep=False), *DECLARED_ATTRIBUTES}
        for name in vars(self).keys() - kept:
            del self.__dict__[name]

    def _finish_fit(self, table: TableT, group: Array, weight: Array | None) -> None:
        """Further steps of ``fit``, after the rows are learned."""

    def _finish_partial_fit(self) -> None:
        """Further steps of ``partial_fit``, after the rows are learned."""

    def _prepare_partial_fit(self, table: TableT, labels: Array, group: Array, weight: Array | None) -> None:
        """Further steps of ``partial_fit``, before the rows are learned."""

    def _replace_statistics(self, statistics: ModelStatistics) -> None:
        """Make these the statistics after more rows were learned."""
        self._set_statistics(statistics)

    def _drop_derived(self) -> None:
        """Forget whatever may depend on rows that are no longer in the statistics."""

    _requires_all_classes = True  # whether all classes have to be declared before their first row is learned

    def _resolve_classes(self, classes: ArrayLike | None, is_first_call: bool) -> Array | None:
        """The classes that a batch is counted over."""
        if is_first_call:
            if classes is None:
                raise DataError("classes must be passed on the first call to partial_fit.")
            return sort_labels(classes)
        if classes is not None and not np.array_equal(np.sort(flatten_labels(classes)), self.classes_):
            raise DataError(f"`classes={classes}` is not the same as on last call to partial_fit, was: {self.classes_}")
        return self.classes_

    @replace_state
    def forget(
        self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None = None, learned_at: float | None = None
    ) -> Self:
        """Unlearn rows that were learned: the model is as if it had never seen them.

        After ``decay`` a row weighs less than when it was learned: pass ``learned_at``, the value of ``clock_`` at that
        time.
        """
        check_is_fitted(self)
        table = self._read_more(X, learns=False)
        labels, group = encode_labels(y, self.classes_, strict=False)
        weight = read_weights(sample_weight, len(group))
        used = np.unique(group if weight is None else group[weight > 0])
        unknown = labels[used[~find_members(labels[used], self.classes_)]]
        if len(unknown):
            raise NotLearnedError(
                f"no row of class {unknown.tolist()[0]!r} was ever learned; there is nothing to forget.",
                row=int(np.argmax(labels[group] == unknown[0])),
            )
        if self.clock_ != 1.0 and learned_at is None:
            raise StaleModelError(
                f"the model has decayed (clock_ is {self.clock_:g}); call forget(..., learned_at=<clock_ then>)."
            )
        part = self._compute_statistics(table, labels, group, sample_weight)
        scale = 1.0 if learned_at is None or self.clock_ == 1.0 else self.clock_ / learned_at
        try:
            left = self.statistics_ - (part if scale == 1.0 else scale * part)
        except NotLearnedError as error:
            raise self._locate_unlearned_row(error, table, labels, group, weight, scale) from None
        self._set_statistics(left)
        if hasattr(self, "statistics_"):
            self._drop_derived()
        return self

    def _locate_unlearned_row(
        self,
        error: NotLearnedError,
        table: TableT,
        labels: Array,
        group: Array,
        weight: Array | None,
        scale: float,
    ) -> NotLearnedError:
        """The error for the first row that cannot be forgotten, after the rows before it; found by bisection."""
        n_possible, n_failing = 0, len(group)
        while n_failing - n_possible > 1:
            n_tried = (n_possible + n_failing) // 2
            weights = None if weight is None else weight[:n_tried]
            part = self._compute_statistics(_take_rows(table, np.arange(n_tried)), labels, group[:n_tried], weights)
            try:
                self.statistics_ - scale * part  # only whether it is possible
                n_possible = n_tried
            except NotLearnedError as found:
                n_failing, error = n_tried, found
        row = n_failing - 1
        cell = self._describe_unlearned_cell(table, row, error)
        label = labels.tolist()[group[row]]
        reason = f"{cell} was not learned in class {label!r}, or not this often"
        remedy = "forget only rows that were learned; the model is unchanged."
        located = NotLearnedError(f"row {row}: {reason}; {remedy}", row=row)
        located.column = error.column
        return located

    def _describe_unlearned_cell(self, table: TableT, row: int, error: NotLearnedError) -> str:
        """What of a row was not learned."""
        return error.subject or "it"

    @replace_state
    def decay(self, factor: float) -> Self:
        """Multiply the weight of everything learned so far by ``factor``: old rows fade."""
        check_is_fitted(self)
        if not 0 < factor <= 1:
            raise DataError(f"factor is {factor!r}; it must be greater than 0 and at most 1.")
        if factor != 1:
            self.statistics_ = factor * self.statistics_
            self.__dict__["clock_"] = self.clock_ * factor
        return self

    @property
    def clock_(self) -> float:
        """The product of all decays so far: what a row learned at the start weighs now."""
        return float(self.__dict__.get("clock_", 1.0))

    def merge(self, *others: Self) -> Self:
        """A new model with the statistics of all models added up: as if it had learned all their rows."""
        check_is_fitted(self)
        merged = copy_state(self)
        for given in others:
            check_same_type(self, given)
            other = copy_state(given)
            merged._check_mergeable(other)
            more = merged._align_statistics(other)
            merged._set_statistics(merged.statistics_ + more)
        merged._drop_derived()
        return merged

    def _align_statistics(self, other: Self) -> ModelStatistics:
        """The statistics of another model, as they can be added to those of this one."""
        names = vars(other).get("feature_names_in_")
        if names is not None:
            self.__dict__.setdefault("feature_names_in_", names)
        return other.statistics_

    def __add__(self, other: Self) -> Self:
        return self.merge(other)

    def __radd__(self, other: int) -> Self:
        return self  # the start of sum()

    def _check_mergeable(self, other: Self) -> None:
        """Only models of the same type and columns can be merged."""
        check_same_type(self, other)
        check_is_fitted(other)
        self._check_same_columns(other)
        if self.clock_ != other.clock_:
            raise StaleModelError(f"the models have decayed differently (clock_ {self.clock_:g} and {other.clock_:g}).")

    def _check_same_columns(self, other: Self) -> None:
        check_same_columns(self, other)

    def _compute_statistics(
        self, table: TableT, classes: Array, group: Array, sample_weight: ArrayLike | None
    ) -> ModelStatistics:
        check_memory(len(classes), self.n_features_in_)
        check_row_counts(table, group)
        weight = read_weights(sample_weight, len(group))
        return self._observe(table, classes, group, weight)

    # -- answering -----------------------------------------------------------------------------------------------

    @property
    def classes_(self) -> Array:
        """The labels, sorted."""
        return self._fitted_statistics().classes

    @property
    def class_count_(self) -> Array:
        """The weight of the rows learned of each class."""
        return self._fitted_statistics().n

    @property
    @optional_attribute
    def class_prior_(self) -> Array:
        """P(class): the probability of each class before a row is read."""
        self._fitted_statistics()
        return np.asarray(np.exp(log_normalise(self._log_prior()[None]))[0])

    def _html_repr(self) -> str:
        """What a notebook shows: of a fitted model what it has learned, of others scikit-learn's diagram."""
        if "statistics_" not in vars(self):
            return str(super()._html_repr())
        families = {name: column.family for name, column in getattr(self, "schema_", {}).items()}
        return join_html(summarise_model(repr(self), self.classes_, self.class_count_, self.class_prior_, families))

    def _fitted_statistics(self) -> ModelStatistics:
        return self.statistics_

    @read_state
    def predict_joint_log_proba(self, X: object) -> Array:
        """log p(c, x) for each row and class."""
        return self._convert_output(self._predict_joint(X), X)

    @read_state
    def predict_log_proba(self, X: object) -> Array:
        """log p(c | x) for each row and class; the probabilities of a row sum to one."""
        return self._convert_output(self._predict_posterior(X), X)

    @read_state
    def predict_proba(self, X: object) -> Array:
        """p(c | x) for each row and class."""
        return self._convert_output(self._predict_posterior(X, normalise), X)

    @read_state
    def predict(self, X: object) -> Array:
        """The most probable class of each row."""
        check_is_fitted(self)
        table = self._read(X, reset=False)
        best = np.empty(count_table_rows(table), dtype=np.int64)
        for part, rows in split_table(table, len(self.classes_)):
            best[part] = np.argmax(self._compute_posterior(rows, log_normalise), axis=1)
        return self._convert_output(self.classes_[best], X)

    def _predict_joint(self, X: object) -> Array:
        return self._answer_in_parts(X, self._log_joint)

    def _predict_posterior(self, X: object, normaliser: Normaliser = log_normalise) -> Array:
        return self._answer_in_parts(X, lambda rows: self._compute_posterior(rows, normaliser))

    def _answer_in_parts(self, X: object, answer: Callable[[TableT], Array]) -> Array:
        """(rows, classes): the answers to all rows; besides them, memory is taken for a part of the rows only."""
        check_is_fitted(self)
        table = self._read(X, reset=False)
        shape = count_table_rows(table), len(self.classes_)
        check_answer_memory(*shape)
        parts = split_table(table, shape[1])
        answers = np.empty(shape)
        for part, rows in parts:
            answers[part] = answer(rows)
        return answers

    def _compute_posterior(self, table: TableT, normaliser: Normaliser) -> Array:
        """The answers to some rows, normalised."""
        joint = self._log_joint(table)
        prior = self._log_prior()
        return score_shards(lambda part: normaliser(joint[part], prior), *joint.shape)

    def _convert_output(self, answer: Array, X: object) -> Array:
        """The answer as the type of array that X is; a NumPy array, unless a classifier supports others."""
        return answer


def _take_rows(table: TableT, rows: Array) -> TableT:
    """Some rows of a matrix or a table, by their numbers."""
    taken: TableT = table.take_rows(rows) if hasattr(table, "take_rows") else table[rows]  # type: ignore[index]
    return taken


def split_table(table: TableT, n_classes: int) -> Iterator[tuple[slice, TableT]]:
    """The rows of a matrix or a table in parts of so many that the answers to one part are a small array."""
    n_rows, step = count_table_rows(table), max(1, ANSWERS_AT_A_TIME // max(n_classes, 1))
    if n_rows <= step:
        yield slice(0, n_rows), table
        return
    for start in range(0, n_rows, step):
        rows = np.arange(start, min(start + step, n_rows))
        yield slice(start, start + len(rows)), _take_rows(table, rows)


def count_table_rows(table: object) -> int:
    """The number of rows of a matrix or a table."""
    return int(table.shape[0] if hasattr(table, "shape") else getattr(table, "rows", 0))


def check_row_counts(table: object, group: Array) -> None:
    """Raise an error if there is not one label for each row."""
    rows = count_table_rows(table)
    if len(group) != rows:
        raise DataError(f"Found input variables with inconsistent numbers of samples: X has {rows}, y {len(group)}.")


def check_memory(classes: int, columns: int) -> None:
    """Raise an error if the record, about two dozen numbers for each class and column, would not fit into memory."""
    needed, available = 24 * 8 * classes * columns, find_memory_limit()
    if available is not None and needed > available:
        raise ModelTooLargeError(
            f"{classes:,} classes x {columns:,} columns need about {needed / 2**30:.0f} GiB, and this machine has "
            f"{available / 2**30:.0f}; use fewer classes or columns."
        )


def check_answer_memory(rows: int, classes: int) -> None:
    """Raise an error if the answers, a number for each row and class, would not fit into memory."""
    needed, available = 8 * rows * classes, find_memory_limit()
    if available is not None and needed > available:
        raise ModelTooLargeError(
            f"the answers to {rows:,} rows x {classes:,} classes need about {needed / 2**30:.0f} GiB, and this machine "
            f"has {available / 2**30:.0f}; ask for fewer rows at a time, or for labels with predict."
        )
