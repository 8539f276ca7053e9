"""Find time leakage: training rows that are later than test rows, and a target that changes with time.

If no time is given, columns of dates are examined, and findings about them have low severity.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy import ndarray as Array

from priory.leakage.audit_tables import AuditColumn, AuditData, measure_trend
from priory.leakage.findings import Finding, Severity, Suspicion, clopper_pearson_interval


def find(data: AuditData) -> Iterator[Suspicion]:
    if data.time is None:
        for name in data.date_columns if data.n_test else ():
            yield from _find_later_rows(data, data.find_column(name), encode_times(data.find_column(name)))
        return
    order = encode_times(data.time)
    if data.n_test:
        yield from _find_later_rows(data, data.time, order)
    if data.labels is not None:
        yield from _find_label_trend(data, data.time, order, data.labels)


def encode_times(time: AuditColumn) -> Array:
    """Return numbers in the order of time, (rows,); labels such as 2021-03-04 are sorted as text."""
    if time.numbers is not None:
        return time.numbers
    codes = time.codes_and_values[0].astype(float)
    return np.where(codes < 0, np.nan, codes)


def _find_later_rows(data: AuditData, time: AuditColumn, time_values: Array) -> Iterator[Suspicion]:
    train, test = time_values[: data.n_train], time_values[data.n_train :]
    if np.isnan(test).all() or np.isnan(train).all():
        return
    begin = np.nanmin(test)
    late = train > begin  # (training rows,); NaN is not late
    if not late.any():
        return
    rows = np.flatnonzero(late)
    first, last = data.n_train + int(np.nanargmin(test)), int(np.nanargmax(train))

    def finding() -> Finding:
        guessed = data.time is None
        return Finding(
            Severity.LOW if guessed else Severity.HIGH,
            "time",
            f"{late.mean():.1%} of the training rows ({len(rows):,}) are later than a test row, by {time.name!r}",
            "Train on the past: split at one time, with training rows before it and test rows after it."
            + (f" If the model will predict the future, audit with time={time.name!r}." if guessed else ""),
            columns=(time.name,),
            rows=tuple(rows.tolist()),
            examples=(f"first test row: {time.format_cell(first)}", f"last training row: {time.format_cell(last)}"),
            interval=clopper_pearson_interval(len(rows), data.n_train),
            effect=data.score_without_rows(rows),
        )

    yield Suspicion(None, finding)


def _find_label_trend(data: AuditData, time: AuditColumn, time_values: Array, labels: Array) -> Iterator[Suspicion]:
    bits, p = measure_trend(time_values[: data.n_train].astype(float), labels, len(data.classes))
    yield Suspicion(
        p,
        lambda: Finding(
            Severity.LOW,
            "time",
            f"the label changes with {time.name!r}, which has {bits:.2f} bits of information about it",
            "A random split would mix past and future: split by time.",
            columns=(time.name,),
        ),
    )
