"""Naive Bayes of documents: a declared text model, what was learned, and the class prior.

model = text model + statistics
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.sparse import csr_array

from priory.bag_of_words.documents import DocumentBatch
from priory.bag_of_words.text_model import TextModel, TextRecords
from priory.core.typing import Array
from priory.models.cells import Cells, TextCells
from priory.models.class_prior import log_class_prior
from priory.models.evidence_terms import EvidenceTerms, measure_text_lengths
from priory.models.model_statistics import ModelStatistics


@dataclass(frozen=True, eq=False)
class DocumentModel:
    """Naive Bayes of documents; its only cells are one column of texts."""

    text: TextModel
    statistics: ModelStatistics
    class_prior: str | Array = "estimated"

    @property
    def classes(self) -> Array:
        """The labels, sorted."""
        return self.statistics.classes

    @property
    def n_parts(self) -> int:
        """The text is the only part of the evidence, besides the class prior."""
        return 1

    @property
    def can_leave_one_out(self) -> bool:
        """Whether documents are left out one by one; where that has no closed form, a whole fold at a time."""
        return self.text.leaves_out_in_closed_form

    @property
    def records(self) -> TextRecords:
        """The counts of tokens."""
        return self.statistics.parts

    def observe(self, documents: DocumentBatch, classes: Array, group: Array, weight: Array | None) -> ModelStatistics:
        """The statistics of documents; ``group`` is the class number of each."""
        n = np.bincount(group, weight, minlength=len(classes)).astype(float)
        return ModelStatistics(classes, n, self.text.count(documents, group, len(classes), weight))

    def forget(self, cells: Sequence[Cells], group: Array, weight: Array | None) -> Self:
        """The model without documents that it has learned: ``total - part``."""
        part = self.observe(_documents(cells), self.classes, group, weight)
        return replace(self, statistics=self.statistics - part)

    # -- the prior -----------------------------------------------------------------------------------------------

    def log_prior(self) -> Array:
        """(classes,): log p(c), as declared; zero in models that have none."""
        return self._log_prior(self.statistics.n, self.class_prior)

    def estimated_log_prior(self) -> Array:
        """(classes,): log p(c), by the documents learned of each class; zero in models that have none."""
        return self._log_prior(self.statistics.n, "estimated")

    def _log_prior(self, n: Array, class_prior: str | Array) -> Array:
        if not self.text.uses_class_prior and len(n) > 1:
            return np.zeros(len(n))
        return log_class_prior(n, class_prior)

    # -- answers -------------------------------------------------------------------------------------------------

    def log_joint(self, cells: Sequence[Cells]) -> Array:
        """(documents, classes): log p(c, document), up to a term that all classes of a document share."""
        return self.text.score(self.records, _documents(cells)) + self.log_prior()

    def leave_one_out(self, cells: Sequence[Cells], group: Array) -> Array:
        """(documents, classes): log p(c, document) of learned documents, each from the model without it."""
        return self.text.leave_one_out(self.records, _documents(cells), group) + self.leave_one_out_prior(group)

    def leave_one_out_prior(self, group: Array) -> Array:
        """(documents, classes): log p(c), with one document less of each document's own class."""
        counts = self.statistics.n - np.eye(len(self.classes))
        return np.stack([self._log_prior(n, self.class_prior) for n in counts])[group]

    def evidence_terms(self, cells: Sequence[Cells]) -> EvidenceTerms:
        """What the class prior and the text say about each document."""
        return self._make_evidence_terms(self.text.score(self.records, _documents(cells)), cells)

    def leave_one_out_evidence(self, cells: Sequence[Cells], group: Array) -> EvidenceTerms:
        """What the class prior and the text say about each learned document, from the model without it."""
        return self._make_evidence_terms(self.text.leave_one_out(self.records, _documents(cells), group), cells)

    def _make_evidence_terms(self, scores: Array, cells: Sequence[Cells]) -> EvidenceTerms:
        prior = np.repeat(self.estimated_log_prior()[None], len(scores), axis=0)
        lengths = np.column_stack([np.ones(len(scores)), measure_text_lengths(_documents(cells))])
        return EvidenceTerms(np.stack([prior, scores], axis=2), lengths)

    def encode_tokens(self, cells: Sequence[Cells]) -> list[csr_array]:
        """The documents as sparse rows of their tokens."""
        return [self.text.encode(self.records, _documents(cells))]


def _documents(cells: Sequence[Cells]) -> DocumentBatch:
    texts = cells[0]
    assert isinstance(texts, TextCells)
    return texts.data
