"""Classifiers that correct themselves by their own answers to rows they have not learned.

Statistics are exact whatever happens. Corrections were fitted to rows, so they change with the statistics:

    fit, refresh    corrections are fitted
    partial_fit     the tempering learns from the answers to each batch before it is learned; the rest is dropped
    decay           the tempering stays, the rest is dropped
    forget, merge   all corrections are dropped: the model answers from the statistics alone
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import BaseCrossValidator, LeaveOneGroupOut, TimeSeriesSplit, check_cv
from sklearn.utils.validation import check_is_fitted

from priory.calibration.calibrator import (
    CALIBRATION_FOLDS,
    MIN_ROWS_TO_CALIBRATE,
    CalibratableModel,
    CalibratedModel,
    Calibrator,
)
from priory.calibration.stacking import Corrections
from priory.core.display_table import join_words
from priory.core.logspace import log_normalise
from priory.core.sample_weight import check_sample_weight
from priory.core.typing import Array
from priory.errors import DataError, StaleModelError
from priory.estimators.base import BaseClassifier, TableT, check_row_counts, undo_on_error
from priory.estimators.labels import convert_to_numpy, encode_labels
from priory.evaluation.scores import Scores
from priory.models.cells import Cells, take_rows
from priory.models.model_statistics import ModelStatistics

Folds: TypeAlias = "str | int | BaseCrossValidator"  # "loo", a number, or one of scikit-learn's splitters


class SelfCalibratingClassifier(BaseClassifier[TableT]):
    """A classifier with corrections: ``corrections_`` if they were fitted; ``stale_`` names those that were dropped."""

    calibrate: Literal["loo", False]
    corrections_: Corrections
    target_: str  # the column of the labels, where the model was trained from files
    missing_: tuple[str, ...]  # the cells that counted as missing in these files

    # -- what a classifier provides ------------------------------------------------------------------------------

    @abstractmethod
    def _model(self, statistics: ModelStatistics | None = None) -> CalibratableModel:
        """The declared model with these statistics; by default with what was learned."""

    @abstractmethod
    def _read_cells(self, table: TableT) -> list[Cells]:
        """A table as blocks of cells."""

    @abstractmethod
    def _calibrator(self) -> Calibrator:
        """How corrections are fitted, as declared."""

    def _log_joint(self, table: TableT) -> Array:
        return self._model().log_joint(self._read_cells(table))

    def _log_prior(self) -> Array:
        return self._model().log_prior()

    # -- learning ------------------------------------------------------------------------------------------------

    @property
    def stale_(self) -> tuple[str, ...]:
        """The corrections that were dropped because the model has changed since; ``refresh`` fits them again."""
        names: tuple[str, ...] = self.__dict__.get("stale_", ())
        return names

    @property
    def _corrections(self) -> Corrections | None:
        return self.__dict__.get("corrections_")

    def _finish_fit(self, table: TableT, group: Array, weight: Array | None) -> None:
        self.__dict__.pop("corrections_", None)
        self.__dict__.pop("stale_", None)
        if self.calibrate not in ("loo", False):
            raise DataError(f"calibrate is {self.calibrate!r}; use 'loo' or False.")
        if self.calibrate:
            corrections = self._calibrator().fit(self._model(), self._read_cells(table), group, weight)
            if corrections is not None:
                self.corrections_ = corrections

    def _prepare_partial_fit(self, table: TableT, labels: Array, group: Array, weight: Array | None) -> None:
        """Predict, then learn: the tempering learns from the answers to the new batch."""
        corrections = self._corrections
        self._keep_tempering()
        known = np.isin(labels, self.classes_)[group] & (weight is None or weight > 0)
        used = np.flatnonzero(known)
        if not self.calibrate or not len(used) or self.statistics_.n.sum() < MIN_ROWS_TO_CALIBRATE:
            return
        own = np.searchsorted(self.classes_, labels[group[used]])
        cells = take_rows(self._read_cells(table), used)
        counts = None if weight is None else weight[used]
        self.corrections_ = self._calibrator().update(self._model(), corrections, cells, own, counts)

    def _keep_tempering(self) -> None:
        """Drop all corrections but the tempering: its weights of the parts do not depend on classes, words or codes."""
        corrections = self._corrections
        self._drop_corrections()
        if corrections is not None:
            self.corrections_ = Corrections(corrections.tempering)
            self.__dict__["stale_"] = tuple(name for name in self.stale_ if name != "tempering")

    @undo_on_error
    def decay(self, factor: float) -> Self:
        """Multiply the weight of everything learned so far by ``factor``: old rows fade.

        Of the corrections the tempering stays. The others depend on which words are frequent, and are dropped.
        """
        super().decay(factor)
        self._keep_tempering()
        return self

    @undo_on_error
    def forget(
        self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None = None, learned_at: float | None = None
    ) -> Self:
        """Unlearn rows that were learned: the model is as if it had never seen them.

        Corrections may have seen them, so they are dropped, and the model answers from its statistics; ``refresh`` with
        rows that are still learned fits them again. After ``decay`` a row weighs less than when it was learned: pass
        ``learned_at``, the value of ``clock_`` at that time.
        """
        super().forget(X, y, sample_weight, learned_at)
        self._drop_corrections()
        return self

    def merge(self, *others: Self) -> Self:
        """A new model with the statistics of all models added up; ``refresh`` fits its corrections."""
        merged = super().merge(*others)
        merged._drop_corrections()
        return merged

    def _drop_corrections(self) -> None:
        dropped = self.__dict__.pop("corrections_", None)
        if dropped is not None:
            self.__dict__["stale_"] = tuple(dict.fromkeys((*self.stale_, *dropped.names)))

    @undo_on_error
    def refresh(self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the corrections again, to rows that the model has learned (all of them, or a fair sample)."""
        table, group, weight = self._read_learned_rows(X, y, sample_weight)
        if self.clock_ != 1.0:
            raise StaleModelError(
                f"the model has decayed (clock_ is {self.clock_:g}), so no row counts fully any more; fit it again."
            )
        self._finish_fit(table, group, weight)
        return self

    def _read_learned_rows(
        self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[TableT, Array, Array | None]:
        check_is_fitted(self, "statistics_")
        table = self._read(X, reset=False)
        group = encode_labels(y, self.classes_)[1]
        check_row_counts(table, group)
        return table, group, check_sample_weight(convert_to_numpy(sample_weight), len(group))

    # -- answering -----------------------------------------------------------------------------------------------

    def _predict_posterior(self, X: object, normaliser: Callable[[Array, Array], Array] = log_normalise) -> Array:
        if self._corrections is None:
            return super()._predict_posterior(X, normaliser)
        answers = self._calibrated().log_probabilities(self._read_cells(self._read(X, reset=False)))
        return normaliser(answers, self._log_prior())

    def _name_corrections(self) -> tuple[str, ...]:
        """The corrections that the answers have; naive Bayes alone has none."""
        return () if self._corrections is None else self._corrections.names

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        corrections = join_words(self._name_corrections())
        return super().__repr__(N_CHAR_MAX) + (f" corrected by {corrections}" if corrections else "")

    def _calibrated(self) -> CalibratedModel:
        return CalibratedModel(self._model(), self._corrections)

    def _has_fitting_corrections(self, columns: Sequence[int]) -> bool:
        """Whether the corrections, if there are any, are for this model; ``columns`` are those of each block."""
        corrections, model = self._corrections, self._model()
        if corrections is None:
            return True
        n_tokens = model.count_token_features() if any(member.features for member in corrections.members) else 0
        return corrections.fits_model(len(model.classes), model.n_parts, columns, n_tokens)

    # -- judging -------------------------------------------------------------------------------------------------

    def evaluate(
        self,
        X: object = None,
        y: ArrayLike | None = None,
        folds: Folds = "loo",
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ) -> Scores:
        """Scores of the model's probabilities on rows judged as if it had not learned them. No refit.

        Parameters
        ----------
        X, y : rows that the model has learned, and their labels, optional
            Without them: the scores that ``fit`` found.
        folds : "loo", int or a scikit-learn splitter
            Leave-one-out, or cross-validation.
        groups : array-like, optional
            Rows of one group are left out together.
        time : array-like, optional
            Rows are judged by a model of earlier rows only.

        Returns
        -------
        Scores
        """
        if X is None:
            kept = None if self._corrections is None else self._corrections.out_of_fold
            if kept is None:
                raise StaleModelError("the model keeps no scores; call evaluate(X, y) with rows it has learned.")
            return Scores.of(self.classes_[kept.truth], kept.answers, self.classes_, kept.weight, logs=True)
        table, group, _ = self._read_learned_rows(X, y, None)
        if isinstance(folds, str) and groups is None and time is None:
            if folds != "loo":
                raise DataError(f"folds is {folds!r}; use 'loo', a number or a scikit-learn splitter.")
            twin = copy.copy(self)
            twin._finish_fit(table, group, None)
            if twin._corrections is not None:
                return replace(twin.evaluate(), positions=self._find_scored_rows(table))
            return Scores.of(self.classes_[group], self._predict_left_out(table, group), self.classes_, logs=True)
        return self._cross_validate(self._read_cells(table), group, _split_rows(folds, group, groups, time))

    def find_scored_rows(self, X: object) -> Array:
        """The positions of the rows of ``X`` that ``evaluate`` scores: evenly spaced ones if there are many."""
        check_is_fitted(self, "statistics_")
        return self._find_scored_rows(self._read(X, reset=False))

    def _find_scored_rows(self, table: TableT) -> Array:
        return self._calibrator().find_scored_rows(self._model(), self._read_cells(table))

    def _cross_validate(self, cells: Sequence[Cells], group: Array, splits: Iterator[tuple[Array, Array]]) -> Scores:
        """Each fold judged by the model without it, corrections included."""
        tested, answers = [], []
        for train, test in splits:
            out = np.setdiff1d(np.arange(len(group)), train)
            model = self._model().forget(take_rows(cells, out), group[out], None)
            corrections = None
            if self.calibrate:
                corrections = self._calibrator().fit(model, take_rows(cells, train), group[train], None)
            answers.append(CalibratedModel(model, corrections).log_probabilities(take_rows(cells, test)))
            tested.append(test)
        rows = np.concatenate(tested)
        scores = Scores.of(self.classes_[group[rows]], np.concatenate(answers), self.classes_, logs=True)
        return replace(scores, positions=rows)

    def leave_one_out(self, X: object, y: ArrayLike | None) -> Array:
        """log p(c | x) of every learned row, from the model without that row: ``total - row``, no refit."""
        check_is_fitted(self, "statistics_")
        return self._predict_left_out(self._read(X, reset=False), encode_labels(y, self.classes_)[1])

    def _predict_left_out(self, table: TableT, group: Array) -> Array:
        """log p(c | x) of learned rows, each from the uncorrected model without it."""
        model = self._model()
        return log_normalise(model.leave_one_out(self._read_cells(table), group), model.leave_one_out_prior(group))


def _split_rows(
    folds: Folds, group: Array, groups: ArrayLike | None, time: ArrayLike | None
) -> Iterator[tuple[Array, Array]]:
    """Rows to learn from and rows to judge, for each split."""
    if time is not None:
        order = np.argsort(np.asarray(time), kind="stable")
        splitter = TimeSeriesSplit(CALIBRATION_FOLDS if isinstance(folds, str) else folds)
        return ((order[train], order[test]) for train, test in splitter.split(group))
    if isinstance(folds, str):
        return LeaveOneGroupOut().split(group, group, groups)
    return check_cv(folds, group, classifier=True).split(group[:, None], group, groups)
