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

MAX_COLUMN_BINS = 32  # bins of a column of numbers
N_VOTE_FOLDS = 10
MAX_ROWS_FOR_BIN_EDGES = 1 << 16  # rows that decide the edges


def bin_cells(cells: Array, n_train: int) -> tuple[Array, int]:
    """The bin of each cell, and how many there are; bin 0 is for what is missing.

    Numbers: bins of equal content, √rows but at most `MAX_COLUMN_BINS`. Codes: a bin for each value.
    """
    if cells.dtype.kind != "f":
        return cells + 1, int(cells.max(initial=-1)) + 2
    rows = cells[:n_train]
    sample = rows[:: max(1, len(rows) // MAX_ROWS_FOR_BIN_EDGES)]
    sample = sample[np.isfinite(sample)]
    wanted = int(np.clip(np.sqrt(n_train), 2, MAX_COLUMN_BINS - 1))
    values = np.unique(sample)
    if len(values) > wanted:
        values = np.unique(np.quantile(sample, np.arange(1, wanted) / wanted, method="lower"))
        edges = values
    else:
        edges = (values[1:] + values[:-1]) / 2
    found = (np.searchsorted(edges, cells, side="left") + 1).astype(np.uint8)
    found[np.isnan(cells)] = 0
    return found, len(edges) + 2


def count_class_bins(codes: Array, n_bins: int, class_codes: Array, n_classes: int) -> Array:
    """Counts (classes, bins)."""
    flat = class_codes.astype(np.int64) * n_bins + codes
    return np.bincount(flat, minlength=n_classes * n_bins).reshape(n_classes, n_bins).astype(float)


def class_frequencies(class_codes: Array, n_classes: int) -> Array:
    return np.bincount(class_codes, minlength=n_classes) / max(len(class_codes), 1)


@dataclass(frozen=True)
class ColumnVote:
    """What one column says: ``table`` (classes, bins) of a new row, ``own`` of a training row about its own class."""

    codes: Array
    counts: Array
    new_row_scores: Array
    own_row_scores: Array

    @classmethod
    def of(cls, codes: Array, n_bins: int, class_codes: Array, prior: Array) -> ColumnVote:
        return cls.from_counts(
            codes, count_class_bins(codes[: len(class_codes)], n_bins, class_codes, len(prior)), prior
        )

    @classmethod
    def from_counts(cls, codes: Array, counts: Array, prior: Array) -> ColumnVote:
        share = np.maximum(prior, 1e-300)[:, None]
        return cls(codes, counts, np.log1p(counts / share), np.log1p(np.maximum(counts - 1, 0) / share))

    def mark_correct_bins(self, prior: Array) -> Array:
        """(classes, bins): whether the column alone gives such a row its class, the row itself not counted."""
        with np.errstate(divide="ignore"):
            log_prior = np.log(prior)[:, None]
        scores, own = self.new_row_scores + log_prior, self.own_row_scores + log_prior
        best = scores.argmax(axis=0)
        top = scores.max(axis=0)
        scores[best, np.arange(scores.shape[1])] = -np.inf
        others = np.where(np.arange(len(prior))[:, None] == best, scores.max(axis=0), top)
        return own > others

    def predict_classes(self, counts: Array) -> Array:
        """The class that the column alone gives to each bin, from these counts."""
        prior = counts.sum(axis=1, keepdims=True)
        share = np.maximum(prior, 1) / max(prior.sum(), 1)
        return (np.log1p(counts / share) + np.log(share)).argmax(axis=0)

    def mark_correct_out_of_fold(self, class_codes: Array) -> Array:
        """Which training rows the column alone gives their class, each from the rows outside of its fold.

        Steadier than leave-one-out, where all rows of a bin change their answer together.
        """
        codes, fold = self.codes[: len(class_codes)], np.arange(len(class_codes)) % N_VOTE_FOLDS
        right = np.zeros(len(class_codes), dtype=bool)
        for k in range(N_VOTE_FOLDS):
            own = fold == k
            part = count_class_bins(codes[own], self.counts.shape[1], class_codes[own], len(self.counts))
            right[own] = self.predict_classes(self.counts - part)[codes[own]] == class_codes[own]
        return right

    def score_rows(self, rows: slice) -> Array:
        """(rows, classes) for new rows."""
        return self.new_row_scores.T[self.codes[rows]]

    def score_leave_one_out(self, class_codes: Array) -> Array:
        """(rows, classes) for the training rows, each without itself."""
        codes = self.codes[: len(class_codes)]
        said = self.new_row_scores.T[codes]
        said[np.arange(len(class_codes)), class_codes] = self.own_row_scores[class_codes, codes]
        return said


@dataclass(frozen=True)
class BinnedNaiveBayes:
    """All columns together."""

    votes: tuple[ColumnVote, ...]
    class_codes: Array
    prior: Array
    log_joint: Array  # (training rows, classes), each row without itself

    @classmethod
    def of(cls, bins: Sequence[tuple[Array, int]], class_codes: Array, n_classes: int) -> BinnedNaiveBayes:
        prior = class_frequencies(class_codes, n_classes)
        votes = tuple(ColumnVote.of(codes, size, class_codes, prior) for codes, size in bins)
        with np.errstate(divide="ignore"):
            joint = np.tile(np.log(prior), (len(class_codes), 1))
        for vote in votes:
            joint += vote.score_leave_one_out(class_codes)
        return cls(votes, class_codes, prior, joint)

    def mark_correct_rows(self, exclude: Iterable[int] = ()) -> Array:
        """Which training rows are given their class by all columns but these, each row left out of the counts."""
        joint = self.log_joint
        for j in exclude:
            joint = joint - self.votes[j].score_leave_one_out(self.class_codes)
        return joint.argmax(axis=1) == self.class_codes

    def mark_correct_by_column(self, j: int) -> Array:
        """Which training rows this column alone gives their class."""
        return self.votes[j].mark_correct_bins(self.prior)[
            self.class_codes, self.votes[j].codes[: len(self.class_codes)]
        ]

    def predict_classes(self, rows: slice, exclude: Iterable[int] = ()) -> Array:
        """The class that the training rows give to other rows, by all columns but these."""
        with np.errstate(divide="ignore"):
            joint = np.tile(np.log(self.prior), (rows.stop - rows.start, 1))
        left_out = set(exclude)
        for j, vote in enumerate(self.votes):
            if j not in left_out:
                joint += vote.score_rows(rows)
        return joint.argmax(axis=1)

    def remove_rows(self, rows: Array) -> BinnedNaiveBayes:
        """For new rows, as if some training rows had never been there: their counts are subtracted."""
        group, groups = self.class_codes[rows], len(self.prior)
        left = np.bincount(self.class_codes, minlength=groups) - np.bincount(group, minlength=groups)
        prior = left / max(left.sum(), 1)
        votes = tuple(
            ColumnVote.from_counts(
                v.codes, v.counts - count_class_bins(v.codes[rows], v.counts.shape[1], group, groups), prior
            )
            for v in self.votes
        )
        return BinnedNaiveBayes(votes, self.class_codes[:0], prior, self.log_joint[:0])
