"""Texts that were read already: how often each document shows each token. What a model keeps of the texts it keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from priory.bag_of_words import tokenizer as reading
from priory.bag_of_words.documents import (
    DocumentBatch,
    count_code_points,
    drop_empty_documents,
    find_nonempty_documents,
)
from priory.bag_of_words.token_order import find_token_order, is_sorted_vocabulary
from priory.core.content_hash import scramble_bits
from priory.core.registration import register_record
from priory.core.typing import Array

ODD_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # so that counts change all bits


PAIR_BUCKETS = 1 << 24  # of pairs of words: so many that few share one


@register_record(
    "TokenBags",
    axes={"arena": "k", "ends": "v", "indptr": "p", "ids": "b", "occurrences": "b", "letters": "r"},
    dtypes={"arena": "u1", "ends": "i8", "indptr": "i8", "ids": "i8", "letters": "i8"},
    reveals="which words or buckets single texts have, without their order",
)
@dataclass(frozen=True, eq=False)
class TokenBags:
    """Documents as sparse rows of their tokens.

    The tokens are ``arena`` and ``ends`` (see `TokenCounts`), sorted; where tokens are hashed both are empty, and
    ``ids`` are the numbers of the buckets.
    """

    arena: Array  # uint8
    ends: Array  # (tokens,)
    indptr: Array  # (documents + 1,)
    ids: Array  # (entries,): tokens, or buckets
    occurrences: Array  # (entries,)
    letters: Array  # (documents,): the number of code points of each text
    pairs: TokenBags | None = None  # neighbouring words of the same documents, hashed; None if they were not read

    def find_fault(self) -> str | None:
        if self.pairs is not None and (
            len(self.pairs) != len(self) or len(self.pairs.ends) or self.pairs.pairs is not None
        ):
            return "the pairs are not those of the same documents"
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
        sizes = np.diff(self.indptr)[chosen]
        indptr = np.append(0, np.cumsum(sizes))
        entries = np.repeat(self.indptr[chosen] - indptr[:-1], sizes) + np.arange(indptr[-1])
        return replace(
            self,
            indptr=indptr,
            ids=self.ids[entries],
            occurrences=self.occurrences[entries],
            letters=self.letters[chosen],
            pairs=None if self.pairs is None else self.pairs[chosen],
        )

    def append(self, other: TokenBags) -> TokenBags:
        """The documents of both, over the tokens of both; those that only the other has come last."""
        arena, ends, place = self.arena, self.ends, np.arange(len(other.ends))
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
        """The pairs of both, if both have them; no documents have any pairs."""
        if not len(self) or not len(other):
            return other.pairs if len(other) else self.pairs
        return None if self.pairs is None or other.pairs is None else self.pairs.append(other.pairs)

    def without_tokens(self) -> TokenBags:
        """The same documents, as if they showed nothing."""
        none = np.zeros(0, np.int64)
        return TokenBags(
            np.zeros(0, np.uint8), none, np.zeros(len(self) + 1, np.int64), none, np.zeros(0), self.letters
        )

    def drop_absent_tokens(self) -> TokenBags:
        """The same documents over the tokens that they show, sorted; the tokens of a document are sorted too."""
        bags = self
        shown = np.flatnonzero(np.bincount(self.ids, minlength=len(self.ends)) if len(self.ends) else ())
        if len(shown) < len(self.ends) or not is_sorted_vocabulary(self.arena, self.ends):
            arena, ends = reading.take_tokens(self.arena, self.ends, shown)
            order = find_token_order(arena, ends)
            place = np.empty(len(self.ends), dtype=np.int64)
            place[shown[order]] = np.arange(len(shown))
            arena, ends = reading.take_tokens(arena, ends, order)
            bags = replace(self, arena=arena, ends=ends, ids=place[self.ids])
        pairs = None if self.pairs is None else self.pairs.drop_absent_tokens()
        return replace(bags._sort_entries(), pairs=pairs)

    def _sort_entries(self) -> TokenBags:
        """The same documents, the tokens of each sorted."""
        document = np.repeat(np.arange(len(self)), np.diff(self.indptr))
        keys = document * (self.ids.max(initial=0) + 1) + self.ids
        if (keys[1:] > keys[:-1]).all():
            return self
        order = np.argsort(keys)
        return replace(self, ids=self.ids[order], occurrences=self.occurrences[order])

    def place_tokens(self, place: Array) -> tuple[Array, Array, Array]:
        """Sparse rows ``(indptr, columns, occurrences)``, given the column of each token; negative to leave it out."""
        columns = place[self.ids]
        if place.min(initial=0) >= 0:
            return self.indptr, columns, self.occurrences
        kept = columns >= 0
        return np.append(0, np.cumsum(kept))[self.indptr], columns[kept], self.occurrences[kept]

    def count_by_class(self, group: Array, groups: int, weight: Array | None, binary: bool, tokens: int) -> Array:
        """(tokens, classes): the occurrences of each token in the documents of each class, or the documents."""
        sizes = np.diff(self.indptr)
        values = np.ones(len(self.ids)) if binary else self.occurrences
        weighted = values if weight is None else values * np.repeat(weight, sizes)
        cells = self.ids * groups + np.repeat(group, sizes)
        return np.bincount(cells, weighted, minlength=tokens * groups).reshape(tokens, groups)

    def hash_documents(self) -> Array:
        """(documents,): a 64-bit hash of each, the same on every machine."""
        return self._hashes

    @cached_property
    def _hashes(self) -> Array:
        tokens = hash_tokens(self.arena, self.ends)[self.ids] if len(self.ends) else self.ids.astype(np.uint64)
        counted = scramble_bits(tokens + self.occurrences.astype(np.uint64) * ODD_MULTIPLIER)
        sums = np.append(np.uint64(0), np.cumsum(counted))  # modulo 2^64, so that differences are exact
        return np.asarray(np.diff(sums[self.indptr]))


def hash_tokens(arena: Array, ends: Array) -> Array:
    """(tokens,): a 64-bit hash of each, by its bytes and their places."""
    sizes = np.diff(ends, prepend=0)
    place = np.arange(len(arena)) - np.repeat(ends - sizes, sizes)
    letters = scramble_bits(arena.astype(np.uint64) + np.uint64(1) + place.astype(np.uint64) * np.uint64(256))
    sums = np.append(np.uint64(0), np.cumsum(letters))
    return scramble_bits(sums[ends] - sums[ends - sizes])


def make_empty_bags(n_documents: int) -> TokenBags:
    """Documents without a letter."""
    none, zeros = np.zeros(0, np.int64), np.zeros(n_documents, np.int64)
    return TokenBags(np.zeros(0, np.uint8), none, np.append(0, zeros), none, np.zeros(0), zeros)


AnyDocuments = DocumentBatch | TokenBags  # texts, or texts that were read already


def count_letters(documents: AnyDocuments) -> Array:
    """(documents,): the number of code points of each text."""
    return documents.letters if isinstance(documents, TokenBags) else count_code_points(documents)


def find_nonempty_texts(documents: AnyDocuments) -> Array:
    """Which texts have any characters at all."""
    return documents.letters > 0 if isinstance(documents, TokenBags) else find_nonempty_documents(documents)


def drop_empty_texts(documents: AnyDocuments) -> AnyDocuments:
    """The texts that have any characters."""
    if isinstance(documents, TokenBags):
        return documents[np.flatnonzero(documents.letters)]
    return drop_empty_documents(documents)
