"""The data of an audit, and how well each column predicts the label by itself.

All finders share the data: every column has the training rows first, then the test rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy import ndarray as Array
from sklearn.base import BaseEstimator

from priory.core.value_counts import encode_values
from priory.estimators.text_classifier import TextClassifier
from priory.leakage.findings import Effect, measure_association

MAX_DOCUMENTS_SCORED = 20_000  # documents used to measure the effect of a finding


def sample_documents(documents: list[str], labels: Array) -> tuple[list[str], Array]:
    """Return about `MAX_DOCUMENTS_SCORED` evenly spaced documents with their labels, or all if there are fewer."""
    step = max(1, len(documents) // MAX_DOCUMENTS_SCORED)
    return documents[::step], labels[::step]


def log_joint_leave_one_out(documents: list[str], labels: Array, stop_words: Sequence[str] | None = None) -> Array:
    """Return log p(class, document) from all other documents, (documents, classes); classes are 0, 1, ..."""
    model = TextClassifier(stop_words=list(stop_words) if stop_words else None, calibrate=False).fit(documents, labels)
    joint = np.full((len(documents), int(labels.max()) + 1), -np.inf)  # -inf for classes outside of the sample
    joint[:, model.classes_] = model.leave_one_out(documents, labels)
    return joint


def mark_correct_documents(documents: list[str], labels: Array, stop_words: Sequence[str] | None = None) -> Array:
    """Whether each document is classified correctly by all other documents, without ``stop_words``: (documents,)."""
    return np.asarray(log_joint_leave_one_out(documents, labels, stop_words).argmax(axis=1) == labels)


MAX_COLUMN_BINS = 32  # of a numeric column
N_VOTE_FOLDS = 10  # of mark_correct_out_of_fold
MAX_ROWS_FOR_BIN_EDGES = 1 << 16  # rows from which edges are computed


def bin_cells(cells: Array, n_train: int) -> tuple[Array, int]:
    """Return the bin of each cell, (rows,), and the number of bins; bin 0 is for missing cells.

    Numbers get √rows bins of equal content, but at most `MAX_COLUMN_BINS`; codes get a bin for each value.
    """
    if cells.dtype.kind != "f":
        return cells + 1, int(cells.max(initial=-1)) + 2  # codes: -1 (missing) becomes bin 0
    rows = cells[:n_train]
    sample = rows[:: max(1, len(rows) // MAX_ROWS_FOR_BIN_EDGES)]
    sample = sample[np.isfinite(sample)]
    max_bins = int(np.clip(np.sqrt(n_train), 2, MAX_COLUMN_BINS - 1))  # bin 0 is for missing cells
    values = np.unique(sample)
    # quantiles as edges, or midpoints if there are few distinct values
    if len(values) > max_bins:
        values = np.unique(np.quantile(sample, np.arange(1, max_bins) / max_bins, method="lower"))
        edges = values
    else:
        edges = (values[1:] + values[:-1]) / 2
    found = (np.searchsorted(edges, cells, side="left") + 1).astype(np.uint8)
    found[np.isnan(cells)] = 0
    return found, len(edges) + 2


def count_class_bins(codes: Array, n_bins: int, class_codes: Array, n_classes: int) -> Array:
    """Return the number of rows of each class in each bin, (classes, bins)."""
    flat = class_codes.astype(np.int64) * n_bins + codes  # (rows,): index into the flattened table
    return np.bincount(flat, minlength=n_classes * n_bins).reshape(n_classes, n_bins).astype(float)


def measure_trend(values: Array, class_codes: Array, n_classes: int) -> tuple[float, float]:
    """Return the information of training values about the class, in bits, and the p-value of independence."""
    codes, n_bins = bin_cells(values, len(values))
    return measure_association(count_class_bins(codes, n_bins, class_codes, n_classes))


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
        # a class without rows has share 0, and no evidence is computed from it
        share = np.maximum(prior, 1e-300)[:, None]
        return cls(codes, counts, np.log1p(counts / share), np.log1p(np.maximum(counts - 1, 0) / share))

    def mark_correct_bins(self, prior: Array) -> Array:
        """Whether the column alone predicts a row of this class and bin correctly, leave-one-out: (classes, bins)."""
        with np.errstate(divide="ignore"):
            log_prior = np.log(prior)[:, None]
        scores, own = self.new_row_scores + log_prior, self.own_row_scores + log_prior
        best, top = scores.argmax(axis=0), scores.max(axis=0)  # (bins,)
        scores[best, np.arange(scores.shape[1])] = -np.inf
        # (classes, bins): the best score among the other classes, which is the second best for the best class
        others = np.where(np.arange(len(prior))[:, None] == best, scores.max(axis=0), top)
        return own > others

    def predict_classes(self, counts: Array) -> Array:
        """Return the class that the column alone predicts for each bin, (bins,), from these counts."""
        prior = counts.sum(axis=1, keepdims=True)  # (classes, 1)
        share = np.maximum(prior, 1) / max(prior.sum(), 1)
        return (np.log1p(counts / share) + np.log(share)).argmax(axis=0)

    def mark_correct_out_of_fold(self, class_codes: Array) -> Array:
        """Whether the column alone predicts each training row correctly, by cross-validation: (rows,).

        It varies less than leave-one-out, where the predictions of all rows of a bin change together.
        """
        codes, fold = self.codes[: len(class_codes)], np.arange(len(class_codes)) % N_VOTE_FOLDS
        right = np.zeros(len(class_codes), dtype=bool)
        for k in range(N_VOTE_FOLDS):
            own = fold == k
            part = count_class_bins(codes[own], self.counts.shape[1], class_codes[own], len(self.counts))
            right[own] = self.predict_classes(self.counts - part)[codes[own]] == class_codes[own]
        return right

    def score_leave_one_out(self, class_codes: Array) -> Array:
        """Return the leave-one-out evidence for the training rows, (rows, classes)."""
        codes = self.codes[: len(class_codes)]
        scores = self.new_row_scores.T[codes]
        # only the count of the row's own class contains the row
        scores[np.arange(len(class_codes)), class_codes] = self.own_row_scores[class_codes, codes]
        return scores


@dataclass(frozen=True)
class BinnedNaiveBayes:
    """Naive Bayes over all columns."""

    votes: tuple[ColumnVote, ...]
    class_codes: Array  # (training rows,)
    prior: Array  # (classes,)
    log_joint: Array  # (training rows, classes), leave-one-out

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
        """Whether each training row is predicted correctly without these columns, leave-one-out: (rows,)."""
        joint = self.log_joint
        for j in exclude:
            joint = joint - self.votes[j].score_leave_one_out(self.class_codes)
        return joint.argmax(axis=1) == self.class_codes

    def mark_correct_by_column(self, j: int) -> Array:
        """Whether this column alone predicts each training row correctly, leave-one-out: (rows,)."""
        return self.votes[j].mark_correct_bins(self.prior)[
            self.class_codes, self.votes[j].codes[: len(self.class_codes)]
        ]

    def predict_classes(self, rows: slice, exclude: Iterable[int] = ()) -> Array:
        """Predict the classes of new rows without these columns."""
        with np.errstate(divide="ignore"):
            joint = np.tile(np.log(self.prior), (rows.stop - rows.start, 1))
        left_out = set(exclude)
        for j, vote in enumerate(self.votes):
            if j not in left_out:
                joint += vote.new_row_scores.T[vote.codes[rows]]  # (rows, classes)
        return joint.argmax(axis=1)

    def remove_rows(self, rows: Array) -> BinnedNaiveBayes:
        """Return the model without some training rows, by subtracting their counts; it can only predict new rows."""
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


@dataclass(frozen=True)
class AuditColumn:
    """One column of both tables: numbers (NaN if missing), or codes (-1 if missing) of sorted values."""

    name: str
    numbers: Array | None = None
    labels: tuple[Array, Array] | None = None

    @cached_property
    def codes_and_values(self) -> tuple[Array, Array]:
        """The code of each cell, (rows,), and the sorted values that the codes index; numbers are encoded too."""
        if self.labels is not None:
            return self.labels
        assert self.numbers is not None
        return encode_values(self.numbers)

    @cached_property
    def is_missing(self) -> Array:
        return np.isnan(self.numbers) if self.numbers is not None else self.codes_and_values[0] < 0

    @cached_property
    def is_discrete(self) -> bool:
        """Whether the column holds labels or whole numbers."""
        if self.numbers is None:
            return True
        present = self.numbers[~self.is_missing]
        return bool(len(present)) and bool((present == np.rint(present)).all())

    def format_cell(self, row: int) -> str:
        """Format one cell; a missing cell is empty."""
        if self.is_missing[row]:
            return ""
        if self.numbers is not None:
            return f"{self.numbers[row]:g}"
        codes, values = self.codes_and_values
        return str(values[codes[row]])


@dataclass(frozen=True)
class AuditData:
    """The input of the finders. ``class_codes`` is the class of each row, -1 if unknown."""

    n_train: int
    n_test: int  # 0 if there is no test table
    columns: tuple[AuditColumn, ...]
    texts: Mapping[str, list[str]]  # columns of prose
    classes: tuple[str, ...] = ()
    class_codes: Array | None = None
    target: AuditColumn | None = None
    groups: AuditColumn | None = None
    time: AuditColumn | None = None
    date_columns: tuple[str, ...] = ()
    pipeline: BaseEstimator | None = None
    raw_features: tuple[object, object] = (None, None)  # train and test as given, for the pipeline
    _bins_by_column: dict[str, tuple[Array, int]] = field(default_factory=dict, compare=False)

    @property
    def labels(self) -> Array | None:
        """The class codes of the training rows; None if there are fewer than two classes."""
        return None if self.class_codes is None or len(self.classes) < 2 else self.class_codes[: self.n_train]

    def find_column(self, name: str) -> AuditColumn:
        return next(column for column in self.columns if column.name == name)

    def bin_column(self, column: AuditColumn) -> tuple[Array, int]:
        """Return the bin of each cell (0 if missing) and the number of bins; edges come from the training rows."""
        if column.name not in self._bins_by_column:
            source = column.numbers if column.numbers is not None else column.codes_and_values[0]
            self._bins_by_column[column.name] = bin_cells(source, self.n_train)
        return self._bins_by_column[column.name]

    @cached_property
    def votes(self) -> BinnedNaiveBayes | None:
        """Naive Bayes over all binned columns."""
        if self.labels is None or not self.columns:
            return None
        bins = [self.bin_column(column) for column in self.columns]
        return BinnedNaiveBayes.of(bins, self.labels, len(self.classes))

    @property
    def base_rate(self) -> float:
        """The accuracy of always answering the most common class."""
        return 0.0 if self.labels is None else float(class_frequencies(self.labels, len(self.classes)).max())

    def score_without_rows(self, rows: Array) -> Effect | None:
        """Return the test accuracy with all training rows, and without some of them (their counts are subtracted)."""
        if self.votes is None or self.class_codes is None or len(rows) == self.n_train:
            return None
        truth = self.class_codes[self.n_train :]
        known = truth >= 0  # test rows with a label
        part = slice(self.n_train, self.n_train + self.n_test)
        # with and without these rows, (known test rows,) each
        right = [(votes.predict_classes(part) == truth)[known] for votes in (self.votes, self.votes.remove_rows(rows))]
        return Effect.of(*right) if known.any() else None

    def format_row(self, row: int, max_columns: int = 6) -> str:
        """Format one row."""
        cells = [f"{name}={texts[row][:80]}" for name, texts in self.texts.items()]
        cells += [f"{column.name}={column.format_cell(row)}" for column in self.columns[:max_columns]]
        return ", ".join(cells) + (", ..." if len(self.columns) > max_columns else "")
