"""Cells as codes and as features: what corrections are fitted to.

A column of numbers is cut into bins (those a histogram of the rows would have) and, beside them, kept as a number in
units of its spread; a label is its place among the labels shown. Code 0 is what is missing or was never shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack

from priory.bag_of_words.documents import PackedDocuments
from priory.calibration.aode import encode_one_hot, pair_columns
from priory.core.registration import register_record
from priory.core.typing import Array
from priory.families.histogram import Histogram
from priory.families.value_counts import CategoricalCells


@register_record("Scale", former_names={"marks": "edges_or_labels"})
@dataclass(frozen=True, eq=False)
class ColumnEncoding:
    """One column: its labels, or the inner edges of its bins, and for numbers a centre and a spread."""

    edges_or_labels: Array
    centre: float
    spread: float  # nought for labels

    @property
    def n_codes(self) -> int:
        return len(self.edges_or_labels) + (2 if self.spread else 1)

    @classmethod
    def from_numbers(cls, x: Array, group: Array, groups: int) -> ColumnEncoding:
        tally = Histogram().observe(x[:, None], group, groups)[0]
        edges = Histogram().posterior(tally).edges[1:-1] if len(tally.values) else np.zeros(0)
        shown = x[~np.isnan(x)]
        spread = float(shown.std()) if len(shown) else 0.0
        return cls(edges, float(shown.mean()) if len(shown) else 0.0, spread if np.isfinite(spread) and spread else 1.0)

    def encode_column(self, cells: Any, j: int) -> Array:
        if isinstance(cells, CategoricalCells):
            place = {value: k + 1 for k, value in enumerate(self.edges_or_labels.tolist())}
            codes = np.array([place.get(value, 0) for value in cells.values[j].tolist()] + [0])
            return np.asarray(codes[cells.codes[:, j]], dtype=np.int64)
        x = cells[:, j]
        return np.where(np.isnan(x), 0, np.searchsorted(self.edges_or_labels, x, side="right") + 1)

    def standardise(self, x: Array) -> Array:
        return np.clip(np.nan_to_num((x - self.centre) / self.spread), -10.0, 10.0)


@register_record("Encoding")
@dataclass(frozen=True, eq=False)
class TableEncoding:
    """Every column of every block that is not text."""

    blocks: tuple[tuple[ColumnEncoding, ...], ...]

    @classmethod
    def of(cls, cells: list[Any], group: Array, groups: int) -> TableEncoding:
        return cls(tuple(_fit_column_encodings(block, group, groups) for block in cells))

    @property
    def sizes(self) -> Array:
        return np.array([scale.n_codes for block in self.blocks for scale in block], dtype=np.int64)

    def codes(self, cells: list[Any]) -> Array:
        columns = [
            scale.encode_column(x, j)
            for block, x in zip(self.blocks, cells, strict=True)
            for j, scale in enumerate(block)
        ]
        return np.stack(columns, axis=1) if columns else np.zeros((len(cells[0]), 0), dtype=np.int64)

    def features(self, cells: list[Any], include_pairs: bool) -> csr_array:
        """A one for each code (``pairs``: and for each two codes together), and the numbers."""
        codes = self.codes(cells)
        parts = [encode_one_hot(codes, self.sizes)]
        if include_pairs:
            parts.append(encode_one_hot(*pair_columns(codes, self.sizes)))
        numbers = [
            scale.standardise(x[:, j])
            for block, x in zip(self.blocks, cells, strict=True)
            for j, scale in enumerate(block)
            if scale.spread
        ]
        if numbers:
            parts.append(csr_array(np.stack(numbers, axis=1)))
        return hstack(parts, format="csr")


def _fit_column_encodings(cells: Any, group: Array, groups: int) -> tuple[ColumnEncoding, ...]:
    if isinstance(cells, list | PackedDocuments):  # texts
        return ()
    if isinstance(cells, CategoricalCells):
        return tuple(
            ColumnEncoding(values[np.unique(codes[codes >= 0])], 0.0, 0.0)
            for values, codes in zip(cells.values, cells.codes.T, strict=True)
        )
    return tuple(ColumnEncoding.from_numbers(x, group, groups) for x in cells.T)
