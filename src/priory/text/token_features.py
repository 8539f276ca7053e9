"""The tokens, pairs and n-grams of characters that corrections give a weight to; and one document read at a time."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy import ndarray as Array

from priory.core._kernel import text as kernel
from priory.core.sparse_rows import SparseRows, sum_entries, unite_parts
from priory.core.statistics import register_record
from priory.text import tokenizer as reading
from priory.text import vocabulary as hashing
from priory.text.documents import DocumentBatch, PackedDocuments, prepare_document, read_documents
from priory.text.normal_forms import Document
from priory.text.token_bags import PAIR_BUCKETS, AnyDocuments, TokenBags, count_letters
from priory.text.token_counts import BagCounts, TokenCounts
from priory.text.tokenizer import TokenIndex, Tokenizer
from priory.text.vocabulary import Vocabulary


class SingleTextReader:
    """Prepares single documents for the kernel."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.rule = tokenizer.build_rule([""])

    def prepare(self, document: Document) -> tuple[Document, kernel.Rule]:
        """Return the document and the rule by which the kernel tokenizes it."""
        [document] = read_documents([document], self.tokenizer.reader)
        if document.isascii():
            return document, self.rule
        return prepare_document(document, 0, self.tokenizer.lowercase), self.wide_rule

    @cached_property
    def wide_rule(self) -> kernel.Rule:
        """The rule for documents that are not ASCII; its tables take a while."""
        return self.tokenizer.build_rule(["é"])


class SingleTextHasher:
    """Hashes the tokens of single documents."""

    def __init__(self, tokenizer: Tokenizer, buckets: int, salt: int) -> None:
        self.reader = SingleTextReader(tokenizer)
        self.hasher = kernel.TokenHasher(buckets, salt)

    def list_buckets(self, document: Document) -> Array:
        """The distinct buckets of a document's tokens, sorted."""
        text, rule = self.reader.prepare(document)
        return self.hasher.encode([text], rule)[1]


PAIR_SALT = 0
CHARACTER_BUCKETS = 1 << 22  # for n-grams of characters
CHARACTER_NGRAMS = (2, 5)
BLOCKS_WITH_SYMBOLS = ((0x21, 0x3100), (0xFE30, 0xFF66), (0x1F000, 0x1FB00))


@lru_cache(maxsize=1)
def list_marks() -> str:
    """All punctuation marks, symbols and emoji."""
    every = (chr(code) for start, end in BLOCKS_WITH_SYMBOLS for code in range(start, end))
    return "".join(mark for mark in every if unicodedata.category(mark)[0] in "PS" and mark != "_")


def has_word_pairs(tokenizer: Tokenizer) -> bool:
    """Whether tokens are single words, so that pairs are additional features."""
    return tokenizer.analyzer == "word" and tokenizer.ngram_range == (1, 1)


def make_pair_tokenizer(tokenizer: Tokenizer) -> Tokenizer:
    """Make a tokenizer for pairs of neighbours: words, single letters, and (not in mail) punctuation and emoji."""
    marks = list_marks() if tokenizer.reader == "text" else ""
    return replace(tokenizer, ngram_range=(2, 2), min_token_length=1, extra_tokens=tokenizer.extra_tokens + marks)


def make_pair_hasher(tokenizer: Tokenizer) -> SingleTextHasher:
    """Make a hasher for the pairs of single documents."""
    return SingleTextHasher(make_pair_tokenizer(tokenizer), PAIR_BUCKETS, PAIR_SALT)


def hash_characters(arena: Array, ends: Array) -> tuple[Array, Array]:
    """The buckets of the n-grams of characters of each word, with its beginning and end, as sparse rows."""
    words = PackedDocuments(arena, np.append(0, ends))
    tokenizer = Tokenizer(lowercase=False, analyzer="char_wb", ngram_range=CHARACTER_NGRAMS)
    return hashing.encode_hashed_documents(words, tokenizer, CHARACTER_BUCKETS, PAIR_SALT)[:2]


def read_word_pairs(documents: DocumentBatch, tokenizer: Tokenizer) -> TokenBags:
    """Hash the pairs of words of each document."""
    pairs = make_pair_tokenizer(tokenizer)
    indptr, buckets, occurrences = hashing.encode_hashed_documents(documents, pairs, PAIR_BUCKETS, PAIR_SALT)
    rows = indptr.astype(np.int64), buckets.astype(np.int64), occurrences
    return TokenBags(np.zeros(0, np.uint8), np.zeros(0, np.int64), *rows, count_letters(documents))


def read_kept_bags(vocabulary: Vocabulary, documents: AnyDocuments, with_pairs: bool) -> TokenBags:
    """Tokenise documents for a sample of rows, with their pairs if tokens are words."""
    bags = vocabulary.read_bags(documents)
    if isinstance(documents, TokenBags) or not with_pairs or not has_word_pairs(vocabulary.tokenizer):
        return bags
    return replace(bags, pairs=read_word_pairs(documents, vocabulary.tokenizer))


def take_word_pairs(documents: AnyDocuments, tokenizer: Tokenizer) -> TokenBags:
    """The pairs of documents: stored with tokenised ones, otherwise read now; empty if they were not stored."""
    if not isinstance(documents, TokenBags):
        return read_word_pairs(documents, tokenizer)
    return documents.without_tokens() if documents.pairs is None else documents.pairs


MIN_PAIRS_FOR_A_TABLE = 1 << 17  # with fewer, bisection is faster than a table of all buckets
MAX_TOKEN_WEIGHTS = 1 << 25  # tokens times classes: 128 MB for each candidate model
MIN_FEATURE_COUNT = 2  # a token of a single document does not generalise


@register_record(
    "TokenFeatures",
    axes={"arena": "k", "ends": "v", "buckets": "b", "pairs": "t", "characters": "h"},
    dtypes={"arena": "u1", "ends": "i8", "buckets": "i8", "pairs": "i8", "characters": "i8"},
    reveals="words, or buckets of words, that at least two training texts had; with few texts, words of one too",
)
@dataclass(frozen=True, eq=False)
class TokenFeatures:
    """Sorted tokens (``arena`` and ``ends``), or the numbers of ``buckets`` if tokens are hashed.

    ``pairs`` are the buckets of pairs of words, ``characters`` the buckets of n-grams of characters.
    """

    arena: Array  # uint8
    ends: Array  # (tokens,)
    buckets: Array  # (buckets,)
    pairs: Array  # (pairs,)
    characters: Array = field(default_factory=lambda: np.zeros(0, np.int64))  # (n-grams,)

    def find_fault(self) -> str | None:
        if not reading.is_valid_vocabulary(self.arena, self.ends) or (len(self.ends) and len(self.buckets)):
            return "the tokens are not UTF-8, do not follow one another, or one of them is there twice"
        if self.pairs.max(initial=-1) >= PAIR_BUCKETS or self.characters.max(initial=-1) >= CHARACTER_BUCKETS:
            return "a pair has a bucket that is not there"
        hashed = self.buckets, self.pairs, self.characters
        is_sorted = [(np.diff(numbers, prepend=-1) > 0).all() for numbers in hashed]
        return None if all(is_sorted) else "the buckets are not sorted"

    @classmethod
    def of(cls, counts: BagCounts, min_count: int = MIN_FEATURE_COUNT) -> TokenFeatures:
        """Choose tokens (or buckets) of at least ``min_count`` documents; if there are too many, the most frequent."""
        frequency, none = counts.counts.sum(axis=1), np.zeros(0, np.int64)
        common = frequency >= min_count
        max_tokens = max(MAX_TOKEN_WEIGHTS // len(counts.n), 1)
        if common.sum() > max_tokens:
            common[np.argsort(-frequency, kind="stable")[max_tokens:]] = False  # of equals the first by their spelling
        if not isinstance(counts, TokenCounts):
            return cls(np.zeros(0, np.uint8), none, np.flatnonzero(common).astype(np.int64), none)
        chosen = counts.take_tokens(common).sort_tokens()
        return cls(chosen.arena, chosen.ends, none, none)

    def add_pairs(self, pairs: TokenBags) -> TokenFeatures:
        """Add the pairs that occur in at least two of the documents."""
        if len(pairs.ids) >= MIN_PAIRS_FOR_A_TABLE:
            return replace(self, pairs=np.flatnonzero(np.bincount(pairs.ids) >= MIN_FEATURE_COUNT))
        buckets, times = np.unique(pairs.ids, return_counts=True)
        return replace(self, pairs=buckets[times >= MIN_FEATURE_COUNT])

    def add_characters(self, words: TokenBags, max_ngrams: int) -> TokenFeatures:
        """Add n-grams of characters in words that at least two documents have; of too many the most frequent."""
        ends, buckets = hash_characters(words.arena, words.ends)
        known, parts = np.unique(buckets, return_inverse=True)
        _, found = unite_parts(words.indptr, words.ids, ends, parts, len(known))
        frequency = np.bincount(found, minlength=len(known))
        best = np.argsort(-frequency, kind="stable")[:max_ngrams]
        common = np.sort(known[best[frequency[best] >= MIN_FEATURE_COUNT]])
        return replace(self, characters=common.astype(np.int64))

    def __len__(self) -> int:
        return self.n_tokens + len(self.pairs) + len(self.characters)

    @property
    def n_tokens(self) -> int:
        """Number of features that are neither pairs nor n-grams of characters."""
        return len(self.ends) + len(self.buckets)

    def encode(self, documents: AnyDocuments, vocabulary: Vocabulary) -> SparseRows:
        """Encode documents as sparse rows (documents, features) of unit length, with equal values within a row."""
        indptr, columns = self._find_tokens(documents, vocabulary)
        if len(self.pairs):
            bags = take_word_pairs(documents, vocabulary.tokenizer)
            indptr, columns = _join_rows(indptr, columns, bags.indptr, self.find_pairs(bags.ids))
        if len(self.characters):
            words = vocabulary.read_bags(documents)
            indptr, columns = _join_rows(indptr, columns, *self._find_characters(words))
        kept = columns >= 0
        sizes = sum_entries(indptr, kept)  # (documents,): features of each
        # 1 / sqrt(number of features) for every feature of a document
        values = np.repeat((1 / np.sqrt(np.maximum(sizes, 1))).astype(np.float32), sizes)
        ends = np.append(0, np.cumsum(sizes))
        return SparseRows(ends, columns[kept].astype(np.int32, copy=False), values, len(self))

    def _find_tokens(self, documents: AnyDocuments, vocabulary: Vocabulary) -> tuple[Array, Array]:
        """Sparse rows with the column of every token, -1 if it is not a feature."""
        if len(self.buckets):
            bags = vocabulary.read_bags(documents)
            return bags.indptr, _find_sorted(self.buckets, bags.ids)
        if isinstance(documents, TokenBags):
            known = self._find_index("whole").find_columns(documents.arena, documents.ends).astype(np.int32)
            return documents.indptr, known[documents.ids]
        index = self._find_index(vocabulary.tokenizer.analyzer)
        indptr, columns, _ = reading.encode_documents(documents, index, vocabulary.tokenizer)
        return indptr, columns

    def find_pairs(self, buckets: Array) -> Array:
        """The columns of buckets of pairs, -1 if a pair is not a feature."""
        if len(buckets) < MIN_PAIRS_FOR_A_TABLE:
            place = _find_sorted(self.pairs, buckets)
            return np.where(place < 0, -1, self.n_tokens + place)
        columns = np.full(PAIR_BUCKETS, -1, dtype=np.int32)
        columns[self.pairs] = self.n_tokens + np.arange(len(self.pairs))
        return columns[buckets]

    def _find_characters(self, words: TokenBags) -> tuple[Array, Array]:
        """Sparse rows with the columns of the n-grams of characters in the words of each document."""
        ends, columns = self.split_words(words.arena, words.ends)
        return unite_parts(words.indptr, words.ids, ends, columns, len(self))

    def split_words(self, arena: Array, ends: Array) -> tuple[Array, Array]:
        """Sparse rows with the columns of the n-grams of characters in each word."""
        indptr, buckets = hash_characters(arena, ends)
        place = _find_sorted(self.characters, buckets)
        known = place >= 0
        columns = self.n_tokens + len(self.pairs) + place[known]
        return np.append(0, np.cumsum(sum_entries(indptr, known))), columns

    def find_tokens(self, tokens: Sequence[str], row_of_token: Mapping[str, int]) -> Array:
        """The columns of tokens by their spelling, or by their buckets; -1 if a token is not a feature."""
        if len(self.buckets):
            return _find_sorted(
                self.buckets, np.array([row_of_token.get(token, -1) for token in tokens], dtype=np.int64)
            )
        spelled = [token.encode() for token in tokens]
        ends = np.cumsum([len(token) for token in spelled], dtype=np.int64)
        arena = np.frombuffer(b"".join(spelled), np.uint8)
        return np.asarray(self._find_index("whole").find_columns(arena, ends), dtype=np.int64)

    def _find_index(self, analyzer: str) -> TokenIndex:
        """The index of the tokens, built once."""
        known: dict[str, TokenIndex] = self.__dict__.setdefault("_indexes", {})
        if analyzer not in known:
            known[analyzer] = TokenIndex(self.arena, self.ends, analyzer)
        return known[analyzer]

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "_indexes"}


def _find_sorted(known: Array, numbers: Array) -> Array:
    """The position of each number among the known ones, which are sorted; -1 if it is not one of them."""
    place = np.searchsorted(known, numbers)
    place[place == len(known)] = 0
    return np.where(known[place] == numbers, place, -1)


def _join_rows(indptr: Array, columns: Array, more_indptr: Array, more: Array) -> tuple[Array, Array]:
    """Concatenate the entries of two sparse tables within each row."""
    ends = indptr + more_indptr
    joined = np.empty(ends[-1], dtype=np.int32)
    joined[np.arange(len(columns)) + np.repeat(more_indptr[:-1], np.diff(indptr))] = columns
    joined[np.arange(len(more)) + np.repeat(indptr[1:], np.diff(more_indptr))] = more
    return ends, joined
