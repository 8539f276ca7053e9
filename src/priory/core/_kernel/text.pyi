from collections import Counter as Tally
from collections.abc import Mapping, Sequence

import numpy as np

StrOrBytes = str | bytes
MAX_WORD_LENGTH: int
SEPARATOR: int
WORD: int
SINGLE: int
SPACELESS: int
SPACE: int
MARK: int
JOINER: int
LETTER: int

class Rule:
    """The declared tokenizer: ``kinds`` and ``lowered`` of each code point; those beyond them are separators."""

    rewrites: Mapping[str, str | None]
    def __init__(
        self,
        analyzer: str,
        min_token_length: int,
        ngram_range: tuple[int, int],
        kinds: np.ndarray,
        lowered: np.ndarray,
        rewrites: Mapping[str, str | None],
    ) -> None: ...

def find_pieces(document: str, rule: Rule) -> list[tuple[str, int, int]]:
    """The words (or n-grams of characters) of a document in lower case, each with its start and end in the document."""

def sort_tokens(arena: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Numbers that sort the tokens by their bytes."""

def are_tokens_sorted(arena: np.ndarray, ends: np.ndarray) -> bool:
    """Whether the tokens are strictly increasing by their bytes."""

def are_tokens_distinct(arena: np.ndarray, ends: np.ndarray) -> bool:
    """Whether tokens are contiguous, start at character boundaries, and are distinct."""

class BagReader:
    """Converts documents to sparse rows of tokens, which are numbered in order of first occurrence."""
    def __init__(self) -> None: ...
    def read(self, documents: Sequence[StrOrBytes], rule: Rule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of (number, count): row pointers, token numbers, and counts."""
    def merge(self, other: BagReader) -> np.ndarray:
        """Add the tokens of another reader; returns the number here of each of its tokens."""
    def result(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The concatenated tokens, the end of each, and the token of each number (-1 if none)."""

class Counter:
    """Counts of tokens for each class; with ``max_tokens``, the rarest are dropped while counting (lossy counting)."""
    def __init__(self, groups: int, max_tokens: int = 0) -> None: ...
    def add(
        self, documents: Sequence[StrOrBytes], rule: Rule, group: np.ndarray, weight: np.ndarray | None, once: bool
    ) -> None: ...
    def prune(self, max_tokens: int, n_kept: int) -> None:
        """Drop the rarest tokens; a dropped token occurred at most ``missed`` times."""
    def merge(self, other: Counter) -> None: ...
    def result(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """The concatenated tokens, the end of each, their counts, and an upper bound of the error of any count."""

def gather_tokens(arena: np.ndarray, ends: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The tokens with these numbers, in the order given: arena and ends."""

class Index:
    """Maps tokens to columns. With ``split``, a space separates the words of an n-gram."""
    def __init__(self, arena: np.ndarray, ends: np.ndarray, split: bool) -> None: ...
    def find_columns(self, arena: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """The column of each token, or -1."""
    def count_row(self, document: StrOrBytes, rule: Rule, number: int) -> Tally[int]:
        """Counts of each column in the document; unknown tokens share one more column."""
    def score(
        self, documents: Sequence[StrOrBytes], rule: Rule, table: np.ndarray, once: bool, unknown: np.ndarray | None
    ) -> np.ndarray:
        """Sum of the table's rows over the tokens of each document."""
    def encode(
        self, documents: Sequence[StrOrBytes], rule: Rule, unknown: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of (column, count): row pointers, columns, and counts."""

class OpenCounter:
    """Mutable counts of tokens (tokens, classes), and scores from the current counts."""

    first_nodes: np.ndarray  # (tokens,): the numbers of the initial tokens
    def __init__(self, groups: int, arena: np.ndarray, ends: np.ndarray, counts: np.ndarray, split: bool) -> None: ...
    @property
    def n_used(self) -> int:
        """Number of tokens with a positive count in some class."""
    @property
    def totals(self) -> np.ndarray:
        """Total counts of all tokens, (classes,)."""
    def learn(self, document: StrOrBytes, rule: Rule, group: int, once: bool) -> None:
        """Add the tokens of a document to the counts of its class."""
    def forget(self, document: StrOrBytes, rule: Rule, group: int, once: bool) -> bool:
        """Remove the tokens of a document and return True; return False, changing nothing, if they are not there."""
    def score(
        self, document: StrOrBytes, rule: Rule, once: bool, alpha: float, complement: bool
    ) -> tuple[np.ndarray, float]:
        """Sum of log(count + alpha) over the tokens in use, (classes,), and the number of tokens in the sum."""
    def find(self, document: StrOrBytes, rule: Rule) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the distinct known tokens of a document, and their occurrences."""

class SparseOpenCounter(OpenCounter):
    """An `OpenCounter` that stores only positive counts, for many classes; a token's counts end at ``entry_ends``."""
    def __init__(
        self,
        n_classes: int,
        arena: np.ndarray,
        ends: np.ndarray,
        entry_ends: np.ndarray,
        classes: np.ndarray,
        values: np.ndarray,
        split: bool,
    ) -> None: ...

class TokenHasher:
    """Hashes tokens into ``size`` buckets; the hash depends only on the salt."""
    def __init__(self, size: int, salt: int) -> None: ...
    def count_row(self, document: StrOrBytes, rule: Rule, number: int) -> Tally[int]: ...
    def find_bucket(self, token: str, rule: Rule) -> int: ...
    def count(
        self,
        documents: Sequence[StrOrBytes],
        rule: Rule,
        group: np.ndarray,
        weight: np.ndarray | None,
        groups: int,
        once: bool,
    ) -> np.ndarray:
        """Counts of each bucket in each class."""
    def score(self, documents: Sequence[StrOrBytes], rule: Rule, table: np.ndarray, once: bool) -> np.ndarray:
        """Sum of the table's rows over the buckets of each document."""
    def encode(self, documents: Sequence[StrOrBytes], rule: Rule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of (bucket, count), sorted by bucket: row pointers, buckets, and counts."""
