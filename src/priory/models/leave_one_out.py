"""Honest scores by subtraction: a row is judged by the model without it, ``total - row``, with no refit.

Nothing new is computed here. A family that remembers arrays is asked about rows x columns cells at once: cell (i, j)
holds the record of column j less row i. A family that remembers values is asked once for each value of each class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from zlib import crc32

import numpy as np

from priory.bag_of_words.documents import PackedDocuments
from priory.core.typing import Array
from priory.families import Text
from priory.families.base import ColumnFamily
from priory.families.leave_one_out import LeaveOneOutResult
from priory.families.value_counts import CategoricalCells, ValueCounts
from priory.models.feature_averaging import averaged_terms, column_inclusion
from priory.models.naive_bayes import ModelStatistics, argmax_evidence, log_class_prior
from priory.models.schema import ColumnBlock, Schema, family_with_prior, instantiate_family, take_columns
from priory.models.table import Table

TermsFunction = Callable[[ColumnFamily, Any, Any], Array]  # the terms of a family for some rows

LEAVE_ONE_OUT_CHUNK_CELLS = 1 << 20  # as many at a time as fit in a few hundred megabytes


def leave_one_out(
    schema: Schema,
    statistics: ModelStatistics,
    table: Table,
    group: Array,
    estimate: str,
    prior: Any,
    average: bool = False,
) -> Array:
    """log p(c, x) for each row from the model that has not learned it (rows of weight one)."""
    joint = leave_one_out_prior(statistics, group, prior)
    cells = schema.read_cells(table)
    step = max(1, LEAVE_ONE_OUT_CHUNK_CELLS // (len(schema.names) * len(statistics.n)))
    for start in range(0, table.rows, step):
        part = slice(start, start + step)
        some = [block[part] for block in cells]
        joint[part] += leave_one_out_terms(schema, statistics, some, group[part], estimate, average).sum(axis=2)
    return joint


def assign_folds_by_content(cells: list[Any], rows: int, folds: int) -> Array:
    """A fold for each row by what it holds: rows that are alike are in one fold, and their order changes nothing."""
    code = np.zeros(rows, dtype=np.uint64)
    for block in cells:
        for column in _hash_columns(block):
            code = (code ^ column) * np.uint64(0x9E3779B97F4A7C15)
            code ^= code >> np.uint64(29)
    if len(np.unique(code)) < 10 * folds:  # a few kinds of rows: without one of them its fold would be a riddle
        return np.arange(rows) % folds
    return np.asarray(code % np.uint64(folds), dtype=np.int64)


def _hash_columns(block: Any) -> Iterable[Array]:
    """The columns of a block, a number for each cell."""
    if isinstance(block, list | PackedDocuments):
        return [np.array([crc32(t if isinstance(t, bytes) else t.encode(errors="replace")) for t in block], np.uint64)]
    if isinstance(block, CategoricalCells):
        names = [np.array([crc32(str(v).encode()) for v in values] + [0], np.uint64) for values in block.values]
        return [name[codes] for name, codes in zip(names, block.codes.T, strict=True)]
    return np.ascontiguousarray(np.asarray(block, dtype=np.float64).T + 0.0).view(np.uint64)


def leave_one_out_prior(statistics: ModelStatistics, group: Array, prior: Any) -> Array:
    """log p(c) for each row, one row of its own class less."""
    return np.stack([log_class_prior(_remove_one_row(statistics, c), prior) for c in range(len(statistics.n))])[group]


def _remove_one_row(statistics: ModelStatistics, c: int) -> ModelStatistics:
    one = np.zeros(len(statistics.n))
    one[c] = 1.0
    return ModelStatistics(statistics.classes, statistics.n - one, ())


def leave_one_out_terms(
    schema: Schema, statistics: ModelStatistics, cells: list[Any], group: Array, estimate: str, average: bool = False
) -> Array:
    """log p(x_j | c) for each row, class and column, from the model that has not learned the row."""

    def ask(family: ColumnFamily, record: Any, x: Any) -> Array:
        if average:
            return averaged_terms(family, record, x, estimate, column_inclusion(family, record))
        return family.log_likelihood(record, x, estimate)

    terms = np.zeros((len(group), len(statistics.n), len(schema.names)))
    place = {name: j for j, name in enumerate(schema.names)}
    closed = estimate in ("predictive", "mean") and not average
    for block, records, x in zip(schema.blocks, statistics.parts, cells, strict=True):
        if block.kind == "text":
            text = family_with_prior(block.candidates[0], records[0])
            assert isinstance(text, Text)
            text = text.with_token_averaging() if average else text
            own = text.leave_one_out(records[0], x, group, estimate)
        else:
            own = _leave_out_block(block, records, x, group, ask, closed)
        terms[:, :, [place[name] for name in block.names]] = own
    return terms


def _leave_out_block(
    block: ColumnBlock, records: tuple[Any, ...], x: Any, group: Array, terms_function: TermsFunction, closed_form: bool
) -> Array:
    """Terms (rows, classes, columns) of each row without itself, the family of each cell chosen without it too."""
    answers = [
        _leave_out_by_value(candidate, record, x, group, terms_function, closed_form)
        if isinstance(record, tuple)
        else _leave_out_by_cell(candidate, record, x, group, terms_function)
        for candidate, record in zip(block.candidates, records, strict=True)
    ]
    best = argmax_evidence(np.array([evidence for evidence, _ in answers]))
    terms = answers[0][1]
    for k, (_, own) in enumerate(answers[1:], start=1):
        terms = np.where((best == k)[:, None], own, terms)
    return terms


def _leave_out_by_cell(
    candidate: Any, record: Any, x: Array, group: Array, terms_function: TermsFunction
) -> tuple[Array, Array]:
    """Evidence (rows, columns) and terms (rows, classes, columns) where the record is arrays."""
    rows, groups = len(x), len(record.n)
    evidence, terms = np.full(x.shape, -np.inf), np.zeros((rows, groups, x.shape[1]))
    outside = getattr(record, "outside", np.zeros(record.n.shape)).sum(axis=0)
    can = np.flatnonzero(outside < 2)  # without a row, a column that cannot hold two of them cannot hold the rest
    if not len(can):
        return evidence, terms
    flat = np.asarray(x[:, can], dtype=float).reshape(1, -1)
    part = None
    for c in range(groups):  # what is missing leaves no trace: of the other classes' rows, there is none
        own = np.where(np.repeat(group == c, len(can)), flat, np.nan)
        one = instantiate_family(candidate).observe(own, np.array([c], dtype=np.int32), groups)
        part = one if part is None else part + one
    left = take_columns(record, np.tile(can, rows)) - part
    family = family_with_prior(candidate, left)
    evidence[:, can] = family.evidence(left).reshape(rows, len(can))
    terms[:, :, can] = terms_function(family, left, flat)[0].reshape(groups, rows, len(can)).transpose(1, 0, 2)
    return evidence, terms


def _leave_out_by_value(
    candidate: Any,
    record: tuple[ValueCounts, ...],
    x: Any,
    group: Array,
    terms_function: TermsFunction,
    closed_form: bool,
) -> tuple[Array, Array]:
    """The same where the record is a tally: rows of one class that show the same value have the same answer."""
    rows, groups = len(group), len(record[0].n)
    evidence, terms = np.empty((rows, len(record))), np.empty((rows, groups, len(record)))
    for j, tally in enumerate(record):
        column = (
            x[:, j : j + 1]
            if not isinstance(x, CategoricalCells)
            else CategoricalCells(x.codes[:, j : j + 1], (x.values[j],))
        )
        shown = column.codes[:, 0] if isinstance(column, CategoricalCells) else column[:, 0]
        pairs = np.stack([np.nan_to_num(shown.astype(float), nan=-np.inf), group.astype(float)])
        _, first, back = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
        found = _leave_out_in_closed_form(candidate, tally, column[first], group[first]) if closed_form else None
        if found is None:
            answers = [
                _leave_out_one_value(candidate, tally, column[i : i + 1], group[i : i + 1], groups, terms_function)
                for i in first
            ]
            found = LeaveOneOutResult(np.array([e for e, _ in answers]), np.array([t for _, t in answers]))
        evidence[:, j], terms[:, :, j] = found.evidence[back], found.terms[back]
    return evidence, terms


def _leave_out_in_closed_form(
    candidate: Any, tally: ValueCounts, column: Any, group: Array
) -> LeaveOneOutResult | None:
    """All values at once, where the family knows how; a missing cell leaves everything as it is."""
    kind: Any = candidate if isinstance(candidate, type) else type(candidate)
    declared = None if isinstance(candidate, type) else candidate
    present = column.codes[:, 0] >= 0 if isinstance(column, CategoricalCells) else ~np.isnan(column[:, 0])
    left = kind.leave_one_out(tally, column[present], group[present], declared)
    if left is None or present.all():
        return left
    family = family_with_prior(candidate, (tally,))
    evidence = np.full(len(group), family.evidence((tally,))[0])
    terms = np.zeros((len(group), len(tally.n)))
    evidence[present], terms[present] = left
    return LeaveOneOutResult(evidence, terms)


def _leave_out_one_value(
    candidate: Any, tally: ValueCounts, cell: Any, group: Array, groups: int, terms_function: TermsFunction
) -> tuple[float, Array]:
    left = (tally - instantiate_family(candidate).observe(cell, group, groups)[0],)
    family = family_with_prior(candidate, left)
    return float(family.evidence(left)[0]), terms_function(family, left, cell)[0, :, 0]
