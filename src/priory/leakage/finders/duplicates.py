"""Find duplicate rows and near-duplicate texts across train and test or within one table, also with different labels.

Copies are counted, and tested against chance, because rows of a few labels coincide by chance. If they do, many more
rows agree in all columns but one. So the test is, for the column that explains the copies best, whether rows that agree
in all other columns also agree in this one more often than other rows do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy import ndarray as Array

from priory.core.content_hash import scramble_bits
from priory.leakage import findings
from priory.leakage.audit_tables import AuditData, class_frequencies
from priory.leakage.findings import Effect, Finding, Severity, Suspicion, binomial_tail
from priory.leakage.row_hashes import MIN_SHINGLE_OVERLAP, RowHashes, cluster_texts, keep_alphanumerics

COPY_TEST_FACTOR = 10  # the test of copies gets a tenth of the audit's error rate
HIGH_COPY_SHARE = 0.01  # of the rows; fewer copies hardly change the score
MAX_MAJORITY_COPY_SHARE = 0.1  # of the copies, if the other classes were oversampled
LOOSE_MATCH_TEXT = "case, spacing or rounding"
MAX_COLUMN_AGREEMENT = 0.9  # of the pairs of rows; columns that agree in more are not informative
MAX_ROWS_PER_DISTINCT = 5  # with more, coincidences are expected
MAX_COLUMNS_TESTED = 64  # in the test of copies against chance


def find(data: AuditData) -> Iterator[Suspicion]:
    """Find copies and near-copies across and within tables, oversampled classes, and conflicting labels."""
    if not data.columns and not data.texts:
        return
    exact, loose = RowHashes.of(data, False), RowHashes.of(data, True)
    p = None if data.texts else min(1.0, COPY_TEST_FACTOR * coincidence_p_value(loose))
    if data.n_test:
        yield from _find_copies_across(data, exact.rows, loose.rows, p)
    yield from _find_copies_within(data, exact.rows[: data.n_train], loose.rows[: data.n_train], p)
    yield from _find_near_duplicates(data)


def _find_copies_across(data: AuditData, exact: Array, loose: Array, p: float | None) -> Iterator[Suspicion]:
    train = data.n_train
    same = np.isin(exact[train:], exact[:train])  # (test rows,)
    alike = np.isin(loose[train:], loose[:train])
    if not alike.any():
        return
    test_rows = np.flatnonzero(alike)
    rows = np.flatnonzero(np.isin(loose[:train], loose[train:]))
    kinds = len(np.unique(exact[train:][same]))

    def finding() -> Finding:
        share = len(test_rows) / data.n_test
        more = len(test_rows) - int(same.sum())
        return Finding(
            rate_copies(share, p),
            "duplicates",
            f"{share:.1%} of the test rows ({len(test_rows):,}) are also in the training table: {int(same.sum()):,} "
            f"exactly ({kinds:,} distinct), {more:,} up to {LOOSE_MATCH_TEXT}{format_chance_note(p)}",
            "Remove the copies from one side, then split by distinct rows.",
            rows=tuple(rows.tolist()),
            test_rows=tuple(test_rows.tolist()),
            examples=tuple(data.format_row(train + int(i)) for i in test_rows[:5]),
            p=p,
            interval=findings.clopper_pearson_interval(len(test_rows), data.n_test),
            effect=data.score_without_rows(rows),
        )

    yield Suspicion(None, finding)


def rate_copies(share: float, p: float | None) -> Severity:
    """Return the severity of this share of copies; ``p`` is the p-value against chance."""
    if p is not None and p > findings.FALSE_ALARM_LEVEL:
        return Severity.LOW
    return Severity.HIGH if share >= HIGH_COPY_SHARE else Severity.MEDIUM


def format_chance_note(p: float | None) -> str:
    """Return a note for copies that may be chance, else ""."""
    return "; this may be chance" if p is not None and p > findings.FALSE_ALARM_LEVEL else ""


def _find_copies_within(data: AuditData, exact: Array, loose: Array, p: float | None) -> Iterator[Suspicion]:
    values, first, back, times = np.unique(loose, return_index=True, return_inverse=True, return_counts=True)
    if len(values) == len(loose):
        return
    # extra copies: exact ones, exact ones with the same label, and loose ones that are not exact
    copies = len(loose) - len(np.unique(exact))
    agreed = 0
    if data.labels is not None:
        agreed = len(loose) - len(np.unique(exact + scramble_bits(data.labels.astype(np.uint64))))
    more = len(loose) - len(values) - copies
    extra = np.setdiff1d(np.arange(len(loose)), first)
    shared = times[back] > 1

    def finding() -> Finding:
        share = float(shared.mean())
        split = "" if data.n_test else "; a random split puts copies on both sides"
        agreeing = "" if data.labels is None else f" ({agreed:,} with the same label)"
        return Finding(
            Severity.LOW if data.n_test else rate_copies(share, p),
            "duplicates",
            f"{len(extra) / len(loose):.1%} of the rows are copies: {copies:,} exactly{agreeing}, {more:,} up to "
            f"{LOOSE_MATCH_TEXT}{format_chance_note(p) or split}",
            "Remove the copies before splitting, or keep them together when splitting (groups).",
            rows=tuple(extra.tolist()),
            examples=tuple(data.format_row(int(i)) for i in extra[:5]),
            p=p,
            interval=findings.clopper_pearson_interval(len(extra), len(loose)),
            effect=_measure_copy_effect(data, first),
        )

    yield Suspicion(None, finding)
    if data.labels is not None:
        yield from _find_oversampling(data, data.labels, extra, first, p)
        yield from _find_label_conflicts(data, data.labels, back, shared, p)


def _measure_copy_effect(data: AuditData, kept_rows: Array) -> Effect | None:
    """Return the leave-one-out accuracy over all rows, and over one row of each set of copies."""
    if data.votes is None:
        return None
    before = data.votes.mark_correct_rows()
    bins = [(v.codes[kept_rows], v.counts.shape[1]) for v in data.votes.votes]
    after = type(data.votes).of(bins, data.votes.class_codes[kept_rows], len(data.classes)).mark_correct_rows()
    return Effect.of(before, after)


def _find_oversampling(
    data: AuditData, labels: Array, copied_rows: Array, first_rows: Array, p: float | None
) -> Iterator[Suspicion]:
    """Find oversampling before the split: copies in all classes except the largest."""
    # class frequencies without copies
    usual = class_frequencies(labels[first_rows], len(data.classes))
    c = int(np.argmax(usual))
    spared = int((labels[copied_rows] == c).sum())
    if findings.clopper_pearson_interval(spared, len(copied_rows))[1] > MAX_MAJORITY_COPY_SHARE:
        return
    yield Suspicion(
        max(binomial_tail(len(copied_rows) - spared, len(copied_rows), 1 - float(usual[c])), p or 0.0),
        lambda: Finding(
            Severity.HIGH if len(copied_rows) >= HIGH_COPY_SHARE * data.n_train else Severity.MEDIUM,
            "oversampling",
            f"{1 - spared / len(copied_rows):.1%} of the copied rows are not of the largest class {data.classes[c]!r}, "
            f"which has {usual[c]:.1%} of the distinct rows: the others look oversampled before the split",
            "Split first, then oversample the training part alone.",
            rows=tuple(copied_rows[labels[copied_rows] != c].tolist()),
            interval=findings.clopper_pearson_interval(len(copied_rows) - spared, len(copied_rows)),
        ),
    )


def _find_label_conflicts(
    data: AuditData, labels: Array, inverse: Array, is_copied: Array, p: float | None
) -> Iterator[Suspicion]:
    """Find copies with different labels, which no model can predict all correctly."""
    # (cluster, label) pairs with their numbers of rows, sorted by cluster
    cells = np.unique(inverse[is_copied].astype(np.int64) * len(data.classes) + labels[is_copied], return_counts=True)
    owner, times = cells[0] // len(data.classes), cells[1]
    clusters, starts, labels_of = np.unique(owner, return_index=True, return_counts=True)
    torn = clusters[labels_of > 1]  # clusters with several labels
    if not len(torn):
        return
    lost = int(times.sum() - np.maximum.reduceat(times, starts).sum())
    rows = np.flatnonzero(np.isin(inverse, torn))

    def finding() -> Finding:
        return Finding(
            min(rate_copies(len(rows) / data.n_train, p), Severity.MEDIUM),
            "conflicts",
            f"{len(rows):,} rows are equal in all columns but have different labels: "
            f"no model can predict {lost:,} of them",
            "Look at them: some labels are wrong, or a column is missing that distinguishes them.",
            rows=tuple(rows.tolist()),
            examples=tuple(f"{data.format_row(int(i))} → {data.classes[labels[i]]}" for i in rows[:5]),
            p=p,
            interval=findings.clopper_pearson_interval(lost, data.n_train),
        )

    yield Suspicion(None, finding)


def coincidence_p_value(hashes: RowHashes) -> float:
    """Return the p-value of this number of copies, by the column that explains them best; 1 if there is one column.

    Columns in which nearly all rows agree are not used, because they are not informative.
    """
    equal_pairs, n = count_equal_pairs(hashes.rows), len(hashes.rows)
    if not equal_pairs or len(hashes.columns) < 2 or MAX_ROWS_PER_DISTINCT * len(np.unique(hashes.rows)) < n:
        return 1.0
    agreement = [2 * count_equal_pairs(column) / (n * (n - 1.0)) for column in hashes.columns]
    order = np.argsort(agreement, kind="stable")[:MAX_COLUMNS_TESTED]
    used = [j for j in order if agreement[j] <= max(MAX_COLUMN_AGREEMENT, agreement[order[0]])]
    tests = [
        _column_coincidence(hashes.rows - hashes.columns[j], hashes.columns[j], equal_pairs, agreement[j]) for j in used
    ]
    return -max((expected, -p) for expected, p in tests)[1]


def _column_coincidence(rest: Array, column: Array, n_equal_pairs: float, agreement_rate: float) -> tuple[float, float]:
    """Return the number of copies expected by chance from one column, and the p-value of the number found.

    ``rest`` are the hashes of the rows without this column. How often rows agree in the column by chance is estimated
    from rows that agree with another row in all other columns, paired with rows with which they do not.
    """
    _, back, times = np.unique(rest, return_inverse=True, return_counts=True)
    twins = times[back] > 1
    near, rows = count_equal_pairs(rest), int(twins.sum())
    across = rows * (rows - 1) / 2 - near  # pairs that differ in some other column
    agree = min(
        max(agreement_rate, (count_equal_pairs(column[twins]) - n_equal_pairs + agreement_rate) / (across + 1)), 1.0
    )
    if agree == 1.0:
        return n_equal_pairs, 1.0
    trials = min(near, rows / 2)  # the pairs of one cluster are not independent
    return (near - n_equal_pairs) * agree / (1 - agree), binomial_tail(n_equal_pairs / near * trials, trials, agree)


def count_equal_pairs(hashes: Array) -> float:
    """Return the number of pairs of equal rows."""
    _, times = np.unique(hashes, return_counts=True)
    return float((times * (times - 1.0)).sum() / 2)


def _find_near_duplicates(data: AuditData) -> Iterator[Suspicion]:
    """Find texts that are nearly copies, across tables or within one."""
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
            interval=findings.clopper_pearson_interval(len(test_rows), data.n_test),
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
            interval=findings.clopper_pearson_interval(len(extra), data.n_train),
        ),
    )
