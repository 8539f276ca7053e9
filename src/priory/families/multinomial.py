"""Multinomial: counts of tokens in documents, with a Dirichlet prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self, final

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core.column_kernels import sum_by_class
from priory.core.logspace import gammaln, log, x_log_y
from priory.core.statistics import Statistics, register_record
from priory.families import dirichlet
from priory.families.base import ArrayFamily, GroupedRows, nan_where_zero, register_family


@register_record("TokenCounts", axes={"n": "c", "tokens": "cd", "shares": "cd", "log_ways": "c"})
@dataclass(frozen=True, eq=False)
class MultinomialStatistics(Statistics):
    """Documents, occurrences of each token, and the sum over documents of the *share* of each token, per class.

    ``log_ways`` is the sum of the documents' log multinomial coefficients.
    """

    count_fields: ClassVar[tuple[str, ...]] = ("n", "tokens", "shares")

    n: Array  # (classes,)
    tokens: Array  # (classes, tokens)
    shares: Array  # (classes, tokens)
    log_ways: Array  # (classes,)


@register_family()
@final
@dataclass(frozen=True, eq=False)
class Multinomial(dirichlet.DirichletBelief, ArrayFamily[MultinomialStatistics, Array]):
    """Whole rows of counts: ``p(x) = P! Π θ_i^x_i / x_i!`` with ``θ ~ Dirichlet(alpha)``.

    Parameters
    ----------
    alpha : float or array of shape (classes, tokens)
        Virtual occurrences of each token.
    weigh : "tokens" or "documents"
        Estimate θ from all occurrences together, or as the mean of the documents' shares.

    Attributes
    ----------
    accepted_values : str
        The values that a column may hold, for error messages.

    References
    ----------
    McCallum, A. and Nigam, K. (1998). A comparison of event models for naive Bayes text classification.

    Examples
    --------
    >>> documents = [[2, 1, 0], [8, 0, 0], [0, 3, 1]]
    >>> Multinomial().ml(Multinomial().observe(documents)).round(4).tolist()
    [0.6667, 0.2667, 0.0667]
    >>> Multinomial(weigh="documents").ml(Multinomial().observe(documents)).round(4).tolist()
    [0.5556, 0.3611, 0.0833]
    """

    alpha: float | Array = 1.0
    weigh: Literal["tokens", "documents"] = "tokens"

    accepted_values: ClassVar[str] = "whole rows of counts"
    is_discrete: ClassVar[bool] = True
    whole_row_estimator: ClassVar[str] = "priory.naive_bayes.MultinomialNB or DocumentAverageNB"

    def observe(
        self, x: ArrayLike, group: Array | None = None, groups: int = 1, weight: Array | None = None
    ) -> MultinomialStatistics:
        x = np.asarray(x, dtype=float)
        rows = GroupedRows(x, group, groups)

        def sum_rows(y: Array) -> Array:
            return rows.reshape_sums(sum_by_class(y, rows.group, weight, rows.groups))

        def sum_classes(y: Array) -> Array:
            # one number for each document: a block of one column, (documents, 1) -> (classes, 1)
            total = sum_by_class(y[:, None], rows.group, weight, rows.groups)[:, 0]
            return total[0] if group is None else total

        # x is (documents, tokens). A document of length 0 has no shares: they are NaN here, and summed as zeros.
        length = x.sum(axis=1)
        shares = x / nan_where_zero(length)[:, None]
        ways = gammaln(length + 1) - gammaln(x + 1).sum(axis=1)
        return MultinomialStatistics(
            sum_classes(np.ones(len(x))), sum_rows(x), sum_rows(np.nan_to_num(shares)), sum_classes(ways)
        )

    def _select_counts(self, statistics: MultinomialStatistics) -> Array:
        return statistics.tokens if self.weigh == "tokens" else statistics.shares

    def posterior(self, statistics: MultinomialStatistics) -> Self:
        return type(self)(self.alpha + self._select_counts(statistics), self.weigh)

    @classmethod
    def empirical_prior(cls, statistics: MultinomialStatistics) -> Self:
        return cls(np.ones(statistics.tokens.shape[-1]))

    def ml(self, statistics: MultinomialStatistics) -> Array:
        counted = self._select_counts(statistics)
        return np.asarray(counted / nan_where_zero(counted.sum(axis=-1, keepdims=True)))

    def log_density(self, x: ArrayLike, parameters: Array) -> Array:
        """Log probability of documents (…, tokens), including the multinomial coefficient."""
        x = np.asarray(x, dtype=float)
        return x_log_y(x, log(parameters)).sum(axis=-1) + _log_coefficient(x)

    def log_predictive(self, x: ArrayLike) -> Array:
        """Log probability of documents (…, tokens) under the Dirichlet-multinomial (Pólya) distribution."""
        x, alpha = np.asarray(x, dtype=float), np.asarray(self.alpha)
        length, mass = x.sum(axis=-1), np.broadcast_to(alpha, np.broadcast_shapes(x.shape, alpha.shape)).sum(axis=-1)
        # Γ(A) / Γ(A + length) · Π Γ(alpha_i + x_i) / Γ(alpha_i), where A = Σ alpha_i; tokens are the last axis.
        drawn = (gammaln(alpha + x) - gammaln(alpha)).sum(axis=-1)
        return np.asarray(drawn + gammaln(mass) - gammaln(mass + length) + _log_coefficient(x))

    def log_evidence(self, statistics: MultinomialStatistics) -> Array:
        """Log evidence of the documents as bags of tokens, including the multinomial coefficients."""
        return dirichlet.log_evidence(np.asarray(self.alpha), statistics.tokens) + statistics.log_ways

    def n_parameters(self, statistics: MultinomialStatistics) -> int:
        return statistics.tokens.shape[-1] - 1

    def sample(self, parameters: Array, rng: np.random.Generator, size: int, length: int = 1) -> Array:
        return rng.multinomial(length, parameters, size=size).astype(float)


def _log_coefficient(x: Array) -> Array:
    return np.asarray(gammaln(x.sum(axis=-1) + 1) - gammaln(x + 1).sum(axis=-1))
