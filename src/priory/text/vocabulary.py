"""The tokens that a text model uses: all it meets (within limits), a fixed dictionary, or hashes of them in buckets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import final

import numpy as np
from numpy import ndarray as Array

from priory.core._kernel import text as kernel
from priory.core.sharding import check_memory
from priory.core.statistics import register_record
from priory.errors import DataError, StaleModelError
from priory.text import token_counts as counting
from priory.text import tokenizer as reading
from priory.text.document_models import SparseTable, WeightTable, score_entries
from priory.text.documents import DocumentBatch, convert_classes
from priory.text.normal_forms import Document
from priory.text.sparse_counts import (
    CountTable,
    count_entries_by_class,
    is_kept_sparse,
    make_empty_table,
    spread_tokens,
)
from priory.text.token_bags import AnyDocuments, TokenBags, count_letters, read_token_rows
from priory.text.token_counts import BagCounts, TokenCounts
from priory.text.tokenizer import TokenIndex, Tokenizer, join_row_parts, map_document_shards

TABLES_OF_BUCKETS = 3  # in memory at once: the counts, the counts of a thread, and the weights
DEFAULT_BUCKETS = 1 << 18


@register_record(
    "Buckets",
    axes={"n": "c", "counts": "vc"},
    reveals="counts of hashed words, and the salt with which a guessed word can be looked up",
)
@dataclass(frozen=True, eq=False)
class HashedCounts(BagCounts):
    """Documents of each class, and counts of the tokens of each bucket in each class; words are not stored."""

    n: Array  # (classes,)
    counts: CountTable  # (buckets, classes)

    def find_fault(self) -> str | None:
        return "a count is negative" if self.counts.min(initial=0.0) < 0 else None


def count_hashed_tokens(
    documents: Iterable[Document],
    group: Array,
    groups: int,
    tokenizer: Tokenizer,
    buckets: int,
    salt: int,
    weight: Array | None = None,
    *,
    binary: bool = True,
) -> Array:
    """Count tokens hashed with the model's salt, (buckets, classes). Counts merge by addition.

    Tokens that share a bucket are treated as one token: ``binary`` counts a bucket once for each document.
    """
    check_bucket_memory(buckets, groups)
    hasher = kernel.TokenHasher(buckets, salt)
    classes, weights = convert_classes(group, weight)

    def count_shard(rule: kernel.Rule, _: int, part: DocumentBatch, rows: slice) -> Array:
        return hasher.count(part, rule, classes[rows], None if weights is None else weights[rows], groups, binary)

    # (buckets, classes), summed in the order of the shards
    total = np.zeros((buckets, groups))
    for counts in map_document_shards(documents, tokenizer, count_shard):
        total += counts
    return total


def check_bucket_memory(buckets: int, groups: int) -> None:
    """Raise ModelTooLargeError if the counts, the weights and the counts of each thread do not fit into memory."""
    what = f"buckets={buckets:,} with {groups:,} classes"
    check_memory(TABLES_OF_BUCKETS * 8 * buckets * max(groups, 1), what, f"use fewer, such as {DEFAULT_BUCKETS:,}")


def score_hashed_tokens(
    documents: Iterable[Document], table: Array, tokenizer: Tokenizer, salt: int, *, binary: bool = True
) -> Array:
    """Sum of ``table[bucket]`` over the tokens of each document, (documents, columns of the table)."""
    rows = np.ascontiguousarray(table, dtype=np.float64)
    hasher = kernel.TokenHasher(len(rows), salt)
    parts = map_document_shards(documents, tokenizer, lambda rule, _, part, __: hasher.score(part, rule, rows, binary))
    return np.concatenate([np.zeros((0, rows.shape[1])), *parts])


def encode_hashed_documents(
    documents: DocumentBatch, tokenizer: Tokenizer, buckets: int, salt: int
) -> tuple[Array, Array, Array]:
    """Encode documents as sparse rows ``(indptr, buckets, occurrences)``, with sorted buckets."""
    hasher = kernel.TokenHasher(buckets, salt)
    return join_row_parts(
        map_document_shards(documents, tokenizer, lambda rule, _, part, __: hasher.encode(part, rule)), np.int64
    )


UNKNOWN_TOKEN = "<unknown>"  # not a possible word


@dataclass(frozen=True)
class Vocabulary(ABC):
    """Determines which tokens of a document are counted."""

    tokenizer: Tokenizer

    @abstractmethod
    def count(
        self, documents: AnyDocuments, group: Array, groups: int, weight: Array | None, binary: bool
    ) -> BagCounts:
        """Count documents."""

    def select_counts(self, counts: BagCounts) -> BagCounts:
        """The counts of the tokens in use."""
        return counts

    def score(self, documents: AnyDocuments, counts: BagCounts, table: WeightTable, binary: bool) -> Array:
        """Sum of ``table[token]`` over the tokens in use of each document, (documents, classes)."""
        if not isinstance(documents, TokenBags) and not isinstance(table, SparseTable):
            return self.score_texts(documents, counts, table, binary)
        indptr, ids, occurrences = self.encode(documents, counts)
        values = np.ones(len(ids)) if binary else occurrences
        return score_entries(indptr, ids, values, table)

    def encode(self, documents: AnyDocuments, counts: BagCounts) -> tuple[Array, Array, Array]:
        """Encode documents as sparse rows ``(indptr, tokens, occurrences)`` over the tokens in use."""
        if not isinstance(documents, TokenBags):
            return self.encode_texts(documents, counts)
        return documents.place_tokens(self.place_tokens(documents, counts))

    @abstractmethod
    def score_texts(self, documents: DocumentBatch, counts: BagCounts, table: Array, binary: bool) -> Array:
        """Implementation of `score` for texts."""

    @abstractmethod
    def encode_texts(self, documents: DocumentBatch, counts: BagCounts) -> tuple[Array, Array, Array]:
        """Implementation of `encode` for texts."""

    @abstractmethod
    def place_tokens(self, bags: TokenBags, counts: BagCounts) -> Array:
        """The row of each token of the bags among the tokens in use; -1 if it is not in use."""

    def read_bags(self, documents: AnyDocuments) -> TokenBags:
        """Tokenise the documents, keeping all tokens that may come into use."""
        if isinstance(documents, TokenBags):
            return documents
        arena, ends, (indptr, ids, occurrences) = self.read_tokens(documents)
        bags = TokenBags(arena, ends, indptr, ids.astype(np.int64, copy=False), occurrences, count_letters(documents))
        return bags.drop_absent_tokens()

    @abstractmethod
    def read_tokens(self, documents: DocumentBatch) -> tuple[Array, Array, tuple[Array, Array, Array]]:
        """The tokens of texts (arena and ends), and the texts as sparse rows."""

    def find_fault(self, counts: object) -> str | None:
        """Describe what is wrong with the result of ``count``; None if it is valid."""
        return None if isinstance(counts, TokenCounts) else "its tokens were not counted"

    def can_read(self, bags: TokenBags) -> bool:
        """Whether bags may come from ``read_bags``: with tokens, or with valid buckets."""
        return len(bags.ends) > 0 or not len(bags.ids)

    def name_tokens(self, counts: BagCounts) -> list[str]:
        """The tokens in use, as strings."""
        return check_words_kept(counts).tokens()

    def number_tokens(self, tokens: Iterable[str], counts: BagCounts) -> Mapping[str, int]:
        """The row in ``counts`` of each of these tokens that is there, and of the slot of unknown ones."""
        words = list(dict.fromkeys([*tokens, UNKNOWN_TOKEN]))
        rows = check_words_kept(counts).index("whole").find_columns(*reading.encode_vocabulary(words))
        return {word: row for word, row in zip(words, rows.tolist(), strict=True) if row >= 0}

    @property
    def grows(self) -> bool:
        """Whether a token is in the vocabulary only while a learned document contains it."""
        return False


@final
@dataclass(frozen=True)
class GrowingVocabulary(Vocabulary):
    """All learned tokens."""

    max_tokens: int | None = None  # bounds the number of tokens kept while learning

    def __post_init__(self) -> None:
        if self.max_tokens is not None and not 1 <= self.max_tokens < 1 << 62:
            raise DataError(f"max_tokens is {self.max_tokens!r}; use a number of tokens from 1, or None.")

    @property
    def grows(self) -> bool:
        return True

    def count(
        self, documents: AnyDocuments, group: Array, groups: int, weight: Array | None, binary: bool
    ) -> TokenCounts:
        if isinstance(documents, TokenBags):
            return counting.count_bags(documents, group, groups, weight, binary=binary)
        return counting.count_tokens(
            documents, group, groups, self.tokenizer, weight, binary=binary, max_tokens=self.max_tokens
        )

    def score_texts(self, documents: DocumentBatch, counts: BagCounts, table: Array, binary: bool) -> Array:
        return reading.score_documents(documents, self._index(counts), table, self.tokenizer, binary=binary)

    def encode_texts(self, documents: DocumentBatch, counts: BagCounts) -> tuple[Array, Array, Array]:
        return reading.encode_documents(documents, self._index(counts), self.tokenizer)

    def place_tokens(self, bags: TokenBags, counts: BagCounts) -> Array:
        words = check_words_kept(counts)
        if np.array_equal(words.ends, bags.ends) and np.array_equal(words.arena, bags.arena):
            return np.arange(len(words))
        return words.index("whole").find_columns(bags.arena, bags.ends)

    def read_tokens(self, documents: DocumentBatch) -> tuple[Array, Array, tuple[Array, Array, Array]]:
        return read_token_rows(documents, self.tokenizer)

    def _index(self, counts: BagCounts) -> TokenIndex:
        return check_words_kept(counts).index(self.tokenizer.analyzer)


@final
@dataclass(frozen=True)
class FixedVocabulary(Vocabulary):
    """A declared dictionary; other tokens are ignored, or share a last slot if ``unknown``."""

    dictionary: tuple[str, ...] = ()
    unknown: bool = False

    def __post_init__(self) -> None:
        odd = next((token for token in self.dictionary if not isinstance(token, str)), None)
        if odd is not None:
            raise DataError(f"vocabulary holds {odd!r}; give tokens as strings.")

    @property
    def index(self) -> TokenIndex:
        return _index_dictionary(self.dictionary, self.tokenizer.analyzer)

    def _make_empty_counts(self, groups: int) -> TokenCounts:
        arena, ends = reading.encode_vocabulary([*self.dictionary, *([UNKNOWN_TOKEN] if self.unknown else [])])
        return TokenCounts(np.zeros(groups), arena, ends, make_empty_table(len(ends), groups))

    def count(
        self, documents: AnyDocuments, group: Array, groups: int, weight: Array | None, binary: bool
    ) -> TokenCounts:
        empty = self._make_empty_counts(groups)
        indptr, ids, times = self.encode(documents, empty)
        values = None if binary else times
        counts = count_entries_by_class(indptr, ids, values, group, weight, (len(empty), groups))
        n = np.bincount(group, weight, minlength=groups).astype(float)
        return TokenCounts(n, empty.arena, empty.ends, counts).drop_absent_tokens().sort_tokens()

    def find_fault(self, counts: object) -> str | None:
        fault = super().find_fault(counts)
        if fault is None and (self._place_counts(counts) < 0).any():
            return "a token was counted that is not in the vocabulary"
        return fault

    def _place_counts(self, counts: object) -> Array:
        """Positions of the tokens of a record in the dictionary, -1 if not found."""
        assert isinstance(counts, TokenCounts)
        return self._make_empty_counts(1).index("whole").find_columns(counts.arena, counts.ends)

    def select_counts(self, counts: BagCounts) -> TokenCounts:
        """The counts of the whole dictionary, in the declared order, including zeros."""
        return check_words_kept(counts).derive("in use", self._spread_counts, self)

    def _spread_counts(self, counts: TokenCounts) -> TokenCounts:
        empty = self._make_empty_counts(1)
        spread = spread_tokens(counts.counts, self._place_counts(counts), len(empty))
        return replace(empty, n=counts.n, counts=spread, missed=counts.missed)

    def score_texts(self, documents: DocumentBatch, counts: BagCounts, table: Array, binary: bool) -> Array:
        # the last row of the table is for unknown tokens
        known, slot = table[: len(self.dictionary)], table[-1] if self.unknown else None
        return reading.score_documents(documents, self.index, known, self.tokenizer, binary=binary, unknown=slot)

    def encode_texts(self, documents: DocumentBatch, counts: BagCounts) -> tuple[Array, Array, Array]:
        return reading.encode_documents(documents, self.index, self.tokenizer, unknown=self.unknown)

    def place_tokens(self, bags: TokenBags, counts: BagCounts) -> Array:
        return self._make_empty_counts(1).index("whole").find_columns(bags.arena, bags.ends)

    def read_tokens(self, documents: DocumentBatch) -> tuple[Array, Array, tuple[Array, Array, Array]]:
        empty = self._make_empty_counts(1)
        return empty.arena, empty.ends, self.encode_texts(documents, empty)


@lru_cache(maxsize=8)
def _index_dictionary(dictionary: tuple[str, ...], analyzer: str) -> TokenIndex:
    return TokenIndex.of(dictionary, analyzer)


@final
@dataclass(frozen=True)
class HashedVocabulary(Vocabulary):
    """Tokens hashed with a salt into a fixed number of buckets: fixed memory, and no words are stored."""

    buckets: int = DEFAULT_BUCKETS
    salt: int = 0

    def __post_init__(self) -> None:
        if not self.buckets >= 1:
            raise DataError(f"buckets is {self.buckets!r}; it must be 1 or more.")
        if not 0 <= self.salt < 1 << 64:
            raise DataError(f"salt is {self.salt!r}; it must be a whole number from 0 to 2**64 - 1.")

    def find_fault(self, counts: object) -> str | None:
        is_counted = isinstance(counts, HashedCounts) and len(counts) == self.buckets
        return None if is_counted else "there is not one count for each bucket"

    def can_read(self, bags: TokenBags) -> bool:
        return not len(bags.ends) and bool(bags.ids.max(initial=0) < self.buckets)

    def count(
        self, documents: AnyDocuments, group: Array, groups: int, weight: Array | None, binary: bool
    ) -> HashedCounts:
        n = np.bincount(group, weight, minlength=groups).astype(float)
        # with many classes the counts are sparse, and computed from bags of buckets
        if isinstance(documents, TokenBags) or is_kept_sparse(groups):
            if not is_kept_sparse(groups):
                check_bucket_memory(self.buckets, groups)
            bags = self.read_bags(documents)
            return HashedCounts(n, bags.count_by_class(group, groups, weight, binary, self.buckets))
        counts = count_hashed_tokens(
            documents, group, groups, self.tokenizer, self.buckets, self.salt, weight, binary=binary
        )
        return HashedCounts(n, counts)

    def name_tokens(self, counts: BagCounts) -> list[str]:
        """Names of the buckets, because the words are not stored."""
        return [f"bucket {number}" for number in range(self.buckets)]

    def score_texts(self, documents: DocumentBatch, counts: BagCounts, table: Array, binary: bool) -> Array:
        return score_hashed_tokens(documents, table, self.tokenizer, self.salt, binary=binary)

    def encode_texts(self, documents: DocumentBatch, counts: BagCounts) -> tuple[Array, Array, Array]:
        return encode_hashed_documents(documents, self.tokenizer, self.buckets, self.salt)

    def place_tokens(self, bags: TokenBags, counts: BagCounts) -> Array:
        return np.arange(self.buckets)

    def read_tokens(self, documents: DocumentBatch) -> tuple[Array, Array, tuple[Array, Array, Array]]:
        rows = encode_hashed_documents(documents, self.tokenizer, self.buckets, self.salt)
        return np.zeros(0, np.uint8), np.zeros(0, np.int64), rows

    def number_tokens(self, tokens: Iterable[str], counts: BagCounts) -> Mapping[str, int]:
        """The bucket of each of these tokens, which the model does not keep."""
        if self.tokenizer.analyzer != "word" or self.tokenizer.reader != "text":
            raise StaleModelError("a hashed model of characters or mail keeps no tokens; leave out buckets.")
        numbers: dict[str, int] = {}
        for n, run in groupby(sorted(dict.fromkeys(tokens), key=_count_words), key=_count_words):
            words = list(run)  # n-grams of n words, each hashed as a text of one token
            spelled = replace(self.tokenizer, ngram_range=(n, n), stop_words=None, stem=None)
            numbers |= zip(
                words, encode_hashed_documents([*words], spelled, self.buckets, self.salt)[1].tolist(), strict=True
            )
        return numbers


VOCABULARY_PARAMETERS = ("max_tokens", "vocabulary", "unknown", "buckets")


def build_vocabulary(
    tokenizer: Tokenizer,
    *,
    max_tokens: int | None = None,
    vocabulary: Iterable[str] | None = None,
    unknown: bool = False,
    buckets: int | None = None,
    salt: int = 0,
) -> Vocabulary:
    """Build the vocabulary declared by the parameters of a text model."""
    growing = GrowingVocabulary(tokenizer, max_tokens)
    if buckets is None and vocabulary is None:
        return growing
    if buckets is not None and vocabulary is not None:
        raise DataError("buckets and vocabulary do not go together; use one.")
    if vocabulary is not None:
        return FixedVocabulary(tokenizer, read_dictionary(tokenizer, tuple(vocabulary)), unknown)
    return HashedVocabulary(tokenizer, buckets or 0, salt)


@lru_cache(maxsize=64)
def read_dictionary(tokenizer: Tokenizer, dictionary: tuple[str, ...]) -> tuple[str, ...]:
    """Normalise a dictionary like texts (lower case, stems), without duplicates.

    >>> read_dictionary(Tokenizer(), ("John", "Mary", "money"))
    ('john', 'mary', 'money')
    """
    return tuple(dict.fromkeys(_read_entry(tokenizer, entry) for entry in dictionary))


def find_unmatched_entries(tokenizer: Tokenizer, dictionary: tuple[str, ...]) -> list[str]:
    """The entries of a dictionary that cannot match, because the tokenizer never produces such a token.

    >>> find_unmatched_entries(Tokenizer(), ("money", "a", "e-mail"))
    ['a', 'e-mail']
    """
    return [entry for entry in dictionary if _find_whole_token(tokenizer, entry) is None]


def _read_entry(tokenizer: Tokenizer, entry: str) -> str:
    """The token that the whole entry becomes; the entry itself if it is not a single token."""
    token = _find_whole_token(tokenizer, entry) if isinstance(entry, str) else None
    return entry if token is None else token


def _find_whole_token(tokenizer: Tokenizer, entry: str) -> str | None:
    """The token that spans a whole text, or None."""
    spans = reading.find_token_spans(entry, tokenizer)
    return next((token for token, start, end in spans if (start, end) == (0, len(entry))), None)


def _count_words(token: str) -> int:
    return token.count(" ") + 1


def check_words_kept(counts: BagCounts) -> TokenCounts:
    """Return the counts, or raise StaleModelError if words are not stored."""
    if not isinstance(counts, TokenCounts):
        raise StaleModelError("a hashed model keeps no words; leave out buckets to have them.")
    return counts
