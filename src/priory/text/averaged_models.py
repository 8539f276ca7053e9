"""Bags of words averaged over all sets of tokens (Bayesian feature selection).

A set determines which tokens have a separate rate for each class; the others have one rate for all classes. Tokens are
independent given their rates, so the sum over all 2^V sets is a product over the tokens. With r, the posterior
probability that a token depends on the class (from its evidence with separate and with pooled classes), its expected
rate is

    rate_c  =  r E[rate | counts of class c]  +  (1 - r) E[rate | counts of all classes]

and the average is again a bag of words. For presence and absence (Beta) it equals the vote of all sets. For counts
(Gamma) it is the plain model with the rates averaged over all sets. The shares of a multinomial are not independent,
but they can be written as independent Gamma variables divided by their sum, which has a Dirichlet distribution: a token
has a rate per token drawn, and its share is its rate divided by the sum of all rates. If every token depends on the
class, each of these models equals the plain one.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple, final

import numpy as np

from priory.core.logspace import betaln, expit, gammaln
from priory.core.typing import Array
from priory.errors import DataError
from priory.text.document_models import TOKEN_ALPHA_GRID, BagOfWords, DocumentRows, TokenWeights
from priory.text.sparse_counts import make_dense_counts
from priory.text.token_counts import BagCounts


class Exposure(NamedTuple):
    """The exposure of each class (its documents or tokens), and the second parameter of the prior on the rate."""

    n: Array  # (classes,)
    b: float

    def pool_classes(self) -> Exposure:
        return Exposure(self.n.sum(keepdims=True), self.b)


class AveragedBag(BagOfWords):
    """A bag of words averaged over all sets of tokens."""

    @abstractmethod
    def exposure(self, words: BagCounts) -> Exposure:
        """The exposure of each class: its documents, or its tokens."""

    @abstractmethod
    def exposure_left_out(self, words: BagCounts, rows: DocumentRows) -> tuple[Array, Array]:
        """Exposure that each document contributes, and the prior's second parameter without it; both (documents,)."""

    @abstractmethod
    def exposure_log_evidence(self, counts: Array, exposure: Exposure) -> Array:
        """Log evidence (tokens,) of counts (tokens, classes), without the factor Γ(count + alpha) / Γ(alpha)."""

    @abstractmethod
    def expected_rates(self, counts: Array, exposure: Exposure) -> Array:
        """Posterior mean of the rates (tokens, classes), given counts (tokens, classes)."""

    @abstractmethod
    def total_term(self, rate: Array) -> Array:
        """The term that a token adds to the total of a class, whether or not it occurs in the document."""

    @abstractmethod
    def occurrence_term(self, rate: Array) -> Array:
        """The term of one occurrence of a token, apart from the total of the class."""

    @abstractmethod
    def document_log_likelihood(self, token_terms: Array, length: Array, class_total: Array) -> Array:
        """log p(document | c), (documents, classes), from token terms, lengths and class totals."""

    # -- inclusion probability of a token ------------------------------------------------------------------------

    def count_log_odds(self, counts: Array) -> Array:
        """The part (tokens,) of the log-odds of separate against pooled classes that depends only on the counts."""
        a, groups = self.alpha, counts.shape[1]
        together = gammaln(counts.sum(axis=1) + a)
        return np.asarray(gammaln(counts + a).sum(axis=1) - together - (groups - 1) * gammaln(a))

    def inclusion_log_odds(self, counts: Array, exposure: Exposure, count_log_odds: Array | None = None) -> Array:
        """Log Bayes factor (tokens,) of separate classes against pooled classes."""
        # both (tokens,): the evidence of separate classes minus the evidence of pooled classes
        pooled = counts.sum(axis=1, keepdims=True)  # (tokens, 1)
        apart = self.exposure_log_evidence(counts, exposure) - self.exposure_log_evidence(
            pooled, exposure.pool_classes()
        )
        return apart + (self.count_log_odds(counts) if count_log_odds is None else count_log_odds)

    def averaged_rates(self, counts: Array, exposure: Exposure, count_log_odds: Array | None = None) -> Array:
        """Expected rate of each token in each class, averaged over all sets: (tokens, classes)."""
        inclusion = expit(self.inclusion_log_odds(counts, exposure, count_log_odds))[:, None]  # (tokens, 1)
        shared = self.expected_rates(counts.sum(axis=1, keepdims=True), exposure.pool_classes())  # (tokens, 1)
        return inclusion * self.expected_rates(counts, exposure) + (1 - inclusion) * shared

    def class_totals(
        self, counts: Array, n_tokens: Array, exposure: Exposure, count_log_odds: Array | None = None
    ) -> Array:
        """Sum of the total terms, (classes,); ``n_tokens`` is the number of tokens with each row of counts."""
        return np.asarray(n_tokens @ self.total_term(self.averaged_rates(counts, exposure, count_log_odds)))

    def inclusion_probability(self, words: BagCounts) -> Array:
        """Probability that each token depends on the class, (tokens,)."""
        distinct, row_of_token, _ = _group_equal_counts(words)
        return np.asarray(expit(self.inclusion_log_odds(distinct, self.exposure(words)))[row_of_token])

    @classmethod
    def choose_alpha(cls, words: BagCounts) -> float:
        """The alpha with the largest evidence, averaged over all sets."""
        distinct, _, n_tokens = _group_equal_counts(words)
        evidence = [n_tokens @ cls(float(a)).log_evidence(distinct, words) for a in TOKEN_ALPHA_GRID]
        return float(TOKEN_ALPHA_GRID[int(np.argmax(evidence))])

    def log_evidence(self, counts: Array, words: BagCounts) -> Array:
        """Log evidence (tokens,) given counts, with prior probability 1/2 that a token depends on the class."""
        exposure, pooled = self.exposure(words), counts.sum(axis=1, keepdims=True)
        # log(1/2 · separate + 1/2 · pooled) = log pooled + log(1 + odds) - log 2
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
        # The constant is the score of an empty document; the weight of a token is what one occurrence adds to it.
        constant = self.document_log_likelihood(np.zeros((1, rate.shape[1])), np.zeros(1), total)
        table = self.document_log_likelihood(self.occurrence_term(rate), np.ones(1), total) - constant
        return TokenWeights(table[row_of_token], constant[0])

    def leave_one_out(self, words: BagCounts, rows: DocumentRows) -> Array:
        """Documents of one class with equal exposure share all rates, except for the rates of their own tokens."""
        distinct, _, n_tokens = _group_equal_counts(words)
        count_log_odds, (n, _) = self.count_log_odds(distinct), self.exposure(words)
        scores = np.empty((len(rows.group), len(n)))  # (documents, classes)
        # A setting is the class of a document, the exposure that it contributes, and the prior without it.
        settings, setting_of_document = np.unique(
            np.stack([rows.group, *self.exposure_left_out(words, rows)]), axis=1, return_inverse=True
        )
        # entries sorted by setting: setting s has the entries by_setting[cuts[s]:cuts[s + 1]]
        setting_of_entry = setting_of_document[rows.row]
        by_setting = np.argsort(setting_of_entry, kind="stable")
        cuts = np.searchsorted(setting_of_entry[by_setting], np.arange(settings.shape[1] + 1))
        for s, (own_class, lost, b) in enumerate(settings.T):
            exposure = Exposure(n - lost * (np.arange(len(n)) == own_class), b)
            documents, entries = np.flatnonzero(setting_of_document == s), by_setting[cuts[s] : cuts[s + 1]]
            place, x = np.searchsorted(documents, rows.row[entries]), rows.x[entries]
            # The rates of the documents' own tokens before and after leaving them out, (entries, classes).
            left = make_dense_counts(words.counts)[rows.ids[entries]]
            before = self.averaged_rates(self._clip_counts(left, exposure), exposure, self.count_log_odds(left))
            left[:, int(own_class)] -= x
            learned = np.asarray(left.any(axis=1))  # a token that occurs in no other document is ignored
            stays = learned | (not rows.tokens_vanish)
            rate = self.averaged_rates(left[stays], exposure)
            # The totals (documents, classes) over all tokens, with the documents' own tokens replaced.
            everything = self.class_totals(self._clip_counts(distinct, exposure), n_tokens, exposure, count_log_odds)
            total = np.tile(everything, (len(documents), 1))
            np.add.at(total, place, -self.total_term(before))
            np.add.at(total, place[stays], self.total_term(rate))
            token_terms = np.zeros_like(total)
            np.add.at(token_terms, place[learned], x[learned, None] * self.occurrence_term(rate[learned[stays]]))
            scores[documents] = self.document_log_likelihood(token_terms, rows.remaining_length[documents], total)
        return scores

    def _clip_counts(self, counts: Array, exposure: Exposure) -> Array:
        """Limit counts to the exposure; only a document's own tokens exceed it, and these are replaced later."""
        return counts


@final
class AveragedBernoulliBag(AveragedBag):
    """Tokens are present or absent, with probabilities that are Beta(alpha, alpha) distributed."""

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
    """Tokens occur at a rate per unit of exposure; the rate is Gamma(alpha, b) distributed."""

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
        """Sum of all rates, (classes,), without computing each of them."""
        # (distinct rows,): expected number of tokens with these counts that depend on the class
        apart = n_tokens * expit(self.inclusion_log_odds(counts, exposure, count_log_odds))
        shared = (n_tokens - apart) @ (counts.sum(axis=1) + self.alpha) / (exposure.n.sum() + exposure.b)
        return np.asarray((apart @ counts + self.alpha * apart.sum()) / (exposure.n + exposure.b) + shared)


@final
class AveragedPoissonBag(AveragedRateBag):
    """Occurrences at a rate per document."""

    def exposure(self, words: BagCounts) -> Exposure:
        return Exposure(words.n, 1.0)

    def exposure_left_out(self, words: BagCounts, rows: DocumentRows) -> tuple[Array, Array]:
        return np.ones(len(rows.group)), np.ones(len(rows.group))

    def document_log_likelihood(self, token_terms: Array, length: Array, class_total: Array) -> Array:
        return token_terms - class_total


class AveragedTokenDrawBag(AveragedRateBag):
    """Tokens drawn independently: a rate per token drawn, and shares that are rates divided by their sum."""

    def exposure(self, words: BagCounts) -> Exposure:
        return Exposure(words.counts.sum(axis=0), self.alpha * max(len(words), 1))

    def exposure_left_out(self, words: BagCounts, rows: DocumentRows) -> tuple[Array, Array]:
        return rows.length, self.alpha * np.maximum(len(words) - rows.n_vanished, 1)

    def document_log_likelihood(self, token_terms: Array, length: Array, class_total: Array) -> Array:
        return token_terms - length[:, None] * np.log(np.where(class_total > 0, class_total, 1.0))


@final
class AveragedBinaryBag(AveragedTokenDrawBag):
    """Tokens drawn independently, each counted once per document."""

    binary = True


@final
class AveragedMultinomialBag(AveragedTokenDrawBag):
    """Tokens drawn independently, every occurrence counted."""


AVERAGED_BAG_MODELS: dict[str, type[AveragedBag]] = {
    "binary": AveragedBinaryBag,
    "multinomial": AveragedMultinomialBag,
    "bernoulli": AveragedBernoulliBag,
    "poisson": AveragedPoissonBag,
}


def get_averaged_bag(model: str) -> type[AveragedBag]:
    """The averaged bag of words with this name; raises DataError for a model without evidence."""
    if model not in AVERAGED_BAG_MODELS:
        raise DataError(f"model {model!r} has no evidence to average by; use one of {', '.join(AVERAGED_BAG_MODELS)}.")
    return AVERAGED_BAG_MODELS[model]


def _group_equal_counts(words: BagCounts) -> tuple[Array, Array, Array]:
    """Distinct rows of counts (far fewer than tokens), the row of each token, and the number of tokens per row."""
    return words.derive(
        "distinct counts",
        lambda w: np.unique(make_dense_counts(w.counts), axis=0, return_inverse=True, return_counts=True),
    )
