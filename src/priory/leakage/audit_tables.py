"""The two tables side by side, read once for all finders: the test rows stand below the training rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from priory.core.typing import Array
from priory.families.value_counts import factorised
from priory.leakage.column_votes import Votes, binned, class_frequencies
from priory.leakage.findings import Effect


@dataclass(frozen=True)
class Cells:
    """One column of both tables: numbers (NaN where missing), or codes (-1 where missing) of sorted values."""

    name: str
    numbers: Array | None = None
    labels: tuple[Array, Array] | None = None

    @cached_property
    def coded(self) -> tuple[Array, Array]:
        """Codes and values, of numbers too."""
        if self.labels is not None:
            return self.labels
        assert self.numbers is not None
        return factorised(self.numbers)

    @cached_property
    def missing(self) -> Array:
        return np.isnan(self.numbers) if self.numbers is not None else self.coded[0] < 0

    @cached_property
    def whole(self) -> bool:
        """Whether it holds labels, or whole numbers only."""
        if self.numbers is None:
            return True
        present = self.numbers[~self.missing]
        return bool(len(present)) and bool((present == np.rint(present)).all())

    def shown(self, row: int) -> str:
        """One cell, for people."""
        if self.missing[row]:
            return ""
        if self.numbers is not None:
            return f"{self.numbers[row]:g}"
        codes, values = self.coded
        return str(values[codes[row]])


@dataclass(frozen=True)
class Evidence:
    """What the finders look at. ``group`` is the class of each row, -1 where it is not known."""

    train: int
    test: int
    columns: tuple[Cells, ...]
    texts: Mapping[str, list[str]]
    classes: tuple[str, ...] = ()
    group: Array | None = None
    target: Cells | None = None
    groups: Cells | None = None
    time: Cells | None = None
    dates: tuple[str, ...] = ()
    pipeline: Any = None
    given: tuple[Any, Any] = (None, None)  # the features as they came, for the pipeline
    _memo: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def labels(self) -> Array | None:
        """The classes of the training rows, where there is something to tell apart."""
        return None if self.group is None or len(self.classes) < 2 else self.group[: self.train]

    def column(self, name: str) -> Cells:
        return next(column for column in self.columns if column.name == name)

    def bins(self, column: Cells) -> tuple[Array, int]:
        """Each cell's bin, 0 where it is missing; edges from the training rows."""
        if column.name not in self._memo:
            source = column.numbers if column.numbers is not None else column.coded[0]
            self._memo[column.name] = binned(source, self.train)
        return self._memo[column.name]

    @cached_property
    def votes(self) -> Votes | None:
        """Naive Bayes over all columns, in closed form."""
        if self.labels is None or not self.columns:
            return None
        bins = [self.bins(column) for column in self.columns]
        return Votes.of(bins, self.labels, len(self.classes))

    @property
    def base(self) -> float:
        """The accuracy of always answering the commonest class."""
        return 0.0 if self.labels is None else float(class_frequencies(self.labels, len(self.classes)).max())

    def score_without(self, rows: Array) -> Effect | None:
        """The test score of all training rows, and without some of them: their counts subtracted."""
        if self.votes is None or self.group is None or len(rows) == self.train:
            return None
        truth = self.group[self.train :]
        known = truth >= 0
        part = slice(self.train, self.train + self.test)
        right = [(votes.answers(part) == truth)[known] for votes in (self.votes, self.votes.without(rows))]
        return Effect(float(right[0].mean()), float(right[1].mean()), int(known.sum())) if known.any() else None

    def row(self, row: int, most: int = 6) -> str:
        """One row, for people."""
        cells = [f"{name}={texts[row][:80]}" for name, texts in self.texts.items()]
        cells += [f"{column.name}={column.shown(row)}" for column in self.columns[:most]]
        return ", ".join(cells) + (", …" if len(self.columns) > most else "")
