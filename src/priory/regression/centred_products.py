"""Cross products about a given centre, computed exactly and rounded once; the posterior is built from them.

    Σ (z - c) (z - c)'  =  Σ z z' - c Σ z' - Σ z c' + n c c'

In doubles the right-hand side cancels (with mean 1e8 and standard deviation 1 no digit is left); here it is exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from priory.core.exact_products import index_pairs, list_pairs
from priory.core.typing import Array
from priory.regression.cross_products import CrossProducts


class CentredProducts(NamedTuple):
    """Sums and products of ``z = ((y, x) - centre) / unit``; a missing cell is zero."""

    n: float
    first: Array  # (1 + terms,): Σ z
    second: Array  # (1 + terms, 1 + terms): Σ z z'

    def scatter(self) -> Array:
        """Return the products about the mean, as (1 + terms, 1 + terms)."""
        return np.asarray(self.second - np.outer(self.first, self.first) / max(self.n, np.finfo(float).tiny))


def centre_products(statistics: CrossProducts, centre: Array, unit: Array) -> CentredProducts:
    """Return the products about ``centre`` in ``unit``, both (1 + terms,), each rounded once."""

    def compute(record: CrossProducts) -> CentredProducts:
        size = np.concatenate([[0], np.frexp(unit)[1] - 1])  # log2 units of the constant, the target and the terms
        left, right = list_pairs(len(size))
        # exact sums of all pairs, expanded to a symmetric matrix (2 + terms, 2 + terms)
        matrix = record.move_cells(-centre).to_floats(size[left] + size[right])[index_pairs(len(size))]
        return CentredProducts(float(matrix[0, 0]), matrix[0, 1:], matrix[1:, 1:])

    return statistics.derive("centred", compute, centre.tobytes(), unit.tobytes())
