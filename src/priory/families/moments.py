"""Exact moments: the number of rows, their sums, and the sums of their squares or of all products of two columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core import exact_products
from priory.core.exact_sums import ExactSums, compute_means, compute_variances, find_misshapen_sums
from priory.core.statistics import Statistics, register_record, subtract_counts
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
        refused = (lost | (left.second.signs() < 0)) & (part.n > 0)
        if refused.any():
            cell = tuple(int(i) for i in np.argwhere(refused)[0])
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


FORGOTTEN_SPREAD_TOLERANCE = 1e-9  # relative rounding error that decayed weights may leave


@register_record("Scatter", axes={"total": "c", "first": "cd", "second": "ct"})
@dataclass(frozen=True, eq=False)
class Scatter(Statistics):
    """Exact sums per class: of weights, of columns, and of products of two columns."""

    count_fields: ClassVar[tuple[str, ...]] = ()

    total: ExactSums  # (classes,)
    first: ExactSums  # (classes, columns)
    second: ExactSums  # (classes, pairs), in the order of `list_pairs`

    @classmethod
    def of(cls, rows: Array, group: Array, groups: int, weight: Array | None = None) -> Scatter:
        """Sum rows (rows, columns) without missing cells; ``group`` (rows,) is the class number of each row."""
        columns = rows.shape[1]

        def take_rows(part: slice | Array) -> Array:
            # A column of ones first: its products with the others are the weights and the sums of the columns.
            taken = rows[part]
            z = np.ones((len(taken), 1 + columns))
            z[:, 1:] = taken
            return z

        products = exact_products.sum_products_by_class(take_rows, group, groups, 1 + columns, weight)
        shape, limbs, base = products.shape[:-1], products.limbs, products.base
        # pairs (0, 0), then (0, j): products with the column of ones, then pairs of columns; limbs are the last axis
        parts = (limbs[..., 0, :], limbs[..., 1 : 1 + columns, :], limbs[..., 1 + columns :, :])
        total, first, second = (ExactSums.from_limbs(part, base) for part in parts)
        return cls(total.reshape(shape), first, second)

    def find_fault(self) -> str | None:
        columns = self.first.shape[-1]
        if self.second.shape[-1] != exact_products.count_pairs(columns):
            return "there is not one sum for each pair of columns"
        if (self.total.signs() < 0).any() or (self.second.take_columns(_find_squares(columns)).signs() < 0).any():
            return "a count or a sum of squares is negative"
        return None

    @property
    def n(self) -> Array:
        """Total weight of the rows of each class, (classes,)."""
        return self.derive("n", lambda record: record.total.to_floats())

    @property
    def unit(self) -> Array:
        """A power of two for each column, (columns,): 1, unless its squares would overflow or underflow."""
        return self.derive("unit", Scatter._choose_unit)

    def _choose_unit(self) -> Array:
        squares = self.second.take_columns(_find_squares(self.first.shape[-1]))
        pooled = squares.reshape((self.n.size, self.first.shape[-1])).sum(axis=0)
        return exact_products.choose_units(self.total.reshape((self.n.size,)).sum(axis=0), pooled)

    def check_subtraction(self, total: Scatter, part: Scatter) -> Scatter:
        """Return ``total - part``, or raise NotLearnedError if no rows have these sums.

        Sums are exact, but the weights of decayed rows are rounded, hence the tolerances.
        """
        empty = subtract_counts(total.n, part.n) == 0
        squares = _find_squares(self.first.shape[-1])
        spread, learned = (r._compute_spreads(total.unit) for r in (self, total))
        rest = self.second.take_columns(squares)
        # (classes, columns): what is left is more than rounding, yet negative or in a class without rows
        left = ~_is_small(rest, part.second.take_columns(squares))
        impossible = (rest.signs() < 0) | empty[..., None]
        if (spread < -FORGOTTEN_SPREAD_TOLERANCE * learned).any() or (left & impossible).any():
            raise NotLearnedError("cannot forget these rows: they have more spread than was learned.")
        return self._clear_classes(empty) if empty.any() else self

    def _clear_classes(self, empty: Array) -> Scatter:
        """A copy with all sums set to zero in the classes without rows."""
        return Scatter(
            *(
                ExactSums.from_limbs(
                    np.where(empty.reshape(empty.shape + (1,) * (s.limbs.ndim - empty.ndim)), 0, s.limbs), s.base
                )
                for s in (self.total, self.first, self.second)
            )
        )

    def mean(self, unit: ArrayLike | None = None) -> Array:
        """Mean of ``x / unit``, correctly rounded; NaN for a class without rows."""
        size = np.frexp(self.unit if unit is None else unit)[1] - 1
        (rows, rows_exponent), (sums, exponent) = self.total.to_integers(), self.first.to_integers()
        return exact_products.divide_integers(sums, rows[..., None], exponent - rows_exponent - size)

    def _compute_spreads(self, unit: Array) -> Array:
        """Sums of squares about the mean (classes, columns), in units."""
        n = np.broadcast_to(self.n[..., None], self.first.shape)
        squares = self.second.take_columns(_find_squares(self.first.shape[-1]))
        return n * np.nan_to_num(compute_variances(n, self.first, squares, np.frexp(unit)[1] - 1))

    def scatter_matrix(self) -> Array:
        """Sum of outer products, in units, about the mean, (…, columns, columns); zero for a class without rows.

        Products about the rounded mean are computed exactly and rounded once. The correction for the rounding of the
        mean is subtracted afterwards; it is always the smaller part.
        """
        columns = self.first.shape[-1]
        units = np.broadcast_to(np.asarray(self.unit, dtype=float), (columns,))
        size = np.concatenate([[0], np.frexp(units)[1] - 1])
        left, right = exact_products.list_pairs(1 + columns)
        sums = exact_products.join_sums([self.total.reshape((*self.total.shape, 1)), self.first, self.second])
        # One class at a time: subtract the rounded mean from the columns of the exact sums, then round to floats.
        centre = np.nan_to_num(self.mean(1.0)).reshape(-1, columns)
        found = np.empty((len(centre), columns, columns))
        for c, products in enumerate(sums.reshape((len(centre), len(left))).limbs):
            moved = exact_products.move_columns(
                ExactSums.from_limbs(products, sums.base), np.concatenate([[0.0], -centre[c]])
            )
            matrix = moved.to_floats(size[left] + size[right])[exact_products.index_pairs(1 + columns)]
            found[c] = matrix[1:, 1:] - np.outer(matrix[0, 1:], matrix[0, 1:]) / (matrix[0, 0] or 1.0)
        return found.reshape((*self.total.shape, columns, columns))


def _is_small(sums: ExactSums, total: ExactSums) -> Array:
    """Whether each sum is within the rounding error of the total."""
    (mantissa, exponent), (_, learned) = sums.to_scaled_floats(), total.to_scaled_floats()
    return np.asarray((mantissa == 0) | (exponent < learned + np.log2(FORGOTTEN_SPREAD_TOLERANCE)))


def _find_squares(columns: int) -> Array:
    """Indices of the sums of squares among the pairs of columns, (columns,)."""
    return np.diagonal(exact_products.index_pairs(columns))
