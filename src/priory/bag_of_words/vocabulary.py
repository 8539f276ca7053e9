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
from priory.bag_of_words.documents import Batch
from priory.bag_of_words.hashed_counts import Buckets
from priory.bag_of_words.token_counts import Words
from priory.bag_of_words.tokenizer import Index, Tokens
from priory.core.typing import Array
from priory.errors import DataError, Missing

UNKNOWN = "<unknown>"  # no word is spelt like this


@dataclass(frozen=True)
class Vocabulary(ABC):
    """What is counted of a document's tokens."""

    tokens: Tokens

    @abstractmethod
    def count(self, documents: Batch, group: Array, groups: int, weight: Array | None, once: bool) -> tuple[Any, ...]:
        """The records of some documents: the counts, and whatever else is needed to know which tokens are in use."""

    @abstractmethod
    def in_use(self, records: tuple[Any, ...], documents: float) -> Any:
        """The counts of the tokens in use."""

    @abstractmethod
    def score(self, documents: Batch, used: Any, table: Array, once: bool) -> Array:
        """The sum of ``table[token]`` over the tokens in use of each document."""

    @property
    def grows(self) -> bool:
        """Whether the tokens in use are simply those seen."""
        return False


@final
@dataclass(frozen=True)
class Growing(Vocabulary):
    """Every token that was seen, but for those in too few or too many documents, or not among the most frequent."""

    min_df: float = 1
    max_df: float = 1.0
    max_features: int | None = None
    most: int | None = None  # bounds the tokens kept while learning

    def __post_init__(self) -> None:
        for name in ("min_df", "max_df"):
            value = getattr(self, name)
            if not value >= 0 or (isinstance(value, float) and value > 1):
                raise DataError(f"{name} is {value!r}; use a number of documents, or a share of them from 0.0 to 1.0.")

    @property
    def grows(self) -> bool:
        return self.min_df in (0, 1) and self.max_df == 1.0 and self.max_features is None

    def count(self, documents: Batch, group: Array, groups: int, weight: Array | None, once: bool) -> tuple[Words, ...]:
        """Occurrences alone do not say in how many documents a token was: then presence is counted too."""
        kinds = (once,) if once or self.grows else (once, True)
        return tuple(
            words.count(documents, group, groups, self.tokens, weight, once=kind, most=self.most) for kind in kinds
        )

    def in_use(self, records: tuple[Words, ...], documents: float) -> Words:
        counted = records[0]
        if self.grows:
            return counted
        presence = counted if len(records) == 1 else counted.aligned(records[1])[1]
        showing = presence.counts.sum(axis=1)
        low, high = (v * documents if isinstance(v, float) else v for v in (self.min_df, self.max_df))
        keep = (showing >= low) & (showing <= high)
        if self.max_features is not None and keep.sum() > self.max_features:
            frequency = np.where(keep, counted.counts.sum(axis=1), -1.0)
            spelling = np.argsort(np.argsort(np.array(counted.tokens(), dtype=object)))
            keep = np.zeros(len(keep), dtype=bool)
            keep[np.lexsort((spelling, -frequency))[: self.max_features]] = True
        return counted.taken(keep)

    def score(self, documents: Batch, used: Words, table: Array, once: bool) -> Array:
        return reading.score(documents, used.index(self.tokens.unit), table, self.tokens, once=once)


@final
@dataclass(frozen=True)
class Fixed(Vocabulary):
    """A dictionary declared beforehand; other tokens are ignored, or share a last slot if ``unknown``."""

    dictionary: tuple[str, ...] = ()
    unknown: bool = False

    @cached_property
    def index(self) -> Index:
        return Index.of(self.dictionary, self.tokens.unit)

    def _nothing(self, groups: int) -> Words:
        arena, ends = reading.packed([*self.dictionary, *([UNKNOWN] if self.unknown else [])])
        return Words(np.zeros(groups), arena, ends, np.zeros((len(ends), groups)))

    def count(self, documents: Batch, group: Array, groups: int, weight: Array | None, once: bool) -> tuple[Words]:
        nothing = self._nothing(groups)
        indptr, ids, times = reading.encode(documents, self.index, self.tokens, unknown=self.unknown)
        row = np.repeat(np.arange(len(documents)), np.diff(indptr))
        value = np.ones(len(ids)) if once else times
        counts = np.zeros((len(nothing), groups))
        np.add.at(counts, (ids, group[row]), value if weight is None else value * weight[row])
        n = np.bincount(group, weight, minlength=groups).astype(float)
        return (Words(n, nothing.arena, nothing.ends, counts).shown(),)

    def in_use(self, records: tuple[Words, ...], documents: float) -> Words:
        """The whole dictionary in the order it was declared, counted or not."""
        return self._nothing(records[0].counts.shape[1]) + records[0]

    def score(self, documents: Batch, used: Words, table: Array, once: bool) -> Array:
        known, slot = table[: len(self.dictionary)], table[-1] if self.unknown else None
        return reading.score(documents, self.index, known, self.tokens, once=once, unknown=slot)


@final
@dataclass(frozen=True)
class Hashed(Vocabulary):
    """Tokens hashed with a salt into a declared number of buckets: fixed memory, and no words."""

    buckets: int = 1 << 18
    salt: int = 0

    def __post_init__(self) -> None:
        if not self.buckets >= 1:
            raise DataError(f"buckets is {self.buckets!r}; it must be 1 or more.")

    def count(self, documents: Batch, group: Array, groups: int, weight: Array | None, once: bool) -> tuple[Buckets]:
        n = np.bincount(group, weight, minlength=groups).astype(float)
        counts = reading.count_hashed(documents, group, groups, self.tokens, self.buckets, self.salt, weight, once=once)
        return (Buckets(n, counts),)

    def in_use(self, records: tuple[Buckets, ...], documents: float) -> Buckets:
        return records[0]

    def score(self, documents: Batch, used: Buckets, table: Array, once: bool) -> Array:
        return reading.score_hashed(documents, table, self.tokens, self.salt, once=once)


def stop_words(given: Any) -> frozenset[str] | None:
    """The words themselves, or those of a language."""
    if given is None or isinstance(given, frozenset):
        return given
    if not isinstance(given, str):
        return frozenset(given)
    try:
        from stopwordsiso import has_lang, stopwords
    except ImportError:
        raise Missing("stop words by language need stopwordsiso: pip install 'priory[text]'.") from None
    if not has_lang(given):
        raise DataError(f"stop_words is {given!r}; use a language code such as 'en', or give the words.")
    return frozenset(stopwords(given))
