"""Find columns that identify rows (row numbers, sorted ids, keys), and rows that are sorted by class."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from numpy import ndarray as Array

from priory.leakage.audit_tables import AuditColumn, AuditData, measure_trend
from priory.leakage.findings import Effect, Finding, Severity, Suspicion, measure_association

MIN_ROWS_FOR_IDENTIFIER = 20  # with fewer rows, distinct values are no evidence
MIN_DISTINCT_SHARE = 0.9  # minimum share of distinct values of an identifier
IDENTIFIER_NAME_PATTERN = re.compile(
    r"(?:^|[_\W])(?:id|ids|uuid|guid|key|index|idx|rownum|row)$|[a-z](?:Id|ID)$|^unnamed", re.IGNORECASE
)


def explain_identifier(column: AuditColumn, n_train: int) -> str | None:
    """Return why a column looks like an identifier, or None if it does not."""
    present = ~column.is_missing
    rows = int(present.sum())
    if rows < MIN_ROWS_FOR_IDENTIFIER or not column.is_discrete:
        return None
    values = column.codes_and_values[1]
    if len(values) < MIN_DISTINCT_SHARE * rows:
        return None
    if column.numbers is None:
        return "nearly every row has a label of its own"
    # row numbers have equal steps, sorted ids steps of one sign
    steps = np.diff(column.numbers[:n_train][present[:n_train]])
    if len(steps) and ((steps > 0).all() or (steps < 0).all()):
        return "it numbers the rows" if np.unique(steps).size == 1 else "it is sorted like the rows"
    if len(values) == rows and values[-1] - values[0] < 1.1 * rows:
        return "it numbers the rows, shuffled"
    return (
        "it is named like one, and nearly every row has a number of its own"
        if IDENTIFIER_NAME_PATTERN.search(column.name)
        else None
    )


def find(data: AuditData) -> Iterator[Suspicion]:
    for j, column in enumerate(data.columns):
        reason = explain_identifier(column, data.n_train)
        if reason is not None:
            yield from _find_identifier(data, j, column, reason)
    if data.labels is not None:
        yield from _find_sorted_classes(data, data.labels)


def _find_identifier(data: AuditData, j: int, column: AuditColumn, reason: str) -> Iterator[Suspicion]:
    def finding(severity: Severity, more: str, effect: Effect | None) -> Finding:
        return Finding(
            severity,
            "identifier",
            f"column {column.name!r} looks like an identifier: {reason}{more}",
            "Leave it out of the features" + ("; shuffle the rows before splitting." if more else "."),
            columns=(column.name,),
            examples=tuple(column.format_cell(i) for i in range(min(3, data.n_train))),
            effect=effect,
        )

    yield Suspicion(None, lambda: finding(Severity.LOW, "", None))
    votes = data.votes
    if votes is None or column.numbers is None:
        return
    bits, p = measure_association(votes.votes[j].counts)

    def informative_finding() -> Finding:
        effect = Effect.of(votes.mark_correct_rows(), votes.mark_correct_rows([j]))
        return finding(Severity.MEDIUM, f", and it predicts the label ({bits:.2f} bits)", effect)

    yield Suspicion(p, informative_finding)


def _find_sorted_classes(data: AuditData, labels: Array) -> Iterator[Suspicion]:
    """Find rows sorted by class, so that the position of a row predicts its label."""
    bits, p = measure_trend(np.arange(len(labels), dtype=float), labels, len(data.classes))
    yield Suspicion(
        p,
        lambda: Finding(
            Severity.LOW,
            "order",
            f"the rows are not in random order: their position has {bits:.2f} bits of information about the label",
            "Shuffle the rows before splitting, unless they are in order of time.",
        ),
    )
