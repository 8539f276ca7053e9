"""Tempered naive Bayes of every fold, on which the regressions are centred."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from priory.calibration.code_counts import CodeCounts
from priory.calibration.members import CorrectionRows, look_up_codes
from priory.calibration.tempering import Tempering, fit_tempering
from priory.core.typing import Array
from priory.models.evidence_terms import EvidenceTerms

MAX_ROWS_TO_TEMPER = 2500  # enough for a few dozen weights


@dataclass(frozen=True, eq=False)
class FitRows:
    """The rows that corrections are fitted to, with codes, counts, folds and the evidence of texts."""

    rows: CorrectionRows
    counts: CodeCounts
    group: Array  # (rows,)
    weight: Array  # (rows,)
    fold: Array  # (rows,)
    judged: Array  # (validation folds,): the folds that are left out in turn
    texts: list[EvidenceTerms]  # evidence of texts without each validation fold, and without none; never with the row
    column_parts: Array  # (columns,): the index of each column among the parts of the model
    text_parts: Array  # (texts,)
    n_parts: int  # columns and texts, without the class prior

    @property
    def n_classes(self) -> int:
        return len(self.counts.class_total)

    @property
    def models(self) -> list[tuple[int, ...]]:
        """The folds that each model leaves out: one each, and none for the last model."""
        return [*((int(k),) for k in self.judged), ()]

    @property
    def model_of_row(self) -> Array:
        """(rows,): the index of the model that leaves the row out, or -1."""
        place = np.full(self.counts.folds.shape[0], -1)
        place[self.judged] = np.arange(len(self.judged))
        return place[self.fold]

    def make_terms(self, m: int, rows: Array) -> EvidenceTerms:
        """Return the evidence of all parts, without the folds of model ``m`` and without each row's fold."""
        values = np.zeros((len(rows), self.n_classes, 1 + self.n_parts))
        lengths = np.ones((len(rows), 1 + self.n_parts))
        values[:, :, 0] = self.counts.log_prior(*self.models[m])
        starts = self.counts.encoding.starts
        for fold in np.unique(self.fold[rows]):
            at = np.flatnonzero(self.fold[rows] == fold)
            # (classes, codes + 1): the last entry, 0, is for unknown labels (code -1)
            table = np.pad(self.counts.log_ratios(*self.models[m], int(fold)), ((0, 0), (0, 1)))
            codes = self.rows.codes[rows[at]]
            cells = table[:, np.where(codes >= 0, codes + starts[:-1], -1)]  # (classes, rows, columns)
            values[np.ix_(at, np.arange(self.n_classes), 1 + self.column_parts)] = cells.transpose(1, 0, 2)
        if len(self.text_parts):
            values[:, :, 1 + self.text_parts] = self.texts[m].values[rows][:, :, 1:]
            lengths[:, 1 + self.text_parts] = self.texts[m].lengths[rows][:, 1:]
        return EvidenceTerms(values, lengths)


class Centre(NamedTuple):
    """Tempered naive Bayes of every model: without each validation fold, and of all rows."""

    temperings: list[Tempering]
    tables: Array  # (models, classes, 1 + codes): tempered log prior, and tempered evidence of each code
    text_logits: Array  # (rows, models, classes)
    logits: Array  # (rows, models, logits): sum of prior, codes and texts


def fit_centre(given: FitRows) -> Centre:
    """Fit the tempering of each model to the rows that it does not leave out."""
    temperings, tables, text_logits, logits = [], [], [], []
    # (codes,): the column of each code
    owner = np.repeat(np.arange(len(given.counts.encoding.columns)), np.diff(given.counts.encoding.starts))
    for m, folds in enumerate(given.models):
        rows = np.flatnonzero(~np.isin(given.fold, folds))[:MAX_ROWS_TO_TEMPER]
        terms = given.make_terms(m, rows)
        tempering = fit_tempering(terms, given.group[rows], given.weight[rows], with_information=not folds)
        column_weights = tempering.weights[1 + given.column_parts]
        prior = tempering.weights[0] * given.counts.log_prior(*folds)
        tables.append(np.column_stack([prior, given.counts.log_ratios(*folds) * column_weights[owner]]))
        temperings.append(tempering)
        no_texts = np.zeros((len(given.group), given.n_classes))
        text_logits.append(tempering.weigh_texts(given.texts[m], given.text_parts) if given.texts else no_texts)
        codes = look_up_codes(tables[-1][:, 1:], given.rows.codes, given.counts.encoding.starts)
        logits.append(to_logits(tables[-1][:, 0] + codes + text_logits[-1]))
    return Centre(temperings, np.stack(tables), np.stack(text_logits, axis=1), np.stack(logits, axis=1))


def measure_importance(given: FitRows, centre: Centre) -> Array:
    """(models, columns): the tempered evidence of each column for the true class, summed over the rows."""
    starts = given.counts.encoding.starts
    found = []
    for m, folds in enumerate(given.models):
        counts = given.counts.without(*folds)[0]
        found.append(np.add.reduceat((counts * centre.tables[m][:, 1:]).sum(axis=0), starts[:-1]))
    return np.stack(found)


def to_logits(weights: Array) -> Array:
    """Convert (..., classes) to (..., logits); for two classes, the second minus the first."""
    return weights[..., 1:] - weights[..., :1] if weights.shape[-1] == 2 else weights


def to_classes(logits: Array) -> Array:
    """Convert (..., logits) to (..., classes); of two classes, the first gets zero."""
    wide = np.asarray(logits, dtype=float)
    return np.concatenate([np.zeros_like(wide), wide], axis=-1) if wide.shape[-1] == 1 else wide
