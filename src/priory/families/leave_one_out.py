"""Leave-one-out for counted values, for all rows at once.

The results equal ``total - row`` for each row, and tests compare the two: a value that only this row has is removed,
and the bins of a histogram and the strength of the prior are chosen again. This is fast because removing a row changes
a single count by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from priory.core.special_functions import gammaln
from priory.core.typing import Array
from priory.families.dirichlet import DIRICHLET_ALPHA_GRID, choose_alpha_index, log_alpha_prior
from priory.families.value_counts import ValueCounts


class LeaveOneOutResult(NamedTuple):
    """For each removal: the evidence of the remaining rows, and the terms of the removed value given them."""

    evidence: Array  # (removals,)
    terms: Array  # (removals, classes)


class RowRemovals:
    """Removals of one row each: removal i takes a row of class ``own_class[i]`` from value ``position[i]``."""

    def __init__(self, value_counts: ValueCounts, position: Array, own_class: Array) -> None:
        self.value_counts, self.position, self.own_class = value_counts, position, own_class
        self.removal_index = np.arange(len(own_class))
        n, self.totals = value_counts.derive("margins", lambda c: (c.n, c.counts.sum(axis=0)))
        self.class_rows = np.repeat(n[None], len(own_class), axis=0)  # (removals, classes): remaining rows
        # one row less in the removed row's own class
        self.class_rows[self.removal_index, own_class] -= 1
        self.vanished = self.totals[position] == 1  # (removals,): no other row has this value
        self.values = len(value_counts.values) - self.vanished  # (removals,): number of remaining values

    def is_removable(self) -> bool:
        """Whether every row can be removed: it was learned, is not the only row, and weights are whole numbers."""
        counts = self.value_counts.counts
        whole = self.value_counts.n.sum() >= 2 and (counts == np.floor(counts)).all()
        return bool(whole and (counts[self.own_class, self.position] >= 1).all())

    def __getitem__(self, part: Array | slice) -> RowRemovals:
        return RowRemovals(self.value_counts, self.position[part], self.own_class[part])

    def restore_positions(self, position: Array) -> Array:
        """Convert positions (removals, …) among the remaining values to positions among all values."""
        return np.asarray(position + (self.vanished[:, None] & (position >= self.position[:, None])))


def choose_alpha_per_removal(drawn: Array, values: Array, rows: Array, alphas: Array) -> tuple[Array, Array]:
    """Most probable alpha for each removal, and its evidence.

    ``drawn`` (removals, alphas) is the part of the evidence that depends on the counts; ``values`` (removals,) is the
    number of remaining values, ``rows`` (removals, classes) the remaining rows.
    """
    # (removals, alphas), then (removals, alphas, classes) summed over the classes
    mass = values[:, None] * alphas
    evidence = drawn + (gammaln(mass)[:, :, None] - gammaln(mass[:, :, None] + rows[:, None, :])).sum(axis=2)
    best = choose_alpha_index(evidence + log_alpha_prior(alphas))
    return alphas[best], evidence[np.arange(len(best)), best]


def leave_out_labels(removals: RowRemovals, alpha: float | None) -> LeaveOneOutResult:
    """Leave one label out, with ``alpha`` virtual examples of each value (None: chosen again for each removal)."""
    counts = removals.value_counts.counts
    alphas = DIRICHLET_ALPHA_GRID if alpha is None else np.array([alpha])
    # Σ log Γ(count + alpha) - log Γ(alpha) over all counts (classes, values), computed once, (alphas,). Removing a row
    # lowers one count by one, which lowers the sum by log(count - 1 + alpha), because Γ(x + 1) = x Γ(x).
    some = counts[counts > 0]
    drawn = (gammaln(some + alphas[:, None]) - gammaln(alphas)[:, None]).sum(axis=1)
    lost = np.log(counts[removals.own_class, removals.position][:, None] - 1 + alphas)  # (removals, alphas)
    best, evidence = choose_alpha_per_removal(drawn - lost, removals.values, removals.class_rows, alphas)
    # (removals, classes): the counts of the removed value, one less in its own class
    left = counts[:, removals.position].T.copy()
    left[removals.removal_index, removals.own_class] -= 1
    # the smoothed shares (count + alpha) / (n + alpha values), (removals, classes)
    terms = np.log(left + best[:, None]) - np.log(removals.class_rows + (best * removals.values)[:, None])
    terms[removals.vanished] = 0.0  # an unseen value is ignored
    return LeaveOneOutResult(evidence, terms)
