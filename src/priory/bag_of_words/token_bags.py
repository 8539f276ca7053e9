"""Texts that were read already: how often each document shows each token. What a model keeps of the texts it keeps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np
import scipy

from priory.bag_of_words import tokenizer as reading
from priory.bag_of_words.documents import (
    DocumentBatch,
    count_code_points,
    drop_empty_documents,
    find_nonempty_documents,
)
from priory.core.content_hash import scramble_bits
from priory.core.registration import register_record
from priory.core.typing import Array


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

    def find_fault(self) -> str | None:
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
        chosen = np.arange(len(self))[rows]
        sizes = np.diff(self.indptr)[chosen]
        indptr = np.append(0, np.cumsum(sizes))
        entries = np.repeat(self.indptr[chosen] - indptr[:-1], sizes) + np.arange(indptr[-1])
        return replace(
            self,
            indptr=indptr,
            ids=self.ids[entries],
            occurrences=self.occurrences[entries],
            letters=self.letters[chosen],
        )

    def append(self, other: TokenBags) -> TokenBags:
        """The documents of both, over the tokens of both."""
        mine, theirs = np.arange(len(self.ends)), np.arange(len(other.ends))
        arena, ends = self.arena, self.ends
        if not (np.array_equal(self.ends, other.ends) and np.array_equal(self.arena, other.arena)):
            names = [
                *reading.decode_vocabulary(self.arena, self.ends),
                *reading.decode_vocabulary(other.arena, other.ends),
            ]
            distinct, place = np.unique(np.array(names, dtype=object), return_inverse=True)
            arena, ends = reading.encode_vocabulary(distinct.tolist())
            mine, theirs = place[: len(mine)], place[len(mine) :]
        named = len(ends) > 0
        return TokenBags(
            arena,
            ends,
            np.append(self.indptr, self.indptr[-1] + other.indptr[1:]),
            np.concatenate([mine[self.ids], theirs[other.ids]] if named else [self.ids, other.ids]),
            np.append(self.occurrences, other.occurrences),
            np.append(self.letters, other.letters),
        )

    def drop_absent_tokens(self) -> TokenBags:
        """The same documents over the tokens that they show, sorted; the tokens of a document are sorted too."""
        bags = self
        if len(self.ends):
            shown = np.unique(self.ids)
            names = np.array(
                reading.decode_vocabulary(*reading.take_tokens(self.arena, self.ends, shown)), dtype=object
            )
            order = np.argsort(names)
            place = np.empty(len(self.ends), dtype=np.int64)
            place[shown[order]] = np.arange(len(shown))
            arena, ends = reading.encode_vocabulary(names[order].tolist())
            bags = replace(self, arena=arena, ends=ends, ids=place[self.ids])
        order = np.lexsort((bags.ids, np.repeat(np.arange(len(bags)), np.diff(bags.indptr))))
        return replace(bags, ids=bags.ids[order], occurrences=bags.occurrences[order])

    def place_tokens(self, place: Array) -> tuple[Array, Array, Array]:
        """Sparse rows ``(indptr, columns, occurrences)``, given the column of each token; negative to leave it out."""
        columns = place[self.ids]
        kept = columns >= 0
        return np.append(0, np.cumsum(kept))[self.indptr], columns[kept], self.occurrences[kept]

    def count_by_class(self, group: Array, groups: int, weight: Array | None, binary: bool, tokens: int) -> Array:
        """(tokens, classes): the occurrences of each token in the documents of each class, or the documents."""
        values = np.ones(len(self.ids)) if binary else self.occurrences
        rows = scipy.sparse.csr_array((values, self.ids, self.indptr), shape=(len(self), tokens))
        classes = scipy.sparse.csr_array(
            (np.ones(len(self)) if weight is None else weight, group, np.arange(len(self) + 1)),
            shape=(len(self), groups),
        )
        return np.asarray((rows.T @ classes).toarray())

    def hash_documents(self) -> Array:
        """(documents,): a 64-bit hash of each, the same on every machine."""
        tokens = self.ids.astype(np.uint64)
        if len(self.ends):
            names = reading.decode_vocabulary(self.arena, self.ends)
            tokens = np.array([crc32(name.encode()) for name in names], dtype=np.uint64)[self.ids]
        counted = scramble_bits(tokens + np.uint64(1)) + self.occurrences.astype(np.uint64)
        sums = np.append(np.uint64(0), np.cumsum(scramble_bits(counted)))  # modulo 2^64, so that differences are exact
        return np.asarray(np.diff(sums[self.indptr]))


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
