"""Exact sums: a group in the machine's own arithmetic, rounded once, when it is read."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from priory.core.exact_sums import LIMB_MASK, ExactSums, compute_means, compute_variances
from priory.errors import DataError

finite = st.floats(allow_nan=False, allow_infinity=False)
columns = st.lists(finite, min_size=1, max_size=12).map(np.array)


def fractions_of(sums):
    integers, exponent = sums.to_integers()
    return [Fraction(int(v)) * Fraction(2) ** exponent for v in integers.flat]


def same_bytes(a, b):
    return a.base == b.base and a.limbs.shape == b.limbs.shape and a.limbs.tobytes() == b.limbs.tobytes()


@given(columns)
def test_floats_survive_the_round_trip(x):
    sums = ExactSums.from_floats(x)
    assert sums.find_fault() is None
    assert sums.to_floats().tolist() == x.tolist()
    assert same_bytes(ExactSums.from_integers(*sums.to_integers()), sums)


@given(columns, st.randoms())
def test_any_order_and_any_grouping_gives_the_same_bytes(x, random):
    order = list(range(len(x)))
    random.shuffle(order)
    cut = random.randrange(len(x) + 1)
    one, other = ExactSums.from_floats(x[order[:cut]]), ExactSums.from_floats(x[order[cut:]])
    total = ExactSums.from_floats(x).sum()
    assert same_bytes(one.sum() + other.sum(), total)
    assert fractions_of(total) == [sum(map(Fraction, x.tolist()), Fraction(0))]


@given(finite, finite, finite)
def test_what_is_subtracted_again_was_never_there(a, b, c):
    a, b, c = (ExactSums.from_products(np.array([v]), np.array([v])) for v in (a, b, c))
    assert same_bytes((a + b + c) - b, c + a)
    assert (a - a).limbs.shape == (1, 0)


@given(columns, st.integers(-1000, 1000))
def test_a_whole_number_times_a_sum_is_exact(x, factor):
    assert fractions_of(ExactSums.from_floats(x) * factor) == [Fraction(v) * factor for v in x.tolist()]


@given(columns, st.floats(1e-6, 1.0))
def test_any_other_factor_keeps_192_bits(x, factor):
    scaled = ExactSums.from_floats(x) * factor
    assert scaled.find_fault() is None
    for v, result in zip(x.tolist(), fractions_of(scaled), strict=True):
        assert abs(result - Fraction(v) * Fraction(factor)) <= abs(Fraction(v)) * Fraction(2) ** -190


def test_a_sum_that_decays_for_a_long_time_needs_no_more_room():
    sums = ExactSums.from_floats(np.array([1 / 3]))
    for _ in range(2_000):
        sums = sums * 0.9 + ExactSums.from_floats(np.array([1 / 3]))
    assert sums.limbs.shape[-1] <= 8
    for _ in range(100):
        sums = sums * 1e-300
    assert sums.limbs.shape == (1, 0)


@given(st.lists(finite, min_size=1, max_size=12))
def test_mean_and_variance_are_rounded_once(values):
    x, n = np.array(values), np.array(float(len(values)))
    first, second = ExactSums.from_floats(x).sum(), ExactSums.from_products(x, x).sum()
    exact = [Fraction(v) for v in values]
    mean = sum(exact, Fraction(0)) / len(exact)
    assert float(compute_means(n, first)) == float(mean)
    spread = sum(((v - mean) ** 2 for v in exact), Fraction(0)) / len(exact)
    try:
        assert float(compute_variances(n, first, second)) == float(spread)
    except OverflowError:
        assert float(compute_variances(n, first, second)) == np.inf


@pytest.mark.parametrize(
    ("limbs", "base"),
    [
        ([[LIMB_MASK + 1, 1]], 0),
        ([[-1, 1]], 0),
        ([[1, 1 << 31]], 0),
        ([[1, 0]], 0),
        ([[0, 1]], 0),
        ([[1 << 31, -1]], 0),
        ([[1]], 99_999),
        ([[1]], -102),
        ([[]], 3),
    ],
)
def test_limbs_that_no_sum_has_are_found_out(limbs, base):
    assert ExactSums(np.array(limbs, dtype=np.int64), base).find_fault()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(DataError, match="exact sum"):
        ExactSums.from_floats([1.0, value])
