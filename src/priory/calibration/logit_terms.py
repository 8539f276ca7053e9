"""The pooled logits as one sum of terms, which batches, single rows and exports walk; and as parts of each column.

The pool is a geometric mean, so the normalisers of its members cancel:

    Σ_m exponent_m log p_m(c | x)  =  Σ_m exponent_m logit_m(c | x)  +  a constant of the row

Each member lists its terms; terms of one kind are added up, times the exponents, once for all rows.

For ledgers, the logits of a member are split into what each column, each text and each set of columns adds to the
average row. A column adds the difference from its mean over the learned rows, so that the parts are Shapley values
where columns add up. The cells of a pair are split into the effect of either column, averaged over the other, and the
interaction that is left:

    t(a, b)  =  t  +  (t(a, .) - t)  +  (t(., b) - t)  +  interaction(a, b)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy import ndarray as Array

from priory.calibration.code_counts import encode_cells
from priory.calibration.encoded_rows import EncodedRows
from priory.calibration.table_encoding import N_LEVELS, TableEncoding
from priory.core._kernel import rows as row_kernel
from priory.core._kernel import trees as tree_kernel
from priory.core.sparse_rows import multiply_entries

if TYPE_CHECKING:
    from priory.calibration.encoded_rows import EncodedRow, EncodedRows

AddRow = Callable[["EncodedRow", Array], None]


def to_logits(weights: Array) -> Array:
    """Convert (..., classes) to (..., logits); for two classes, the second minus the first."""
    return weights[..., 1:] - weights[..., :1] if weights.shape[-1] == 2 else weights


def to_classes(logits: Array) -> Array:
    """Convert (..., logits) to (..., classes); of two classes, the first gets zero."""
    wide = np.asarray(logits, dtype=float)
    return np.concatenate([np.zeros_like(wide), wide], axis=-1) if wide.shape[-1] == 1 else wide


class LogitTerm(ABC):
    """One term of the pooled logits."""

    @abstractmethod
    def scale(self, factor: float) -> Self:
        """The term times a factor."""

    def absorb(self, other: LogitTerm) -> LogitTerm | None:
        """The sum of both as one term; None if it is not of this kind."""
        return None

    @abstractmethod
    def add_rows(self, rows: EncodedRows, logits: Array) -> None:
        """Add the term to the logits (rows, classes)."""

    @abstractmethod
    def open(self, encoding: TableEncoding, token_widths: Sequence[int]) -> AddRow:
        """Return a function that adds the term to the logits (classes,) of one row."""


@dataclass(frozen=True, eq=False)
class CodeTable(LogitTerm):
    """An intercept, and a weight for the code of each column."""

    table: Array  # (1 + codes, classes)

    def scale(self, factor: float) -> Self:
        return replace(self, table=factor * self.table)

    def absorb(self, other: LogitTerm) -> LogitTerm | None:
        return CodeTable(self.table + other.table) if isinstance(other, CodeTable) else None

    def add_rows(self, rows: EncodedRows, logits: Array) -> None:
        logits += rows.look_up(self.table)

    def open(self, encoding: TableEncoding, token_widths: Sequence[int]) -> AddRow:
        table, starts = np.ascontiguousarray(self.table, dtype=float), (1 + encoding.starts[:-1]).tolist()

        def add_logits(row: EncodedRow, logits: Array) -> None:
            codes = [0, *(start + code for start, code in zip(starts, row.codes, strict=True) if code >= 0)]
            row_kernel.add_weights(table, np.array(codes), 0, 1.0, logits)

        return add_logits


@dataclass(frozen=True, eq=False)
class TokenWeightTable(LogitTerm):
    """A weight for each token of each text; a text has unit length, so long ones do not count more."""

    table: Array  # (tokens of all texts, classes)

    def scale(self, factor: float) -> Self:
        return replace(self, table=factor * self.table)

    def absorb(self, other: LogitTerm) -> LogitTerm | None:
        return TokenWeightTable(self.table + other.table) if isinstance(other, TokenWeightTable) else None

    def add_rows(self, rows: EncodedRows, logits: Array) -> None:
        start = 0
        for tokens in rows.tokens:
            sizes = np.diff(tokens.ends)
            shown = np.repeat(1 / np.sqrt(np.maximum(sizes, 1)), sizes)
            logits += multiply_entries(tokens.ends, tokens.indices, shown, self.table[start : start + tokens.width])
            start += tokens.width

    def open(self, encoding: TableEncoding, token_widths: Sequence[int]) -> AddRow:
        table, starts = np.ascontiguousarray(self.table, dtype=float), np.cumsum([0, *token_widths]).tolist()

        def add_logits(row: EncodedRow, logits: Array) -> None:
            for start, chosen in zip(starts, row.tokens, strict=False):
                row_kernel.add_weights(table, chosen, start, 1 / sqrt(max(len(chosen), 1)), logits)

        return add_logits


@dataclass(frozen=True, eq=False)
class CellTable(LogitTerm):
    """A weight for the cell of each pair of columns, by their coarse levels."""

    pairs: Array  # (pairs, 2): columns
    table: Array  # (pairs x levels x levels, classes)

    def scale(self, factor: float) -> Self:
        return replace(self, table=factor * self.table)

    def add_rows(self, rows: EncodedRows, logits: Array) -> None:
        cells = encode_cells(rows.levels, self.pairs)
        logits += multiply_entries(cells.ends, cells.indices, np.ones(len(cells.indices)), self.table)

    def open(self, encoding: TableEncoding, token_widths: Sequence[int]) -> AddRow:
        table, pairs = np.ascontiguousarray(self.table, dtype=float), np.ascontiguousarray(self.pairs)

        def add_logits(row: EncodedRow, logits: Array) -> None:
            row_kernel.add_cells(table, row.levels, pairs, N_LEVELS, 0, logits)

        return add_logits


@dataclass(frozen=True, eq=False)
class Slopes(LogitTerm):
    """A slope for each number, as a normal score or standardised."""

    slopes: Array  # (numbers, classes)
    of_scores: bool

    def scale(self, factor: float) -> Self:
        return replace(self, slopes=factor * self.slopes)

    def absorb(self, other: LogitTerm) -> LogitTerm | None:
        if not isinstance(other, Slopes) or other.of_scores != self.of_scores:
            return None
        return replace(self, slopes=self.slopes + other.slopes)

    def add_rows(self, rows: EncodedRows, logits: Array) -> None:
        logits += (rows.scores if self.of_scores else rows.standardised) @ self.slopes

    def open(self, encoding: TableEncoding, token_widths: Sequence[int]) -> AddRow:
        def add_logits(row: EncodedRow, logits: Array) -> None:
            logits += (row.scores if self.of_scores else row.standardised) @ self.slopes

        return add_logits


@dataclass(frozen=True, eq=False)
class QuadraticForm(LogitTerm):
    """``constant - factor |root (scores - mean)|^2 / 2`` of each class: a Gaussian of the normal scores."""

    means: Array  # (classes, numbers)
    roots: Array  # (classes, numbers, numbers)
    constants: Array  # (classes,)
    factor: float

    def scale(self, factor: float) -> Self:
        return replace(self, constants=factor * self.constants, factor=factor * self.factor)

    def add_rows(self, rows: EncodedRows, logits: Array) -> None:
        for c, (mean, root) in enumerate(zip(self.means, self.roots, strict=True)):
            away = (rows.scores - mean) @ root.T  # (rows, numbers): the whitened distance
            logits[:, c] += self.constants[c] - 0.5 * self.factor * (away * away).sum(axis=1)

    def open(self, encoding: TableEncoding, token_widths: Sequence[int]) -> AddRow:
        def add_logits(row: EncodedRow, logits: Array) -> None:
            away = (self.roots @ (row.scores - self.means)[:, :, None])[:, :, 0]  # (classes, numbers)
            logits += self.constants - 0.5 * self.factor * (away * away).sum(axis=1)

        return add_logits


MAX_TREE_CODE = 254


@dataclass(frozen=True, eq=False)
class TreeSum(LogitTerm):
    """A leaf of each oblivious tree; see `priory.calibration.tree_member`."""

    cuts: tuple[Array, ...]  # of each column of numbers
    gaps: Array  # (numbers,): the code of a missing number
    tests: Array  # (trees, depth, 2): column, and cut or code
    leaves: Array  # (trees, leaves, logits)
    factor: float

    def scale(self, factor: float) -> Self:
        return replace(self, factor=factor * self.factor)

    def add_rows(self, rows: EncodedRows, logits: Array) -> None:
        found = np.zeros((len(rows), self.leaves.shape[2]))
        is_label = (~rows.encoding.is_number).view(np.uint8)
        tree_kernel.add_trees(encode_for_trees(rows, self.cuts, self.gaps), is_label, self.tests, self.leaves, found)
        logits += self.factor * to_classes(found)

    def open(self, encoding: TableEncoding, token_widths: Sequence[int]) -> AddRow:
        # only the columns that are tested, by their place among these
        used, places = np.unique(self.tests[..., 0], return_inverse=True)
        tests = np.stack([places.reshape(self.tests.shape[:2]), self.tests[..., 1]], axis=2).astype(np.int16)
        is_label = (~encoding.is_number[used]).view(np.uint8)
        number = np.cumsum(encoding.is_number) - 1  # the place of a column of numbers among them
        # the cuts of a column of numbers, and the code of a missing number; or what codes of labels are to trees
        columns = [
            (j, self.cuts[number[j]].tolist(), int(self.gaps[number[j]]))
            if encoding.is_number[j]
            else (j, encoding.columns[j].tree_codes.tolist(), 0)
            for j in used.tolist()
        ]

        def add_logits(row: EncodedRow, out: Array) -> None:
            codes, logits = np.empty((len(columns), 1), np.uint8), np.zeros((1, self.leaves.shape[2]))
            for place, (j, cuts, unknown) in enumerate(columns):
                if row.columns[j].is_number:
                    code = bisect_left(cuts, row.cells[j]) if row.cells[j] == row.cells[j] else unknown
                else:
                    code = cuts[row.codes[j]]
                codes[place] = min(code, MAX_TREE_CODE)
            tree_kernel.add_trees(codes, is_label, tests, self.leaves, logits)
            out[-logits.shape[1] :] += self.factor * logits[0]

        return add_logits


def encode_for_trees(rows: EncodedRows, cuts: Sequence[Array], gaps: Array) -> Array:
    """(columns, rows): the number of cuts below a number, or the code of a label."""
    encoding, numbers = rows.encoding, iter(zip(rows.values.T, cuts, gaps, strict=True))
    codes = np.empty((len(encoding.columns), len(rows)), dtype=np.uint8)
    for j, column in enumerate(encoding.columns):
        if column.is_number:
            values, own, gap = next(numbers)
            code = np.where(np.isnan(values), gap, np.searchsorted(own, values))
        else:
            code = column.tree_codes[rows.codes[:, j]]
        codes[j] = np.minimum(code, MAX_TREE_CODE)
    return codes


def sum_terms(terms: Sequence[LogitTerm]) -> tuple[LogitTerm, ...]:
    """Add up terms of one kind."""
    found: list[LogitTerm] = []
    for term in terms:
        for k, other in enumerate(found):
            joined = other.absorb(term)
            if joined is not None:
                found[k] = joined
                break
        else:
            found.append(term)
    return tuple(found)


# -- the same logits as parts, for ledgers -----------------------------------------------------------------------------


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
