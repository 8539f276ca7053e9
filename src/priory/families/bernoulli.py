"""Bernoulli: 0 or 1, with a Beta prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self, final

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core.column_kernels import sum_by_class
from priory.core.display_table import EstimateTable
from priory.core.logspace import log, x_log_y
from priory.core.statistics import ROW_SUM_TOLERANCE, Statistics, register_record, subtract_counts
from priory.core.value_counts import score_by_lookup
from priory.families import dirichlet
from priory.families.base import (
    ArrayFamily,
    ColumnTerm,
    GroupedRows,
    NumberBlock,
    ValueTerm,
    nan_where_zero,
    register_family,
)
from priory.families.open_columns import ColumnGuard, OpenBooleans, OpenColumns, guard_support


@register_record("Trials", axes={"n": "ce", "successes": "cd", "outside": "ce"})
@dataclass(frozen=True, eq=False)
class BernoulliStatistics(Statistics):
    """Trials, successes, and the number of values that are neither 0 nor 1, per class and column."""

    count_fields: ClassVar[tuple[str, ...]] = ("n", "successes", "outside")

    n: Array  # (classes, columns), as are all fields
    successes: Array
    outside: Array

    def find_fault(self) -> str | None:
        slack = ROW_SUM_TOLERANCE * (1 + np.abs(self.n))
        return None if (self.successes <= self.n + slack).all() else "there are more successes than trials"

    def check_subtraction(self, total: BernoulliStatistics, part: BernoulliStatistics) -> BernoulliStatistics:
        subtract_counts(total.n - total.successes, part.n - part.successes)  # failures are counts too
        return super().check_subtraction(total, part)


@register_family("bernoulli", auto_rank=1)
@final
@dataclass(frozen=True, eq=False)
class Bernoulli(dirichlet.BetaBelief, ArrayFamily[BernoulliStatistics, Array]):
    """0 or 1: ``p(x) = θ^x (1-θ)^(1-x)`` with ``θ ~ Beta(a, b)``.

    Parameters
    ----------
    a, b : float or array of shape (classes, columns)
        Virtual successes and failures. Both 1 is the uniform prior.

    Attributes
    ----------
    accepted_values : str
        The values that a column may hold, for error messages.

    References
    ----------
    Murphy, K. P. (2012). Machine Learning: A Probabilistic Perspective, section 3.3.

    Examples
    --------
    Seven cherries and three limes; then Laplace's estimate, which is the m-estimate with m = 2, p = 1/2:

    >>> seen = Bernoulli().observe([1] * 7 + [0] * 3)
    >>> float(Bernoulli().ml(seen)), float((Bernoulli(1, 1) + seen).mean())
    (0.7, 0.6666666666666666)
    >>> round(float(np.exp(Bernoulli(1, 1).log_evidence(Bernoulli().observe([1, 1, 0])))), 4)  # 1/12
    0.0833
    """

    a: float | Array = 1.0
    b: float | Array = 1.0

    accepted_values: ClassVar[str] = "only 0 and 1"
    is_discrete: ClassVar[bool] = True

    @classmethod
    def accepts(cls, values: Array) -> Array:
        return np.asarray((values == 0) | (values == 1))

    @classmethod
    def with_alpha(cls, alpha: float) -> Self:
        return cls(alpha, alpha)

    def count_virtual_rows(self, column: int) -> float | None:
        a, b = (float(np.ravel(v)[column if np.size(v) > 1 else 0]) for v in (self.a, self.b))
        return a if a == b else None

    def observe(
        self, x: ArrayLike, group: Array | None = None, groups: int = 1, weight: Array | None = None
    ) -> BernoulliStatistics:
        rows = GroupedRows(x, group, groups)

        def count(test: str) -> Array:
            return rows.reshape_sums(sum_by_class(rows.x, rows.group, weight, rows.groups, tests[test]))

        tests = {"yes": lambda v: v == 1, "no": lambda v: v == 0, "outside": lambda v: (v != 0) & (v != 1) & (v == v)}
        yes = count("yes")
        return BernoulliStatistics(yes + count("no"), yes, count("outside"))

    def posterior(self, statistics: BernoulliStatistics) -> Self:
        return type(self)(self.a + statistics.successes, self.b + (statistics.n - statistics.successes))

    @classmethod
    def empirical_prior(cls, statistics: BernoulliStatistics) -> Self:
        """A symmetric prior for each column, with the alpha that maximises the evidence over all classes."""
        yes, no = np.atleast_2d(statistics.successes), np.atleast_2d(statistics.n - statistics.successes)
        # (columns, classes, 2)
        pairs = np.stack([yes, no], axis=-1).swapaxes(0, 1)
        strength = np.array([dirichlet.choose_alpha(column) for column in pairs])
        return cls(strength, strength)

    @classmethod
    def m_estimate(cls, m: float, p: float) -> Self:
        """A prior worth ``m`` virtual examples, with mean ``p``.

        >>> seen = BernoulliStatistics(n=np.array(5.0), successes=np.array(0.0), outside=np.array(0.0))
        >>> round(float((Bernoulli.m_estimate(m=3, p=1/3) + seen).mean()), 6)
        0.125
        """
        return cls(m * p, m * (1 - p))

    def ml(self, statistics: BernoulliStatistics) -> Array:
        return np.asarray(statistics.successes / nan_where_zero(statistics.n))

    def log_density(self, x: ArrayLike, parameters: Array) -> Array:
        x, p = np.asarray(x, dtype=float), np.asarray(parameters)
        inside = (x == 0) | (x == 1)
        value = x_log_y(x == 1, log(p)) + x_log_y(x == 0, log(1 - p))
        return np.where(inside | np.isnan(x), value, -np.inf)

    def log_predictive(self, x: ArrayLike) -> Array:
        return self.log_density(x, self.mean())

    # -- classes by columns: a cell is 0, 1, neither, or missing ------------------------------------------------------

    def score(self, statistics: BernoulliStatistics, x: NumberBlock, estimate: str) -> Array:
        return _score_cases(x, self.log_likelihood(statistics, _make_case_rows(x), estimate))

    def guard(self, statistics: BernoulliStatistics, group: int) -> ColumnGuard:
        successes = statistics.successes[group]
        n, outside = (np.broadcast_to(x[group], successes.shape) for x in (statistics.n, statistics.outside))
        return guard_support(0, 1, True, n, outside, successes)

    def open(self, statistics: BernoulliStatistics) -> OpenColumns:
        is_proper = np.all(np.asarray(self.a) > 0) and np.all(np.asarray(self.b) > 0)
        return OpenBooleans(self, statistics) if is_proper else super().open(statistics)

    def log2_outcomes(self, statistics: BernoulliStatistics) -> float:
        return float(statistics.successes.shape[-1])

    def list_outcomes(self, x: Array) -> Array:
        return np.arange(2.0)

    def tabulate(self, statistics: BernoulliStatistics, estimate: str) -> list[EstimateTable]:
        """P(1 | class) and P(0 | class)."""
        belief = self.posterior(statistics)
        # (classes, columns, 2) each: for 1, and for 0
        counts = np.stack([statistics.successes, statistics.n - statistics.successes], axis=-1)
        virtual = np.stack([np.asarray(belief.a), np.asarray(belief.b)], axis=-1) - counts
        p = np.asarray(self.parameters(statistics, "mean" if estimate == "predictive" else estimate))
        shares = np.stack([p, 1 - p], axis=-1)
        return [EstimateTable([1, 0], shares[:, j], counts[:, j], virtual[:, j]) for j in range(p.shape[1])]

    def column_terms(self, statistics: BernoulliStatistics, estimate: str) -> list[ColumnTerm]:
        cases = self.log_likelihood(statistics, _make_case_rows(statistics.successes), estimate)
        return [ValueTerm(np.array([0.0, 1.0]), table) for table in cases.transpose(2, 1, 0)]

    def sample(self, parameters: Array, rng: np.random.Generator, size: int) -> Array:
        return rng.binomial(1, parameters, size=(size, *np.shape(parameters))).astype(float)


def _make_case_rows(x: NumberBlock) -> Array:
    """Three rows (3, columns), one for each case: all 0, all 1, and all a value that is neither."""
    return np.repeat([[0.0], [1.0], [2.0]], x.shape[1], axis=1)


def _score_cases(x: NumberBlock, terms: Array) -> Array:
    """Scores (rows, classes) from the terms (cases, classes, columns)."""

    def codes(part: slice) -> Array:
        cells = np.asarray(x[part], dtype=float)
        # the case of each cell; a negative code is a missing value
        return np.where(np.isnan(cells), -1, np.where(cells == 1, 1, np.where(cells == 0, 0, 2)))

    return score_by_lookup(codes, len(x), list(np.ascontiguousarray(terms.transpose(2, 1, 0))))
