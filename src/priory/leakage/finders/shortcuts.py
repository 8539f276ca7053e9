"""Shortcuts: what a column knows that does not last.

At hospital I the suspected patients are sent to the better scanner, so the scanner knows the diagnosis; at hospital II
it does not. The column's answers, learned from the training rows, are worse in the test table than in the training
table itself, where each tenth of the rows is answered by the others (counts subtracted).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtr

from priory.core.typing import Array
from priory.leakage.audit_tables import Evidence
from priory.leakage.column_votes import Votes
from priory.leakage.findings import Effect, Finding, Severity, Suspicion

DROP = 0.1  # in accuracy, of a column whose answers do not last


def find(evidence: Evidence) -> Iterator[Suspicion]:
    votes, group = evidence.votes, evidence.group
    if votes is None or group is None or not (group[evidence.train :] >= 0).any():
        return
    for j in range(len(votes.votes)):
        yield from _lasting(evidence, votes, j, group[evidence.train :])


def _lasting(evidence: Evidence, votes: Votes, j: int, truth: Array) -> Iterator[Suspicion]:
    """Class by class, so that other shares of the classes in the test table do not count."""
    name, known = evidence.columns[j].name, truth >= 0
    vote, classes = votes.votes[j], len(evidence.classes)
    there = (vote.answers(vote.counts)[vote.codes[evidence.train :]] == truth)[known]
    n, m = (np.bincount(group, minlength=classes) for group in (votes.group, truth[known]))
    right = np.bincount(votes.group, vote.right_in_folds(votes.group), classes)
    right_there = np.bincount(truth[known], there, classes)
    both = (n > 0) & (m > 0)
    n, m, right, right_there = n[both], m[both], right[both], right_there[both]
    drop, share = right / n - right_there / m, (right + right_there) / (n + m)
    weight = m / m.sum()
    lost = float((weight * drop).sum())
    spread = float(np.sqrt((weight**2 * share * (1 - share) * (1 / n + 1 / m)).sum()))
    expected = float((weight * right / n).sum())

    def finding() -> Finding:
        part = slice(evidence.train, evidence.train + evidence.test)
        effect = [(votes.answers(part, but) == truth)[known].mean() for but in ([], [j])]
        return Finding(
            Severity.HIGH if lost - 2 * spread > DROP else Severity.MEDIUM,
            "shortcut",
            f"what column {name!r} knows does not last: by what the training rows say of each other it alone should be "
            f"right in {expected:.1%} of the test rows, and is in {there.mean():.1%}",
            "It is a shortcut of the place or time where the training rows were collected: leave it out.",
            columns=(name,),
            interval=(lost - 2 * spread, lost + 2 * spread),
            effect=Effect(float(effect[0]), float(effect[1]), int(known.sum())),
        )

    yield Suspicion(float(ndtr(-lost / spread)) if spread else 1.0, finding)
