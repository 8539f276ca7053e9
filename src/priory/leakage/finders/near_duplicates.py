"""Find near-duplicate texts across tables or within one table, perhaps with different labels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from priory.core.typing import Array
from priory.leakage.audit_tables import AuditData
from priory.leakage.finders.duplicates import HIGH_COPY_SHARE
from priory.leakage.findings import Finding, Severity, Suspicion, clopper_pearson_interval
from priory.leakage.row_hashes import MIN_SHINGLE_OVERLAP, cluster_texts, keep_alphanumerics


def find(data: AuditData) -> Iterator[Suspicion]:
    """Find near-duplicates; exact duplicates are found by `duplicates`."""
    for name, texts in data.texts.items():
        distinct, back = _take_distinct_texts(texts)
        cluster = cluster_texts(distinct)[back]
        if data.n_test:
            yield from _find_near_copies_across(data, name, cluster, back)
        yield from _find_near_copies_within(data, name, cluster[: data.n_train], back[: data.n_train])


def _take_distinct_texts(texts: list[str]) -> tuple[list[str], Array]:
    """Return the distinct texts, and the index of each text among them."""
    number: dict[int, int] = {}
    back = np.array([number.setdefault(hash(keep_alphanumerics(text)), len(number)) for text in texts])
    _, first = np.unique(back, return_index=True)
    return [texts[i] for i in first], back


def _find_near_copies_across(data: AuditData, name: str, cluster: Array, inverse: Array) -> Iterator[Suspicion]:
    train = data.n_train
    # in the same cluster as a training text, but not an exact copy
    near = np.isin(cluster[train:], cluster[:train]) & ~np.isin(inverse[train:], inverse[:train])
    if not near.any():
        return
    test_rows = np.flatnonzero(near)
    rows = np.flatnonzero(np.isin(cluster[:train], cluster[train:][near]))
    share = len(test_rows) / data.n_test
    yield Suspicion(
        None,
        lambda: Finding(
            Severity.HIGH if share >= HIGH_COPY_SHARE else Severity.MEDIUM,
            "near-duplicates",
            f"{share:.1%} of the test rows ({len(test_rows):,}) have a {name!r} that is nearly a copy of one in the "
            f"training table ({MIN_SHINGLE_OVERLAP:.0%} or more of their 9-byte pieces are the same)",
            "Keep near-duplicates on one side of the split: split by clusters.",
            columns=(name,),
            rows=tuple(rows.tolist()),
            test_rows=tuple(test_rows.tolist()),
            examples=_format_text_pair(data, name, cluster, train + int(test_rows[0]), rows),
            interval=clopper_pearson_interval(len(test_rows), data.n_test),
        ),
    )


def _format_text_pair(data: AuditData, name: str, cluster: Array, row: int, rows: Array) -> tuple[str, ...]:
    other = rows[cluster[rows] == cluster[row]][0]
    return data.texts[name][row][:100], data.texts[name][int(other)][:100]


def _find_near_copies_within(data: AuditData, name: str, cluster: Array, inverse: Array) -> Iterator[Suspicion]:
    kept, first = np.unique(cluster, return_index=True)
    extra = np.setdiff1d(np.unique(inverse, return_index=True)[1], first)  # not the first of a cluster
    if not len(extra):
        return
    share = len(extra) / data.n_train
    torn, where = 0, np.zeros(0, dtype=np.int64)
    if data.labels is not None:
        # distinct (cluster, label) pairs; a cluster with several has conflicting labels
        of = np.unique(cluster.astype(np.int64) * len(data.classes) + data.labels)
        mixed_up = kept[np.bincount(np.searchsorted(kept, of // len(data.classes))) > 1]
        where = np.flatnonzero(np.isin(cluster, mixed_up))
        torn = len(mixed_up)
    severity = Severity.HIGH if share >= HIGH_COPY_SHARE else Severity.MEDIUM
    yield Suspicion(
        None,
        lambda: Finding(
            Severity.LOW if data.n_test and not torn else severity,
            "near-duplicates",
            f"{share:.1%} of the rows ({len(extra):,}) have a {name!r} that is nearly a copy of an earlier one "
            f"({MIN_SHINGLE_OVERLAP:.0%} or more of their 9-byte pieces are the same)"
            + (f"; {torn:,} clusters have different labels" if torn else ""),
            "Keep near-duplicates together when splitting (groups)" + (", and check the labels." if torn else "."),
            columns=(name,),
            rows=tuple((where if torn else extra).tolist()),
            examples=_format_text_pair(
                data, name, cluster, int(extra[0]), np.flatnonzero(cluster == cluster[extra[0]])
            ),
            interval=clopper_pearson_interval(len(extra), data.n_train),
        ),
    )
