"""Leaving one row out of counted values, every row at once.

The answers are those of ``total - row``, and tests compare the two: a value that nobody else showed vanishes, the
histogram is cut anew, the strength of the prior is chosen again. It is quick because one row moves one count by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from priory.core.typing import Array
from priory.families.dirichlet import DIRICHLET_ALPHA_GRID, choose_alpha_index
from priory.families.value_counts import ValueCounts


class LeaveOneOutResult(NamedTuple):
    """For each (value, class) that loses a row: the evidence of what is left, and the terms (classes) of the value."""

    evidence: Array
    terms: Array


class RowRemovals:
    """One row less of class ``own[i]`` at value number ``place[i]``, for every i (of two rows or more)."""

    def __init__(self, value_counts: ValueCounts, position: Array, own_class: Array) -> None:
        self.value_counts, self.position, self.own_class = value_counts, position, own_class
        self.removal_index = np.arange(len(own_class))
        self.class_rows = np.repeat(value_counts.n[None], len(own_class), axis=0)  # of each class
        self.class_rows[self.removal_index, own_class] -= 1
        self.vanished = value_counts.counts.sum(axis=0)[position] == 1
        self.values = len(value_counts.values) - self.vanished

    def is_removable(self) -> bool:
        """Whether each of the rows can have been among those seen, another one was, and rows were counted whole."""
        counts = self.value_counts.counts
        whole = self.value_counts.n.sum() >= 2 and (counts == np.floor(counts)).all()
        return bool(whole and (counts[self.own_class, self.position] >= 1).all())

    def __getitem__(self, part: Array | slice) -> RowRemovals:
        return RowRemovals(self.value_counts, self.position[part], self.own_class[part])

    def restore_positions(self, position: Array) -> Array:
        """Numbers among the values left (axis 0: removals) as numbers among all values."""
        return np.asarray(position + (self.vanished[:, None] & (position >= self.position[:, None])))


def choose_alpha_per_removal(drawn: Array, values: Array, rows: Array, alphas: Array) -> tuple[Array, Array]:
    """For each removal the best strength and its evidence; ``drawn`` (removals, strengths) is what the counts say."""
    mass = values[:, None] * alphas
    evidence = drawn + (gammaln(mass)[:, :, None] - gammaln(mass[:, :, None] + rows[:, None, :])).sum(axis=2)
    best = choose_alpha_index(evidence)
    return alphas[best], evidence[np.arange(len(best)), best]


def leave_out_labels(removals: RowRemovals, alpha: float | None) -> LeaveOneOutResult:
    """Under a Dirichlet over the values shown: ``alpha`` virtual examples of each, or what the evidence asks for."""
    counts = removals.value_counts.counts
    strengths = DIRICHLET_ALPHA_GRID if alpha is None else np.array([alpha])
    some = counts[counts > 0]
    drawn = (gammaln(some + strengths[:, None]) - gammaln(strengths)[:, None]).sum(axis=1)
    less = np.log(counts[removals.own_class, removals.position][:, None] - 1 + strengths)
    best, evidence = choose_alpha_per_removal(drawn - less, removals.values, removals.class_rows, strengths)
    left = counts[:, removals.position].T.copy()  # (removals, classes)
    left[removals.removal_index, removals.own_class] -= 1
    terms = np.log(left + best[:, None]) - np.log(removals.class_rows + (best * removals.values)[:, None])
    terms[removals.vanished] = 0.0  # a value that nobody else holds says nothing
    return LeaveOneOutResult(evidence, terms)
