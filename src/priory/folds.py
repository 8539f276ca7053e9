"""Honest scores by subtraction: a row is judged by the model without it, ``total - row``, with no refit.

Nothing new is computed here. A family that remembers arrays is asked about rows x columns cells at once: cell (i, j)
holds the record of column j less row i. A family that remembers values is asked once for each value of each class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from priory.averaging import averaged, inclusion
from priory.families import Text
from priory.families.family import Columns
from priory.families.tally import Coded, Tally
from priory.logspace import Array
from priory.model import Seen, first_best, log_prior
from priory.schema import Block, Schema, columns_of, observed, with_prior
from priory.table import Table

Ask = Callable[[Columns, Any, Any], Array]  # the terms of a family for some rows

CELLS = 1 << 20  # as many at a time as fit in a few hundred megabytes


def leave_one_out(
    schema: Schema, seen: Seen, table: Table, group: Array, estimate: str, prior: Any, average: bool = False
) -> Array:
    """log p(c, x) for each row from the model that has not learned it (rows of weight one)."""

    def ask(family: Columns, record: Any, x: Any) -> Array:
        if average:
            return averaged(family, record, x, estimate, inclusion(family, record))
        return family.log_likelihood(record, x, estimate)

    joint = np.stack([log_prior(_less_one(seen, c), prior) for c in range(len(seen.n))])[group]
    for block, records, cells in zip(schema.blocks, seen.parts, schema.cells(table), strict=True):
        step = max(1, CELLS // (len(block.names) * len(seen.n)))
        for start in range(0, table.rows, step):
            part = slice(start, start + step)
            if block.kind == "text":
                text = with_prior(block.candidates[0], records[0])
                assert isinstance(text, Text)
                text = text.averaged() if average else text
                joint[part] += text.without(records[0], cells[part], group[part], estimate)[:, :, 0]
            else:
                joint[part] += _terms_without(block, records, cells[part], group[part], ask).sum(axis=-1)
    return joint


def _less_one(seen: Seen, c: int) -> Seen:
    one = np.zeros(len(seen.n))
    one[c] = 1.0
    return Seen(seen.classes, seen.n - one, ())


def _terms_without(block: Block, records: tuple[Any, ...], cells: Any, group: Array, ask: Ask) -> Array:
    """Terms (rows, classes, columns) of each row without itself, the family of each cell chosen without it too."""
    answers = [
        (_by_value if isinstance(record, tuple) else _by_cell)(candidate, record, cells, group, ask)
        for candidate, record in zip(block.candidates, records, strict=True)
    ]
    best = first_best(np.array([evidence for evidence, _ in answers]))
    terms = answers[0][1]
    for k, (_, own) in enumerate(answers[1:], start=1):
        terms = np.where((best == k)[:, None], own, terms)
    return terms


def _by_cell(candidate: Any, record: Any, x: Array, group: Array, ask: Ask) -> tuple[Array, Array]:
    """Evidence (rows, columns) and terms (rows, classes, columns) where the record is arrays."""
    rows, d = x.shape
    groups = len(record.n)
    flat = np.asarray(x, dtype=float).reshape(1, -1)
    part = None
    for c in range(groups):  # what is missing leaves no trace: of the other classes' rows, there is none
        own = np.where(np.repeat(group == c, d), flat, np.nan)
        one = observed(candidate).observe(own, np.array([c], dtype=np.int32), groups)
        part = one if part is None else part + one
    left = columns_of(record, np.tile(np.arange(d), rows)) - part
    family = with_prior(candidate, left)
    terms = ask(family, left, flat)[0].reshape(groups, rows, d)
    return family.evidence(left).reshape(rows, d), terms.transpose(1, 0, 2)


def _by_value(candidate: Any, record: tuple[Tally, ...], x: Any, group: Array, ask: Ask) -> tuple[Array, Array]:
    """The same where the record is a tally: rows of one class that show the same value have the same answer."""
    rows, groups = len(group), len(record[0].n)
    evidence, terms = np.empty((rows, len(record))), np.empty((rows, groups, len(record)))
    for j, tally in enumerate(record):
        column = x[:, j : j + 1] if not isinstance(x, Coded) else Coded(x.codes[:, j : j + 1], (x.values[j],))
        shown = column.codes[:, 0] if isinstance(column, Coded) else column[:, 0]
        pairs = np.stack([np.nan_to_num(shown.astype(float), nan=-np.inf), group.astype(float)])
        _, first, back = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
        answers = [_one_value(candidate, tally, column[i : i + 1], group[i : i + 1], groups, ask) for i in first]
        evidence[:, j] = np.array([e for e, _ in answers])[back]
        terms[:, :, j] = np.array([t for _, t in answers])[back]
    return evidence, terms


def _one_value(candidate: Any, tally: Tally, cell: Any, group: Array, groups: int, ask: Ask) -> tuple[float, Array]:
    left = (tally - observed(candidate).observe(cell, group, groups)[0],)
    family = with_prior(candidate, left)
    return float(family.evidence(left)[0]), ask(family, left, cell)[0, :, 0]
