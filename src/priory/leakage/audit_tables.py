"""The data of an audit, shared by all finders: every column has the training rows first, then the test rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from sklearn.base import BaseEstimator

from priory.core.typing import Array
from priory.families.value_counts import encode_values
from priory.leakage.column_votes import BinnedNaiveBayes, bin_cells, class_frequencies
from priory.leakage.findings import Effect


@dataclass(frozen=True)
class AuditColumn:
    """One column of both tables: numbers (NaN if missing), or codes (-1 if missing) of sorted values."""

    name: str
    numbers: Array | None = None
    labels: tuple[Array, Array] | None = None

    @cached_property
    def codes_and_values(self) -> tuple[Array, Array]:
        """The code of each cell, (rows,), and the sorted values that the codes index; numbers are encoded too."""
        if self.labels is not None:
            return self.labels
        assert self.numbers is not None
        return encode_values(self.numbers)

    @cached_property
    def is_missing(self) -> Array:
        return np.isnan(self.numbers) if self.numbers is not None else self.codes_and_values[0] < 0

    @cached_property
    def is_discrete(self) -> bool:
        """Whether the column holds labels or whole numbers."""
        if self.numbers is None:
            return True
        present = self.numbers[~self.is_missing]
        return bool(len(present)) and bool((present == np.rint(present)).all())

    def format_cell(self, row: int) -> str:
        """Format one cell; a missing cell is empty."""
        if self.is_missing[row]:
            return ""
        if self.numbers is not None:
            return f"{self.numbers[row]:g}"
        codes, values = self.codes_and_values
        return str(values[codes[row]])


@dataclass(frozen=True)
class AuditData:
    """The input of the finders. ``class_codes`` is the class of each row, -1 if unknown."""

    n_train: int
    n_test: int  # 0 if there is no test table
    columns: tuple[AuditColumn, ...]
    texts: Mapping[str, list[str]]  # columns of prose
    classes: tuple[str, ...] = ()
    class_codes: Array | None = None
    target: AuditColumn | None = None
    groups: AuditColumn | None = None
    time: AuditColumn | None = None
    date_columns: tuple[str, ...] = ()
    pipeline: BaseEstimator | None = None
    raw_features: tuple[object, object] = (None, None)  # train and test as given, for the pipeline
    _bins_by_column: dict[str, tuple[Array, int]] = field(default_factory=dict, compare=False)

    @property
    def labels(self) -> Array | None:
        """The class codes of the training rows; None if there are fewer than two classes."""
        return None if self.class_codes is None or len(self.classes) < 2 else self.class_codes[: self.n_train]

    def find_column(self, name: str) -> AuditColumn:
        return next(column for column in self.columns if column.name == name)

    def bin_column(self, column: AuditColumn) -> tuple[Array, int]:
        """Return the bin of each cell (0 if missing) and the number of bins; edges come from the training rows."""
        if column.name not in self._bins_by_column:
            source = column.numbers if column.numbers is not None else column.codes_and_values[0]
            self._bins_by_column[column.name] = bin_cells(source, self.n_train)
        return self._bins_by_column[column.name]

    @cached_property
    def votes(self) -> BinnedNaiveBayes | None:
        """Naive Bayes over all binned columns."""
        if self.labels is None or not self.columns:
            return None
        bins = [self.bin_column(column) for column in self.columns]
        return BinnedNaiveBayes.of(bins, self.labels, len(self.classes))

    @property
    def base_rate(self) -> float:
        """The accuracy of always answering the most common class."""
        return 0.0 if self.labels is None else float(class_frequencies(self.labels, len(self.classes)).max())

    def score_without_rows(self, rows: Array) -> Effect | None:
        """Return the test accuracy with all training rows, and without some of them (their counts are subtracted)."""
        if self.votes is None or self.class_codes is None or len(rows) == self.n_train:
            return None
        truth = self.class_codes[self.n_train :]
        known = truth >= 0  # test rows with a label
        part = slice(self.n_train, self.n_train + self.n_test)
        # with and without these rows, (known test rows,) each
        right = [(votes.predict_classes(part) == truth)[known] for votes in (self.votes, self.votes.remove_rows(rows))]
        return Effect(float(right[0].mean()), float(right[1].mean()), int(known.sum())) if known.any() else None

    def format_row(self, row: int, max_columns: int = 6) -> str:
        """Format one row."""
        cells = [f"{name}={texts[row][:80]}" for name, texts in self.texts.items()]
        cells += [f"{column.name}={column.format_cell(row)}" for column in self.columns[:max_columns]]
        return ", ".join(cells) + (", ..." if len(self.columns) > max_columns else "")
