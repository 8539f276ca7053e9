from collections import Counter as Tally
from collections.abc import Sequence

import numpy as np

from priory._kernel.token_spans import Rule as Rule
from priory._kernel.token_spans import StrOrBytes
from priory._kernel.token_spans import are_tokens_distinct as are_tokens_distinct

class BagReader:
    """Documents as sparse rows of their tokens, which are numbered as they are met."""
    def __init__(self) -> None: ...
    def read(self, documents: Sequence[StrOrBytes], rule: Rule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of (number, count): where each document's row ends, and its numbers and counts one after the other."""
    def merge(self, other: BagReader) -> np.ndarray:
        """Add the tokens that another reader met; the number here of each of its numbers."""
    def result(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The tokens one after the other, where each ends, and which of them each number is, -1 if none."""

class Counter:
    """Counts of tokens for each class; with ``max_tokens``, the rarest are dropped while counting (lossy counting)."""
    def __init__(self, groups: int, max_tokens: int = 0) -> None: ...
    def add(
        self, documents: Sequence[StrOrBytes], rule: Rule, group: np.ndarray, weight: np.ndarray | None, once: bool
    ) -> None: ...
    def prune(self, max_tokens: int, n_kept: int) -> None:
        """Nothing that is dropped was seen more than ``missed`` times: its count and what was dropped before."""
    def merge(self, other: Counter) -> None: ...
    def result(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """The tokens one after the other, where each ends, their counts, and by how much any count may be too small."""

class Index:
    """The column of each token. ``split`` says that a space parts the words of an n-gram: nothing to a dictionary."""
    def __init__(self, arena: np.ndarray, ends: np.ndarray, split: bool) -> None: ...
    def find_columns(self, arena: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """The column of each of these tokens; -1 where it is not there."""
    def count_row(self, document: StrOrBytes, rule: Rule, number: int) -> Tally[int]:
        """How often the document shows each column; unknown tokens are one more column."""
    def score(
        self, documents: Sequence[StrOrBytes], rule: Rule, table: np.ndarray, once: bool, unknown: np.ndarray | None
    ) -> np.ndarray:
        """The sum of the table's rows over the tokens of each document."""
    def encode(
        self, documents: Sequence[StrOrBytes], rule: Rule, unknown: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of (column, count): where each document's row ends, and its columns and counts one after the other."""

class OpenCounter:
    """Counts of tokens (tokens, classes) that go on changing, and scores from them as they are."""

    first_nodes: np.ndarray  # (tokens,): the numbers of the tokens that were there from the start
    def __init__(self, groups: int, arena: np.ndarray, ends: np.ndarray, counts: np.ndarray, split: bool) -> None: ...
    @property
    def n_used(self) -> int:
        """The number of tokens that some class has a count of."""
    @property
    def totals(self) -> np.ndarray:
        """(classes,): the counts of all tokens."""
    def learn(self, document: StrOrBytes, rule: Rule, group: int, once: bool) -> None:
        """Add the tokens of a document to the counts of its class."""
    def forget(self, document: StrOrBytes, rule: Rule, group: int, once: bool) -> bool:
        """Take the tokens of a document away, and return True; False, and nothing changed, if they are not there."""
    def score(
        self, document: StrOrBytes, rule: Rule, once: bool, alpha: float, complement: bool
    ) -> tuple[np.ndarray, float]:
        """The sum of log(count + alpha) over the tokens in use, for each class, and the number of tokens in the sum."""
    def find(self, document: StrOrBytes, rule: Rule) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the tokens of a document that are known, each once, and how often it shows them."""

class SparseOpenCounter(OpenCounter):
    """An `OpenCounter` of counts above zero, where there are many classes; those of a token end at ``entry_ends``."""
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
    """Tokens hashed into ``size`` buckets; the salt alone decides which."""
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
        """How often each class showed each bucket."""
    def score(self, documents: Sequence[StrOrBytes], rule: Rule, table: np.ndarray, once: bool) -> np.ndarray:
        """The sum of the table's rows over the buckets of each document."""
    def encode(self, documents: Sequence[StrOrBytes], rule: Rule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of (bucket, count), each in order: where each document's row ends, and its buckets and counts."""
