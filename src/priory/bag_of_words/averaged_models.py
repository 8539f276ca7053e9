"""All sets of tokens at once: bags of words in which a token counts as far as it matters.

A set says which tokens have a rate of their own for each class; each of the others has one rate for all classes. Tokens
are independent given their rates, so the sum over all 2^V sets is a product over the tokens. With r, the probability
that a token matters (its evidence with the classes apart against that with the classes together), its expected rate is

    rate_c  =  r E[rate | what class c showed]  +  (1 - r) E[rate | what all classes showed]

and the average is again one bag of words. For presence and absence (Beta) it is the vote of all sets, to the digit. For
counts (Gamma) it is the plain model with the rates that all sets together expect. Tokens drawn one by one from an urn
are not independent; but gammas are, and their shares have the urn's Dirichlet: a token has a rate for every token
drawn, and its share is its rate over the sum of all. Where every token matters, each of them is the plain model.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple, final

import numpy as np
from scipy.special import betaln, expit, gammaln

from priory.bag_of_words.models import STRENGTHS, Bag, Rows, Weights
from priory.bag_of_words.token_counts import Words
from priory.core.typing import Array
from priory.errors import DataError


class Chances(NamedTuple):
    """How often each class could have shown a token, and the second parameter of the prior on its rate."""

    n: Array  # (classes,)
    b: float

    def together(self) -> Chances:
        return Chances(self.n.sum(keepdims=True), self.b)


class Averaged(Bag):
    """A bag of words averaged over all sets of tokens."""

    @abstractmethod
    def chances(self, words: Words) -> Chances:
        """Documents or tokens of each class."""

    @abstractmethod
    def chances_without(self, words: Words, rows: Rows) -> tuple[Array, Array]:
        """What each document takes from the chances of its class, and the parameter of the prior without it."""

    @abstractmethod
    def untold(self, counts: Array, chances: Chances) -> Array:
        """Log evidence of each token, all classes taken together, but for Γ(count + alpha) / Γ(alpha)."""

    @abstractmethod
    def mean(self, counts: Array, chances: Chances) -> Array:
        """The expected rates."""

    @abstractmethod
    def silent(self, rate: Array) -> Array:
        """What a token adds to the total of a class whether or not the document shows it."""

    @abstractmethod
    def spoken(self, rate: Array) -> Array:
        """What an occurrence says, so far as the token speaks alone."""

    @abstractmethod
    def joined(self, spoken: Array, length: Array, total: Array) -> Array:
        """log p(document | c) from what its tokens say, how many they are, and the total of the class."""

    # -- how far a token matters ---------------------------------------------------------------------------------

    def told(self, counts: Array) -> Array:
        """The part of the log-odds of apart against together that only the counts decide."""
        a, groups = self.alpha, counts.shape[1]
        together = gammaln(counts.sum(axis=1) + a)
        return np.asarray(gammaln(counts + a).sum(axis=1) - together - (groups - 1) * gammaln(a))

    def log_odds(self, counts: Array, chances: Chances, told: Array | None = None) -> Array:
        """Evidence of each token with the classes apart, less that with the classes together."""
        pooled = counts.sum(axis=1, keepdims=True)
        apart = self.untold(counts, chances) - self.untold(pooled, chances.together())
        return apart + (self.told(counts) if told is None else told)

    def rates(self, counts: Array, chances: Chances, told: Array | None = None) -> Array:
        """The expected rate of each token in each class, over all sets."""
        matters = expit(self.log_odds(counts, chances, told))[:, None]
        shared = self.mean(counts.sum(axis=1, keepdims=True), chances.together())
        return matters * self.mean(counts, chances) + (1 - matters) * shared

    def total(self, counts: Array, times: Array, chances: Chances, told: Array | None = None) -> Array:
        """What the tokens add to each class whether or not a document shows them; so many have these counts."""
        return np.asarray(times @ self.silent(self.rates(counts, chances, told)))

    def inclusion(self, words: Words) -> Array:
        """The probability that each token depends on the class."""
        kinds, back, _ = _alike(words)
        return np.asarray(expit(self.log_odds(kinds, self.chances(words)))[back])

    @classmethod
    def strength(cls, words: Words) -> float:
        """The alpha under which the tokens are most probable, averaged over all sets."""
        kinds, _, times = _alike(words)
        evidence = [times @ cls(float(a)).log_evidence(kinds, words) for a in STRENGTHS]
        return float(STRENGTHS[int(np.argmax(evidence))])

    def log_evidence(self, counts: Array, words: Words) -> Array:
        """Log evidence of tokens with these counts: half of it apart, half of it together."""
        chances, pooled = self.chances(words), counts.sum(axis=1, keepdims=True)
        together = gammaln(pooled[:, 0] + self.alpha) - gammaln(self.alpha) + self.untold(pooled, chances.together())
        return together + np.logaddexp(self.log_odds(counts, chances), 0.0) - np.log(2)

    # -- what a bag is asked -------------------------------------------------------------------------------------

    def weights(self, words: Words) -> Weights:
        kinds, back, times = _alike(words)
        rate = self.rates(kinds, self.chances(words))
        nothing = np.zeros((1, rate.shape[1]))
        total = self.total(kinds, times, self.chances(words))
        constant = self.joined(nothing, np.zeros(1), total)
        return Weights((self.joined(self.spoken(rate), np.ones(1), total) - constant)[back], constant[0])

    def without(self, words: Words, rows: Rows) -> Array:
        """Documents that take the same from the same class are judged by the same rates, but for their own tokens."""
        kinds, _, times = _alike(words)
        told, (n, _) = self.told(kinds), self.chances(words)
        scores = np.empty((len(rows.group), len(n)))
        settings, of = np.unique(
            np.stack([rows.group, *self.chances_without(words, rows)]), axis=1, return_inverse=True
        )
        by_setting = np.argsort(of[rows.row], kind="stable")
        cuts = np.searchsorted(of[rows.row][by_setting], np.arange(settings.shape[1] + 1))
        for s, (g, taken, b) in enumerate(settings.T):
            chances = Chances(n - taken * (np.arange(len(n)) == g), b)
            documents, own = np.flatnonzero(of == s), by_setting[cuts[s] : cuts[s + 1]]
            place, ids, x = np.searchsorted(documents, rows.row[own]), rows.ids[own], rows.x[own]
            left = words.counts[ids]
            before = self.rates(self._possible(left, chances), chances, self.told(left))
            left[:, int(g)] -= x
            stays = left.any(axis=1)
            rate = self.rates(left[stays], chances)
            everything = self.total(self._possible(kinds, chances), times, chances, told)
            total = np.tile(everything, (len(documents), 1))
            np.add.at(total, place, -self.silent(before))
            np.add.at(total, place[stays], self.silent(rate))
            spoken = np.zeros_like(total)
            np.add.at(spoken, place[stays], x[stays, None] * self.spoken(rate))
            scores[documents] = self.joined(spoken, rows.left[documents], total)
        return scores

    def _possible(self, counts: Array, chances: Chances) -> Array:
        """Counts that the chances allow; only a document's own tokens can have more, and they are replaced."""
        return counts


@final
class AveragedBernoulli(Averaged):
    """Each token is there or not, with a probability that is Beta(alpha, alpha)."""

    once = True

    def chances(self, words: Words) -> Chances:
        return Chances(words.n, self.alpha)

    def chances_without(self, words: Words, rows: Rows) -> tuple[Array, Array]:
        return np.ones(len(rows.group)), np.full(len(rows.group), self.alpha)

    def untold(self, counts: Array, chances: Chances) -> Array:
        n, b = chances
        lacking = gammaln(n - counts + b).sum(axis=1) - gammaln(n + self.alpha + b).sum()
        return np.asarray(lacking + len(n) * (gammaln(self.alpha) - betaln(self.alpha, b)))

    def mean(self, counts: Array, chances: Chances) -> Array:
        return np.asarray((counts + self.alpha) / (chances.n + self.alpha + chances.b))

    def silent(self, rate: Array) -> Array:
        return np.log1p(-rate)

    def spoken(self, rate: Array) -> Array:
        return np.log(rate) - np.log1p(-rate)

    def joined(self, spoken: Array, length: Array, total: Array) -> Array:
        return spoken + total

    def _possible(self, counts: Array, chances: Chances) -> Array:
        return np.minimum(counts, chances.n)


class AveragedRates(Averaged):
    """Tokens that occur at a rate, so much for each chance, that is Gamma(alpha, b)."""

    def untold(self, counts: Array, chances: Chances) -> Array:
        n, b = chances
        wait = np.log(n + b)
        return np.asarray(len(n) * self.alpha * np.log(b) - counts @ wait - self.alpha * wait.sum())

    def mean(self, counts: Array, chances: Chances) -> Array:
        return np.asarray((counts + self.alpha) / (chances.n + chances.b))

    def silent(self, rate: Array) -> Array:
        return rate

    def spoken(self, rate: Array) -> Array:
        return np.log(rate)

    def total(self, counts: Array, times: Array, chances: Chances, told: Array | None = None) -> Array:
        """Rates are added as they are: no need to have them one by one."""
        apart = times * expit(self.log_odds(counts, chances, told))
        shared = (times - apart) @ (counts.sum(axis=1) + self.alpha) / (chances.n.sum() + chances.b)
        return np.asarray((apart @ counts + self.alpha * apart.sum()) / (chances.n + chances.b) + shared)


@final
class AveragedPoisson(AveragedRates):
    """Occurrences at a rate for each document."""

    def chances(self, words: Words) -> Chances:
        return Chances(words.n, 1.0)

    def chances_without(self, words: Words, rows: Rows) -> tuple[Array, Array]:
        return np.ones(len(rows.group)), np.ones(len(rows.group))

    def joined(self, spoken: Array, length: Array, total: Array) -> Array:
        return spoken - total


class AveragedDraws(AveragedRates):
    """Tokens drawn one by one: a rate for each token drawn, and shares that are the rates over their sum."""

    def chances(self, words: Words) -> Chances:
        return Chances(words.counts.sum(axis=0), self.alpha * max(len(words), 1))

    def chances_without(self, words: Words, rows: Rows) -> tuple[Array, Array]:
        return rows.length, self.alpha * np.maximum(len(words) - rows.vanished, 1)

    def joined(self, spoken: Array, length: Array, total: Array) -> Array:
        return spoken - length[:, None] * np.log(np.where(total > 0, total, 1.0))


@final
class AveragedBinary(AveragedDraws):
    """Each token once a document, drawn one by one."""

    once = True


@final
class AveragedMultinomial(AveragedDraws):
    """Every occurrence drawn one by one."""


AVERAGED: dict[str, type[Averaged]] = {
    "binary": AveragedBinary,
    "multinomial": AveragedMultinomial,
    "bernoulli": AveragedBernoulli,
    "poisson": AveragedPoisson,
}


def averaged(model: str) -> type[Averaged]:
    """The bag of this name averaged over all sets of tokens, if it has an evidence."""
    if model not in AVERAGED:
        raise DataError(f"model {model!r} has no evidence to average by; use one of {', '.join(AVERAGED)}.")
    return AVERAGED[model]


def _alike(words: Words) -> tuple[Array, Array, Array]:
    """The distinct rows of counts, which of them each token has, and how many tokens have it: far fewer than tokens."""
    return words.derived("alike", lambda w: np.unique(w.counts, axis=0, return_inverse=True, return_counts=True))
