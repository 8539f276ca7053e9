"""Groups on both sides: a patient with one scan in train and one in test. Where no groups are given, columns that look
like groups are suggested: labels or whole numbers that repeat a little, whose rows are more alike than other rows are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from priory.leakage.audit_tables import Cells, Evidence
from priory.leakage.findings import Finding, Severity, Suspicion
from priory.leakage.significance import better, interval

LEAST = 20  # different values, of a column that may be a group
REPEATED = 1.1  # rows for each value, at least


def find(evidence: Evidence) -> Iterator[Suspicion]:
    if evidence.groups is not None:
        yield from _shared(evidence, evidence.groups, None)
        return
    for j, column in enumerate(evidence.columns):
        if _may_group(column, evidence.train):
            p = more_alike(evidence, j)
            if p is not None:
                yield from _shared(evidence, column, p)


def _shared(evidence: Evidence, column: Cells, p: float | None) -> Iterator[Suspicion]:
    """Rows whose group is on the other side too, or, with one table, has more than one row."""
    codes, values = column.coded
    train, test = codes[: evidence.train], codes[evidence.train :]
    if evidence.test:
        hit = np.isin(test, train[train >= 0]) & (test >= 0)
        both = np.isin(train, test[hit])
        rows, test_rows = np.flatnonzero(both), np.flatnonzero(hit)
    else:
        times = np.bincount(train[train >= 0], minlength=len(values))
        hit = (train >= 0) & (times[train] > 1)
        rows, test_rows = np.flatnonzero(hit), np.zeros(0, dtype=np.int64)
    if not hit.any():
        return
    kinds = len(np.unique((test if evidence.test else train)[hit]))
    looks = "" if p is None else "; rows that share a value are more alike than others, so it looks like a group"
    where = (
        "of the test rows are of a group that is in the training table"
        if evidence.test
        else "of the rows share a group"
    )
    severity = Severity.HIGH if evidence.test and p is None else Severity.MEDIUM if evidence.test else Severity.LOW
    yield Suspicion(
        p,
        lambda: Finding(
            severity,
            "groups",
            f"{hit.mean():.1%} {where} by {column.name!r} ({kinds:,} values){looks}",
            f"Keep each group on one side: GroupKFold, or groups={column.name!r}.",
            columns=(column.name,),
            rows=tuple(rows.tolist()),
            test_rows=tuple(test_rows.tolist()),
            examples=tuple(str(values[c]) for c in np.unique((test if evidence.test else train)[hit])[:5]),
            interval=interval(float(hit.sum()), len(hit)),
            effect=evidence.score_without(rows) if evidence.test else None,
        ),
    )


def _may_group(column: Cells, train: int) -> bool:
    if not column.whole:
        return False
    codes = column.coded[0][:train]
    rows, kinds = int((codes >= 0).sum()), len(np.unique(codes[codes >= 0]))
    return kinds >= max(LEAST, np.sqrt(rows)) and rows >= REPEATED * kinds


def more_alike(evidence: Evidence, j: int) -> float | None:
    """The chance that rows which share a value are as alike in the other columns as here, if sharing meant nothing.

    One row of each value is compared with another of its value and with one of the next value, so that a measurement,
    whose neighbours are alike too, is not taken for a group; the sign of the difference is a coin's.
    """
    codes = evidence.columns[j].coded[0][: evidence.train]
    shuffled = np.random.default_rng(0).permutation(np.flatnonzero(codes >= 0))
    order = shuffled[np.argsort(codes[shuffled], kind="stable")]
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    several = np.diff(starts, append=len(order)) > 1
    first, twin, stranger = order[starts[several]], order[starts[several] + 1], order[np.roll(starts, -1)[several]]
    others = [evidence.bins(c)[0] for k, c in enumerate(evidence.columns) if k != j]
    if evidence.group is not None:
        others.append(evidence.group)
    if not len(first) or not others:
        return None
    near, far = (np.sum([(cells[first] == cells[other]) for cells in others], axis=0) for other in (twin, stranger))
    return better(near > far, far > near)
