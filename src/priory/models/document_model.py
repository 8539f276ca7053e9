"""Naive Bayes of documents: log p(c | text) from a text model, what it has counted, and a class prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from priory.bag_of_words.text_model import TextModel, TextRecords
from priory.bag_of_words.token_bags import AnyDocuments
from priory.bag_of_words.token_features import TokenFeatures
from priory.core.sparse_rows import SparseRows
from priory.core.typing import Array
from priory.models.cells import Cells, TextCells
from priory.models.class_prior import ResolvedPrior, log_class_prior
from priory.models.evidence_terms import EvidenceTerms, measure_text_lengths
from priory.models.model_statistics import ModelStatistics


@dataclass(frozen=True, eq=False)
class DocumentModel:
    """A text model with its statistics; the cells it is asked about are one column of documents."""

    text: TextModel
    statistics: ModelStatistics
    class_prior: ResolvedPrior = "estimated"

    n_parts: ClassVar[int] = 1  # the text: one term of the log joint besides the class prior

    @property
    def classes(self) -> Array:
        """The labels, sorted."""
        return self.statistics.classes

    @property
    def records(self) -> TextRecords:
        """What was counted."""
        return self.statistics.parts

    @property
    def can_leave_one_out(self) -> bool:
        """Whether documents are left out one by one; where that has no closed form, a whole fold at a time."""
        return self.text.leaves_out_in_closed_form

    def observe(self, cells: Sequence[Cells], group: Array, weight: Array | None) -> ModelStatistics:
        """The statistics of documents, over the classes of this model."""
        return observe_documents(self.text, _read_documents(cells), self.classes, group, weight)

    @property
    def encoded_widths(self) -> list[int]:
        """The number of columns of each block that corrections read as codes: a text is none."""
        return [0]

    def forget(self, cells: Sequence[Cells], group: Array, weight: Array | None) -> Self:
        """The model without documents that it has learned: ``total - part``."""
        return replace(self, statistics=self.statistics - self.observe(cells, group, weight))

    # -- the prior -----------------------------------------------------------------------------------------------

    def log_prior(self) -> Array:
        """(classes,): log p(c), as declared; zero if the bag of words has no use for it."""
        return self._log_prior_of(self.statistics.n)

    def _log_prior_of(self, n: Array) -> Array:
        if not self.text.uses_class_prior and len(n) > 1:
            return np.zeros(len(n))
        return log_class_prior(n, self.class_prior)

    def estimated_log_prior(self) -> Array:
        """(classes,): log p(c), by the documents learned of each class."""
        n = self.statistics.n
        return log_class_prior(n, "estimated") if self.text.uses_class_prior else np.zeros(len(n))

    # -- answers -------------------------------------------------------------------------------------------------

    def log_joint(self, cells: Sequence[Cells]) -> Array:
        """(documents, classes): log p(c, text), up to what all classes share."""
        return self.text.score(self.records, _read_documents(cells)) + self.log_prior()

    def evidence_terms(self, cells: Sequence[Cells]) -> EvidenceTerms:
        """What the class prior and the text say about each document."""
        return self._make_evidence_terms(self.text.score(self.records, _read_documents(cells)), cells)

    def leave_one_out_evidence(self, cells: Sequence[Cells], group: Array) -> EvidenceTerms:
        """What the class prior and the text say about each document, from the model that has not learned it."""
        return self._make_evidence_terms(self.text.leave_one_out(self.records, _read_documents(cells), group), cells)

    def _make_evidence_terms(self, scores: Array, cells: Sequence[Cells]) -> EvidenceTerms:
        """Scores (documents, classes) with the estimated class prior before them, and the length of each text."""
        prior = np.repeat(self.estimated_log_prior()[None], len(scores), axis=0)
        lengths = np.column_stack([np.ones(len(scores)), measure_text_lengths(_read_documents(cells))])
        return EvidenceTerms(np.stack([prior, scores], axis=2), lengths)

    def leave_one_out(self, cells: Sequence[Cells], group: Array) -> Array:
        """(documents, classes): log p(c, text) of learned documents, each from the model that has not learned it."""
        scores = self.text.leave_one_out(self.records, _read_documents(cells), group)
        return scores + self.leave_one_out_prior(group)

    def leave_one_out_prior(self, group: Array) -> Array:
        """(documents, classes): log p(c), with one document less of each document's own class."""
        classes, place = np.unique(group, return_inverse=True)
        without = [self._log_prior_of(self.statistics.n - (np.arange(len(self.classes)) == c)) for c in classes]
        return np.stack(without)[place]

    def find_parts(self) -> list[Array]:
        """The one block is the one part."""
        return [np.zeros(1, dtype=np.int64)]

    def take_texts(self) -> tuple[Self, list[int]]:
        """This model, and its block."""
        return self, [0]

    def count_values(self, block: int, column: int) -> None:
        """There are no columns of values."""

    def choose_token_features(self) -> tuple[TokenFeatures, ...]:
        """The tokens of the documents that can have a weight of their own."""
        return (self.text.choose_features(self.records),)

    def encode_tokens(self, features: Sequence[TokenFeatures], cells: Sequence[Cells]) -> list[SparseRows]:
        """The documents as sparse rows of these tokens."""
        return [self.text.encode_features(chosen, _read_documents(cells)) for chosen in features]


def observe_documents(
    text: TextModel, documents: AnyDocuments, classes: Array, group: Array, weight: Array | None
) -> ModelStatistics:
    """The statistics of documents; ``group`` (documents,) is the class number of each."""
    n = np.bincount(group, weight, minlength=len(classes)).astype(float)
    return ModelStatistics(classes, n, text.count(documents, group, len(classes), weight))


def _read_documents(cells: Sequence[Cells]) -> AnyDocuments:
    [column] = cells
    assert isinstance(column, TextCells)
    return column.data
