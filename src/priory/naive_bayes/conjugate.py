"""Naive Bayes with conjugate priors: `PoissonNB` for counts of events, `GammaNB` for positive amounts.

The prior is declared, or taken from the data of all classes together, with the weight of one row. The parameters are
integrated out unless a point estimate is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike
from sklearn.utils import Tags

from priory.core.column_kernels import sum_by_class
from priory.core.logspace import MAX_EXACT_COUNT
from priory.core.sharding import score_shards
from priory.core.statistics import Statistics, register_estimator
from priory.errors import DataError
from priory.estimators.learned_classifier import LearnedClassifier, find_classifier_fault
from priory.families import Bernoulli, Gamma, Poisson
from priory.families.base import ESTIMATES, ArrayFamily
from priory.families.bernoulli import BernoulliStatistics
from priory.families.gamma import MAX_GAMMA_VALUE, MIN_GAMMA_VALUE, GammaStatistics
from priory.families.poisson import PoissonStatistics
from priory.naive_bayes import array_rows
from priory.naive_bayes.array_rows import Matrix

CONJUGATE_CHUNK_CELLS = 1 << 16  # rows x classes x columns at a time: a family may need a few dozen numbers each


class ConjugateRows(array_rows.ArrayRows):
    """Rows of a classifier with ``priors`` for the classes and a choice of ``estimate`` for the parameters."""

    estimates: ClassVar[tuple[str, ...]] = ESTIMATES

    def check(self) -> None:
        if self.parameters.estimate not in self.estimates:
            raise DataError(f"estimate is {self.parameters.estimate!r}; use one of {', '.join(self.estimates)}.")


@dataclass(frozen=True, eq=False)
class FamilyModel(array_rows.ArrayModel):
    """Naive Bayes with the same family for every column."""

    rows: FamilyRows

    def family(self) -> ArrayFamily[Any, Any]:
        """The family with its prior, declared or taken from the data."""
        record: Statistics = self.statistics.parts[0]
        family: ArrayFamily[Any, Any] = self.parameters.prior or record.derive(
            "prior", self.rows.family.empirical_prior
        )
        return family

    def point_estimate(self) -> Any:
        """The point estimate of the parameters; for "predictive" the posterior mean."""
        estimate = "mean" if self.parameters.estimate == "predictive" else self.parameters.estimate
        return self.family().parameters(self.statistics.parts[0], estimate)

    def column_log_likelihoods(self, block: Array) -> Array:
        """log p(x_j | c): (rows, classes, columns)."""
        return np.asarray(self.family().log_likelihood(self.statistics.parts[0], block, self.parameters.estimate))

    def log_joint(self, cells: Array) -> Array:
        classes = len(self.statistics.n)
        step = max(1, CONJUGATE_CHUNK_CELLS // (classes * cells.shape[1]))

        def score(part: slice) -> Array:
            # arrays are (rows, classes, columns): computed for a few rows at a time to bound memory
            starts = range(part.start, part.stop, step)
            pieces = [self.column_log_likelihoods(cells[i : min(i + step, part.stop)]).sum(axis=-1) for i in starts]
            return np.concatenate(pieces) if pieces else np.empty((0, classes))

        return score_shards(score, len(cells), classes) + self.log_prior()


class FamilyRows(ConjugateRows):
    """Rows in which every column has the same family."""

    family: ClassVar[type[ArrayFamily[Any, Any]]]

    def check(self) -> None:
        prior = self.parameters.prior
        if not (prior is None or isinstance(prior, self.family)):
            raise DataError(f"prior is {prior!r}; use a {self.family.__name__}, or None.")
        super().check()


class FamilyNB(LearnedClassifier):
    """Naive Bayes with the same family for every column."""

    __slots__ = ()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


class PoissonModel(FamilyModel):
    """``x_j | c ~ Poisson(rate_cj)``."""

    def log_joint(self, cells: Matrix) -> Array:
        if isinstance(cells, np.ndarray):
            return super().log_joint(cells)
        without_events = self.column_log_likelihoods(np.zeros((1, cells.shape[1])))[0]  # (classes, columns)

        def score_events(values: Array, columns: Array) -> Array:
            return self._cell_log_likelihoods(values, columns) - without_events[:, columns]

        classes = len(self.statistics.n)
        # log p of a row of zeros, plus the difference that each stored cell makes
        events = array_rows.score_stored_cells(cells, score_events, classes, CONJUGATE_CHUNK_CELLS // classes + 1)
        return events + without_events.sum(axis=1) + self.log_prior()

    def _cell_log_likelihoods(self, cells: Array, columns: Array) -> Array:
        """log p(x_j | c) of some cells, given the column j of each: (classes, cells)."""
        record, family, estimate = self.statistics.parts[0], self.family(), self.parameters.estimate
        if estimate == "predictive":
            belief = record.derive("posterior", family.posterior, family)
            # (classes, cells): the posterior of the column of each cell
            shape, rate = (np.broadcast_to(part, record.n.shape)[:, columns] for part in (belief.shape, belief.rate))
            terms = Poisson(shape, rate).log_predictive(cells)
        else:
            rates = record.derive("parameters", lambda r: family.parameters(r, estimate), family, estimate)
            terms = family.log_density(cells, rates[:, columns])
        return np.where(np.isnan(terms), 0.0, terms)


class PoissonRows(FamilyRows):
    """Rows of counts of events."""

    estimator = "PoissonNB"
    family = Poisson
    records = (PoissonStatistics,)
    model_class = PoissonModel

    def convert(self, x: Matrix) -> Matrix:
        x = _widen_floats(x)
        check_cells(x, "PoissonNB", lambda v: v > MAX_EXACT_COUNT, "counts above 2**53 are not exact: scale them")
        if not array_rows.warn_of_fractions(x):
            return x
        return np.floor(x) if isinstance(x, np.ndarray) else x.floor()

    def count_records(self, cells: Matrix, n: Array, group: Array, weight: Array | None) -> tuple[Statistics, ...]:
        if isinstance(cells, np.ndarray):
            return (Poisson().observe(cells, group, len(n), weight),)
        return (array_rows.observe_sparse_counts(cells, group, weight, len(n)),)


@register_estimator(find_fault=find_classifier_fault)
class PoissonNB(FamilyNB):
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

    _rows_class = PoissonRows

    def __init__(
        self, *, prior: Poisson | None = None, estimate: str = "predictive", priors: ArrayLike | None = None
    ) -> None:
        self.prior = prior
        self.estimate = estimate
        self.priors = priors

    @property
    def rate_(self) -> Array:
        """The rate of each class and column."""
        return np.asarray(self._learned().model().point_estimate())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True  # the only tag that stands for whole numbers
        return tags


class GammaModel(FamilyModel):
    """``x_j | c ~ Gamma(shape_cj, rate_cj)``, and a probability of zero."""

    def column_log_likelihoods(self, block: Array) -> Array:
        zeros: BernoulliStatistics = self.statistics.parts[1]
        # (rows, classes, columns)
        is_zero = Bernoulli(1.0, 1.0).log_likelihood(zeros, block == 0, self.parameters.estimate)
        return super().column_log_likelihoods(_mask_zeros(block)) + np.where(zeros.successes.any(axis=0), is_zero, 0.0)


class GammaRows(FamilyRows):
    """Rows of amounts."""

    estimator = "GammaNB"
    family = Gamma
    records = (GammaStatistics, BernoulliStatistics)
    model_class = GammaModel
    takes_sparse = False

    def convert(self, x: Array) -> Array:
        x = _widen_floats(x)
        remedy = f"GammaNB takes 0, and amounts from {MIN_GAMMA_VALUE:g} to {MAX_GAMMA_VALUE:g}: scale the column"
        check_cells(x, "GammaNB", lambda v: ((v < MIN_GAMMA_VALUE) & (v != 0)) | (v > MAX_GAMMA_VALUE), remedy)
        return x

    def count_records(self, cells: Array, n: Array, group: Array, weight: Array | None) -> tuple[Statistics, ...]:
        # (classes, columns): the weight of the zeros
        zeros = sum_by_class(cells, group, weight, len(n), lambda v: v == 0)
        return (
            Gamma().observe(_mask_zeros(cells), group, len(n), weight),
            BernoulliStatistics(n[:, None], zeros, np.zeros((len(n), 1))),
        )


@register_estimator(find_fault=find_classifier_fault)
class GammaNB(FamilyNB):
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

    _rows_class = GammaRows

    def __init__(
        self, *, prior: Gamma | None = None, estimate: str = "predictive", priors: ArrayLike | None = None
    ) -> None:
        self.prior = prior
        self.estimate = estimate
        self.priors = priors

    @property
    def shape_(self) -> Array:
        """The shape of each class and column."""
        return np.asarray(self._learned().model().point_estimate().shape)

    @property
    def rate_(self) -> Array:
        """The rate of each class and column."""
        return np.asarray(self._learned().model().point_estimate().rate)


def check_cells(x: Matrix, name: str, is_outside: Callable[[Array], Array], remedy: str) -> None:
    """Raise if a cell is negative, NaN, infinite, or ``is_outside``."""
    counted = array_rows.make_count_checker(x, name)
    if any(array_rows.map_cells(lambda v: bool(is_outside(counted(v)).any()), x)):
        row, column, value = array_rows.find_first_cell(x, is_outside) or (0, 0, 0.0)
        raise DataError(f"row {row}, column {column} holds {value:g}; {remedy}.")


def _widen_floats(x: array_rows.MatrixT) -> array_rows.MatrixT:
    """Convert floats to double precision; keep integers."""
    wide: array_rows.MatrixT = x.astype(float, copy=False) if x.dtype.kind == "f" else x  # type: ignore[assignment]
    return wide


def _mask_zeros(x: Array) -> Array:
    """Replace zeros by NaN, so that the family ignores them."""
    return np.where(x > 0, x, np.nan)
