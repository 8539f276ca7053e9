"""Text: a column of texts inside a table, explained by a bag of words."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, final

import numpy as np
from scipy.sparse import csr_array

from priory.bag_of_words import token_counts as counting
from priory.bag_of_words import tokenizer as reading
from priory.bag_of_words.averaged_models import get_averaged_bag
from priory.bag_of_words.models import BAG_MODELS, BagOfWords, DocumentRows, build_unit_rows
from priory.bag_of_words.token_counts import TokenCounts
from priory.bag_of_words.tokenizer import Tokenizer
from priory.core.typing import Array, ColumnKind
from priory.errors import DataError
from priory.families import dirichlet
from priory.families.base import ColumnFamily
from priory.families.registry import register_family


@register_family("text", auto_rank=1)
@final
@dataclass(frozen=True)
class Text(ColumnFamily):
    """One column of texts; ``model``, ``alpha`` and ``tokens`` as `priory.TextClassifier` has them.

    Scripts without spaces are read in pairs of characters.

    >>> seen = Text().observe(["win cash", "lunch?"], np.array([0, 1]), 2)
    >>> Text().log_likelihood(seen, ["win lunch"], "predictive").round(3).tolist()
    [[[-2.526], [-2.079]]]
    """

    model: str = "binary"
    alpha: float = 1.0
    tokens: Tokenizer = field(default_factory=lambda: Tokenizer(cjk=True))
    average: bool = False  # over all sets of tokens

    accepted_values: ClassVar[str] = "texts"
    column_kind: ClassVar[ColumnKind] = "text"

    @classmethod
    def with_alpha(cls, alpha: float) -> Self:
        return cls(alpha=alpha)

    def observe(self, x: Any, group: Array | None = None, groups: int = 1, weight: Array | None = None) -> TokenCounts:
        classes = np.zeros(len(x), dtype=np.int32) if group is None else group
        return counting.count_tokens(x, classes, groups, self.tokens, weight, binary=BAG_MODELS[self.model].binary)

    @classmethod
    def empirical_prior(cls, statistics: TokenCounts) -> Self:
        return cls()

    def with_token_averaging(self) -> Text:
        """This column with every token counted as far as it matters."""
        return replace(self, average=True)

    def _bag(self, estimate: str) -> BagOfWords:
        kind, alpha = get_averaged_bag(self.model) if self.average else BAG_MODELS[self.model], self.alpha
        if self.average and (estimate == "ml" or not alpha > 0):
            raise DataError("averaging over sets of tokens needs a prior: use alpha above 0, and not estimate='ml'.")
        return kind(0.0 if estimate == "ml" else alpha)

    def inclusion_probability(self, statistics: TokenCounts) -> dict[str, float]:
        """For each token the probability that it depends on the class."""
        words = statistics.sort_tokens()
        return dict(
            zip(
                words.tokens(),
                get_averaged_bag(self.model)(self.alpha).inclusion_probability(words).tolist(),
                strict=True,
            )
        )

    def log_likelihood(self, statistics: TokenCounts, x: Any, estimate: str) -> Array:
        return self.score(statistics, x, estimate)[:, :, None]

    def score(self, statistics: TokenCounts, x: Any, estimate: str) -> Array:
        """A text without a single known word says nothing."""
        bag = self._bag(estimate)
        table, constant = statistics.derive("weights", bag.compute_weights, bag)
        index = statistics.index(self.tokens.analyzer)
        scores = reading.score_documents(x, index, table, self.tokens, binary=bag.binary)
        return scores + constant * np.array([[bool(text)] for text in x]) if constant.any() else scores

    def leave_one_out(self, statistics: TokenCounts, x: Any, group: Array, estimate: str) -> Array:
        """The terms of each text from the record that has not seen it."""
        bag = self._bag(estimate)
        indptr, ids, times = reading.encode_documents(x, statistics.index(self.tokens.analyzer), self.tokens)
        rows = DocumentRows(indptr, ids, np.ones(len(times)) if bag.binary else times, group, statistics)
        return bag.leave_one_out(statistics, rows)[:, :, None] * np.array([[[bool(text)]] for text in x])

    def rows(self, statistics: TokenCounts, x: Any) -> csr_array:
        """Texts as sparse rows of their tokens."""
        indptr, ids, _ = reading.encode_documents(x, statistics.index(self.tokens.analyzer), self.tokens)
        return build_unit_rows(indptr, ids, statistics)

    def evidence(self, statistics: TokenCounts) -> Array:
        """Of the tokens, as drawn one by one by each class."""
        return np.array([dirichlet.log_evidence(np.asarray(max(self.alpha, 1e-3)), statistics.counts.T).sum()])
