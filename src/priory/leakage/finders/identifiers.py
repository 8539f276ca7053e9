"""Columns that name rows instead of describing them: row numbers, sorted ids, keys; and rows sorted by their class."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from priory.core.typing import Array
from priory.leakage.audit_tables import Cells, Evidence
from priory.leakage.column_votes import binned, tallied
from priory.leakage.findings import Effect, Finding, Severity, Suspicion
from priory.leakage.significance import association

LEAST = 20  # rows, before distinct values mean anything
DISTINCT = 0.9  # of the values, of a column that names rows
NAMED = re.compile(r"(?:^|[_\W])(?:id|ids|uuid|guid|key|index|idx|rownum|row)$|[a-z](?:Id|ID)$|^unnamed", re.IGNORECASE)


def reason(column: Cells, train: int) -> str | None:
    """Why a column is taken for an identifier, or None."""
    present = ~column.missing
    rows = int(present.sum())
    if rows < LEAST or not column.whole:
        return None
    values = column.coded[1]
    if len(values) < DISTINCT * rows:
        return None
    if column.numbers is None:
        return "nearly every row has a label of its own"
    steps = np.diff(column.numbers[:train][present[:train]])
    if len(steps) and ((steps > 0).all() or (steps < 0).all()):
        return "it numbers the rows" if np.unique(steps).size == 1 else "it is sorted like the rows"
    if len(values) == rows and values[-1] - values[0] < 1.1 * rows:
        return "it numbers the rows, shuffled"
    return "its name says so, and nearly every row has a number of its own" if NAMED.search(column.name) else None


def find(evidence: Evidence) -> Iterator[Suspicion]:
    for j, column in enumerate(evidence.columns):
        why = reason(column, evidence.train)
        if why is not None:
            yield from _named(evidence, j, column, why)
    if evidence.labels is not None:
        yield from _sorted(evidence, evidence.labels)


def _named(evidence: Evidence, j: int, column: Cells, why: str) -> Iterator[Suspicion]:
    def finding(severity: Severity, more: str, effect: Effect | None) -> Finding:
        return Finding(
            severity,
            "identifier",
            f"column {column.name!r} looks like an identifier: {why}{more}",
            "Leave it out of the features" + ("; shuffle the rows before splitting." if more else "."),
            columns=(column.name,),
            examples=tuple(column.shown(i) for i in range(min(3, evidence.train))),
            effect=effect,
        )

    yield Suspicion(None, lambda: finding(Severity.LOW, "", None))
    votes = evidence.votes
    if votes is None or column.numbers is None:
        return
    bits, p = association(votes.votes[j].counts)

    def telling() -> Finding:
        effect = Effect(float(votes.right().mean()), float(votes.right([j]).mean()), evidence.train)
        return finding(Severity.MEDIUM, f", and it knows the label ({bits:.2f} bits)", effect)

    yield Suspicion(p, telling)


def _sorted(evidence: Evidence, labels: Array) -> Iterator[Suspicion]:
    """Classes that come in blocks: the place of a row knows its label."""
    places, size = binned(np.arange(len(labels), dtype=float), len(labels))
    bits, p = association(tallied(places, size, labels, len(evidence.classes)))
    yield Suspicion(
        p,
        lambda: Finding(
            Severity.LOW,
            "order",
            f"the rows are not in random order: a row's place holds {bits:.2f} bits about its label",
            "Shuffle before splitting, unless the order is time.",
        ),
    )
