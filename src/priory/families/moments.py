"""Moments: the number of rows, their sum and the sum of their squares, without rounding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from priory.core.exact_sums import ExactSums, compute_means, compute_variances, find_misshapen_sums
from priory.core.registration import register_record
from priory.core.statistics import Statistics
from priory.core.typing import Array
from priory.errors import NotLearnedError

MAX_STEP_DIGITS = 6  # decimal places up to which the step of a column is searched
ROUNDINGS_PER_VALUE = 4  # upper bound of the relative errors (eps) of a decimal fraction, its square and their sums
MAX_STEP_ROUNDING = 0.01  # in steps: with larger rounding errors the step cannot be determined
MIN_VARIATION = 1e-6  # standard deviation / mean: below it, sums of logarithms cannot distinguish the values
MIN_CLASS_VARIANCE_SHARE = 1e-4  # of the variance within classes: lower bound for each class
MAX_UNIT_EXPONENT = 1000  # units and their inverses are ordinary doubles
SPREAD_ROUNDING_TOLERANCE = 1e-9  # of the sum of squares: smaller negative variances are rounding errors


@register_record("Moments", axes={"n": "cd"})
@dataclass(frozen=True, eq=False)
class Moments(Statistics):
    """The number of rows, their sum and the sum of their squares, all of them exact.

    ``n`` is ``weight`` rounded; they differ only where fractional weights do not add up to a double.
    """

    n: Array  # (classes, columns)
    weight: ExactSums  # (classes, columns)
    first: ExactSums  # (classes, columns)
    second: ExactSums  # (classes, columns)

    def find_fault(self) -> str | None:
        fault = find_misshapen_sums(self.n, self.weight, self.first, self.second)
        if fault is None and not np.array_equal(self.n, self.weight.to_floats()):
            return "the number of rows is not their weight"
        return fault or ("a sum of squares is negative" if (self.second.signs() < 0).any() else None)

    def combine(self, other: Moments, op: Callable[[Array, Array], Array]) -> Moments:
        combined = super().combine(other, op)
        return replace(combined, n=combined.weight.to_floats())

    def pool_classes(self) -> Moments:
        pooled = super().pool_classes()
        return replace(pooled, n=pooled.weight.to_floats())

    def __mul__(self, weight: float) -> Moments:
        """Scale the sums by exactly the ratio of the rounded counts, so that decay changes no mean and no variance."""
        n = ExactSums.from_floats(self.n * weight)
        (before, exponent), (after, scaled_exponent) = self.weight.to_integers(), n.to_integers()
        # The ratio of the scaled weight (rounded) to the exact one, as two integers with a common exponent.
        before = np.where(self.n > 0, before, 1)
        lowest = min(exponent, scaled_exponent)
        ratio = after << (scaled_exponent - lowest), before << (exponent - lowest)
        return Moments(n.to_floats(), n, self.first.scale(*ratio), self.second.scale(*ratio))

    __rmul__ = __mul__

    def check_subtraction(self, total: Moments, part: Moments) -> Moments:
        left: Moments = super().check_subtraction(total, part)
        left = replace(left, n=left.weight.to_floats())
        exponent = total._find_top_exponent()
        squares = np.maximum(total.second.to_floats(2 * exponent), 0.0)
        # No rows have a negative sum of squares about their mean: then these rows were not learned.
        lost = left.n * left.variances(exponent) < -SPREAD_ROUNDING_TOLERANCE * squares
        if (lost | (left.second.signs() < 0)).any():
            cell = tuple(int(i) for i in np.argwhere(lost | (left.second.signs() < 0))[0])
            raise NotLearnedError("cannot forget these values: they have more spread than was learned.", cell)
        return left

    def means(self, exponent: ArrayLike = 0) -> Array:
        """The means in units of ``2 ** exponent``, correctly rounded; NaN for a class without rows."""
        return compute_means(self.weight, self.first, exponent)

    def variances(self, exponent: ArrayLike = 0) -> Array:
        """The variances in units of ``2 ** (2 * exponent)``, correctly rounded; zero for a class without rows."""
        variances = compute_variances(self.weight, self.first, self.second, exponent)
        return np.where(np.isnan(variances), 0.0, variances)

    def find_exponents(self) -> Array:
        """Exponents (columns,) such that ``2 ** exponent`` is near the size of the values of each column.

        In these units nothing that is derived from the sums overflows, even if squares of the values do.
        """
        return self.derive("exponents", lambda s: s.pool_classes()._find_sizes()[0])

    def units(self) -> Array:
        """``2 ** exponent`` for each column."""
        return np.ldexp(1.0, self.find_exponents())

    def find_steps(self) -> Array:
        """Resolution of each column (columns,): the largest of 1, 0.1, 0.01, ... that divides all values, or 0."""
        return self.derive("steps", lambda s: s._find_steps())

    def _find_steps(self) -> Array:
        first, second = self.first.to_floats(), self.second.to_floats()
        size = self.n * np.sqrt(second / np.where(self.n > 0, self.n, 1.0))  # at least sum |x|
        return find_common_steps([(first, size), (second, second)])

    def _find_sizes(self) -> Array:
        _, squares = self.second.to_scaled_floats()
        sizes = np.ceil((squares - np.frexp(np.where(self.n > 0, self.n, 1.0))[1]) / 2).astype(np.int64)
        return np.clip(np.where(self.second.signs() > 0, sizes, 0), -MAX_UNIT_EXPONENT, MAX_UNIT_EXPONENT)

    def _find_top_exponent(self) -> Array:
        """An exponent for each class and column, such that the sum of squares is near 1 in its unit."""
        return np.asarray(self.second.to_scaled_floats()[1] // 2)


def find_common_steps(sums: Sequence[tuple[Array, Array]]) -> Array:
    """Resolution of each column (columns,): the largest of 1, 0.1, 0.01, ... that divides all values, or 0.

    ``sums`` holds, for the first, second, ... powers of the values, the sums (classes, columns) and upper bounds of the
    sums of absolute values. Sums of multiples of a step are multiples of the step, and sums of their squares multiples
    of its square. The result is 0 for smaller steps, and for sums too large to decide.
    """
    steps = np.zeros(sums[0][0].shape[1:])
    for digits in range(MAX_STEP_DIGITS, -1, -1):
        fits = np.ones(steps.shape, dtype=bool)
        for power, (total, size) in enumerate(sums, start=1):
            scale = 10.0 ** (power * digits)
            with np.errstate(over="ignore", invalid="ignore"):
                rounding = ROUNDINGS_PER_VALUE * np.finfo(float).eps * size * scale
                near = np.abs(total * scale - np.rint(total * scale)) <= rounding
            # (columns,): the sums of every class are whole multiples of step ** power, up to rounding
            fits &= (near & (rounding < MAX_STEP_ROUNDING)).all(axis=0)
        steps = np.where(fits, 10.0**-digits, steps)
    return steps
