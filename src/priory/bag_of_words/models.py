"""Bags of words: five models of a document, each a function of one record of counted tokens.

    log p(c, document) = log p(c) + constant_c + Σ_w x_w table[w, c]

``x_w`` is how often the document shows token w, or, for the models that count a token once, whether it does.
Leaving a document out is subtraction in closed form: only its own tokens are touched, its own class loses a document,
and tokens that nobody else showed vanish from the vocabulary, as they would in a refit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln

from priory.bag_of_words.token_counts import Words
from priory.core.logspace import log
from priory.core.typing import Array

IMPOSSIBLE = -1e4  # exp of it is nought
STRENGTHS = 2.0 ** np.arange(-10, 3)


class Weights(NamedTuple):
    """What a model says: a number for each token and class, and one for each class."""

    table: Array
    constant: Array


class Rows:
    """Documents as sparse rows of their tokens, and the class of each."""

    def __init__(self, indptr: Array, ids: Array, x: Array, group: Array, words: Words) -> None:
        self.ids, self.x, self.group = ids, x, group
        self.matrix = csr_array((x, ids, indptr), shape=(len(group), len(words)))
        self.row = np.repeat(np.arange(len(group)), np.diff(indptr))
        self.own = group[self.row]
        alone = words.counts.sum(axis=1)[ids] == x
        self.length = self.total(x)
        self.vanished = self.total(alone.astype(float))
        self.vanished_length = self.total(np.where(alone, x, 0.0))
        self.left = self.length - self.vanished_length

    def total(self, values: Array) -> Array:
        """The sum over the tokens of each document."""
        return np.bincount(self.row, values, minlength=len(self.group))

    def at_own(self, scores: Array, values: Array) -> None:
        """Add a value to the score of each document's own class."""
        scores[np.arange(len(self.group)), self.group] += values

    def replaced(self, others: Array, own: Array) -> Array:
        """(documents, classes): ``others`` everywhere but at the document's own class."""
        wide = np.array(np.broadcast_to(others, (len(self.group), others.shape[-1])))
        wide[np.arange(len(self.group)), self.group] = own
        return wide


def sparse_rows(indptr: Array, ids: Array, words: Words) -> csr_array:
    """Documents as sparse rows of unit length over the tokens that at least two of them show."""
    common = words.counts.sum(axis=1) >= 2
    place, kept = np.cumsum(common) - 1, common[ids]
    size = np.diff(np.append(0, np.cumsum(kept))[indptr])
    x = np.repeat(1 / np.sqrt(np.maximum(size, 1)), size)
    return csr_array((x, place[ids[kept]], np.append(0, np.cumsum(size))), shape=(len(size), int(common.sum())))


@dataclass(frozen=True)
class Bag(ABC):
    """A model of documents with additive smoothing ``alpha``."""

    alpha: float = 1.0

    once: ClassVar[bool] = False  # whether a token counts once a document
    prior: ClassVar[bool] = True  # whether the class prior has a say

    @abstractmethod
    def weights(self, words: Words) -> Weights:
        """The weight of every token for every class."""

    @abstractmethod
    def without(self, words: Words, rows: Rows) -> Array:
        """``constant + Σ x table`` of each document, from the record without it (alpha above nought)."""

    @classmethod
    def strength(cls, words: Words) -> float:
        """The alpha under which the tokens of all classes are most probable (a Dirichlet for each class)."""
        values, times = np.unique(words.counts[words.counts > 0], return_counts=True)
        mass = STRENGTHS[:, None] * max(len(words), 1)
        drawn = (gammaln(values + STRENGTHS[:, None]) - gammaln(STRENGTHS)[:, None]) @ times
        evidence = drawn + (gammaln(mass) - gammaln(mass + words.counts.sum(axis=0))).sum(axis=1)
        return float(STRENGTHS[int(np.argmax(evidence))])


class Drawn(Bag):
    """Tokens drawn one by one from the class's distribution: θ = (count + alpha) / (total + alpha V)."""

    def weights(self, words: Words) -> Weights:
        total = words.counts.sum(axis=0) + self.alpha * len(words)
        return Weights(log(words.counts + self.alpha) - log(total), np.zeros(words.counts.shape[1]))

    def without(self, words: Words, rows: Rows) -> Array:
        scores = _own_tokens_less(self.alpha, words, rows)
        total, room = words.counts.sum(axis=0), self.alpha * (len(words) - rows.vanished)
        mass = rows.replaced(total + room[:, None], total[rows.group] - rows.length + room)
        return scores - rows.left[:, None] * np.log(mass)


@final
class Binary(Drawn):
    """Each token once a document, drawn one by one: the model that suits most texts."""

    once = True


@final
class Multinomial(Drawn):
    """Every occurrence drawn one by one."""


@final
class Bernoulli(Bag):
    """Each token is there or not: those that are absent speak too. p = (documents with it + alpha) / (n + 2 alpha)."""

    once = True

    def weights(self, words: Words) -> Weights:
        # unsmoothed, a token in every document is impossible to lack: as good as -inf, and it still cancels if present
        lacking = np.maximum(log(words.n - words.counts + self.alpha), IMPOSSIBLE)
        constant = (lacking - log(words.n + 2 * self.alpha)).sum(axis=0)
        return Weights(log(words.counts + self.alpha) - lacking, constant)

    def without(self, words: Words, rows: Rows) -> Array:
        a, n, counts = self.alpha, words.n, words.counts
        own_n, seen = n[rows.group], counts[rows.ids, rows.own]
        lacking = np.log(n - counts + a)
        scores = rows.matrix @ (np.log(counts + a) - lacking)
        rows.at_own(scores, rows.total(np.log(seen - 1 + a) - np.log(seen + a)))
        gone = np.log(a) - rows.replaced(np.log(n + a), np.log(own_n - 1 + a))
        scores -= rows.vanished[:, None] * gone
        # absent tokens: of the own class each has one document less that lacks it, but for those of the document
        fewer = _log_positive(n - 1 - counts + a)
        own = fewer.sum(axis=0)[rows.group] + rows.total(np.log(n[rows.own] - seen + a) - fewer[rows.ids, rows.own])
        absent = rows.replaced(lacking.sum(axis=0), own)
        absent -= rows.vanished[:, None] * rows.replaced(np.log(n + a), np.log(own_n - 1 + a))
        room = (len(words) - rows.vanished)[:, None]
        return scores + absent - room * rows.replaced(np.log(n + 2 * a), np.log(own_n - 1 + 2 * a))


@final
class Poisson(Bag):
    """Occurrences at a rate for each class: λ = (count + alpha) / (n + 1) a document."""

    def weights(self, words: Words) -> Weights:
        rate = (words.counts + self.alpha) / (words.n + 1)
        return Weights(log(rate), -rate.sum(axis=0))

    def without(self, words: Words, rows: Rows) -> Array:
        scores = _own_tokens_less(self.alpha, words, rows)
        n, total, room = words.n, words.counts.sum(axis=0), self.alpha * (len(words) - rows.vanished)
        documents = rows.replaced(n + 1, n[rows.group])
        mass = rows.replaced(total + room[:, None], total[rows.group] - rows.length + room)
        return scores - rows.left[:, None] * np.log(documents) - mass / documents


@final
class Complement(Bag):
    """How badly a document fits all *other* classes together: steadier where classes differ in size."""

    prior = False

    def weights(self, words: Words) -> Weights:
        others = words.counts.sum(axis=1, keepdims=True) - words.counts + self.alpha
        return Weights(log(others.sum(axis=0)) - log(others), np.zeros(words.counts.shape[1]))

    def without(self, words: Words, rows: Rows) -> Array:
        counts, a = words.counts, self.alpha
        others = counts.sum(axis=1, keepdims=True) - counts + a
        scores = -(rows.matrix @ np.log(others))
        for c in range(counts.shape[1]):  # the other classes' complements lose the document; its own never had it
            here = others[rows.ids, c]
            less = rows.x * np.where(
                rows.own == c, 0.0, np.log(here) - np.log(here - np.where(rows.own == c, 0, rows.x))
            )
            scores[:, c] += rows.total(less)
        scores += (rows.vanished_length * np.log(a))[:, None]
        everything, total = counts.sum(), counts.sum(axis=0)
        room = a * (len(words) - rows.vanished)
        mass = rows.replaced(
            everything - rows.length[:, None] - total + room[:, None], everything - total[rows.group] + room
        )
        return scores + rows.left[:, None] * np.log(mass)


MODELS: dict[str, type[Bag]] = {
    "binary": Binary,
    "multinomial": Multinomial,
    "bernoulli": Bernoulli,
    "poisson": Poisson,
    "complement": Complement,
}


def _own_tokens_less(alpha: float, words: Words, rows: Rows) -> Array:
    """``Σ x log(count + alpha)`` over the tokens that stay, the own class's counts less the document's."""
    logs = np.log(words.counts + alpha)
    scores = rows.matrix @ logs
    seen = words.counts[rows.ids, rows.own]
    rows.at_own(scores, rows.total(rows.x * (np.log(seen - rows.x + alpha) - logs[rows.ids, rows.own])))
    return scores - (rows.vanished_length * np.log(alpha))[:, None]


def _log_positive(x: Array) -> Array:
    """log x, and nought where there is nothing to take the logarithm of."""
    return np.log(np.where(x > 0, x, 1.0))
