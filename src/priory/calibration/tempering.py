"""Tempering: how much of what each part of a model says is to be believed.

Naive Bayes counts evidence that repeats itself as if it were new, so its probabilities sit at 0 and 1. The cure is one
weight for each part (a column, a text, the class prior), and for texts an exponent of their length:

    log p(c | x)  =  Σ_b  w_b len_b(x)^(-g_b) log p(x_b | c)  -  log Z

The belief about weights and exponents is a Gaussian. Before the data all weights are near a common one, that is near 1,
and exponents are near 0: the plain model. Each row that was judged without having been learned adds its information:

    precision  =  prior precision  +  Σ_rows information(row)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from priory.bag_of_words.documents import count_code_points
from priory.core.logspace import log_normalise
from priory.core.optimize import minimise_lbfgs
from priory.core.registration import register_record
from priory.core.typing import Array

TEMPERING_PRIOR_STRENGTHS = (1000.0, 30.0, 1.0)  # how near the weights are to their common one
MIN_TEXT_LETTERS = 50  # letters
MIN_RELATIVE_LOG_LIKELIHOOD = -1e4  # what is called impossible may still be true


def measure_text_lengths(texts: Any) -> Array:
    """In thousands of letters, so that a weight keeps its meaning; a few words are not believed more for being few."""
    return np.maximum(count_code_points(texts), MIN_TEXT_LETTERS) / 1000


@dataclass(frozen=True, eq=False)
class EvidenceTerms:
    """What each part of a model says of some rows: log p(x_b | c), the first part being the class prior."""

    values: Array  # (rows, classes, parts)
    lengths: Array  # (rows, parts): the tokens of a text, one for everything else

    def __getitem__(self, rows: Array) -> EvidenceTerms:
        return EvidenceTerms(self.values[rows], self.lengths[rows])

    @property
    def log_joint(self) -> Array:
        """Naive Bayes: their sum."""
        return np.asarray(self.values.sum(axis=2))

    @cached_property
    def relative_to_best(self) -> Array:
        """Each part less what it says of its best class, and never that anything is impossible."""
        best = self.values.max(axis=1, keepdims=True)
        return np.maximum(self.values - np.where(np.isfinite(best), best, 0.0), MIN_RELATIVE_LOG_LIKELIHOOD)


@register_record("Tempering")
@dataclass(frozen=True, eq=False)
class Tempering:
    """A Gaussian belief about (weights, exponents): its mean, and its precision."""

    weights: Array
    exponents: Array
    precision: Array

    @classmethod
    def prior(cls, parts: int, strength: float = 10.0) -> Tempering:
        """Weights with a common part N(1, 1) and deviations of precision ``strength``; exponents N(0, 1)."""
        together = np.full((parts, parts), strength**2 / (1 + strength * parts))
        precision = np.zeros((2 * parts, 2 * parts))
        precision[:parts, :parts] = strength * np.eye(parts) - together
        precision[parts:, parts:] = np.eye(parts)
        return cls(np.ones(parts), np.zeros(parts), precision)

    def logits(self, terms: EvidenceTerms) -> Array:
        """log p(c | x), up to what all classes of a row share."""
        return np.einsum("ncb,nb->nc", terms.relative_to_best, self.part_weights(terms.lengths))

    def part_weights(self, lengths: Array) -> Array:
        """How far each part of each row is believed."""
        return np.asarray(self.weights * lengths**-self.exponents)

    def update_belief(self, terms: EvidenceTerms, group: Array, weight: Array) -> Tempering:
        """The belief after rows whose terms were given by a model that had not seen them."""
        parts, rows = len(self.weights), np.arange(len(group))
        values = terms.relative_to_best - terms.relative_to_best.mean(axis=1, keepdims=True)
        logs = np.log(terms.lengths)
        mean = np.concatenate([self.weights, self.exponents])
        root = np.linalg.cholesky(self.precision)

        def at(z: Array) -> tuple[Array, Array, Array]:
            theta = mean + solve_triangular(root, z, trans="T", lower=True)
            shrink = np.exp(-logs * theta[parts:])
            return theta, shrink, log_normalise(np.einsum("ncb,nb->nc", values, shrink * theta[:parts]))

        def cost(z: Array) -> tuple[float, Array]:
            theta, shrink, answer = at(z)
            wrong = np.exp(answer)
            wrong[rows, group] -= 1
            by_part = np.einsum("nc,ncb->nb", wrong * weight[:, None], values) * shrink
            slope = np.concatenate([by_part.sum(axis=0), -theta[:parts] * (by_part * logs).sum(axis=0)])
            return float(0.5 * z @ z - weight @ answer[rows, group]), z + solve_triangular(root, slope, lower=True)

        best = minimise_lbfgs(cost, np.zeros(2 * parts), 200, exact=True)
        theta, shrink, answer = at(best)
        felt = np.concatenate([values * shrink[:, None], -values * (shrink * theta[:parts] * logs)[:, None]], axis=2)
        felt -= np.einsum("nc,ncb->nb", np.exp(answer), felt)[:, None]
        felt *= np.sqrt(np.exp(answer) * weight[:, None])[:, :, None]
        flat = felt.reshape(-1, 2 * parts)
        return replace(self, weights=theta[:parts], exponents=theta[parts:], precision=self.precision + flat.T @ flat)


class ChosenTempering(NamedTuple):
    """A tempering, and what it says of each row when it has not been fitted to that row."""

    tempering: Tempering
    out_of_fold: Array


def choose_tempering(terms: EvidenceTerms, group: Array, weight: Array, fold: Array) -> ChosenTempering:
    """The tempering of the strength that judges rows of another fold best; if in doubt, the stronger prior."""
    parts, rows = terms.values.shape[2], np.arange(len(group))
    if parts <= 2:  # three numbers fitted to many rows know none of them by heart
        few = Tempering.prior(parts).update_belief(terms, group, weight)
        return ChosenTempering(few, log_normalise(few.logits(terms)))
    answers, losses = [], []
    for strength in TEMPERING_PRIOR_STRENGTHS:
        prior, honest = Tempering.prior(parts, strength), np.empty(terms.values.shape[:2])
        for k in np.unique(fold):
            out = fold == k
            fitted = prior.update_belief(terms[~out], group[~out], weight[~out])
            honest[out] = log_normalise(fitted.logits(terms[out]))
        answers.append((strength, honest))
        losses.append(-honest[rows, group])
    strength, honest = answers[choose_simplest(losses, weight)]
    return ChosenTempering(Tempering.prior(parts, strength).update_belief(terms, group, weight), honest)


def choose_simplest(losses: list[Array], weight: Array) -> int:
    """The first whose mean loss is within half a standard error (of the difference) of the best."""
    best = int(np.argmin([weight @ loss for loss in losses]))
    for k, loss in enumerate(losses):
        worse = loss - losses[best]
        mean = np.average(worse, weights=weight)
        error = np.sqrt(np.average((worse - mean) ** 2, weights=weight) / weight.sum())
        if mean <= 0.5 * error or k == best:
            return k
    return best
