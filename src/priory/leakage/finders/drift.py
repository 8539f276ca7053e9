"""Find drift: whether leave-one-out naive Bayes can distinguish training rows from test rows, and by which columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from priory.leakage import audit_tables, findings
from priory.leakage.finders.identifiers import explain_identifier
from priory.text import token_counts as words
from priory.text.sparse_counts import make_dense_counts

MEDIUM_DRIFT_AUC, HIGH_DRIFT_AUC = 0.6, 0.8  # of a classifier of train against test


def find(data: audit_tables.AuditData) -> Iterator[findings.Suspicion]:
    if not data.n_test:
        return
    described = [j for j, c in enumerate(data.columns) if explain_identifier(c, data.n_train) is None]
    if described:
        yield from _find_column_drift(data, described)
    for name, texts in data.texts.items():
        yield from _find_token_drift(data, name, texts)


def _find_column_drift(data: audit_tables.AuditData, column_indices: list[int]) -> Iterator[findings.Suspicion]:
    side = np.repeat([0, 1], [data.n_train, data.n_test]).astype(np.int32)
    bins = [data.bin_column(data.columns[j]) for j in column_indices]
    # the "class" of a row is its table: 0 train, 1 test
    votes = audit_tables.BinnedNaiveBayes.of(bins, side, 2)
    tests = [findings.measure_association(vote.counts) for vote in votes.votes]
    p = np.array([p for _, p in tests])  # (columns,)

    def finding() -> findings.Finding:
        order = [
            k
            for k in np.argsort([-bits for bits, _ in tests], kind="stable")
            if p[k] * len(p) <= findings.FALSE_ALARM_LEVEL
        ]
        names = tuple(data.columns[column_indices[k]].name for k in order)
        right, after = votes.mark_correct_rows(), votes.mark_correct_rows(order)
        auc, error = findings.auc_with_error(votes.log_joint[:, 1] - votes.log_joint[:, 0], side == 1)
        strongest = ", ".join(f"{data.columns[column_indices[k]].name!r} {tests[k][0]:.3f} bits" for k in order[:5])
        return findings.Finding(
            _rate_drift(auc - 2 * error),
            "drift",
            f"training and test rows can be distinguished (AUC {auc:.2f}) by {strongest}",
            "The test score describes another population: find out why, and leave out or correct these columns.",
            columns=names,
            interval=(auc - 2 * error, min(auc + 2 * error, 1.0)),
            effect=findings.Effect.of(right, after),
        )

    yield findings.Suspicion(float(min(1.0, p.min() * len(p))), finding)


def _rate_drift(auc: float) -> findings.Severity:
    return (
        findings.Severity.HIGH
        if auc > HIGH_DRIFT_AUC
        else findings.Severity.MEDIUM
        if auc > MEDIUM_DRIFT_AUC
        else findings.Severity.LOW
    )


def _find_token_drift(data: audit_tables.AuditData, name: str, texts: list[str]) -> Iterator[findings.Suspicion]:
    """Find tokens that are more frequent in one table than in the other."""
    side = np.repeat([0, 1], [data.n_train, data.n_test]).astype(np.int32)
    counted = words.count_tokens(texts, side, 2)
    if not len(counted):
        return
    n = np.array([data.n_train, data.n_test], dtype=float)
    bits, p = findings.measure_presence_association(make_dense_counts(counted.counts), n)

    def finding() -> findings.Finding:
        order = np.argsort(-bits, kind="stable")
        order = order[p[order] * len(p) <= findings.FALSE_ALARM_LEVEL]
        tokens = counted.take_tokens(order).tokens()
        sample, y = audit_tables.sample_documents(texts, side)
        joint = audit_tables.log_joint_leave_one_out(sample, y)
        auc, error = findings.auc_with_error(joint[:, 1] - joint[:, 0], y == 1)
        before, after = joint.argmax(axis=1) == y, audit_tables.mark_correct_documents(sample, y, tokens)
        share = counted.counts[order] / np.array([data.n_train, data.n_test])
        return findings.Finding(
            _rate_drift(auc - 2 * error),
            "drift",
            f"training and test rows can be distinguished by {name!r} (AUC {auc:.2f}): {len(tokens):,} tokens differ",
            "The test score describes another population: find out where the texts come from.",
            columns=(name,),
            examples=tuple(
                f"{token}: in {a:.1%} of train, {b:.1%} of test"
                for token, (a, b) in zip(tokens[:5], share, strict=False)
            ),
            interval=(auc - 2 * error, min(auc + 2 * error, 1.0)),
            effect=findings.Effect.of(before, after),
        )

    yield findings.Suspicion(float(min(1.0, p.min() * len(p))), finding)
