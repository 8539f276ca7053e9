"""Statistics of a multivariate Gaussian: exact sums of columns and of products of two columns, per class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from priory.core.exact_products import (
    choose_units,
    count_pairs,
    divide_integers,
    index_pairs,
    join_sums,
    list_pairs,
    move_columns,
)
from priory.core.exact_sums import ExactSums, compute_variances
from priory.core.registration import register_record
from priory.core.statistics import Statistics, subtract_counts
from priory.core.typing import Array
from priory.errors import NotLearnedError

FORGOTTEN_SPREAD_TOLERANCE = 1e-9  # relative rounding error that decayed weights may leave


@register_record(
    "Scatter",
    axes={"total": "c", "first": "cd", "second": "ct"},
)
@dataclass(frozen=True, eq=False)
class Scatter(Statistics):
    """Exact sums per class: of weights, of columns, and of products of two columns."""

    count_fields: ClassVar[tuple[str, ...]] = ()

    total: ExactSums  # (classes,)
    first: ExactSums  # (classes, columns)
    second: ExactSums  # (classes, pairs), in the order of `list_pairs`

    @classmethod
    def from_products(cls, products: ExactSums, columns: int) -> Scatter:
        """Build from the sums of products (…, pairs) of rows with a leading column of ones."""
        shape, limbs, base = products.shape[:-1], products.limbs, products.base
        # pairs (0, 0), then (0, j): products with the column of ones, then pairs of columns; limbs are the last axis
        parts = (limbs[..., 0, :], limbs[..., 1 : 1 + columns, :], limbs[..., 1 + columns :, :])
        total, first, second = (ExactSums.from_limbs(part, base) for part in parts)
        return cls(total.reshape(shape), first, second)

    def find_fault(self) -> str | None:
        columns = self.first.shape[-1]
        if self.second.shape[-1] != count_pairs(columns):
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
        return choose_units(self.total.reshape((self.n.size,)).sum(axis=0), pooled)

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
        return divide_integers(sums, rows[..., None], exponent - rows_exponent - size)

    def _compute_spreads(self, unit: Array) -> Array:
        """Sums of squares about the mean (classes, columns), in units."""
        n = np.broadcast_to(self.n[..., None], self.first.shape)
        squares = self.second.take_columns(_find_squares(self.first.shape[-1]))
        return n * np.nan_to_num(compute_variances(n, self.first, squares, np.frexp(unit)[1] - 1))

    def scatter_matrix(self, unit: ArrayLike | None = None) -> Array:
        """Sum of outer products of ``x / unit`` about the mean, (…, columns, columns); zero for a class without rows.

        Products about the rounded mean are computed exactly and rounded once. The correction for the rounding of the
        mean is subtracted afterwards; it is always the smaller part.
        """
        columns = self.first.shape[-1]
        units = np.broadcast_to(np.asarray(self.unit if unit is None else unit, dtype=float), (columns,))
        size = np.concatenate([[0], np.frexp(units)[1] - 1])
        left, right = list_pairs(1 + columns)
        sums = join_sums([self.total.reshape((*self.total.shape, 1)), self.first, self.second])
        # One class at a time: subtract the rounded mean from the columns of the exact sums, then round to floats.
        centre = np.nan_to_num(self.mean(1.0)).reshape(-1, columns)
        found = np.empty((len(centre), columns, columns))
        for c, products in enumerate(sums.reshape((len(centre), len(left))).limbs):
            moved = move_columns(ExactSums.from_limbs(products, sums.base), np.concatenate([[0.0], -centre[c]]))
            matrix = moved.to_floats(size[left] + size[right])[index_pairs(1 + columns)]
            found[c] = matrix[1:, 1:] - np.outer(matrix[0, 1:], matrix[0, 1:]) / (matrix[0, 0] or 1.0)
        return found.reshape((*self.total.shape, columns, columns))


def _is_small(sums: ExactSums, total: ExactSums) -> Array:
    """Whether each sum is within the rounding error of the total."""
    (mantissa, exponent), (_, learned) = sums.to_scaled_floats(), total.to_scaled_floats()
    return np.asarray((mantissa == 0) | (exponent < learned + np.log2(FORGOTTEN_SPREAD_TOLERANCE)))


def _find_squares(columns: int) -> Array:
    """Indices of the sums of squares among the pairs of columns, (columns,)."""
    return np.diagonal(index_pairs(columns))
