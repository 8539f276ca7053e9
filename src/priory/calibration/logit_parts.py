"""The logits of a member as a sum: what each column, each text and each set of columns adds to the average row.

A column adds the difference from its mean over the learned rows, so that the parts are Shapley values where columns add
up. The cells of a pair or a triple are split into the effects of single columns, averaged over the others, and the
interaction that is left:

    t(a, b)  =  t  +  (t(a, .) - t)  +  (t(., b) - t)  +  interaction(a, b)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from priory.calibration.members import EncodedRows
from priory.core.typing import Array


class LogitParts(NamedTuple):
    """A base, equal for all rows, and what is added to it in each row."""

    base: Array  # (classes,)
    columns: Array  # (rows, classes, columns)
    texts: Array  # (rows, classes, texts)
    sets: dict[tuple[int, ...], Array]  # columns -> (rows, classes): their interaction

    def scale(self, factor: float) -> LogitParts:
        """All parts times a factor."""
        sets = {columns: factor * added for columns, added in self.sets.items()}
        return LogitParts(factor * self.base, factor * self.columns, factor * self.texts, sets)

    def add(self, other: LogitParts) -> LogitParts:
        """The sum of two members' parts."""
        sets = dict(self.sets)
        for columns, added in other.sets.items():
            sets[columns] = sets[columns] + added if columns in sets else added
        return LogitParts(self.base + other.base, self.columns + other.columns, self.texts + other.texts, sets)


def split_codes(rows: EncodedRows, weights: Array) -> LogitParts:
    """Split the sum of an intercept and the weights of a row's codes (1 + codes, classes)."""
    assert rows.evidence is not None
    starts, n_classes = rows.encoding.starts, weights.shape[1]
    means = np.zeros((0, n_classes))  # (columns, classes)
    if len(starts) > 1:
        means = np.add.reduceat(rows.evidence.shares[:, None] * weights[1:], starts[:-1], axis=0)
    texts = np.zeros((len(rows), n_classes, rows.n_texts))
    return LogitParts(weights[0] + means.sum(axis=0), look_up_cells(rows, weights) - means.T, texts, {})


def look_up_cells(rows: EncodedRows, weights: Array) -> Array:
    """(rows, classes, columns): the weight of each cell's code, from (1 + codes, classes) with the intercept first."""
    padded = np.concatenate([weights[1:], np.zeros((1, weights.shape[1]))])  # the last one is of unknown labels
    cells = padded[np.where(rows.codes >= 0, rows.codes + rows.encoding.starts[:-1], -1)]  # (rows, columns, classes)
    return np.asarray(cells.transpose(0, 2, 1))


def split_sets(rows: EncodedRows, levels: Array, n_levels: int, sets: Array, weights: Array) -> LogitParts:
    """Split the weights (sets x cells, classes) of the cells that the levels (rows, columns) fall into."""
    assert rows.evidence is not None
    parts = split_codes(rows, np.zeros((1 + rows.encoding.n_codes, weights.shape[1])))
    shares = rows.encoding.sum_levels(rows.evidence.shares, n_levels)  # (columns, levels)
    base = parts.base.copy()
    shape = (n_levels,) * sets.shape[1]
    for columns, table in zip(sets.tolist(), weights.reshape(len(sets), *shape, weights.shape[1]), strict=True):
        mean = average_table(table, shares[columns])
        own = levels[:, columns]
        known = np.asarray(own >= 0).all(axis=1)[:, None]  # the cell of an unknown label has no weight
        left = np.where(known, table[tuple(own.T)], 0.0) - mean
        for axis, column in enumerate(columns):
            effect = average_table(table, shares[columns], axis) - mean  # (levels, classes)
            alone = np.where(known, effect[own[:, axis]], 0.0)
            parts.columns[:, :, column] += alone
            left -= alone
        base += mean
        parts.sets[tuple(columns)] = left
    return parts._replace(base=base)


def average_table(table: Array, shares: Array, kept_axis: int | None = None) -> Array:
    """The mean of a table (levels, ..., classes) by the shares of levels (axes, levels), along all axes but one."""
    for axis in reversed(range(len(shares))):
        if axis != kept_axis:
            table = np.tensordot(shares[axis], table, axes=(0, axis))
    return table


def add_columns(parts: LogitParts, places: Array, added: Array) -> LogitParts:
    """Add (rows, classes, columns chosen) to the columns at ``places``."""
    parts.columns[:, :, places] += added
    return parts


def sum_parts(parts: Sequence[LogitParts], exponents: Array) -> LogitParts:
    """The parts of the pooled logits."""
    first, *others = (part.scale(float(exponent)) for part, exponent in zip(parts, exponents, strict=True))
    for other in others:
        first = first.add(other)
    return first
