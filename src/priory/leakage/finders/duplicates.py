"""Rows that are there twice: in train and test, or in one table that will be split; and copies with other labels.

Copies are counted. Whether they are more than chance is a test: rows of a few labels coincide by chance. If they do,
many more agree in all columns but one. So for the column that explains the copies best, the audit asks whether rows
that agree everywhere else agree there more often than rows do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from priory.core.typing import Array
from priory.leakage.audit_tables import Evidence
from priory.leakage.column_votes import class_frequencies
from priory.leakage.findings import LEVEL, Effect, Finding, Severity, Suspicion
from priory.leakage.row_hashes import Hashes, mixed
from priory.leakage.significance import binomial_tail, interval

DUES = 10  # one test speaks for all copies; it takes a tenth of the audit's chance of a false alarm
SHARE = 0.01  # of the rows: with fewer copies the score is hardly moved
SPARED = 0.1  # of the copies are of the largest class, at most, where the others were oversampled
LOOSE = "case, spacing or rounding"
AGREED = 0.9  # a column in which so many pairs of rows agree cannot tell copies from chance
KINDS = 5  # times as many rows as different ones: a table of a few kinds of rows
CHECKED = 64  # columns that are asked whether chance explains the copies


def find(evidence: Evidence) -> Iterator[Suspicion]:
    """Copies across the tables, or within the one there is; copies of one class; copies with other labels."""
    if not evidence.columns and not evidence.texts:
        return
    exact, loose = Hashes.of(evidence, False), Hashes.of(evidence, True)
    p = None if evidence.texts else min(1.0, DUES * coincidence(loose))
    if evidence.test:
        yield from _across(evidence, exact.rows, loose.rows, p)
    yield from _within(evidence, exact.rows[: evidence.train], loose.rows[: evidence.train], p)


def _across(evidence: Evidence, exact: Array, loose: Array, p: float | None) -> Iterator[Suspicion]:
    train = evidence.train
    same = np.isin(exact[train:], exact[:train])
    alike = np.isin(loose[train:], loose[:train])
    if not alike.any():
        return
    test_rows = np.flatnonzero(alike)
    rows = np.flatnonzero(np.isin(loose[:train], loose[train:]))
    kinds = len(np.unique(exact[train:][same]))

    def finding() -> Finding:
        share = len(test_rows) / evidence.test
        more = len(test_rows) - int(same.sum())
        return Finding(
            _severity(share, p),
            "duplicates",
            f"{share:.1%} of the test rows ({len(test_rows):,}) are in the training table too: {int(same.sum()):,} "
            f"exactly ({kinds:,} different), {more:,} up to {LOOSE}{_by_chance(p)}",
            "Remove the copies from one side, then split by distinct rows.",
            rows=tuple(rows.tolist()),
            test_rows=tuple(test_rows.tolist()),
            examples=tuple(evidence.row(train + int(i)) for i in test_rows[:5]),
            p=p,
            interval=interval(len(test_rows), evidence.test),
            effect=evidence.score_without(rows),
        )

    yield Suspicion(None, finding)


def _severity(share: float, p: float | None) -> Severity:
    if p is not None and p > LEVEL:
        return Severity.LOW
    return Severity.HIGH if share >= SHARE else Severity.MEDIUM


def _by_chance(p: float | None) -> str:
    return "; chance may explain them" if p is not None and p > LEVEL else ""


def _within(evidence: Evidence, exact: Array, loose: Array, p: float | None) -> Iterator[Suspicion]:
    values, first, back, times = np.unique(loose, return_index=True, return_inverse=True, return_counts=True)
    if len(values) == len(loose):
        return
    copies = len(loose) - len(np.unique(exact))
    agreed = 0
    if evidence.labels is not None:
        agreed = len(loose) - len(np.unique(exact + mixed(evidence.labels.astype(np.uint64))))
    more = len(loose) - len(values) - copies
    extra = np.setdiff1d(np.arange(len(loose)), first)
    shared = times[back] > 1

    def finding() -> Finding:
        share = float(shared.mean())
        split = "" if evidence.test else "; a random split puts copies on both sides"
        agreeing = "" if evidence.labels is None else f" ({agreed:,} with the same label)"
        return Finding(
            Severity.LOW if evidence.test else _severity(share, p),
            "duplicates",
            f"{len(extra) / len(loose):.1%} of the rows are copies: {copies:,} exactly{agreeing}, {more:,} up to "
            f"{LOOSE}{_by_chance(p) or split}",
            "Keep one of each before splitting, or keep copies together (groups).",
            rows=tuple(extra.tolist()),
            examples=tuple(evidence.row(int(i)) for i in extra[:5]),
            p=p,
            interval=interval(len(extra), len(loose)),
            effect=_effect_within(evidence, first),
        )

    yield Suspicion(None, finding)
    if evidence.labels is not None:
        yield from _oversampled(evidence, evidence.labels, extra, first, p)
        yield from _conflicts(evidence, evidence.labels, back, shared, p)


def _effect_within(evidence: Evidence, kept: Array) -> Effect | None:
    """Leave-one-out over all rows, and over one of each."""
    if evidence.votes is None:
        return None
    before = evidence.votes.right()
    bins = [(v.codes[kept], v.counts.shape[1]) for v in evidence.votes.votes]
    after = type(evidence.votes).of(bins, evidence.votes.group[kept], len(evidence.classes)).right()
    return Effect(float(before.mean()), float(after.mean()), len(before))


def _oversampled(
    evidence: Evidence, labels: Array, extra: Array, first: Array, chance: float | None
) -> Iterator[Suspicion]:
    """Copies of all classes but the largest: somebody repeated rows before the split."""
    usual = class_frequencies(labels[first], len(evidence.classes))
    c = int(np.argmax(usual))
    spared = int((labels[extra] == c).sum())
    if interval(spared, len(extra))[1] > SPARED:
        return
    yield Suspicion(
        max(binomial_tail(len(extra) - spared, len(extra), 1 - float(usual[c])), chance or 0.0),
        lambda: Finding(
            Severity.HIGH if len(extra) >= SHARE * evidence.train else Severity.MEDIUM,
            "oversampling",
            f"{1 - spared / len(extra):.1%} of the copied rows are not of the largest class {evidence.classes[c]!r}, "
            f"which has {usual[c]:.1%} of the distinct rows: the others look oversampled before the split",
            "Split first, then oversample the training part alone.",
            rows=tuple(extra[labels[extra] != c].tolist()),
            interval=interval(len(extra) - spared, len(extra)),
        ),
    )


def _conflicts(evidence: Evidence, labels: Array, back: Array, shared: Array, p: float | None) -> Iterator[Suspicion]:
    """Copies that do not agree on the label: no model can be right about all of them."""
    cells = np.unique(back[shared].astype(np.int64) * len(evidence.classes) + labels[shared], return_counts=True)
    owner, times = cells[0] // len(evidence.classes), cells[1]
    clusters, starts, labels_of = np.unique(owner, return_index=True, return_counts=True)
    torn = clusters[labels_of > 1]
    if not len(torn):
        return
    lost = int(times.sum() - np.maximum.reduceat(times, starts).sum())
    rows = np.flatnonzero(np.isin(back, torn))

    def finding() -> Finding:
        return Finding(
            min(_severity(len(rows) / evidence.train, p), Severity.MEDIUM),
            "conflicts",
            f"{len(rows):,} rows are alike in all columns but not in their label: {lost:,} no model can get right",
            "Look at them: one of the labels is wrong, or a column is missing that tells them apart.",
            rows=tuple(rows.tolist()),
            examples=tuple(f"{evidence.row(int(i))} → {evidence.classes[labels[i]]}" for i in rows[:5]),
            p=p,
            interval=interval(lost, evidence.train),
        )

    yield Suspicion(None, finding)


def coincidence(hashes: Hashes) -> float:
    """The chance of so many copies, by the column that explains them best (1 where there is one column only).

    Columns in which nearly all rows agree cannot tell, and are not asked.
    """
    every, n = pairs(hashes.rows), len(hashes.rows)
    if not every or len(hashes.columns) < 2 or KINDS * len(np.unique(hashes.rows)) < n:
        return 1.0
    usual = [2 * pairs(column) / (n * (n - 1.0)) for column in hashes.columns]
    least = np.argsort(usual, kind="stable")[:CHECKED]
    telling = [j for j in least if usual[j] <= max(AGREED, usual[least[0]])]
    looks = [_looked(hashes.rows - hashes.columns[j], hashes.columns[j], every, usual[j]) for j in telling]
    return -max((by_chance, -p) for by_chance, p in looks)[1]


def _looked(rest: Array, column: Array, every: float, usual: float) -> tuple[float, float]:
    """For one column: the copies to be expected by chance, and the chance of so many.

    How often rows agree in it by chance is read off the rows that agree in the rest with another one, paired across.
    """
    _, back, times = np.unique(rest, return_inverse=True, return_counts=True)
    twins = times[back] > 1
    near, rows = pairs(rest), int(twins.sum())
    across = rows * (rows - 1) / 2 - near
    agree = min(max(usual, (pairs(column[twins]) - every + usual) / (across + 1)), 1.0)
    if agree == 1.0:
        return every, 1.0
    trials = min(near, rows / 2)  # pairs of one cluster are not independent
    return (near - every) * agree / (1 - agree), binomial_tail(every / near * trials, trials, agree)


def pairs(hashes: Array) -> float:
    """How many pairs of rows are equal."""
    _, times = np.unique(hashes, return_counts=True)
    return float((times * (times - 1.0)).sum() / 2)
