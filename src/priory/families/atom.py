"""A value that most rows of a column have, and the evidence that a histogram gains from it."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from priory.core.typing import Array
from priory.families.leave_one_out import RowRemovals


class Atom(NamedTuple):
    """A value that more than half of the rows have: a point mass (atom) with a probability instead of a density.

    Its bin has a width that does not depend on its neighbours: 1 in a column of whole numbers, which makes the evidence
    comparable with discrete families, and otherwise the resolution of the statistics. All fields have the same shape.
    """

    value: Array
    rows: Array  # number of rows with the value; -1 if there is no such value
    whole: Array  # whether all values of the column are whole numbers

    @classmethod
    def find(cls, values: Array, totals: Array) -> Self:
        """Find the atom of a column; ``totals`` (values,) is the number of rows with each value."""
        most = np.argmax(totals)
        is_atom = len(values) > 1 and 2 * totals[most] > totals.sum()
        return cls(values[most], np.where(is_atom, totals[most], -1), np.asarray(_is_whole(values).all()))

    @classmethod
    def find_per_removal(cls, removals: RowRemovals) -> Self:
        """Find the atom of a column after each removal; fields are (removals, 1)."""
        values, totals = removals.value_counts.values, removals.totals
        second, first = np.argsort(totals, kind="stable")[[-min(2, len(totals)), -1]]
        # If the two most frequent values are tied and the first loses a row, the second is the most frequent.
        overtaken = (removals.position == first) & (totals[second] == totals[first])
        most = np.where(overtaken, second, first)
        rows = totals[most] - (most == removals.position)
        is_atom = (removals.values > 1) & (2 * rows > totals.sum() - 1)
        # (removals,): whether all remaining values are whole, i.e. the removed value was the only one that is not
        odd = ~_is_whole(values)
        whole = odd.sum() == (removals.vanished & odd[removals.position])
        return cls(*(v[:, None] for v in (values[most], np.where(is_atom, rows, -1), whole)))

    def measure_gain(self, content: Array, log_widths: Array, bits: int) -> Array:
        """Gain in log evidence of each bin (…, bins): zero, except for the bin of the atom."""
        gain = np.zeros(content.shape)
        if (self.rows < 0).all():
            return gain
        # The atom's bin is the only one with as many rows as the atom, because these are more than half of all rows.
        found = np.nonzero(content == self.rows)
        value, rows, whole = (np.broadcast_to(field, content.shape)[found] for field in self)
        size = np.where(value == 0, np.inf, np.log(np.abs(np.where(value == 0, 1.0, value))))
        scale = np.where(whole, 0.0, np.maximum(log_widths[found] - size, 0.0))
        width = np.where(whole, np.maximum(log_widths[found], 0.0), bits * np.log(2))
        gain[found] = rows * scale + np.maximum(rows - 1, 0.0) * width  # the first row determines the position
        return gain


def _is_whole(values: Array) -> Array:
    return np.asarray(values == np.floor(values))
