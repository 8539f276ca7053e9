"""Cells as codes and as features: what corrections are fitted to.

A column of numbers is cut into bins (those a histogram of the rows would have) and is also kept as a number in units of
its spread. A label is its position among the labels that at least two rows hold. Code 0 means missing, code 1 a label
that is not among them: a label that one row alone holds would be new to a model that has not learned that row, so it
must look new while the corrections are fitted, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, hstack

from priory.calibration.aode import encode_one_hot, pair_columns
from priory.core.registration import register_record
from priory.core.statistics import is_increasing
from priory.core.typing import Array
from priory.families.histogram import Histogram
from priory.models.cells import Cells, LabelCells, NumberCells


@register_record("Scale", former_names={"marks": "edges_or_labels"})
@dataclass(frozen=True, eq=False)
class ColumnEncoding:
    """One column: its labels, or the inner edges of its bins, and for numbers a centre and a spread."""

    edges_or_labels: Array
    centre: float
    spread: float  # zero for labels
    new_label_code: int = 0  # in files of format 1 a label never learned had the code of a missing one

    def find_fault(self) -> str | None:
        if self.edges_or_labels.ndim != 1 or not is_increasing(self.edges_or_labels):
            return "its edges or labels are not sorted, or one of them is there twice"
        if self.spread < 0 or (self.spread and self.edges_or_labels.dtype != float):
            return "its spread is negative, or its edges are not numbers"
        return None if self.new_label_code in (0, 1) else "the code of a new label is neither 0 nor 1"

    @property
    def n_codes(self) -> int:
        return len(self.edges_or_labels) + (2 if self.spread else 1 + self.new_label_code)

    @classmethod
    def from_labels(cls, codes: Array, values: Array) -> ColumnEncoding:
        """The labels that at least two rows hold; ``codes`` (rows,) are positions in ``values``, or negative."""
        counts = np.bincount(codes[codes >= 0], minlength=len(values))
        return cls(values[counts >= 2], 0.0, 0.0, new_label_code=1)

    @classmethod
    def from_numbers(cls, x: Array, group: Array, groups: int) -> ColumnEncoding:
        """The bins of a histogram, and the mean and standard deviation."""
        counts = Histogram().observe(x[:, None], group, groups)[0]
        edges = Histogram().ml(counts).edges[1:-1] if len(counts.values) else np.zeros(0)
        present = x[~np.isnan(x)]
        centre = float(present.mean()) if len(present) else 0.0
        spread = float(present.std()) if len(present) else 0.0
        return cls(edges, centre, spread if np.isfinite(spread) and spread else 1.0)

    def encode_column(self, cells: Cells, j: int) -> Array:
        """(rows,): the code of each cell of column ``j``."""
        if isinstance(cells, LabelCells):
            code = {value: k + 1 + self.new_label_code for k, value in enumerate(self.edges_or_labels.tolist())}
            # the last code is where the position of a missing cell, -1, points
            codes = np.array([code.get(value, self.new_label_code) for value in cells.data.values[j].tolist()] + [0])
            return np.asarray(codes[cells.data.codes[:, j]], dtype=np.int64)
        x = number_column(cells, j)
        return np.where(np.isnan(x), 0, np.searchsorted(self.edges_or_labels, x, side="right") + 1)

    def standardise(self, x: Array) -> Array:
        """Numbers in units of the spread, missing ones at the centre, outliers clipped."""
        return np.clip(np.nan_to_num((x - self.centre) / self.spread), -10.0, 10.0)


def number_column(cells: Cells, j: int) -> Array:
    """(rows,): one column of a block of numbers."""
    assert isinstance(cells, NumberCells)
    return cells.data[:, j]


@register_record("Encoding")
@dataclass(frozen=True, eq=False)
class TableEncoding:
    """Every column of every block that is not text."""

    blocks: tuple[tuple[ColumnEncoding, ...], ...]

    @classmethod
    def of(cls, cells: Sequence[Cells], group: Array, groups: int) -> TableEncoding:
        """The encoding that rows of known classes ask for."""
        return cls(tuple(_fit_column_encodings(block, group, groups) for block in cells))

    @property
    def sizes(self) -> Array:
        """(columns,): the number of codes of each column."""
        return np.array([column.n_codes for block in self.blocks for column in block], dtype=np.int64)

    def count_features(self, include_pairs: bool) -> int:
        """The number of columns of ``features``."""
        sizes = self.sizes
        n_pairs = (int(sizes.sum()) ** 2 - int((sizes**2).sum())) // 2 if include_pairs else 0
        return int(sizes.sum()) + n_pairs + sum(bool(column.spread) for block in self.blocks for column in block)

    def codes(self, cells: Sequence[Cells]) -> Array:
        """(rows, columns): the code of each cell."""
        columns = [
            column.encode_column(x, j)
            for block, x in zip(self.blocks, cells, strict=True)
            for j, column in enumerate(block)
        ]
        return np.stack(columns, axis=1) if columns else np.zeros((len(cells[0]), 0), dtype=np.int64)

    def features(self, cells: Sequence[Cells], include_pairs: bool) -> csr_array:
        """(rows, features): a one for each code (and each pair of codes), and the standardised numbers."""
        codes = self.codes(cells)
        parts = [encode_one_hot(codes, self.sizes)]
        if include_pairs:
            parts.append(encode_one_hot(*pair_columns(codes, self.sizes)))
        numbers = [
            column.standardise(number_column(x, j))
            for block, x in zip(self.blocks, cells, strict=True)
            for j, column in enumerate(block)
            if column.spread
        ]
        if numbers:
            parts.append(csr_array(np.stack(numbers, axis=1)))
        return hstack(parts, format="csr")


def _fit_column_encodings(cells: Cells, group: Array, groups: int) -> tuple[ColumnEncoding, ...]:
    match cells:
        case NumberCells(data):
            return tuple(ColumnEncoding.from_numbers(x, group, groups) for x in data.T)
        case LabelCells(data):
            return tuple(map(ColumnEncoding.from_labels, data.codes.T, data.values))
    return ()  # texts are encoded by their tokens
