"""Text: a column of texts inside a table, explained by a bag of words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, final

import numpy as np
from scipy.sparse import csr_array

from priory.bag_of_words import token_counts as counting
from priory.bag_of_words import tokenizer as reading
from priory.bag_of_words.averaged_models import averaged
from priory.bag_of_words.models import MODELS, Bag, Rows, sparse_rows
from priory.bag_of_words.token_counts import Words
from priory.bag_of_words.tokenizer import Tokens
from priory.core.typing import Array
from priory.errors import DataError
from priory.families import dirichlet
from priory.families.base import Columns


@final
@dataclass(frozen=True)
class Text(Columns):
    """One column of texts; ``model``, ``alpha`` and ``tokens`` as `priory.TextClassifier` has them.

    Scripts without spaces are read in pairs of characters.

    >>> seen = Text().observe(["win cash", "lunch?"], np.array([0, 1]), 2)
    >>> Text().log_likelihood(seen, ["win lunch"], "predictive").round(3).tolist()
    [[[-2.526], [-2.079]]]
    """

    model: str = "binary"
    alpha: float = 1.0
    tokens: Tokens = field(default_factory=lambda: Tokens(cjk=True))
    average: bool = False  # over all sets of tokens

    holds: ClassVar[str] = "texts"

    def observe(self, x: Any, group: Array | None = None, groups: int = 1, weight: Array | None = None) -> Words:
        classes = np.zeros(len(x), dtype=np.int32) if group is None else group
        return counting.count(x, classes, groups, self.tokens, weight, once=MODELS[self.model].once)

    @classmethod
    def prior_from(cls, seen: Words) -> Self:
        return cls()

    def averaged(self) -> Text:
        """This column with every token counted as far as it matters."""
        return replace(self, average=True)

    def _bag(self, estimate: str) -> Bag:
        kind, alpha = averaged(self.model) if self.average else MODELS[self.model], self.alpha
        if self.average and (estimate == "ml" or not alpha > 0):
            raise DataError("averaging over sets of tokens needs a prior: use alpha above 0, and not estimate='ml'.")
        return kind(0.0 if estimate == "ml" else alpha)

    def inclusion(self, seen: Words) -> dict[str, float]:
        """For each token the probability that it depends on the class."""
        words = seen.ordered()
        return dict(zip(words.tokens(), averaged(self.model)(self.alpha).inclusion(words).tolist(), strict=True))

    def log_likelihood(self, seen: Words, x: Any, estimate: str) -> Array:
        return self.score(seen, x, estimate)[:, :, None]

    def score(self, seen: Words, x: Any, estimate: str) -> Array:
        """A text without a single known word says nothing."""
        bag = self._bag(estimate)
        table, constant = seen.derived("weights", bag.weights, bag)
        index = seen.index(self.tokens.unit)
        scores = reading.score(x, index, table, self.tokens, once=bag.once)
        return scores + constant * np.array([[bool(text)] for text in x]) if constant.any() else scores

    def without(self, seen: Words, x: Any, group: Array, estimate: str) -> Array:
        """The terms of each text from the record that has not seen it."""
        bag = self._bag(estimate)
        indptr, ids, times = reading.encode(x, seen.index(self.tokens.unit), self.tokens)
        rows = Rows(indptr, ids, np.ones(len(times)) if bag.once else times, group, seen)
        return bag.without(seen, rows)[:, :, None] * np.array([[[bool(text)]] for text in x])

    def rows(self, seen: Words, x: Any) -> csr_array:
        """Texts as sparse rows of their tokens."""
        indptr, ids, _ = reading.encode(x, seen.index(self.tokens.unit), self.tokens)
        return sparse_rows(indptr, ids, seen)

    def evidence(self, seen: Words) -> Array:
        """Of the tokens, as drawn one by one by each class."""
        return np.array([dirichlet.log_evidence(np.asarray(max(self.alpha, 1e-3)), seen.counts.T).sum()])
