"""Interface of a member, one way to answer; and rows, in batches or one at a time, as the input of members.

A member answers from what a table encoding makes of a row, from the tempered evidence of its codes, which follows the
counts of all rows, and from what it has fitted to the kept rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray as Array

from priory.calibration.code_counts import CodeEvidence
from priory.calibration.solvers import pad_columns
from priory.calibration.table_encoding import (
    MISSING_LEVEL,
    VALUE_BITS,
    ColumnCodes,
    TableEncoding,
    make_one_hot,
)
from priory.core.column_kernels import round_number_to_bits, score_by_lookup
from priory.core.sparse_rows import SparseRows
from priory.model.cells import Cells, take_rows

if TYPE_CHECKING:
    from priory.calibration.logit_parts import LogitParts
    from priory.calibration.logit_terms import LogitTerm

MAX_LOGIT_WEIGHT = 1e6  # far above any fitted weight; sums of weights stay finite


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows as the input of members; everything is computed when it is first used."""

    encoding: TableEncoding
    cells: Sequence[Cells]
    encode_tokens: Callable[[], list[SparseRows]]  # the tokens of texts, as sparse rows
    text_logits: Array  # (rows, classes): the tempered evidence of texts
    evidence: CodeEvidence | None = None  # None while corrections are fitted

    def __len__(self) -> int:
        return len(self.codes)

    def take_rows(self, rows: Array, cells: Sequence[Cells] | None = None) -> EncodedRows:
        """Select rows, optionally with other cells."""
        return replace(
            self,
            cells=take_rows(self.cells, rows) if cells is None else cells,
            encode_tokens=lambda: [tokens.take_rows(rows) for tokens in self.tokens],
            text_logits=self.text_logits[rows],
        )

    @property
    def n_texts(self) -> int:
        """The number of columns of texts."""
        return sum(not columns for columns in self.encoding.blocks)

    @cached_property
    def codes(self) -> Array:
        """(rows, columns): the code of each cell."""
        return self.encoding.encode(self.cells)

    @cached_property
    def levels(self) -> Array:
        """(rows, columns): coarse codes, for pairs."""
        return self.encoding.encode_levels(self.codes)

    @cached_property
    def scores(self) -> Array:
        """(rows, columns of numbers): normal scores."""
        return self.encoding.normal_scores(self.cells)

    @cached_property
    def standardised(self) -> Array:
        """(rows, columns of numbers): numbers less their mean, in standard deviations."""
        return self.encoding.standardise(self.values)

    @cached_property
    def values(self) -> Array:
        """(rows, columns of numbers): the numbers themselves."""
        return self.encoding.take_numbers(self.cells)

    @cached_property
    def varied(self) -> Array:
        """(varied columns,): the columns that do not have the same cell in all rows."""
        return np.flatnonzero(self.encoding.find_varied(self.cells))

    @cached_property
    def tokens(self) -> list[SparseRows]:
        """The token features of each text."""
        return self.encode_tokens()

    def look_up(self, weights: Array) -> Array:
        """(rows, classes): the intercept, and the weights of a row's codes (1 + codes, classes)."""
        return look_up_table(weights, self.codes, self.encoding.starts)


def look_up_table(table: Array, codes: Array, starts: Array) -> Array:
    """(rows, classes): the intercept and the weights of a row's codes, from (1 + codes, classes); -1 adds nothing."""
    tables = [np.ascontiguousarray(part.T) for part in np.split(table[1:], starts[1:-1])]
    if len(starts) == 1:
        return np.repeat(table[:1], len(codes), axis=0)
    return np.asarray(table[0] + score_by_lookup(lambda part: codes[part], len(codes), tables))


def look_up_codes(table: Array, codes: Array, starts: Array) -> Array:
    """(rows, classes): the entries of ``table`` (classes, all codes) at a row's codes, summed; -1 adds nothing."""
    dense = pad_columns(table.T)
    return np.asarray(make_one_hot(codes, starts).multiply(dense)[:, : len(table)], dtype=float)


class RowCodes:
    """The codes of one column, as lists and dictionaries for single cells."""

    def __init__(self, codes: ColumnCodes) -> None:
        self.missing = codes.n_codes - 1
        self.edges = codes.edges_or_labels.tolist() if codes.is_number else []
        self.code_of_label = {} if codes.is_number else {v: k for k, v in enumerate(codes.edges_or_labels.tolist())}
        self.is_number = codes.is_number
        self.levels = [*codes.levels.tolist(), MISSING_LEVEL, -1]  # of codes, of a missing cell, and of code -1
        self.standardise = codes.standardise
        self.knots, self.scores = codes.knots.tolist(), codes.scores.tolist()

    def encode(self, cell: Any) -> int:
        """Return the code of a cell, like `ColumnCodes.encode_column`; None and NaN are missing."""
        if cell is None or cell != cell:
            return self.missing
        if not self.is_number:
            return self.code_of_label.get(cell, -1)
        return bisect_right(self.edges, round_number_to_bits(cell, VALUE_BITS))

    def normal_score(self, cell: float) -> float:
        """Return a number as a quantile of the standard normal distribution; 0 if missing."""
        knots, scores = self.knots, self.scores
        if len(knots) < 2 or cell != cell:
            return 0.0
        place = bisect_right(knots, cell)
        if place == 0 or place == len(knots):
            return scores[0] if place == 0 else scores[-1]
        share = (cell - knots[place - 1]) / (knots[place] - knots[place - 1])
        return scores[place - 1] + share * (scores[place] - scores[place - 1])


class EncodedRow:
    """One row as the input of opened members; levels and scores are computed when they are first used."""

    def __init__(self, columns: Sequence[RowCodes], cells: Sequence[Any], tokens: Sequence[Array]) -> None:
        self.columns, self.cells, self.tokens = columns, cells, tokens
        self.codes = [column.encode(cell) for column, cell in zip(columns, cells, strict=True)]

    @cached_property
    def levels(self) -> Array:
        """(columns,): coarse codes, for pairs."""
        levels = [column.levels[code] for column, code in zip(self.columns, self.codes, strict=True)]
        return np.array(levels, dtype=np.int64)

    @cached_property
    def scores(self) -> Array:
        """(numbers,): normal scores."""
        return np.array([column.normal_score(cell) for column, cell in self._list_numbers()])

    @cached_property
    def standardised(self) -> Array:
        """(numbers,): numbers less their mean, in standard deviations."""
        return np.array([column.standardise(cell) for column, cell in self._list_numbers()])

    def _list_numbers(self) -> list[tuple[RowCodes, float]]:
        pairs = zip(self.columns, self.cells, strict=True)
        return [(column, cell) for column, cell in pairs if column.is_number]


class Member(ABC):
    """One way to answer. Members are registered records; they are checked, and list the terms of their logits."""

    @property
    @abstractmethod
    def kinds(self) -> tuple[str, ...]:
        """The kinds of corrections that it brings."""

    @property
    def reads_tokens(self) -> bool:
        """Whether it uses the tokens of texts."""
        return False

    @abstractmethod
    def find_misfit(self, encoding: TableEncoding, n_classes: int, n_tokens: int) -> str | None:
        """Describe why it cannot answer rows of this encoding; None if it can."""

    @abstractmethod
    def list_terms(self, encoding: TableEncoding, evidence: CodeEvidence) -> list[LogitTerm]:
        """List the terms of its logits, without the tempered evidence of texts."""

    @abstractmethod
    def split_logits(self, rows: EncodedRows) -> LogitParts:
        """Split its logits into columns, texts and sets of columns, without the tempered evidence of texts."""
