"""Bags of words averaged over all sets of tokens: a token counts as far as it matters.

A set says which tokens have a rate of their own for each class; each of the others has one rate for all classes. Tokens
are independent given their rates, so the sum over all 2^V sets is a product over the tokens. With r, the probability
that a token matters (its evidence with the classes apart against that with the classes together), its expected rate is

    rate_c  =  r E[rate | counts of class c]  +  (1 - r) E[rate | counts of all classes]

and the average is again one bag of words. For presence and absence (Beta) it equals the vote of all sets. For counts
(Gamma) it is the plain model with the rates that all sets together expect. Tokens drawn one by one are not independent;
but Gamma variables are, and their shares have the Dirichlet distribution of the draws: a token has a rate for every
token drawn, and its share is its rate divided by the sum of all rates. Where every token matters, each of these models
is the plain one.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple, final

import numpy as np

from priory.bag_of_words.bag_counts import BagCounts
from priory.bag_of_words.models import TOKEN_ALPHA_GRID, BagOfWords, DocumentRows, TokenWeights
from priory.bag_of_words.sparse_counts import make_dense_counts
from priory.core.special_functions import betaln, expit, gammaln
from priory.core.typing import Array
from priory.errors import DataError


class Exposure(NamedTuple):
    """The number of chances each class had to show a token, and the second parameter of the prior on its rate."""

    n: Array  # (classes,)
    b: float

    def pool_classes(self) -> Exposure:
        return Exposure(self.n.sum(keepdims=True), self.b)


class AveragedBag(BagOfWords):
    """A bag of words averaged over all sets of tokens."""

    @abstractmethod
    def exposure(self, words: BagCounts) -> Exposure:
        """The chances of each class: its documents, or its tokens."""

    @abstractmethod
    def exposure_left_out(self, words: BagCounts, rows: DocumentRows) -> tuple[Array, Array]:
        """For each document the chances its class loses without it, and the prior's second parameter: (documents,)."""

    @abstractmethod
    def exposure_log_evidence(self, counts: Array, exposure: Exposure) -> Array:
        """(tokens,): log evidence of counts (tokens, classes), without the factor Γ(count + alpha) / Γ(alpha)."""

    @abstractmethod
    def expected_rates(self, counts: Array, exposure: Exposure) -> Array:
        """(tokens, classes): the expected rates of tokens with these counts."""

    @abstractmethod
    def total_term(self, rate: Array) -> Array:
        """The term a token adds to the total of a class, whether or not the document shows it."""

    @abstractmethod
    def occurrence_term(self, rate: Array) -> Array:
        """The term of one occurrence of a token, apart from the total of the class."""

    @abstractmethod
    def document_log_likelihood(self, token_terms: Array, length: Array, class_total: Array) -> Array:
        """(documents, classes): log p(document | c) from its token terms, its length and the class totals."""

    # -- the probability that a token matters --------------------------------------------------------------------

    def count_log_odds(self, counts: Array) -> Array:
        """(tokens,): the part of the log-odds of apart against together that only the counts decide."""
        a, groups = self.alpha, counts.shape[1]
        together = gammaln(counts.sum(axis=1) + a)
        return np.asarray(gammaln(counts + a).sum(axis=1) - together - (groups - 1) * gammaln(a))

    def inclusion_log_odds(self, counts: Array, exposure: Exposure, count_log_odds: Array | None = None) -> Array:
        """(tokens,): log evidence of each token with the classes apart, less that with the classes together."""
        pooled = counts.sum(axis=1, keepdims=True)  # (tokens, 1)
        apart = self.exposure_log_evidence(counts, exposure) - self.exposure_log_evidence(
            pooled, exposure.pool_classes()
        )
        return apart + (self.count_log_odds(counts) if count_log_odds is None else count_log_odds)

    def averaged_rates(self, counts: Array, exposure: Exposure, count_log_odds: Array | None = None) -> Array:
        """(tokens, classes): the expected rate of each token in each class, over all sets."""
        inclusion = expit(self.inclusion_log_odds(counts, exposure, count_log_odds))[:, None]  # (tokens, 1)
        shared = self.expected_rates(counts.sum(axis=1, keepdims=True), exposure.pool_classes())  # (tokens, 1)
        return inclusion * self.expected_rates(counts, exposure) + (1 - inclusion) * shared

    def class_totals(
        self, counts: Array, n_tokens: Array, exposure: Exposure, count_log_odds: Array | None = None
    ) -> Array:
        """(classes,): the sum of the total terms; ``n_tokens`` is the number of tokens with each row of counts."""
        return np.asarray(n_tokens @ self.total_term(self.averaged_rates(counts, exposure, count_log_odds)))

    def inclusion_probability(self, words: BagCounts) -> Array:
        """(tokens,): the probability that each token depends on the class."""
        distinct, row_of_token, _ = _group_equal_counts(words)
        return np.asarray(expit(self.inclusion_log_odds(distinct, self.exposure(words)))[row_of_token])

    @classmethod
    def choose_alpha(cls, words: BagCounts) -> float:
        """The alpha under which the tokens are most probable, averaged over all sets."""
        distinct, _, n_tokens = _group_equal_counts(words)
        evidence = [n_tokens @ cls(float(a)).log_evidence(distinct, words) for a in TOKEN_ALPHA_GRID]
        return float(TOKEN_ALPHA_GRID[int(np.argmax(evidence))])

    def log_evidence(self, counts: Array, words: BagCounts) -> Array:
        """(tokens,): log evidence of tokens with these counts, where apart and together are equally probable before."""
        exposure, pooled = self.exposure(words), counts.sum(axis=1, keepdims=True)
        together = (
            gammaln(pooled[:, 0] + self.alpha)
            - gammaln(self.alpha)
            + self.exposure_log_evidence(pooled, exposure.pool_classes())
        )
        return together + np.logaddexp(self.inclusion_log_odds(counts, exposure), 0.0) - np.log(2)

    # -- the bag of words -----------------------------------------------------------------------------------------

    def compute_weights(self, words: BagCounts) -> TokenWeights:
        distinct, row_of_token, n_tokens = _group_equal_counts(words)
        rate = self.averaged_rates(distinct, self.exposure(words))  # (distinct rows, classes)
        total = self.class_totals(distinct, n_tokens, self.exposure(words))  # (classes,)
        # The constant is the score of an empty document, a weight what a document of one token adds to it.
        constant = self.document_log_likelihood(np.zeros((1, rate.shape[1])), np.zeros(1), total)
        table = self.document_log_likelihood(self.occurrence_term(rate), np.ones(1), total) - constant
        return TokenWeights(table[row_of_token], constant[0])

    def leave_one_out(self, words: BagCounts, rows: DocumentRows) -> Array:
        """Documents of one class that reduce its exposure equally share all rates, except those of their own tokens."""
        distinct, _, n_tokens = _group_equal_counts(words)
        count_log_odds, (n, _) = self.count_log_odds(distinct), self.exposure(words)
        scores = np.empty((len(rows.group), len(n)))  # (documents, classes)
        # A setting is the class of a document, the chances the class loses without it, and the prior without it.
        settings, setting_of_document = np.unique(
            np.stack([rows.group, *self.exposure_left_out(words, rows)]), axis=1, return_inverse=True
        )
        setting_of_entry = setting_of_document[rows.row]
        by_setting = np.argsort(setting_of_entry, kind="stable")
        cuts = np.searchsorted(setting_of_entry[by_setting], np.arange(settings.shape[1] + 1))
        for s, (own_class, lost, b) in enumerate(settings.T):
            exposure = Exposure(n - lost * (np.arange(len(n)) == own_class), b)
            documents, entries = np.flatnonzero(setting_of_document == s), by_setting[cuts[s] : cuts[s + 1]]
            place, x = np.searchsorted(documents, rows.row[entries]), rows.x[entries]
            # The rates of the documents' own tokens, before and after they are left out: (entries, classes).
            left = make_dense_counts(words.counts)[rows.ids[entries]]
            before = self.averaged_rates(self._clip_counts(left, exposure), exposure, self.count_log_odds(left))
            left[:, int(own_class)] -= x
            learned = np.asarray(left.any(axis=1))  # a token that no other document shows says nothing
            stays = learned | (not rows.tokens_vanish)
            rate = self.averaged_rates(left[stays], exposure)
            # The class totals (documents, classes): those of all tokens, with the documents' own tokens replaced.
            everything = self.class_totals(self._clip_counts(distinct, exposure), n_tokens, exposure, count_log_odds)
            total = np.tile(everything, (len(documents), 1))
            np.add.at(total, place, -self.total_term(before))
            np.add.at(total, place[stays], self.total_term(rate))
            token_terms = np.zeros_like(total)
            np.add.at(token_terms, place[learned], x[learned, None] * self.occurrence_term(rate[learned[stays]]))
            scores[documents] = self.document_log_likelihood(token_terms, rows.remaining_length[documents], total)
        return scores

    def _clip_counts(self, counts: Array, exposure: Exposure) -> Array:
        """Counts no larger than the exposure; only a document's own tokens have larger ones, and they are replaced."""
        return counts


@final
class AveragedBernoulliBag(AveragedBag):
    """Each token is present or absent, with a probability that is Beta(alpha, alpha)."""

    binary = True

    def exposure(self, words: BagCounts) -> Exposure:
        return Exposure(words.n, self.alpha)

    def exposure_left_out(self, words: BagCounts, rows: DocumentRows) -> tuple[Array, Array]:
        return np.ones(len(rows.group)), np.full(len(rows.group), self.alpha)

    def exposure_log_evidence(self, counts: Array, exposure: Exposure) -> Array:
        n, b = exposure
        absent = gammaln(n - counts + b).sum(axis=1) - gammaln(n + self.alpha + b).sum()  # (tokens,)
        return np.asarray(absent + len(n) * (gammaln(self.alpha) - betaln(self.alpha, b)))

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
    """Tokens that occur at a rate for each chance; the rate is Gamma(alpha, b)."""

    def exposure_log_evidence(self, counts: Array, exposure: Exposure) -> Array:
        n, b = exposure
        log_time = np.log(n + b)  # (classes,)
        return np.asarray(len(n) * self.alpha * np.log(b) - counts @ log_time - self.alpha * log_time.sum())

    def expected_rates(self, counts: Array, exposure: Exposure) -> Array:
        return np.asarray((counts + self.alpha) / (exposure.n + exposure.b))

    def total_term(self, rate: Array) -> Array:
        return rate

    def occurrence_term(self, rate: Array) -> Array:
        return np.log(rate)

    def class_totals(
        self, counts: Array, n_tokens: Array, exposure: Exposure, count_log_odds: Array | None = None
    ) -> Array:
        """(classes,): the sum of all rates, without computing each of them."""
        # (distinct rows,): how many tokens with these counts are expected to matter
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
    """Tokens drawn one by one: a rate for each token drawn, and shares that are the rates divided by their sum."""

    def exposure(self, words: BagCounts) -> Exposure:
        return Exposure(words.counts.sum(axis=0), self.alpha * max(len(words), 1))

    def exposure_left_out(self, words: BagCounts, rows: DocumentRows) -> tuple[Array, Array]:
        return rows.length, self.alpha * np.maximum(len(words) - rows.n_vanished, 1)

    def document_log_likelihood(self, token_terms: Array, length: Array, class_total: Array) -> Array:
        return token_terms - length[:, None] * np.log(np.where(class_total > 0, class_total, 1.0))


@final
class AveragedBinaryBag(AveragedTokenDrawBag):
    """Each token once for each document, drawn one by one."""

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
    """The averaged bag of words of this name; a bag without an evidence has none."""
    if model not in AVERAGED_BAG_MODELS:
        raise DataError(f"model {model!r} has no evidence to average by; use one of {', '.join(AVERAGED_BAG_MODELS)}.")
    return AVERAGED_BAG_MODELS[model]


def _group_equal_counts(words: BagCounts) -> tuple[Array, Array, Array]:
    """The distinct rows of counts (far fewer than tokens), the row of each token, and the number of tokens of each."""
    return words.derive(
        "distinct counts",
        lambda w: np.unique(make_dense_counts(w.counts), axis=0, return_inverse=True, return_counts=True),
    )
