"""Models that take one row at a time: what a row says, learned and forgotten in place, at the cost of the row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from priory.core.typing import Array
from priory.models.cells import Cells
from priory.models.class_prior import ResolvedPrior, log_class_prior

RowT = TypeVar("RowT")  # a row as its model keeps it


class RowEvidence(NamedTuple):
    """What parts of a model say about one row; part 0 is the class prior."""

    parts: Array  # (parts,): their numbers
    values: Array  # (classes, parts): log p(x_b | c)
    lengths: Array  # (parts,): the length of a text, one for everything else

    def take_texts(self) -> RowEvidence:
        """All parts but the class prior."""
        return RowEvidence(self.parts[1:], self.values[:, 1:], self.lengths[1:])


class OpenModel(Protocol[RowT]):
    """A model opened for single rows. Rows that it cannot take (None, False) are left to the model it came from."""

    @property
    def n(self) -> Array:
        """(classes,): the rows of each class."""

    def read_row(self, x: object, learns: bool) -> RowT | None:
        """A row as it is kept; None if there is something new or wrong in it."""

    def hash_row(self, row: RowT) -> int:
        """The sum of the hashes of the cells, as `hash_labelled_rows` has it."""

    def make_cells(self, rows: Sequence[RowT]) -> list[Cells]:
        """Rows as the blocks of cells that the model it came from reads."""

    def measure_row(self, row: RowT) -> int:
        """About how many bytes a row takes."""

    def learn(self, row: RowT, group: int) -> None:
        """Add a row to what the evidence is computed from; ``n`` included."""

    def forget(self, row: RowT, group: int, is_known: bool, is_new: bool) -> bool:
        """Take a row away; False, and nothing changed, if it may not have been learned.

        ``is_known``: it surely was; ``is_new``: not before the record was last brought up to date.
        """

    @property
    def needs_record(self) -> bool:
        """Whether ``log_joint`` needs a record that has all rows."""

    def follow_record(self, model: Any, share: float) -> None:
        """Go on from a model whose record has all rows, until more than this share of them has come or gone."""

    def log_joint(self, row: RowT) -> Array | None:
        """(classes,): log p(c, x), uncorrected."""

    def log_prior(self) -> Array:
        """log p(c), as declared."""

    def estimated_log_prior(self) -> Array:
        """log p(c), by the rows learned of each class."""

    def find_prior_shift(self) -> Array | None:
        """How far the declared log p(c) is from that of the rows learned of each class; None if it is that."""

    def evidence(self, row: RowT) -> RowEvidence:
        """What the class prior and the texts say about a row."""

    def column_evidence(self, row: RowT) -> RowEvidence | None:
        """What the class prior, the texts and all columns say about a row; None if that is for the record to say."""

    def list_coded_cells(self, row: RowT) -> Sequence[object]:
        """The cells that corrections read as codes, block by block."""

    def list_texts(self, row: RowT) -> Sequence[str | bytes]:
        """The texts of a row."""


class OpenPrior:
    """The class prior while rows come and go one at a time."""

    def __init__(self, n: Array, class_prior: ResolvedPrior, is_used: bool = True) -> None:
        self.n, self.class_prior, self.is_used = n.copy(), class_prior, is_used
        self._known: dict[str, Array] = {}  # until the next row

    def count(self, group: int, rows: float) -> None:
        """Add rows to a class."""
        self.n[group] += rows
        self._known.clear()

    def log_declared(self) -> Array:
        """(classes,): log p(c), as declared."""
        return self._log_prior("declared", self.class_prior)

    def log_estimated(self) -> Array:
        """(classes,): log p(c), by the rows of each class."""
        return self._log_prior("estimated", "estimated")

    def _log_prior(self, name: str, class_prior: ResolvedPrior) -> Array:
        if name not in self._known:
            if self.is_used and isinstance(class_prior, str) and class_prior == "estimated" and self.n.min() > 0:
                self._known[name] = np.log(self.n / self.n.sum())  # as `log_class_prior` has it, without its cases
                return self._known[name]
            used = self.is_used or (name == "declared" and len(self.n) == 1)
            self._known[name] = log_class_prior(self.n, class_prior) if used else np.zeros(len(self.n))
        return self._known[name]

    def find_shift(self) -> Array | None:
        """The declared log p(c) less the estimated one; None if that is what was declared."""
        if isinstance(self.class_prior, str) and self.class_prior == "estimated":
            return None
        return self.log_declared() - self.log_estimated()
