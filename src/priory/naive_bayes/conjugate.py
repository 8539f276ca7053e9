"""Naive Bayes with conjugate priors: `PoissonNB` for counts of events, `GammaNB` for positive amounts.

The prior is declared, or taken from the data of all classes together, with the weight of one row. The parameters are
integrated out unless a point estimate is asked for.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags

from priory.core.column_kernels import sum_by_class
from priory.core.registration import register_estimator
from priory.core.sharding import score_shards
from priory.core.special_functions import MAX_EXACT_COUNT
from priory.core.statistics import Statistics
from priory.core.typing import Array
from priory.errors import DataError
from priory.estimators.base import BaseClassifier
from priory.families import Bernoulli, Gamma, Poisson
from priory.families.base import ESTIMATES, ArrayFamily
from priory.families.bernoulli import BernoulliStatistics
from priory.families.gamma import MAX_GAMMA_VALUE, MIN_GAMMA_VALUE, GammaParameters, GammaStatistics
from priory.families.poisson import PoissonStatistics
from priory.models.class_prior import check_class_probabilities
from priory.models.model_statistics import ModelStatistics
from priory.naive_bayes.input_checks import (
    Matrix,
    MatrixT,
    count_classes,
    find_first_cell,
    log_declared_prior,
    make_count_checker,
    map_cells,
    read_array,
    read_matrix,
    warn_of_fractions,
)
from priory.naive_bayes.sparse_records import observe_sparse_counts, score_stored_cells

CONJUGATE_CHUNK_CELLS = 1 << 16  # rows x classes x columns at a time: a family may need a few dozen numbers each
EstimateT = TypeVar("EstimateT")


class ConjugateClassifier(BaseClassifier[MatrixT]):
    """A classifier with ``priors`` for the classes and a choice of ``estimate`` for the parameters."""

    priors: ArrayLike | None
    estimate: str

    _allowed_estimates: ClassVar[tuple[str, ...]] = ESTIMATES

    @abstractmethod
    def _observe_records(self, table: MatrixT, n: Array, group: Array, weight: Array | None) -> tuple[Statistics, ...]:
        """The records of the rows; ``n`` (classes,) is the weight of the rows of each class."""

    def _check_parameters(self) -> None:
        if self.estimate not in self._allowed_estimates:
            raise DataError(f"estimate is {self.estimate!r}; use one of {', '.join(self._allowed_estimates)}.")

    def _observe(self, table: MatrixT, classes: Array, group: Array, weight: Array | None) -> ModelStatistics:
        n = count_classes(group, weight, classes)
        if self.priors is not None:
            check_class_probabilities(self.priors, len(n))
        return ModelStatistics(classes, n, self._observe_records(table, n, group, weight))

    def _log_prior(self) -> Array:
        return log_declared_prior(self.statistics_.n, self.priors)

    @property
    def class_prior_(self) -> Array:
        """p(c)."""
        self._fitted_statistics()
        return np.exp(self._log_prior())


class FamilyNB(ConjugateClassifier[MatrixT], Generic[MatrixT, EstimateT]):
    """Naive Bayes with the same family for every column."""

    prior: ArrayFamily[Any, EstimateT] | None

    _family: ClassVar[type[ArrayFamily[Any, Any]]]

    def _check_parameters(self) -> None:
        if not (self.prior is None or isinstance(self.prior, self._family)):
            raise DataError(f"prior is {self.prior!r}; use a {self._family.__name__}, or None.")
        super()._check_parameters()

    def _family_with_prior(self) -> ArrayFamily[Any, EstimateT]:
        """The family with its declared prior, or the one it takes from the data."""
        record: Statistics = self._fitted_statistics().parts[0]
        return self.prior or record.derive("prior", self._family.empirical_prior)

    def _point_estimate(self) -> EstimateT:
        """The point estimate; the posterior mean if the parameters are integrated out."""
        estimate = "mean" if self.estimate == "predictive" else self.estimate
        return self._family_with_prior().parameters(self._fitted_statistics().parts[0], estimate)

    def _column_log_likelihoods(self, block: Array) -> Array:
        """log p(x_j | c): (rows, classes, columns)."""
        return np.asarray(self._family_with_prior().log_likelihood(self.statistics_.parts[0], block, self.estimate))

    def _score_rows(self, table: Array) -> Array:
        """log p(x | c): (rows, classes)."""
        step = max(1, CONJUGATE_CHUNK_CELLS // (len(self.classes_) * table.shape[1]))

        def score(part: slice) -> Array:
            starts = range(part.start, part.stop, step)
            pieces = [self._column_log_likelihoods(table[i : min(i + step, part.stop)]).sum(axis=-1) for i in starts]
            return np.concatenate(pieces) if pieces else np.empty((0, len(self.classes_)))

        return score_shards(score, len(table), len(self.classes_))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


@register_estimator(records=(PoissonStatistics,))
class PoissonNB(FamilyNB[Matrix, Array]):
    """Naive Bayes for counts of events: ``x_j | c ~ Poisson(rate_cj)`` with a Gamma prior on the rate.

    Counts are whole numbers: fractions are cut off, with a warning. The cells that a sparse matrix does not store are
    zeros, and take no time.

    Parameters
    ----------
    prior : priory.families.Poisson, optional
        The prior of the rates. By default it has the weight of one row and expects the mean of all rows.
    estimate : {"predictive", "mean", "map", "ml"}
        Whether the rates are integrated out ("predictive"), or which point estimate of them is used.
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
    rate_ : ndarray of shape (n_classes, n_columns)
        The rate of each class and column.
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
    A. Gelman et al. (2013). Bayesian Data Analysis, 3rd edition, section 2.6. CRC Press.

    Examples
    --------
    >>> model = PoissonNB(prior=Poisson(1.0, 1.0)).fit([[2], [8], [0], [1]], ["busy", "busy", "calm", "calm"])
    >>> model.rate_.ravel().round(4).tolist()  # (10 + 1) / (2 + 1), (1 + 1) / (2 + 1)
    [3.6667, 0.6667]
    """

    _family = Poisson

    def __init__(
        self, *, prior: Poisson | None = None, estimate: str = "predictive", priors: ArrayLike | None = None
    ) -> None:
        self.prior = prior
        self.estimate = estimate
        self.priors = priors

    def _read(self, X: object, reset: bool) -> Matrix:
        self._check_parameters()
        x = _widen_floats(read_matrix(self, X, reset))
        check_cells(x, "PoissonNB", lambda v: v > MAX_EXACT_COUNT, "counts above 2**53 are not exact: scale them")
        if not warn_of_fractions(x):
            return x
        return np.floor(x) if isinstance(x, np.ndarray) else x.floor()

    def _observe_records(self, table: Matrix, n: Array, group: Array, weight: Array | None) -> tuple[Statistics, ...]:
        if isinstance(table, np.ndarray):
            return (Poisson().observe(table, group, len(n), weight),)
        return (observe_sparse_counts(table, group, weight, len(n)),)

    def _log_joint(self, table: Matrix) -> Array:
        if isinstance(table, np.ndarray):
            return self._score_rows(table) + self._log_prior()
        without_events = self._column_log_likelihoods(np.zeros((1, table.shape[1])))[0]  # (classes, columns)

        def score_events(cells: Array, columns: Array) -> Array:
            return self._cell_log_likelihoods(cells, columns) - without_events[:, columns]

        classes = len(self.classes_)
        events = score_stored_cells(table, score_events, classes, CONJUGATE_CHUNK_CELLS // classes + 1)
        return events + without_events.sum(axis=1) + self._log_prior()

    def _cell_log_likelihoods(self, cells: Array, columns: Array) -> Array:
        """log p(x_j | c) of some cells, given the column j of each: (classes, cells)."""
        record, family = self.statistics_.parts[0], self._family_with_prior()
        if self.estimate == "predictive":
            belief = record.derive("posterior", family.posterior, family)
            shape, rate = (np.broadcast_to(part, record.n.shape)[:, columns] for part in (belief.shape, belief.rate))
            terms = Poisson(shape, rate).log_predictive(cells)
        else:
            rates = record.derive("parameters", lambda r: family.parameters(r, self.estimate), family, self.estimate)
            terms = family.log_density(cells, rates[:, columns])
        return np.where(np.isnan(terms), 0.0, terms)

    @property
    def rate_(self) -> Array:
        """The rate of each class and column."""
        return np.asarray(self._point_estimate())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True  # the only tag that stands for whole numbers
        return tags


@register_estimator(records=(GammaStatistics, BernoulliStatistics))
class GammaNB(FamilyNB[Array, GammaParameters]):
    """Naive Bayes for amounts: ``x_j | c ~ Gamma(shape_cj, rate_cj)``, with priors on both.

    Zero has a probability of its own (with a Beta(1, 1) prior). In a column in which no zero was learned, a zero gives
    no evidence.

    Parameters
    ----------
    prior : priory.families.Gamma, optional
        The prior of shape and rate. By default it has the weight of one row, on the scale of the mean of all rows.
    estimate : {"predictive", "mean", "map", "ml"}
        Whether the parameters are integrated out ("predictive", over 15 shapes for every cell), or which point
        estimate of them is used (about twenty times faster).
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
    shape_ : ndarray of shape (n_classes, n_columns)
        The shape of each class and column.
    rate_ : ndarray of shape (n_classes, n_columns)
        The rate of each class and column.
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
    E. Damsleth (1975). Conjugate classes for gamma distributions. Scandinavian Journal of Statistics 2, 80-84.

    Examples
    --------
    >>> model = GammaNB(estimate="ml").fit([[1.0], [2.0], [3.0], [4.0]], ["a", "a", "a", "a"])
    >>> round(float(model.shape_[0, 0]), 3), round(float(model.rate_[0, 0]), 3)
    (4.265, 1.706)
    """

    _family = Gamma

    def __init__(
        self, *, prior: Gamma | None = None, estimate: str = "predictive", priors: ArrayLike | None = None
    ) -> None:
        self.prior = prior
        self.estimate = estimate
        self.priors = priors

    def _read(self, X: object, reset: bool) -> Array:
        self._check_parameters()
        x = _widen_floats(read_array(self, X, reset))
        remedy = f"GammaNB takes 0, and amounts from {MIN_GAMMA_VALUE:g} to {MAX_GAMMA_VALUE:g}: scale the column"
        check_cells(x, "GammaNB", lambda v: ((v < MIN_GAMMA_VALUE) & (v != 0)) | (v > MAX_GAMMA_VALUE), remedy)
        return x

    def _observe_records(self, table: Array, n: Array, group: Array, weight: Array | None) -> tuple[Statistics, ...]:
        zeros = sum_by_class(table, group, weight, len(n), lambda v: v == 0)
        return (
            Gamma().observe(_mask_zeros(table), group, len(n), weight),
            BernoulliStatistics(n[:, None], zeros, np.zeros((len(n), 1))),
        )

    def _log_joint(self, table: Array) -> Array:
        return self._score_rows(table) + self._log_prior()

    def _column_log_likelihoods(self, block: Array) -> Array:
        zeros: BernoulliStatistics = self.statistics_.parts[1]
        is_zero = Bernoulli(1.0, 1.0).log_likelihood(zeros, block == 0, self.estimate)  # (rows, classes, columns)
        return super()._column_log_likelihoods(_mask_zeros(block)) + np.where(zeros.successes.any(axis=0), is_zero, 0.0)

    @property
    def shape_(self) -> Array:
        """The shape of each class and column."""
        return np.asarray(self._point_estimate().shape)

    @property
    def rate_(self) -> Array:
        """The rate of each class and column."""
        return np.asarray(self._point_estimate().rate)


def check_cells(x: Matrix, name: str, is_outside: Callable[[Array], Array], remedy: str) -> None:
    """Raise if a cell is negative, NaN, infinite, or ``is_outside``."""
    counted = make_count_checker(x, name)
    if any(map_cells(lambda v: bool(is_outside(counted(v)).any()), x)):
        row, column, value = find_first_cell(x, is_outside) or (0, 0, 0.0)
        raise DataError(f"row {row}, column {column} holds {value:g}; {remedy}.")


def _widen_floats(x: MatrixT) -> MatrixT:
    """Numbers in double precision; whole numbers as they are."""
    wide: MatrixT = x.astype(float, copy=False) if x.dtype.kind == "f" else x  # type: ignore[assignment]
    return wide


def _mask_zeros(x: Array) -> Array:
    """The amounts, with zeros as missing cells."""
    return np.where(x > 0, x, np.nan)
