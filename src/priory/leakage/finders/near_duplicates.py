"""Texts that are nearly the same: on both sides, or in one table with other labels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from priory.core.typing import Array
from priory.leakage.audit_tables import Evidence
from priory.leakage.finders.duplicates import SHARE
from priory.leakage.findings import Finding, Severity, Suspicion
from priory.leakage.minhash import ALIKE, clusters
from priory.leakage.row_hashes import bare
from priory.leakage.significance import interval


def find(evidence: Evidence) -> Iterator[Suspicion]:
    """Near-duplicates that are not duplicates: those the other finder has counted."""
    for name, texts in evidence.texts.items():
        distinct, back = _distinct(texts)
        cluster = clusters(distinct)[back]
        if evidence.test:
            yield from _across(evidence, name, cluster, back)
        yield from _within(evidence, name, cluster[: evidence.train], back[: evidence.train])


def _distinct(texts: list[str]) -> tuple[list[str], Array]:
    """One of each text, duplicates counting as one, and which of them each text is."""
    number: dict[int, int] = {}
    back = np.array([number.setdefault(hash(bare(text)), len(number)) for text in texts])
    _, first = np.unique(back, return_index=True)
    return [texts[i] for i in first], back


def _across(evidence: Evidence, name: str, cluster: Array, back: Array) -> Iterator[Suspicion]:
    train = evidence.train
    near = np.isin(cluster[train:], cluster[:train]) & ~np.isin(back[train:], back[:train])
    if not near.any():
        return
    test_rows = np.flatnonzero(near)
    rows = np.flatnonzero(np.isin(cluster[:train], cluster[train:][near]))
    share = len(test_rows) / evidence.test
    yield Suspicion(
        None,
        lambda: Finding(
            Severity.HIGH if share >= SHARE else Severity.MEDIUM,
            "near-duplicates",
            f"{share:.1%} of the test rows ({len(test_rows):,}) have a {name!r} that shares {ALIKE:.0%} or more of its "
            "shingles with one in the training table",
            "Keep near-duplicates on one side: split by clusters.",
            columns=(name,),
            rows=tuple(rows.tolist()),
            test_rows=tuple(test_rows.tolist()),
            examples=_pair(evidence, name, cluster, train + int(test_rows[0]), rows),
            interval=interval(len(test_rows), evidence.test),
        ),
    )


def _pair(evidence: Evidence, name: str, cluster: Array, row: int, rows: Array) -> tuple[str, ...]:
    other = rows[cluster[rows] == cluster[row]][0]
    return evidence.texts[name][row][:100], evidence.texts[name][int(other)][:100]


def _within(evidence: Evidence, name: str, cluster: Array, back: Array) -> Iterator[Suspicion]:
    kept, first = np.unique(cluster, return_index=True)
    extra = np.setdiff1d(np.unique(back, return_index=True)[1], first)  # first of its kind, not of its cluster
    if not len(extra):
        return
    share = len(extra) / evidence.train
    torn, where = 0, np.zeros(0, dtype=np.int64)
    if evidence.labels is not None:
        of = np.unique(cluster.astype(np.int64) * len(evidence.classes) + evidence.labels)
        mixed_up = kept[np.bincount(np.searchsorted(kept, of // len(evidence.classes))) > 1]
        where = np.flatnonzero(np.isin(cluster, mixed_up))
        torn = len(mixed_up)
    grave = Severity.HIGH if share >= SHARE else Severity.MEDIUM
    yield Suspicion(
        None,
        lambda: Finding(
            Severity.LOW if evidence.test and not torn else grave,
            "near-duplicates",
            f"{share:.1%} of the rows ({len(extra):,}) have a {name!r} that shares {ALIKE:.0%} or more of its shingles "
            "with an earlier one" + (f"; {torn:,} clusters do not agree on the label" if torn else ""),
            "Keep near-duplicates together when splitting (groups)" + ("; look at the labels." if torn else "."),
            columns=(name,),
            rows=tuple((where if torn else extra).tolist()),
            examples=_pair(evidence, name, cluster, int(extra[0]), np.flatnonzero(cluster == cluster[extra[0]])),
            interval=interval(len(extra), evidence.train),
        ),
    )
