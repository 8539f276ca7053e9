"""Gaussian naive Bayes: every column has a normal distribution in every class."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import Tags

from priory.core.atomic_state import read_state
from priory.core.column_kernels import score_gaussian
from priory.core.exact_sums import ExactSums
from priory.core.logspace import LOG_TWO_PI
from priory.core.registration import register_estimator
from priory.core.typing import Array
from priory.errors import DataError
from priory.estimators.base import BaseClassifier
from priory.estimators.labels import convert_to_numpy
from priory.families.gaussian import Gaussian
from priory.families.moments import Moments
from priory.models.class_prior import check_class_probabilities
from priory.models.model_statistics import ModelStatistics
from priory.naive_bayes.array_libraries import convert_like, empty_like, find_array_library, is_single_precision
from priory.naive_bayes.input_checks import (
    Matrix,
    check_finite,
    count_classes,
    log_declared_prior,
    raise_not_finite,
    read_matrix,
)
from priory.naive_bayes.sparse_records import observe_sparse_moments, split_sparse_rows

MAX_VARIANCE_RATIO = 1000.0  # smoothing ignores how much wider than this (in variance) another column is
MIN_VARIANCE_SHARE = 1e-9  # of a column's variance: the least variance of a class, even if it shows one value only
MIN_VARIANCE = 1e-300  # in units squared: the precision of anything narrower is infinite


@register_estimator(required=("statistics_", "n_features_in_", "_kind"), records=(Moments,))
class GaussianNB(BaseClassifier[Matrix]):
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

    _kind: Array  # an empty array of the library and precision of the rows

    def __init__(self, *, priors: ArrayLike | None = None, var_smoothing: float = 1e-9) -> None:
        self.priors = priors
        self.var_smoothing = var_smoothing

    # -- learning ------------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        if not 0 <= self.var_smoothing < np.inf:
            raise DataError(f"var_smoothing is {self.var_smoothing!r}; it must be finite and not negative.")

    def _read(self, X: object, reset: bool) -> Matrix:
        self._check_parameters()
        x = read_matrix(self, X, reset)
        cells = x.data if sparse.issparse(x) else x
        if reset:
            self._kind = empty_like(cells)
        elif find_array_library(cells) != find_array_library(self._kind):
            methods = ", ".join(f"GaussianNB.{name}()" for name in ("predict", "predict_proba", "predict_log_proba"))
            libraries = [" on ".join(find_array_library(one)) for one in (cells, self._kind)]
            given = f"given {libraries[0]}, fitted on {libraries[1]}"
            raise DataError(f"{methods} and all others must use the same namespace and device as fit: {given}.")
        return x if sparse.issparse(x) else np.asarray(convert_to_numpy(x))

    def _observe(self, table: Matrix, classes: Array, group: Array, weight: Array | None) -> ModelStatistics:
        n = count_classes(group, weight, classes)
        if self.priors is not None:
            check_class_probabilities(self.priors, len(n))
        if not isinstance(table, np.ndarray):
            check_finite(table)
            return ModelStatistics(classes, n, (observe_sparse_moments(table, group, weight, len(n)),))
        try:
            moments = Gaussian().observe(table, group, len(n), weight)
        except DataError:
            raise_not_finite(table)
            raise
        # Missing cells are not counted, which shows in n. Rows of weight 0 are never counted: look at their cells.
        if weight is not None or (moments.n != n[:, None]).any():
            check_finite(table)
        return ModelStatistics(classes, n, (moments,))

    # -- what was learned ----------------------------------------------------------------------------------------

    def _moments(self) -> Moments:
        moments: Moments = self._fitted_statistics().parts[0]
        return moments

    def _convert_attribute(self, value: Array) -> Array:
        """The value in the library and precision of the array that the model was fitted on."""
        with np.errstate(over="ignore"):
            return convert_like(value, self._kind)

    @property
    def class_count_(self) -> Array:
        """The weight of the rows learned of each class."""
        return self._convert_attribute(self._fitted_statistics().n)

    @property
    def class_prior_(self) -> Array:
        """p(c)."""
        self._fitted_statistics()
        return self._convert_attribute(np.exp(self._log_prior()))

    @property
    def theta_(self) -> Array:
        """The mean of each class and column."""
        return self._convert_attribute(np.nan_to_num(self._moments().means()))

    @property
    def var_(self) -> Array:
        """The variance of each class and column, smoothing included."""
        moments = self._moments()
        with np.errstate(over="ignore"):
            return self._convert_attribute(
                np.maximum(moments.variances(), 0.0) + self._epsilon() * moments.units() ** 2
            )

    @property
    def epsilon_(self) -> float:
        """``var_smoothing * largest variance``: the largest number that is added to a variance."""
        moments = self._moments()
        with np.errstate(over="ignore"):
            return float(self.var_smoothing * _total_variance(moments).max())

    def _epsilon(self) -> Array:
        """The number that is added to the variances of each column, in units squared."""
        moments, unit = self._moments(), self._moments().units()
        variance, scale = _total_variance(moments, moments.find_exponents()), np.maximum(unit / unit.max(), 2.0**-450)
        largest = (variance * scale**2).max() / scale**2
        return self.var_smoothing * np.where(variance > 0, np.minimum(largest, MAX_VARIANCE_RATIO * variance), largest)

    def _log_prior(self) -> Array:
        return log_declared_prior(self.statistics_.n, self.priors)

    # -- answering -----------------------------------------------------------------------------------------------

    def _log_joint(self, table: Matrix) -> Array:
        check_finite(table)
        centre, precision, constant = self.statistics_.derive(
            "densities", lambda _: self._density_parameters(), self.var_smoothing
        )
        constant = np.insert(constant[:, 1:], 0, constant[:, 0] + self._log_prior(), axis=1)
        parameters = self._moments().units(), centre, precision, constant
        if isinstance(table, np.ndarray):
            return score_gaussian(table, *parameters)
        return np.concatenate([score_gaussian(block.toarray(), *parameters) for block in split_sparse_rows(table)])

    def _density_parameters(self) -> tuple[Array, Array, Array]:
        """Centre and precision in units, and the logarithm of the density at the centre: (classes, columns) each."""
        moments, exponent = self._moments(), self._moments().find_exponents()
        variance = np.maximum(moments.variances(exponent), 0.0) + self._epsilon()
        variance = np.where(variance > MIN_VARIANCE, variance, MIN_VARIANCE_SHARE * _total_variance(moments, exponent))
        # a class without rows, and a column with one value in all rows, give no evidence
        defined = (variance > MIN_VARIANCE) & (moments.n > 0)
        variance = np.where(defined, variance, 1.0)
        height = -0.5 * (LOG_TWO_PI + np.log(variance)) - np.log(moments.units())
        return np.nan_to_num(moments.means(exponent)), defined / variance, defined * height

    @read_state
    def predict_log_proba(self, X: object) -> Array:
        """The logarithm of p(c | x) for each row and class."""
        log_posterior = self._predict_posterior(X)
        if is_single_precision(X):  # a probability that is 1 in single precision has the logarithm 0
            log_posterior[log_posterior > -(2.0**-25)] = 0.0
        return self._convert_output(log_posterior, X)

    def _convert_output(self, answer: Array, X: object) -> Array:
        return convert_like(answer, X, labels=answer.ndim == 1)

    @staticmethod
    def _update_mean_variance(
        n_past: float, mu: Array, var: Array, X: Array, sample_weight: Array | None = None
    ) -> tuple[Array, Array]:
        """Mean and variance after more rows, computed as the sum of two records; scikit-learn's tests call it."""
        if not len(X):
            return mu, var
        more = Gaussian().observe(X, weight=sample_weight)
        n, mean, variance = (np.broadcast_to(np.asarray(v, dtype=float), more.n.shape) for v in (n_past, mu, var))
        second = ExactSums.from_products(n, variance) + ExactSums.from_products(n, mean, mean)
        past = Moments(n, ExactSums.from_floats(n), ExactSums.from_products(n, mean), second)
        return Gaussian().ml(past + more)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        tags.input_tags.sparse = True
        return tags


def _total_variance(moments: Moments, exponent: Array | int = 0) -> Array:
    """The variance of each column over all rows, in units of ``2 ** (2 * exponent)``."""
    return np.maximum(moments.pool_classes().variances(exponent)[0], 0.0)
