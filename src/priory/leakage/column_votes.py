"""Naive Bayes over binned columns in closed form, with every row left out of the counts that predict it.

    log p(c | x) = log π_c + Σ_j log (n_j[c, x_j] / π_c + 1) + const

``n_j[c, b]`` is the number of rows of class c in bin b of column j, without the row that is predicted; ``π_c`` is the
frequency of the class. A bin that no other row is in gives no evidence, whatever the sizes of the classes. Rows of one
class in one bin get the same prediction, so a column is scored from its counts alone; leaving a column out is a
subtraction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from priory.core.typing import Array

MAX_COLUMN_BINS = 32  # of a column of numbers
N_VOTE_FOLDS = 10
MAX_ROWS_FOR_BIN_EDGES = 1 << 16  # rows from which edges are computed


def bin_cells(cells: Array, n_train: int) -> tuple[Array, int]:
    """The bin of each cell, and the number of bins; bin 0 is for missing cells.

    Numbers get √rows bins of equal content, but at most `MAX_COLUMN_BINS`; codes get a bin for each value.
    """
    if cells.dtype.kind != "f":
        return cells + 1, int(cells.max(initial=-1)) + 2
    rows = cells[:n_train]
    sample = rows[:: max(1, len(rows) // MAX_ROWS_FOR_BIN_EDGES)]
    sample = sample[np.isfinite(sample)]
    max_bins = int(np.clip(np.sqrt(n_train), 2, MAX_COLUMN_BINS - 1))
    values = np.unique(sample)
    if len(values) > max_bins:
        values = np.unique(np.quantile(sample, np.arange(1, max_bins) / max_bins, method="lower"))
        edges = values
    else:
        edges = (values[1:] + values[:-1]) / 2
    found = (np.searchsorted(edges, cells, side="left") + 1).astype(np.uint8)
    found[np.isnan(cells)] = 0
    return found, len(edges) + 2


def count_class_bins(codes: Array, n_bins: int, class_codes: Array, n_classes: int) -> Array:
    """(classes, bins): the number of rows of each class in each bin."""
    flat = class_codes.astype(np.int64) * n_bins + codes
    return np.bincount(flat, minlength=n_classes * n_bins).reshape(n_classes, n_bins).astype(float)


def class_frequencies(class_codes: Array, n_classes: int) -> Array:
    return np.bincount(class_codes, minlength=n_classes) / max(len(class_codes), 1)


@dataclass(frozen=True)
class ColumnVote:
    """The evidence of one column for each class, given the bin of a cell."""

    codes: Array  # (rows,): the bin of each cell
    counts: Array  # (classes, bins)
    new_row_scores: Array  # (classes, bins): the evidence for a row that is not in the counts
    own_row_scores: Array  # (classes, bins): the evidence for its own class of a row that is in the counts

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
        """(classes, bins): whether the column alone predicts the class of such a row, the row itself not counted."""
        with np.errstate(divide="ignore"):
            log_prior = np.log(prior)[:, None]
        scores, own = self.new_row_scores + log_prior, self.own_row_scores + log_prior
        best, top = scores.argmax(axis=0), scores.max(axis=0)  # (bins,)
        scores[best, np.arange(scores.shape[1])] = -np.inf
        # (classes, bins): the best score of all other classes
        others = np.where(np.arange(len(prior))[:, None] == best, scores.max(axis=0), top)
        return own > others

    def predict_classes(self, counts: Array) -> Array:
        """(bins,): the class that the column alone predicts for each bin, from these counts."""
        prior = counts.sum(axis=1, keepdims=True)
        share = np.maximum(prior, 1) / max(prior.sum(), 1)
        return (np.log1p(counts / share) + np.log(share)).argmax(axis=0)

    def mark_correct_out_of_fold(self, class_codes: Array) -> Array:
        """Which training rows the column alone predicts correctly, each from the rows outside of its fold.

        This varies less than leave-one-out, where the predictions of all rows of a bin change together.
        """
        codes, fold = self.codes[: len(class_codes)], np.arange(len(class_codes)) % N_VOTE_FOLDS
        right = np.zeros(len(class_codes), dtype=bool)
        for k in range(N_VOTE_FOLDS):
            own = fold == k
            part = count_class_bins(codes[own], self.counts.shape[1], class_codes[own], len(self.counts))
            right[own] = self.predict_classes(self.counts - part)[codes[own]] == class_codes[own]
        return right

    def score_rows(self, rows: slice) -> Array:
        """(rows, classes): the evidence for new rows."""
        return self.new_row_scores.T[self.codes[rows]]

    def score_leave_one_out(self, class_codes: Array) -> Array:
        """(rows, classes): the evidence for the training rows, each without itself in the counts."""
        codes = self.codes[: len(class_codes)]
        scores = self.new_row_scores.T[codes]
        scores[np.arange(len(class_codes)), class_codes] = self.own_row_scores[class_codes, codes]
        return scores


@dataclass(frozen=True)
class BinnedNaiveBayes:
    """Naive Bayes over all columns."""

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
        """Which training rows are predicted correctly without these columns, each row left out of the counts."""
        joint = self.log_joint
        for j in exclude:
            joint = joint - self.votes[j].score_leave_one_out(self.class_codes)
        return joint.argmax(axis=1) == self.class_codes

    def mark_correct_by_column(self, j: int) -> Array:
        """Which training rows this column alone predicts correctly."""
        return self.votes[j].mark_correct_bins(self.prior)[
            self.class_codes, self.votes[j].codes[: len(self.class_codes)]
        ]

    def predict_classes(self, rows: slice, exclude: Iterable[int] = ()) -> Array:
        """The classes of new rows, predicted without these columns."""
        with np.errstate(divide="ignore"):
            joint = np.tile(np.log(self.prior), (rows.stop - rows.start, 1))
        left_out = set(exclude)
        for j, vote in enumerate(self.votes):
            if j not in left_out:
                joint += vote.score_rows(rows)
        return joint.argmax(axis=1)

    def remove_rows(self, rows: Array) -> BinnedNaiveBayes:
        """The model for new rows without some training rows: their counts are subtracted."""
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
