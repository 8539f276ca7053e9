"""A value that most rows of a column hold, and how much better a histogram explains the column for it."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from priory.core.typing import Array
from priory.families.leave_one_out import RowRemovals


class Atom(NamedTuple):
    """A value that more than half of the rows hold: it has a probability of its own, and no density.

    How far away its neighbours are does not matter: it is one wide in a column of whole numbers, as in the families
    that count, and elsewhere as narrow as the record can tell. All fields have the same shape.
    """

    value: Array
    rows: Array  # that hold it; -1 if there is no such value
    whole: Array  # whether all values of the column are whole numbers

    @classmethod
    def find(cls, values: Array, totals: Array) -> Self:
        """The atom of a column, given the rows that hold each value."""
        most = np.argmax(totals)
        is_atom = len(values) > 1 and 2 * totals[most] > totals.sum()
        return cls(values[most], np.where(is_atom, totals[most], -1), np.asarray(_is_whole(values).all()))

    @classmethod
    def find_per_removal(cls, removals: RowRemovals) -> Self:
        """The atom of a column without each row: (removals, 1)."""
        values, totals = removals.value_counts.values, removals.totals
        second, first = np.argsort(totals, kind="stable")[[-min(2, len(totals)), -1]]
        # another value may be as common as the one that loses a row
        overtaken = (removals.position == first) & (totals[second] == totals[first])
        most = np.where(overtaken, second, first)
        rows = totals[most] - (most == removals.position)
        is_atom = (removals.values > 1) & (2 * rows > totals.sum() - 1)
        odd = ~_is_whole(values)
        whole = odd.sum() == (removals.vanished & odd[removals.position])
        return cls(*(v[:, None] for v in (values[most], np.where(is_atom, rows, -1), whole)))

    def measure_gain(self, content: Array, log_widths: Array, bits: int) -> Array:
        """What each bin (..., bins) adds to the log evidence, if it is the atom's."""
        gain = np.zeros(content.shape)
        if (self.rows < 0).all():
            return gain
        found = np.nonzero(content == self.rows)
        value, rows, whole = (np.broadcast_to(field, content.shape)[found] for field in self)
        size = np.where(value == 0, np.inf, np.log(np.abs(np.where(value == 0, 1.0, value))))
        scale = np.where(whole, 0.0, np.maximum(log_widths[found] - size, 0.0))
        width = np.where(whole, np.maximum(log_widths[found], 0.0), bits * np.log(2))
        gain[found] = rows * scale + np.maximum(rows - 1, 0.0) * width  # its place is learned from the first row
        return gain


def _is_whole(values: Array) -> Array:
    return np.asarray(values == np.floor(values))
