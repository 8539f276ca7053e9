"""What was learned from texts: how many documents of each class, and how often each class showed each token."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from priory.bag_of_words import tokenizer as reading
from priory.bag_of_words.documents import Document
from priory.bag_of_words.tokenizer import Index, Tokens
from priory.core.statistics import Statistics, remaining
from priory.core.typing import Array
from priory.errors import NotSeen


@dataclass(frozen=True, eq=False)
class Words(Statistics):
    """Counts of tokens. Tokens that nobody showed are not there: they vanish when forgotten.

    The vocabulary is ``arena``, the tokens in UTF-8 one after the other, and ``ends``, where each stops. If rare tokens
    were dropped while learning, a count is at most ``missed`` too small, and a token that is not there was shown at
    most ``missed`` times; else ``missed`` is nought and everything is exact.
    """

    frame: ClassVar[tuple[str, ...]] = ("arena", "ends", "missed")

    n: Array  # documents of each class
    arena: Array  # uint8
    ends: Array  # int64
    counts: Array  # (tokens, classes)
    missed: float = 0.0

    def __len__(self) -> int:
        return len(self.ends)

    def tokens(self) -> list[str]:
        """The tokens, in the order of the counts."""
        return self.derived("tokens", lambda words: reading.spelt(words.arena, words.ends))

    def vocabulary(self) -> list[str]:
        """The tokens, sorted."""
        return self.ordered().tokens()

    def ordered(self) -> Words:
        """The same record with its tokens sorted."""
        return self.derived("ordered", lambda words: words.taken(np.argsort(np.array(words.tokens(), dtype=object))))

    def index(self, unit: str = "word") -> Index:
        """For looking up: the column of a token is its row here."""
        return self.derived(f"index of {unit}", lambda words: Index(words.arena, words.ends, unit))

    def taken(self, rows: Array) -> Words:
        """These tokens alone, in this order: by a mask or by their numbers."""
        numbers = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64)
        arena, ends = reading.taken(self.arena, self.ends, numbers)
        return replace(self, arena=arena, ends=ends, counts=self.counts[numbers])

    def aligned(self, other: Words) -> tuple[Words, Words]:
        """Over the tokens of both."""
        missed = self.missed + other.missed
        if np.array_equal(self.ends, other.ends) and np.array_equal(self.arena, other.arena):
            return replace(self, missed=missed), replace(other, missed=missed)
        place = self.index("whole").places(other.arena, other.ends)
        new = place < 0
        place[new] = len(self) + np.arange(new.sum())
        more_arena, more_ends = reading.taken(other.arena, other.ends, np.flatnonzero(new))
        arena = np.concatenate([self.arena, more_arena])
        ends = np.concatenate([self.ends, len(self.arena) + more_ends])

        def over(words: Words, rows: Array) -> Words:
            counts = np.zeros((len(ends), words.counts.shape[1]))
            counts[rows] = words.counts
            return replace(words, arena=arena, ends=ends, counts=counts, missed=missed)

        return over(self, np.arange(len(self))), over(other, place)

    def guarded(self, total: Words, part: Words) -> Words:
        """As every record, with the token named; tokens with nothing left vanish."""
        n = remaining(total.n, part.n)
        try:
            counts = remaining(total.counts, part.counts)
        except NotSeen as error:
            row, group = error.index
            token = self.taken(np.array([row])).tokens()[0]
            what = str(error).split(" (cell")[0]
            raise NotSeen(f"{what} of {token!r}: only what was learned can be forgotten.", (group, row)) from None
        return replace(self, n=n, counts=np.where(n == 0, 0.0, counts)).shown()

    def shown(self) -> Words:
        """Without the tokens that have no counts."""
        some = np.asarray(self.counts.any(axis=1))
        return self if some.all() else self.taken(some)

    def __mul__(self, weight: float) -> Words:
        scaled = replace(self, n=self.n * weight, counts=self.counts * weight, missed=self.missed * weight)
        return scaled if weight else scaled.shown()

    __rmul__ = __mul__

    def regrouped(self, index: Array, size: int) -> Words:
        n, counts = np.zeros(size), np.zeros((len(self), size))
        n[index], counts[:, index] = self.n, self.counts
        return replace(self, n=n, counts=counts)

    def pooled(self) -> Words:
        return replace(self, n=self.n.sum(keepdims=True), counts=self.counts.sum(axis=1, keepdims=True))


def count(
    documents: Iterable[Document],
    group: Array,
    groups: int,
    tokens: Tokens | None = None,
    weight: Array | None = None,
    *,
    once: bool = True,
    most: int | None = None,
) -> Words:
    """The statistics of labelled texts; ``group`` is the class of each document, 0 .. groups-1.

    ``once`` counts a token once a document, else every occurrence. ``most`` bounds the number of distinct tokens kept
    while learning (lossy counting): see ``Words.missed`` for what that costs.

    >>> words = count(["win cash now", "cash later"], np.array([0, 1]), 2)
    >>> words.vocabulary(), words.ordered().counts.tolist()
    (['cash', 'later', 'now', 'win'], [[1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    """
    classes = np.asarray(group, dtype=np.int32)
    counting = reading.Counting(groups, tokens or Tokens(), once, most)
    counting.add(documents, classes, weight)
    arena, ends, counts, missed = counting.result()
    n = np.bincount(classes, None if weight is None else np.asarray(weight, dtype=float), groups).astype(float)
    return Words(n, arena, ends, counts, missed)


def nothing(groups: int) -> Words:
    """The zero of the algebra."""
    return Words(np.zeros(groups), np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros((0, groups)))
