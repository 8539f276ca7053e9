"""Fit the corrections of a model to its out-of-fold predictions.

`Calibrator.fit` predicts each fold with the model without it (``total - fold``), and fits `Corrections` to these
predictions. The result is a pure function of the model and of the rows, in any order. It takes any model that
implements `CalibratableModel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from priory.calibration.calibrated_model import (
    CalibratableModel,
    count_terms_per_row,
    find_column_parts,
    find_text_parts,
)
from priory.calibration.code_counts import CodeCounts
from priory.calibration.corrections import Corrections
from priory.calibration.fitting import FitPlan, fit_corrections
from priory.calibration.folds import RowFolds, assign_folds, assign_folds_by_content
from priory.calibration.members import encode_rows
from priory.calibration.row_corrections import step_tempering
from priory.calibration.table_encoding import TableEncoding
from priory.calibration.tempered_centre import FitRows
from priory.calibration.tempering import fit_tempering
from priory.calibration.text_refinement import SHIFT_HOLD, PairChoice, refine_texts
from priory.calibration.text_terms import collect_text_terms
from priory.core.blas_threads import limit_blas_threads
from priory.core.sharding import space_evenly
from priory.core.typing import Array
from priory.models.cells import Cells, take_rows
from priory.models.open_model import RowEvidence

CALIBRATION_FOLDS, FOLDS_OF_FEW_ROWS = 5, 10
MAX_ROWS_FOR_MORE_FOLDS, MAX_PARTS_FOR_MORE_FOLDS = 500, 300
MIN_ROWS_TO_CALIBRATE = 50
MAX_CLASSES_TO_CALIBRATE = 20_000  # with more, even the predictions for fifty rows take too much memory
MAX_ROWS_FOR_ALL_FOLDS = 5_000  # with more, one fold is enough to validate on
# With more classes a model is only tempered: a class has too few rows to fit weights of codes or tokens.
MAX_CLASSES_TO_REFINE, MAX_CLASSES_TO_REFINE_TEXTS = 64, 1000
MAX_TERMS_TO_CALIBRATE, MAX_TERMS_TO_TEMPER = 1 << 24, 1 << 21  # numbers in the evidence terms of the rows used
MAX_SHARE_AT_ONCE = 0.1  # of all rows: up to this share, rows are left out together
MAX_BATCH_ROWS_TO_TEMPER = 512  # rows of a batch that the tempering learns from


@dataclass(frozen=True)
class Calibrator:
    """Fit corrections to at most ``max_rows`` rows, following a plan."""

    max_rows: int
    plan: FitPlan
    # only for models of a single text:
    pairs: PairChoice = False  # whether pairs of neighbouring words are features
    hold: float = SHIFT_HOLD  # extra penalty on the direction of the mean text

    def fit(
        self, model: CalibratableModel, cells: Sequence[Cells], group: Array, weight: Array | None
    ) -> Corrections | None:
        """Return corrections fitted to rows that the model has learned, or None if there are too few."""
        if len(model.classes) > MAX_CLASSES_TO_CALIBRATE:
            return None
        every = np.ones(len(group)) if weight is None else weight.astype(float)
        # Skip a row that is alone in its class: the model without it does not know the class.
        present = np.flatnonzero((every > 0) & (every < model.statistics.n[group]))
        used = present[self._choose_rows(model, len(present))]
        some, own, counts = take_rows(cells, used), group[used], every[used]
        if counts.sum() < MIN_ROWS_TO_CALIBRATE or len(np.unique(own)) < 2:
            return None
        order, judged = _assign_folds(some, own, counts, model.n_parts)
        with limit_blas_threads():  # the problems are small: threads would wait for each other
            corrections = self._fit_ordered(model, take_rows(some, order.rows), own[order.rows], order, judged)
        if corrections.reads_tokens and not corrections.tokens:
            return replace(corrections, tokens=model.choose_token_features())
        return corrections

    def _fit_ordered(
        self, model: CalibratableModel, cells: Sequence[Cells], group: Array, order: RowFolds, judged: Array
    ) -> Corrections:
        """Fit corrections to rows in canonical order."""
        if _has_many_classes(model):
            few = order.weight.sum() <= MAX_SHARE_AT_ONCE * model.statistics.n.sum()
            return _fit_tempering_alone(model, cells, group, order._replace(fold=0 * order.fold) if few else order)
        if _has_text_alone(model):
            if self.plan.refine:
                return refine_texts(model, cells, group, order, judged, self.pairs, self.hold)
            return _fit_tempering_alone(model, cells, group, order)
        return fit_corrections(_collect_rows(model, cells, group, order.weight, order.fold, judged), self.plan)

    def _choose_rows(self, model: CalibratableModel, n_rows: int) -> Array:
        """Return the positions of the rows to fit to, evenly spaced if there are too many."""
        max_terms = MAX_TERMS_TO_TEMPER if _has_many_classes(model) else MAX_TERMS_TO_CALIBRATE
        return space_evenly(n_rows, min(self.max_rows, max_terms // count_terms_per_row(model)))

    def update(
        self,
        model: CalibratableModel,
        corrections: Corrections,
        cells: Sequence[Cells],
        group: Array,
        weight: Array | None,
    ) -> Corrections:
        """Return corrections whose tempering is updated by a batch that the model has not learned yet.

        Only the weights of the class prior and of the texts are updated. The members, which correct columns, stay.
        """
        texts, blocks = model.take_texts()
        tempers_columns = not corrections.members and model.n_parts > len(blocks)
        if not blocks or tempers_columns or len(corrections.tempering.weights) != 1 + model.n_parts:
            return corrections
        max_rows = max(1, MAX_TERMS_TO_TEMPER // count_terms_per_row(model))
        used = space_evenly(len(group), min(MAX_BATCH_ROWS_TO_TEMPER, max_rows))
        terms = texts.evidence_terms(take_rows([cells[b] for b in blocks], used))
        counts = np.ones(len(used)) if weight is None else weight[used]
        parts, belief = np.append(0, 1 + find_text_parts(model)), corrections.tempering
        # values (classes, 1 + texts), lengths (1 + texts,): one Fisher step for each row
        for values, lengths, own, count in zip(
            terms.values, terms.lengths, group[used].tolist(), counts.tolist(), strict=True
        ):
            belief = step_tempering(belief, RowEvidence(parts, values, lengths), own, count)
        return replace(corrections, tempering=belief)


def _assign_folds(cells: Sequence[Cells], group: Array, weight: Array, n_parts: int) -> tuple[RowFolds, Array]:
    """Return the rows in folds, and the folds used for validation."""
    few = weight.sum() <= MAX_ROWS_FOR_MORE_FOLDS and n_parts <= MAX_PARTS_FOR_MORE_FOLDS
    folds = FOLDS_OF_FEW_ROWS if few else CALIBRATION_FOLDS
    order = assign_folds(cells, group, weight, folds)
    if len(group) <= MAX_ROWS_FOR_ALL_FOLDS:
        return order, np.arange(folds)
    fold = assign_folds_by_content(cells, len(group), folds)[order.rows]
    return order._replace(fold=fold), np.zeros(1, dtype=np.int64)


def _has_text_alone(model: CalibratableModel) -> bool:
    """Whether each row is a single text."""
    return model.n_parts == 1 and not any(map(len, find_column_parts(model)))


def _has_many_classes(model: CalibratableModel) -> bool:
    """Whether a model has so many classes that it is only tempered."""
    most = MAX_CLASSES_TO_REFINE_TEXTS if _has_text_alone(model) else MAX_CLASSES_TO_REFINE
    return len(model.classes) > most


def _fit_tempering_alone(
    model: CalibratableModel, cells: Sequence[Cells], group: Array, order: RowFolds
) -> Corrections:
    """Fit a tempering and nothing else: it has too few weights to need nested folds."""
    terms = collect_text_terms(model, cells, group, order.weight, order.fold, [-1])[0]
    return Corrections(fit_tempering(terms, group, order.weight))


def _collect_rows(
    model: CalibratableModel, cells: Sequence[Cells], group: Array, weight: Array, fold: Array, judged: Array
) -> FitRows:
    """Return learned rows with their out-of-fold scores."""
    learned = model.statistics.n
    # If the rows are a sample, codes and totals come from all values that the model has counted.
    is_sample = not np.array_equal(np.bincount(group, weight, minlength=len(learned)), learned)
    encoding = TableEncoding.of(cells, weight, model if is_sample else None)
    no_texts, features = np.zeros((len(group), len(model.classes))), model.choose_token_features()
    rows = encode_rows(encoding, cells, True, no_texts, lambda: model.encode_tokens(features, cells))
    counts = CodeCounts.of(encoding, rows.codes, group, weight, fold, (int(fold.max()) + 1, len(model.classes)))
    if is_sample:
        counts = counts.extend(model, learned)
    texts, blocks = model.take_texts()
    terms = []
    if blocks:
        documents = [cells[b] for b in blocks]
        terms = collect_text_terms(texts, documents, group, weight, fold, [*judged.tolist(), -1])
    column_parts = np.concatenate([*find_column_parts(model), np.zeros(0, dtype=np.int64)]).astype(np.int64)
    return FitRows(
        rows, counts, group, weight, fold, judged, terms, column_parts, find_text_parts(model), model.n_parts
    )
