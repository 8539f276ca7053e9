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

from priory.bag_of_words.bag_counts import BagCounts
from priory.bag_of_words.models import TOKEN_ALPHA_GRID, BagOfWords, DocumentRows, TokenWeights
from priory.core.typing import Array
from priory.errors import DataError


class Exposure(NamedTuple):
    """How often each class could have shown a token, and the second parameter of the prior on its rate."""

    n: Array  # (classes,)
    b: float

    def pool_classes(self) -> Exposure:
        return Exposure(self.n.sum(keepdims=True), self.b)


class AveragedBag(BagOfWords):
    """A bag of words averaged over all sets of tokens."""

    @abstractmethod
    def exposure(self, words: BagCounts) -> Exposure:
        """Documents or tokens of each class."""

    @abstractmethod
    def exposure_left_out(self, words: BagCounts, rows: DocumentRows) -> tuple[Array, Array]:
        """What each document takes from the chances of its class, and the parameter of the prior without it."""

    @abstractmethod
    def exposure_log_evidence(self, counts: Array, exposure: Exposure) -> Array:
        """Log evidence of each token, all classes taken together, but for Γ(count + alpha) / Γ(alpha)."""

    @abstractmethod
    def expected_rates(self, counts: Array, exposure: Exposure) -> Array:
        """The expected rates."""

    @abstractmethod
    def total_term(self, rate: Array) -> Array:
        """What a token adds to the total of a class whether or not the document shows it."""

    @abstractmethod
    def occurrence_term(self, rate: Array) -> Array:
        """What an occurrence says, so far as the token speaks alone."""

    @abstractmethod
    def document_log_likelihood(self, token_terms: Array, length: Array, class_total: Array) -> Array:
        """log p(document | c) from what its tokens say, how many they are, and the total of the class."""

    # -- how far a token matters ---------------------------------------------------------------------------------

    def count_log_odds(self, counts: Array) -> Array:
        """The part of the log-odds of apart against together that only the counts decide."""
        a, groups = self.alpha, counts.shape[1]
        together = gammaln(counts.sum(axis=1) + a)
        return np.asarray(gammaln(counts + a).sum(axis=1) - together - (groups - 1) * gammaln(a))

    def inclusion_log_odds(self, counts: Array, exposure: Exposure, count_log_odds: Array | None = None) -> Array:
        """Evidence of each token with the classes apart, less that with the classes together."""
        pooled = counts.sum(axis=1, keepdims=True)
        apart = self.exposure_log_evidence(counts, exposure) - self.exposure_log_evidence(
            pooled, exposure.pool_classes()
        )
        return apart + (self.count_log_odds(counts) if count_log_odds is None else count_log_odds)

    def averaged_rates(self, counts: Array, exposure: Exposure, count_log_odds: Array | None = None) -> Array:
        """The expected rate of each token in each class, over all sets."""
        matters = expit(self.inclusion_log_odds(counts, exposure, count_log_odds))[:, None]
        shared = self.expected_rates(counts.sum(axis=1, keepdims=True), exposure.pool_classes())
        return matters * self.expected_rates(counts, exposure) + (1 - matters) * shared

    def class_totals(
        self, counts: Array, n_tokens: Array, exposure: Exposure, count_log_odds: Array | None = None
    ) -> Array:
        """What the tokens add to each class whether or not a document shows them; so many have these counts."""
        return np.asarray(n_tokens @ self.total_term(self.averaged_rates(counts, exposure, count_log_odds)))

    def inclusion_probability(self, words: BagCounts) -> Array:
        """The probability that each token depends on the class."""
        kinds, back, _ = _group_equal_counts(words)
        return np.asarray(expit(self.inclusion_log_odds(kinds, self.exposure(words)))[back])

    @classmethod
    def choose_alpha(cls, words: BagCounts) -> float:
        """The alpha under which the tokens are most probable, averaged over all sets."""
        kinds, _, times = _group_equal_counts(words)
        evidence = [times @ cls(float(a)).log_evidence(kinds, words) for a in TOKEN_ALPHA_GRID]
        return float(TOKEN_ALPHA_GRID[int(np.argmax(evidence))])

    def log_evidence(self, counts: Array, words: BagCounts) -> Array:
        """Log evidence of tokens with these counts: half of it apart, half of it together."""
        chances, pooled = self.exposure(words), counts.sum(axis=1, keepdims=True)
        together = (
            gammaln(pooled[:, 0] + self.alpha)
            - gammaln(self.alpha)
            + self.exposure_log_evidence(pooled, chances.pool_classes())
        )
        return together + np.logaddexp(self.inclusion_log_odds(counts, chances), 0.0) - np.log(2)

    # -- what a bag is asked -------------------------------------------------------------------------------------

    def compute_weights(self, words: BagCounts) -> TokenWeights:
        kinds, back, times = _group_equal_counts(words)
        rate = self.averaged_rates(kinds, self.exposure(words))
        nothing = np.zeros((1, rate.shape[1]))
        total = self.class_totals(kinds, times, self.exposure(words))
        constant = self.document_log_likelihood(nothing, np.zeros(1), total)
        return TokenWeights(
            (self.document_log_likelihood(self.occurrence_term(rate), np.ones(1), total) - constant)[back], constant[0]
        )

    def leave_one_out(self, words: BagCounts, rows: DocumentRows) -> Array:
        """Documents that take the same from the same class are judged by the same rates, but for their own tokens."""
        kinds, _, times = _group_equal_counts(words)
        told, (n, _) = self.count_log_odds(kinds), self.exposure(words)
        scores = np.empty((len(rows.group), len(n)))
        settings, of = np.unique(
            np.stack([rows.group, *self.exposure_left_out(words, rows)]), axis=1, return_inverse=True
        )
        by_setting = np.argsort(of[rows.row], kind="stable")
        cuts = np.searchsorted(of[rows.row][by_setting], np.arange(settings.shape[1] + 1))
        for s, (g, taken, b) in enumerate(settings.T):
            chances = Exposure(n - taken * (np.arange(len(n)) == g), b)
            documents, own = np.flatnonzero(of == s), by_setting[cuts[s] : cuts[s + 1]]
            place, ids, x = np.searchsorted(documents, rows.row[own]), rows.ids[own], rows.x[own]
            left = words.counts[ids]
            before = self.averaged_rates(self._clip_counts(left, chances), chances, self.count_log_odds(left))
            left[:, int(g)] -= x
            learned = left.any(axis=1)  # a token that nobody else shows says nothing
            stays = learned | (not rows.tokens_vanish)
            rate = self.averaged_rates(left[stays], chances)
            everything = self.class_totals(self._clip_counts(kinds, chances), times, chances, told)
            total = np.tile(everything, (len(documents), 1))
            np.add.at(total, place, -self.total_term(before))
            np.add.at(total, place[stays], self.total_term(rate))
            spoken = np.zeros_like(total)
            np.add.at(spoken, place[learned], x[learned, None] * self.occurrence_term(rate[learned[stays]]))
            scores[documents] = self.document_log_likelihood(spoken, rows.remaining_length[documents], total)
        return scores

    def _clip_counts(self, counts: Array, exposure: Exposure) -> Array:
        """Counts that the chances allow; only a document's own tokens can have more, and they are replaced."""
        return counts


@final
class AveragedBernoulliBag(AveragedBag):
    """Each token is there or not, with a probability that is Beta(alpha, alpha)."""

    binary = True

    def exposure(self, words: BagCounts) -> Exposure:
        return Exposure(words.n, self.alpha)

    def exposure_left_out(self, words: BagCounts, rows: DocumentRows) -> tuple[Array, Array]:
        return np.ones(len(rows.group)), np.full(len(rows.group), self.alpha)

    def exposure_log_evidence(self, counts: Array, exposure: Exposure) -> Array:
        n, b = exposure
        lacking = gammaln(n - counts + b).sum(axis=1) - gammaln(n + self.alpha + b).sum()
        return np.asarray(lacking + len(n) * (gammaln(self.alpha) - betaln(self.alpha, b)))

    def expected_rates(self, counts: Array, exposure: Exposure) -> Array:
        return np.asarray((counts + self.alpha) / (exposure.n + self.alpha + exposure.b))

    def total_term(self, rate: Array) -> Array:
        return np.log1p(-rate)

    def occurrence_term(self, rate: Array) -> Array:
        return np.log(rate) - np.log1p(-rate)

    def document_log_likelihood(self, token_terms: Array, length: Array, class_total: Array) -> Array:
        return token_terms + class_total

    def _clip_counts(self, counts: Array, exposure: Exposure) -> Array:
        return np.minimum(counts, exposure.n)


class AveragedRateBag(AveragedBag):
    """Tokens that occur at a rate, so much for each chance, that is Gamma(alpha, b)."""

    def exposure_log_evidence(self, counts: Array, exposure: Exposure) -> Array:
        n, b = exposure
        wait = np.log(n + b)
        return np.asarray(len(n) * self.alpha * np.log(b) - counts @ wait - self.alpha * wait.sum())

    def expected_rates(self, counts: Array, exposure: Exposure) -> Array:
        return np.asarray((counts + self.alpha) / (exposure.n + exposure.b))

    def total_term(self, rate: Array) -> Array:
        return rate

    def occurrence_term(self, rate: Array) -> Array:
        return np.log(rate)

    def class_totals(
        self, counts: Array, n_tokens: Array, exposure: Exposure, count_log_odds: Array | None = None
    ) -> Array:
        """Rates are added as they are: no need to have them one by one."""
        apart = n_tokens * expit(self.inclusion_log_odds(counts, exposure, count_log_odds))
        shared = (n_tokens - apart) @ (counts.sum(axis=1) + self.alpha) / (exposure.n.sum() + exposure.b)
        return np.asarray((apart @ counts + self.alpha * apart.sum()) / (exposure.n + exposure.b) + shared)


@final
class AveragedPoissonBag(AveragedRateBag):
    """Occurrences at a rate for each document."""

    def exposure(self, words: BagCounts) -> Exposure:
        return Exposure(words.n, 1.0)

    def exposure_left_out(self, words: BagCounts, rows: DocumentRows) -> tuple[Array, Array]:
        return np.ones(len(rows.group)), np.ones(len(rows.group))

    def document_log_likelihood(self, token_terms: Array, length: Array, class_total: Array) -> Array:
        return token_terms - class_total


class AveragedTokenDrawBag(AveragedRateBag):
    """Tokens drawn one by one: a rate for each token drawn, and shares that are the rates over their sum."""

    def exposure(self, words: BagCounts) -> Exposure:
        return Exposure(words.counts.sum(axis=0), self.alpha * max(len(words), 1))

    def exposure_left_out(self, words: BagCounts, rows: DocumentRows) -> tuple[Array, Array]:
        return rows.length, self.alpha * np.maximum(len(words) - rows.n_vanished, 1)

    def document_log_likelihood(self, token_terms: Array, length: Array, class_total: Array) -> Array:
        return token_terms - length[:, None] * np.log(np.where(class_total > 0, class_total, 1.0))


@final
class AveragedBinaryBag(AveragedTokenDrawBag):
    """Each token once a document, drawn one by one."""

    binary = True


@final
class AveragedMultinomialBag(AveragedTokenDrawBag):
    """Every occurrence drawn one by one."""


AVERAGED_BAG_MODELS: dict[str, type[AveragedBag]] = {
    "binary": AveragedBinaryBag,
    "multinomial": AveragedMultinomialBag,
    "bernoulli": AveragedBernoulliBag,
    "poisson": AveragedPoissonBag,
}


def get_averaged_bag(model: str) -> type[AveragedBag]:
    """The bag of this name averaged over all sets of tokens, if it has an evidence."""
    if model not in AVERAGED_BAG_MODELS:
        raise DataError(f"model {model!r} has no evidence to average by; use one of {', '.join(AVERAGED_BAG_MODELS)}.")
    return AVERAGED_BAG_MODELS[model]


def _group_equal_counts(words: BagCounts) -> tuple[Array, Array, Array]:
    """The distinct rows of counts, which of them each token has, and how many tokens have it: far fewer than tokens."""
    return words.derive("alike", lambda w: np.unique(w.counts, axis=0, return_inverse=True, return_counts=True))
