"""Exact sums of products: equal to fractions, whatever the numbers, the order, the batches and the way of summing."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priory.core import exact_products
from priory.core.exact_products import index_pairs, list_pairs, sum_in_integers, sum_products
from priory.core.exact_sums import choose_layout
from priory.errors import DataError

LAWS = settings(max_examples=60, deadline=None)
ANY_FINITE = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True)
CELL = st.one_of(ANY_FINITE, st.sampled_from([0.0, -0.0, 1.0, 5e-324, -1.7e308, 1e300, 2.0**-1022]))


def fractions_of(sums):
    integers, exponent = sums.to_integers()
    return [Fraction(int(v)) * Fraction(2) ** exponent for v in integers]


def multiply(z, weight=None):
    w = np.ones(len(z)) if weight is None else weight
    pairs = zip(*list_pairs(z.shape[1]), strict=True)
    return [
        sum((Fraction(z[r, i]) * Fraction(z[r, j]) * Fraction(w[r]) for r in range(len(z))), Fraction(0))
        for i, j in pairs
    ]


def same(a, b):
    return a.base == b.base and a.limbs.shape == b.limbs.shape and bool((a.limbs == b.limbs).all())


@st.composite
def tables(draw):
    columns = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(CELL, min_size=columns, max_size=columns), min_size=1, max_size=12))
    return np.array(rows)


@pytest.fixture(params=["integers", "digits"])
def way(request, monkeypatch):
    """Every batch is summed in this way, however small it is."""
    monkeypatch.setattr(exact_products, "MAX_PRODUCTS_IN_INTEGERS", 10**9 if request.param == "integers" else -1)


@LAWS
@given(z=tables(), seed=st.integers(0, 2**32 - 1))
def test_any_finite_numbers_and_weights_are_summed_exactly(z, seed):
    rng = np.random.default_rng(seed)
    for weight in (None, rng.random(len(z)) * 10.0 ** rng.integers(-30, 100), rng.integers(0, 3, len(z)).astype(float)):
        assert fractions_of(sum_products(z, weight)) == multiply(z, weight)


@pytest.mark.parametrize("seed", range(6))
def test_both_ways_of_summing_give_the_fractions(way, seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(40, 3)) * 10.0 ** rng.integers(-3, 4, size=3)
    z[rng.random(z.shape) < 0.05] = 1e300
    z[rng.random(z.shape) < 0.05] = 5e-324
    z[:, 2] = np.round(z[:, 2])
    assert fractions_of(sum_products(z)) == multiply(z)


KINDS = {
    "ordinary": lambda x: x,
    "far from zero": lambda x: x + 1e8,
    "whole": lambda x: np.round(x * 50),
    "float32": lambda x: x.astype(np.float32),
    "wide": lambda x: np.exp(3 * x),
    "few huge": lambda x: np.where(np.abs(x) > 3, 1e300 * x, x),
    "all huge": lambda x: 1e250 * x,
    "all tiny": lambda x: 1e-310 * x,
    "mostly zero": lambda x: np.where(np.abs(x) > 2, x, 0.0),
    "column-major": np.asfortranarray,
}


@pytest.mark.parametrize("kind", KINDS)
def test_many_rows_sum_to_what_integers_give_in_any_order_and_batches(kind):
    rng = np.random.default_rng(3)
    z = KINDS[kind](rng.normal(size=(3_000, 5)))
    whole = sum_products(z)
    exact = np.ascontiguousarray(z, dtype=float)
    assert same(whole, sum_in_integers(exact))
    assert same(whole, sum_products(z[rng.permutation(len(z))]))
    parts = sum_products(z[:700]) + sum_products(z[700:701]) + sum_products(z[701:])
    assert same(whole, parts)
    assert same(parts - sum_products(z[:700]), sum_products(z[700:]))


def test_the_number_of_shards_does_not_matter(monkeypatch):
    z = np.random.default_rng(4).normal(size=(40_000, 3))
    whole = sum_products(z)
    monkeypatch.setattr("priory.core.sharding.ROWS_PER_SHARD", 1000)
    monkeypatch.setattr("priory.core.sharding.N_THREADS", 1)
    assert same(whole, sum_products(z))


def test_digits_at_their_largest_do_not_round():
    """Every digit of every cell is as large as a digit can be, over a whole block of rows."""
    largest = 2.0**22
    cell = largest + largest * 2.0**-23 + 2.0**-2
    z = np.full((exact_products.PRODUCT_BLOCK_ROWS, 12), cell)
    z[:, ::2] *= -1
    layout = choose_layout(lambda part: z[part], slice(0, len(z)))
    assert (layout.limit >= cell).all()
    assert fractions_of(sum_products(z)) == [len(z) * v for v in multiply(z[:1])]


def test_weights_that_repeat_are_multiplied_once_and_exactly(monkeypatch):
    rng = np.random.default_rng(5)
    z, weight = rng.normal(size=(200, 3)), rng.choice([0.0, 0.1, 3.0, 2.0**-60], 200)
    one_by_one = sum_products(z, weight)
    monkeypatch.setattr(exact_products, "MIN_ROWS_PER_WEIGHT", 1)
    assert same(sum_products(z, weight), one_by_one)
    assert fractions_of(one_by_one) == multiply(z, weight)


def test_a_whole_weight_is_a_repetition():
    rng = np.random.default_rng(6)
    z, times = rng.normal(size=(50, 3)) * 1e10, rng.integers(0, 5, 50)
    assert same(sum_products(z, times), sum_products(np.repeat(z, times, axis=0)))


def test_where_the_processor_drops_the_smallest_numbers_integers_do_not(monkeypatch):
    monkeypatch.setattr(exact_products.kernel, "flushes_denormals", lambda: True)
    monkeypatch.setattr(exact_products, "MAX_PRODUCTS_IN_INTEGERS", -1)
    z = np.array([[5e-324, 1.0], [5e-324, 1.0]])
    assert fractions_of(sum_products(z)) == multiply(z)


def test_no_rows_and_no_columns_sum_to_nothing():
    assert sum_products(np.empty((0, 3))).shape == (6,)
    assert sum_products(np.empty((4, 0))).shape == (0,)


@pytest.mark.parametrize("rows", [3, 3000])
def test_numbers_that_are_not_finite_are_refused(rows):
    z = np.ones((rows, 9))
    z[2, 1] = np.inf
    with pytest.raises(DataError, match=r"column 1 is inf; an exact sum needs finite numbers\.$"):
        sum_products(z)


def test_a_pair_is_found_in_either_order():
    left, right = list_pairs(4)
    index = index_pairs(4)
    assert index[left, right].tolist() == index[right, left].tolist() == list(range(10))
