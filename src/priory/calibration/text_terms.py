"""What texts say about rows that are left out: by the model without the row's fold, and without the row itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

import numpy as np

from priory.core.typing import Array
from priory.models.cells import Cells, take_rows
from priory.models.evidence_terms import EvidenceTerms


class TextTermsModel(Protocol):
    """A model of texts that can forget rows."""

    @property
    def can_leave_one_out(self) -> bool:
        """Whether rows are left out one by one; otherwise a whole fold at a time."""

    def evidence_terms(self, cells: Sequence[Cells]) -> EvidenceTerms:
        """What each part says about each row."""

    def leave_one_out_evidence(self, cells: Sequence[Cells], group: Array) -> EvidenceTerms:
        """What each part says about each row, from the model that has not learned the row."""

    def forget(self, cells: Sequence[Cells], group: Array, weight: Array | None) -> Self:
        """The model without these rows."""


def collect_text_terms(
    model: TextTermsModel, cells: Sequence[Cells], group: Array, weight: Array, fold: Array, models: Sequence[int]
) -> list[EvidenceTerms]:
    """For each fold in ``models`` (-1 for none) what texts say without that fold, and without the row."""
    one_by_one = model.can_leave_one_out and bool((weight == 1).all())
    found = []
    for k in models:
        out, rest = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        without = model.forget(take_rows(cells, out), group[out], weight[out]) if len(out) else model
        pieces = [(out, without.evidence_terms(take_rows(cells, out)))] if len(out) else []
        if one_by_one:
            pieces.append((rest, without.leave_one_out_evidence(take_rows(cells, rest), group[rest])))
        else:
            for other in np.unique(fold[rest]):
                rows = np.flatnonzero(fold == other)
                some = take_rows(cells, rows)
                pieces.append((rows, without.forget(some, group[rows], weight[rows]).evidence_terms(some)))
        found.append(_put_together(pieces, len(group)))
    return found


def _put_together(pieces: list[tuple[Array, EvidenceTerms]], rows: int) -> EvidenceTerms:
    """The terms of all rows from those of some of them."""
    _, first = pieces[0]
    values, lengths = np.empty((rows, *first.values.shape[1:])), np.empty((rows, *first.lengths.shape[1:]))
    for at, terms in pieces:
        values[at], lengths[at] = terms.values, terms.lengths
    return EvidenceTerms(values, lengths)
