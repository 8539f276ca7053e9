"""Leaving one row out of counted values, every row at once.

The answers are those of ``total - row``, and tests compare the two: a value that nobody else showed vanishes, the
histogram is cut anew, the strength of the prior is chosen again. It is quick because one row moves one count by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from priory.core.typing import Array
from priory.families.dirichlet import STRENGTHS, first_best
from priory.families.value_counts import Tally


class Left(NamedTuple):
    """For each (value, class) that loses a row: the evidence of what is left, and the terms (classes) of the value."""

    evidence: Array
    terms: Array


class Removals:
    """One row less of class ``own[i]`` at value number ``place[i]``, for every i (of two rows or more)."""

    def __init__(self, tally: Tally, place: Array, own: Array) -> None:
        self.tally, self.place, self.own = tally, place, own
        self.each = np.arange(len(own))
        self.rows = np.repeat(tally.n[None], len(own), axis=0)  # of each class
        self.rows[self.each, own] -= 1
        self.vanished = tally.counts.sum(axis=0)[place] == 1
        self.values = len(tally.values) - self.vanished

    def learned(self) -> bool:
        """Whether each of the rows can have been among those seen, another one was, and rows were counted whole."""
        counts = self.tally.counts
        whole = self.tally.n.sum() >= 2 and (counts == np.floor(counts)).all()
        return bool(whole and (counts[self.own, self.place] >= 1).all())

    def __getitem__(self, part: Array | slice) -> Removals:
        return Removals(self.tally, self.place[part], self.own[part])

    def original(self, place: Array) -> Array:
        """Numbers among the values left (axis 0: removals) as numbers among all values."""
        return np.asarray(place + (self.vanished[:, None] & (place >= self.place[:, None])))


def strongest(drawn: Array, values: Array, rows: Array, strengths: Array) -> tuple[Array, Array]:
    """For each removal the best strength and its evidence; ``drawn`` (removals, strengths) is what the counts say."""
    mass = values[:, None] * strengths
    evidence = drawn + (gammaln(mass)[:, :, None] - gammaln(mass[:, :, None] + rows[:, None, :])).sum(axis=2)
    best = first_best(evidence)
    return strengths[best], evidence[np.arange(len(best)), best]


def of_labels(gone: Removals, alpha: float | None) -> Left:
    """Under a Dirichlet over the values shown: ``alpha`` virtual examples of each, or what the evidence asks for."""
    counts = gone.tally.counts
    strengths = STRENGTHS if alpha is None else np.array([alpha])
    some = counts[counts > 0]
    drawn = (gammaln(some + strengths[:, None]) - gammaln(strengths)[:, None]).sum(axis=1)
    less = np.log(counts[gone.own, gone.place][:, None] - 1 + strengths)
    best, evidence = strongest(drawn - less, gone.values, gone.rows, strengths)
    shown = counts[:, gone.place].T.copy()
    shown[gone.each, gone.own] -= 1
    return Left(evidence, np.log(shown + best[:, None]) - np.log(gone.rows + (best * gone.values)[:, None]))
