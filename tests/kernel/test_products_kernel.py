"""The loops that multiply exactly: the compiled ones and their readable twins say the same."""

from fractions import Fraction

import numpy as np
import pytest

from priory.core._kernel import products as compiled
from reference_kernels import products as reference

RNG = np.random.default_rng(7)
CELLS = {
    "ordinary": RNG.normal(size=(9, 3)),
    "whole": RNG.integers(-300, 300, size=(9, 3)).astype(float),
    "extreme": np.array([[5e-324, 1.7e308, -0.0], [-1e300, 1.0, 2.2e-308], [3.0, -5e-324, 1e-200]]),
    "zero": np.zeros((2, 3)),
}


@pytest.fixture(params=["reference", "compiled"])
def kernel(request):
    return {"reference": reference, "compiled": compiled}[request.param]


def read_limbs(limbs, base):
    return [sum(Fraction(int(v)) * Fraction(2) ** (32 * (base + k)) for k, v in enumerate(row)) for row in limbs]


def multiply(z, weight):
    """The same sums by fractions."""
    w = np.ones(len(z)) if weight is None else weight
    pairs = zip(*np.triu_indices(z.shape[1]), strict=True)
    return [sum(Fraction(z[r, i]) * Fraction(z[r, j]) * Fraction(w[r]) for r in range(len(z))) for i, j in pairs]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cells", CELLS)
def test_rows_are_multiplied_exactly(kernel, cells, weighted):
    z = CELLS[cells]
    weight = RNG.random(len(z)) * 1e-3 if weighted else None
    limbs = np.zeros((6, 400), dtype=np.int64)
    kernel.add_rows(z, weight, limbs, -200)
    assert read_limbs(limbs, -200) == multiply(z, weight)


@pytest.mark.parametrize("cells", CELLS)
def test_the_range_of_limbs_is_where_cells_begin(kernel, cells):
    z = CELLS[cells]
    places = [max(np.frexp(x)[1], -1021) - 53 for x in z.flat if x]
    low, high = min(places, default=0) // 32, max(places, default=0) // 32
    assert kernel.find_limb_range(z) == (True, low, high)


def test_numbers_that_are_not_finite_are_noticed(kernel):
    assert not kernel.find_limb_range(np.array([[1.0, np.nan]]))[0]
    assert not kernel.find_limb_range(np.array([[-np.inf, 2.0]]))[0]


def test_digits_add_up_to_the_cell_and_other_rows_are_zero(kernel):
    z = np.array([[1.5, 0.375], [2.0, -257 / 1024], [1.0, 2.0**-40], [9.0, 0.125], [np.nan, 0.0], [0.25, 0.0]])
    digits = np.full((6, 3), np.nan)
    # column 1 first, in units of 1/8 and 2^-10; then column 0, in units of 1/4
    unit = np.array([[2.0**-3, 0.25], [2.0**-10, 1.0]])
    fits = kernel.cut_digits(z, np.array([1, 0]), np.array([1.0, 4.0]), unit, np.array([2, 1]), digits)
    assert fits.tolist() == [True, True, False, False, False, True]
    assert not digits[~fits].any()
    np.testing.assert_array_equal(digits[fits] @ [[0, 2.0**-3], [0.25, 0], [0, 2.0**-10]], z[fits])


def test_sums_of_digits_go_to_the_pair_of_their_columns(kernel):
    digits = RNG.integers(-50, 50, size=(20, 3))
    column, exponent = np.array([0, 1, 0]), np.array([3, -40, -70])
    limbs = np.zeros((3, 12), dtype=np.int64)
    kernel.place_sums(digits.T @ digits, column, exponent, 2, limbs, -6)
    cells = np.array([[Fraction(0)] * 2] * 20)
    for d, (c, e) in enumerate(zip(column, exponent, strict=True)):
        cells[:, c] += [Fraction(int(v)) * Fraction(2) ** int(e) for v in digits[:, d]]
    products = [cells[:, i] @ cells[:, j] for i, j in ((0, 0), (0, 1), (1, 1))]
    assert read_limbs(limbs, -6) == products


def test_this_machine_keeps_the_smallest_numbers(kernel):
    assert kernel.flushes_denormals() is False


def test_products_of_sums_of_columns_follow_from_those_of_the_columns(kernel):
    z = RNG.integers(-999, 999, size=(6, 4)) / 8
    limbs = np.zeros((10, 4), dtype=np.int64)
    for k, (i, j) in enumerate(zip(*np.triu_indices(4), strict=True)):
        total = int((z[:, i] * z[:, j]).sum() * 64) << 26  # in units of 2^-32
        limbs[k] = [total & 0xFFFFFFFF, total >> 32, 0, 0]
        limbs[k, 1:] = (total >> 32 & 0xFFFFFFFF, total >> 64 & 0xFFFFFFFF, -1 if total < 0 else 0)
    index, factor = np.array([[1, 0, 0], [3, 0, 2]]), np.array([[1.0, -0.1, 0.0], [1.0, 1e9 + 0.1, -0.7]])
    found, base = kernel.transform_sums(limbs, index, factor)
    cells = [[Fraction(v) for v in row] for row in z]
    new = [
        [sum(Fraction(f) * row[i] for f, i in zip(factor[c], index[c], strict=True)) for c in (0, 1)] for row in cells
    ]
    expected = [sum(row[i] * row[j] for row in new) for i, j in ((0, 0), (0, 1), (1, 1))]
    assert read_limbs(found, base - 1) == expected
