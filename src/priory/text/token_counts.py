"""Statistics of texts: the documents of each class, and how often each class showed each token."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy import ndarray as Array

from priory.core.statistics import Statistics, register_record, subtract_counts
from priory.errors import NotLearnedError
from priory.text import tokenizer as reading
from priory.text.documents import convert_classes, iter_document_batches
from priory.text.normal_forms import Document
from priory.text.sparse_counts import (
    CountTable,
    SparseCounts,
    count_entries_by_class,
    is_kept_sparse,
    make_dense_counts,
    make_empty_table,
    move_classes,
    spread_tokens,
    subtract_tables,
)
from priory.text.token_bags import (
    TokenBags,
    find_token_order,
    insert_tokens,
    is_sorted_vocabulary,
    locate_tokens,
    read_token_rows,
)
from priory.text.tokenizer import TokenIndex, Tokenizer, is_valid_vocabulary


class BagCounts(Statistics):
    """Number of documents of each class, and counts of each token (or bucket of tokens) in each class.

    Subclasses declare the fields, each in its own order.
    """

    n: Array  # (classes,)
    counts: CountTable  # (tokens, classes)

    def __len__(self) -> int:
        return len(self.counts)

    def regroup_classes(self, index: Array, size: int) -> Self:
        n = np.zeros(size)
        n[index] = self.n
        return self._replace_counts(n, move_classes(self.counts, index, size))

    def take_classes(self, classes: Array) -> Self:
        # the new number of each class; -1 if it is dropped
        index = np.full(len(self.n), -1)
        index[classes] = np.arange(len(classes))
        return self._replace_counts(self.n[classes], move_classes(self.counts, index, len(classes)))

    def pool_classes(self) -> Self:
        return self._replace_counts(self.n.sum(keepdims=True), self.counts.sum(axis=1)[:, None])

    def __sub__(self, other: Self) -> Self:
        total, part = self.align(other)
        return self.check_subtraction(total, part)

    def check_subtraction(self, total: Self, part: Self) -> Self:
        n = subtract_counts(total.n, part.n)
        return total._replace_counts(n, subtract_tables(total.counts, part.counts, 0.0, n))

    def sort_content(self) -> Self:
        """Return the record with dense or sparse counts, depending on the number of classes."""
        counts = self.counts
        if isinstance(counts, SparseCounts) == is_kept_sparse(counts.shape[1]) or counts.shape[1] != len(self.n):
            return self
        if isinstance(counts, SparseCounts) and counts.find_fault():
            return self
        return self._replace_counts(self.n, move_classes(self.counts, np.arange(len(self.n)), len(self.n)))

    def make_dense(self) -> Self:
        """The record with its counts as a dense array; raises ModelTooLargeError if they do not fit into memory."""
        if not isinstance(self.counts, SparseCounts):
            return self
        return self.derive("dense", lambda words: words._replace_counts(words.n, make_dense_counts(words.counts)))

    def _replace_counts(self, n: Array, counts: CountTable) -> Self:
        return replace(self, **{"n": n, "counts": counts})

    def take_columns(self, columns: Array) -> Self:
        """Return the record itself, because texts are one column."""
        return self

    def place_columns(self, other: Self, places: Array) -> Self:
        """Return the other record, because texts are one column."""
        return other

    def find_filled_columns(self) -> Array:
        return np.array([bool(self.n.any())])


MIN_TOKENS_PER_BISECTION = 40  # with fewer known tokens per lookup, building an index is faster


@register_record(
    "Words",
    axes={"n": "c", "arena": "k", "ends": "v", "counts": "vc"},
    dtypes={"arena": "u1", "ends": "i8"},
    reveals="words of the training texts, including those that only one text had",
)
@dataclass(frozen=True, eq=False)
class TokenCounts(BagCounts):
    """Counts of tokens by class. A token without counts is removed, so forgetting all its documents removes it.

    The vocabulary is ``arena``, all tokens concatenated in UTF-8, and ``ends``, the end of each token. Records that are
    added are sorted (`token_order`), so that the order in which tokens occurred does not matter. If rare tokens were
    dropped while learning, a count is too small by at most ``missed``, and a token that is not in the record occurred
    at most ``missed`` times; otherwise ``missed`` is zero and every count is exact.
    """

    frame_fields: ClassVar[tuple[str, ...]] = ("arena", "ends", "missed")

    n: Array  # (classes,)
    arena: Array  # uint8
    ends: Array  # int64
    counts: CountTable  # (tokens, classes)
    missed: float = 0.0

    def find_fault(self) -> str | None:
        if self.missed < 0 or self.counts.min(initial=0.0) < 0:
            return "a count is negative"
        if not is_valid_vocabulary(self.arena, self.ends):
            return "the words are not UTF-8, do not follow one another, or one of them is there twice"
        return None

    def tokens(self) -> list[str]:
        """The tokens, in the order of the counts."""
        return self.derive("tokens", lambda words: reading.decode_vocabulary(words.arena, words.ends))

    def sort_tokens(self) -> TokenCounts:
        """The record with its tokens sorted."""
        if is_sorted_vocabulary(self.arena, self.ends):
            return self
        return self.take_tokens(find_token_order(self.arena, self.ends))

    def sort_content(self) -> TokenCounts:
        """Return the record in canonical form, with sorted tokens; unchanged if the vocabulary is invalid."""
        if not is_valid_vocabulary(self.arena, self.ends) or len(self.counts) != len(self.ends):
            return self
        return super().sort_content().sort_tokens()

    def index(self, analyzer: str = "word") -> TokenIndex:
        """An index for looking up tokens: the column of a token is its row in the counts."""
        return self.derive(f"index of {analyzer}", lambda words: TokenIndex(words.arena, words.ends, analyzer))

    def take_tokens(self, rows: Array) -> TokenCounts:
        """Select tokens, by a mask or by their numbers in the order given."""
        numbers = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64)
        arena, ends = reading.take_tokens(self.arena, self.ends, numbers)
        return replace(self, arena=arena, ends=ends, counts=self.counts[numbers])

    def align(self, other: TokenCounts) -> tuple[TokenCounts, TokenCounts]:
        """Return both records over the union of their tokens."""
        missed = self.missed + other.missed
        if np.array_equal(self.ends, other.ends) and np.array_equal(self.arena, other.arena):
            return replace(self, missed=missed), replace(other, missed=missed)
        arena, ends, own_rows, rows = self._join_vocabularies(other)
        return (self._spread_counts(arena, ends, own_rows, missed), other._spread_counts(arena, ends, rows, missed))

    def _join_vocabularies(self, other: TokenCounts) -> tuple[Array, Array, Array, Array]:
        """Sorted union of two vocabularies (arena and ends), and the positions in it of the tokens of each record."""
        if len(other) * MIN_TOKENS_PER_BISECTION > len(self):
            # ``place`` (other's tokens,): positions here, -1 for new tokens, which are appended; then everything is
            # sorted
            place = self.index("whole").find_columns(other.arena, other.ends)
            if place.min(initial=0) >= 0:
                return self.arena, self.ends, np.arange(len(self)), place
            new_arena, new_ends = reading.take_tokens(other.arena, other.ends, np.flatnonzero(place < 0))
            arena = np.append(self.arena, new_arena)
            ends = np.append(self.ends, len(self.arena) + new_ends)
            order = find_token_order(arena, ends)
            rank = np.empty(len(order), dtype=np.int64)
            rank[order] = np.arange(len(order))
            place[place < 0] = len(self) + np.arange(len(new_ends))
            return *reading.take_tokens(arena, ends, order), rank[: len(self)], rank[place]
        # Few tokens and a large vocabulary: bisection, and new tokens are inserted where they belong.
        place, found = locate_tokens(self.arena, self.ends, other.arena, other.ends)
        if found.all():
            return self.arena, self.ends, np.arange(len(self)), place
        new_arena, new_ends = reading.take_tokens(other.arena, other.ends, np.flatnonzero(~found))
        arena, ends = insert_tokens(self.arena, self.ends, place[~found], new_arena, new_ends)
        # a token moves up by the number of new tokens that are inserted at or before it
        own_rows = np.arange(len(self)) + np.searchsorted(place[~found], np.arange(len(self)), side="right")
        return arena, ends, own_rows, place + np.cumsum(~found) - ~found

    def _spread_counts(self, arena: Array, ends: Array, rows: Array, missed: float) -> TokenCounts:
        """Expand the record to a larger vocabulary, with its own tokens at ``rows``."""
        counts = spread_tokens(self.counts, rows, len(ends))
        return replace(self, arena=arena, ends=ends, counts=counts, missed=missed)

    def check_subtraction(self, total: TokenCounts, part: TokenCounts) -> TokenCounts:
        """Return the difference, without tokens that have no counts left; raise NotLearnedError with the token.

        If tokens were dropped while learning, up to ``missed`` occurrences of ``part`` may already be gone.
        """
        n = subtract_counts(total.n, part.n)
        try:
            counts = subtract_tables(total.counts, part.counts, total.missed, n)
        except NotLearnedError as error:
            row, group = error.index
            token = total.take_tokens(np.array([row])).tokens()[0]
            message = str(error).split(" (cell")[0]
            raise NotLearnedError(
                f"{message} of {token!r}: only what was learned can be forgotten.",
                (group, row),
                subject=f"token {token!r}",
            ) from None
        return replace(total, n=n, counts=counts).drop_absent_tokens()

    def drop_rare_tokens(self, max_tokens: int) -> TokenCounts:
        """Keep the ``max_tokens`` most frequent tokens; ``missed`` bounds the counts of the others.

        >>> words = count_tokens(["win cash now", "cash later"], np.array([0, 1]), 2).drop_rare_tokens(1)
        >>> words.tokens(), words.missed
        (['cash'], 1.0)
        """
        if len(self) <= max_tokens:
            return self
        frequency = self.counts.sum(axis=1)
        order = np.argsort(-frequency, kind="stable")  # ties are resolved in alphabetical order
        kept = self.take_tokens(np.sort(order[:max_tokens]))
        return replace(kept, missed=self.missed + float(frequency[order[max_tokens]]))

    def drop_absent_tokens(self) -> TokenCounts:
        """Drop tokens whose counts are all zero."""
        present = np.asarray(self.counts.any(axis=1))
        return self if present.all() else self.take_tokens(present)

    def __mul__(self, weight: float) -> TokenCounts:
        scaled = replace(self, n=self.n * weight, counts=self.counts * weight, missed=self.missed * weight)
        return scaled if weight else scaled.drop_absent_tokens()

    __rmul__ = __mul__


def count_tokens(
    documents: Iterable[Document],
    group: Array,
    groups: int,
    tokenizer: Tokenizer | None = None,
    weight: Array | None = None,
    *,
    binary: bool = True,
    max_tokens: int | None = None,
) -> TokenCounts:
    """Count the tokens of labelled texts; ``group`` is the class of each document, 0 .. groups-1.

    ``binary`` counts a token once for each document, otherwise every occurrence. ``max_tokens`` bounds the number of
    distinct tokens kept while learning (lossy counting): ``TokenCounts.missed`` bounds the error.

    >>> words = count_tokens(["win cash now", "cash later"], np.array([0, 1]), 2)
    >>> words.tokens(), words.counts.tolist()
    (['cash', 'later', 'now', 'win'], [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    """
    classes, rule = np.asarray(group, dtype=np.int32), tokenizer or Tokenizer()
    if is_kept_sparse(groups):
        return _count_many_classes(documents, classes, groups, rule, weight, binary, max_tokens)
    counter = reading.TokenCounter(groups, rule, binary, max_tokens)
    counter.add(documents, classes, weight)
    arena, ends, counts, missed = counter.result()
    return TokenCounts(_count_documents(classes, weight, groups), arena, ends, counts, missed)


def _count_many_classes(
    documents: Iterable[Document],
    group: Array,
    groups: int,
    tokenizer: Tokenizer,
    weight: Array | None,
    binary: bool,
    max_tokens: int | None,
) -> TokenCounts:
    """Count texts of many classes: tokenise, count and add batch by batch."""
    classes, weights = convert_classes(group, weight)
    total = make_empty_token_counts(groups)
    for start, batch in iter_document_batches(documents, tokenizer.lowercase, tokenizer.reader):
        part = slice(start, start + len(batch))
        some, own = classes[part], None if weights is None else weights[part]
        arena, ends, (indptr, ids, occurrences) = read_token_rows(batch, tokenizer)
        counts = count_entries_by_class(indptr, ids, None if binary else occurrences, some, own, (len(ends), groups))
        total = total + TokenCounts(_count_documents(some, own, groups), arena, ends, counts).drop_absent_tokens()
        if max_tokens is not None:
            total = total.drop_rare_tokens(max_tokens)
    return total


def _count_documents(group: Array, weight: Array | None, groups: int) -> Array:
    """Total weight of the documents of each class, (classes,)."""
    return np.bincount(group, None if weight is None else np.asarray(weight, dtype=float), groups).astype(float)


def count_bags(bags: TokenBags, group: Array, groups: int, weight: Array | None, *, binary: bool = True) -> TokenCounts:
    """Count labelled texts that are already tokenised."""
    if not len(bags):
        return make_empty_token_counts(groups)
    counts = bags.count_by_class(group, groups, weight, binary, len(bags.ends))
    return TokenCounts(_count_documents(group, weight, groups), bags.arena, bags.ends, counts).drop_absent_tokens()


def make_empty_token_counts(groups: int) -> TokenCounts:
    """Make the record of no documents, the zero of addition."""
    return TokenCounts(np.zeros(groups), np.zeros(0, np.uint8), np.zeros(0, np.int64), make_empty_table(0, groups))
