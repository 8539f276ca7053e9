"""Honest probabilities: a classifier that corrects itself by what it says of rows it has not learned.

``fit`` learns, then asks the record without each row (``total - row``) what it says of that row, and fits `corrections`
to the answers. Statistics are exact whatever happens; corrections have seen rows, so they live and die with them:

    fit, refresh    corrections are fitted
    partial_fit     the tempering learns from what was said before each batch was learned; the rest is stale
    forget, merge   all corrections are dropped: the model answers from the statistics alone
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np
from sklearn.model_selection import LeaveOneGroupOut, TimeSeriesSplit, check_cv
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from priory.bag_of_words.documents import PackedDocuments
from priory.calibration import stacking as correcting
from priory.calibration.feature_encoding import TableEncoding
from priory.calibration.stacking import CorrectionRows, Corrections, MemberSpec
from priory.calibration.tempering import EvidenceTerms, Tempering
from priory.core.logspace import log_normalise
from priory.core.sample_weight import check_sample_weight
from priory.core.typing import Array
from priory.errors import DataError, StaleModelError
from priory.estimators.base import BaseClassifier, convert_to_numpy, encode_labels, undo_on_error
from priory.evaluation.scores import Scores
from priory.models.leave_one_out import assign_folds_by_content
from priory.models.naive_bayes import log_class_prior

CALIBRATION_FOLDS = 5
MIN_ROWS_TO_CALIBRATE = 50  # rows: fewer say nothing about themselves
MAX_CLASSES_TO_CALIBRATE = 1000  # of more, too few rows each
MAX_ROWS_FOR_ALL_FOLDS = 10_000  # rows: of more, one fold is enough to choose by
MAX_TERMS_TO_CALIBRATE = 1 << 24  # numbers that the terms of those rows may be
MAX_BATCH_ROWS_TO_TEMPER = 512  # rows of a batch that the tempering learns from
PREDICTION_CHUNK_CELLS = 1 << 20  # answered at a time


class SelfCalibratingClassifier(BaseClassifier):
    """A classifier with corrections. ``corrections_`` are there if they were fitted; ``stale_`` names those dropped."""

    calibrate: Any
    corrections_: Corrections

    # -- what a classifier has to say ----------------------------------------------------------------------------

    @abstractmethod
    def _read_cells(self, table: Any) -> list[Any]:
        """The table as blocks of rows."""

    @abstractmethod
    def _correction_rows(
        self, cells: list[Any], encoding: TableEncoding | None, group: Array | None = None
    ) -> CorrectionRows:
        """Rows as corrections see them; with ``group``, the classes of learned rows, each without itself."""

    @abstractmethod
    def _count_parts(self) -> int:
        """How many parts the evidence has, besides the class prior."""

    @abstractmethod
    def _choose_member_specs(self, n_rows: int, encoding: TableEncoding, n_rows_used: int) -> list[MemberSpec]:
        """The voices to be heard, of a model that has learned so many rows and corrects itself by some of them."""

    @abstractmethod
    def _max_rows_to_calibrate(self) -> int:
        """How many rows corrections are fitted to at most."""

    def _can_leave_one_out(self) -> bool:
        """Whether it is done row by row; rows that weigh a fraction cannot be."""
        return True

    # -- learning ------------------------------------------------------------------------------------------------

    @property
    def stale_(self) -> tuple[str, ...]:
        """The corrections that were dropped because the model has changed since; ``refresh`` fits them again."""
        names: tuple[str, ...] = self.__dict__.get("stale_", ())
        return names

    def _finish_fit(self, table: Any, group: Array, weight: Array | None) -> None:
        self.__dict__.pop("corrections_", None)
        self.__dict__.pop("stale_", None)
        if self.calibrate not in ("loo", False):
            raise DataError(f"calibrate is {self.calibrate!r}; use 'loo' or False.")
        if self.calibrate:
            self._fit_corrections(self._read_cells(table), group, weight)

    def _fit_corrections(self, cells: list[Any], group: Array, weight: Array | None) -> None:
        """Fit the corrections to rows that were learned, evenly spaced if there are many."""
        if len(self.classes_) > MAX_CLASSES_TO_CALIBRATE:
            return
        there = np.arange(len(group)) if weight is None else np.flatnonzero(weight)
        most = min(
            len(there),
            self._max_rows_to_calibrate(),
            MAX_TERMS_TO_CALIBRATE // (len(self.classes_) * (1 + self._count_parts())),
        )
        used = there[np.unique(np.linspace(0, len(there) - 1, most).astype(int))]
        some, own = take_rows(cells, used), group[used]
        fold = assign_folds_by_content(some, len(used), CALIBRATION_FOLDS)
        if len(used) < MIN_ROWS_TO_CALIBRATE or len(np.unique(own)) < 2 or len(np.unique(fold)) < 2:
            return
        encoding = TableEncoding.of(some, own, len(self.classes_))
        kinds = self._choose_member_specs(len(there), encoding, len(used))
        counts = np.ones(len(used)) if weight is None else weight[used]
        whole = self._can_leave_one_out() and bool((counts == np.floor(counts)).all())
        rows = (
            self._correction_rows(some, encoding, own)
            if whole
            else self._correction_rows_by_fold(some, encoding, own, counts, fold)
        )
        if len(used) > MAX_ROWS_FOR_ALL_FOLDS:
            fold = np.where(fold == 0, 0, -1)
        with threadpool_limits(1, "blas"):  # many small problems: threads would only wait for each other
            self.corrections_ = correcting.fit_corrections(rows, own, counts, fold, kinds)

    def _correction_rows_by_fold(
        self, cells: list[Any], encoding: TableEncoding, group: Array, weight: Array, fold: Array
    ) -> CorrectionRows:
        """Where rows are not left out one by one: each fold is judged by the model without it."""
        parts: list[tuple[Array, EvidenceTerms]] = []
        for k in np.unique(fold):
            out = np.flatnonzero(fold == k)
            less = self._copy_without_rows(take_rows(cells, out), group[out], weight[out])
            parts.append((out, less._correction_rows(take_rows(cells, out), encoding).terms))
        order = np.argsort(np.concatenate([out for out, _ in parts]))
        terms = EvidenceTerms(
            np.concatenate([t.values for _, t in parts])[order], np.concatenate([t.lengths for _, t in parts])[order]
        )
        return self._correction_rows(cells, encoding)._replace(terms=terms)

    def _copy_without_rows(self, cells: list[Any], group: Array, weight: Array | None) -> Self:
        """The model, had it not learned these rows: ``total - part``."""
        less = copy.copy(self)
        less.statistics_ = self.statistics_ - self._observe_cells(cells, group, weight)
        less._drop_corrections()
        return less

    @abstractmethod
    def _observe_cells(self, cells: list[Any], group: Array, weight: Array | None) -> Any:
        """The statistics of rows given as blocks."""

    def _prepare_partial_fit(self, table: Any, labels: Array, group: Array, weight: Array | None) -> None:
        """Predict, then learn: what is said of a new batch teaches the tempering."""
        known = np.isin(labels, self.classes_)[group] & (weight is None or weight > 0)
        there = np.flatnonzero(known)
        belief = self.corrections_.tempering if "corrections_" in vars(self) else None
        self._drop_corrections()
        if belief is not None:  # weights of parts outlive what was fitted to classes, columns and words
            self.corrections_ = Corrections(belief)
            self.__dict__["stale_"] = tuple(name for name in self.stale_ if name != "tempering")
        if not self.calibrate or not len(there) or self.statistics_.n.sum() < MIN_ROWS_TO_CALIBRATE:
            return
        used = there[np.unique(np.linspace(0, len(there) - 1, min(len(there), MAX_BATCH_ROWS_TO_TEMPER)).astype(int))]
        terms = self._correction_rows(take_rows(self._read_cells(table), used), None).terms
        own = np.searchsorted(self.classes_, labels[group[used]])
        if belief is None or len(belief.weights) != terms.values.shape[2]:
            belief = Tempering.prior(terms.values.shape[2])
        self.corrections_ = Corrections(
            belief.update_belief(terms, own, np.ones(len(used)) if weight is None else weight[used])
        )

    @undo_on_error
    def forget(self, X: Any, y: Any, sample_weight: Any = None, learned_at: float | None = None) -> Self:
        """Unlearn rows that were learned: the model is as if it had never seen them.

        Corrections may have seen them, so they are dropped, and the model answers from its statistics; ``refresh`` with
        rows that are still learned fits them again. After ``decay`` a row weighs less than when it was learned: say
        ``learned_at``, the ``clock_`` of that moment.
        """
        super().forget(X, y, sample_weight, learned_at)
        self._drop_corrections()
        return self

    def merge(self, *others: Self) -> Self:
        """A new model that has learned what all of them have; its corrections are to be fitted by ``refresh``."""
        merged = super().merge(*others)
        merged._drop_corrections()
        return merged

    def _drop_corrections(self) -> None:
        gone = self.__dict__.pop("corrections_", None)
        if gone is not None:
            self.__dict__["stale_"] = tuple(dict.fromkeys((*self.stale_, *gone.names)))

    @undo_on_error
    def refresh(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the corrections again, to rows that the model has learned (all of them, or a fair sample)."""
        table, group, weight = self._read_learned_rows(X, y, sample_weight)
        if self.clock_ != 1.0:
            raise StaleModelError(
                f"the model has faded (clock_ is {self.clock_:g}): no row is in it whole; fit it anew."
            )
        self._finish_fit(table, group, weight)
        return self

    def _read_learned_rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Array, Array | None]:
        check_is_fitted(self, "statistics_")
        table = self._read(X, reset=False)
        group = encode_labels(y, self.classes_)[1]
        return table, group, check_sample_weight(convert_to_numpy(sample_weight), len(group))

    # -- answering -----------------------------------------------------------------------------------------------

    def _predict_posterior(self, X: Any, normaliser: Callable[[Array, Array], Array] = log_normalise) -> Array:
        if "corrections_" not in vars(self):
            return super()._predict_posterior(X, normaliser)
        return normaliser(self._predict_corrected(self._read_cells(self._read(X, reset=False))), self._log_prior())

    def _predict_corrected(self, cells: list[Any]) -> Array:
        """log p(c | x) after all corrections; a declared class prior takes the place of the one that was seen."""
        found = self.corrections_
        rows, parts = len(cells[0]), len(found.tempering.weights)
        step = max(1, PREDICTION_CHUNK_CELLS // (parts * len(self.classes_)))
        answers = np.empty((rows, len(self.classes_)))
        for start in range(0, rows, step):
            part = slice(start, start + step)
            answers[part] = found.log_probabilities(
                self._correction_rows([block[part] for block in cells], found.encoding)
            )
        return answers + (self._log_prior() - self._estimated_log_prior())

    def _explanation_weights(self, cells: list[Any]) -> tuple[Array, Array, Array]:
        """How far each part is believed (rows, parts), the prior as it counts, and what other corrections add."""
        shift = self._log_prior() - self._estimated_log_prior()
        if "corrections_" not in vars(self):
            size = len(cells[0])
            return np.ones((size, 1 + self._count_parts())), self._log_prior(), np.zeros((size, len(shift)))
        found = self.corrections_
        rows = self._correction_rows(cells, found.encoding)
        scale = found.tempering.part_weights(rows.terms.lengths)
        rest = found.log_probabilities(rows) - np.einsum("ncb,nb->nc", rows.terms.values, scale)
        return scale, self._estimated_log_prior() * scale[0, 0] + shift, rest - rest.mean(axis=1, keepdims=True)

    def _estimated_log_prior(self) -> Array:
        """The class prior that corrections know: what was seen."""
        return log_class_prior(self.statistics_, "estimated")

    # -- judging -------------------------------------------------------------------------------------------------

    def evaluate(
        self, X: Any = None, y: Any = None, folds: Any = "loo", groups: Any = None, time: Any = None
    ) -> Scores:
        """What the model's probabilities are worth, judged on rows as if it had not learned them. No refit.

        Without rows: what ``fit`` found. With rows that were learned: leave-one-out; ``folds``, a number or one of
        scikit-learn's splitters, for cross-validation; ``groups`` to leave out whole; ``time``, to learn from the past.
        """
        if X is None:
            if "corrections_" not in vars(self) or self.corrections_.out_of_fold is None:
                raise StaleModelError(
                    "the model keeps no judgement of itself; say evaluate(X, y) with rows it has learned."
                )
            kept = self.corrections_.out_of_fold
            return Scores.of(self.classes_[kept.truth], kept.answers, self.classes_, kept.weight, logs=True)
        table, group, _ = self._read_learned_rows(X, y, None)
        cells = self._read_cells(table)
        if isinstance(folds, str) and groups is None and time is None:
            if folds != "loo":
                raise DataError(f"folds is {folds!r}; use 'loo', a number or a scikit-learn splitter.")
            twin = copy.copy(self)
            twin._finish_fit(table, group, None)
            if "corrections_" in vars(twin):
                return twin.evaluate()
            return Scores.of(self.classes_[group], self._predict_left_out(table, group), self.classes_, logs=True)
        tested, answers = [], []
        for train, test in _split_rows(folds, group, groups, time):
            out = np.setdiff1d(np.arange(len(group)), train)
            less = self._copy_without_rows(take_rows(cells, out), group[out], None)
            if self.calibrate:
                less._fit_corrections(take_rows(cells, train), group[train], None)
            answers.append(less._predict_cells(take_rows(cells, test)))
            tested.append(test)
        rows = np.concatenate(tested)
        return Scores.of(self.classes_[group[rows]], np.concatenate(answers), self.classes_, logs=True)

    def _predict_cells(self, cells: list[Any]) -> Array:
        if "corrections_" in vars(self):
            return log_normalise(self._predict_corrected(cells), self._log_prior())
        plain = self._correction_rows(cells, None).terms.log_joint + (self._log_prior() - self._estimated_log_prior())
        return log_normalise(plain, self._log_prior())

    @abstractmethod
    def _predict_left_out(self, table: Any, group: Array) -> Array:
        """log p(c | x) of learned rows, each from the plain model without it."""


def _split_rows(folds: Any, group: Array, groups: Any, time: Any) -> Iterator[tuple[Array, Array]]:
    """Rows to learn from and rows to judge, again and again, as scikit-learn deals them."""
    if time is not None:
        order = np.argsort(np.asarray(time), kind="stable")
        splitter = TimeSeriesSplit(CALIBRATION_FOLDS if isinstance(folds, str) else folds)
        return ((order[train], order[test]) for train, test in splitter.split(group))
    if isinstance(folds, str):
        return LeaveOneGroupOut().split(group, group, groups)
    return check_cv(folds, group, classifier=True).split(group[:, None], group, groups)


def take_rows(cells: list[Any], rows: Array) -> list[Any]:
    """Some rows of every block."""
    return [[block[i] for i in rows] if isinstance(block, list | PackedDocuments) else block[rows] for block in cells]
