"""Mutable models that learn, forget and score one row at a time, at a cost that depends only on the row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from priory.core.typing import Array
from priory.models.cells import Cells
from priory.models.class_prior import ResolvedPrior, log_class_prior

RowT = TypeVar("RowT")  # the internal representation of a row


class RowEvidence(NamedTuple):
    """Log-likelihood of some parts of a model for one row; part 0 is the class prior."""

    parts: Array  # (parts,): indices of the parts
    values: Array  # (classes, parts): log p(x_b | c)
    lengths: Array  # (parts,): the length of a text, 1 for other parts

    def take_texts(self) -> RowEvidence:
        """All parts except the class prior."""
        return RowEvidence(self.parts[1:], self.values[:, 1:], self.lengths[1:])


class OpenModel(Protocol[RowT]):
    """A mutable model for single rows. Rows that it cannot handle (None, False) are left to the original model."""

    @property
    def n(self) -> Array:
        """Number of rows of each class, (classes,)."""

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

    def forget(self, row: RowT, group: int, is_known: bool, is_new: bool) -> bool:
        """Remove a row; return False, changing nothing, if it may not have been learned.

        ``is_known``: it certainly was learned; ``is_new``: after the statistics were last updated.
        """

    @property
    def needs_record(self) -> bool:
        """Whether ``log_joint`` needs statistics of all rows first."""

    def follow_record(self, model: Any, share: float) -> None:
        """Continue from a model with the statistics of all rows, until more than this share of them has changed."""

    def log_joint(self, row: RowT) -> Array | None:
        """Uncorrected log p(c, x), (classes,)."""

    def log_prior(self) -> Array:
        """The declared log p(c), (classes,)."""

    def estimated_log_prior(self) -> Array:
        """log p(c), by the rows learned of each class."""

    def find_prior_shift(self) -> Array | None:
        """Declared minus estimated log prior; None if they are equal."""

    def evidence(self, row: RowT) -> RowEvidence:
        """Log-likelihood of the class prior and the texts."""

    def column_evidence(self, row: RowT) -> RowEvidence | None:
        """Log-likelihood of the class prior, the texts and all columns; None if the full statistics are needed."""

    def list_coded_cells(self, row: RowT) -> Sequence[object]:
        """The cells that corrections encode, block by block."""

    def list_texts(self, row: RowT) -> Sequence[str | bytes]:
        """The texts of a row."""


class OpenPrior:
    """The class prior, updated row by row."""

    def __init__(self, n: Array, class_prior: ResolvedPrior, is_used: bool = True) -> None:
        self.n, self.class_prior, self.is_used = n.copy(), class_prior, is_used
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
            if self.is_used and isinstance(class_prior, str) and class_prior == "estimated" and self.n.min() > 0:
                self._known[name] = np.log(self.n / self.n.sum())  # the common case of `log_class_prior`
                return self._known[name]
            used = self.is_used or (name == "declared" and len(self.n) == 1)
            self._known[name] = log_class_prior(self.n, class_prior) if used else np.zeros(len(self.n))
        return self._known[name]

    def find_shift(self) -> Array | None:
        """Declared minus estimated log prior; None if "estimated" was declared."""
        if isinstance(self.class_prior, str) and self.class_prior == "estimated":
            return None
        return self.log_declared() - self.log_estimated()
