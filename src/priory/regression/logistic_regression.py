"""Bayesian logistic regression with the scikit-learn API: ML, MAP, Laplace, variational inference and NUTS."""

from __future__ import annotations

import sys
import warnings
from dataclasses import KW_ONLY, dataclass, field
from typing import Self

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from priory.core.estimator_methods import ProbabilisticClassifier, optional_attribute, optional_method, replace_state
from priory.core.input_guard import check_sample_weight, guard_input
from priory.core.logspace import log, log_normalise
from priory.core.sharding import limit_blas_threads
from priory.core.statistics import is_increasing, register_estimator
from priory.core.typing import MatrixLike, RandomState
from priory.errors import DataError, PrioryWarning
from priory.regression import logistic_posterior, mcmc
from priory.regression.design_matrix import encode_declared_classes, resolve_declared_classes

LOGISTIC_METHODS = ("ml", "map", "laplace", "vi", "nuts")
LOGISTIC_SOLVERS = ("newton", "gradient")
SEPARATED_LOG_ODDS = 15.0  # a fitted probability within 3e-7 of 0 or 1
MAX_STANDARDISED = 1e60  # clip for cells and weights: squares of their products stay finite
MAX_CELL_MAGNITUDE = 1e150  # the square of a larger cell is infinite
MAX_RHAT = 1.01  # above this the chains have not converged


def find_logistic_fault(model: BayesianLogisticRegression) -> str | None:
    """Whether the arrays agree on the number of classes, contrasts and columns."""
    classes, columns = len(model.classes_), model.n_features_in_
    lines = (classes - 1, columns + 1)  # (contrasts, columns and the intercept)
    gaussian, draws = model._gaussian, model._draws
    weights = [model._mean, model._spread, *([] if draws is None else [draws])]
    weights += [] if gaussian is None else [gaussian.mean, gaussian.root]
    model.check_parameters()
    fits = (
        model.classes_.ndim == 1
        and is_increasing(model.classes_)
        and all(getattr(model, n, model.classes_).shape == (classes,) for n in ("class_prior_", "class_count_"))
        and model._spread.shape == (classes, classes - 1)
        and model._mean.shape == lines
        and (gaussian is None or gaussian.mean.shape == lines)
        and (draws is None or (len(draws) > 0 and draws.shape[1:] == lines))
        and model._centre.shape == model._unit.shape == (columns,)
        and bool((model._unit > 0).all())
        and all(w.dtype == float and np.abs(w).max(initial=0.0) <= MAX_STANDARDISED for w in weights)
    )
    return None if fits else "its arrays disagree on the number of classes, contrasts or columns"


@register_estimator(
    find_fault=find_logistic_fault,
    required=("classes_", "n_features_in_", "_mean", "_spread", "_centre", "_unit", "_gaussian", "_draws"),
)
@dataclass(eq=False, repr=False)
class BayesianLogisticRegression(ClassifierMixin, ProbabilisticClassifier, BaseEstimator):
    """Logistic regression whose probabilities are averaged over the posterior of the weights.

    Logistic regression has no sufficient statistics of fixed size, so ``fit`` needs all rows at once. With
    ``method="laplace"``, ``partial_fit`` and ``learn_one`` learn more rows with the current posterior as the prior,
    which is close to ``fit`` but not identical. To forget and merge, use :class:`~priory.BayesianLinearRegression` or
    naive Bayes.

    Parameters
    ----------
    method : {"laplace", "ml", "map", "vi", "nuts"}, default="laplace"
        "ml" uses the maximum-likelihood weights and "map" the most probable weights. The others average over the
        weights: "laplace" with a Gaussian at the peak of the posterior, "vi" with the closest Gaussian (variational
        inference), "nuts" with draws of the No-U-Turn sampler. The last two need ``priory[mcmc]``.
    solver : {"newton", "gradient"}, default="newton"
        How the peak is found: by Newton's method, or by gradient ascent, ``w <- w + eta * Σ (d - h(x)) x``.
    prior : "evidence" or float, default="evidence"
        The strength λ of the prior ``w ~ N(0, 1/λ)`` of the weights, for columns in units of their standard deviation;
        "evidence" chooses the one that maximises the evidence. Method "ml" has no prior.
    standardise : bool, default=True
        Whether the prior applies to columns in units of their standard deviation, or in their own units.
    eta : float, default=None
        The learning rate of the gradient solver; None is the largest that is guaranteed not to overshoot.
    tol : float, default=1e-6
        The gradient solver stops when no component of the gradient is larger.
    max_iter : int, default=10_000
        The largest number of steps of the gradient solver.
    draws : int, default=1000
        The number of draws of "vi", and of each chain of "nuts".
    chains : int, default=4
        The number of chains of "nuts".
    progress : bool, default=None
        Whether to show the progress of "vi" and "nuts" on standard error; None does so on a terminal.
    random_state : int, RandomState or None, default=None
        The seed of the draws.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    class_prior_ : ndarray of shape (n_classes,)
        P(class): the share of the rows of each class.
    class_count_ : ndarray of shape (n_classes,)
        The total weight of the rows of each class.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        The weights of the columns: at the peak of the posterior, or averaged over the draws.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        The log-odds where every column is zero.
    strength_ : float
        The prior strength that was used.
    log_evidence_ : float
        The log probability of the classes with the weights integrated out, in Laplace's approximation; not available
        with "ml" and "map".
    weight_draws_ : ndarray of shape (n_draws, n_contrasts, 1 + n_features)
        The draws of "vi" and "nuts", for standardised columns.
    diagnostics_ : Diagnostics
        R-hat, effective draws and divergences of "nuts".
    n_iter_ : int
        The number of steps of the solver.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of str
        The names of the columns, if the table has them.

    References
    ----------
    .. [1] T. M. Mitchell, "Machine Learning", McGraw-Hill, 1997, section 6.5.
    .. [2] C. M. Bishop, "Pattern Recognition and Machine Learning", Springer, 2006, sections 4.4 and 4.5.
    .. [3] D. J. Spiegelhalter and S. L. Lauritzen, "Sequential updating of conditional probabilities on directed
       graphical structures", Networks 20(5), 1990.
    .. [4] M. D. Hoffman and A. Gelman, "The No-U-Turn Sampler", Journal of Machine Learning Research 15, 2014.

    Examples
    --------
    The classes below are separable, so maximum likelihood would be certain; averaging over the weights is not:

    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]
    >>> BayesianLogisticRegression(prior=1.0).fit(X, y).predict_proba([[3.0]]).round(2).tolist()
    [[0.29, 0.71]]
    """

    method: str = "laplace"
    _: KW_ONLY
    solver: str = "newton"
    prior: str | float = "evidence"
    standardise: bool = True
    eta: float | None = None
    tol: float = 1e-6
    max_iter: int = 10_000
    draws: int = 1000
    chains: int = 4
    progress: bool | None = None
    random_state: RandomState = None

    classes_: Array = field(init=False)
    class_prior_: Array = field(init=False)
    class_count_: Array = field(init=False)
    strength_: float = field(init=False)
    n_iter_: int = field(init=False)
    log_evidence_: float = field(init=False)
    diagnostics_: mcmc.Diagnostics | None = field(init=False)
    _centre: Array = field(init=False)  # (columns,)
    _unit: Array = field(init=False)  # (columns,)
    _spread: Array = field(init=False)  # (classes, contrasts)
    _mean: Array = field(init=False)  # (contrasts, 1 + columns)
    _gaussian: logistic_posterior.LaplaceApproximation | None = field(init=False)
    _draws: Array | None = field(init=False)  # (draws, contrasts, 1 + columns)

    # -- learning ------------------------------------------------------------------------------------------------

    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to the rows."""
        x, labels, weight = self._read_rows(X, y, sample_weight, reset=True)
        self._fit_rows(x, labels, weight, np.unique(labels))
        return self

    @optional_method
    @replace_state
    def partial_fit(
        self, X: MatrixLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn more rows, with the current posterior as the prior; the first call needs all classes.

        The first call is ``fit``: it sets the scales of the columns and the strength of the prior.
        """
        known = self.classes_ if self._has_learned() else None
        all_classes = resolve_declared_classes(classes, known)
        x, labels, weight = self._read_rows(X, y, sample_weight, reset=known is None)
        if known is None:
            self._fit_rows(x, labels, weight, all_classes)
            return self
        examples = self._make_examples(x, encode_declared_classes(labels, known), weight)
        if self._gaussian is not None:  # None if there is only one class
            with limit_blas_threads():
                self._gaussian = self._gaussian.learn(examples)
            self._mean, self.log_evidence_ = self._gaussian.mean, self._gaussian.log_evidence
        self._count_classes(self.class_count_, examples)
        return self

    def _explain_absence(self, method: str) -> str | None:
        if method == "forget_one":
            return "its posterior is an approximation, from which no row can be taken out; call fit with the rows left."
        if self.method != "laplace":
            return f'method="{self.method}" needs all rows at once; call fit with all of them, or use method="laplace".'
        if self._has_learned() and "class_count_" not in vars(self):
            return "this model was saved by a version that did not count rows; call fit with all of them."
        return None

    def _read_rows(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None, reset: bool
    ) -> tuple[Array, Array, Array]:
        """Return the cells, the labels and the weights of rows to learn."""
        self.check_parameters()
        with guard_input(X):
            x, labels = validate_data(self, X, y, dtype=np.float64, reset=reset)
            check_classification_targets(labels)
        _check_range(x)
        weight = check_sample_weight(sample_weight, len(x))
        return x, labels, np.ones(len(x)) if weight is None else weight

    def _make_examples(self, x: Array, code: Array, weight: Array) -> logistic_posterior.TrainingExamples:
        return logistic_posterior.TrainingExamples(self._scale_rows(x), np.eye(len(self.classes_))[code], weight)

    def _count_classes(self, before: Array | float, examples: logistic_posterior.TrainingExamples) -> None:
        self.class_count_ = before + examples.weight @ examples.d
        self.class_prior_ = self.class_count_ / self.class_count_.sum()

    def _fit_rows(self, x: Array, labels: Array, weight: Array, classes: Array) -> None:
        """Fit the model to its first rows."""
        self.classes_ = classes
        self._centre, self._unit = _compute_scales(x, weight, bool(self.standardise))
        examples = self._make_examples(x, encode_declared_classes(labels, classes), weight)
        self._count_classes(0.0, examples)
        with limit_blas_threads():
            self.strength_ = self._choose_strength(examples)
            precision = logistic_posterior.prior_precision(self.strength_, examples.shape[1])
            self._find_peak(examples, precision)
            self._approximate_posterior(examples, precision)

    def check_parameters(self) -> None:
        for name, allowed in (("method", LOGISTIC_METHODS), ("solver", LOGISTIC_SOLVERS)):
            if getattr(self, name) not in allowed:
                raise DataError(f"{name} is {getattr(self, name)!r}; give one of {', '.join(allowed)}.")
        strength = self.prior
        if strength != "evidence" and not (isinstance(strength, (int, float, np.number)) and 0 < strength < np.inf):
            raise DataError(
                f'prior is {strength!r}; give "evidence" or a strength above 0 (for no prior, method="ml").'
            )

    def _choose_strength(self, examples: logistic_posterior.TrainingExamples) -> float:
        if self.method == "ml":
            return 0.0
        return (
            logistic_posterior.choose_logistic_strength(examples) if isinstance(self.prior, str) else float(self.prior)
        )

    def _find_peak(self, examples: logistic_posterior.TrainingExamples, precision: Array) -> None:
        if self.solver == "gradient":
            peak = logistic_posterior.fit_gradient_ascent(examples, precision, self.eta, self.tol, self.max_iter)
        else:
            peak = logistic_posterior.fit_newton(examples, precision)
        self._spread, self._mean, self.n_iter_ = examples.class_contrasts, peak.weights, max(peak.n_iter, 1)
        if self.method == "ml" and np.abs(examples.u @ peak.weights.T).max(initial=0.0) > SEPARATED_LOG_ODDS:
            _warn('the classes are separable, so the likelihood has no maximum; use method="map" or "laplace".')
        elif not peak.converged:
            _warn(f"the {self.solver} solver did not converge in {peak.n_iter} steps; raise max_iter or tol.")

    def _approximate_posterior(self, examples: logistic_posterior.TrainingExamples, precision: Array) -> None:
        """Set the Gaussian or the draws over which probabilities are averaged; none for "ml" and "map"."""
        self._gaussian = None
        self._draws = None
        if self.method in ("ml", "map") or not self._mean.size:
            return
        self._gaussian = logistic_posterior.LaplaceApproximation.at(examples, precision, self._mean)
        self.log_evidence_ = self._gaussian.log_evidence
        if self.method == "laplace":
            return
        seed = check_random_state(self.random_state).randint(2**31)
        show = sys.stderr.isatty() if self.progress is None else self.progress
        progress = mcmc.make_stderr_progress(self.method) if show else None
        if self.method == "vi":
            sample = mcmc.sample_variational(examples, precision, self._gaussian, self.draws, seed, progress)
        else:
            sample = mcmc.sample_nuts(examples, precision, self._gaussian, self.draws, self.chains, seed, progress)
        self._draws, self.diagnostics_ = sample
        if self.diagnostics_ is not None and (self.diagnostics_.rhat > MAX_RHAT or self.diagnostics_.divergences):
            rhat, ess, divergences = self.diagnostics_
            _warn(
                f"the chains have not converged: R-hat {rhat:.3f}, {ess:.0f} effective draws, {divergences} divergent."
            )

    def _scale_rows(self, x: Array) -> Array:
        """Return a column of ones and the standardised columns, as (rows, terms)."""
        with np.errstate(over="ignore"):
            z = np.clip((x - self._centre) / self._unit, -MAX_STANDARDISED, MAX_STANDARDISED)
        return np.column_stack([np.ones(len(x)), z])

    # -- fitted weights ----------------------------------------------------------------------------------------------

    @property
    def coef_(self) -> Array:
        """The weights of the columns: at the peak of the posterior, or averaged over the draws."""
        return self._average_weights()[:, 1:]

    @property
    def intercept_(self) -> Array:
        """The log-odds where every column is zero."""
        return self._average_weights()[:, 0]

    @optional_attribute
    def weight_draws_(self) -> Array:
        """The draws of "vi" and "nuts", (draws, contrasts, 1 + columns), for standardised columns."""
        check_is_fitted(self)
        if self._draws is None:
            raise DataError(f'method="{self.method}" makes no draws; use "vi" or "nuts".')
        return self._draws

    def _average_weights(self) -> Array:
        """Return intercept and weights in the units of the columns: (classes, terms), or (1, terms) for two classes."""
        check_is_fitted(self)
        w = self._mean if self._draws is None else self._draws.mean(axis=0)  # (contrasts, terms)
        slope = w[:, 1:] / self._unit  # (contrasts, columns), in the original units
        line = np.column_stack([w[:, 0] - slope @ self._centre, slope])
        return line if len(self.classes_) == 2 else self._spread @ line

    # -- prediction --------------------------------------------------------------------------------------------------

    def predict_proba(self, X: MatrixLike) -> Array:
        """Return the probability of each class, averaged over the weights unless the method is "ml" or "map"."""
        check_is_fitted(self)
        with guard_input(X):
            x = validate_data(self, X, dtype=np.float64, reset=False)
        _check_range(x)
        u = self._scale_rows(x)
        if self._draws is not None:
            return logistic_posterior.average_probabilities(u, self._draws, self._spread)
        if self._gaussian is not None:
            return self._gaussian.probabilities(u, self._spread)
        return np.exp(log_normalise(u @ self._mean.T @ self._spread.T))

    def predict_log_proba(self, X: MatrixLike) -> Array:
        """Return the log probability of each class."""
        return log(self.predict_proba(X))

    def _has_learned(self) -> bool:
        return "_mean" in vars(self)

    def __sklearn_is_fitted__(self) -> bool:
        return self._has_learned()


def _check_range(x: Array) -> None:
    """Raise if a number is so large that its square is infinite."""
    far = np.abs(x) > MAX_CELL_MAGNITUDE
    if far.any():
        row, column = (int(i) for i in np.argwhere(far)[0])
        raise DataError(f"row {row} of column {column} holds {x[row, column]:g}, whose square is infinite: rescale it.")


def _compute_scales(x: Array, weight: Array, standardise: bool) -> tuple[Array, Array]:
    """Return the mean and standard deviation of each column; without ``standardise``, zeros and ones."""
    if not standardise:
        return np.zeros(x.shape[1]), np.ones(x.shape[1])
    centre = np.average(x, axis=0, weights=weight)
    reach = np.abs(x - centre).max(axis=0)  # divided out first, so that squares do not underflow
    reach = np.where(reach > 0, reach, 1.0)
    variance = np.average(((x - centre) / reach) ** 2, axis=0, weights=weight)
    return centre, reach * np.sqrt(np.where(variance > 0, variance, 1.0))


def _warn(message: str) -> None:
    warnings.warn(PrioryWarning(message), stacklevel=4)
