"""The multivariate Gaussian Bayes classifier: whole rows, with all their correlations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from scipy.special import gammaln

from priory.core.logspace import LOG_TWO_PI
from priory.core.sharding import score_shards
from priory.core.statistics import register_estimator
from priory.errors import DataError
from priory.estimators.learned_classifier import LearnedClassifier, find_classifier_fault
from priory.families.base import nan_where_zero
from priory.families.gaussian import MAX_ABS_Z
from priory.families.moments import Scatter
from priory.naive_bayes.array_rows import ArrayModel, ArrayRows, check_finite, map_pieces

COVARIANCE_ESTIMATES = ("predictive", "mean", "ml")
MIN_COVARIANCE_SHARE = 1e-9  # of a column's variance: added to all variances of a class


@dataclass(frozen=True, eq=False)
class NormalInverseWishart:
    """A belief about mean and covariance: ``μ | Σ ~ N(location, Σ/strength)``, ``Σ ~ IW(degrees, scale)``.

    Everything is in units of the columns. See Murphy (2007), section 8.
    """

    location: Array  # (columns,) or (classes, columns)
    strength: Array  # () or (classes,): virtual rows behind the location
    degrees: Array  # () or (classes,): degrees of freedom of Σ
    scale: Array  # (columns, columns) or (classes, columns, columns)

    @classmethod
    def empirical_prior(cls, statistics: Scatter) -> Self:
        """The pooled mean, with little weight, and uncorrelated columns with their variance within classes."""
        rows, classes, d = nan_where_zero(statistics.n.sum()), max((statistics.n > 0).sum(), 1), len(statistics.unit)
        pooled = statistics.pool_classes()
        # Variances (columns,) over all rows and within classes. ``total / classes**2`` keeps the latter positive where
        # every class has one row; ``some`` excludes constant columns.
        total = np.diagonal(pooled.scatter_matrix()[0]) / rows
        within = np.diagonal(statistics.scatter_matrix().sum(axis=0)) + total / classes**2
        within = within / np.maximum(rows - classes + 1, 1.0)
        some = np.isfinite(within) & (within > 0)
        strength = np.min(np.where(some, within, 1.0) / np.where(some, total, 1.0), initial=1.0)
        scale = np.diag(np.where(some, within, 1.0))
        return cls(np.nan_to_num(pooled.mean()[0]), np.asarray(strength), np.asarray(d + 1.0), scale)

    def __add__(self, statistics: Scatter) -> Self:
        # The scatter about the class mean, plus the outer product of how far that mean is from the prior's location.
        # n is (classes, 1), mean and off (classes, columns), pull (classes, columns, columns).
        n = statistics.n[:, None]
        mean = np.where(n > 0, statistics.mean(), self.location)
        strength = self.strength + statistics.n
        off = mean - self.location
        pull = (statistics.n * self.strength / strength)[:, None, None] * off[:, :, None] * off[:, None, :]
        return type(self)(
            (self.strength * self.location + n * mean) / strength[:, None],
            strength,
            self.degrees + statistics.n,
            self.scale + statistics.scatter_matrix() + pull,
        )


class GaussianBayesModel(ArrayModel):
    """``x | c ~ N(mean_c, covariance_c)``."""

    @property
    def scatter(self) -> Scatter:
        """The sufficient statistics: n, sums and sums of products."""
        scatter: Scatter = self.statistics.parts[0]
        return scatter

    def _posterior(self) -> NormalInverseWishart:
        """The posterior of each class; a shared covariance learns from all classes."""
        scatter = self.scatter
        prior = NormalInverseWishart.empirical_prior(scatter)
        belief = prior + scatter
        if self.parameters.covariance == "class":
            return belief
        scale = belief.scale
        # (columns, columns): the prior's scale once, plus the scatter of every class
        pooled = prior.scale + (scale - prior.scale).sum(axis=0)
        return replace(
            belief,
            degrees=np.full(len(scatter.n), prior.degrees + scatter.n.sum()),
            scale=np.broadcast_to(pooled, scale.shape),
        )

    def mean_and_covariance(self) -> tuple[Array, Array]:
        """Mean and covariance of each class, in units of the columns; NaN for a class without rows."""
        scatter = self.scatter
        if self.parameters.estimate != "ml":
            belief = self._posterior()
            # mean of an inverse Wishart: scale / (degrees - columns - 1)
            left = nan_where_zero(belief.degrees - len(scatter.unit) - 1)
            return belief.location, np.asarray(belief.scale / left[:, None, None])
        spread, n = scatter.scatter_matrix(), scatter.n
        if self.parameters.covariance == "shared":
            spread, n = np.broadcast_to(spread.sum(axis=0), spread.shape), np.full(len(n), n.sum())
        return scatter.mean(), spread / nan_where_zero(n)[:, None, None]

    def log_joint(self, cells: Array) -> Array:
        centre, whiten, power, constant = self.statistics.derive(
            "densities", lambda _: self._density_parameters(), self.parameters.covariance, self.parameters.estimate
        )
        unit = self.scatter.unit

        def score(part: slice) -> Array:
            z = np.asarray(cells[part], dtype=float) / unit
            # (rows, classes): squared Mahalanobis distances
            distance = np.stack([_squared_distance(z - m, w) for m, w in zip(centre, whiten, strict=True)], axis=1)
            return constant - (
                power * np.log1p(distance) if self.parameters.estimate == "predictive" else 0.5 * distance
            )

        return score_shards(score, len(cells), len(centre)) + self.log_prior()

    def _density_parameters(self) -> tuple[Array, Array, Array, Array]:
        """Centre, whitening matrix, power and constant of each class: a Student-t or a Gaussian, in units.

        Their shapes are (classes, columns), (classes, columns, columns), (classes,) and (classes,).
        """
        unit, d = self.scatter.unit, len(self.scatter.unit)
        if self.parameters.estimate == "predictive":
            belief = self._posterior()
            # multivariate Student-t with degrees - columns + 1 degrees of freedom
            strength = belief.strength
            centre, spread = belief.location, belief.scale * ((strength + 1) / strength)[:, None, None]
            power = (belief.degrees + 1) / 2
            base = gammaln(power) - gammaln(power - d / 2) - d / 2 * np.log(np.pi)
        else:
            centre, spread = self.mean_and_covariance()
            floor = MIN_COVARIANCE_SHARE * NormalInverseWishart.empirical_prior(self.scatter).scale
            spread, power, base = spread + floor, np.zeros(len(centre)), np.full(len(centre), -d / 2 * LOG_TWO_PI)
        # (classes,): classes without rows, which get no evidence
        silent = np.asarray(np.isnan(spread).any(axis=(1, 2)) | np.isnan(centre).any(axis=1))
        spread = np.where(silent[:, None, None], np.eye(d), spread)
        # spread = root rootᵀ and whiten = root⁻¹, so |whiten z|² is the distance and the determinant a product
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


class GaussianBayesRows(ArrayRows):
    """Rows of numbers, modelled jointly."""

    estimator = "GaussianBayes"
    records = (Scatter,)
    model_class = GaussianBayesModel
    takes_sparse = False

    def check(self) -> None:
        if self.parameters.covariance not in ("class", "shared"):
            raise DataError(f"covariance is {self.parameters.covariance!r}; use 'class' or 'shared'.")
        if self.parameters.estimate not in COVARIANCE_ESTIMATES:
            raise DataError(f"estimate is {self.parameters.estimate!r}; use one of {', '.join(COVARIANCE_ESTIMATES)}.")

    def convert(self, x: Array) -> Array:
        check_finite(x)
        return x

    def count_records(self, cells: Array, n: Array, group: Array, weight: Array | None) -> tuple[Scatter]:
        return (Scatter.of(cells, group, len(n), weight),)


@register_estimator(find_fault=find_classifier_fault)
@dataclass(eq=False, repr=False, kw_only=True)
class GaussianBayes(LearnedClassifier):
    """``x | c ~ N(mean_c, covariance_c)`` for whole rows: a Bayes classifier without the naive assumption.

    Parameters
    ----------
    covariance : {"class", "shared"}
        One covariance for each class (quadratic decision boundaries), or one for all (linear boundaries).
    estimate : {"predictive", "mean", "ml"}
        Whether mean and covariance are integrated out ("predictive") under a normal-inverse-Wishart prior with the
        weight of one row, or which point estimate of them is used.
    priors : array-like of shape (n_classes,), optional
        The probability of each class, in the order of ``classes_``. By default their shares of the rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    class_count_ : ndarray of shape (n_classes,)
        The weight of the rows learned of each class.
    class_prior_ : ndarray of shape (n_classes,)
        The probability of each class.
    theta_ : ndarray of shape (n_classes, n_columns)
        The mean of each class.
    covariance_ : ndarray of shape (n_classes, n_columns, n_columns) or (n_columns, n_columns)
        The covariance of each class, or the shared one.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of shape (n_columns,)
        The names of the columns, if ``fit`` was given a table with names.
    statistics_ : ModelStatistics
        Everything that was learned; all other attributes are computed from it.
    clock_ : float
        The product of all factors given to ``decay``; 1.0 if there were none.

    References
    ----------
    K. P. Murphy (2007). Conjugate Bayesian analysis of the Gaussian distribution. Technical report, University of
    British Columbia.

    Examples
    --------
    >>> rows = [[0.0, 0.0], [2.0, 2.0], [4.0, 4.0], [2.0, 0.0]]
    >>> model = GaussianBayes(estimate="ml").fit(rows, ["a", "a", "a", "a"])
    >>> model.theta_.tolist(), model.covariance_.round(6).tolist()
    ([[2.0, 1.5]], [[[2.0, 2.0], [2.0, 2.75]]])
    """

    _rows_class = GaussianBayesRows

    covariance: str = "class"
    estimate: str = "predictive"
    priors: ArrayLike | None = None

    @property
    def theta_(self) -> Array:
        """The mean of each class."""
        model: GaussianBayesModel = self._learned().model()
        return np.asarray(model.mean_and_covariance()[0] * model.scatter.unit)

    @property
    def covariance_(self) -> Array:
        """The covariance of each class, or the shared one."""
        model: GaussianBayesModel = self._learned().model()
        unit = model.scatter.unit
        with np.errstate(over="ignore"):  # the square of 1e300 is infinite
            covariance = model.mean_and_covariance()[1] * unit[:, None] * unit
        return covariance if self.covariance == "class" else np.asarray(covariance[0])


def _squared_distance(z: Array, whiten: Array) -> Array:
    """The squared Mahalanobis distance of each row of ``z`` (rows, columns) from the centre: (rows,)."""
    near = np.clip(z, -MAX_ABS_Z, MAX_ABS_Z)
    white = map_pieces(lambda piece: piece @ whiten.T, near, whiten.size)
    return np.asarray(np.einsum("ij,ij->i", white, white))
