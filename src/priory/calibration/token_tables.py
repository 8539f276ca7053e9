"""Naive Bayes of texts with the token shares of all texts as prior, and with texts that have no label [1]_.

A candidate is a way to read a text (the tokens it shows, or their idf scaled to unit length), a prior (the same number
of virtual texts for each token, or token shares of all texts times a strength), and the weight of a text without label:

    theta(token | c)  ~  labelled counts + weight * sum of p(c | text) over texts without label + prior
    p(c | text)       =  by theta itself: five rounds of expectation and maximisation

Candidates are compared by the log loss of labelled texts, each left out with its fold, of answers with one exponent.

References
----------
.. [1] K. Nigam, A. McCallum, S. Thrun and T. Mitchell, "Text classification from labeled and unlabeled documents using
   EM", Machine Learning 39, 2000.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy import ndarray as Array

from priory.calibration.text_refinement import choose_exponent
from priory.core.logspace import log_normalise
from priory.core.sharding import limit_blas_threads
from priory.text.token_bags import TokenBags
from priory.text.token_counts import TokenCounts
from priory.text.token_features import MIN_FEATURE_COUNT, TokenFeatures
from priory.text.vocabulary import Vocabulary

MAX_FOLDS = 5
ROUNDS, MIN_CHANGE = 5, 1e-4  # of expectation and maximisation, and the mean change of p(c | text) to go on
WEIGHTS = (0.1, 0.3)  # of a text without label
SHOWN_SMOOTHING, SCALED_SMOOTHING = 0.1, 0.01  # virtual texts of each token
SHOWN_STRENGTHS, SCALED_STRENGTHS = (100.0, 1_000.0, 10_000.0), (3.0, 30.0, 300.0)  # of the shares of all texts
SparseTexts = Any  # scipy's csr_array, whose types NumPy's arrays do not fit


class TokenCandidate(NamedTuple):
    """A way to estimate token probabilities."""

    scaled: bool  # tokens by their idf, texts of unit length
    strength: float  # of the token shares of all texts; 0 for the same number of virtual texts for each token
    weight: float = 0.0  # of a text without label

    def __str__(self) -> str:
        reading = "idf" if self.scaled else "counts"
        prior = f"shares of all texts x {self.strength:g}" if self.strength else "uniform prior"
        return f"{reading}, {prior}" + (f", weight {self.weight:g}" if self.weight else "")


@dataclass(frozen=True)
class MarkedTexts:
    """Labelled texts and texts without label, over the same tokens."""

    labelled: SparseTexts  # (texts, tokens): 1 for each token of a text
    group: Array  # (labelled texts,)
    count: Array  # (labelled texts,)
    others: SparseTexts  # (texts, tokens)
    n_classes: int

    def read(self, scaled: bool) -> MarkedTexts:
        """Scale tokens by idf, and texts to unit length, if asked for."""
        if not scaled:
            return self
        idf = self.find_idf()
        return replace(self, labelled=scale_rows(self.labelled, idf), others=scale_rows(self.others, idf))

    def find_idf(self) -> Array:
        """(tokens,): the log of all texts over the texts with the token."""
        frequency = self.labelled.sum(axis=0) + self.others.sum(axis=0)
        return np.asarray(np.log((1.0 + self.labelled.shape[0] + self.others.shape[0]) / (1.0 + frequency)) + 1.0)

    def find_shares(self) -> Array:
        """(tokens,): the token shares of all texts."""
        total = self.labelled.T @ self.count + self.others.sum(axis=0)
        return np.asarray((total + 1e-9) / (total + 1e-9).sum())


def scale_rows(rows: SparseTexts, idf: Array) -> SparseTexts:
    """Rows of tokens times their idf, of unit length."""
    scaled: SparseTexts = rows.multiply(idf[None])
    length = np.sqrt(scaled.multiply(scaled).sum(axis=1))
    inverse = 1.0 / np.where(length > 0, length, 1.0)
    return scipy.sparse.csr_array(scaled.multiply(inverse[:, None]))


def estimate_tokens(texts: MarkedTexts, candidate: TokenCandidate, rows: Array) -> tuple[Array, Array]:
    """Log token probabilities (tokens, classes) and log class shares (classes,) from the labelled ``rows``.

    ``texts`` are read as the candidate reads them.
    """
    smoothing = SCALED_SMOOTHING if candidate.scaled else SHOWN_SMOOTHING
    prior = candidate.strength * texts.find_shares() if candidate.strength else smoothing
    own = scipy.sparse.csr_array(
        (texts.count[rows], (texts.group[rows], np.arange(len(rows)))), shape=(texts.n_classes, len(rows))
    )
    counts, n = (own @ texts.labelled[rows]).toarray().T, np.asarray(own.sum(axis=1))
    table, shares = normalise_counts(counts, n, prior)
    before = np.zeros((texts.others.shape[0], texts.n_classes))
    for _ in range(ROUNDS if candidate.weight and len(before) else 0):
        belief = np.exp(log_normalise(texts.others @ table + shares))
        more = candidate.weight * (texts.others.T @ belief)
        table, shares = normalise_counts(counts + more, n + candidate.weight * belief.sum(axis=0), prior)
        if np.abs(belief - before).mean() < MIN_CHANGE:
            break
        before = belief
    return table, shares


def normalise_counts(counts: Array, n: Array, prior: Array | float) -> tuple[Array, Array]:
    """Log probabilities of tokens (tokens, classes) and of classes (classes,)."""
    smoothed = counts + (prior[:, None] if isinstance(prior, np.ndarray) else prior)
    return np.log(smoothed) - np.log(smoothed.sum(axis=0)), np.log((n + 0.5) / (n + 0.5).sum())


class LeftOutAnswers(NamedTuple):
    """Answers to labelled texts by a candidate that has not learned them."""

    candidate: TokenCandidate
    exponent: float
    log_probabilities: Array  # (texts, classes)

    def find_losses(self, group: Array) -> Array:
        """(texts,): the log loss of each text."""
        return -self.log_probabilities[np.arange(len(group)), group]


def leave_out_folds(texts: MarkedTexts, candidate: TokenCandidate, fold: Array) -> LeftOutAnswers:
    """Answer each labelled text by the candidate without its fold."""
    scores = np.empty((len(texts.group), texts.n_classes))
    for k in range(int(fold.max()) + 1):
        table, shares = estimate_tokens(texts, candidate, np.flatnonzero(fold != k))
        out = np.flatnonzero(fold == k)
        scores[out] = texts.labelled[out] @ table + shares
    exponent, _ = choose_exponent(scores, texts.group)
    return LeftOutAnswers(candidate, exponent, log_normalise(exponent * scores))


def assign_text_folds(group: Array) -> Array:
    """(texts,): the fold of each text; the texts of each class, in the order given, are dealt to the folds in turn."""
    smallest = np.bincount(group)[np.unique(group)].min()
    folds, fold = max(2, min(MAX_FOLDS, int(smallest))), np.empty(len(group), dtype=np.int64)
    for c in np.unique(group):
        own = np.flatnonzero(group == c)
        fold[own] = np.arange(len(own)) % folds
    return fold


def answer_by_candidates(texts: MarkedTexts, fold: Array) -> Iterator[LeftOutAnswers]:
    """Yield the left-out answers of all candidates; the strength of the shares is chosen without other texts."""
    with limit_blas_threads():
        for scaled in (False, True):
            read = texts.read(scaled)
            by_strength = [
                leave_out_folds(read, TokenCandidate(scaled, strength), fold)
                for strength in (SCALED_STRENGTHS if scaled else SHOWN_STRENGTHS)
            ]
            best = min(by_strength, key=lambda answers: float(answers.find_losses(texts.group).mean()))
            for alone in (leave_out_folds(read, TokenCandidate(scaled, 0.0), fold), best):
                yield alone
                for weight in WEIGHTS if texts.others.shape[0] else ():
                    yield leave_out_folds(read, alone.candidate._replace(weight=weight), fold)


@dataclass(frozen=True, eq=False)
class TokenTable:
    """A chosen candidate, estimated from all texts."""

    features: TokenFeatures
    idf: Array | None  # (tokens,), if tokens are scaled
    table: Array  # (tokens, classes)
    log_shares: Array  # (classes,)
    exponent: float

    @classmethod
    def of(cls, texts: MarkedTexts, features: TokenFeatures, answers: LeftOutAnswers) -> TokenTable:
        """Estimate a candidate from all texts."""
        read = texts.read(answers.candidate.scaled)
        with limit_blas_threads():
            table, shares = estimate_tokens(read, answers.candidate, np.arange(len(texts.group)))
        return cls(features, texts.find_idf() if answers.candidate.scaled else None, table, shares, answers.exponent)

    def log_probabilities(self, bags: TokenBags, vocabulary: Vocabulary) -> Array:
        """(texts, classes): log p(c | text)."""
        rows = mark_tokens(self.features, bags, vocabulary)
        scores = (rows if self.idf is None else scale_rows(rows, self.idf)) @ self.table
        return log_normalise(self.exponent * (scores + self.log_shares))


def mark_tokens(features: TokenFeatures, bags: TokenBags, vocabulary: Vocabulary) -> SparseTexts:
    """(texts, tokens): 1 for each token of a text."""
    rows = features.encode(bags, vocabulary)
    shape = len(bags), len(features)
    return scipy.sparse.csr_array((np.ones(len(rows.indices)), rows.indices, rows.ends), shape=shape)


def choose_shared_tokens(labelled: TokenBags, others: TokenBags) -> TokenFeatures:
    """The tokens (or buckets) that at least two texts show, with or without label."""
    both = labelled.append(others).drop_absent_tokens()
    shown, none = np.bincount(both.ids, minlength=len(both.ends)), np.zeros(0, dtype=np.int64)
    if not len(both.ends):  # hashed
        return TokenFeatures(both.arena, both.ends, np.flatnonzero(shown >= MIN_FEATURE_COUNT), none)
    return TokenFeatures.of(
        TokenCounts(np.array([float(len(both))]), both.arena, both.ends, shown[:, None].astype(float))
    )
