"""Bayesian linear regression with the scikit-learn API: posterior = prior + cross products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, NamedTuple, Self, overload

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from priory.core.estimator_methods import optional_attribute, replace_state
from priory.core.input_guard import check_same_columns, check_same_type, check_sample_weight, guard_input
from priory.core.statistics import find_unlearned_row, register_estimator
from priory.core.typing import MatrixLike, RandomState
from priory.errors import DataError, NotLearnedError
from priory.regression import design_matrix
from priory.regression.cross_products import CrossProducts, Term, accumulate_products, build_design_matrix
from priory.regression.linear_posterior import NormalInverseGamma, StudentT

COLUMN_ATTRIBUTES = ("n_features_in_", "feature_names_in_", "target_", "missing_", "formats_")  # copied by `merge`


class LineDraws(NamedTuple):
    """Draws of lines ``y = intercept + x·coef``, and of the variance of the noise around each."""

    coef: Array  # (draws, terms)
    intercept: Array  # (draws,)
    noise: Array  # (draws,)


def find_regression_fault(model: BayesianLinearRegression) -> str | None:
    """Whether every term belongs to a column, and the weights, which predictions need anyway, are finite."""
    names = set(getattr(model, "feature_names_in_", ()))
    for term in model.statistics_.terms:
        is_position = isinstance(term.column, int) and 0 <= term.column < model.n_features_in_
        if not (is_position or term.column in names):
            return "a term has no column"
    model.check_parameters()
    try:
        return None if np.isfinite(model.posterior_.mean).all() else "a weight is not finite"
    except DataError:  # a prior that does not fit the rows learned since, which every prediction will say
        return None


@register_estimator(find_fault=find_regression_fault)
@dataclass(eq=False, repr=False)
class BayesianLinearRegression(RegressorMixin, BaseEstimator):
    """Linear regression, ``y = intercept + x·coef + noise``, with a normal-inverse-gamma prior.

    The model keeps only the sums and cross products of the columns. Rows can therefore be added, forgotten and merged
    at any time, with the same result as one ``fit`` on the rows that remain. Data frames may have categories and
    missing cells; :mod:`priory.regression.design_matrix` describes how they are encoded.

    Parameters
    ----------
    prior : "evidence", float or NormalInverseGamma, default="evidence"
        The strength λ of the prior ``w | σ² ~ N(0, σ²/λ)`` of the weights, for columns in units of their standard
        deviation. "evidence" chooses the strength that maximises the evidence; 0 gives least squares. The intercept and
        the logarithm of the noise have flat priors. A NormalInverseGamma is used as it is.
    fit_intercept : bool, default=True
        Whether to fit an intercept. Without one, the line goes through the origin.
    standardise : bool, default=True
        Whether the prior applies to columns in units of their standard deviation, or in their own units.

    Attributes
    ----------
    coef_ : ndarray of shape (n_terms,)
        The expected weights.
    intercept_ : float
        The expected target where every column is zero.
    coef_covariance_ : ndarray of shape (n_terms, n_terms)
        The covariance of the weights.
    noise_ : float
        The expected variance of the noise.
    terms_ : tuple of Term
        The term of each weight: a column, a level of a categorical column, or a missing flag.
    prior_, posterior_ : NormalInverseGamma
        The distribution of weights and noise before and after the rows.
    log_evidence_ : float
        The log probability of the targets with weights and noise integrated out, for comparing models of the same rows.
    statistics_ : CrossProducts
        The sufficient statistics of the learned rows.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        The names of the columns, if the table has them.

    References
    ----------
    .. [1] C. M. Bishop, "Pattern Recognition and Machine Learning", Springer, 2006, sections 3.3 and 3.5.

    Examples
    --------
    >>> model = BayesianLinearRegression(prior=0).fit([[1.0], [2.0], [3.0], [4.0]], [2.0, 4.1, 5.9, 8.0])
    >>> model.coef_.round(3).tolist(), [x.round(3).tolist() for x in model.predict_interval([[5.0]])]
    ([1.98], [[9.512], [10.388]])
    >>> model.forget([[4.0]], [8.0]).coef_.round(3).tolist()  # as if the row had never been learned
    [1.95]
    """

    prior: str | float | NormalInverseGamma = "evidence"
    _: KW_ONLY
    fit_intercept: bool = True
    standardise: bool = True

    statistics_: CrossProducts = field(init=False)
    # where the model was trained from files: the target column, the cells that counted as missing, and the notations
    # of numbers, such as 1.234,5, by column
    target_: str = field(init=False)
    missing_: tuple[str, ...] = field(init=False)
    formats_: tuple[tuple[str, str], ...] = field(init=False)

    def check_parameters(self) -> None:
        if isinstance(self.prior, NormalInverseGamma) or (isinstance(self.prior, str) and self.prior == "evidence"):
            return
        if not (isinstance(self.prior, (int, float, np.number)) and 0 <= self.prior < np.inf):
            raise DataError(
                f'prior is {self.prior!r}; give "evidence", a strength of 0 or more, or a NormalInverseGamma.'
            )

    # -- learning ------------------------------------------------------------------------------------------------

    @replace_state
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to the rows, discarding previous ones."""
        self.statistics_ = self._observe_rows(X, y, sample_weight, first=True)
        self.posterior_  # noqa: B018  # raises here if the prior does not fit the rows
        return self

    @replace_state
    def partial_fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn more rows; a model that has forgotten all rows learns like a new one."""
        known = self.__sklearn_is_fitted__() and bool(self.statistics_.n)
        new = self._observe_rows(X, y, sample_weight, first=not known)
        self.statistics_ = self.statistics_ + new if known else new
        return self

    @replace_state
    def forget(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget rows, as if they had never been learned."""
        check_is_fitted(self)
        x, target, inputs = self._read_rows(X, y)
        weight = check_sample_weight(sample_weight, len(x))

        def subtract(n_rows: int) -> CrossProducts:
            """Return the record without the first rows."""
            weights = None if weight is None else weight[:n_rows]
            return self.statistics_ - accumulate_products(x[:n_rows], target[:n_rows], weights, inputs)

        try:
            self.statistics_ = subtract(len(x))
        except NotLearnedError as found:
            row, error = find_unlearned_row(subtract, len(x), found)
            raise NotLearnedError(
                f"row {row}: {error.subject} was not learned, or not this often; "
                "forget only rows that were learned; the model is unchanged.",
                row=row,
            ) from None
        return self

    def merge(self, other: BayesianLinearRegression) -> Self:
        """Return a model that has learned the rows of both, with the parameters of this one; also ``a + b``."""
        check_is_fitted(self)
        check_same_type(self, other)
        check_is_fitted(other)
        if not self._has_categories():  # with categories, columns are matched by name in any order
            check_same_columns(self, other)
        merged = clone(self)
        vars(merged).update({name: value for name, value in vars(self).items() if name in COLUMN_ATTRIBUTES})
        merged.statistics_ = self.statistics_ + other.statistics_
        return merged

    __add__ = merge

    def counter(self, known: bool = False) -> RegressionCounter:
        """Return a counter of rows beside the model, for `adopt` or `subtract`; see `priory.learning.counting`."""
        return RegressionCounter(clone(self))

    @replace_state
    def adopt(self, total: BayesianLinearRegression | None) -> Self:
        """Let the model be the one that has learned all parts."""
        if total is None:
            raise DataError("there are no rows to learn from; give rows with a weight above zero.")
        total.posterior_  # noqa: B018  # a prior that does not fit these rows is reported here
        self.__dict__.update({name: value for name, value in vars(total).items() if name in COLUMN_ATTRIBUTES})
        self.statistics_ = total.statistics_
        return self

    @replace_state
    def subtract(self, part: BayesianLinearRegression | None) -> Self:
        """Let the model forget the rows of a part, as if it had never learned them."""
        if part is None:
            return self
        try:
            self.statistics_ = self.statistics_ - part.statistics_
        except NotLearnedError as error:
            reason = f"{error.subject or 'a row'} was not learned, or not this often"
            raise NotLearnedError(f"{reason}; forget only rows that were learned; the model is unchanged.") from None
        return self

    def _observe_rows(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None, first: bool) -> CrossProducts:
        x, target, inputs = self._read_rows(X, y, first)
        return accumulate_products(x, target, check_sample_weight(sample_weight, len(x)), inputs)

    def _read_rows(
        self, X: MatrixLike, y: ArrayLike | None, first: bool = False
    ) -> tuple[Array, Array, tuple[Term, ...]]:
        """Return cells (rows, columns), targets (rows,), and the term of each column of the cells."""
        frame = design_matrix.as_data_frame(X)
        has_categories = (
            frame is not None and design_matrix.has_non_numeric_columns(frame) if first else self._has_categories()
        )
        if has_categories:
            if frame is None:
                raise DataError("this model has learned a table with named columns; give a data frame.")
            return self._read_frame(frame, y, first)
        options: dict[str, Any] = {"ensure_all_finite": "allow-nan", "dtype": [np.float64, np.float32], "reset": first}
        with guard_input(X):
            if y is None:
                x = validate_data(self, X, **options)
                target = np.zeros(len(x))
            else:
                x, target = validate_data(self, X, y, y_numeric=True, **options)
            target = target.astype(float)
        return x, target, tuple(Term(i) for i in range(x.shape[1]))

    def _read_frame(
        self, frame: design_matrix.NarwhalsFrame, y: ArrayLike | None, first: bool
    ) -> tuple[Array, Array, tuple[Term, ...]]:
        """Return cells, targets and terms of a data frame in which some columns do not hold numbers."""
        if first:
            self.feature_names_in_ = np.asarray(frame.columns, dtype=object)
            self.n_features_in_ = len(frame.columns)
        x, inputs = design_matrix.encode_design_columns(frame, self.feature_names_in_)
        with guard_input(y):
            target = np.zeros(len(x)) if y is None else column_or_1d(np.asarray(y), dtype=float, warn=True)
        if len(target) != len(x):
            raise DataError(f"X has {len(x)} rows and y has {len(target)}; give one target for each row.")
        if not np.isfinite(target).all():
            row = int(np.argmin(np.isfinite(target)))
            raise DataError(f"the target of row {row} is {target[row]}; give a finite number.")
        return x, target, inputs

    def _has_categories(self) -> bool:
        return any(term.kind == "level" for term in self.statistics_.terms)

    # -- prior and posterior ----------------------------------------------------------------------------------------

    def _make_prior(self, statistics: CrossProducts) -> NormalInverseGamma:
        """Return the prior as declared, in the units of these rows."""
        self.check_parameters()
        if isinstance(self.prior, NormalInverseGamma):
            return self.prior
        level = bool(self.fit_intercept)
        unit = statistics.choose_units()
        scale = design_matrix.term_scales(statistics, unit) if self.standardise else 1.0 / unit[1:]
        choose = isinstance(self.prior, str)
        strength = design_matrix.choose_linear_strength(statistics, scale, level, unit) if choose else float(self.prior)
        centre = statistics.centre() if level else np.zeros(len(unit))
        return NormalInverseGamma.ridge(strength * scale**2, centre, level, unit)

    def _compute_beliefs(self, statistics: CrossProducts) -> tuple[NormalInverseGamma, NormalInverseGamma]:
        """Return prior and posterior, cached for as long as statistics and parameters stay the same."""

        def compute(record: CrossProducts) -> tuple[NormalInverseGamma, NormalInverseGamma]:
            prior = self._make_prior(record)
            return prior, prior + record

        return statistics.derive("beliefs", compute, self.prior, self.fit_intercept, self.standardise)

    @optional_attribute
    def prior_(self) -> NormalInverseGamma:
        """The distribution of weights and noise before the rows."""
        check_is_fitted(self)
        return self._compute_beliefs(self.statistics_)[0]

    @optional_attribute
    def posterior_(self) -> NormalInverseGamma:
        """The distribution of weights and noise after the rows."""
        check_is_fitted(self)
        return self._compute_beliefs(self.statistics_)[1]

    @optional_attribute
    def terms_(self) -> tuple[Term, ...]:
        """The term of each weight: a column, a level of a category, or a missing flag."""
        check_is_fitted(self)
        return self.statistics_.terms

    @optional_attribute
    def coef_(self) -> Array:
        """The expected weights."""
        belief = self.posterior_
        return (belief.mean * belief.weight_units)[int(belief.level) :]

    @optional_attribute
    def coef_covariance_(self) -> Array:
        """The covariance of the weights with the noise integrated out; infinite with too few rows."""
        belief = self.posterior_
        first = int(belief.level)
        with np.errstate(over="ignore"):
            return self.noise_ * belief.covariance()[first:, first:]

    @optional_attribute
    def intercept_(self) -> float:
        """The expected target where every column is zero."""
        belief = self.posterior_
        return float(belief.find_intercepts((belief.mean * belief.weight_units)[None])[0])

    @optional_attribute
    def noise_(self) -> float:
        """The expected variance of the noise; infinite with too few rows."""
        belief = self.posterior_
        unit = float(belief.units[0])
        return belief.expected_noise() * unit * unit

    @optional_attribute
    def log_evidence_(self) -> float:
        """The log probability of the targets with weights and noise integrated out, up to a constant."""
        return self.prior_.log_evidence(self.statistics_)

    # -- prediction --------------------------------------------------------------------------------------------------

    def predictive(self, X: MatrixLike) -> StudentT:
        """Return the Student-t distribution of the target of each row, with weights and noise integrated out."""
        belief, z = self._centre_rows(X)[:2]
        return belief.predictive(z)

    @overload
    def predict(self, X: MatrixLike, return_std: Literal[False] = False) -> Array: ...
    @overload
    def predict(self, X: MatrixLike, return_std: Literal[True]) -> tuple[Array, Array]: ...
    def predict(self, X: MatrixLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return the expected target of each row and, with ``return_std``, the standard deviation of the prediction."""
        if not return_std:
            belief, z = self._centre_rows(X)[:2]
            return belief.location(z)
        student = self.predictive(X)
        return student.location, student.std()

    def predict_interval(self, X: MatrixLike, level: float = 0.9) -> tuple[Array, Array]:
        """Return the bounds of the central predictive interval with probability ``level``, (rows,) each."""
        return self.predictive(X).interval(level)

    def leave_one_out(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> StudentT:
        """Return the prediction for each learned row as if that row had not been learned; the prior is kept."""
        belief, z, target = self._centre_rows(X, y)
        weight = check_sample_weight(sample_weight, len(z))
        return belief.predict_leave_one_out(z, target, 1.0 if weight is None else weight)

    def sample_lines(self, size: int = 20, *, prior: bool = False, random_state: RandomState = None) -> LineDraws:
        """Return lines drawn from the posterior, or from the prior, which must then be a proper one.

        A prior that is declared as a `NormalInverseGamma` can be drawn from before any row is learned.
        """
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        declared = self.prior if prior and isinstance(self.prior, NormalInverseGamma) else None
        belief = declared or (self.prior_ if prior else self.posterior_)
        weights, noise = belief.draw(rng, size)
        return LineDraws(weights[:, int(belief.level) :], belief.find_intercepts(weights), noise)

    def _centre_rows(self, X: MatrixLike, y: ArrayLike | None = None) -> tuple[NormalInverseGamma, Array, Array]:
        """Return the posterior, the rows (rows, terms) about its centre, and their targets.

        Unseen levels and missing flags get their own terms, whose posterior is the prior.
        """
        check_is_fitted(self)
        x, target, inputs = self._read_rows(X, y)
        inputs = _merge_unseen_levels(inputs, self.statistics_.terms)
        flags = [inputs[j].missing_flag for j in np.flatnonzero(np.isnan(x).any(axis=0))]
        seen = self.statistics_.add_terms([*inputs, *flags])
        belief = self._compute_beliefs(seen)[1]
        return belief, build_design_matrix(x, inputs, seen.terms, belief.centre[1:], belief.units[1:]), target

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "statistics_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


@dataclass(frozen=True)
class RegressionCounter:
    """Counts rows beside a regression; a part is a regression that has learned them."""

    model: BayesianLinearRegression

    def count(self, X: MatrixLike, y: ArrayLike, sample_weight: Any = None) -> BayesianLinearRegression | None:
        """Return what these rows teach; None if they weigh nothing."""
        if sample_weight is not None and not np.any(np.asarray(sample_weight, dtype=float)):
            return None
        return clone(self.model).partial_fit(X, y, sample_weight)

    def find_open_columns(self, names: Sequence[str], strings: Sequence[str], dates: Sequence[str]) -> list[str]:
        """Return no columns: every part can be read by itself."""
        return []

    def find_zones(self) -> dict[str, str]:
        """Return nothing: dates are not learned."""
        return {}

    def with_profiles(self, names: Sequence[str], profiles: object) -> RegressionCounter:
        """Return the same counter."""
        return self


def _merge_unseen_levels(inputs: Sequence[Term], known_terms: Sequence[Term]) -> tuple[Term, ...]:
    """Replace all unseen levels of a column by one term, as they have the same (prior) distribution."""
    seen = set(known_terms)
    return tuple(t if t.kind == "value" or t in seen else Term(t.column, "unseen") for t in inputs)
