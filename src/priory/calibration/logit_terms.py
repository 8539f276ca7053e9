"""The pooled logits as one sum of terms, of a few kinds that batches, single rows and exports walk.

The pool is a geometric mean, so the normalisers of its members cancel:

    Σ_m exponent_m log p_m(c | x)  =  Σ_m exponent_m logit_m(c | x)  +  a constant of the row

Each member lists its terms; terms of one kind are added up, times the exponents, once for all rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy import ndarray as Array

from priory.calibration.code_counts import encode_cells
from priory.calibration.table_encoding import N_LEVELS, TableEncoding
from priory.calibration.tempering import to_classes
from priory.core._kernel import rows as row_kernel
from priory.core._kernel import trees as tree_kernel
from priory.core.sparse_rows import multiply_entries

if TYPE_CHECKING:
    from priory.calibration.members import EncodedRow, EncodedRows

AddRow = Callable[["EncodedRow", Array], None]


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
        # the cuts of a column of numbers, and the code of a missing number; or of an unknown label
        columns = [
            (j, self.cuts[number[j]].tolist(), int(self.gaps[number[j]]))
            if encoding.is_number[j]
            else (j, None, encoding.columns[j].n_codes)
            for j in used.tolist()
        ]

        def add_logits(row: EncodedRow, out: Array) -> None:
            codes, logits = np.empty((len(columns), 1), np.uint8), np.zeros((1, self.leaves.shape[2]))
            for place, (j, cuts, unknown) in enumerate(columns):
                if cuts is None:
                    code = row.codes[j] if row.codes[j] >= 0 else unknown
                else:
                    code = bisect_left(cuts, row.cells[j]) if row.cells[j] == row.cells[j] else unknown
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
            code = np.where(rows.codes[:, j] >= 0, rows.codes[:, j], column.n_codes)
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
