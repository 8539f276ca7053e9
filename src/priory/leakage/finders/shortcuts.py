"""Find shortcuts: columns that predict the label in the training table but not in the test table.

Example: at hospital I the suspected patients are sent to the better scanner, so the scanner predicts the diagnosis; at
hospital II it does not. The predictions of such a column are worse in the test table than in the training table, where
each tenth of the rows is predicted by the others (counts subtracted).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy import ndarray as Array
from scipy.special import ndtr

from priory.leakage.audit_tables import AuditData, BinnedNaiveBayes
from priory.leakage.findings import Effect, Finding, Severity, Suspicion

HIGH_ACCURACY_DROP = 0.1  # drop in accuracy from train to test


def find(data: AuditData) -> Iterator[Suspicion]:
    votes, group = data.votes, data.class_codes
    if votes is None or group is None or not (group[data.n_train :] >= 0).any():
        return
    for j in range(len(votes.votes)):
        yield from _find_accuracy_drop(data, votes, j, group[data.n_train :])


def _find_accuracy_drop(data: AuditData, votes: BinnedNaiveBayes, j: int, truth: Array) -> Iterator[Suspicion]:
    """Find a drop in the accuracy of one column, by class, as class frequencies may differ between the tables."""
    name, known = data.columns[j].name, truth >= 0
    vote, classes = votes.votes[j], len(data.classes)
    there = (vote.predict_classes(vote.counts)[vote.codes[data.n_train :]] == truth)[known]
    # (classes,): rows in train and test, and correct answers in each
    n, m = (np.bincount(group, minlength=classes) for group in (votes.class_codes, truth[known]))
    right = np.bincount(votes.class_codes, vote.mark_correct_out_of_fold(votes.class_codes), classes)
    right_there = np.bincount(truth[known], there, classes)
    both = (n > 0) & (m > 0)
    n, m, right, right_there = n[both], m[both], right[both], right_there[both]
    # a pooled two-proportion test for each class, weighted by the class frequencies of the test table
    drop, share = right / n - right_there / m, (right + right_there) / (n + m)
    weight = m / m.sum()
    lost = float((weight * drop).sum())
    spread = float(np.sqrt((weight**2 * share * (1 - share) * (1 / n + 1 / m)).sum()))
    expected = float((weight * right / n).sum())

    def finding() -> Finding:
        part = slice(data.n_train, data.n_train + data.n_test)
        effect = [(votes.predict_classes(part, but) == truth)[known] for but in ([], [j])]
        return Finding(
            Severity.HIGH if lost - 2 * spread > HIGH_ACCURACY_DROP else Severity.MEDIUM,
            "shortcut",
            f"column {name!r} predicts the test rows worse than expected: alone it should be right in {expected:.1%} "
            f"of them, judging by the training rows, and is right in {there.mean():.1%}",
            "It is a shortcut that works only where or when the training rows were collected: leave it out.",
            columns=(name,),
            interval=(lost - 2 * spread, lost + 2 * spread),
            effect=Effect.of(*effect),
        )

    yield Suspicion(float(ndtr(-lost / spread)) if spread else 1.0, finding)
