"""A model with corrections, if there are any, and what calibration asks of a model.

What fits corrections is in `calibrator`; an answer does without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from priory.bag_of_words.token_features import TokenFeatures
from priory.calibration.corrections import Corrections
from priory.calibration.members import CorrectionRows
from priory.calibration.succession import Succession
from priory.core.logspace import log_normalise
from priory.core.sparse_rows import SparseRows
from priory.core.typing import Array
from priory.models.cells import Cells, take_rows
from priory.models.evidence_terms import EvidenceTerms
from priory.models.model_statistics import ModelStatistics

PREDICTION_CHUNK_CELLS = 1 << 20  # terms computed at a time


class CalibratableModel(Protocol):
    """What calibration asks of a model."""

    @property
    def classes(self) -> Array:
        """The labels, sorted."""

    @property
    def statistics(self) -> ModelStatistics:
        """What was learned."""

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

    def find_parts(self) -> list[Array]:
        """For each block of cells which parts its columns are."""

    def take_texts(self) -> tuple[Self, list[int]]:
        """The model of the texts alone, and the blocks that they are."""

    def count_values(self, block: int, column: int) -> tuple[Array, Array] | None:
        """The distinct values of a column that were learned, and how often in each class; None if not counted."""

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

    def choose_token_features(self) -> tuple[TokenFeatures, ...]:
        """For each text the tokens that can have a weight of their own."""

    def encode_tokens(self, features: Sequence[TokenFeatures], cells: Sequence[Cells]) -> list[SparseRows]:
        """Texts as sparse rows of these tokens."""

    def forget(self, cells: Sequence[Cells], group: Array, weight: Array | None) -> Self:
        """The model without these rows."""


@dataclass(frozen=True)
class CalibratedModel:
    """A model, and the corrections of its answers if there are any.

    What it answers is limited by how many rows it has learned, unless it is to be naive Bayes alone.
    """

    model: CalibratableModel
    corrections: Corrections | None
    is_limited: bool = True

    @property
    def succession(self) -> Succession | None:
        """The limit of its answers."""
        n_rows = float(self.model.statistics.n.sum())
        return Succession(n_rows, self.model.estimated_log_prior()) if self.is_limited else None

    def log_probabilities(self, cells: Sequence[Cells]) -> Array:
        """(rows, classes): log p(c | x) after all corrections.

        A declared class prior takes the place of the estimated one, which is what the corrections were fitted with and
        what the limit is about.
        """
        prior, estimated, rows = self.model.log_prior(), self.model.estimated_log_prior(), len(cells[0])
        step = max(1, PREDICTION_CHUNK_CELLS // count_terms_per_row(self.model))
        answers = np.empty((rows, len(prior)))
        for start in range(0, rows, step):
            part = slice(start, start + step)
            answers[part] = self._log_probabilities(take_rows(cells, part))
        if self.succession is not None:
            answers = self.succession.limit(log_normalise(answers, estimated))
        return log_normalise(answers + (prior - estimated), prior)

    def _log_probabilities(self, cells: Sequence[Cells]) -> Array:
        if self.corrections is None:
            return self.model.evidence_terms(cells).log_joint
        if not self.corrections.members:
            return log_normalise(self.corrections.tempering.logits(self.model.evidence_terms(cells)))
        return self.corrections.log_probabilities(self._make_rows(cells, self.corrections))

    def _make_rows(self, cells: Sequence[Cells], corrections: Corrections) -> CorrectionRows:
        texts, blocks = self.model.take_texts()
        text_logits = np.zeros((len(cells[0]), len(self.model.classes)))
        if blocks:
            terms = texts.evidence_terms([cells[b] for b in blocks])
            text_logits = corrections.tempering.weigh_texts(terms, find_text_parts(self.model))
        return corrections.make_rows(cells, text_logits, lambda: self.model.encode_tokens(corrections.tokens, cells))

    def split_evidence(self, cells: Sequence[Cells]) -> EvidenceSplit:
        """The log odds of each row as a sum: the class prior, each part by its weight, and what corrections add."""
        terms = self.model.evidence_terms(cells)
        prior, estimated = self.model.log_prior(), self.model.estimated_log_prior()
        weights, rest = np.ones(terms.lengths.shape), np.zeros((len(cells[0]), len(prior)))
        if self.corrections is not None:
            weights = self.corrections.tempering.part_weights(terms.lengths)
            rest = self._log_probabilities(cells) - np.einsum("ncb,nb->nc", terms.relative_to_best, weights)
            rest -= rest.mean(axis=1, keepdims=True)
            prior = estimated * weights[0, 0] + (prior - estimated)
        return EvidenceSplit(weights, prior, rest, self.log_probabilities(cells), self.succession)


@dataclass(frozen=True)
class EvidenceSplit:
    """What the lines of a ledger are made of."""

    weights: Array  # (rows, 1 + parts): how much each part counts
    prior: Array  # (classes,): the class prior as it counts
    rest: Array  # (rows, classes): what corrections of several columns together add
    answers: Array  # (rows, classes): log p(c | x), limited
    succession: Succession | None

    @property
    def prior_name(self) -> str:
        """The name of the prior in a ledger: a prior whose weight is not one is not the class prior alone."""
        return "prior" if (self.weights[:, 0] == 1.0).all() else "prior (tempered)"

    def finish_lines(self, lines: Array, rows: slice) -> tuple[Array, list[str]]:
        """The lines (rows, classes, lines) of some rows with those that are of no part, and the names of these."""
        names = []
        if not np.allclose(self.rest[rows], 0.0, atol=1e-9):
            lines, names = np.concatenate([lines, self.rest[rows, :, None]], axis=2), ["(together)"]
        if self.succession is not None:
            limited = self.succession.limit_lines(lines, self.prior, self.answers[rows])
            if not limited[:, :, -1].any():
                return limited[:, :, :-1], names
            lines, names = limited, [*names, self.succession.name]
        return lines, names


def count_terms_per_row(model: CalibratableModel) -> int:
    return len(model.classes) * (1 + model.n_parts)


def find_column_parts(model: CalibratableModel) -> list[Array]:
    """For each block the parts that its columns are; none for texts."""
    texts = set(model.take_texts()[1])
    return [parts[:0] if b in texts else parts for b, parts in enumerate(model.find_parts())]


def find_text_parts(model: CalibratableModel) -> Array:
    """The parts that are texts."""
    parts, texts = model.find_parts(), model.take_texts()[1]
    return np.array([parts[b][0] for b in texts], dtype=np.int64)
