"""Naive Bayes of binned columns in closed form: every column has a vote, and a row's own vote is taken out of it.

    log p(c | x) = log π_c + Σ_j log (n_j[c, x_j] / π_c + 1) + const

``n_j[c, b]`` counts the rows of class c in bin b of column j, without the row that is judged; ``π_c`` is how frequent
the class is. A bin that no other row has shown says nothing, whatever the classes' sizes. Rows of one class in one bin
share their answer, so a column is judged from its counts alone; leaving a column out is ``total - part``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from priory.core.typing import Array

MOST = 32  # bins of a column of numbers
FOLDS = 10
SAMPLE = 1 << 16  # rows that decide the edges


def binned(cells: Array, train: int) -> tuple[Array, int]:
    """The bin of each cell, and how many there are; bin 0 is for what is missing.

    Numbers: bins of equal content, √rows but at most `MOST`. Codes: a bin for each value.
    """
    if cells.dtype.kind != "f":
        return cells + 1, int(cells.max(initial=-1)) + 2
    rows = cells[:train]
    sample = rows[:: max(1, len(rows) // SAMPLE)]
    sample = sample[np.isfinite(sample)]
    wanted = int(np.clip(np.sqrt(train), 2, MOST - 1))
    values = np.unique(sample)
    if len(values) > wanted:
        values = np.unique(np.quantile(sample, np.arange(1, wanted) / wanted, method="lower"))
        edges = values
    else:
        edges = (values[1:] + values[:-1]) / 2
    found = (np.searchsorted(edges, cells, side="left") + 1).astype(np.uint8)
    found[np.isnan(cells)] = 0
    return found, len(edges) + 2


def tallied(codes: Array, size: int, group: Array, groups: int) -> Array:
    """Counts (classes, bins)."""
    flat = group.astype(np.int64) * size + codes
    return np.bincount(flat, minlength=groups * size).reshape(groups, size).astype(float)


def class_frequencies(group: Array, groups: int) -> Array:
    return np.bincount(group, minlength=groups) / max(len(group), 1)


@dataclass(frozen=True)
class Vote:
    """What one column says: ``table`` (classes, bins) of a new row, ``own`` of a training row about its own class."""

    codes: Array
    counts: Array
    table: Array
    own: Array

    @classmethod
    def of(cls, codes: Array, size: int, group: Array, prior: Array) -> Vote:
        return cls.counted(codes, tallied(codes[: len(group)], size, group, len(prior)), prior)

    @classmethod
    def counted(cls, codes: Array, counts: Array, prior: Array) -> Vote:
        share = np.maximum(prior, 1e-300)[:, None]
        return cls(codes, counts, np.log1p(counts / share), np.log1p(np.maximum(counts - 1, 0) / share))

    def alone(self, prior: Array) -> Array:
        """(classes, bins): whether the column alone gives such a row its class, the row itself not counted."""
        with np.errstate(divide="ignore"):
            log_prior = np.log(prior)[:, None]
        scores, own = self.table + log_prior, self.own + log_prior
        best = scores.argmax(axis=0)
        top = scores.max(axis=0)
        scores[best, np.arange(scores.shape[1])] = -np.inf
        others = np.where(np.arange(len(prior))[:, None] == best, scores.max(axis=0), top)
        return own > others

    def answers(self, counts: Array) -> Array:
        """The class that the column alone gives to each bin, from these counts."""
        prior = counts.sum(axis=1, keepdims=True)
        share = np.maximum(prior, 1) / max(prior.sum(), 1)
        return (np.log1p(counts / share) + np.log(share)).argmax(axis=0)

    def right_in_folds(self, group: Array) -> Array:
        """Which training rows the column alone gives their class, each from the rows outside of its fold.

        Steadier than leave-one-out, where all rows of a bin change their answer together.
        """
        codes, fold = self.codes[: len(group)], np.arange(len(group)) % FOLDS
        right = np.zeros(len(group), dtype=bool)
        for k in range(FOLDS):
            own = fold == k
            part = tallied(codes[own], self.counts.shape[1], group[own], len(self.counts))
            right[own] = self.answers(self.counts - part)[codes[own]] == group[own]
        return right

    def say(self, rows: slice) -> Array:
        """(rows, classes) for new rows."""
        return self.table.T[self.codes[rows]]

    def say_without(self, group: Array) -> Array:
        """(rows, classes) for the training rows, each without itself."""
        codes = self.codes[: len(group)]
        said = self.table.T[codes]
        said[np.arange(len(group)), group] = self.own[group, codes]
        return said


@dataclass(frozen=True)
class Votes:
    """All columns together."""

    votes: tuple[Vote, ...]
    group: Array
    prior: Array
    joint: Array  # (training rows, classes), each row without itself

    @classmethod
    def of(cls, bins: Sequence[tuple[Array, int]], group: Array, groups: int) -> Votes:
        prior = class_frequencies(group, groups)
        votes = tuple(Vote.of(codes, size, group, prior) for codes, size in bins)
        with np.errstate(divide="ignore"):
            joint = np.tile(np.log(prior), (len(group), 1))
        for vote in votes:
            joint += vote.say_without(group)
        return cls(votes, group, prior, joint)

    def right(self, without: Iterable[int] = ()) -> Array:
        """Which training rows are given their class by all columns but these, each row left out of the counts."""
        joint = self.joint
        for j in without:
            joint = joint - self.votes[j].say_without(self.group)
        return joint.argmax(axis=1) == self.group

    def right_alone(self, j: int) -> Array:
        """Which training rows this column alone gives their class."""
        return self.votes[j].alone(self.prior)[self.group, self.votes[j].codes[: len(self.group)]]

    def answers(self, rows: slice, but: Iterable[int] = ()) -> Array:
        """The class that the training rows give to other rows, by all columns but these."""
        with np.errstate(divide="ignore"):
            joint = np.tile(np.log(self.prior), (rows.stop - rows.start, 1))
        left_out = set(but)
        for j, vote in enumerate(self.votes):
            if j not in left_out:
                joint += vote.say(rows)
        return joint.argmax(axis=1)

    def without(self, rows: Array) -> Votes:
        """For new rows, as if some training rows had never been there: their counts are subtracted."""
        group, groups = self.group[rows], len(self.prior)
        left = np.bincount(self.group, minlength=groups) - np.bincount(group, minlength=groups)
        prior = left / max(left.sum(), 1)
        votes = tuple(
            Vote.counted(v.codes, v.counts - tallied(v.codes[rows], v.counts.shape[1], group, groups), prior)
            for v in self.votes
        )
        return Votes(votes, self.group[:0], prior, self.joint[:0])
