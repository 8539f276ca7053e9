"""Naive Bayes for documents: log p(c | text) from a text model, its counts, and a class prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy import ndarray as Array

from priory.core.logspace import log_sum_exp
from priory.core.sparse_rows import sum_entries
from priory.core.statistics import subtract_counts
from priory.model.cells import Cells
from priory.model.model_statistics import ClassModel, EvidenceTerms, ModelStatistics, ResolvedPrior, take_documents
from priory.text.text_model import TextModel
from priory.text.token_bags import AnyDocuments
from priory.text.token_counts import BagCounts


@dataclass(frozen=True, eq=False)
class DocumentModel(ClassModel):
    """A text model with its statistics; its input is one column of documents."""

    text: TextModel
    statistics: ModelStatistics
    class_prior: ResolvedPrior = "estimated"

    n_parts: ClassVar[int] = 1  # the number of terms of the log joint besides the class prior

    @property
    def record(self) -> BagCounts:
        """The counts of the text model."""
        record: BagCounts = self.statistics.parts[0]
        return record

    @property
    def can_leave_one_out(self) -> bool:
        """Whether leave-one-out has a closed form; otherwise whole folds are left out."""
        return self.text.leaves_out_in_closed_form

    def observe(self, cells: Sequence[Cells], group: Array, weight: Array | None) -> ModelStatistics:
        """Statistics of documents, over the classes of this model."""
        return observe_documents(self.text, take_documents(*cells), self.classes, group, weight)

    @property
    def encoded_widths(self) -> list[int]:
        """Number of columns of each block that corrections encode; texts are not encoded."""
        return [0]

    def learn_sample_alone(self, cells: Sequence[Cells], group: Array, weight: Array | None, n: Array) -> Self:
        """The model that has learned a sample of documents, and nothing else."""
        return replace(self, statistics=self.observe(cells, group, weight))

    # -- scores --------------------------------------------------------------------------------------------------

    def log_joint(self, cells: Sequence[Cells]) -> Array:
        """log p(c, text) up to a constant for each document, (documents, classes)."""
        return self.text.score(self.record, take_documents(*cells)) + self.log_prior()

    def log_density(self, cells: Sequence[Cells]) -> Array:
        """log p(text) / p(text by the token shares of all classes together), per token: (documents,)."""
        return self._compare_with_background(cells, None)

    def leave_one_out_density(self, cells: Sequence[Cells], group: Array) -> Array:
        """`log_density` of learned documents, each by the model without it, (documents,)."""
        return self._compare_with_background(cells, group)

    def _compare_with_background(self, cells: Sequence[Cells], group: Array | None) -> Array:
        """Log likelihood ratio per token; an unknown token counts as its share, the share of tokens seen once [1]_.

        .. [1] I. J. Good, "The population frequencies of species and the estimation of population parameters",
           Biometrika 40, 1953.
        """
        # the same token draws for every kind of model: others have no likelihood of a single token
        text = replace(self.text, model="binary" if self.text.binary else "multinomial", alpha=1.0)
        documents = text.vocabulary.read_bags(take_documents(*cells))
        pooled = self.record.pool_classes()
        counts = text.select_counts(pooled)
        indptr, ids, times = text.vocabulary.encode(documents, counts)
        frequency, own = counts.counts.sum(axis=1), np.ones(len(ids)) if text.binary else times
        if group is None:
            by_class = text.score(self.record, documents) + self.log_prior()
            background, is_known = text.score(pooled, documents)[:, 0], np.ones(len(ids), dtype=bool)
        else:
            by_class = text.leave_one_out(self.record, documents, group) + self.leave_one_out_prior(group)
            background = text.leave_one_out(pooled, documents, np.zeros(len(group), dtype=np.int64))[:, 0]
            is_known = frequency[ids] > own
        every = np.ones(len(documents.ids)) if text.binary else documents.occurrences
        length = sum_entries(documents.indptr, every)
        n_unknown = length - sum_entries(indptr.astype(np.int64), np.where(is_known, own, 0.0))
        share = max((frequency == 1).sum(), 1.0) / max(frequency.sum(), 1.0)
        ratio = log_sum_exp(by_class, axis=1) - background + n_unknown * np.log(share)
        return np.asarray(ratio / np.maximum(length, 1.0))

    def log_likelihood_terms(self, cells: Sequence[Cells]) -> Array:
        """log p(text | c) up to a constant, (documents, classes, 1)."""
        return self.text.score(self.record, take_documents(*cells))[:, :, None]

    def leave_one_out_terms(self, cells: Sequence[Cells], group: Array) -> Array:
        """Leave-one-out log p(text | c), (documents, classes, 1): each document is scored by the model without it."""
        return self.text.leave_one_out(self.record, take_documents(*cells), group)[:, :, None]

    def leave_parts_out(
        self, cells: Sequence[Cells], group: Array, weight: Array, parts: Sequence[Array]
    ) -> list[EvidenceTerms] | None:
        """`evidence_terms` without each part of the weights and without the row; None if they are not compiled.

        The class prior is without the part alone: without the row it would give its class away.
        """
        scores = self.text.leave_parts_out(self.record, take_documents(*cells), group, weight, parts)
        found = []
        for part, own in zip(parts, scores or (), strict=False):
            n = subtract_counts(self.statistics.n, np.bincount(group, part, len(self.classes)))
            left = replace(self, statistics=replace(self.statistics, n=n))
            found.append(left._make_evidence_terms(own[:, :, None], cells))
        return found or None

    def leave_one_out(self, cells: Sequence[Cells], group: Array) -> Array:
        """Leave-one-out log p(c, text), (documents, classes)."""
        return self.leave_one_out_terms(cells, group)[:, :, 0] + self.leave_one_out_prior(group)

    def find_parts(self) -> list[Array]:
        """Positions of each block's columns among the parts: a single block and part."""
        return [np.zeros(1, dtype=np.int64)]

    def take_texts(self) -> tuple[Self, list[int]]:
        """The model of the texts alone, and its blocks: this model."""
        return self, [0]

    def count_values(self, block: int, column: int) -> None:
        """Return None: there are no columns of values."""

    def list_texts(self) -> list[tuple[TextModel, BagCounts, int]]:
        """The text model with its counts; the documents are the first block."""
        return [(self.text, self.record, 0)]


def observe_documents(
    text: TextModel, documents: AnyDocuments, classes: Array, group: Array, weight: Array | None
) -> ModelStatistics:
    """Statistics of documents; ``group`` (documents,) is the class number of each."""
    n = np.bincount(group, weight, minlength=len(classes)).astype(float)
    return ModelStatistics(classes, n, (text.count(documents, group, len(classes), weight),))
