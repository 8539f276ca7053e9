"""How many numbers a model has to estimate: with the naive assumption, and without it.

    naive   classes * (Σ_j parameters of column j + 1)        the 1 is P(class)
    full    classes * (parameters of the joint distribution of all columns + 1)

Without the assumption, k_1, k_2, ... values need Π k_j - 1 probabilities, and d numbers a mean vector and a covariance
matrix, in every combination of the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from priory.bag_of_words.text_model import TextModel, TextRecords
from priory.families import Bernoulli, Categorical, Gaussian, Histogram, Text
from priory.families.text import split_record
from priory.models.naive_bayes import Model

MAX_LOG2_CELLS = 1000  # 2 to the power of it is still a float


@dataclass(frozen=True)
class ParameterCount:
    """The number of parameters of a model.

    ``full`` is infinite if it is too large for a float, and None if a family has no joint distribution to speak of.
    """

    naive: int
    full: float | None

    def __str__(self) -> str:
        full = "undefined" if self.full is None else f"{self.full:.6g}"
        return f"{self.naive:,} naive, {full} without the naive assumption"


def count_model_parameters(model: Model) -> ParameterCount:
    """The parameters of naive Bayes of a table."""
    n_classes, naive, log2_cells, n_numbers, has_joint = len(model.classes), 0, 0.0, 0, True
    for choice in model.choices():
        for i in range(len(choice.positions)):
            family, record = choice.family, choice.statistics
            if isinstance(family, Text):
                n_words = len(family.build_model().select_counts(split_record(record)))  # type: ignore[arg-type]
                naive, log2_cells = naive + n_words, log2_cells + n_words
            elif isinstance(family, Categorical | Histogram) and isinstance(record, tuple):
                shares = (family.take_column(i) if isinstance(family, Categorical) else family).parameters(
                    record[i], "mean"
                )
                n_values = shares.probabilities.shape[-1]
                naive, log2_cells = naive + n_values - 1, log2_cells + float(np.log2(max(n_values, 1)))
            elif isinstance(family, Bernoulli):
                naive, log2_cells = naive + 1, log2_cells + 1
            elif isinstance(family, Gaussian):
                naive, n_numbers = naive + 2, n_numbers + 1
            else:
                naive, has_joint = naive + 2 - (type(family).__name__ in ("Poisson", "Binomial")), False
    full = _count_full(n_classes, log2_cells, n_numbers) if has_joint else None
    return ParameterCount(n_classes * (naive + 1), full)


def count_text_parameters(text: TextModel, records: TextRecords) -> ParameterCount:
    """The parameters of naive Bayes of texts: one for each word and class.

    Without the assumption, every set of words has a probability of its own.
    """
    counts = text.select_counts(records)
    n_words, n_classes = len(counts), len(counts.n)
    return ParameterCount(n_classes * (n_words + 1), _count_full(n_classes, float(n_words), 0))


def count_label_parameters(n_values: Sequence[int], n_classes: int) -> ParameterCount:
    """The parameters of naive Bayes of columns with this many values each.

    >>> print(count_label_parameters([3, 3, 2, 2], 2))  # PlayTennis
    14 naive, 72 without the naive assumption
    """
    naive = sum(n_values) - len(n_values)
    return ParameterCount(n_classes * (naive + 1), _count_full(n_classes, float(np.log2(n_values).sum()), 0))


def _count_full(n_classes: int, log2_cells: float, n_numbers: int) -> float:
    """The parameters of a joint distribution of this many combinations of values, and numbers.

    >>> _count_full(2, 11.0, 0)  # eleven words that are present or absent
    4096.0
    """
    if log2_cells > MAX_LOG2_CELLS:
        return float("inf")
    cells = float(np.round(2.0**log2_cells))
    per_cell = n_numbers + n_numbers * (n_numbers + 1) / 2
    return n_classes * (cells - 1 + cells * per_cell + 1)
