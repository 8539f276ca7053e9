"""Counts of codes in total and per fold, so that the model without a fold is ``total - fold``.

The evidence of a code is its log likelihood ratio, log p(code | class) - log p(code). The counts of neighbouring bins
are smoothed, and the distribution of each class is shrunk towards the one of all classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from priory.calibration.table_encoding import CountedModel, TableEncoding
from priory.core.typing import Array

POOLED_ROWS = 1.0  # pseudo-counts of each class, distributed as in all classes together
MAX_LOG_RATIO = 20.0
MAX_ROWS_TO_SMOOTH = 5000  # with more rows, bins have enough counts


@dataclass(frozen=True, eq=False)
class CodeCounts:
    """Counts of codes in each class, and of the rows of each class, in total and for each fold."""

    encoding: TableEncoding
    total: Array  # (classes, codes)
    folds: Array  # (folds, classes, codes)
    class_total: Array  # (classes,)
    class_folds: Array  # (folds, classes)

    @classmethod
    def of(
        cls, encoding: TableEncoding, codes: Array, group: Array, weight: Array, fold: Array, shape: tuple[int, int]
    ) -> CodeCounts:
        """Count the codes (rows, columns) of rows; ``shape`` is (folds, classes)."""
        # (rows, columns): the index of each cell in a flat (folds, classes, codes) table
        cell = (fold * shape[1] + group)[:, None] * encoding.n_codes + codes + encoding.starts[:-1]
        known = codes >= 0
        spread = np.broadcast_to(weight[:, None], codes.shape)[known]
        folds = np.bincount(cell[known], spread, minlength=shape[0] * shape[1] * encoding.n_codes)
        folds = folds.reshape(*shape, encoding.n_codes)
        class_folds = np.bincount(fold * shape[1] + group, weight, minlength=shape[0] * shape[1]).reshape(shape)
        return cls(encoding, folds.sum(axis=0), folds, class_folds.sum(axis=0), class_folds)

    def extend(self, model: CountedModel, class_total: Array) -> CodeCounts:
        """Replace the totals by the counts of all rows that a model has learned, of which these are a sample."""
        total = self.total.copy()
        columns = ((b, j) for b, block in enumerate(self.encoding.blocks) for j in range(len(block)))
        for column, start, place in zip(self.encoding.columns, self.encoding.starts, columns, strict=False):
            counted = model.count_values(*place)
            if counted is not None:
                code = column.encode_values(counted[0])
                known = code >= 0
                for c, counts in enumerate(counted[1]):  # (values,): the counts of one class
                    stop = start + column.n_codes - 1
                    total[c, start:stop] = np.bincount(code[known], counts[known], minlength=column.n_codes - 1)
        return CodeCounts(self.encoding, total, self.folds, class_total, self.class_folds)

    def without(self, *folds: int) -> tuple[Array, Array]:
        """Return the counts of codes (classes, codes) and of rows (classes,) without some folds."""
        out = list(set(folds))
        return self.total - self.folds[out].sum(axis=0), self.class_total - self.class_folds[out].sum(axis=0)

    def log_ratios(self, *folds: int) -> Array:
        """(classes, codes): the log likelihood ratio of each code, from the model without these folds."""
        counts = self.without(*folds)[0]
        starts = self.encoding.starts
        if not len(starts[:-1]):
            return np.zeros(counts.shape)
        counts[:, starts[1:] - 1] = 0.0  # a missing cell is ignored
        if self.class_total.sum() <= MAX_ROWS_TO_SMOOTH:
            counts = self._smooth_neighbours(counts)
        widths = np.diff(starts)
        # in_class (classes, codes): the counts of the code's whole column; share (codes,): of the code in its column
        in_class = np.repeat(np.add.reduceat(counts, starts[:-1], axis=1), widths, axis=1)
        pooled = counts.sum(axis=0)
        share = pooled / np.maximum(np.repeat(np.add.reduceat(pooled, starts[:-1]), widths), 1e-300)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log((counts + POOLED_ROWS * share) / (in_class + POOLED_ROWS) / share)
        return np.clip(np.where(pooled > 0, ratio, 0.0), -MAX_LOG_RATIO, MAX_LOG_RATIO)

    def _smooth_neighbours(self, counts: Array) -> Array:
        """Smooth bins with the kernel (1/4, 1/2, 1/4); a bin without a neighbour keeps that quarter."""
        gives = self._gives_right
        # (classes, codes): the quarters that move to the next and to the previous bin
        right, left = counts * gives / 4, counts * np.roll(gives, 1) / 4
        return counts - right - left + np.roll(right, 1, axis=1) + np.roll(left, -1, axis=1)

    @cached_property
    def _gives_right(self) -> Array:
        """(codes,): one where the next code is a neighbouring bin, else zero."""
        gives = np.zeros(self.encoding.n_codes)
        for column, start in zip(self.encoding.columns, self.encoding.starts, strict=False):
            gives[start : start + column.n_codes - 1] = column.blends
        return gives

    def log_prior(self, *folds: int) -> Array:
        """(classes,): the log of each class's share of the rows, from the model without these folds."""
        n = self.without(*folds)[1] + 0.5
        return np.asarray(np.log(n / n.sum()))
