"""Which tokens a model of texts remembers: all it meets, those of a fixed dictionary, or hashes of them.

Peers behind one interface: what they count is the record, and what is *in use* of it is a function of the record, so a
forgotten document takes its tokens along.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from priory.bag_of_words import token_counts as words
from priory.bag_of_words import tokenizer as reading
from priory.bag_of_words.documents import DocumentBatch
from priory.bag_of_words.hashed_counts import HashedCounts
from priory.bag_of_words.token_counts import TokenCounts
from priory.bag_of_words.tokenizer import TokenIndex, Tokenizer
from priory.core.typing import Array
from priory.errors import DataError, MissingDependencyError

UNKNOWN_TOKEN = "<unknown>"  # no word is spelt like this


@dataclass(frozen=True)
class Vocabulary(ABC):
    """What is counted of a document's tokens."""

    tokens: Tokenizer

    @abstractmethod
    def count(
        self, documents: DocumentBatch, group: Array, groups: int, weight: Array | None, binary: bool
    ) -> tuple[Any, ...]:
        """The records of some documents: the counts, and whatever else is needed to know which tokens are in use."""

    @abstractmethod
    def select_counts(self, records: tuple[Any, ...], n_documents: float) -> Any:
        """The counts of the tokens in use."""

    @abstractmethod
    def score(self, documents: DocumentBatch, counts: Any, table: Array, binary: bool) -> Array:
        """The sum of ``table[token]`` over the tokens in use of each document."""

    @property
    def keeps_all_tokens(self) -> bool:
        """Whether the tokens in use are simply those seen."""
        return False


@final
@dataclass(frozen=True)
class GrowingVocabulary(Vocabulary):
    """Every token that was seen, but for those in too few or too many documents, or not among the most frequent."""

    min_df: float = 1
    max_df: float = 1.0
    max_features: int | None = None
    max_tokens: int | None = None  # bounds the tokens kept while learning

    def __post_init__(self) -> None:
        for name in ("min_df", "max_df"):
            value = getattr(self, name)
            if not value >= 0 or (isinstance(value, float) and value > 1):
                raise DataError(f"{name} is {value!r}; use a number of documents, or a share of them from 0.0 to 1.0.")

    @property
    def keeps_all_tokens(self) -> bool:
        return self.min_df in (0, 1) and self.max_df == 1.0 and self.max_features is None

    def count(
        self, documents: DocumentBatch, group: Array, groups: int, weight: Array | None, binary: bool
    ) -> tuple[TokenCounts, ...]:
        """Occurrences alone do not say in how many documents a token was: then presence is counted too."""
        kinds = (binary,) if binary or self.keeps_all_tokens else (binary, True)
        return tuple(
            words.count_tokens(documents, group, groups, self.tokens, weight, binary=kind, max_tokens=self.max_tokens)
            for kind in kinds
        )

    def select_counts(self, records: tuple[TokenCounts, ...], n_documents: float) -> TokenCounts:
        counted = records[0]
        if self.keeps_all_tokens:
            return counted
        presence = counted if len(records) == 1 else counted.align(records[1])[1]
        showing = presence.counts.sum(axis=1)
        low, high = (v * n_documents if isinstance(v, float) else v for v in (self.min_df, self.max_df))
        keep = (showing >= low) & (showing <= high)
        if self.max_features is not None and keep.sum() > self.max_features:
            frequency = np.where(keep, counted.counts.sum(axis=1), -1.0)
            spelling = np.argsort(np.argsort(np.array(counted.tokens(), dtype=object)))
            keep = np.zeros(len(keep), dtype=bool)
            keep[np.lexsort((spelling, -frequency))[: self.max_features]] = True
        return counted.take_tokens(keep)

    def score(self, documents: DocumentBatch, counts: TokenCounts, table: Array, binary: bool) -> Array:
        return reading.score_documents(documents, counts.index(self.tokens.analyzer), table, self.tokens, binary=binary)


@final
@dataclass(frozen=True)
class FixedVocabulary(Vocabulary):
    """A dictionary declared beforehand; other tokens are ignored, or share a last slot if ``unknown``."""

    dictionary: tuple[str, ...] = ()
    unknown: bool = False

    @cached_property
    def index(self) -> TokenIndex:
        return TokenIndex.of(self.dictionary, self.tokens.analyzer)

    def _make_empty_counts(self, groups: int) -> TokenCounts:
        arena, ends = reading.encode_vocabulary([*self.dictionary, *([UNKNOWN_TOKEN] if self.unknown else [])])
        return TokenCounts(np.zeros(groups), arena, ends, np.zeros((len(ends), groups)))

    def count(
        self, documents: DocumentBatch, group: Array, groups: int, weight: Array | None, binary: bool
    ) -> tuple[TokenCounts]:
        nothing = self._make_empty_counts(groups)
        indptr, ids, times = reading.encode_documents(documents, self.index, self.tokens, unknown=self.unknown)
        row = np.repeat(np.arange(len(documents)), np.diff(indptr))
        value = np.ones(len(ids)) if binary else times
        counts = np.zeros((len(nothing), groups))
        np.add.at(counts, (ids, group[row]), value if weight is None else value * weight[row])
        n = np.bincount(group, weight, minlength=groups).astype(float)
        return (TokenCounts(n, nothing.arena, nothing.ends, counts).drop_absent_tokens(),)

    def select_counts(self, records: tuple[TokenCounts, ...], n_documents: float) -> TokenCounts:
        """The whole dictionary in the order it was declared, counted or not."""
        return self._make_empty_counts(records[0].counts.shape[1]) + records[0]

    def score(self, documents: DocumentBatch, counts: TokenCounts, table: Array, binary: bool) -> Array:
        known, slot = table[: len(self.dictionary)], table[-1] if self.unknown else None
        return reading.score_documents(documents, self.index, known, self.tokens, binary=binary, unknown=slot)


@final
@dataclass(frozen=True)
class HashedVocabulary(Vocabulary):
    """Tokens hashed with a salt into a declared number of buckets: fixed memory, and no words."""

    buckets: int = 1 << 18
    salt: int = 0

    def __post_init__(self) -> None:
        if not self.buckets >= 1:
            raise DataError(f"buckets is {self.buckets!r}; it must be 1 or more.")

    def count(
        self, documents: DocumentBatch, group: Array, groups: int, weight: Array | None, binary: bool
    ) -> tuple[HashedCounts]:
        n = np.bincount(group, weight, minlength=groups).astype(float)
        counts = reading.count_hashed_tokens(
            documents, group, groups, self.tokens, self.buckets, self.salt, weight, binary=binary
        )
        return (HashedCounts(n, counts),)

    def select_counts(self, records: tuple[HashedCounts, ...], n_documents: float) -> HashedCounts:
        return records[0]

    def score(self, documents: DocumentBatch, counts: HashedCounts, table: Array, binary: bool) -> Array:
        return reading.score_hashed_tokens(documents, table, self.tokens, self.salt, binary=binary)


def load_stop_words(language_or_words: Any) -> frozenset[str] | None:
    """The words themselves, or those of a language."""
    if language_or_words is None or isinstance(language_or_words, frozenset):
        return language_or_words
    if not isinstance(language_or_words, str):
        return frozenset(language_or_words)
    try:
        from stopwordsiso import has_lang, stopwords
    except ImportError:
        raise MissingDependencyError("stop words by language need stopwordsiso: pip install 'priory[text]'.") from None
    if not has_lang(language_or_words):
        raise DataError(f"stop_words is {language_or_words!r}; use a language code such as 'en', or give the words.")
    return frozenset(stopwords(language_or_words))
