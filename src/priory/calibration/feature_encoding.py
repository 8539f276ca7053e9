"""Cells as codes and as features: what corrections are fitted to.

A column of numbers is cut into bins (those a histogram of the rows would have) and, beside them, kept as a number in
units of its spread; a label is its place among the labels shown. Code 0 is what is missing or was never shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack

from priory.bag_of_words.documents import Packed
from priory.calibration.aode import one_hot, paired
from priory.core.typing import Array
from priory.families.histogram import Histogram
from priory.families.value_counts import Coded


@dataclass(frozen=True, eq=False)
class Scale:
    """One column: its labels, or the inner edges of its bins, and for numbers a centre and a spread."""

    marks: Array
    centre: float
    spread: float  # nought for labels

    @property
    def size(self) -> int:
        return len(self.marks) + (2 if self.spread else 1)

    @classmethod
    def of_numbers(cls, x: Array, group: Array, groups: int) -> Scale:
        tally = Histogram().observe(x[:, None], group, groups)[0]
        edges = Histogram().posterior(tally).edges[1:-1] if len(tally.values) else np.zeros(0)
        shown = x[~np.isnan(x)]
        spread = float(shown.std()) if len(shown) else 0.0
        return cls(edges, float(shown.mean()) if len(shown) else 0.0, spread if np.isfinite(spread) and spread else 1.0)

    def code(self, cells: Any, j: int) -> Array:
        if isinstance(cells, Coded):
            place = {value: k + 1 for k, value in enumerate(self.marks.tolist())}
            codes = np.array([place.get(value, 0) for value in cells.values[j].tolist()] + [0])
            return np.asarray(codes[cells.codes[:, j]], dtype=np.int64)
        x = cells[:, j]
        return np.where(np.isnan(x), 0, np.searchsorted(self.marks, x, side="right") + 1)

    def number(self, x: Array) -> Array:
        return np.clip(np.nan_to_num((x - self.centre) / self.spread), -10.0, 10.0)


@dataclass(frozen=True, eq=False)
class Encoding:
    """Every column of every block that is not text."""

    blocks: tuple[tuple[Scale, ...], ...]

    @classmethod
    def of(cls, cells: list[Any], group: Array, groups: int) -> Encoding:
        return cls(tuple(_scales(block, group, groups) for block in cells))

    @property
    def sizes(self) -> Array:
        return np.array([scale.size for block in self.blocks for scale in block], dtype=np.int64)

    def codes(self, cells: list[Any]) -> Array:
        columns = [
            scale.code(x, j) for block, x in zip(self.blocks, cells, strict=True) for j, scale in enumerate(block)
        ]
        return np.stack(columns, axis=1) if columns else np.zeros((len(cells[0]), 0), dtype=np.int64)

    def features(self, cells: list[Any], pairs: bool) -> csr_array:
        """A one for each code (``pairs``: and for each two codes together), and the numbers."""
        codes = self.codes(cells)
        parts = [one_hot(codes, self.sizes)]
        if pairs:
            parts.append(one_hot(*paired(codes, self.sizes)))
        numbers = [
            scale.number(x[:, j])
            for block, x in zip(self.blocks, cells, strict=True)
            for j, scale in enumerate(block)
            if scale.spread
        ]
        if numbers:
            parts.append(csr_array(np.stack(numbers, axis=1)))
        return hstack(parts, format="csr")


def _scales(cells: Any, group: Array, groups: int) -> tuple[Scale, ...]:
    if isinstance(cells, list | Packed):  # texts
        return ()
    if isinstance(cells, Coded):
        return tuple(
            Scale(values[np.unique(codes[codes >= 0])], 0.0, 0.0)
            for values, codes in zip(cells.values, cells.codes.T, strict=True)
        )
    return tuple(Scale.of_numbers(x, group, groups) for x in cells.T)
