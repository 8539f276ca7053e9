"""A model opened for single rows: learn, forget and answer one row in place; texts as one column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy import ndarray as Array

from priory.core.content_hash import hash_bytes, scramble_number
from priory.core.input_guard import is_valid_text
from priory.core.statistics import ROUNDING_TOLERANCE
from priory.model.cells import (
    TEXT_COLUMN_NAMES,
    Cells,
    RowSample,
    TextCells,
    add_reserve,
    find_limit_below,
    hash_column_name,
)
from priory.model.document_model import DocumentModel
from priory.model.model_statistics import ModelStatistics, ResolvedPrior, log_class_prior, measure_text_length
from priory.text.normal_forms import Document
from priory.text.text_model import OpenCounts

RowT = TypeVar("RowT")  # the internal representation of a row


class RowEvidence(NamedTuple):
    """Log-likelihood of some parts of a model for one row; part 0 is the class prior."""

    parts: Array  # (parts,): indices of the parts
    values: Array  # (classes, parts): log p(x_b | c)
    lengths: Array  # (parts,): the length of a text, 1 for other parts

    def take_texts(self) -> RowEvidence:
        """All parts except the class prior."""
        return RowEvidence(self.parts[1:], self.values[:, 1:], self.lengths[1:])


class OpenPrior:
    """The class prior, updated row by row."""

    def __init__(self, n: Array, class_prior: ResolvedPrior) -> None:
        self.n, self.class_prior = n.copy(), class_prior
        self._known: dict[str, Array] = {}  # cache, cleared by the next row

    def count(self, group: int, rows: float) -> None:
        """Add rows to a class."""
        self.n[group] += rows
        self._known.clear()

    def log_declared(self) -> Array:
        """The declared log p(c), (classes,)."""
        return self._log_prior("declared", self.class_prior)

    def log_estimated(self) -> Array:
        """log p(c) estimated from the rows of each class, (classes,)."""
        return self._log_prior("estimated", "estimated")

    def _log_prior(self, name: str, class_prior: ResolvedPrior) -> Array:
        if name not in self._known:
            if isinstance(class_prior, str) and class_prior == "estimated" and self.n.min() > 0:
                self._known[name] = np.log(self.n / self.n.sum())  # the common case of `log_class_prior`
                return self._known[name]
            self._known[name] = log_class_prior(self.n, class_prior)
        return self._known[name]

    def find_shift(self) -> Array | None:
        """Declared minus estimated log prior; None if "estimated" was declared."""
        if isinstance(self.class_prior, str) and self.class_prior == "estimated":
            return None
        return self.log_declared() - self.log_estimated()


class OpenModel(Protocol[RowT]):
    """A mutable model for single rows. Rows that it cannot handle (None, False) are left to the original model."""

    prior: OpenPrior

    @property
    def n(self) -> Array:
        """Number of rows of each class, (classes,)."""
        return self.prior.n

    def read_row(self, x: object, learns: bool) -> RowT | None:
        """Convert a row; None if it has a new column or an invalid cell."""

    def hash_row(self, row: RowT) -> int:
        """Sum of the hashes of the cells, as in `hash_labelled_rows`."""

    def make_cells(self, rows: Sequence[RowT]) -> list[Cells]:
        """Convert rows to blocks of cells for the original model."""

    def measure_row(self, row: RowT) -> int:
        """Estimate the memory of a row in bytes."""

    def learn(self, row: RowT, group: int) -> None:
        """Add a row to the counts, including ``n``."""

    def forget(self, row: RowT, group: int, is_new: bool) -> bool:
        """Remove a row; return False, changing nothing, if the statistics might refuse to subtract it.

        ``is_new``: it was learned after the statistics were last updated.
        """

    def restart(self, statistics: ModelStatistics) -> None:
        """Continue from statistics that include all rows so far."""
        return

    @property
    def needs_record(self) -> bool:
        """Whether ``log_joint`` needs statistics of all rows first."""
        return False

    def follow_record(self, model: Any, share: float) -> None:
        """Continue from a model with the statistics of all rows, until more than this share of them has changed."""
        return

    def log_joint(self, row: RowT) -> Array | None:
        """Uncorrected log p(c, x), (classes,)."""

    def evidence(self, row: RowT) -> RowEvidence:
        """Log-likelihood of the class prior and the texts."""

    def column_evidence(self, row: RowT) -> RowEvidence | None:
        """Log-likelihood of the class prior, the texts and all columns; None if the full statistics are needed."""
        return self.evidence(row)

    def list_coded_cells(self, row: RowT) -> Sequence[object]:
        """The cells that corrections encode, block by block."""
        return ()

    def list_texts(self, row: RowT) -> Sequence[str | bytes]:
        """The texts of a row."""


class OpenSample(Generic[RowT]):
    """Weights of the kept rows by their hashes, and the rows added since the sample was opened."""

    def __init__(self, sample: RowSample) -> None:
        self.closed = sample
        self.memory, self.limit = sample.memory, sample.limit
        self.weights: dict[int, float] = dict(zip(sample.hashes.tolist(), sample.weight.tolist(), strict=True))
        self.new_rows: dict[int, tuple[RowT, int]] = {}  # hash -> (row, class)
        self._descending = [-h for h in self.weights]  # a heap, largest hash first; it may contain removed hashes
        heapify(self._descending)
        self._count_below_next()

    def _count_below_next(self) -> None:
        """Find the next smaller limit, and count the rows below it."""
        self._next_limit = find_limit_below(self.limit)
        self._n_below = sum(row_hash < self._next_limit for row_hash in self.weights)

    def __len__(self) -> int:
        return len(self.weights)

    def __contains__(self, row_hash: int) -> bool:
        return row_hash in self.weights

    def add(self, row_hash: int, row: RowT, group: int) -> int:
        """Add a row; return the number of kept rows that were added or removed."""
        if row_hash >= self.limit:
            return 0
        if row_hash in self.weights:
            self.weights[row_hash] += 1.0
            return 0
        self.weights[row_hash] = 1.0
        self.new_rows[row_hash] = (row, group)
        heappush(self._descending, -row_hash)
        self._n_below += row_hash < self._next_limit
        changes = 1
        while self._n_below >= max(add_reserve(self.memory), 1):
            self.limit = self._next_limit
            changes += self._drop_rows_beyond()
            self._count_below_next()
        return changes

    def _drop_rows_beyond(self) -> int:
        """Drop the rows that are not below the limit; return their number."""
        n_dropped = 0
        while self._descending and -self._descending[0] >= self.limit:
            largest = -heappop(self._descending)
            # the heap may have hashes of rows that were removed meanwhile
            n_dropped += self.weights.pop(largest, None) is not None
            self.new_rows.pop(largest, None)
        return n_dropped

    def can_remove(self, row_hash: int) -> bool:
        """Whether a row may have been learned: it is in the sample, or its hash is beyond the limit."""
        weight = self.weights.get(row_hash, 0.0)
        return row_hash >= self.limit or weight - 1.0 >= -ROUNDING_TOLERANCE * weight

    def remove(self, row_hash: int) -> int:
        """Remove a row; return the number of kept rows that were removed."""
        if row_hash >= self.limit:
            return 0
        weight = self.weights[row_hash]
        if weight - 1.0 > ROUNDING_TOLERANCE * weight:
            self.weights[row_hash] = weight - 1.0
            return 0
        del self.weights[row_hash]
        self._n_below -= row_hash < self._next_limit
        self.new_rows.pop(row_hash, None)
        return 1

    def close(self, sample_rows: Callable[[Sequence[RowT], Array, int], RowSample]) -> RowSample:
        """Return the current sample as a `RowSample`; ``sample_rows(rows, group, memory)`` makes a sample of rows."""
        before = self.closed
        now = np.array([self.weights.get(h, 0.0) for h in before.hashes.tolist()])
        if not self.new_rows and self.limit == before.limit and np.array_equal(now, before.weight):
            return before  # with all that was derived from it
        # rows of the opened sample that are still kept; a row that was removed and added again is among the new rows
        kept = np.flatnonzero([h in self.weights and h not in self.new_rows for h in before.hashes.tolist()])
        total = before if len(kept) == len(before) else before.take(kept)
        total = replace(total, limit=self.limit)
        if self.new_rows:
            rows, group = zip(*self.new_rows.values(), strict=True)
            more = sample_rows(rows, np.array(group, dtype=np.int32), self.memory)
            total = total + replace(more, limit=self.limit)
        weight = np.array([self.weights[h] for h in total.hashes.tolist()], dtype=float)
        return replace(total, weight=weight)


BOTH_PARTS = np.arange(2)  # the class prior, and the text


class OpenTexts(OpenModel[Document]):
    """A `DocumentModel` that learns, forgets and scores text by text."""

    def __init__(self, model: DocumentModel) -> None:
        self.prior = OpenPrior(model.statistics.n, model.class_prior)
        self.counts = OpenCounts(model.text, model.record)
        self._key = hash_column_name(TEXT_COLUMN_NAMES[0])

    @staticmethod
    def can_open(model: DocumentModel) -> bool:
        """Whether the cost of a text depends only on the text."""
        return OpenCounts.can_open(model.text, model.record)

    def read_row(self, x: object, learns: bool) -> Document | None:
        """Return a valid text; None for anything else, which is left to the original model."""
        return x if isinstance(x, str | bytes) and is_valid_text(x) else None

    def hash_row(self, row: Document) -> int:
        if not row:
            return 0
        return scramble_number(hash_bytes(row if isinstance(row, bytes) else row.encode()) ^ self._key)

    def make_cells(self, rows: Sequence[Document]) -> list[Cells]:
        return [TextCells(list(rows))]

    def measure_row(self, row: Document) -> int:
        return 100 + len(row)

    # -- learning ------------------------------------------------------------------------------------------------

    def learn(self, row: Document, group: int) -> None:
        self.counts.learn(row, group)
        self.prior.count(group, 1.0)

    def forget(self, row: Document, group: int, is_new: bool) -> bool:
        if not self.counts.forget(row, group):
            return False
        self.prior.count(group, -1.0)
        return True

    # -- scoring -------------------------------------------------------------------------------------------------

    def log_joint(self, row: Document) -> Array:
        return self.counts.log_likelihood(row) + self.prior.log_declared()

    def evidence(self, row: Document) -> RowEvidence:
        values = np.empty((len(self.n), 2))
        values[:, 0], values[:, 1] = self.prior.log_estimated(), self.counts.log_likelihood(row)
        return RowEvidence(BOTH_PARTS, values, np.array([1.0, measure_text_length(row)]))

    def list_texts(self, row: Document) -> Sequence[Document]:
        return (row,)
