"""Mutable counts of tokens, to learn, forget and score one document at a time.

A record is immutable: adding a document makes a new record, at the cost of the whole vocabulary. Here the counts change
in place, so the cost depends only on the document. The scores equal the ones computed from records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from priory._kernel import text as kernel
from priory.bag_of_words.documents import Document
from priory.bag_of_words.models import BagOfWords, ComplementBag, PoissonBag, TokenDrawBag
from priory.bag_of_words.single_texts import SingleTextReader
from priory.bag_of_words.sparse_counts import SparseCounts
from priory.bag_of_words.text_model import TextModel, TextRecords
from priory.bag_of_words.token_counts import TokenCounts
from priory.bag_of_words.tokenizer import Tokenizer
from priory.bag_of_words.vocabulary import GrowingVocabulary
from priory.core.typing import Array


class Sums(Protocol):
    """Sums over all tokens that the score of a document depends on."""

    @property
    def n_used(self) -> int:
        """Number of tokens in use."""

    @property
    def totals(self) -> Array:
        """Total counts of all tokens, (classes,)."""


class OpenCounts:
    """Mutable counts of a text model.

    >>> from priory.bag_of_words.tokenizer import Tokenizer
    >>> model = TextModel("binary", 1.0, False, GrowingVocabulary(Tokenizer()))
    >>> texts, group = ["win cash", "lunch?"], np.array([0, 1])
    >>> counts = OpenCounts(model, model.count(texts[:1], group[:1], 2))
    >>> counts.learn("lunch?", 1)
    >>> counts.log_likelihood("win lunch", np.ones(2)).round(3).tolist()  # equals ``model.score``
    [-2.526, -2.079]
    """

    def __init__(self, model: TextModel, records: TextRecords) -> None:
        counts = records[0]
        assert isinstance(counts, TokenCounts)
        tokenizer = model.vocabulary.tokenizer
        self.bag = model.build_bag(records)
        self.reader = SingleTextReader(tokenizer)
        self.kernel = open_counts(counts, tokenizer)
        self.finish = FINISH[next(kind for kind in FINISH if isinstance(self.bag, kind))]

    @staticmethod
    def can_open(model: TextModel, records: TextRecords) -> bool:
        """Whether scores depend only on the document's own tokens and a few sums, and no token was dropped."""
        return (
            isinstance(model.vocabulary, GrowingVocabulary)
            and model.vocabulary.keeps_all_tokens
            and model.vocabulary.max_tokens is None
            and model.vocabulary.tokenizer.stem is None
            and not model.average
            and model.alpha != "evidence"
            and model.alpha > 0
            and isinstance(model.build_bag(records), tuple(FINISH))
            and isinstance(records[0], TokenCounts)
            and records[0].missed == 0
        )

    def learn(self, document: Document, group: int) -> None:
        """Add a document of class ``group``."""
        text, rule = self.reader.prepare(document)
        self.kernel.learn(text, rule, group, self.bag.binary)

    def forget(self, document: Document, group: int) -> bool:
        """Remove a document and return True; return False, changing nothing, if it cannot have been learned."""
        text, rule = self.reader.prepare(document)
        return self.kernel.forget(text, rule, group, self.bag.binary)

    def log_likelihood(self, document: Document, n: Array) -> Array:
        """Score of a document, (classes,), equal to `TextModel.score`; ``n`` is the number of documents per class."""
        text, rule = self.reader.prepare(document)
        sums, length = self.kernel.score(text, rule, self.bag.binary, self.bag.alpha, self.finish is _finish_complement)
        return self.finish(sums, length, self.bag, self.kernel, n)


def open_counts(words: TokenCounts, tokenizer: Tokenizer) -> kernel.OpenCounter:
    """Make mutable counts from a record of token counts."""
    counts = words.counts
    if not isinstance(counts, SparseCounts):
        return open_kernel(words.arena, words.ends, counts, tokenizer)
    entries = counts.ends, counts.classes, counts.values
    return kernel.SparseOpenCounter(counts.n_classes, words.arena, words.ends, *entries, tokenizer.analyzer == "word")


def open_kernel(arena: Array, ends: Array, counts: Array, tokenizer: Tokenizer) -> kernel.OpenCounter:
    """Make mutable counts from a dense array (tokens, classes)."""
    table = np.ascontiguousarray(counts, dtype=float)
    return kernel.OpenCounter(table.shape[1], arena, ends, table, tokenizer.analyzer == "word")


def _finish_token_draws(sums: Array, length: float, bag: BagOfWords, counts: Sums, n: Array) -> Array:
    if not length:  # there may be no tokens at all
        return sums
    return np.asarray(sums - length * np.log(counts.totals + bag.alpha * counts.n_used))


def _finish_poisson(sums: Array, length: float, bag: BagOfWords, counts: Sums, n: Array) -> Array:
    rates = (counts.totals + bag.alpha * counts.n_used) / (n + 1)
    return np.asarray(sums - length * np.log(n + 1) - rates)


def _finish_complement(sums: Array, length: float, bag: BagOfWords, counts: Sums, n: Array) -> Array:
    if not length:
        return sums
    others = counts.totals.sum() - counts.totals + bag.alpha * counts.n_used
    return np.asarray(length * np.log(others) - sums)


# For each kind of bag: log p(document | class) from the sum of log(count + alpha) over the document's tokens.
FINISH: dict[type[BagOfWords], Callable[[Array, float, BagOfWords, Sums, Array], Array]] = {
    TokenDrawBag: _finish_token_draws,
    PoissonBag: _finish_poisson,
    ComplementBag: _finish_complement,
}
