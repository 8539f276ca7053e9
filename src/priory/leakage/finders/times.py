"""Time leakage: training rows that are later than test rows, and a target that moves with time.

Where no time is given, columns of dates are looked at, and spoken of softly.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from priory.core.typing import Array
from priory.leakage.audit_tables import Cells, Evidence
from priory.leakage.column_votes import binned, tallied
from priory.leakage.findings import Finding, Severity, Suspicion
from priory.leakage.significance import association, interval


def find(evidence: Evidence) -> Iterator[Suspicion]:
    if evidence.time is None:
        for name in evidence.dates if evidence.test else ():
            yield from _later(evidence, evidence.column(name), moments(evidence.column(name)))
        return
    order = moments(evidence.time)
    if evidence.test:
        yield from _later(evidence, evidence.time, order)
    if evidence.labels is not None:
        yield from _moving(evidence, evidence.time, order, evidence.labels)


def moments(time: Cells) -> Array:
    """Numbers that stand in the order of time; labels (2021-03-04) stand in their own."""
    if time.numbers is not None:
        return time.numbers
    codes = time.coded[0].astype(float)
    return np.where(codes < 0, np.nan, codes)


def _later(evidence: Evidence, time: Cells, order: Array) -> Iterator[Suspicion]:
    train, test = order[: evidence.train], order[evidence.train :]
    if np.isnan(test).all() or np.isnan(train).all():
        return
    begin = np.nanmin(test)
    late = train > begin
    if not late.any():
        return
    rows = np.flatnonzero(late)
    first, last = evidence.train + int(np.nanargmin(test)), int(np.nanargmax(train))

    def finding() -> Finding:
        guessed = evidence.time is None
        return Finding(
            Severity.LOW if guessed else Severity.HIGH,
            "time",
            f"{late.mean():.1%} of the training rows ({len(rows):,}) are, by {time.name!r}, later than a test row",
            "Train on the past: cut at one moment, training rows before it, test rows after it."
            + (f" If that is what the model is for, say time={time.name!r}." if guessed else ""),
            columns=(time.name,),
            rows=tuple(rows.tolist()),
            examples=(f"first test row: {time.shown(first)}", f"last training row: {time.shown(last)}"),
            interval=interval(len(rows), evidence.train),
            effect=evidence.score_without(rows),
        )

    yield Suspicion(None, finding)


def _moving(evidence: Evidence, time: Cells, order: Array, labels: Array) -> Iterator[Suspicion]:
    places, size = binned(order[: evidence.train].astype(float), evidence.train)
    bits, p = association(tallied(places, size, labels, len(evidence.classes)))
    yield Suspicion(
        p,
        lambda: Finding(
            Severity.LOW,
            "time",
            f"the label moves with {time.name!r}: it holds {bits:.2f} bits about it",
            "A random split would mix past and future: split by time.",
            columns=(time.name,),
        ),
    )
