"""Cross products about any point, computed in integers and rounded once: what the posterior is made of.

    Σ (z - c) (z - c)'  =  Σ z z' - c Σ z' - Σ z c' + n c c'

In doubles the right-hand side cancels (with mean 1e8 and standard deviation 1 no digit is left); here it is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from priory.core.exact_products import index_pairs, list_pairs
from priory.core.exact_sums import ExactSums, divide_exactly
from priory.core.typing import Array
from priory.regression.cross_products import CrossProducts, Term

MAX_UNSCALED_EXPONENT = 300  # columns of the size of 2**300 or 2**-300 and beyond get a unit: their squares need one


class CentredProducts(NamedTuple):
    """Sums and products of ``z = ((y, x) - centre) / unit``; a missing cell is zero."""

    n: float
    first: Array  # (1 + terms,): Σ z
    second: Array  # (1 + terms, 1 + terms): Σ z z'

    def scatter(self) -> Array:
        """Return the products about the mean, as (1 + terms, 1 + terms)."""
        return np.asarray(self.second - np.outer(self.first, self.first) / max(self.n, np.finfo(float).tiny))


def choose_units(statistics: CrossProducts) -> Array:
    """Return a power of two for the target and each term, (1 + terms,): one, unless a square would overflow or vanish.

    It is of the size of the column (the root of the mean square).
    """
    matrix = statistics.read_integers()[0]
    bits = np.array([int(v).bit_length() for v in np.diagonal(matrix)], dtype=np.int64)  # the first is that of n
    size = np.where(bits[1:] > 0, bits[1:] - bits[0], 0) // 2
    return np.ldexp(1.0, np.clip(np.where(np.abs(size) > MAX_UNSCALED_EXPONENT, size, 0), -1000, 1000))


def centre_products(statistics: CrossProducts, centre: Array, unit: Array) -> CentredProducts:
    """Return the products about ``centre`` in ``unit``, both (1 + terms,), each rounded once."""
    return statistics.derive(
        "centred", lambda record: _round_products(record, centre, unit), centre.tobytes(), unit.tobytes()
    )


def _round_products(statistics: CrossProducts, centre: Array, unit: Array) -> CentredProducts:
    matrix, exponent = statistics.read_integers()
    first, second, shift = shift_products(matrix, statistics.find_missing_flags(), *_read_integers(-centre))
    size = np.frexp(unit)[1] - 1
    left, right = list_pairs(len(centre))
    one = np.array(1, dtype=object)
    rounded = divide_exactly(second, one, exponent + 2 * shift - size[left] - size[right])
    return CentredProducts(
        float(statistics.n),
        divide_exactly(first, one, exponent + shift - size),
        rounded[index_pairs(len(centre))],
    )


def shift_products(
    matrix: Array, missing_flags: Sequence[tuple[int, int]], step: Array, exponent: int
) -> tuple[Array, Array, int]:
    """Return the sums and products of ``z + step`` in every cell present, from those of ``z``, all of them integers.

    ``matrix`` (1 + width, 1 + width) has the one first. ``step`` (width,) is in units of ``2 ** exponent``. Returns the
    sums (width,), in units that are smaller by ``2 ** shift``, the products of pairs, by ``2 ** (2 shift)``, and shift.
    """
    shift = min(exponent, 0)
    step, scale = step << (exponent - shift), -shift
    n, first, second = matrix[0, 0], matrix[0, 1:], matrix[1:, 1:]
    present = np.full(len(step), n, dtype=object)  # Σ g_i, where g_i is 1 if cell i is present, and otherwise 0
    present_sums = np.broadcast_to(first, second.shape)  # Σ g_i z_j
    present_pairs = np.full(second.shape, n, dtype=object)  # Σ g_i g_j
    if missing_flags:
        present_sums = present_sums.copy()
        absent = np.zeros((len(step), len(step) + 1), dtype=object)  # Σ f_i (1, z_j), where f_i is the flag of column i
        for value, flag in missing_flags:
            absent[value] = matrix[1 + flag]
        present = present - absent[:, 0]
        present_sums = present_sums - absent[:, 1:]
        both = np.zeros(second.shape, dtype=object)  # Σ f_i f_j
        for value, flag in missing_flags:
            both[:, value] = absent[:, 1 + flag]
        present_pairs = present_pairs - absent[:, :1] - absent[:, 0] + both
    i, j = list_pairs(len(step))
    cross = step[i] * present_sums[i, j] + step[j] * present_sums[j, i]
    products = (second[i, j] << 2 * scale) + (cross << scale) + step[i] * step[j] * present_pairs[i, j]
    return (first << scale) + step * present, products, shift


def restore_products(n: Array, first: Array, second: Array, origin: Array, terms: tuple[Term, ...]) -> CrossProducts:
    """Return the exact record that sums about an origin, as older files have them, stand for."""
    width = 1 + len(first)
    cells = np.block([[np.asarray(n, dtype=float).reshape(1, 1), first[None]], [first[:, None], second]])
    matrix, exponent = _read_integers(cells)
    old = CrossProducts(ExactSums.from_integers(matrix[list_pairs(width)], exponent), terms)
    sums, products, shift = shift_products(matrix, old.find_missing_flags(), *_read_integers(origin))
    packed = np.concatenate([[matrix[0, 0] << -2 * shift], sums << -shift, products])
    restored = CrossProducts(ExactSums.from_integers(packed, exponent + 2 * shift), terms)
    return restored.add_terms(()).drop_empty_terms()


def _read_integers(values: Array) -> tuple[Array, int]:
    """Return finite doubles as Python integers with a common exponent."""
    return ExactSums.from_floats(values).to_integers()
