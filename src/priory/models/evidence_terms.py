"""Log-likelihood of each part of a model (class prior, columns, texts), per row and class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from priory.bag_of_words.documents import Document
from priory.bag_of_words.token_bags import AnyDocuments, count_letters
from priory.core.typing import Array

MIN_TEXT_LETTERS = 50  # shorter texts count as this long, so that they do not get a larger weight
MIN_RELATIVE_LOG_LIKELIHOOD = -1e4  # bounds the evidence of a single part


def measure_text_lengths(texts: AnyDocuments) -> Array:
    """Lengths in thousands of letters, (rows,), so that weights of typical texts are near one."""
    return np.maximum(count_letters(texts), MIN_TEXT_LETTERS) / 1000


def measure_text_length(text: Document) -> float:
    """`measure_text_lengths` for one text."""
    letters = len(text) if isinstance(text, str) or text.isascii() else len(text.decode("utf-8", "replace"))
    return max(letters, MIN_TEXT_LETTERS) / 1000


@dataclass(frozen=True, eq=False)
class EvidenceTerms:
    """log p(x_b | c) of each part b of a model; part 0 is the class prior."""

    values: Array  # (rows, classes, parts)
    lengths: Array  # (rows, parts): the length of a text, 1 for other parts

    def __getitem__(self, rows: Array) -> EvidenceTerms:
        return EvidenceTerms(self.values[rows], self.lengths[rows])

    @property
    def log_joint(self) -> Array:
        """Sum over the parts, (rows, classes): plain naive Bayes."""
        return np.asarray(self.values.sum(axis=2))

    @cached_property
    def relative_to_best(self) -> Array:
        """Each part relative to its best class, (rows, classes, parts), bounded from below."""
        best = self.values.max(axis=1, keepdims=True)
        return np.maximum(self.values - np.where(np.isfinite(best), best, 0.0), MIN_RELATIVE_LOG_LIKELIHOOD)
