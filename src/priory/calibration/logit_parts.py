"""The logits of a member as a sum: what each column, each text and each set of columns adds to the average row.

A column adds the difference from its mean over the learned rows, so that the parts are Shapley values where columns add
up. The cells of a pair are split into the effect of either column, averaged over the other, and the interaction that is
left:

    t(a, b)  =  t  +  (t(a, .) - t)  +  (t(., b) - t)  +  interaction(a, b)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy import ndarray as Array

from priory.calibration.members import EncodedRows
from priory.calibration.table_encoding import N_LEVELS


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


def split_pairs(rows: EncodedRows, pairs: Array, weights: Array) -> LogitParts:
    """Split the weights (pairs x cells, classes) of the cells that rows fall into."""
    assert rows.evidence is not None
    parts = split_codes(rows, np.zeros((1 + rows.encoding.n_codes, weights.shape[1])))
    tables = weights.reshape(len(pairs), N_LEVELS, N_LEVELS, -1)
    shares = rows.encoding.sum_levels(rows.evidence.shares)[pairs]  # (pairs, 2, levels)
    # (pairs, levels, classes): the effect of either column, averaged over the other; and the mean (pairs, classes)
    first, second = np.einsum("pabc,pb->pac", tables, shares[:, 1]), np.einsum("pabc,pa->pbc", tables, shares[:, 0])
    mean = np.einsum("pac,pa->pc", first, shares[:, 0])
    levels, every = rows.levels[:, pairs], np.arange(len(pairs))  # (rows, pairs, 2)
    known = np.all(levels >= 0, axis=2, keepdims=True)  # the cell of an unknown label has no weight
    effects = [np.where(known, own[every, levels[:, :, k]] - mean, 0.0) for k, own in enumerate((first, second))]
    left = np.where(known, tables[every, levels[:, :, 0], levels[:, :, 1]], 0.0) - mean - effects[0] - effects[1]
    for p, pair in enumerate(pairs.tolist()):
        for column, effect in zip(pair, effects, strict=True):
            parts.columns[:, :, column] += effect[:, p]
    sets = {tuple(pair): left[:, p] for p, pair in enumerate(pairs.tolist())}
    return parts._replace(base=parts.base + mean.sum(axis=0), sets=sets)


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
