"""The multivariate Bayes classifier: whole rows, with all their correlations."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln

from priory.core.registration import register_estimator
from priory.core.sharding import score_shards, split_rows
from priory.core.typing import Array
from priory.errors import DataError
from priory.families.base import nan_where_zero
from priory.families.gaussian import LOG_TWO_PI, MAX_ABS_Z, MIN_VARIANCE_SHARE
from priory.families.multivariate_gaussian import MultivariateGaussian, Scatter
from priory.naive_bayes.conjugate import ConjugateClassifier
from priory.naive_bayes.discrete import MAX_MULTIPLICATIONS_AT_ONCE
from priory.naive_bayes.input_checks import check_finite

PLACEHOLDER_PRIOR = MultivariateGaussian(
    location=0.0, strength=1.0, degrees=1.0, scale=1.0
)  # what is observed needs no prior


@register_estimator(records=(Scatter,))
class GaussianBayes(ConjugateClassifier):
    """``x | c ~ N(mean_c, covariance_c)`` for whole rows: Bayes without the naive assumption.

    Parameters
    ----------
    covariance : "class" or "shared"
        One for each class (quadratic borders), or one for all (linear borders).
    estimate : "predictive", "mean" or "ml"
        Mean and covariance integrated out under a normal-inverse-Wishart prior worth one row, or a point estimate.
    priors : one probability for each class, optional

    Examples
    --------
    >>> rows = [[0.0, 0.0], [2.0, 2.0], [4.0, 4.0], [2.0, 0.0]]
    >>> model = GaussianBayes(estimate="ml").fit(rows, ["a", "a", "a", "a"])
    >>> model.theta_.tolist(), model.covariance_.round(6).tolist()
    ([[2.0, 1.5]], [[[2.0, 2.0], [2.0, 2.75]]])
    """

    _allowed_estimates: ClassVar[tuple[str, ...]] = ("predictive", "mean", "ml")

    def __init__(self, *, covariance: str = "class", estimate: str = "predictive", priors: Any = None) -> None:
        self.covariance = covariance
        self.estimate = estimate
        self.priors = priors

    def _read(self, X: Any, reset: bool) -> Array:
        if self.covariance not in ("class", "shared"):
            raise DataError(f"covariance is {self.covariance!r}; use 'class' or 'shared'.")
        x = super()._read(X, reset)
        check_finite(x)
        return x

    def _observe_records(self, table: Array, n: Array, group: Array, weight: Array | None) -> tuple[Scatter]:
        def observed(part: slice) -> Scatter:
            return PLACEHOLDER_PRIOR.observe(table[part], group[part], len(n), None if weight is None else weight[part])

        return (reduce(add, map(observed, split_rows(len(table)))),)

    # -- what was learned ----------------------------------------------------------------------------------------

    def _scatter(self) -> Scatter:
        scatter: Scatter = self._fitted_statistics().parts[0]
        return scatter

    def _posterior(self) -> MultivariateGaussian:
        """What is believed of each class; a shared covariance has learned from all of them."""
        scatter = self._scatter()
        prior = MultivariateGaussian.empirical_prior(scatter)
        belief = prior + scatter
        if self.covariance == "class":
            return belief
        together = prior.scale + (belief.scale - prior.scale).sum(axis=0)
        return replace(
            belief,
            degrees=np.full(len(scatter.n), prior.degrees + scatter.n.sum()),
            scale=np.broadcast_to(together, belief.scale.shape),
        )

    def _mean_and_covariance(self) -> tuple[Array, Array]:
        """Mean and covariance of each class, in units; NaN where nothing was seen."""
        scatter = self._scatter()
        if self.estimate != "ml":
            belief = self._posterior()
            left = nan_where_zero(np.asarray(belief.degrees) - len(scatter.unit) - 1)
            return np.asarray(belief.location), np.asarray(belief.scale / left[:, None, None])
        spread, n = scatter.scatter_matrix(), scatter.n
        if self.covariance == "shared":
            spread, n = np.broadcast_to(spread.sum(axis=0), spread.shape), np.full(len(n), n.sum())
        return scatter.mean(), spread / nan_where_zero(n)[:, None, None]

    @property
    def theta_(self) -> Array:
        """The mean of each class."""
        return np.asarray(self._mean_and_covariance()[0] * self._scatter().unit)

    @property
    def covariance_(self) -> Array:
        """The covariance of each class, or the one of all."""
        unit = self._scatter().unit
        covariance = self._mean_and_covariance()[1] * unit[:, None] * unit
        return covariance if self.covariance == "class" else covariance[0]

    # -- answering -----------------------------------------------------------------------------------------------

    def _log_joint(self, table: Array) -> Array:
        centre, whiten, power, constant = self.statistics_.derive(
            "bells", lambda _: self._density_parameters(), self.covariance, self.estimate
        )
        unit = self._scatter().unit

        def score(part: slice) -> Array:
            z = np.asarray(table[part], dtype=float) / unit
            distance = np.stack([_squared_distance(z - m, w) for m, w in zip(centre, whiten, strict=True)], axis=1)
            return constant - (power * np.log1p(distance) if self.estimate == "predictive" else 0.5 * distance)

        return score_shards(score, len(table), len(centre)) + self._log_prior()

    def _density_parameters(self) -> tuple[Array, Array, Array, Array]:
        """Centre, whitening matrix, power and constant of each class: a Student-t, or a Gaussian, in units."""
        unit, d = self._scatter().unit, len(self._scatter().unit)
        if self.estimate == "predictive":
            belief = self._posterior()
            strength = np.asarray(belief.strength)
            centre, spread = belief.location, belief.scale * ((strength + 1) / strength)[:, None, None]
            power = (belief.degrees + 1) / 2
            base = gammaln(power) - gammaln(power - d / 2) - d / 2 * np.log(np.pi)
        else:
            centre, spread = self._mean_and_covariance()
            floor = MIN_VARIANCE_SHARE * MultivariateGaussian.empirical_prior(self._scatter()).scale
            spread, power, base = spread + floor, np.zeros(len(centre)), np.full(len(centre), -d / 2 * LOG_TWO_PI)
        silent = np.isnan(spread).any(axis=(1, 2)) | np.isnan(centre).any(axis=1)
        spread = np.where(silent[:, None, None], np.eye(d), spread)
        root = self._cholesky(spread)
        log_det = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        whiten = np.stack([solve_triangular(r, np.eye(d), lower=True) for r in root])
        whiten[silent] = 0.0
        return np.nan_to_num(centre), whiten, power, np.where(silent, 0.0, base - log_det - np.log(unit).sum())

    def _cholesky(self, spread: Array) -> Array:
        try:
            return np.linalg.cholesky(spread)
        except np.linalg.LinAlgError:
            cause = "rows were forgotten that had never been learned, or a column is a sum of others"
            raise DataError(f"a covariance is not positive: {cause}.") from None


def _squared_distance(z: Array, whiten: Array) -> Array:
    """Squared distance from the centre, in the class's own measure."""
    near = np.clip(z, -MAX_ABS_Z, MAX_ABS_Z)
    step = max(
        64, MAX_MULTIPLICATIONS_AT_ONCE // whiten.size
    )  # BLAS on one core: the shards are on all of them already
    white = np.concatenate([near[i : i + step] @ whiten.T for i in range(0, max(len(near), 1), step)])
    return np.asarray(np.einsum("ij,ij->i", white, white))
