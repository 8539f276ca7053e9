"""Bayesian linear regression with the scikit-learn API: ``posterior = prior + products``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from priory.core.registration import register_estimator
from priory.core.sample_weight import check_sample_weight
from priory.core.typing import Array
from priory.errors import DataError
from priory.regression import cross_products as products
from priory.regression import design_matrix as design
from priory.regression.cross_products import CrossProducts, Term
from priory.regression.linear_posterior import NormalInverseGamma, StudentT, choose_linear_strength, term_scales


class LineDraws(NamedTuple):
    """Draws of whole lines ``y = intercept + x·coef``, and the variance of the noise around each."""

    coef: Array
    intercept: Array
    noise: Array


@register_estimator()
class BayesianLinearRegression(RegressorMixin, BaseEstimator):
    """``y = intercept + x·coef + noise`` under a normal-inverse-gamma prior.

    What is learned is one record of sums and products, so rows can be added, taken back and merged at any time, with
    the result that one ``fit`` of the rows that remain would have. Tables with categories and missing cells are read
    as :mod:`priory.regression.design_matrix` says.

    Parameters
    ----------
    prior : "evidence", a number, or a NormalInverseGamma
        The strength λ of the prior ``w | σ² ~ N(0, σ²/λ)`` on the weights of the columns in units of their standard
        deviation, as if so many rows had said nought: chosen by evidence maximisation, or given (0 is least squares).
        The intercept and the logarithm of the noise are flat. A NormalInverseGamma is taken as it is.
    fit_intercept : bool
        Without it the line goes through the origin.
    standardise : bool
        Without it the weights have their prior in the units of the columns as given.

    >>> model = BayesianLinearRegression(prior=0).fit([[1.0], [2.0], [3.0], [4.0]], [2.0, 4.1, 5.9, 8.0])
    >>> model.coef_.round(3).tolist(), [x.round(3).tolist() for x in model.predict_interval([[5.0]])]
    ([1.98], [[9.512], [10.388]])
    >>> model.forget([[4.0]], [8.0]).coef_.round(3).tolist()        # as if the row had never been seen
    [1.95]
    """

    def __init__(
        self,
        prior: str | float | NormalInverseGamma = "evidence",
        *,
        fit_intercept: bool = True,
        standardise: bool = True,
    ) -> None:
        self.prior = prior
        self.fit_intercept = fit_intercept
        self.standardise = standardise

    def _is_consistent(self) -> bool:
        return type(self.statistics_) is CrossProducts

    # -- learning ------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the rows, and nothing else."""
        self.statistics_ = self._observe_rows(X, y, sample_weight, first=True)
        self.posterior_  # noqa: B018  # a prior that these rows cannot do with is reported here, not at predict
        return self

    def partial_fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn more rows."""
        known = self.__sklearn_is_fitted__()
        new = self._observe_rows(X, y, sample_weight, first=not known)
        self.statistics_ = self.statistics_ + new if known else new
        return self

    def forget(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Take rows back: as if they had never been learned."""
        check_is_fitted(self)
        self.statistics_ = self.statistics_ - self._observe_rows(X, y, sample_weight, first=False)
        return self

    def merge(self, other: BayesianLinearRegression) -> Self:
        """A model that has learned what both have, with the parameters of this one; also ``a + b``."""
        check_is_fitted(self)
        check_is_fitted(other)
        merged = clone(self)
        merged.statistics_ = self.statistics_ + other.statistics_
        merged.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            merged.feature_names_in_ = self.feature_names_in_
        return merged

    __add__ = merge

    def _observe_rows(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, first: bool) -> CrossProducts:
        x, target, inputs = self._read_rows(X, y, first)
        return products.accumulate_products(x, target, check_sample_weight(sample_weight, len(x)), inputs)

    def _read_rows(self, X: Any, y: ArrayLike | None, first: bool = False) -> tuple[Array, Array, tuple[Term, ...]]:
        """Cells, targets, and the term that each column of the cells is."""
        frame = design.as_data_frame(X)
        mixed = frame is not None and design.has_non_numeric_columns(frame) if first else self._has_categories()
        if mixed:
            if frame is None:
                raise DataError("this model has learned a table with named columns; give a data frame.")
            if first:
                self.feature_names_in_ = np.asarray(frame.columns, dtype=object)
                self.n_features_in_ = len(frame.columns)
            x, inputs = design.encode_design_columns(frame, self.feature_names_in_)
            target = np.zeros(len(x)) if y is None else column_or_1d(np.asarray(y), dtype=float, warn=True)
            if len(target) != len(x):
                raise DataError(f"{len(x)} rows of X and {len(target)} of y; give one target for each row.")
            if not np.isfinite(target).all():
                row = int(np.argmin(np.isfinite(target)))
                raise DataError(f"the target of row {row} is {target[row]}; give a finite number.")
            return x, target, inputs
        options: dict[str, Any] = {"ensure_all_finite": "allow-nan", "dtype": [np.float64, np.float32], "reset": first}
        if y is None:
            x = validate_data(self, X, **options)
            target = np.zeros(len(x))
        else:
            x, target = validate_data(self, X, y, y_numeric=True, **options)
        return x, target.astype(float), tuple(Term(i) for i in range(x.shape[1]))

    def _has_categories(self) -> bool:
        return any(term.kind == "level" for term in self.statistics_.terms)

    # -- what is believed ------------------------------------------------------------------------------------------

    def _make_prior(self, statistics: CrossProducts) -> NormalInverseGamma:
        if isinstance(self.prior, NormalInverseGamma):
            return self.prior
        level = bool(self.fit_intercept)
        unit = term_scales(statistics) if self.standardise else np.ones(len(statistics.terms))
        if self.prior == "evidence":
            strength = choose_linear_strength(statistics, unit, level)
        elif isinstance(self.prior, (int, float, np.number)) and 0 <= self.prior < np.inf:
            strength = float(self.prior)
        else:
            raise DataError(f'prior is {self.prior!r}; give "evidence", a strength of 0 or more, or a belief.')
        centre = statistics.centre() if level else np.zeros(len(statistics.origin))
        return NormalInverseGamma.ridge(strength * unit**2, centre, level)

    def _compute_beliefs(self, statistics: CrossProducts) -> tuple[NormalInverseGamma, NormalInverseGamma]:
        """Prior and posterior: computed once for a record, and never stale."""

        def believe(record: CrossProducts) -> tuple[NormalInverseGamma, NormalInverseGamma]:
            prior = self._make_prior(record)
            return prior, prior + record

        return statistics.derive("beliefs", believe, self.prior, self.fit_intercept, self.standardise)

    @property
    def prior_(self) -> NormalInverseGamma:
        """The belief before the rows."""
        check_is_fitted(self)
        return self._compute_beliefs(self.statistics_)[0]

    @property
    def posterior_(self) -> NormalInverseGamma:
        """The belief after the rows, about weights and noise together."""
        check_is_fitted(self)
        return self._compute_beliefs(self.statistics_)[1]

    @property
    def terms_(self) -> tuple[Term, ...]:
        """What each weight is the weight of."""
        check_is_fitted(self)
        return self.statistics_.terms

    @property
    def coef_(self) -> Array:
        """The expected weights."""
        return self.posterior_.mean[int(self.posterior_.level) :]

    @property
    def coef_covariance_(self) -> Array:
        """The covariance of the weights, noise integrated out; infinite while too few rows were seen."""
        belief, first = self.posterior_, int(self.posterior_.level)
        variance = belief.scale / (belief.shape - 1) if belief.shape > 1 else np.inf
        return variance * belief.covariance()[first:, first:]

    @property
    def intercept_(self) -> float:
        """The expected target where every column is nought."""
        return float(self._compute_intercepts(self.posterior_.mean[None])[0])

    @property
    def noise_(self) -> float:
        """The expected variance of the noise; infinite while too few rows were seen."""
        belief = self.posterior_
        return belief.scale / (belief.shape - 1) if belief.shape > 1 else float("inf")

    @property
    def log_evidence_(self) -> float:
        """Log probability of the targets, weights and noise integrated out, up to what is flat in every such model."""
        return self.prior_.log_evidence(self.statistics_)

    def _compute_intercepts(self, weights: Array) -> Array:
        belief, first = self.posterior_, int(self.posterior_.level)
        level = weights[:, 0] if first else 0.0
        return np.asarray(belief.centre[0] + level - weights[:, first:] @ belief.centre[1:])

    # -- prediction --------------------------------------------------------------------------------------------------

    def predictive(self, X: Any) -> StudentT:
        """The Student-t distribution of the target of each row, weights and noise integrated out."""
        belief, z = self._centre_rows(X)[:2]
        return belief.predictive(z)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The expected target of each row, and the standard deviation of its prediction if asked for."""
        if not return_std:
            belief, z = self._centre_rows(X)[:2]
            return belief.location(z)
        student = self.predictive(X)
        return student.location, student.std()

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[Array, Array]:
        """The bounds between which the target of each row lies with probability ``level``."""
        return self.predictive(X).interval(level)

    def leave_one_out(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> StudentT:
        """The prediction for each of the rows learned, had that row not been learned; the prior stays as it is."""
        belief, z, target = self._centre_rows(X, y)
        weight = check_sample_weight(sample_weight, len(z))
        return belief.predict_leave_one_out(z, target, 1.0 if weight is None else weight)

    def sample_lines(self, size: int = 20, *, prior: bool = False, random_state: Any = None) -> LineDraws:
        """Lines drawn from the posterior, or from the prior, which then has to be a proper one."""
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        lines = (self.prior_ if prior else self.posterior_).draw(rng, size)
        first = int(self.posterior_.level)
        return LineDraws(lines.weights[:, first:], self._compute_intercepts(lines.weights), lines.noise)

    def _centre_rows(self, X: Any, y: ArrayLike | None = None) -> tuple[NormalInverseGamma, Array, Array]:
        """The posterior, the rows about its centre, and their targets; what was not learned is as the prior has it."""
        check_is_fitted(self)
        x, target, inputs = self._read_rows(X, y)
        inputs = _merge_unseen_levels(inputs, self.statistics_.terms)
        gaps = [inputs[j].missing_flag for j in np.flatnonzero(np.isnan(x).any(axis=0))]
        seen = self.statistics_.add_terms([*inputs, *gaps])
        belief = self._compute_beliefs(seen)[1]
        return belief, products.build_design_matrix(x, inputs, seen.terms, belief.centre[1:]), target

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "statistics_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _merge_unseen_levels(inputs: Sequence[Term], known_terms: Sequence[Term]) -> tuple[Term, ...]:
    """Levels never learned are told apart by nothing: one term stands for all those of a column."""
    seen = set(known_terms)
    return tuple(t if t.kind == "value" or t in seen else Term(t.column, "unseen") for t in inputs)
