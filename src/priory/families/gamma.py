"""Gamma: positive numbers, with a Gamma prior on the rate and a log-normal prior on the shape."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import ClassVar, NamedTuple, Self, final

import numpy as np
from numpy.typing import ArrayLike

from priory.core.column_kernels import sum_by_class, sum_exactly
from priory.core.exact_sums import ExactSums, compute_means, find_misshapen_sums
from priory.core.logspace import log_sum_exp
from priory.core.registration import register_record
from priory.core.special_functions import gammainc, gammaincinv, gammaln, ndtri, psi, psi_prime
from priory.core.statistics import Statistics
from priory.core.typing import Array
from priory.families.base import ArrayFamily, GroupedRows, nan_where_zero
from priory.families.moments import MIN_CLASS_VARIANCE_SHARE, MIN_VARIATION, find_common_steps
from priory.families.open_columns import OpenColumns, OpenGammas
from priory.families.registry import register_family

MIN_GAMMA_VALUE, MAX_GAMMA_VALUE = 1e-300, 1e300  # sums of anything beyond would overflow
MIN_EXCESS = MIN_VARIATION**2  # of the log mean over the mean log
LOG_SHAPE_SD = 2.0  # of log k: the shape is believed to lie within a factor e^2 of 1


@cache
def find_shape_nodes() -> tuple[Array, Array]:
    """Where the integral over log shapes is evaluated, in standard deviations, and the weights."""
    return np.polynomial.hermite_e.hermegauss(31)


class GammaSums(NamedTuple):
    """The number of rows, their sum and the sum of their logarithms, rounded."""

    n: Array
    total: Array
    log_total: Array


@register_record("Positives", axes={"n": "cd", "outside": "cd"})
@dataclass(frozen=True, eq=False)
class GammaStatistics(Statistics):
    """The number of rows, their sum, the sum of their logarithms, and the number of values that are not positive."""

    count_fields: ClassVar[tuple[str, ...]] = ("n", "outside")

    n: Array
    total: ExactSums
    log_total: ExactSums  # of the logarithms as doubles
    outside: Array

    def find_fault(self) -> str | None:
        fault = find_misshapen_sums(self.n, self.total, self.log_total)
        return fault or ("a sum of positive numbers is negative" if (self.total.signs() < 0).any() else None)

    def sums(self) -> GammaSums:
        """The sums as doubles."""
        return self.derive("sums", lambda s: GammaSums(s.n, s.total.to_floats(), s.log_total.to_floats()))

    def find_steps(self) -> Array:
        """The coarsest of 1, 0.1, 0.01, ... that all values of a column can be multiples of, or zero: (columns,)."""
        return self.derive("steps", lambda s: find_common_steps([(s.sums().total, s.sums().total)]))

    def find_varying(self) -> Array:
        """Whether the sums can tell the values of a column apart: (columns,)."""
        return self.derive("varying", lambda s: _log_mean_excess(s.pool_classes().sums())[0] > MIN_EXCESS)

    def find_means(self) -> Array:
        """The mean of each column, over all classes: (columns,)."""
        pooled = self.pool_classes()
        return compute_means(pooled.n, pooled.total)[0]

    def find_largest_log_shapes(self) -> Array:
        """The logarithm of the largest shape that each class may have: (classes, columns).

        The square of the coefficient of variation is about ``1 / shape``. In a class of ``n`` rows it is at least
        ``1 / (n + 1)²`` of what it is in all classes, or the share of the variance that a Gaussian class has at least.
        """
        return self.derive("largest shapes", lambda s: s._find_largest_log_shapes())

    def _find_largest_log_shapes(self) -> Array:
        pooled, classes = self.pool_classes(), np.maximum((self.n > 0).sum(axis=0), 1)
        spread, total = (1 / _approximate_ml_shape(_log_mean_excess(s.sums())) for s in (self, pooled))
        rows = np.maximum(pooled.n[0] - classes + 1, 1.0)
        within = (np.nansum(self.n * spread, axis=0) + total[0] / classes**2) / rows
        share = np.maximum(MIN_CLASS_VARIANCE_SHARE, 1 / (self.n + 1) ** 2)
        return np.nan_to_num(-np.log(share * within), nan=np.inf)

    def blur_sums(self) -> GammaSums:
        """The sums, expected of values that are known to within a step.

        What is averaged over the step is log x: it falls short of the log of the mean by a 24th of the step's square.
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

    Where ``shape`` is None, ``log k ~ N(0, 2²)``, the rate is believed to be about ``k a / b`` (``b / a`` is a guess of
    the mean, whatever the shape), and the shape is integrated out by quadrature about its most probable value. The
    shapes of classes are bounded: no class varies less than the resolution of the column allows.

    Parameters
    ----------
    shape : float, optional
        The shape ``k``, if it is known.
    a, b : float or array of shape (columns,)
        The prior of the rate.
    seen : GammaStatistics, optional
        What a belief about an unknown shape has learned; set by ``posterior``.

    Attributes
    ----------
    accepted_values : str
        What a column must hold for this family, for people to read.

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
    seen: GammaStatistics | None = None  # what a belief about an unknown shape has to remember

    accepted_values: ClassVar[str] = "positive numbers"

    @classmethod
    def accepts(cls, values: Array) -> Array:
        return np.asarray(values > 0)

    def observe(
        self, x: ArrayLike, group: Array | None = None, groups: int = 1, weight: Array | None = None
    ) -> GammaStatistics:
        rows = GroupedRows(x, group, groups)
        counted = sum_exactly(rows.x, rows.group, weight, rows.groups, _keep_positive)
        logged = sum_exactly(rows.x, rows.group, weight, rows.groups, lambda v: np.log(_keep_positive(v)))
        outside = sum_by_class(rows.x, rows.group, weight, rows.groups, lambda v: ~_is_positive(v) & (v == v))
        shape = rows.reshape_sums
        return GammaStatistics(shape(counted.n), shape(counted.first), shape(logged.first), shape(outside))

    def posterior(self, statistics: GammaStatistics) -> Self:
        if self.shape is None:
            return replace(self, seen=statistics if self.seen is None else self.seen + statistics)
        return replace(self, a=self.a + self.shape * statistics.n, b=self.b + statistics.sums().total)

    @classmethod
    def empirical_prior(cls, statistics: GammaStatistics) -> Self:
        """Worth one event, on the scale of the mean of all rows."""
        return cls(None, 1.0, np.nan_to_num(statistics.find_means(), nan=1.0))

    # -- the shape -----------------------------------------------------------------------------------------------

    def _log_evidence_given_shape(self, k: Array, statistics: GammaSums, b: Array) -> Array:
        """Log evidence of ``seen`` for a known shape and ``rate ~ Gamma(a, b)``."""
        a = np.asarray(self.a)
        after = a + k * statistics.n
        drawn = (k - 1) * statistics.log_total - statistics.n * gammaln(k)
        return np.asarray(drawn + gammaln(after) - gammaln(a) + a * np.log(b) - after * np.log(b + statistics.total))

    def _find_shape_mode(self, statistics: GammaSums, largest: Array) -> tuple[Array, Array]:
        """Where the log density of ``s = log k`` peaks up to ``largest``, and the width of the peak: Newton, damped."""
        a, n = np.asarray(self.a), statistics.n
        total, ease = statistics.total / self.b, 1 / LOG_SHAPE_SD**2
        s = np.minimum(
            np.nan_to_num(np.log(_approximate_ml_shape(_log_mean_excess(statistics)))), 2 * np.maximum(n - 1, 0.0)
        )
        for _ in range(60):
            k = np.exp(s)
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
        """Quadrature nodes for the shape, and the log of each one's share of the evidence: last axis."""
        sums = statistics.blur_sums()
        largest = statistics.find_largest_log_shapes() if statistics.n.ndim == 2 else np.asarray(np.inf)
        s, width = (v[..., None] for v in self._find_shape_mode(sums, largest))
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
        """What was seen, the nodes, and their shares of its evidence."""
        seen = self.seen if self.seen is not None else _make_empty_statistics(np.shape(self.b))
        return seen, *self._integrate_shape(seen)

    @cached_property
    def _shape_posterior(self) -> tuple[Array, Array, Array, Array]:
        """Shapes (last axis), their log probabilities, and the belief ``a``, ``b`` about the rate for each."""
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
        excess = _log_mean_excess(statistics.blur_sums())
        k = _approximate_ml_shape(excess)
        for _ in range(20):
            k = k - (np.log(k) - psi(k) - excess) / (1 / k - psi_prime(k))
        if statistics.n.ndim == 2:
            k = np.minimum(k, np.exp(statistics.find_largest_log_shapes()))
        return GammaParameters(k, k / mean)

    def mode(self) -> GammaParameters:
        """The shape's most probable node, and the most probable rate given it."""
        k, mass, a, b = self._shape_posterior
        best = np.argmax(mass, axis=-1, keepdims=True)

        def pick(v: Array) -> Array:
            wide = np.broadcast_to(v, np.broadcast_shapes(v.shape, mass.shape))
            return np.take_along_axis(wide, best, axis=-1)[..., 0] if mass.ndim > 1 else wide[..., 0]

        return GammaParameters(pick(k), np.maximum(pick(a) - 1, 0.0) / pick(b))

    def mean(self) -> GammaParameters:
        k, mass, a, b = self._shape_posterior
        p = np.exp(mass)
        return GammaParameters((p * k).sum(axis=-1), (p * a / b).sum(axis=-1))

    def quantile(self, q: float) -> GammaParameters:
        """Of the shape between the nodes of its quadrature, and of the rate, a mixture of Gammas, by bisection."""
        k, mass, a, b = self.shape_posterior()
        p = np.exp(mass)
        # log k is nearly normal: interpolated against the normal quantile of the probability below each node
        below = ndtri(np.cumsum(p, axis=-1) - p / 2)
        flat = zip(below.reshape(-1, k.shape[-1]), np.log(k).reshape(-1, k.shape[-1]), strict=True)
        shape = np.exp([np.interp(ndtri(q), at, node) for at, node in flat]).reshape(k.shape[:-1])
        each = gammaincinv(a, q) / b
        low, high = np.log(each.min(axis=-1)), np.log(each.max(axis=-1))  # the quantile is between those of the parts
        for _ in range(60):
            middle = (low + high) / 2
            is_above = (p * gammainc(a, b * np.exp(middle)[..., None])).sum(axis=-1) > q
            low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
        return GammaParameters(shape, np.exp(high))

    def shape_posterior(self) -> tuple[Array, Array, Array, Array]:
        """Shapes (last axis), their log probabilities, and the belief ``a``, ``b`` about the rate for each."""
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
        y = np.where(_is_positive(x), x, 1.0)[..., None]
        constant = mass + gammaln(a + k) - gammaln(a) - gammaln(k) - k * np.log(b)
        value = log_sum_exp(constant + (k - 1) * np.log(y) - (a + k) * np.logaddexp(0.0, np.log(y) - np.log(b)))
        return np.where(_is_positive(x) | np.isnan(x), value, -np.inf)

    def log_normaliser(self) -> Array:
        """Of the belief about the rate, for a known shape."""
        return np.asarray(gammaln(self.a) - np.asarray(self.a) * np.log(self.b))

    def log_evidence(self, statistics: GammaStatistics) -> Array:
        if self.shape is not None:
            return self._log_evidence_given_shape(np.asarray(self.shape), statistics.sums(), np.asarray(self.b))
        if self.seen is not None:
            return log_sum_exp(self._integrate_shape(statistics)[1])
        return log_sum_exp(statistics.derive("posterior", self.posterior, self)._shape_evidence[2])

    # -- classes by columns: a column whose values the sums do not tell apart gives no evidence ----------------------

    def log_likelihood(self, statistics: GammaStatistics, x: Array, estimate: str) -> Array:
        return np.where(statistics.find_varying(), super().log_likelihood(statistics, x, estimate), 0.0)

    def evidence(self, statistics: GammaStatistics) -> Array:
        return np.where(statistics.find_varying(), super().evidence(statistics), -np.inf)

    def open(self, statistics: GammaStatistics) -> OpenColumns:
        return OpenGammas(self, statistics)

    def n_parameters(self, statistics: GammaStatistics) -> int:
        return (2 if self.shape is None else 1) * statistics.n.shape[-1]

    def draw(self, rng: np.random.Generator, size: int) -> GammaParameters:
        k, mass, a, b = self._shape_posterior
        cells = np.broadcast_shapes(mass.shape, a.shape, b.shape)
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
    """How far the logarithm of the mean is above the mean of the logarithms."""
    n = nan_where_zero(statistics.n)
    return np.asarray(np.maximum(np.log(statistics.total / n) - statistics.log_total / n, MIN_EXCESS))


def _approximate_ml_shape(excess: Array) -> Array:
    """An approximation of the maximum likelihood shape, with an error of a few hundredths."""
    return np.asarray((3 - excess + np.sqrt((excess - 3) ** 2 + 24 * excess)) / (12 * excess))


def _make_empty_statistics(shape: tuple[int, ...]) -> GammaStatistics:
    return GammaStatistics(np.zeros(shape), ExactSums.zeros(shape), ExactSums.zeros(shape), np.zeros(shape))
