"""What texts say about rows that are left out: by the model without the row's fold, and without the row itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

import numpy as np

from priory.core.typing import Array
from priory.models.cells import Cells, take_rows
from priory.models.evidence_terms import EvidenceTerms

MIN_SHARE_ONE_BY_ONE = 0.9  # of the rows: if all others are left out at once, little is missing


class TextTermsModel(Protocol):
    """A model of texts that can forget rows."""

    @property
    def can_leave_one_out(self) -> bool:
        """Whether rows are left out one by one; otherwise a whole fold at a time."""

    def estimated_log_prior(self) -> Array:
        """log p(c), by the rows learned of each class."""

    def evidence_terms(self, cells: Sequence[Cells]) -> EvidenceTerms:
        """What each part says about each row."""

    def leave_one_out_evidence(self, cells: Sequence[Cells], group: Array) -> EvidenceTerms:
        """What each part says about each row, from the model that has not learned the row."""

    def forget(self, cells: Sequence[Cells], group: Array, weight: Array | None) -> Self:
        """The model without these rows."""


def collect_text_terms(
    model: TextTermsModel, cells: Sequence[Cells], group: Array, weight: Array, fold: Array, models: Sequence[int]
) -> list[EvidenceTerms]:
    """For each fold in ``models`` (-1 for none) what texts say without that fold, and without the row.

    Rows are left out one by one where that is quick; others fold by fold, or all at once if they are few.
    """
    one_by_one = (weight == 1) & model.can_leave_one_out
    together = np.where(one_by_one.mean() >= MIN_SHARE_ONE_BY_ONE, 0, fold)  # (rows,): what is left out together
    found = []
    for k in models:
        out, rest = np.flatnonzero(fold == k), np.flatnonzero((fold != k) & ~one_by_one)
        without = model.forget(take_rows(cells, out), group[out], weight[out]) if len(out) else model
        pieces = [(out, without.evidence_terms(take_rows(cells, out)))] if len(out) else []
        single = np.flatnonzero((fold != k) & one_by_one)
        if len(single):
            pieces.append((single, without.leave_one_out_evidence(take_rows(cells, single), group[single])))
        for other in np.unique(together[rest]):
            rows = rest[together[rest] == other]
            some = take_rows(cells, rows)
            pieces.append((rows, without.forget(some, group[rows], weight[rows]).evidence_terms(some)))
        found.append(_put_together(pieces, len(group), without.estimated_log_prior()))
    return found


def _put_together(pieces: list[tuple[Array, EvidenceTerms]], rows: int, log_prior: Array) -> EvidenceTerms:
    """The terms of all rows from those of some of them.

    The class prior is the same for all: with the rows left out missing from it, it would give their classes away.
    """
    _, first = pieces[0]
    values, lengths = np.empty((rows, *first.values.shape[1:])), np.empty((rows, *first.lengths.shape[1:]))
    for at, terms in pieces:
        values[at], lengths[at] = terms.values, terms.lengths
    values[:, :, 0] = log_prior
    return EvidenceTerms(values, lengths)
