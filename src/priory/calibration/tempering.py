"""Tempering: how much weight each part of a model deserves.

Naive Bayes counts correlated evidence twice, so its probabilities are too close to 0 and 1. Tempering gives one weight
to each part (a column, a text, the class prior), and to texts an exponent of their length:

    log p(c | x)  =  Σ_b  w_b len_b(x)^(-g_b) log p(x_b | c)  -  log Z

The belief about weights and exponents is a Gaussian. A priori all weights are close to a common value near 1, and
exponents are near 0: the plain model. Each row that was judged without having been learned adds its information:

    precision  =  prior precision  +  Σ_rows information(row)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from priory.core.logspace import log_normalise
from priory.core.optimize import minimise_lbfgs
from priory.core.registration import register_record
from priory.core.typing import Array
from priory.errors import StaleModelError
from priory.models.evidence_terms import EvidenceTerms

MAX_WEIGHT, MAX_EXPONENT = 1e100, 100.0  # far above anything that is fitted; a weighted log likelihood stays finite
TEMPERING_PRIOR_STRENGTHS = (1000.0, 30.0, 1.0)  # precision of the weights about their common value


@register_record("Tempering", axes={"weights": "b", "exponents": "b", "precision": "qq"})
@dataclass(frozen=True, eq=False)
class Tempering:
    """A Gaussian belief about (weights, exponents): its mean, and its precision."""

    weights: Array  # (parts,)
    exponents: Array  # (parts,)
    precision: Array  # (2 parts, 2 parts)

    def find_fault(self) -> str | None:
        if len(self.precision) != 2 * len(self.weights):
            return "its precision is not that of its weights and exponents"
        if np.abs(self.weights).max(initial=0.0) > MAX_WEIGHT or np.abs(self.exponents).max(initial=0.0) > MAX_EXPONENT:
            return "a weight or an exponent is too large"
        if (np.diagonal(self.precision) <= 0).any() or not np.allclose(self.precision, self.precision.T):
            return "its precision is not symmetric and positive"
        return None

    @classmethod
    def prior(cls, parts: int, strength: float = 10.0) -> Tempering:
        """Weights with a common part N(1, 1) and deviations of precision ``strength``; exponents N(0, 1)."""
        # Woodbury: the inverse of I / strength + 1 1^T
        common = np.full((parts, parts), strength**2 / (1 + strength * parts))
        precision = np.zeros((2 * parts, 2 * parts))
        precision[:parts, :parts] = strength * np.eye(parts) - common
        precision[parts:, parts:] = np.eye(parts)
        return cls(np.ones(parts), np.zeros(parts), precision)

    def logits(self, terms: EvidenceTerms) -> Array:
        """(rows, classes): log p(c | x), up to a term that all classes of a row share."""
        return np.einsum("ncb,nb->nc", terms.relative_to_best, self.part_weights(terms.lengths))

    def part_weights(self, lengths: Array) -> Array:
        """(rows, parts): the weight of each part of each row."""
        return np.asarray(self.weights * lengths**-self.exponents)

    def update_belief(self, terms: EvidenceTerms, group: Array, weight: Array) -> Tempering:
        """The belief after rows judged by a model that had not learned them: a Laplace approximation.

        The parameters are ``mean + L^-T z`` with the precision ``L L^T``: the prior of ``z`` is standard normal.
        """
        parts, rows = len(self.weights), np.arange(len(group))
        values = terms.relative_to_best - terms.relative_to_best.mean(axis=1, keepdims=True)  # (rows, classes, parts)
        logs = np.log(terms.lengths)
        mean = np.concatenate([self.weights, self.exponents])
        try:
            root = np.linalg.cholesky(self.precision)
        except np.linalg.LinAlgError:
            raise StaleModelError("the precision of the corrections is not positive; call refresh.") from None

        def evaluate_at(z: Array) -> tuple[Array, Array, Array]:
            theta = mean + solve_triangular(root, z, trans="T", lower=True)
            shrink = np.exp(-logs * theta[parts:])
            return theta, shrink, log_normalise(np.einsum("ncb,nb->nc", values, shrink * theta[:parts]))

        def cost(z: Array) -> tuple[float, Array]:
            theta, shrink, answer = evaluate_at(z)
            wrong = np.exp(answer)
            wrong[rows, group] -= 1
            by_part = np.einsum("nc,ncb->nb", wrong * weight[:, None], values) * shrink
            slope = np.concatenate([by_part.sum(axis=0), -theta[:parts] * (by_part * logs).sum(axis=0)])
            return float(0.5 * z @ z - weight @ answer[rows, group]), z + solve_triangular(root, slope, lower=True)

        best = minimise_lbfgs(cost, np.zeros(2 * parts), 200, exact=True)
        theta, shrink, answer = evaluate_at(best)
        # Fisher information: the derivatives of the logits, centred under the answer and weighted by it
        jacobian = np.concatenate(
            [values * shrink[:, None], -values * (shrink * theta[:parts] * logs)[:, None]], axis=2
        )
        jacobian -= np.einsum("nc,ncb->nb", np.exp(answer), jacobian)[:, None]
        jacobian *= np.sqrt(np.exp(answer) * weight[:, None])[:, :, None]
        flat = jacobian.reshape(-1, 2 * parts)
        return replace(self, weights=theta[:parts], exponents=theta[parts:], precision=self.precision + flat.T @ flat)


class ChosenTempering(NamedTuple):
    """A tempering, and the out-of-fold answers of such temperings."""

    tempering: Tempering
    out_of_fold: Array  # (rows, classes): log probabilities


def choose_tempering(terms: EvidenceTerms, group: Array, weight: Array, fold: Array) -> ChosenTempering:
    """The tempering with the prior strength of the best out-of-fold log loss; in case of doubt, the stronger prior."""
    parts, rows = terms.values.shape[2], np.arange(len(group))
    if parts <= 2:  # so few parameters cannot overfit many rows: no folds are needed
        few = Tempering.prior(parts).update_belief(terms, group, weight)
        return ChosenTempering(few, log_normalise(few.logits(terms)))
    answers, losses = [], []
    for strength in TEMPERING_PRIOR_STRENGTHS:
        prior, out_of_fold = Tempering.prior(parts, strength), np.empty(terms.values.shape[:2])
        for k in np.unique(fold):
            out = fold == k
            fitted = prior.update_belief(terms[~out], group[~out], weight[~out])
            out_of_fold[out] = log_normalise(fitted.logits(terms[out]))
        answers.append((strength, out_of_fold))
        losses.append(-out_of_fold[rows, group])
    strength, out_of_fold = answers[choose_simplest(losses, weight)]
    return ChosenTempering(Tempering.prior(parts, strength).update_belief(terms, group, weight), out_of_fold)


def choose_simplest(losses: list[Array], weight: Array) -> int:
    """The first candidate whose mean loss is within half a standard error (of the difference) of the best."""
    best = int(np.argmin([weight @ loss for loss in losses]))
    for k, loss in enumerate(losses):
        worse = loss - losses[best]
        mean = np.average(worse, weights=weight)
        error = np.sqrt(np.average((worse - mean) ** 2, weights=weight) / weight.sum())
        if mean <= 0.5 * error or k == best:
            return k
    return best
