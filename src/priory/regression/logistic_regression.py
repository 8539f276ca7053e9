"""Bayesian logistic regression with the scikit-learn API: one model, five ways to treat its weights."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from priory.core.blas_threads import limit_blas_threads
from priory.core.logspace import log, log_normalise
from priory.core.registration import register_estimator
from priory.core.sample_weight import check_sample_weight
from priory.core.typing import Array
from priory.errors import DataError, PrioryWarning
from priory.regression import mcmc as sampling
from priory.regression.cross_products import check_range
from priory.regression.logistic_posterior import (
    LaplaceApproximation,
    TrainingExamples,
    average_probabilities,
    choose_logistic_strength,
    fit_gradient_ascent,
    fit_newton,
    prior_precision,
)

LOGISTIC_METHODS = ("ml", "map", "laplace", "vi", "nuts")
LOGISTIC_SOLVERS = ("newton", "gradient")
SEPARATED_LOG_ODDS = 15.0  # log-odds: a fitted probability within 3e-7 of certainty


@register_estimator(
    required=("classes_", "n_features_in_", "_mean", "_spread", "_centre", "_unit", "_gaussian", "_draws")
)
class BayesianLogisticRegression(ClassifierMixin, BaseEstimator):
    """``P(class | x) = softmax of a line in x``; probabilities by marginalising over the weights, not by plugging in.

    There is no finite record of what a sigmoid has seen, so this model learns from all rows at once: for forgetting and
    merging take :class:`~priory.regression.linear_regression.BayesianLinearRegression` or naive Bayes.

    Parameters
    ----------
    method : "laplace", "ml", "map", "vi", "nuts"
        ``ml`` is the most probable data, ``map`` the most probable weights; both plug one line in. ``laplace``, ``vi``
        and ``nuts`` average over all lines: by a Gaussian at the peak, by the closest Gaussian, by sampling. The last
        two need the extra ``mcmc``.
    solver : "newton" or "gradient"
        How the peak is found: by second-order steps, or by ``w <- w + eta * Σ (d - h(x)) x``, step by step.
    prior : "evidence" or a number
        The strength λ of ``w ~ N(0, 1/λ)`` on the weights of the columns in units of their standard deviation, chosen
        by evidence maximisation or given. ``ml`` has none.
    standardise : bool
        Without it, columns are taken in their own units.
    eta, tol, max_iter
        The gradient solver's rate (None: the largest safe one), when to stop, and when to give up.
    draws, chains
        How many draws ``nuts`` makes in each of how many chains; ``vi`` makes ``draws``.
    progress : bool or None
        Whether to count the draws on stderr; None does if somebody is looking.

    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]        # separable: certainty is not warranted
    >>> BayesianLogisticRegression(prior=1.0).fit(X, y).predict_proba([[3.0]]).round(2).tolist()
    [[0.29, 0.71]]
    """

    def __init__(
        self,
        method: str = "laplace",
        *,
        solver: str = "newton",
        prior: str | float = "evidence",
        standardise: bool = True,
        eta: float | None = None,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        draws: int = 1000,
        chains: int = 4,
        progress: bool | None = None,
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.solver = solver
        self.prior = prior
        self.standardise = standardise
        self.eta = eta
        self.tol = tol
        self.max_iter = max_iter
        self.draws = draws
        self.chains = chains
        self.progress = progress
        self.random_state = random_state

    def _is_consistent(self) -> bool:
        """Whether the arrays agree on the number of classes, contrasts and columns."""
        classes, columns = len(self.classes_), self.n_features_in_
        lines = (self._spread.shape[1], columns + 1)  # (contrasts, columns and the intercept)
        return (
            (self._gaussian is None or type(self._gaussian) is LaplaceApproximation)
            and (self._draws is None or self._draws.shape[1:] == lines)
            and self._mean.shape == lines
            and self._spread.shape[0] == classes
            and self._centre.shape == self._unit.shape == (columns,)
            and bool((self._unit > 0).all())
        )

    # -- learning ------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the rows."""
        self._check_parameters()
        x, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        check_range(x)
        self.classes_, code = np.unique(labels, return_inverse=True)
        weight = check_sample_weight(sample_weight, len(x))
        weight = np.ones(len(x)) if weight is None else weight
        self._centre, self._unit = _compute_scales(x, weight, bool(self.standardise))
        examples = TrainingExamples(self._scale_rows(x), np.eye(len(self.classes_))[code], weight)
        with limit_blas_threads():
            self.strength_ = self._choose_strength(examples)
            precision = prior_precision(self.strength_, examples.shape[1])
            self._find_peak(examples, precision)
            self._approximate_posterior(examples, precision)
        return self

    def _check_parameters(self) -> None:
        for name, allowed in (("method", LOGISTIC_METHODS), ("solver", LOGISTIC_SOLVERS)):
            if getattr(self, name) not in allowed:
                raise DataError(f"{name} is {getattr(self, name)!r}; give one of {', '.join(allowed)}.")
        strength = self.prior
        if strength != "evidence" and not (isinstance(strength, (int, float, np.number)) and 0 < strength < np.inf):
            raise DataError(f'prior is {strength!r}; give "evidence" or a strength above 0 (for none, method="ml").')

    def _choose_strength(self, examples: TrainingExamples) -> float:
        if self.method == "ml":
            return 0.0
        return choose_logistic_strength(examples) if isinstance(self.prior, str) else float(self.prior)

    def _find_peak(self, examples: TrainingExamples, precision: Array) -> None:
        if self.solver == "gradient":
            peak = fit_gradient_ascent(examples, precision, self.eta, self.tol, self.max_iter)
        else:
            peak = fit_newton(examples, precision)
        self._spread, self._mean, self.n_iter_ = examples.class_contrasts, peak.weights, max(peak.n_iter, 1)
        if self.method == "ml" and np.abs(examples.u @ peak.weights.T).max(initial=0.0) > SEPARATED_LOG_ODDS:
            _warn('the classes can be separated, so the likelihood has no peak; method="map" or "laplace" has one.')
        elif not peak.converged:
            _warn(
                f"the {self.solver} solver stopped after {peak.n_iter} steps short of the peak; raise max_iter or tol."
            )

    def _approximate_posterior(self, examples: TrainingExamples, precision: Array) -> None:
        """What the probabilities are averaged over, if over anything."""
        self._gaussian: LaplaceApproximation | None = None
        self._draws: Array | None = None
        if self.method in ("ml", "map") or not self._mean.size:
            return
        self._gaussian = LaplaceApproximation.at(examples, precision, self._mean)
        self.log_evidence_ = self._gaussian.log_evidence
        if self.method == "laplace":
            return
        seed = check_random_state(self.random_state).randint(2**31)
        shown = sys.stderr.isatty() if self.progress is None else self.progress
        progress = sampling.make_stderr_progress(self.method) if shown else None
        if self.method == "vi":
            found = sampling.sample_variational(examples, precision, self._gaussian, self.draws, seed, progress)
        else:
            found = sampling.sample_nuts(examples, precision, self._gaussian, self.draws, self.chains, seed, progress)
        self._draws, self.diagnostics_ = found
        if self.diagnostics_ is not None and (self.diagnostics_.rhat > 1.01 or self.diagnostics_.divergences):
            rhat, ess, divergences = self.diagnostics_
            _warn(
                f"the chains do not agree yet: R-hat {rhat:.3f}, {ess:.0f} effective draws, {divergences} divergences."
            )

    def _scale_rows(self, x: Array) -> Array:
        return np.column_stack([np.ones(len(x)), (x - self._centre) / self._unit])

    # -- what was learned --------------------------------------------------------------------------------------------

    @property
    def coef_(self) -> Array:
        """The weights of the columns as given: at the peak, or their mean over the draws."""
        return self._to_column_units(self.weight_draws_.mean(axis=0) if self._draws is not None else self._mean)[:, 1:]

    @property
    def intercept_(self) -> Array:
        """The log-odds where every column is nought."""
        return self._to_column_units(self.weight_draws_.mean(axis=0) if self._draws is not None else self._mean)[:, 0]

    @property
    def weight_draws_(self) -> Array:
        """Draws of level and weights in the units of the fit (draws, contrasts, 1 + columns), by ``vi`` or ``nuts``."""
        check_is_fitted(self)
        if self._draws is None:
            raise DataError(f'method="{self.method}" draws nothing; "vi" and "nuts" do.')
        return self._draws

    def _to_column_units(self, w: Array) -> Array:
        """Weights in the units of the fit as those of the columns as given: a row for each class, or one for two."""
        check_is_fitted(self)
        slope = w[:, 1:] / self._unit
        line = np.column_stack([w[:, 0] - slope @ self._centre, slope])
        return line if len(self.classes_) == 2 else self._spread @ line

    # -- prediction --------------------------------------------------------------------------------------------------

    def predict_proba(self, X: Any) -> Array:
        """P(class | x), marginalised over the weights unless the method plugs in one line."""
        check_is_fitted(self)
        u = self._scale_rows(validate_data(self, X, dtype=np.float64, reset=False))
        if self._draws is not None:
            return average_probabilities(u, self._draws, self._spread)
        if self._gaussian is not None:
            return self._gaussian.probabilities(u, self._spread)
        return np.exp(log_normalise(u @ self._mean.T @ self._spread.T))

    def predict_log_proba(self, X: Any) -> Array:
        return log(self.predict_proba(X))

    def predict(self, X: Any) -> Array:
        """The most probable class of each row."""
        p = self.predict_proba(X)
        return np.asarray(self.classes_[np.argmax(p, axis=1)])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_mean")


def _compute_scales(x: Array, weight: Array, standardise: bool) -> tuple[Array, Array]:
    """Mean and standard deviation of the columns; a column without spread counts as it is, and so do all if so told."""
    if not standardise:
        return np.zeros(x.shape[1]), np.ones(x.shape[1])
    centre = np.average(x, axis=0, weights=weight)
    reach = np.abs(x - centre).max(axis=0)  # first, so that the squares of 1e-200 do not vanish
    reach = np.where(reach > 0, reach, 1.0)
    variance = np.average(((x - centre) / reach) ** 2, axis=0, weights=weight)
    return centre, reach * np.sqrt(np.where(variance > 0, variance, 1.0))


def _warn(message: str) -> None:
    warnings.warn(PrioryWarning(message), stacklevel=4)
