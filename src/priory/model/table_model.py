"""Naive Bayes: log p(c | x) = log p(c) + Σ_j log p(x_j | c) − log p(x), from one record of what was learned.

    model = schema + statistics

A `Model` holds both, with the declared class prior and the kind of parameter estimate. Everything else is a function of
these: the family of each column, the probability that each column depends on the class, and the terms of the sum above.

The family of each column is chosen by evidence. Leave-one-out is by subtraction: each row is scored by the model
without it, ``total - row``, without refitting. Families whose statistics are arrays are evaluated on rows x columns at
once: entry (i, j) is the statistics of column j without row i. Families that count values are evaluated once for each
value of each class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy import ndarray as Array

from priory.core.logspace import log_sum_exp
from priory.core.value_counts import ValueCounts
from priory.families.base import AnyFamily
from priory.families.dirichlet import DIRICHLET_ALPHA_GRID
from priory.families.leave_one_out import LeaveOneOutResult
from priory.model.cells import (
    BlockRecord,
    Cells,
    LabelCells,
    NumberCells,
    TextCells,
    find_filled,
    place_columns,
    take_columns,
    take_rows,
)
from priory.model.model_statistics import ClassModel, ModelStatistics, ResolvedPrior
from priory.model.schema import Candidate, ColumnBlock, Schema, family_with_prior, instantiate_family
from priory.text.text_model import TextModel
from priory.text.token_counts import BagCounts

EVIDENCE_TIE_TOLERANCE = 1e-6  # nats


def observe_cells(
    schema: Schema, blocks: Sequence[Cells], classes: Array, group: Array, weight: Array | None
) -> ModelStatistics:
    """Statistics of rows given as blocks of cells; ``group`` (rows,) is the class number of each row."""
    group = np.ascontiguousarray(group, dtype=np.int32)
    n = np.bincount(group, weight, minlength=len(classes)).astype(float)
    parts = tuple(
        tuple(instantiate_family(c).observe(cells.data, group, len(classes), weight) for c in block.candidates)
        for block, cells in zip(
            schema.blocks, blocks, strict=False
        )  # a table of empty columns has a block of no columns
    )
    return ModelStatistics(classes, n, parts)


def make_empty_statistics(schema: Schema, classes: Array) -> ModelStatistics:
    """The statistics of no rows, the zero of addition."""
    cells = [block.make_missing_cells(0) for block in schema.blocks]
    return observe_cells(schema, cells, classes, np.zeros(0, dtype=np.int32), None)


def rearrange_blocks(statistics: ModelStatistics, old: Schema, new: Schema) -> ModelStatistics:
    """Rearrange statistics to the blocks of another schema; columns that only the new schema has are empty."""
    if [block.names for block in old.blocks] == [block.names for block in new.blocks]:
        return statistics
    parts = []
    for block, records in zip(new.blocks, make_empty_statistics(new, statistics.classes).parts, strict=True):
        # copy the columns of every old block that this new block has
        for other, learned in zip(old.blocks, statistics.parts, strict=True):
            columns, places = block.match_columns(other)
            if len(columns):
                pairs = zip(records, learned, strict=True)
                records = tuple(place_columns(wide, take_columns(known, columns), places) for wide, known in pairs)
        parts.append(records)
    sample = statistics.sample
    if sample is not None:
        cells = (block.gather_cells(old.blocks, sample.blocks, len(sample)) for block in new.blocks)
        sample = replace(sample, blocks=tuple(cells))
    return replace(statistics, parts=tuple(parts), sample=sample)


class FamilyChoice(NamedTuple):
    """Columns of one block and their best family."""

    block: int
    positions: Array  # (columns,): within the block
    family: AnyFamily
    statistics: BlockRecord


def argmax_evidence(evidence: Array) -> Array:
    """Index of the best along the first axis; ties, up to rounding, go to the first (the simplest family)."""
    defined = np.nan_to_num(evidence, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    return np.argmax(defined >= defined.max(axis=0) - EVIDENCE_TIE_TOLERANCE, axis=0)


def leave_out_block(
    block: ColumnBlock, records: Sequence[BlockRecord], cells: Cells, group: Array, estimate: str
) -> Array:
    """Leave-one-out terms (rows, classes, columns); the family is chosen without the row as well."""
    answers = [
        _leave_out_by_value(candidate, record, cells, group, estimate)
        if isinstance(record, tuple)
        else _leave_out_by_cell(candidate, record, cells, group, estimate)
        for candidate, record in zip(block.candidates, records, strict=True)
    ]
    best = argmax_evidence(np.array([evidence for evidence, _ in answers]))  # (rows, columns)
    terms = answers[0][1]
    # terms of the candidate with the largest evidence, per row and column
    for k, (_, other) in enumerate(answers[1:], start=1):
        terms = np.where((best == k)[:, None], other, terms)
    return terms


def _leave_out_by_cell(
    candidate: Candidate, record: BlockRecord, cells: Cells, group: Array, estimate: str
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
        found = (
            family.log_likelihood(left, flat, estimate)[0].reshape(classes, len(own), len(usable)).transpose(1, 0, 2)
        )
        terms[np.ix_(own, np.arange(classes), usable)] = found
    return evidence, terms


def _leave_out_by_value(
    candidate: Candidate, record: tuple[ValueCounts, ...], cells: Cells, group: Array, estimate: str
) -> tuple[Array, Array]:
    """Evidence and terms for counted values: rows of one class with the same value have the same result."""
    rows, classes, has_closed_form = len(group), len(record[0].n), estimate in ("predictive", "mean")
    evidence, terms = np.empty((rows, len(record))), np.empty((rows, classes, len(record)))
    for j, counts in enumerate(record):
        column = cells.take_columns(np.array([j]))
        assert isinstance(column, NumberCells | LabelCells)  # texts have a closed form of their own
        # distinct pairs of value and class; ``back`` (rows,) is the pair of each row
        pairs = np.stack([column.rank_column(0), group.astype(float)])
        _, first, back = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
        distinct = column.take_rows(first)
        found = _leave_out_in_closed_form(candidate, counts, distinct, group[first]) if has_closed_form else None
        if found is None:
            answers = [
                _leave_out_one_value(candidate, counts, column.take_rows(slice(i, i + 1)), group[i], estimate)
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
    candidate: Candidate, counts: ValueCounts, cell: Cells, c: int, estimate: str
) -> tuple[float, Array]:
    """Evidence and terms (classes,) of one value of class number ``c``, by subtraction."""
    part = instantiate_family(candidate).observe(cell.data, np.array([c], dtype=np.int32), len(counts.n))
    left = (counts - part[0],)
    family = family_with_prior(candidate, left)
    return float(family.evidence(left)[0]), family.log_likelihood(left, cell.data, estimate)[0, :, 0]


MAX_ROWS_TO_LEAVE_ONE_OUT, MAX_CLASSES_TO_LEAVE_ONE_OUT = 50_000, 64
MIN_SMOOTHING_SHARE = 0.05  # virtual rows per value, relative to the smallest class: fewer are not reported
LEAVE_ONE_OUT_CHUNK_CELLS = 1 << 20  # terms computed at a time: a few hundred megabytes


@dataclass(frozen=True, eq=False)
class Model(ClassModel):
    """Naive Bayes for a table: declared parameters and learned statistics."""

    schema: Schema
    statistics: ModelStatistics
    estimate: str = "predictive"
    class_prior: ResolvedPrior = "estimated"

    @property
    def n_parts(self) -> int:
        """Number of columns; each is one term of the log joint."""
        return len(self.schema.names)

    @property
    def can_leave_one_out(self) -> bool:
        """Whether to leave out rows one by one.

        With many rows or classes, or texts without a closed form, leaving out whole folds is as unbiased, and faster.
        """
        texts = [block.text_family() for block in self.schema.blocks if block.kind == "text"]
        quick = all(text.build_model(self.estimate).leaves_out_in_closed_form for text in texts)
        few = len(self.classes) <= MAX_CLASSES_TO_LEAVE_ONE_OUT and self.statistics.n.sum() <= MAX_ROWS_TO_LEAVE_ONE_OUT
        return quick and bool(few)

    def observe(self, cells: Sequence[Cells], group: Array, weight: Array | None) -> ModelStatistics:
        """Statistics of rows, over the classes of this model."""
        return observe_cells(self.schema, cells, self.classes, group, weight)

    @property
    def encoded_widths(self) -> list[int]:
        """Number of columns of each block that corrections encode; texts are not encoded."""
        return [0 if block.kind == "text" else len(block.names) for block in self.schema.blocks]

    def learn_sample_alone(self, cells: Sequence[Cells], group: Array, weight: Array | None, n: Array) -> Self:
        """The model with the texts of a sample alone, and its ``n`` (classes,) rows; its columns stay as they are."""
        texts, blocks = self.take_texts()
        counted = texts.observe([cells[b] for b in blocks], group, weight)
        parts = dict(enumerate(self.statistics.parts)) | dict(zip(blocks, counted.parts, strict=True))
        return replace(self, statistics=replace(self.statistics, n=n, parts=tuple(parts.values())))

    # -- the families --------------------------------------------------------------------------------------------

    def compute_evidence(self) -> list[list[tuple[AnyFamily, Array]]]:
        """For each block, the candidates with their priors and their log evidence (columns,)."""
        blocks = []
        for block, records in zip(self.schema.blocks, self.statistics.parts, strict=True):
            families = [family_with_prior(c, record) for c, record in zip(block.candidates, records, strict=True)]
            blocks.append([(f, f.evidence(record)) for f, record in zip(families, records, strict=True)])
        return blocks

    def choices(self) -> list[FamilyChoice]:
        """The family with the largest evidence for every column, as a function of the statistics."""
        return self.statistics.derive("chosen", lambda _: self._best_choices(), self.schema)

    def _best_choices(self) -> list[FamilyChoice]:
        choices = []
        for b, candidates in enumerate(self.compute_evidence()):
            # evidence (candidates, columns) -> the best candidate of each column
            best = argmax_evidence(np.array([evidence for _, evidence in candidates]))
            for k in range(len(candidates)):
                positions = np.flatnonzero(best == k)
                if len(positions):
                    choices.append(self._make_choice(b, k, positions))
        return choices

    def describe_smoothing(self) -> str:
        """Describe the number of virtual rows per value, if it is large compared to the learned rows; otherwise ""."""
        n = self.statistics.n
        # the number of virtual rows from which they are worth reporting
        least = MIN_SMOOTHING_SHARE * n[n > 0].min(initial=np.inf)
        if self.estimate == "ml" or least > DIRICHLET_ALPHA_GRID.max():
            return ""
        found = [
            choice.family.count_virtual_rows(j) or 0.0
            for choice in self.choices()
            if isinstance(self.schema.blocks[choice.block].candidates[0], type)  # an instance has declared virtual rows
            for j in range(len(choice.positions))
        ]
        if max(found, default=0.0) < least:
            return ""
        numbers = sorted({min(filter(None, found)), max(found)})
        return f"{' to '.join(f'{number:g}' for number in numbers)} virtual rows of each value"

    def _make_choice(self, b: int, k: int, positions: Array) -> FamilyChoice:
        """Choose candidate ``k`` for some columns of block ``b``."""
        record = take_columns(self.statistics.parts[b][k], positions)
        return FamilyChoice(b, positions, family_with_prior(self.schema.blocks[b].candidates[k], record), record)

    def find_filled_columns(self) -> set[str]:
        """The columns with at least one learned cell."""
        names: set[str] = set()
        for block, (record, *_) in zip(self.schema.blocks, self.statistics.parts, strict=True):
            names.update(name for name, filled in zip(block.names, find_filled(record), strict=True) if filled)
        return names

    # -- scores --------------------------------------------------------------------------------------------------

    def log_joint(self, cells: Sequence[Cells]) -> Array:
        """log p(c, x) up to a constant for each row, (rows, classes)."""
        # (rows, classes)
        joint = np.repeat(self.log_prior()[None], len(cells[0]), axis=0)
        for choice in self.choices():
            block = cells[choice.block].view_columns(choice.positions)
            joint += choice.family.score(choice.statistics, block, self.estimate)
        return joint

    def log_likelihood_terms(self, cells: Sequence[Cells]) -> Array:
        """log p(x_j | c), (rows, classes, columns), with the columns in the order of the schema."""
        terms = np.zeros((len(cells[0]), len(self.classes), len(self.schema.names)))
        places = self.schema.find_places()
        for choice in self.choices():
            block = cells[choice.block].take_columns(choice.positions)
            columns = places[choice.block][choice.positions]
            terms[:, :, columns] = choice.family.log_likelihood(choice.statistics, block.data, self.estimate)
        return terms

    def log_density(self, cells: Sequence[Cells]) -> Array:
        """log p(x), the sum over all classes, (rows,)."""
        return log_sum_exp(self.log_joint(cells), axis=1)

    def leave_one_out_density(self, cells: Sequence[Cells], group: Array) -> Array:
        """log p(x) of learned rows, each by the model without it, (rows,)."""
        return log_sum_exp(self.leave_one_out(cells, group), axis=1)

    def find_parts(self) -> list[Array]:
        """Positions of each block's columns among the parts of the evidence."""
        return self.schema.find_places()

    def take_texts(self) -> tuple[Model, list[int]]:
        """The model of the text columns alone, and the indices of their blocks."""
        blocks = [b for b, block in enumerate(self.schema.blocks) if block.kind == "text"]
        chosen = tuple(self.schema.blocks[b] for b in blocks)
        schema = Schema(tuple(name for block in chosen for name in block.names), chosen)
        statistics = replace(self.statistics, parts=tuple(self.statistics.parts[b] for b in blocks))
        return replace(self, schema=schema, statistics=statistics), blocks

    def count_values(self, block: int, column: int) -> tuple[Array, Array] | None:
        """The learned values of a column and their counts (classes, values); None if values are not counted."""
        for candidate, record in zip(self.schema.blocks[block].candidates, self.statistics.parts[block], strict=True):
            counted = instantiate_family(candidate).value_counts(record)
            if counted is not None:
                return counted[column].values, counted[column].counts
        return None

    def list_texts(self) -> list[tuple[TextModel, BagCounts, int]]:
        """The text model, its counts and the block of each column of texts."""
        blocks = enumerate(zip(self.schema.blocks, self.statistics.parts, strict=True))
        return [
            (block.text_family().build_model(), records[0], b) for b, (block, records) in blocks if block.kind == "text"
        ]

    # -- leave-one-out scores of learned rows --------------------------------------------------------------------

    def leave_one_out(self, cells: Sequence[Cells], group: Array) -> Array:
        """Leave-one-out log p(c, x), (rows, classes): each row (of weight one) is scored by the model without it."""
        joint = self.leave_one_out_prior(group)
        # in chunks of rows, to bound the memory of the terms (rows, classes, columns)
        step = max(1, LEAVE_ONE_OUT_CHUNK_CELLS // (len(self.schema.names) * len(self.classes)))
        for start in range(0, len(group), step):
            part = slice(start, start + step)
            joint[part] += self.leave_one_out_terms(take_rows(cells, part), group[part]).sum(axis=2)
        return joint

    def leave_one_out_terms(self, cells: Sequence[Cells], group: Array) -> Array:
        """Leave-one-out log p(x_j | c), (rows, classes, columns)."""
        terms = np.zeros((len(group), len(self.classes), len(self.schema.names)))
        blocks = zip(self.schema.blocks, self.schema.find_places(), self.statistics.parts, cells, strict=False)
        for block, places, records, x in blocks:
            if isinstance(x, TextCells):
                terms[:, :, places] = block.text_family().leave_one_out(records[0], x.data, group, self.estimate)
            else:
                terms[:, :, places] = leave_out_block(block, records, x, group, self.estimate)
        return terms
