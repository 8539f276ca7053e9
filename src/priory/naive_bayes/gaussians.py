"""Normal distributions in every class: of each column by itself (naive Bayes), and of whole rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, cast

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import solve_triangular
from scipy.special import gammaln
from sklearn.utils import Tags

from priory.core.column_kernels import score_gaussian
from priory.core.exact_sums import ExactSums
from priory.core.logspace import LOG_TWO_PI
from priory.core.sharding import score_shards
from priory.core.statistics import register_estimator
from priory.errors import DataError
from priory.estimators.label_encoding import convert_to_numpy
from priory.estimators.learned_classifier import LearnedClassifier, find_classifier_fault
from priory.estimators.sklearn_compat import device, get_namespace
from priory.families.base import nan_where_zero
from priory.families.gaussian import MAX_ABS_Z, Gaussian
from priory.families.moments import Moments, Scatter
from priory.learning.row_kind import Purpose
from priory.model.model_statistics import ModelStatistics
from priory.naive_bayes import array_rows
from priory.naive_bayes.array_rows import ArrayBatch, Matrix

MAX_VARIANCE_RATIO = 1000.0  # smoothing ignores how much wider than this (in variance) another column is
MIN_VARIANCE_SHARE = 1e-9  # of a column's variance: the least variance of a class, even if it shows one value only
MIN_VARIANCE = 1e-300  # in units squared: the precision of anything narrower is infinite


class GaussianModel(array_rows.ArrayModel):
    """``x_j | c ~ N(theta_cj, var_cj)``."""

    @property
    def moments(self) -> Moments:
        """The sufficient statistics: n, sums and sums of squares."""
        moments: Moments = self.statistics.parts[0]
        return moments

    def variances(self) -> Array:
        """The variance of each class and column, smoothing included."""
        moments = self.moments
        with np.errstate(over="ignore"):
            return np.maximum(moments.variances(), 0.0) + self.compute_smoothing() * moments.units() ** 2

    def largest_smoothing(self) -> float:
        """``var_smoothing * largest variance``: the largest number that is added to a variance."""
        with np.errstate(over="ignore"):
            return float(self.parameters.var_smoothing * _total_variance(self.moments).max())

    def compute_smoothing(self) -> Array:
        """(columns,): the number added to the variances of each column, in units squared."""
        moments, unit = self.moments, self.moments.units()
        # units are powers of two, so that squares of 1e200 do not overflow; all arrays are (columns,)
        variance, scale = _total_variance(moments, moments.find_exponents()), np.maximum(unit / unit.max(), 2.0**-450)
        # the largest variance of all columns, in the units of each column
        largest = (variance * scale**2).max() / scale**2
        smallest = np.where(variance > 0, np.minimum(largest, MAX_VARIANCE_RATIO * variance), largest)
        return np.asarray(self.parameters.var_smoothing * smallest)

    def log_joint(self, cells: Matrix) -> Array:
        array_rows.check_finite(cells)
        centre, precision, constant = self.density_parameters()
        # the prior is added to the constant of the first column: (classes, columns)
        constant = np.insert(constant[:, 1:], 0, constant[:, 0] + self.log_prior(), axis=1)
        parameters = self.moments.units(), centre, precision, constant
        if isinstance(cells, np.ndarray):
            return score_gaussian(cells, *parameters)
        return np.concatenate(
            [score_gaussian(block.toarray(), *parameters) for block in array_rows.split_sparse_rows(cells)]
        )

    def density_parameters(self) -> tuple[Array, Array, Array]:
        """Centre and precision in units, and the logarithm of the density at the centre: (classes, columns) each."""
        return self.statistics.derive("densities", lambda _: self._compute_densities(), self.parameters.var_smoothing)

    def _compute_densities(self) -> tuple[Array, Array, Array]:
        moments, exponent = self.moments, self.moments.find_exponents()
        variance = np.maximum(moments.variances(exponent), 0.0) + self.compute_smoothing()
        variance = np.where(variance > MIN_VARIANCE, variance, MIN_VARIANCE_SHARE * _total_variance(moments, exponent))
        # a class without rows, and a column with one value in all rows, give no evidence
        defined = (variance > MIN_VARIANCE) & (moments.n > 0)
        variance = np.where(defined, variance, 1.0)
        height = -0.5 * (LOG_TWO_PI + np.log(variance)) - np.log(moments.units())
        return np.nan_to_num(moments.means(exponent)), defined / variance, defined * height


@dataclass(frozen=True, eq=False)
class GaussianRows(array_rows.ArrayRows):
    """Rows of numbers, in any array library that scikit-learn is configured to accept."""

    estimator = "GaussianNB"
    records = (Moments,)
    model_class = GaussianModel

    kind: Array | None = field(default=None, kw_only=True)  # an empty array of the library and precision of the rows

    @property
    def attributes(self) -> dict[str, Any]:
        known = super().attributes
        return known | {"_kind": self.kind} if known else known

    def with_attributes(self, attributes: Mapping[str, Any]) -> Self:
        return replace(super().with_attributes(attributes), kind=attributes.get("_kind"))

    def check(self) -> None:
        smoothing = self.parameters.var_smoothing
        if not 0 <= smoothing < np.inf:
            raise DataError(f"var_smoothing is {smoothing!r}; it must be finite and not negative.")

    def read(self, X: object, purpose: Purpose, learned: ModelStatistics | None = None) -> tuple[Self, ArrayBatch]:
        rows, x = self.validate(X, purpose == "fit")
        cells: Any = x.data if sparse.issparse(x) else x  # type: ignore[attr-defined]
        if purpose == "fit":
            rows = replace(rows, kind=empty_like(cells))
        elif find_array_library(cells) != find_array_library(kind := self.attributes["_kind"]):
            methods = ", ".join(f"GaussianNB.{name}()" for name in ("predict", "predict_proba", "predict_log_proba"))
            libraries = [" on ".join(find_array_library(one)) for one in (cells, kind)]
            given = f"given {libraries[0]}, fitted on {libraries[1]}"
            raise DataError(f"{methods} and all others must use the same namespace and device as fit: {given}.")
        return rows, ArrayBatch(x if sparse.issparse(x) else np.asarray(convert_to_numpy(x)))

    def count_records(self, cells: Matrix, n: Array, group: Array, weight: Array | None) -> tuple[Moments]:
        if not isinstance(cells, np.ndarray):
            array_rows.check_finite(cells)
            return (array_rows.observe_sparse_moments(cells, group, weight, len(n)),)
        try:
            moments = Gaussian().observe(cells, group, len(n), weight)
        except DataError:
            array_rows.raise_not_finite(cells)
            raise
        # Missing cells are not counted, which shows in n. Rows of weight 0 are never counted: look at their cells.
        if weight is not None or (moments.n != n[:, None]).any():
            array_rows.check_finite(cells)
        return (moments,)


@register_estimator(required=("statistics_", "n_features_in_", "_kind"), find_fault=find_classifier_fault)
@dataclass(eq=False, repr=False, kw_only=True)
class GaussianNB(LearnedClassifier):
    """Naive Bayes for numbers: ``x_j | c ~ N(theta_cj, var_cj)``.

    To the variances of column j, ``var_smoothing * min(largest variance, 1000 * variance of column j)`` is added, where
    both variances are those over all rows. scikit-learn adds ``var_smoothing * largest variance`` to all of them, so
    that one wide column blurs all the others. If the variances of the columns are within a factor of 1000, the two are
    the same.

    The cells of a sparse matrix that are not stored are zeros.

    Parameters
    ----------
    priors : array-like of shape (n_classes,), optional
        The probability of each class, in the order of ``classes_``. By default their shares of the rows.
    var_smoothing : float
        The share of the largest variance that is added to all variances.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    class_count_ : ndarray of shape (n_classes,)
        The weight of the rows learned of each class.
    class_prior_ : ndarray of shape (n_classes,)
        The probability of each class.
    theta_ : ndarray of shape (n_classes, n_columns)
        The mean of each class and column.
    var_ : ndarray of shape (n_classes, n_columns)
        The variance of each class and column, smoothing included.
    epsilon_ : float
        The largest number that is added to a variance.
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
    T. F. Chan, G. H. Golub and R. J. LeVeque (1983). Algorithms for computing the sample variance: analysis and
    recommendations. The American Statistician 37, 242-247.

    Examples
    --------
    >>> model = GaussianNB().fit([[1.0], [3.0], [10.0], [14.0]], ["low", "low", "high", "high"])
    >>> model.theta_.ravel().tolist(), model.var_.ravel().round(4).tolist()
    ([12.0, 2.0], [4.0, 1.0])
    """

    _kind: Array = field(init=False)  # in model files
    _rows_class = GaussianRows

    priors: ArrayLike | None = None
    var_smoothing: float = 1e-9

    # -- attributes, in the library and precision of the array that the model was fitted on ----------------------

    def _convert_attribute(self, value: Array) -> Array:
        with np.errstate(over="ignore"):
            return convert_like(value, self._find_attribute("_kind"))

    @property
    def class_count_(self) -> Array:
        """The weight of the rows learned of each class."""
        return self._convert_attribute(self.statistics_.n)

    @property
    def class_prior_(self) -> Array:
        """p(c)."""
        return self._convert_attribute(np.exp(self._learned().model().log_prior()))

    @property
    def theta_(self) -> Array:
        """The mean of each class and column."""
        return self._convert_attribute(np.nan_to_num(self._learned().model().moments.means()))

    @property
    def var_(self) -> Array:
        """The variance of each class and column, smoothing included."""
        return self._convert_attribute(self._learned().model().variances())

    @property
    def epsilon_(self) -> float:
        """``var_smoothing * largest variance``: the largest number that is added to a variance."""
        return float(self._learned().model().largest_smoothing())

    # -- answering -----------------------------------------------------------------------------------------------

    def predict_joint_log_proba(self, X: object) -> Array:
        """log p(c, x) for each row and class."""
        return convert_like(super().predict_joint_log_proba(X), X)

    def predict_log_proba(self, X: object) -> Array:
        """The logarithm of p(c | x) for each row and class."""
        log_posterior = super().predict_log_proba(X)
        if is_single_precision(X):  # a probability that is 1 in single precision has the logarithm 0
            log_posterior[log_posterior > -(2.0**-25)] = 0.0
        return convert_like(log_posterior, X)

    def predict_proba(self, X: object) -> Array:
        """p(c | x) for each row and class."""
        return convert_like(super().predict_proba(X), X)

    def predict(self, X: object) -> Array:
        """The most probable class of each row."""
        return convert_like(super().predict(X), X, labels=True)

    @staticmethod
    def _update_mean_variance(
        n_past: float, mu: Array, var: Array, X: Array, sample_weight: Array | None = None
    ) -> tuple[Array, Array]:
        """Update mean and variance by more rows, as a sum of statistics; scikit-learn's tests call it."""
        if not len(X):
            return mu, var
        more = Gaussian().observe(X, weight=sample_weight)
        n, mean, variance = (np.broadcast_to(np.asarray(v, dtype=float), more.n.shape) for v in (n_past, mu, var))
        # sum of squares = n variance + n mean²
        second = ExactSums.from_products(n, variance) + ExactSums.from_products(n, mean, mean)
        past = Moments(n, ExactSums.from_floats(n), ExactSums.from_products(n, mean), second)
        return Gaussian().ml(past + more)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        tags.input_tags.sparse = True
        return tags


def _total_variance(moments: Moments, exponent: Array | int = 0) -> Array:
    """(columns,): the variance over all rows, in units of ``2 ** (2 * exponent)``."""
    return np.maximum(moments.pool_classes().variances(exponent)[0], 0.0)


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


class GaussianBayesModel(array_rows.ArrayModel):
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


class GaussianBayesRows(array_rows.ArrayRows):
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
        array_rows.check_finite(x)
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
    white = array_rows.map_pieces(lambda piece: piece @ whiten.T, near, whiten.size)
    return np.asarray(np.einsum("ij,ij->i", white, white))


# -- arrays of other libraries, such as PyTorch, if scikit-learn is configured to accept them (array API dispatch) ----


def empty_like(x: Array) -> Array:
    """Make an empty array of the library of ``x``, float32 or float64, as a template for attributes."""
    xp, is_foreign = get_namespace(x)
    if not is_foreign:
        return np.zeros(0, dtype=np.float32 if x.dtype == np.float32 else np.float64)
    dtype = x.dtype if xp.isdtype(x.dtype, "real floating") else xp.float64
    return cast(Array, xp.zeros(0, dtype=dtype, device=device(x)))


def find_array_library(x: Array) -> tuple[str, ...]:
    """Name the library of an array and, unless it is NumPy, its device."""
    xp, is_foreign = get_namespace(x)
    return (xp.__name__, str(device(x))) if is_foreign and not isinstance(x, np.ndarray) else ("numpy",)


def is_single_precision(x: object) -> bool:
    """Whether an array of any library is float32."""
    return str(getattr(x, "dtype", "")).endswith("float32")


def convert_like(answer: Array, template: object, labels: bool = False) -> Array:
    """Convert the answer to the library, device and precision of ``template``; labels keep their type."""
    xp, is_foreign = get_namespace(template) if hasattr(template, "dtype") else (np, False)
    if not is_foreign or not hasattr(template, "dtype"):
        return answer.astype(np.float32) if is_single_precision(template) and not labels else answer
    if answer.dtype.kind in "OUS":
        return answer
    keeps_precision = not labels and xp.isdtype(template.dtype, "real floating")
    dtype = template.dtype if keeps_precision else None
    return cast(Array, xp.asarray(answer, dtype=dtype, device=device(template)))
