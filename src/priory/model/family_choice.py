"""Choose the family of each column by evidence, and leave one row out.

Leave-one-out is by subtraction: each row is scored by the model without it, ``total - row``, without refitting.
Families whose statistics are arrays are evaluated on rows x columns at once: entry (i, j) is the statistics of column j
without row i. Families that count values are evaluated once for each value of each class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray as Array

from priory.families.base import AnyFamily
from priory.families.leave_one_out import LeaveOneOutResult
from priory.families.value_counts import ValueCounts
from priory.model.cells import BlockRecord, CellData, Cells, take_columns
from priory.model.schema import Candidate, ColumnBlock, family_with_prior, instantiate_family

EVIDENCE_TIE_TOLERANCE = 1e-6  # nats


class FamilyChoice(NamedTuple):
    """Columns of one block and their best family."""

    block: int
    positions: Array  # (columns,): within the block
    family: AnyFamily
    statistics: BlockRecord

    def log_likelihood(self, x: CellData, estimate: str) -> Array:
        """log p(x_j | c), (rows, classes, columns)."""
        return self.family.log_likelihood(self.statistics, x, estimate)

    def score(self, x: CellData, estimate: str) -> Array:
        """Log-likelihoods summed over the columns, (rows, classes)."""
        return self.family.score(self.statistics, x, estimate)


def argmax_evidence(evidence: Array) -> Array:
    """Index of the best along the first axis; ties, up to rounding, go to the first (the simplest family)."""
    defined = np.nan_to_num(evidence, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    return np.argmax(defined >= defined.max(axis=0) - EVIDENCE_TIE_TOLERANCE, axis=0)


# (family, statistics, cells) -> terms (rows, classes, columns)
TermsFunction = Callable[[AnyFamily, BlockRecord, CellData], Array]


def leave_out_block(
    block: ColumnBlock, records: Sequence[BlockRecord], cells: Cells, group: Array, estimate: str
) -> Array:
    """Leave-one-out terms (rows, classes, columns); the family is chosen without the row as well."""

    def compute_terms(family: AnyFamily, record: BlockRecord, x: CellData) -> Array:
        return family.log_likelihood(record, x, estimate)

    closed_form = estimate in ("predictive", "mean")
    answers = [
        _leave_out_by_value(candidate, record, cells, group, compute_terms, closed_form)
        if isinstance(record, tuple)
        else _leave_out_by_cell(candidate, record, cells, group, compute_terms)
        for candidate, record in zip(block.candidates, records, strict=True)
    ]
    best = argmax_evidence(np.array([evidence for evidence, _ in answers]))  # (rows, columns)
    terms = answers[0][1]
    # terms of the candidate with the largest evidence, per row and column
    for k, (_, other) in enumerate(answers[1:], start=1):
        terms = np.where((best == k)[:, None], other, terms)
    return terms


def _leave_out_by_cell(
    candidate: Candidate, record: BlockRecord, cells: Cells, group: Array, compute_terms: TermsFunction
) -> tuple[Array, Array]:
    """Evidence (rows, columns) and terms (rows, classes, columns), for statistics that are arrays."""
    assert not isinstance(record, tuple)
    x = np.asarray(cells.data, dtype=float)
    rows, classes = len(x), len(record.n)
    evidence, terms = np.full(x.shape, -np.inf), np.zeros((rows, classes, x.shape[1]))
    # A column with two values outside the family's support keeps at least one of them without any row: skip it.
    outside = getattr(record, "outside", np.zeros(record.n.shape)).sum(axis=0)
    usable = np.flatnonzero(outside < 2)
    if not len(usable):
        return evidence, terms
    # One class at a time: all cells of its rows are laid out as columns of a single row of this class.
    for c in np.unique(group):
        own = np.flatnonzero(group == c)
        flat = x[np.ix_(own, usable)].reshape(1, -1)  # (1, rows x columns)
        part = instantiate_family(candidate).observe(flat, np.array([c], dtype=np.int32), classes)
        left = take_columns(record, np.tile(usable, len(own))) - part
        family = family_with_prior(candidate, left)
        evidence[np.ix_(own, usable)] = family.evidence(left).reshape(len(own), len(usable))
        found = compute_terms(family, left, flat)[0].reshape(classes, len(own), len(usable)).transpose(1, 0, 2)
        terms[np.ix_(own, np.arange(classes), usable)] = found
    return evidence, terms


def _leave_out_by_value(
    candidate: Candidate,
    record: tuple[ValueCounts, ...],
    cells: Cells,
    group: Array,
    compute_terms: TermsFunction,
    closed_form: bool,
) -> tuple[Array, Array]:
    """Evidence and terms for counted values: rows of one class with the same value have the same result."""
    rows, classes = len(group), len(record[0].n)
    evidence, terms = np.empty((rows, len(record))), np.empty((rows, classes, len(record)))
    for j, counts in enumerate(record):
        column = cells.take_columns(np.array([j]))
        # distinct pairs of value and class; ``back`` (rows,) is the pair of each row
        pairs = np.stack([column.rank_column(0), group.astype(float)])
        _, first, back = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
        distinct = column.take_rows(first)
        found = _leave_out_in_closed_form(candidate, counts, distinct, group[first]) if closed_form else None
        if found is None:
            answers = [
                _leave_out_one_value(candidate, counts, column.take_rows(slice(i, i + 1)), group[i], compute_terms)
                for i in first
            ]
            found = LeaveOneOutResult(np.array([e for e, _ in answers]), np.array([t for _, t in answers]))
        evidence[:, j], terms[:, :, j] = found.evidence[back], found.terms[back]
    return evidence, terms


def _leave_out_in_closed_form(
    candidate: Candidate, counts: ValueCounts, column: Cells, group: Array
) -> LeaveOneOutResult | None:
    """Compute all values at once if the family has a closed form; leaving out a missing cell changes nothing."""
    family_class: Any = candidate if isinstance(candidate, type) else type(candidate)
    declared = None if isinstance(candidate, type) else candidate
    present = ~column.find_missing()[:, 0]
    left: LeaveOneOutResult | None = family_class.leave_one_out(
        counts, column.take_rows(present).data, group[present], declared
    )
    if left is None or present.all():
        return left
    family = family_with_prior(candidate, (counts,))
    evidence = np.full(len(group), family.evidence((counts,))[0])
    terms = np.zeros((len(group), len(counts.n)))
    evidence[present], terms[present] = left
    return LeaveOneOutResult(evidence, terms)


def _leave_out_one_value(
    candidate: Candidate, counts: ValueCounts, cell: Cells, c: int, compute_terms: TermsFunction
) -> tuple[float, Array]:
    """Evidence and terms (classes,) of one value of class number ``c``, by subtraction."""
    part = instantiate_family(candidate).observe(cell.data, np.array([c], dtype=np.int32), len(counts.n))
    left = (counts - part[0],)
    family = family_with_prior(candidate, left)
    return float(family.evidence(left)[0]), compute_terms(family, left, cell.data)[0, :, 0]
