"""A mutable model of documents, for single texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from priory.bag_of_words.documents import Document
from priory.bag_of_words.open_counts import OpenCounts
from priory.core.content_hash import scramble_number
from priory.core.typing import Array
from priory.models.cells import Cells, TextCells, hash_bytes
from priory.models.document_model import DocumentModel
from priory.models.evidence_terms import measure_text_length
from priory.models.open_model import OpenPrior, RowEvidence
from priory.models.row_sample import TEXT_COLUMN_NAMES, hash_column_name

BOTH_PARTS = np.arange(2)  # the class prior, and the text


class OpenTexts:
    """A `DocumentModel` that learns, forgets and scores text by text."""

    def __init__(self, model: DocumentModel) -> None:
        self.prior = OpenPrior(model.statistics.n, model.class_prior, model.text.uses_class_prior)
        self.counts = OpenCounts(model.text, model.records)
        self._key = hash_column_name(TEXT_COLUMN_NAMES[0])

    @property
    def n(self) -> Array:
        return self.prior.n

    @staticmethod
    def can_open(model: DocumentModel) -> bool:
        """Whether the cost of a text depends only on the text."""
        return OpenCounts.can_open(model.text, model.records)

    def read_row(self, x: object, learns: bool) -> Document | None:
        """Return a valid text; None for anything else, which is left to the original model."""
        if isinstance(x, str):
            try:
                x.encode()
            except UnicodeError:
                return None
            return x
        return x if isinstance(x, bytes) and _is_utf8(x) else None

    def hash_row(self, row: Document) -> int:
        if not row:
            return 0
        return scramble_number(hash_bytes(row if isinstance(row, bytes) else row.encode()) ^ self._key)

    def make_cells(self, rows: Sequence[Document]) -> list[Cells]:
        return [TextCells(list(rows))]

    def measure_row(self, row: Document) -> int:
        return 100 + len(row)

    # -- learning ------------------------------------------------------------------------------------------------

    def learn(self, row: Document, group: int) -> None:
        self.counts.learn(row, group)
        self.prior.count(group, 1.0)

    def forget(self, row: Document, group: int, is_known: bool, is_new: bool) -> bool:
        if not self.counts.forget(row, group):
            return False
        self.prior.count(group, -1.0)
        return True

    @property
    def needs_record(self) -> bool:
        return False

    def follow_record(self, model: DocumentModel, share: float) -> None:
        """Do nothing: no choice depends on all texts."""

    # -- scoring -------------------------------------------------------------------------------------------------

    def log_joint(self, row: Document) -> Array:
        return self.counts.log_likelihood(row, self.n) + self.log_prior()

    def log_prior(self) -> Array:
        return self.prior.log_declared()

    def estimated_log_prior(self) -> Array:
        return self.prior.log_estimated()

    def find_prior_shift(self) -> Array | None:
        return self.prior.find_shift()

    def evidence(self, row: Document) -> RowEvidence:
        values = np.empty((len(self.n), 2))
        values[:, 0], values[:, 1] = self.prior.log_estimated(), self.counts.log_likelihood(row, self.n)
        return RowEvidence(BOTH_PARTS, values, np.array([1.0, measure_text_length(row)]))

    def column_evidence(self, row: Document) -> RowEvidence:
        return self.evidence(row)

    def list_coded_cells(self, row: Document) -> Sequence[object]:
        return ()

    def list_texts(self, row: Document) -> Sequence[Document]:
        return (row,)


def _is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeError:
        return False
    return True
