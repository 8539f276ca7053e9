"""Find groups that are in both tables, such as a patient with one scan in train and one in test.

If no groups are given, columns that look like groups are suggested: labels or whole numbers with several rows for a
value, where rows with the same value are more similar than other rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from priory.leakage.audit_tables import AuditColumn, AuditData
from priory.leakage.findings import Finding, Severity, Suspicion, clopper_pearson_interval, mcnemar_p_value

MIN_GROUPS = 20  # minimum number of distinct values of a group column
MIN_ROWS_PER_GROUP = 1.1


def find(data: AuditData) -> Iterator[Suspicion]:
    if data.groups is not None:
        yield from _find_shared_groups(data, data.groups, None)
        return
    for j, column in enumerate(data.columns):
        if _may_be_groups(column, data.n_train):
            p = group_similarity_p_value(data, j)
            if p is not None:
                yield from _find_shared_groups(data, column, p)


def _find_shared_groups(data: AuditData, column: AuditColumn, p: float | None) -> Iterator[Suspicion]:
    """Find rows whose group is also in the other table or, with one table, has more than one row."""
    codes, values = column.codes_and_values
    train, test = codes[: data.n_train], codes[data.n_train :]
    if data.n_test:
        hit = np.isin(test, train[train >= 0]) & (test >= 0)
        both = np.isin(train, test[hit])
        rows, test_rows = np.flatnonzero(both), np.flatnonzero(hit)
    else:
        times = np.bincount(train[train >= 0], minlength=len(values))
        hit = (train >= 0) & (times[train] > 1)
        rows, test_rows = np.flatnonzero(hit), np.zeros(0, dtype=np.int64)
    if not hit.any():
        return
    kinds = len(np.unique((test if data.n_test else train)[hit]))
    reason = "" if p is None else "; rows with the same value are more similar than others, so it looks like a group"
    where = (
        "of the test rows belong to a group that is also in the training table"
        if data.n_test
        else "of the rows belong to a group of several rows"
    )
    severity = Severity.HIGH if data.n_test and p is None else Severity.MEDIUM if data.n_test else Severity.LOW
    yield Suspicion(
        p,
        lambda: Finding(
            severity,
            "groups",
            f"{hit.mean():.1%} {where} by {column.name!r} ({kinds:,} values){reason}",
            f"Keep each group on one side of the split: use GroupKFold, and audit with groups={column.name!r}.",
            columns=(column.name,),
            rows=tuple(rows.tolist()),
            test_rows=tuple(test_rows.tolist()),
            examples=tuple(str(values[c]) for c in np.unique((test if data.n_test else train)[hit])[:5]),
            interval=clopper_pearson_interval(float(hit.sum()), len(hit)),
            effect=data.score_without_rows(rows) if data.n_test else None,
        ),
    )


def _may_be_groups(column: AuditColumn, n_train: int) -> bool:
    if not column.is_discrete:
        return False
    codes = column.codes_and_values[0][:n_train]
    rows, kinds = int((codes >= 0).sum()), len(np.unique(codes[codes >= 0]))
    return kinds >= max(MIN_GROUPS, np.sqrt(rows)) and rows >= MIN_ROWS_PER_GROUP * kinds


def group_similarity_p_value(data: AuditData, j: int) -> float | None:
    """Return the p-value of the hypothesis that rows with the same value are no more similar than other rows.

    One row of each value is compared with another row of its value and with a row of the next value, so that a
    measurement, whose neighbouring values are similar too, is not taken for a group. Under the hypothesis both are
    equally likely to be the more similar one.
    """
    codes = data.columns[j].codes_and_values[0][: data.n_train]
    shuffled = np.random.default_rng(0).permutation(np.flatnonzero(codes >= 0))
    order = shuffled[np.argsort(codes[shuffled], kind="stable")]
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    # (values,): starts of the runs of equal values in `order`, and whether a run has two or more rows
    several = np.diff(starts, append=len(order)) > 1
    first, twin, stranger = order[starts[several]], order[starts[several] + 1], order[np.roll(starts, -1)[several]]
    others = [data.bin_column(c)[0] for k, c in enumerate(data.columns) if k != j]
    if data.class_codes is not None:
        others.append(data.class_codes)
    if not len(first) or not others:
        return None
    # (values,): the number of other columns in which the pair agrees
    near, far = (np.sum([(cells[first] == cells[other]) for cells in others], axis=0) for other in (twin, stranger))
    return mcnemar_p_value(near > far, far > near)
