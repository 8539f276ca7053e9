"""Train and test told apart, by a naive Bayes that leaves each row out, and by what."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from priory.bag_of_words import token_counts as words
from priory.leakage.audit_tables import Evidence
from priory.leakage.column_votes import Votes
from priory.leakage.finders.identifiers import reason
from priory.leakage.findings import LEVEL, Effect, Finding, Severity, Suspicion
from priory.leakage.significance import area, association, presences
from priory.leakage.text_scores import MOST, right, without

DIFFERENT, APART = 0.6, 0.8  # the area under the curve of telling the tables apart


def find(evidence: Evidence) -> Iterator[Suspicion]:
    if not evidence.test:
        return
    described = [j for j, c in enumerate(evidence.columns) if reason(c, evidence.train) is None]
    if described:
        yield from _apart(evidence, described)
    for name, texts in evidence.texts.items():
        yield from _wording(evidence, name, texts)


def _apart(evidence: Evidence, described: list[int]) -> Iterator[Suspicion]:
    side = np.repeat([0, 1], [evidence.train, evidence.test]).astype(np.int32)
    bins = [evidence.bins(evidence.columns[j]) for j in described]
    votes = Votes.of(bins, side, 2)
    tests = [association(vote.counts) for vote in votes.votes]
    p = np.array([p for _, p in tests])

    def finding() -> Finding:
        order = [k for k in np.argsort([-bits for bits, _ in tests], kind="stable") if p[k] * len(p) <= LEVEL]
        names = tuple(evidence.columns[described[k]].name for k in order)
        right, after = votes.right(), votes.right(order)
        auc, error = area(votes.joint[:, 1] - votes.joint[:, 0], side == 1)
        said = ", ".join(f"{evidence.columns[described[k]].name!r} {tests[k][0]:.3f} bits" for k in order[:5])
        return Finding(
            _severity(auc - 2 * error),
            "drift",
            f"train and test can be told apart (AUC {auc:.2f}), by {said}",
            "The test score is of another population: find out why, and leave out or mend what gives the tables away.",
            columns=names,
            interval=(auc - 2 * error, min(auc + 2 * error, 1.0)),
            effect=Effect(float(right.mean()), float(after.mean()), len(side)),
        )

    yield Suspicion(float(min(1.0, p.min() * len(p))), finding)


def _severity(auc: float) -> Severity:
    return Severity.HIGH if auc > APART else Severity.MEDIUM if auc > DIFFERENT else Severity.LOW


def _wording(evidence: Evidence, name: str, texts: list[str]) -> Iterator[Suspicion]:
    """Tokens that one table has more often than the other."""
    side = np.repeat([0, 1], [evidence.train, evidence.test]).astype(np.int32)
    counted = words.count(texts, side, 2)
    if not len(counted):
        return
    bits, p = presences(counted.counts, np.array([evidence.train, evidence.test], dtype=float))

    def finding() -> Finding:
        order = np.argsort(-bits, kind="stable")
        order = order[p[order] * len(p) <= LEVEL]
        telling = counted.taken(order).tokens()
        step = max(1, len(texts) // MOST)
        some, y = texts[::step], side[::step]
        joint = without(some, y)
        auc, error = area(joint[:, 1] - joint[:, 0], y == 1)
        before, after = joint.argmax(axis=1) == y, right(some, y, telling)
        share = counted.counts[order] / np.array([evidence.train, evidence.test])
        return Finding(
            _severity(auc - 2 * error),
            "drift",
            f"train and test can be told apart by {name!r} (AUC {auc:.2f}): {len(telling):,} tokens differ",
            "The test score is of another population: find out where the texts come from.",
            columns=(name,),
            examples=tuple(
                f"{token}: in {a:.1%} of train, {b:.1%} of test"
                for token, (a, b) in zip(telling[:5], share, strict=False)
            ),
            interval=(auc - 2 * error, min(auc + 2 * error, 1.0)),
            effect=Effect(float(before.mean()), float(after.mean()), len(y)),
        )

    yield Suspicion(float(min(1.0, p.min() * len(p))), finding)
