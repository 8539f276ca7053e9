"""Leaving one row out of counted values, every row at once.

The answers are those of ``total - row``, and tests compare the two: a value that no other row showed vanishes, the bins
of the histogram are chosen again, and so is the strength of the prior. It is fast because one row changes one count by
one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from priory.core.special_functions import gammaln
from priory.core.typing import Array
from priory.families.dirichlet import DIRICHLET_ALPHA_GRID, choose_alpha_index, log_alpha_prior
from priory.families.value_counts import ValueCounts


class LeaveOneOutResult(NamedTuple):
    """For each removal: the evidence of what is left, and the terms of the removed value under it."""

    evidence: Array  # (removals,)
    terms: Array  # (removals, classes)


class RowRemovals:
    """Removals of one row each: removal i takes a row of class ``own_class[i]`` from value ``position[i]``."""

    def __init__(self, value_counts: ValueCounts, position: Array, own_class: Array) -> None:
        self.value_counts, self.position, self.own_class = value_counts, position, own_class
        self.removal_index = np.arange(len(own_class))
        n, self.totals = value_counts.derive("margins", lambda c: (c.n, c.counts.sum(axis=0)))
        self.class_rows = np.repeat(n[None], len(own_class), axis=0)  # (removals, classes): rows left
        self.class_rows[self.removal_index, own_class] -= 1
        self.vanished = self.totals[position] == 1  # (removals,): it was the only row of its value
        self.values = len(value_counts.values) - self.vanished  # (removals,): the number of values left

    def is_removable(self) -> bool:
        """Whether every row can be removed: it was seen, at least two rows were, and rows have whole weights."""
        counts = self.value_counts.counts
        whole = self.value_counts.n.sum() >= 2 and (counts == np.floor(counts)).all()
        return bool(whole and (counts[self.own_class, self.position] >= 1).all())

    def __getitem__(self, part: Array | slice) -> RowRemovals:
        return RowRemovals(self.value_counts, self.position[part], self.own_class[part])

    def restore_positions(self, position: Array) -> Array:
        """Positions (removals, ...) among the values left as positions among all values."""
        return np.asarray(position + (self.vanished[:, None] & (position >= self.position[:, None])))


def choose_alpha_per_removal(drawn: Array, values: Array, rows: Array, alphas: Array) -> tuple[Array, Array]:
    """For each removal the most probable alpha and its evidence.

    ``drawn`` (removals, alphas) is the part of the evidence that the counts decide; ``values`` (removals,) is the
    number of values left, ``rows`` (removals, classes) the rows left.
    """
    # (removals, alphas), then (removals, alphas, classes) summed over the classes
    mass = values[:, None] * alphas
    evidence = drawn + (gammaln(mass)[:, :, None] - gammaln(mass[:, :, None] + rows[:, None, :])).sum(axis=2)
    best = choose_alpha_index(evidence + log_alpha_prior(alphas))
    return alphas[best], evidence[np.arange(len(best)), best]


def leave_out_labels(removals: RowRemovals, alpha: float | None) -> LeaveOneOutResult:
    """Labels under a Dirichlet over the values shown, with ``alpha`` virtual examples of each, or the best number."""
    counts = removals.value_counts.counts
    alphas = DIRICHLET_ALPHA_GRID if alpha is None else np.array([alpha])
    # The counts (classes, values) decide the same part of the evidence for all removals, except for one count each.
    some = counts[counts > 0]
    drawn = (gammaln(some + alphas[:, None]) - gammaln(alphas)[:, None]).sum(axis=1)
    lost = np.log(counts[removals.own_class, removals.position][:, None] - 1 + alphas)  # (removals, alphas)
    best, evidence = choose_alpha_per_removal(drawn - lost, removals.values, removals.class_rows, alphas)
    # (removals, classes): the counts of the removed value, one less in its own class
    left = counts[:, removals.position].T.copy()
    left[removals.removal_index, removals.own_class] -= 1
    terms = np.log(left + best[:, None]) - np.log(removals.class_rows + (best * removals.values)[:, None])
    terms[removals.vanished] = 0.0  # a value that no other row holds says nothing
    return LeaveOneOutResult(evidence, terms)
