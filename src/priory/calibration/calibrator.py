"""A model corrected by its own answers to rows that it has not learned.

`Calibrator.fit` asks the model without each row (``total - row``) about that row, and fits `Corrections` to the
answers. `CalibratedModel` is a model with such corrections. Both are given any model that follows `CalibratableModel`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np
from scipy.sparse import csr_array

from priory.calibration.feature_encoding import TableEncoding
from priory.calibration.folds import assign_folds_by_content
from priory.calibration.stacking import CorrectionRows, Corrections, MemberSpec, fit_corrections
from priory.calibration.tempering import Tempering
from priory.core.blas_threads import limit_blas_threads
from priory.core.logspace import log_normalise
from priory.core.sharding import space_evenly
from priory.core.typing import Array
from priory.models.cells import Cells, take_rows
from priory.models.evidence_terms import EvidenceTerms
from priory.models.model_statistics import ModelStatistics

CALIBRATION_FOLDS = 5
MIN_ROWS_TO_CALIBRATE = 50
MAX_CLASSES_TO_CALIBRATE = 1000  # with more, each class has too few rows
MAX_ROWS_FOR_ALL_FOLDS = 10_000  # with more, one fold is enough to choose by
MAX_TERMS_TO_CALIBRATE = 1 << 24  # numbers in the evidence terms of the rows used
MAX_BATCH_ROWS_TO_TEMPER = 512  # rows of a batch that the tempering learns from
PREDICTION_CHUNK_CELLS = 1 << 20  # terms computed at a time


class CalibratableModel(Protocol):
    """What calibration asks of a model."""

    @property
    def classes(self) -> Array:
        """The labels, sorted."""

    @property
    def n_parts(self) -> int:
        """The number of parts of the evidence, besides the class prior."""

    @property
    def can_leave_one_out(self) -> bool:
        """Whether rows are left out one by one; otherwise a whole fold at a time."""

    def observe(self, cells: Sequence[Cells], group: Array, weight: Array | None) -> ModelStatistics:
        """The statistics of rows, over the classes of this model."""

    @property
    def encoded_widths(self) -> Sequence[int]:
        """The number of columns of each block that are read as codes: not of texts."""

    def log_prior(self) -> Array:
        """log p(c), as declared."""

    def estimated_log_prior(self) -> Array:
        """log p(c), by the rows learned of each class."""

    def log_joint(self, cells: Sequence[Cells]) -> Array:
        """log p(c, x), uncorrected."""

    def leave_one_out(self, cells: Sequence[Cells], group: Array) -> Array:
        """log p(c, x) of rows that were learned, each from the model without it, uncorrected."""

    def leave_one_out_prior(self, group: Array) -> Array:
        """log p(c) for rows that were learned, each with one row less of its own class."""

    def evidence_terms(self, cells: Sequence[Cells]) -> EvidenceTerms:
        """What each part says about each row."""

    def leave_one_out_evidence(self, cells: Sequence[Cells], group: Array) -> EvidenceTerms:
        """What each part says about each row, from the model that has not learned the row."""

    def encode_tokens(self, cells: Sequence[Cells]) -> list[csr_array]:
        """The tokens of texts, as sparse rows."""

    def count_token_features(self) -> int:
        """The number of columns of the rows that `encode_tokens` makes."""

    def forget(self, cells: Sequence[Cells], group: Array, weight: Array | None) -> Self:
        """The model without these rows."""


MemberChooser = Callable[[CalibratableModel, TableEncoding, int, int], list[MemberSpec]]


@dataclass(frozen=True)
class Calibrator:
    """How corrections are fitted: to how many rows at most, and which members may join the stack.

    ``choose_members`` is given the model, the encoding, the number of rows learned and the number used.
    """

    max_rows: int
    choose_members: MemberChooser

    def fit(
        self, model: CalibratableModel, cells: Sequence[Cells], group: Array, weight: Array | None
    ) -> Corrections | None:
        """Corrections fitted to rows that the model has learned, evenly spaced if there are many; None if too few."""
        n_classes = len(model.classes)
        if n_classes > MAX_CLASSES_TO_CALIBRATE:
            return None
        present = np.arange(len(group)) if weight is None else np.flatnonzero(weight)
        used = present[self._choose_rows(model, len(present))]
        some, own = take_rows(cells, used), group[used]
        fold = assign_folds_by_content(some, len(used), CALIBRATION_FOLDS)
        if len(used) < MIN_ROWS_TO_CALIBRATE or len(np.unique(own)) < 2 or len(np.unique(fold)) < 2:
            return None
        encoding = TableEncoding.of(some, own, n_classes)
        members = self.choose_members(model, encoding, len(present), len(used))
        counts = np.ones(len(used)) if weight is None else weight[used]
        if model.can_leave_one_out and bool((counts == np.floor(counts)).all()):
            terms = model.leave_one_out_evidence(some, own)
        else:
            terms = _leave_fold_out(model, some, own, counts, fold)
        if len(used) > MAX_ROWS_FOR_ALL_FOLDS:
            fold = np.where(fold == 0, 0, -1)
        with limit_blas_threads():  # many small problems: threads would only wait for each other
            return fit_corrections(_make_rows(model, some, encoding, terms), own, counts, fold, members)

    def find_scored_rows(self, model: CalibratableModel, cells: Sequence[Cells]) -> Array:
        """The positions of the rows that `fit` keeps out-of-fold answers to, if all rows have the weight one."""
        used = self._choose_rows(model, len(cells[0]))
        if len(used) <= MAX_ROWS_FOR_ALL_FOLDS:
            return used
        return used[assign_folds_by_content(take_rows(cells, used), len(used), CALIBRATION_FOLDS) == 0]

    def _choose_rows(self, model: CalibratableModel, n_rows: int) -> Array:
        """The positions of the rows that corrections are fitted to: evenly spaced if there are many."""
        terms_per_row = len(model.classes) * (1 + model.n_parts)
        return space_evenly(n_rows, min(self.max_rows, MAX_TERMS_TO_CALIBRATE // terms_per_row))

    def update(
        self,
        model: CalibratableModel,
        corrections: Corrections,
        cells: Sequence[Cells],
        group: Array,
        weight: Array | None,
    ) -> Corrections:
        """Corrections whose tempering has learned from the model's answers to a batch before the model learns it."""
        used = space_evenly(len(group), MAX_BATCH_ROWS_TO_TEMPER)
        terms = model.evidence_terms(take_rows(cells, used))
        parts = terms.values.shape[2]
        belief = corrections.tempering if len(corrections.tempering.weights) == parts else Tempering.prior(parts)
        counts = np.ones(len(used)) if weight is None else weight[used]
        return replace(corrections, tempering=belief.update_belief(terms, group[used], counts))


@dataclass(frozen=True)
class CalibratedModel:
    """A model, and the corrections of its answers if there are any."""

    model: CalibratableModel
    corrections: Corrections | None

    def log_probabilities(self, cells: Sequence[Cells]) -> Array:
        """(rows, classes): log p(c | x) after all corrections.

        A declared class prior takes the place of the estimated one, which is what the corrections were fitted with.
        """
        prior = self.model.log_prior()
        rows, classes = len(cells[0]), len(self.model.classes)
        step = max(1, PREDICTION_CHUNK_CELLS // ((1 + self.model.n_parts) * classes))
        answers = np.empty((rows, classes))
        for start in range(0, rows, step):
            part = slice(start, start + step)
            answers[part] = self._log_probabilities(take_rows(cells, part))
        return log_normalise(answers + (prior - self.model.estimated_log_prior()), prior)

    def _log_probabilities(self, cells: Sequence[Cells]) -> Array:
        terms = self.model.evidence_terms(cells)
        if self.corrections is None:
            return terms.log_joint
        return self.corrections.log_probabilities(_make_rows(self.model, cells, self.corrections.encoding, terms))

    def split_evidence(self, cells: Sequence[Cells]) -> EvidenceSplit:
        """The log odds of each row as a sum: the class prior, each part by its weight, and what corrections add."""
        terms = self.model.evidence_terms(cells)
        prior, estimated = self.model.log_prior(), self.model.estimated_log_prior()
        if self.corrections is None:
            weights = np.ones(terms.lengths.shape)
            return EvidenceSplit(weights, prior, np.zeros((len(cells[0]), len(prior))))
        weights = self.corrections.tempering.part_weights(terms.lengths)
        rows = _make_rows(self.model, cells, self.corrections.encoding, terms)
        rest = self.corrections.log_probabilities(rows) - np.einsum("ncb,nb->nc", terms.values, weights)
        shift = estimated * weights[0, 0] + (prior - estimated)
        return EvidenceSplit(weights, shift, rest - rest.mean(axis=1, keepdims=True))


@dataclass(frozen=True)
class EvidenceSplit:
    """What the lines of a ledger are made of."""

    weights: Array  # (rows, 1 + parts): how much each part counts
    prior: Array  # (classes,): the class prior as it counts
    rest: Array  # (rows, classes): what corrections of several columns together add

    @property
    def prior_name(self) -> str:
        """The name of the prior in a ledger: a prior whose weight is not one is not the class prior alone."""
        return "prior" if (self.weights[:, 0] == 1.0).all() else "prior (tempered)"


def _leave_fold_out(
    model: CalibratableModel, cells: Sequence[Cells], group: Array, weight: Array, fold: Array
) -> EvidenceTerms:
    """The evidence of each fold from the model without it."""
    values = np.empty((len(group), len(model.classes), 1 + model.n_parts))
    lengths = np.empty((len(group), 1 + model.n_parts))
    for k in np.unique(fold):
        out = np.flatnonzero(fold == k)
        held_out = take_rows(cells, out)
        terms = model.forget(held_out, group[out], weight[out]).evidence_terms(held_out)
        values[out], lengths[out] = terms.values, terms.lengths
    return EvidenceTerms(values, lengths)


def _make_rows(
    model: CalibratableModel, cells: Sequence[Cells], encoding: TableEncoding | None, terms: EvidenceTerms
) -> CorrectionRows:
    return CorrectionRows(terms, list(cells), encoding, lambda: model.encode_tokens(cells))
