"""What each part of a model (the class prior, every column, every text) says about each row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from priory.bag_of_words.documents import Document
from priory.bag_of_words.token_bags import AnyDocuments, count_letters
from priory.core.typing import Array

MIN_TEXT_LETTERS = 50  # shorter texts count as this long: a few words are not believed more for being few
MIN_RELATIVE_LOG_LIKELIHOOD = -1e4  # what a model calls impossible may still be true


def measure_text_lengths(texts: AnyDocuments) -> Array:
    """(rows,): lengths in thousands of letters, so that the weight of a text of usual length stays near one."""
    return np.maximum(count_letters(texts), MIN_TEXT_LETTERS) / 1000


def measure_text_length(text: Document) -> float:
    """The length of one text, as `measure_text_lengths` has it."""
    letters = len(text) if isinstance(text, str) or text.isascii() else len(text.decode("utf-8", "replace"))
    return max(letters, MIN_TEXT_LETTERS) / 1000


@dataclass(frozen=True, eq=False)
class EvidenceTerms:
    """log p(x_b | c) of each part b of a model; part 0 is the class prior."""

    values: Array  # (rows, classes, parts)
    lengths: Array  # (rows, parts): the length of a text, one for everything else

    def __getitem__(self, rows: Array) -> EvidenceTerms:
        return EvidenceTerms(self.values[rows], self.lengths[rows])

    @property
    def log_joint(self) -> Array:
        """(rows, classes): the sum over the parts, plain naive Bayes."""
        return np.asarray(self.values.sum(axis=2))

    @cached_property
    def relative_to_best(self) -> Array:
        """(rows, classes, parts): each part less its value for its best class, bounded below."""
        best = self.values.max(axis=1, keepdims=True)
        return np.maximum(self.values - np.where(np.isfinite(best), best, 0.0), MIN_RELATIVE_LOG_LIKELIHOOD)
