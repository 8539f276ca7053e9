"""Classifiers that correct themselves by their own answers to rows they have not learned.

    corrections = f(statistics)

The statistics include a fair sample of the rows (`priory.models.row_sample`), so corrections are a function of the
record, as the choice of families is:

    fit, refresh    corrections are derived from the record
    partial_fit     they stay in use, and their tempering learns from the answers to each batch before it is learned;
                    once the sample has changed by the share ``refresh_after`` they are derived anew
    forget, merge   nothing that has seen a forgotten row is used: they are derived anew when they are needed
    decay           they stay in use

With ``memory=0`` no row is kept. Then corrections are fitted by ``fit`` or by ``refresh`` with rows; ``forget`` and
``merge`` drop them, and ``stale_`` says so.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from priory.bag_of_words.tokenizer import Tokenizer
from priory.calibration.calibrated_model import CalibratableModel, CalibratedModel
from priory.calibration.corrections import Corrections
from priory.core.atomic_state import copy_state, find_guard, read_state, replace_state, settle_state
from priory.core.content_hash import hash_content
from priory.core.display_table import join_words
from priory.core.logspace import log_normalise
from priory.core.name_suggestions import suggest_name
from priory.core.optional_attribute import optional_attribute
from priory.core.statistics import find_members
from priory.core.typing import Array
from priory.errors import DataError, NotAvailableError, StaleModelError
from priory.estimators.base import BaseClassifier, Normaliser, TableT, check_row_counts
from priory.estimators.labels import encode_labels, read_weights, warn_of_similar_labels
from priory.estimators.row_stream import RowStream, StreamCorrections
from priory.estimators.scikit_learn import check_is_fitted
from priory.models.cells import Cells, take_rows
from priory.models.model_statistics import ModelStatistics
from priory.models.open_model import OpenModel
from priory.models.row_sample import RowSample, choose_memory, split_weights

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator

    from priory.calibration.calibrator import Calibrator
    from priory.evaluation.scores import Scores

MAX_JUDGED_ANSWERS = 1 << 25  # rows x classes: `evaluate` judges fewer rows of more classes
MAX_ROWS_FOR_TEN_FOLDS = 1000  # `evaluate` judges by ten folds up to here, and by five beyond

Folds: TypeAlias = "str | int | BaseCrossValidator"  # "auto", a number, or one of scikit-learn's splitters


class SelfCalibratingClassifier(BaseClassifier[TableT]):
    """A classifier with corrections: ``corrections_`` are those in use, ``stale_`` names those that were lost."""

    calibrate: Literal["loo", False]
    memory: int | None
    refresh_after: float
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

    @abstractmethod
    def _column_names(self) -> Sequence[Sequence[str]]:
        """The names of the columns of each block of cells."""

    @abstractmethod
    def _keep_cells(self, cells: Sequence[Cells]) -> list[Cells]:
        """Cells as a sample of rows keeps them: texts as bags of tokens."""

    def _open_model(self) -> OpenModel[Any] | None:
        """The model opened for single rows; None if a row would cost as much as all that was learned."""
        return None

    def _list_tokenizers(self) -> list[Tokenizer]:
        """The tokenizers of the texts among the columns."""
        return []

    def _log_joint(self, table: TableT) -> Array:
        return self._model().log_joint(self._read_cells(table))

    def _log_prior(self) -> Array:
        return self._model().log_prior()

    # -- learning ------------------------------------------------------------------------------------------------

    def _check_calibration_parameters(self) -> None:
        if self.calibrate not in ("loo", False):
            raise DataError(f"calibrate is {self.calibrate!r}; use 'loo' or False.")
        if self.memory is not None and not 0 <= self.memory < 1 << 31:
            raise DataError(f"memory is {self.memory!r}; use a number of rows from 0, or None.")
        if not self.refresh_after > 0:
            raise DataError(f"refresh_after is {self.refresh_after!r}; use a share of the rows above 0.")

    def _memory(self) -> int:
        return choose_memory(self.memory, self._is_refined())

    def _is_refined(self) -> bool:
        """Whether a refinement was asked for."""
        return getattr(self, "refine", False) is True

    def _compute_statistics(
        self, table: TableT, classes: Array, group: Array, sample_weight: ArrayLike | None
    ) -> ModelStatistics:
        self._check_calibration_parameters()
        part = super()._compute_statistics(table, classes, group, sample_weight)
        if part.sample is not None or not self.calibrate or not self._memory():
            return part
        weight = read_weights(sample_weight, len(group))
        return replace(
            part, sample=self._sample_rows(self._read_cells(table), classes, group, weight, self._memory())[0]
        )

    def _sample_rows(
        self, cells: Sequence[Cells], classes: Array, group: Array, weight: Array | None, memory: int
    ) -> tuple[RowSample, Array]:
        """A sample of at most ``memory`` rows, and the position of each of them."""
        return RowSample.of(self._column_names(), cells, classes, group, weight, memory, self._keep_cells)

    def _sample_learned_rows(self, table: TableT, group: Array, weight: Array | None) -> tuple[RowSample, Array]:
        """A sample of rows that the model has learned but does not keep, and the position of each of them."""
        return self._sample_rows(
            self._read_cells(table), self.classes_, group, weight, choose_memory(None, self._is_refined())
        )

    def _finish_fit(self, table: TableT, group: Array, weight: Array | None) -> None:
        self._check_calibration_parameters()
        warn_of_similar_labels(self.classes_, self.class_count_)
        self._check_weighted_classes()
        self._forget_corrections()
        self.__dict__.pop("stale_", None)
        if self.calibrate and self.statistics_.sample is None:  # nothing is kept: all that can be had is had now
            sample, _ = self._sample_learned_rows(table, group, weight)
            self._use_corrections(self._fit_corrections(self.statistics_, sample))
        else:
            self._use_corrections(self._derive_corrections(self.statistics_))

    def _check_weighted_classes(self) -> None:
        """Raise an error if ``class_weight`` names a class that no row has; later rows may bring new ones."""
        weights, classes = getattr(self, "class_weight", None), self.classes_.tolist()
        for label in weights if isinstance(weights, Mapping) else ():
            if label not in classes:
                likely = suggest_name(str(label), map(str, classes))
                raise DataError(f"class_weight names class {label!r}, of which there is no row{likely}.")

    def _derive_corrections(self, statistics: ModelStatistics) -> Corrections | None:
        """The corrections that follow from the record; None if it keeps no rows, or too few."""
        sample = statistics.sample
        if not self.calibrate or sample is None:
            return None
        declared = repr(self.get_params(deep=False))
        return statistics.derive("corrections", lambda record: self._fit_corrections(record, sample), declared)

    def _fit_corrections(self, statistics: ModelStatistics, sample: RowSample) -> Corrections | None:
        return self._calibrator().fit(self._model(statistics), sample.blocks, sample.group, sample.weight)

    @property
    def _corrections(self) -> Corrections | None:
        """The corrections in use: those that were kept, or those that follow from the record."""
        kept = self._kept_corrections()
        return self._derive_corrections(self._fitted_statistics()) if kept is None else kept

    def _kept_corrections(self) -> Corrections | None:
        settle_state(self)
        kept: Corrections | None = self.__dict__.get("corrections_")
        return kept

    @property
    @optional_attribute
    def corrections_(self) -> Corrections:
        """The corrections in use."""
        corrections = self._corrections
        if corrections is None:
            raise NotAvailableError("the model has no corrections: they were switched off, or it has too few rows.")
        return corrections

    @property
    @optional_attribute
    def corrections_version_(self) -> str:
        """A name of the corrections in use that is as good as their content: equal names are equal corrections."""
        return hash_content(self.corrections_)

    @property
    def sample_changes_(self) -> int:
        """The number of kept rows that came or went since the corrections were derived."""
        settle_state(self)
        return int(self.__dict__.get("sample_changes_", 0))

    @property
    def stale_(self) -> tuple[str, ...]:
        """The corrections that were dropped because no rows are kept to derive them from; see ``refresh``."""
        settle_state(self)
        names: tuple[str, ...] = self.__dict__.get("stale_", ())
        return names

    def _use_corrections(self, corrections: Corrections | None) -> None:
        self._forget_corrections()
        if corrections is not None:
            self.__dict__["corrections_"] = corrections

    def _forget_corrections(self) -> None:
        self.__dict__.pop("corrections_", None)
        self.__dict__.pop("sample_changes_", None)

    def _prepare_partial_fit(self, table: TableT, labels: Array, group: Array, weight: Array | None) -> None:
        """Predict, then learn: the tempering learns from the answers to the new batch."""
        corrections = self._corrections
        known = find_members(labels, self.classes_)[group] & (weight is None or weight > 0)
        used = np.flatnonzero(known)
        if corrections is None or not len(used):
            return
        own = np.searchsorted(self.classes_, labels[group[used]])
        cells = take_rows(self._read_cells(table), used)
        counts = None if weight is None else weight[used]
        self.__dict__["corrections_"] = self._calibrator().update(self._model(), corrections, cells, own, counts)

    def _replace_statistics(self, statistics: ModelStatistics) -> None:
        before = self.__dict__.get("statistics_")
        super()._replace_statistics(statistics)
        if not self.calibrate:
            return
        changes, rows = self.sample_changes_, 0
        if statistics.sample is not None:
            rows = len(statistics.sample)
            changes += rows if before is None else statistics.sample.count_changes(before.sample)
        if not self._has_fitting_corrections() or changes > self.refresh_after * rows:
            self._drop_derived()
        elif changes:
            self.__dict__["sample_changes_"] = changes

    def _finish_partial_fit(self) -> None:
        if self._kept_corrections() is None:
            self._use_corrections(self._derive_corrections(self.statistics_))

    def _drop_derived(self) -> None:
        """Derive corrections anew when they are needed; name them if they cannot be."""
        lost: Corrections | None = self.__dict__.get("corrections_")
        self._forget_corrections()
        if lost is not None and self.statistics_.sample is None:
            self.__dict__["stale_"] = tuple(dict.fromkeys((*self.stale_, *lost.names)))

    @replace_state
    def refresh(self, X: object = None, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Derive the corrections anew from the rows that the model keeps.

        Parameters
        ----------
        X, y, sample_weight : rows that the model has learned, optional
            For a model that keeps none (``memory=0``): all of them, or a fair sample.
        """
        check_is_fitted(self)
        if X is not None:
            table, group, weight = self._read_learned_rows(X, y, sample_weight)
            sample, _ = self._sample_learned_rows(table, group, weight)
            corrections = self._fit_corrections(self.statistics_, sample)
        elif self.statistics_.sample is None:
            raise StaleModelError("the model keeps no rows; call refresh(X, y) with rows that it has learned.")
        else:
            corrections = self._derive_corrections(self.statistics_)
        self._use_corrections(corrections)
        self.__dict__.pop("stale_", None)
        return self

    def _read_learned_rows(
        self, X: object, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> tuple[TableT, Array, Array | None]:
        check_is_fitted(self)
        table = self._read(X, reset=False)
        group = encode_labels(y, self.classes_)[1]
        check_row_counts(table, group)
        return table, group, read_weights(sample_weight, len(group))

    # -- answering -----------------------------------------------------------------------------------------------

    def _compute_posterior(self, table: TableT, normaliser: Normaliser) -> Array:
        if not self.calibrate:
            return super()._compute_posterior(table, normaliser)
        return normaliser(self._calibrated().log_probabilities(self._read_cells(table)), self._log_prior())

    def _name_corrections(self) -> tuple[str, ...]:
        """The corrections that the answers have; naive Bayes alone has none."""
        return () if self._corrections is None else self._corrections.names

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        kept = self._kept_corrections()  # a repr derives nothing
        corrections = join_words(kept.names) if kept is not None else ""
        return super().__repr__(N_CHAR_MAX) + (f" corrected by {corrections}" if corrections else "")

    def _calibrated(self) -> CalibratedModel:
        return CalibratedModel(self._model(), self._corrections, is_limited=bool(self.calibrate))

    def _materialise(self) -> Self:
        """The model as a file keeps it: with its corrections, so that who loads it need not derive them."""
        whole, corrections = copy_state(self), self._corrections if hasattr(self, "statistics_") else None
        if corrections is not None:
            whole.__dict__["corrections_"] = corrections
        return whole

    def without_corrections(self) -> Self:
        """A model that has learned the same, and answers as naive Bayes has it, however few its rows are."""
        plain = copy_state(self)
        plain._forget_corrections()
        plain.calibrate = False
        return plain

    def _has_fitting_corrections(self) -> bool:
        """Whether the corrections in the model's own state, if there are any, are for this model."""
        kept = self._kept_corrections()
        if kept is None:
            return True
        model = self._model()
        return kept.fits_model(len(model.classes), model.n_parts, model.encoded_widths)

    # -- rows one at a time --------------------------------------------------------------------------------------

    def _make_stream(self) -> RowStream[Any] | None:
        model = self._open_model()
        if model is None:
            return None
        stream = RowStream(model, self.statistics_, is_limited=bool(self.calibrate))
        kept = self._kept_corrections()
        if kept is not None or not self.calibrate:
            stream.corrections = self._follow_corrections(kept, is_fresh=self._are_derived(kept))
        return stream

    def _are_derived(self, corrections: Corrections | None) -> bool:
        """Whether corrections are as they were derived from the record: they have seen the rows it keeps only."""
        return self.statistics_.sample is not None and self.statistics_.find_derived("corrections") is corrections

    def _follow_corrections(self, corrections: Corrections | None, is_fresh: bool) -> StreamCorrections:
        """Corrections for single rows; ``is_fresh`` if they were derived from the record as it is."""
        sample = self.statistics_.sample
        seen = set(sample.hashes.tolist()) if is_fresh and sample is not None else None
        changes = 0 if is_fresh else self.sample_changes_
        return StreamCorrections(corrections, self._list_tokenizers(), self.refresh_after, changes, seen)

    def _needs_record(self, stream: RowStream[Any]) -> bool:
        corrections = stream.corrections
        return corrections is None or (corrections.needs_families and stream.model.needs_record)

    def _prepare_answer(self, stream: RowStream[Any]) -> None:
        """Derive anew what is not valid any more: the corrections and, where it is needed, the choice of families."""
        if stream.corrections is None:
            corrections = self._derive_corrections(self.statistics_)
            self._use_corrections(corrections)
            stream.corrections = self._follow_corrections(corrections, is_fresh=True)
        if stream.corrections.needs_families and stream.model.needs_record:
            stream.model.follow_record(self._model(), self.refresh_after)

    def _settle(self) -> None:
        guard = find_guard(self)
        stream: RowStream[Any] | None = guard.stream
        if stream is None:
            return
        guard.stream = None  # from here on the record is read as it is
        draft = copy_state(self)
        try:
            draft._count_rows(stream)
        except BaseException:
            guard.stream = stream
            raise
        same_columns = draft._column_names() == self._column_names()
        self.__dict__ = draft.__dict__
        if same_columns:
            stream.restart(self.statistics_)
            guard.stream = stream

    def _count_rows(self, stream: RowStream[Any]) -> None:
        """Count the rows of a stream into the record, and keep its sample and its corrections."""
        total = replace(self.statistics_, sample=None)
        if stream.learned:
            total = total + self._observe_pending(stream, stream.learned)
        if stream.forgotten:
            total = total - self._observe_pending(stream, stream.forgotten)
        if stream.sample is not None:
            total = replace(total, sample=stream.sample.close(partial(self._sample_pending, stream)))
        if stream.corrections is None:
            self._drop_derived()
        else:
            self._use_corrections(stream.corrections.corrections)
            if stream.corrections.changes:
                self.__dict__["sample_changes_"] = stream.corrections.changes
        self._set_statistics(total)

    def _observe_pending(self, stream: RowStream[Any], pending: Sequence[tuple[Any, int]]) -> ModelStatistics:
        rows, group = zip(*pending, strict=True)
        return self._model().observe(stream.model.make_cells(rows), np.array(group, dtype=np.int32), None)

    def _sample_pending(self, stream: RowStream[Any], rows: Sequence[Any], group: Array, memory: int) -> RowSample:
        return self._sample_rows(stream.model.make_cells(rows), self.classes_, group, None, memory)[0]

    # -- judging -------------------------------------------------------------------------------------------------

    @read_state
    def evaluate(
        self,
        X: object = None,
        y: ArrayLike | None = None,
        folds: Folds = "auto",
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
    ) -> Scores:
        """Scores of the model's probabilities on rows that what judges them has not seen in any way.

        The rows of a fold are subtracted from the record, and everything is derived from the rest: families, bins,
        vocabulary, smoothing and corrections.

        Parameters
        ----------
        X, y : rows that the model has learned, and their labels, optional
            Without them: the rows that the model keeps.
        folds : "auto", "loo", int or a scikit-learn splitter
            The folds of cross-validation. "auto" is ten, five for more than 1,000 rows, and leave-one-out ("loo") for a
            model without corrections.
        groups : array-like, optional
            Rows of one group are left out together.
        time : array-like, optional
            Rows are judged by a model of earlier rows only.

        Returns
        -------
        Scores
        """
        check_is_fitted(self)
        if X is None:
            if self.statistics_.sample is None:
                raise StaleModelError("the model keeps no rows; call evaluate(X, y) with rows that it has learned.")
            return self._judge_sample(self.statistics_.sample, folds)
        table, group, _ = self._read_learned_rows(X, y, None)
        if groups is not None or time is not None or not isinstance(folds, str):
            from priory.estimators.folds import split_learned_rows  # it imports scikit-learn

            return self._judge_splits(table, group, split_learned_rows(folds, group, groups, time))
        if not self.calibrate:
            return self._make_scores(group, self._predict_left_out(table, group))
        sample, positions = self._sample_learned_rows(table, group, None)
        return self._judge_sample(sample, folds, positions)

    def _judge_sample(self, sample: RowSample, folds: Folds, positions: Array | None = None) -> Scores:
        """Each row of a sample judged by the model without its fold; a row that occurs often is in several folds.

        With very many classes only some rows of each fold are judged; all of them are left out.
        """
        if folds == "auto":
            folds = 10 if len(sample) <= MAX_ROWS_FOR_TEN_FOLDS else 5
        if not isinstance(folds, int) or folds < 2:
            raise DataError(
                f"folds is {folds!r}; use 'auto', a number from 2, or a scikit-learn splitter with X and y."
            )
        rows, weights, answers = [], [], []
        max_rows = max(1, MAX_JUDGED_ANSWERS // (folds * len(self.classes_)))  # of a fold
        for fold_weight in split_weights(sample, folds):
            fold = np.flatnonzero(fold_weight)
            if len(fold):
                out = sample.take(fold, fold_weight[fold])
                part = replace(self._model().observe(out.blocks, out.group, out.weight), sample=out)
                answers.append(self._judge(part, take_rows(out.blocks, slice(max_rows))))
                rows.append(fold[:max_rows])
                weights.append(out.weight[:max_rows])
        judged, weight = np.concatenate(rows), np.concatenate(weights)
        scores = self._make_scores(sample.group[judged], np.concatenate(answers), weight)
        return replace(scores, folds=folds, positions=None if positions is None else positions[judged])

    def _judge_splits(self, table: TableT, group: Array, splits: Iterator[tuple[Array, Array]]) -> Scores:
        """Each fold judged by the model without it, and without whatever else its split leaves out."""
        cells, tested, answers = self._read_cells(table), [], []
        model = self._model()
        for train, test in splits:
            out = np.setdiff1d(np.arange(len(group)), train)
            left_out, own = take_rows(cells, out), group[out]
            part = model.observe(left_out, own, None)
            if self.statistics_.sample is not None:
                part = replace(part, sample=self._sample_rows(left_out, self.classes_, own, None, len(out))[0])
            answers.append(self._judge(part, take_rows(cells, test)))
            tested.append(test)
        rows = np.concatenate(tested)
        scores = self._make_scores(group[rows], np.concatenate(answers))
        return replace(scores, positions=rows, folds=len(tested) if len(tested) > 1 else None)

    def _make_scores(self, group: Array, log_probabilities: Array, weight: Array | None = None) -> Scores:
        from priory.evaluation.scores import Scores  # which answers do without

        return Scores.of(self.classes_[group], log_probabilities, self.classes_, weight, logs=True)

    def _judge(self, part: ModelStatistics, cells: Sequence[Cells]) -> Array:
        """log p(c | x) of rows, by the model without ``part`` and the corrections that follow from what is left."""
        rest = self.statistics_ - part
        answering = CalibratedModel(self._model(rest), self._derive_corrections(rest), bool(self.calibrate))
        return answering.log_probabilities(cells)

    @read_state
    def leave_one_out(self, X: object, y: ArrayLike | None) -> Array:
        """log p(c | x) of every learned row, from the model without that row and without corrections."""
        check_is_fitted(self)
        return self._predict_left_out(self._read(X, reset=False), encode_labels(y, self.classes_)[1])

    def _predict_left_out(self, table: TableT, group: Array) -> Array:
        """log p(c | x) of learned rows, each from the uncorrected model without it."""
        model = self._model()
        return log_normalise(model.leave_one_out(self._read_cells(table), group), model.leave_one_out_prior(group))
