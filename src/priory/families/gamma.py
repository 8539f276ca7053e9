"""Gamma: positive numbers, with a Gamma prior on the rate and a log-normal prior on the shape."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import ClassVar, NamedTuple, Self, final

import numpy as np
import scipy
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core.column_kernels import sum_by_class, sum_exactly
from priory.core.exact_sums import ExactSums, compute_means, find_misshapen_sums
from priory.core.logspace import gammaln, log_by_table, log_sum_exp, psi, psi_prime
from priory.core.statistics import Statistics, register_record
from priory.families.base import (
    ArrayFamily,
    BinTerm,
    ColumnTerm,
    DensityTerm,
    GroupedRows,
    nan_where_zero,
    register_family,
)
from priory.families.moments import MIN_CLASS_VARIANCE_SHARE, MIN_VARIATION, find_common_steps
from priory.families.open_columns import ColumnGuard, OpenColumns, OpenGammas, guard_support

MIN_GAMMA_VALUE, MAX_GAMMA_VALUE = 1e-300, 1e300  # beyond these, sums would overflow
MIN_EXCESS = MIN_VARIATION**2  # of log(mean x) over mean(log x)
LOG_SHAPE_SD = 2.0  # prior standard deviation of log k: the shape is within a factor e^2 of 1


@cache
def find_shape_nodes() -> tuple[Array, Array]:
    """Nodes (in standard deviations) and weights of the Gauss-Hermite quadrature over the log shape."""
    return np.polynomial.hermite_e.hermegauss(31)


class GammaSums(NamedTuple):
    """Rows, their sum and the sum of their logarithms, as floats (classes, columns)."""

    n: Array
    total: Array
    log_total: Array


@register_record("Positives", axes={"n": "cd", "outside": "cd"})
@dataclass(frozen=True, eq=False)
class GammaStatistics(Statistics):
    """Rows, their sum, the sum of their logarithms, and the number of values that are not positive, per class."""

    count_fields: ClassVar[tuple[str, ...]] = ("n", "outside")

    n: Array  # (classes, columns), as are all fields
    total: ExactSums
    log_total: ExactSums  # exact sum of the logarithms, each rounded to a double
    outside: Array

    def find_fault(self) -> str | None:
        fault = find_misshapen_sums(self.n, self.total, self.log_total)
        return fault or ("a sum of positive numbers is negative" if (self.total.signs() < 0).any() else None)

    def sums(self) -> GammaSums:
        """The sums as doubles."""
        return self.derive("sums", lambda s: GammaSums(s.n, s.total.to_floats(), s.log_total.to_floats()))

    def find_steps(self) -> Array:
        """Resolution of each column (columns,): the largest of 1, 0.1, 0.01, ... that divides all values, or 0."""
        return self.derive("steps", lambda s: find_common_steps([(s.sums().total, s.sums().total)]))

    def find_varying(self) -> Array:
        """Whether the values of each column vary measurably, (columns,)."""
        return self.derive("varying", lambda s: _log_mean_excess(s.pool_classes().sums())[0] > MIN_EXCESS)

    def find_means(self) -> Array:
        """Mean of each column over all classes, (columns,)."""
        pooled = self.pool_classes()
        return compute_means(pooled.n, pooled.total)[0]

    def find_largest_log_shapes(self) -> Array:
        """Upper bound of the log shape of each class, (classes, columns).

        The squared coefficient of variation is about ``1 / shape``. In a class of ``n`` rows it is at least
        its value within all classes, times ``1 / (n + 1)²`` or the minimum share that `Gaussian` uses, if larger.
        """
        return self.derive("largest shapes", lambda s: s._find_largest_log_shapes())

    def _find_largest_log_shapes(self) -> Array:
        # As for a Gaussian: the squared coefficient of variation within classes, (columns,), with a term for the case
        # that every class has one row; ``share`` (classes, columns) is the least fraction of it that a class may have.
        pooled, classes = self.pool_classes(), np.maximum((self.n > 0).sum(axis=0), 1)
        spread, total = (1 / _approximate_ml_shape(_log_mean_excess(s.sums())) for s in (self, pooled))
        rows = np.maximum(pooled.n[0] - classes + 1, 1.0)
        within = (np.nansum(self.n * spread, axis=0) + total[0] / classes**2) / rows
        share = np.maximum(MIN_CLASS_VARIANCE_SHARE, 1 / (self.n + 1) ** 2)
        return np.nan_to_num(-np.log(share * within), nan=np.inf)

    def blur_sums(self) -> GammaSums:
        """Expected sums if each value is uniform within one step of the column's resolution.

        Averaging log x over a step lowers it by (step / x)² / 24, to second order.
        """
        n, total, log_total = self.sums()
        steps = self.find_steps() if self.n.ndim == 2 else 0.0
        return GammaSums(n, total, log_total - n * np.nan_to_num(steps * nan_where_zero(n) / total) ** 2 / 24)


class GammaParameters(NamedTuple):
    """The parameters of a Gamma distribution."""

    shape: Array
    rate: Array


@register_family("gamma", auto_rank=4)
@final
@dataclass(frozen=True, eq=False)
class Gamma(ArrayFamily[GammaStatistics, GammaParameters]):
    """Positive numbers: ``x ~ Gamma(k, θ)`` with ``θ ~ Gamma(a, b)``; conjugate for a known shape ``k``.

    If ``shape`` is None, ``log k ~ N(0, 2²)``, the rate is about ``k a / b`` a priori (so the mean is about ``b / a``
    for every shape), and the shape is integrated out by quadrature about its most probable value. The shape of each
    class is bounded: no class varies less than the resolution of the column allows.

    Parameters
    ----------
    shape : float, optional
        The shape ``k``, if it is known.
    a, b : float or array of shape (columns,)
        The prior of the rate.
    seen : GammaStatistics, optional
        The statistics learned so far, if the shape is unknown; set by ``posterior``.

    Attributes
    ----------
    accepted_values : str
        The values that a column may hold, for error messages.

    References
    ----------
    Minka, T. P. (2002). Estimating a Gamma distribution.

    Examples
    --------
    >>> seen = Gamma().observe([1.0, 2.0, 3.0, 4.0])
    >>> [round(float(v), 3) for v in Gamma().ml(seen)]
    [4.265, 1.706]
    >>> float((Gamma(shape=2.0, a=1.0, b=1.0) + seen).mean().rate)
    0.8181818181818182
    """

    shape: float | None = None
    a: float | Array = 1.0
    b: float | Array = 1.0
    seen: GammaStatistics | None = None  # needed because an unknown shape has no conjugate prior

    accepted_values: ClassVar[str] = "positive numbers"

    @classmethod
    def accepts(cls, values: Array) -> Array:
        return np.asarray(values > 0)

    def observe(
        self, x: ArrayLike, group: Array | None = None, groups: int = 1, weight: Array | None = None
    ) -> GammaStatistics:
        rows = GroupedRows(x, group, groups)
        # The kernels skip NaN, so values that are not positive are treated as missing here, and counted by ``outside``.
        counted = sum_exactly(rows.x, rows.group, weight, rows.groups, _keep_positive)
        logged = sum_exactly(rows.x, rows.group, weight, rows.groups, lambda v: log_by_table(_keep_positive(v)))
        outside = sum_by_class(rows.x, rows.group, weight, rows.groups, lambda v: ~_is_positive(v) & (v == v))
        shape = rows.reshape_sums
        return GammaStatistics(shape(counted.n), shape(counted.first), shape(logged.first), shape(outside))

    def posterior(self, statistics: GammaStatistics) -> Self:
        if self.shape is None:
            return replace(self, seen=statistics if self.seen is None else self.seen + statistics)
        return replace(self, a=self.a + self.shape * statistics.n, b=self.b + statistics.sums().total)

    @classmethod
    def empirical_prior(cls, statistics: GammaStatistics) -> Self:
        """A prior worth one event, on the scale of the mean of all rows."""
        return cls(None, 1.0, np.nan_to_num(statistics.find_means(), nan=1.0))

    # -- the shape -----------------------------------------------------------------------------------------------

    def _log_evidence_given_shape(self, k: Array, statistics: GammaSums, b: Array) -> Array:
        """Log evidence of the statistics for a known shape ``k`` and ``rate ~ Gamma(a, b)``."""
        a = np.asarray(self.a)
        # ∫ Π Gamma(x_i | k, θ) Gamma(θ | a, b) dθ: a Gamma integral with shape ``after`` and rate b + Σ x_i
        after = a + k * statistics.n
        drawn = (k - 1) * statistics.log_total - statistics.n * gammaln(k)
        return np.asarray(drawn + gammaln(after) - gammaln(a) + a * np.log(b) - after * np.log(b + statistics.total))

    def _find_shape_mode(self, statistics: GammaSums, largest: Array) -> tuple[Array, Array]:
        """Mode of ``s = log k`` up to ``largest``, and the width of the peak, by damped Newton steps."""
        # All arrays are (classes, columns). Newton starts at the maximum likelihood estimate, held back for few rows.
        a, n = np.asarray(self.a), statistics.n
        total, ease = statistics.total / self.b, 1 / LOG_SHAPE_SD**2
        s = np.minimum(
            np.nan_to_num(np.log(_approximate_ml_shape(_log_mean_excess(statistics)))), 2 * np.maximum(n - 1, 0.0)
        )
        for _ in range(60):
            k = np.exp(s)
            # first and second derivative of the log evidence with respect to k, then (bend) the curvature in s = log k
            after, share = a + k * n, total / (1 + k * total)
            first = statistics.log_total - n * (np.log(self.b) - s - 1 + np.log1p(k * total))
            first = first + n * (psi(after) - psi(k)) - after * share
            second = n * (1 / k - psi_prime(k) + n * psi_prime(after) - 2 * share) + after * share**2
            bend = np.maximum(ease, ease - k * first - k**2 * second)
            step = np.clip((k * first - s * ease) / bend, -1.0, 1.0)
            moved = np.clip(s + step, -12.0, np.minimum(largest, 25.0))
            step, s = moved - s, moved
            if np.max(np.abs(step), initial=0.0) < 1e-10:
                break
        return s, 1 / np.sqrt(bend)

    def _integrate_shape(self, statistics: GammaStatistics) -> tuple[Array, Array]:
        """Quadrature nodes of the shape (last axis), and the log of each node's contribution to the evidence."""
        sums = statistics.blur_sums()
        largest = statistics.find_largest_log_shapes() if statistics.n.ndim == 2 else np.asarray(np.inf)
        s, width = (v[..., None] for v in self._find_shape_mode(sums, largest))
        # Gauss-Hermite quadrature of exp(given + prior) as a function of s: dividing by the weight function of the
        # rule adds at² / 2, and the change of variable log(width). Nodes are the last axis.
        at, share = find_shape_nodes()
        nodes = np.minimum(s + width * at, largest[..., None])
        prior = -0.5 * (nodes / LOG_SHAPE_SD) ** 2 - np.log(LOG_SHAPE_SD * np.sqrt(2 * np.pi))
        wide = GammaSums(*(np.asarray(f)[..., None] for f in sums))
        k = np.exp(nodes)
        # Amounts near the largest float overflow for shapes near zero: such a shape has no evidence.
        with np.errstate(over="ignore", invalid="ignore"):
            given = self._log_evidence_given_shape(k, wide, np.asarray(self.b)[..., None] / k)
        given = np.nan_to_num(given, nan=-np.inf, posinf=-np.inf, neginf=-np.inf)
        return k, np.asarray(given + prior + np.log(share) + at**2 / 2 + np.log(width))

    @cached_property
    def _shape_evidence(self) -> tuple[GammaStatistics, Array, Array]:
        """The statistics seen, the quadrature nodes, and their contributions to the evidence."""
        seen = self.seen if self.seen is not None else _make_empty_statistics(np.shape(self.b))
        return seen, *self._integrate_shape(seen)

    @cached_property
    def _shape_posterior(self) -> tuple[Array, Array, Array, Array]:
        """Shapes (last axis), their log probabilities, and the posterior ``a``, ``b`` of the rate given each shape."""
        a, b = np.asarray(self.a)[..., None], np.asarray(self.b)[..., None]
        if self.shape is not None:
            return np.full((1,), self.shape), np.zeros(1), a, b
        seen, k, mass = self._shape_evidence
        mass = mass - log_sum_exp(mass)[..., None]
        with np.errstate(over="ignore"):  # as above
            return k, mass, a + k * seen.n[..., None], b / k + seen.sums().total[..., None]

    # -- estimates -----------------------------------------------------------------------------------------------

    def ml(self, statistics: GammaStatistics) -> GammaParameters:
        mean = compute_means(statistics.n, statistics.total)
        if self.shape is not None:
            return GammaParameters(np.broadcast_to(self.shape, np.shape(mean)), self.shape / mean)
        excess = _log_mean_excess(statistics.sums())
        k = _approximate_ml_shape(excess)
        # Newton's method for log k - psi(k) = excess
        for _ in range(20):
            k = k - (np.log(k) - psi(k) - excess) / (1 / k - psi_prime(k))
        if statistics.n.ndim == 2:
            k = np.minimum(k, np.exp(statistics.find_largest_log_shapes()))
        return GammaParameters(k, k / mean)

    def mode(self) -> GammaParameters:
        """The most probable node of the shape, and the mode of the rate given that shape."""
        k, mass, a, b = self._shape_posterior
        best = np.argmax(mass, axis=-1, keepdims=True)  # mass is (…, nodes)

        def pick(v: Array) -> Array:
            wide = np.broadcast_to(v, np.broadcast_shapes(v.shape, mass.shape))
            return np.take_along_axis(wide, best, axis=-1)[..., 0] if mass.ndim > 1 else wide[..., 0]

        return GammaParameters(pick(k), np.maximum(pick(a) - 1, 0.0) / pick(b))

    def mean(self) -> GammaParameters:
        k, mass, a, b = self._shape_posterior
        p = np.exp(mass)
        return GammaParameters((p * k).sum(axis=-1), (p * a / b).sum(axis=-1))

    def quantile(self, q: float) -> GammaParameters:
        """Quantiles of the shape (interpolated between nodes) and of the rate (a mixture of Gammas, by bisection)."""
        k, mass, a, b = self.shape_posterior()
        p = np.exp(mass)
        # log k is nearly normal: interpolated against the normal quantile of the probability below each node
        below = scipy.special.ndtri(np.cumsum(p, axis=-1) - p / 2)
        flat = zip(below.reshape(-1, k.shape[-1]), np.log(k).reshape(-1, k.shape[-1]), strict=True)
        shape = np.exp([np.interp(scipy.special.ndtri(q), at, node) for at, node in flat]).reshape(k.shape[:-1])
        each = scipy.special.gammaincinv(a, q) / b
        # the quantile of a mixture lies between the quantiles of its components
        low, high = np.log(each.min(axis=-1)), np.log(each.max(axis=-1))
        for _ in range(60):
            middle = (low + high) / 2
            is_above = (p * scipy.special.gammainc(a, b * np.exp(middle)[..., None])).sum(axis=-1) > q
            low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
        return GammaParameters(shape, np.exp(high))

    def shape_posterior(self) -> tuple[Array, Array, Array, Array]:
        """Shapes (last axis), their log probabilities, and the posterior ``a``, ``b`` of the rate given each shape."""
        k, mass, a, b = self._shape_posterior
        cells = np.broadcast_shapes(k.shape, mass.shape, a.shape, b.shape)
        return tuple(np.broadcast_to(v, cells).copy() for v in (k, mass, a, b))  # type: ignore[return-value]

    # -- probabilities -------------------------------------------------------------------------------------------

    def log_density(self, x: ArrayLike, parameters: GammaParameters) -> Array:
        x, (k, rate) = np.asarray(x, dtype=float), (np.asarray(p, dtype=float) for p in parameters)
        y = np.where(_is_positive(x), x, 1.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            value = k * np.log(rate) + (k - 1) * np.log(y) - rate * y - gammaln(k)
        return np.where(_is_positive(x) | np.isnan(x), value, -np.inf)

    def log_predictive(self, x: ArrayLike) -> Array:
        k, mass, a, b = self._shape_posterior
        x = np.asarray(x, dtype=float)
        # (rows, classes, columns, nodes): for each shape the rate is integrated out; then sum over the shapes
        y = np.where(_is_positive(x), x, 1.0)[..., None]
        constant = mass + gammaln(a + k) - gammaln(a) - gammaln(k) - k * np.log(b)
        value = log_sum_exp(constant + (k - 1) * np.log(y) - (a + k) * np.logaddexp(0.0, np.log(y) - np.log(b)))
        return np.where(_is_positive(x) | np.isnan(x), value, -np.inf)

    def log_normaliser(self) -> Array:
        """Log normaliser of the belief about the rate, for a known shape."""
        return np.asarray(gammaln(self.a) - np.asarray(self.a) * np.log(self.b))

    def log_evidence(self, statistics: GammaStatistics) -> Array:
        if self.shape is not None:
            return self._log_evidence_given_shape(np.asarray(self.shape), statistics.sums(), np.asarray(self.b))
        if self.seen is not None:
            return log_sum_exp(self._integrate_shape(statistics)[1])
        return log_sum_exp(statistics.derive("posterior", self.posterior, self)._shape_evidence[2])

    # -- classes by columns: a column whose values do not vary measurably contributes nothing ------------------------

    def log_likelihood(self, statistics: GammaStatistics, x: Array, estimate: str) -> Array:
        return np.where(statistics.find_varying(), super().log_likelihood(statistics, x, estimate), 0.0)

    def evidence(self, statistics: GammaStatistics) -> Array:
        return np.where(statistics.find_varying(), super().evidence(statistics), -np.inf)

    def guard(self, statistics: GammaStatistics, group: int) -> ColumnGuard:
        return guard_support(MIN_GAMMA_VALUE, MAX_GAMMA_VALUE, False, statistics.n[group], statistics.outside[group])

    def open(self, statistics: GammaStatistics) -> OpenColumns:
        return OpenGammas(self, statistics)

    def n_parameters(self, statistics: GammaStatistics) -> int:
        return (2 if self.shape is None else 1) * statistics.n.shape[-1]

    def column_terms(self, statistics: GammaStatistics, estimate: str) -> list[ColumnTerm]:
        varies, shape = statistics.find_varying(), (*statistics.n.shape, 1)
        if estimate == "predictive":
            k, mass, a, b = statistics.derive("posterior", self.posterior, self)._shape_posterior
            constant = mass + gammaln(a + k) - gammaln(a) - gammaln(k) - k * np.log(b)
            given = {"constant": constant, "shape": k, "power": a + k, "scale": b}
            shape, form = (*shape[:2], constant.shape[-1]), "gamma"
        else:
            k, rate = (np.asarray(p, dtype=float) for p in self.parameters(statistics, estimate))
            constant, form = np.nan_to_num(k * np.log(rate) - gammaln(k)), "amount"
            given = {"constant": constant, "shape": np.nan_to_num(k, nan=1.0), "rate": np.nan_to_num(rate)}
            given = {name: np.asarray(value)[..., None] for name, value in given.items()}
        wide = {name: np.broadcast_to(value, shape) for name, value in given.items()}  # (classes, columns, nodes)
        return [
            DensityTerm(form, {name: value[:, j] for name, value in wide.items()})
            if varies[j]
            else BinTerm(np.zeros(0), np.zeros((len(statistics.n), 1)))
            for j in range(shape[1])
        ]

    def draw(self, rng: np.random.Generator, size: int) -> GammaParameters:
        k, mass, a, b = self._shape_posterior
        cells = np.broadcast_shapes(mass.shape, a.shape, b.shape)
        # The Gumbel-max trick draws a node for each sample and column with probability exp(mass).
        noise = rng.gumbel(size=(size, *cells))
        pick = np.argmax(np.broadcast_to(mass, cells) + noise, axis=-1)[..., None]

        def chosen(v: Array) -> Array:
            return np.take_along_axis(np.broadcast_to(v, (size, *cells)), pick, axis=-1)[..., 0]

        return GammaParameters(chosen(k), rng.gamma(chosen(a), 1 / chosen(b)))

    def sample(self, parameters: GammaParameters, rng: np.random.Generator, size: int) -> Array:
        shape = (size, *np.shape(parameters.shape))
        return rng.gamma(parameters.shape, 1 / np.asarray(parameters.rate), size=shape)


def _is_positive(x: Array) -> Array:
    return np.asarray((x >= MIN_GAMMA_VALUE) & (x <= MAX_GAMMA_VALUE))


def _keep_positive(x: Array) -> Array:
    return np.where(_is_positive(x), x, np.nan)


def _log_mean_excess(statistics: GammaSums) -> Array:
    """log(mean x) - mean(log x), at least MIN_EXCESS: it determines the maximum likelihood shape."""
    n = nan_where_zero(statistics.n)
    return np.asarray(np.maximum(np.log(statistics.total / n) - statistics.log_total / n, MIN_EXCESS))


def _approximate_ml_shape(excess: Array) -> Array:
    """Closed-form approximation of the maximum likelihood shape, with an error of a few hundredths."""
    return np.asarray((3 - excess + np.sqrt((excess - 3) ** 2 + 24 * excess)) / (12 * excess))


def _make_empty_statistics(shape: tuple[int, ...]) -> GammaStatistics:
    return GammaStatistics(np.zeros(shape), ExactSums.zeros(shape), ExactSums.zeros(shape), np.zeros(shape))
