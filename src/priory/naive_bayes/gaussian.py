"""Gaussian naive Bayes: every column has a normal distribution in every class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, cast

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import Tags

from priory.core.column_kernels import score_gaussian
from priory.core.exact_sums import ExactSums
from priory.core.logspace import LOG_TWO_PI
from priory.core.statistics import register_estimator
from priory.errors import DataError
from priory.estimators.label_encoding import convert_to_numpy
from priory.estimators.learned_classifier import LearnedClassifier, find_classifier_fault
from priory.estimators.sklearn_compat import device, get_namespace
from priory.families.gaussian import Gaussian
from priory.families.moments import Moments
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
