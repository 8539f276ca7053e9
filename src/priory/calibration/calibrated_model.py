"""Predict with a model and its corrections; the interface that calibration needs of a model.

`calibrator` fits corrections. Prediction does not import it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, Self

import numpy as np

from priory.bag_of_words.token_features import TokenFeatures
from priory.calibration.corrections import Corrections
from priory.calibration.members import CorrectionRows, encode_rows
from priory.calibration.succession import Succession
from priory.core.logspace import log_normalise
from priory.core.sparse_rows import SparseRows
from priory.core.typing import Array
from priory.models.cells import Cells, take_rows
from priory.models.evidence_terms import EvidenceTerms
from priory.models.model_statistics import ModelStatistics

PREDICTION_CHUNK_CELLS = 1 << 20  # terms computed at a time


class CalibratableModel(Protocol):
    """Interface of a model that can be calibrated."""

    @property
    def classes(self) -> Array:
        """The class labels, sorted."""

    @property
    def statistics(self) -> ModelStatistics:
        """The sufficient statistics of the rows learned."""

    @property
    def n_parts(self) -> int:
        """The number of columns and texts that are scored, without the class prior."""

    @property
    def can_leave_one_out(self) -> bool:
        """Whether the model can leave out single rows; otherwise it leaves out whole folds."""

    def observe(self, cells: Sequence[Cells], group: Array, weight: Array | None) -> ModelStatistics:
        """Return the statistics of rows, over the classes of this model."""

    @property
    def encoded_widths(self) -> Sequence[int]:
        """The number of columns of each block that have codes: zero for a text."""

    def find_parts(self) -> list[Array]:
        """Return the indices of the parts that the columns of each block of cells are."""

    def take_texts(self) -> tuple[Self, list[int]]:
        """Return the model of the texts alone, and the indices of their blocks."""

    def count_values(self, block: int, column: int) -> tuple[Array, Array] | None:
        """Return a column's distinct values and counts (classes, values), or None if it does not count values."""

    def log_prior(self) -> Array:
        """Return log p(c), as declared."""

    def estimated_log_prior(self) -> Array:
        """Return log p(c), estimated from the rows learned of each class."""

    def log_joint(self, cells: Sequence[Cells]) -> Array:
        """Return log p(c, x), uncorrected."""

    def leave_one_out(self, cells: Sequence[Cells], group: Array) -> Array:
        """Return log p(c, x) of learned rows, each from the model without it, uncorrected."""

    def leave_one_out_prior(self, group: Array) -> Array:
        """Return log p(c) for learned rows, each with one row less of its own class."""

    def evidence_terms(self, cells: Sequence[Cells]) -> EvidenceTerms:
        """Return the log likelihood of each part, per row and class."""

    def leave_one_out_evidence(self, cells: Sequence[Cells], group: Array) -> EvidenceTerms:
        """Return the log likelihood of each part, from the model without the row."""

    def choose_token_features(self) -> tuple[TokenFeatures, ...]:
        """Return, for each text, the tokens that regressions may use as features."""

    def encode_tokens(self, features: Sequence[TokenFeatures], cells: Sequence[Cells]) -> list[SparseRows]:
        """Return texts as sparse rows of token features."""

    def forget(self, cells: Sequence[Cells], group: Array, weight: Array | None) -> Self:
        """Return the model without these rows."""


@dataclass(frozen=True)
class CalibratedModel:
    """A model with its corrections, or None for plain naive Bayes.

    With ``is_limited``, probabilities are bounded by the rule of succession (see `succession`).
    """

    model: CalibratableModel
    corrections: Corrections | None
    is_limited: bool = True

    @property
    def succession(self) -> Succession | None:
        """The bound on the probabilities by the number of rows learned, or None."""
        n_rows = float(self.model.statistics.n.sum())
        return Succession(n_rows, self.model.estimated_log_prior()) if self.is_limited else None

    def log_probabilities(self, cells: Sequence[Cells]) -> Array:
        """(rows, classes): log p(c | x) after all corrections.

        Corrections and the limit use the estimated class prior. A declared prior replaces it afterwards.
        """
        prior, estimated, rows = self.model.log_prior(), self.model.estimated_log_prior(), len(cells[0])
        # Chunks of rows bound the memory of the evidence terms (rows, classes, 1 + parts).
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
        tokens = partial(self.model.encode_tokens, corrections.tokens, cells)
        return encode_rows(corrections.encoding, cells, corrections.reads_scores, text_logits, tokens)

    def split_evidence(self, cells: Sequence[Cells]) -> EvidenceSplit:
        """Split the log odds of each row into the class prior, the weighted parts, and the remaining corrections."""
        terms = self.model.evidence_terms(cells)
        prior, estimated = self.model.log_prior(), self.model.estimated_log_prior()
        weights, rest = np.ones(terms.lengths.shape), np.zeros((len(cells[0]), len(prior)))
        if self.corrections is not None:
            weights = self.corrections.tempering.part_weights(terms.lengths)
            # what the weighted terms (rows, classes, parts) do not explain of the corrected log odds
            rest = self._log_probabilities(cells) - np.einsum("ncb,nb->nc", terms.relative_to_best, weights)
            rest -= rest.mean(axis=1, keepdims=True)
            prior = estimated * weights[0, 0] + (prior - estimated)
        return EvidenceSplit(weights, prior, rest, self.log_probabilities(cells), self.succession)


@dataclass(frozen=True)
class EvidenceSplit:
    """The terms of the log odds, from which the lines of a ledger are made."""

    weights: Array  # (rows, 1 + parts): of the class prior and of each part
    prior: Array  # (classes,): the weighted log prior
    rest: Array  # (rows, classes): corrections by several columns together
    answers: Array  # (rows, classes): log p(c | x), bounded by the rule of succession
    succession: Succession | None

    @property
    def prior_name(self) -> str:
        """The name of the prior in a ledger, which tells whether it is tempered."""
        return "prior" if (self.weights[:, 0] == 1.0).all() else "prior (tempered)"

    def finish_lines(self, lines: Array, rows: slice) -> tuple[Array, list[str]]:
        """Append the lines of no part to the lines (rows, classes, lines); return them and the new names."""
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
    """Return the number of evidence terms of a row: one per class for the prior and for each part."""
    return len(model.classes) * (1 + model.n_parts)


def find_column_parts(model: CalibratableModel) -> list[Array]:
    """Return the part indices of the columns of each block; none for texts."""
    texts = set(model.take_texts()[1])
    return [parts[:0] if b in texts else parts for b, parts in enumerate(model.find_parts())]


def find_text_parts(model: CalibratableModel) -> Array:
    """Return the indices of the parts that are texts."""
    parts, texts = model.find_parts(), model.take_texts()[1]
    return np.array([parts[b][0] for b in texts], dtype=np.int64)
