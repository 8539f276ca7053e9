"""Tokenised texts as sparse counts, read in one pass, tokens sorted by their bytes; how a model stores its sample."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy import ndarray as Array

from priory.core._kernel import text as kernel
from priory.core.content_hash import scramble_bits
from priory.core.sparse_rows import sort_entries, sum_entries, take_entries
from priory.core.statistics import register_record
from priory.errors import ModelTooLargeError
from priory.text import tokenizer as reading
from priory.text.documents import DocumentBatch, count_code_points, drop_empty_documents, find_nonempty_documents
from priory.text.normal_forms import Document
from priory.text.sparse_counts import CountTable, count_entries_by_class
from priory.text.tokenizer import Tokenizer, join_row_parts, map_document_shards


def find_token_order(arena: Array, ends: Array) -> Array:
    """Indices that sort the tokens, (tokens,).

    >>> words = [b"win", b"cash", b"cashier", b"a"]
    >>> arena, ends = np.frombuffer(b"".join(words), np.uint8), np.cumsum([len(word) for word in words])
    >>> find_token_order(arena, ends).tolist()
    [3, 1, 2, 0]
    """
    return kernel.sort_tokens(np.ascontiguousarray(arena), np.ascontiguousarray(ends))


def find_token_starts(ends: Array) -> Array:
    """Start of each token in the arena, (tokens,)."""
    return np.concatenate([np.zeros(min(len(ends), 1), dtype=np.int64), ends[:-1]])


def is_sorted_vocabulary(arena: Array, ends: Array) -> bool:
    """Whether the tokens are strictly increasing."""
    return kernel.are_tokens_sorted(np.ascontiguousarray(arena), np.ascontiguousarray(ends))


def locate_tokens(arena: Array, ends: Array, other_arena: Array, other_ends: Array) -> tuple[Array, Array]:
    """Position of each token of another vocabulary in a sorted one (or where to insert it), and whether it is there.

    Uses bisection, which suits a few tokens and a large vocabulary.
    """
    view, starts = arena.tobytes(), find_token_starts(ends)
    others, other_starts = other_arena.tobytes(), find_token_starts(other_ends)

    def spell_token(number: int) -> bytes:
        return view[starts[number] : ends[number]]

    words = [others[a:b] for a, b in zip(other_starts.tolist(), other_ends.tolist(), strict=True)]
    places = [bisect_left(range(len(ends)), word, key=spell_token) for word in words]
    found = [place < len(ends) and spell_token(place) == word for place, word in zip(places, words, strict=True)]
    return np.array(places, dtype=np.int64), np.array(found, dtype=bool)


def insert_tokens(arena: Array, ends: Array, places: Array, more: Array, more_ends: Array) -> tuple[Array, Array]:
    """Insert tokens into a vocabulary before the positions ``places``, which are non-decreasing."""
    starts, sizes = find_token_starts(ends), np.diff(ends, prepend=0)
    more_sizes = np.diff(more_ends, prepend=0)
    at = np.append(starts, len(arena))[places]
    return np.insert(arena, np.repeat(at, more_sizes), more), np.cumsum(np.insert(sizes, places, more_sizes))


ODD_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # so that a count changes all bits


PAIR_BUCKETS = 1 << 24  # for pairs of words: large enough that collisions are rare


@register_record(
    "TokenBags",
    axes={"arena": "k", "ends": "v", "indptr": "p", "ids": "b", "occurrences": "b", "letters": "r"},
    dtypes={"arena": "u1", "ends": "i8", "indptr": "i8", "ids": "i8", "letters": "i8"},
    reveals="which words or buckets single texts have, without their order",
)
@dataclass(frozen=True, eq=False)
class TokenBags:
    """Documents as sparse rows of their tokens.

    ``arena`` and ``ends`` are the sorted tokens (see `TokenCounts`); if tokens are hashed both are empty, and ``ids``
    are the numbers of the buckets.
    """

    arena: Array  # uint8
    ends: Array  # (tokens,)
    indptr: Array  # (documents + 1,)
    ids: Array  # (entries,): tokens, or buckets
    occurrences: Array  # (entries,)
    letters: Array  # (documents,): the number of code points of each text
    pairs: TokenBags | None = None  # hashed pairs of neighbouring words; None if they were not read

    def find_fault(self) -> str | None:
        if self.pairs is not None and (
            len(self.pairs) != len(self) or len(self.pairs.ends) or self.pairs.pairs is not None
        ):
            return "the pairs belong to other documents"
        if self.pairs is not None and self.pairs.ids.max(initial=0) >= PAIR_BUCKETS:
            return "a pair has a bucket that is not there"
        sizes = np.diff(self.indptr)
        if len(self.indptr) != len(self.letters) + 1 or (sizes < 0).any() or self.letters.min(initial=0) < 0:
            return "the documents do not follow one another"
        if self.indptr[0] != 0 or self.indptr[-1] != len(self.ids) or self.ids.min(initial=0) < 0:
            return "a token belongs to no document"
        if len(self.ends) and self.ids.max(initial=0) >= len(self.ends):
            return "a document shows a token that is not there"
        if not (self.occurrences > 0).all():
            return "a count is not positive"
        if not reading.is_valid_vocabulary(self.arena, self.ends):
            return "the tokens are not UTF-8, do not follow one another, or one of them is there twice"
        return None

    def __len__(self) -> int:
        return len(self.letters)

    def __getitem__(self, rows: Array | slice) -> TokenBags:
        every = np.arange(len(self))
        chosen = every[rows]
        if np.array_equal(chosen, every):
            return self
        indptr, ids = take_entries(self.indptr, chosen, self.ids)
        return replace(
            self,
            indptr=indptr,
            ids=ids,
            occurrences=take_entries(self.indptr, chosen, self.occurrences)[1],
            letters=self.letters[chosen],
            pairs=None if self.pairs is None else self.pairs[chosen],
        )

    def append(self, other: TokenBags) -> TokenBags:
        """Concatenate the documents over the union of the tokens; tokens that only ``other`` has come last."""
        arena, ends, place = self.arena, self.ends, np.arange(len(other.ends))
        # ``place`` (other's tokens,): the new number of each token of the other bags
        if not (np.array_equal(self.ends, other.ends) and np.array_equal(self.arena, other.arena)):
            place = reading.TokenIndex(self.arena, self.ends, "whole").find_columns(other.arena, other.ends)
            new = np.flatnonzero(place < 0)
            more, more_ends = reading.take_tokens(other.arena, other.ends, new)
            place[new] = len(self.ends) + np.arange(len(new))
            arena, ends = np.append(self.arena, more), np.append(self.ends, len(self.arena) + more_ends)
        return TokenBags(
            arena,
            ends,
            np.append(self.indptr, self.indptr[-1] + other.indptr[1:]),
            np.append(self.ids, place[other.ids] if len(ends) else other.ids),
            np.append(self.occurrences, other.occurrences),
            np.append(self.letters, other.letters),
            self._append_pairs(other),
        )

    def _append_pairs(self, other: TokenBags) -> TokenBags | None:
        """The pairs of both, or None if one lacks them; bags without documents do not matter."""
        if not len(self) or not len(other):
            return other.pairs if len(other) else self.pairs
        return None if self.pairs is None or other.pairs is None else self.pairs.append(other.pairs)

    def without_tokens(self) -> TokenBags:
        """A copy without tokens."""
        none = np.zeros(0, np.int64)
        return TokenBags(
            np.zeros(0, np.uint8), none, np.zeros(len(self) + 1, np.int64), none, np.zeros(0), self.letters
        )

    def drop_absent_tokens(self) -> TokenBags:
        """Drop tokens that occur in no document, and sort the tokens, also within each document."""
        bags = self
        shown = np.flatnonzero(np.bincount(self.ids, minlength=len(self.ends)) if len(self.ends) else ())
        if len(shown) < len(self.ends) or not is_sorted_vocabulary(self.arena, self.ends):
            arena, ends = reading.take_tokens(self.arena, self.ends, shown)
            order = find_token_order(arena, ends)
            # the new number of each token that is kept
            place = np.empty(len(self.ends), dtype=np.int64)
            place[shown[order]] = np.arange(len(shown))
            arena, ends = reading.take_tokens(arena, ends, order)
            bags = replace(self, arena=arena, ends=ends, ids=place[self.ids])
        ids, occurrences = sort_entries(bags.indptr, bags.ids, bags.occurrences)
        pairs = None if self.pairs is None else self.pairs.drop_absent_tokens()
        return replace(bags, ids=ids, occurrences=occurrences, pairs=pairs)

    def place_tokens(self, place: Array) -> tuple[Array, Array, Array]:
        """Sparse rows ``(indptr, columns, occurrences)``, given the column of each token (negative to drop it)."""
        columns = place[self.ids]
        if place.min(initial=0) >= 0:
            return self.indptr, columns, self.occurrences
        kept = columns >= 0
        return np.append(0, np.cumsum(sum_entries(self.indptr, kept))), columns[kept], self.occurrences[kept]

    def count_by_class(self, group: Array, groups: int, weight: Array | None, binary: bool, tokens: int) -> CountTable:
        """Occurrences (or, if ``binary``, documents) of each token in each class, (tokens, classes)."""
        values = None if binary else self.occurrences
        return count_entries_by_class(self.indptr, self.ids, values, group, weight, (tokens, groups))

    def hash_documents(self) -> Array:
        """64-bit hash of each document, (documents,), the same on every machine."""
        return self._hashes

    @cached_property
    def _hashes(self) -> Array:
        tokens = hash_tokens(self.arena, self.ends)[self.ids] if len(self.ends) else self.ids.astype(np.uint64)
        # (entries,): a hash of each token with its count; a document's hash is the sum, so the order of tokens is
        # irrelevant
        counted = scramble_bits(tokens + self.occurrences.astype(np.uint64) * ODD_MULTIPLIER)
        return sum_entries(self.indptr, counted)  # modulo 2^64, so that differences are exact


def hash_tokens(arena: Array, ends: Array) -> Array:
    """64-bit hash of each token, (tokens,), from its bytes and their positions."""
    sizes = np.diff(ends, prepend=0)
    # (bytes,): the position of each byte within its token; a token's hash is the sum over its bytes, mixed again
    place = np.arange(len(arena)) - np.repeat(ends - sizes, sizes)
    letters = scramble_bits(arena.astype(np.uint64) + np.uint64(1) + place.astype(np.uint64) * np.uint64(256))
    sums = np.append(np.uint64(0), np.cumsum(letters))
    return scramble_bits(sums[ends] - sums[ends - sizes])


def make_empty_bags(n_documents: int) -> TokenBags:
    """Make empty documents."""
    none, zeros = np.zeros(0, np.int64), np.zeros(n_documents, np.int64)
    return TokenBags(np.zeros(0, np.uint8), none, np.append(0, zeros), none, np.zeros(0), zeros)


AnyDocuments = DocumentBatch | TokenBags  # texts, or tokenised texts


def count_letters(documents: AnyDocuments) -> Array:
    """Number of code points of each text, (documents,)."""
    return documents.letters if isinstance(documents, TokenBags) else count_code_points(documents)


def find_nonempty_texts(documents: AnyDocuments) -> Array:
    """Whether each text has any characters, (documents,)."""
    return documents.letters > 0 if isinstance(documents, TokenBags) else find_nonempty_documents(documents)


def drop_empty_texts(documents: AnyDocuments) -> AnyDocuments:
    """Drop texts without characters."""
    if isinstance(documents, TokenBags):
        return documents[np.flatnonzero(documents.letters)]
    return drop_empty_documents(documents)


ShardRows = tuple[int, tuple[Array, Array, Array]]  # the index of a shard, and its documents as sparse rows


def read_token_rows(
    documents: Iterable[Document], tokenizer: Tokenizer
) -> tuple[Array, Array, tuple[Array, Array, Array]]:
    """The sorted tokens of texts (``arena`` and ``ends``), and the texts as rows ``(indptr, ids, occurrences)``.

    >>> _, ends, (indptr, ids, occurrences) = read_token_rows(["win cash, win", "cash"], Tokenizer())
    >>> ends.tolist(), indptr.tolist(), ids.tolist(), occurrences.tolist()
    ([4, 7], [0, 2, 3], [1, 0, 0], [2.0, 1.0, 1.0])
    """
    # one reader for each shard, reused for all batches; their vocabularies are joined at the end
    readers: dict[int, kernel.BagReader] = {}

    def read_shard(rule: kernel.Rule, shard: int, part: DocumentBatch, _: slice) -> ShardRows:
        return shard, readers.setdefault(shard, kernel.BagReader()).read(part, rule)

    with _raise_if_too_large():
        shards = list(map_document_shards(documents, tokenizer, read_shard))
        arena, ends, numbers = _join_readers([readers[shard] for shard in sorted(readers)])
    rows = ((row_ends, numbers[shard][found], times) for shard, (row_ends, found, times) in shards)
    return arena, ends, join_row_parts(rows, np.int64)


def _join_readers(readers: list[kernel.BagReader]) -> tuple[Array, Array, list[Array]]:
    """The sorted tokens of all readers, and for each reader the new number of each of its tokens."""
    total, *others = readers or [kernel.BagReader()]
    places = [total.merge(other) for other in others]
    arena, ends, tokens = total.result()
    return arena, ends, [tokens, *(tokens[place] for place in places)]


@contextmanager
def _raise_if_too_large() -> Iterator[None]:
    try:
        yield
    except MemoryError:
        raise ModelTooLargeError(
            "the texts to keep do not fit into memory; set memory to fewer of them, or hash the tokens."
        ) from None
