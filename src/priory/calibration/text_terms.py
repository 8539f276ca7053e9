"""Evidence of texts for every row, from models without the row and without each fold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from priory.calibration.calibrated_model import CalibratableModel
from priory.core.typing import Array
from priory.models.cells import Cells, take_rows
from priory.models.evidence_terms import EvidenceTerms

MIN_SHARE_ONE_BY_ONE = 0.9  # of the rows: from this share on, the others are left out all at once


def collect_text_terms(
    model: CalibratableModel, cells: Sequence[Cells], group: Array, weight: Array, fold: Array, models: Sequence[int]
) -> list[EvidenceTerms]:
    """Return, for each fold in ``models`` (-1 for none), the evidence of texts without that fold and without the row.

    Rows of weight one are left out one by one if the model can; others fold by fold, or all at once if they are few.
    """
    one_by_one = (weight == 1) & model.can_leave_one_out
    together = np.where(one_by_one.mean() >= MIN_SHARE_ONE_BY_ONE, 0, fold)  # (rows,): groups left out together
    found = []
    for k in models:
        # three kinds of rows: in the fold itself, left out one by one, and left out in groups
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
    """Combine the terms of pieces (rows, terms) into the terms of all rows.

    The class prior is equal for all rows: a prior without the row would give its class away.
    """
    _, first = pieces[0]
    values, lengths = np.empty((rows, *first.values.shape[1:])), np.empty((rows, *first.lengths.shape[1:]))
    for at, terms in pieces:
        values[at], lengths[at] = terms.values, terms.lengths
    values[:, :, 0] = log_prior
    return EvidenceTerms(values, lengths)
