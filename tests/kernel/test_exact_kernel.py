"""The compiled exact sums and their readable twin give the same bytes, whatever the numbers are."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priory.core._kernel import exact as compiled
from reference_kernels import exact as reference

RNG = np.random.default_rng(15)


def random_bits(shape):
    x = RNG.integers(0, 2**64, size=shape, dtype=np.uint64).view(float)
    return np.where(np.isfinite(x), x, 5e-324)


def with_cells(x, share, value):
    return np.where(RNG.random(x.shape) < share, value, x)


KINDS = {
    "ordinary": lambda shape: RNG.normal(size=shape),
    "whole numbers": lambda shape: RNG.integers(-1000, 1000, shape).astype(float),
    "large whole numbers": lambda shape: RNG.integers(-(2**40), 2**40, shape),
    "32-bit whole numbers": lambda shape: RNG.integers(-(2**30), 2**30, shape).astype(np.int32),
    "single precision": lambda shape: RNG.normal(size=shape).astype(np.float32),
    "column-major": lambda shape: np.asfortranarray(RNG.normal(size=shape)),
    "every other column": lambda shape: RNG.normal(size=(shape[0], 2 * shape[1]))[:, ::2],
    "upside down": lambda shape: RNG.normal(size=shape)[::-1],
    "lognormal": lambda shape: RNG.lognormal(0, 3, shape),
    "Cauchy": lambda shape: RNG.standard_cauchy(shape),
    "outliers": lambda shape: with_cells(RNG.normal(size=shape), 0.01, 1e300),
    "many outliers": lambda shape: with_cells(RNG.normal(size=shape), 0.3, -1e40),
    "missing cells": lambda shape: with_cells(RNG.normal(size=shape), 0.2, np.nan),
    "far from zero": lambda shape: 1e9 + 1e-6 * RNG.normal(size=shape),
    "another size halfway": lambda shape: (
        RNG.normal(size=shape) * np.where(np.arange(shape[0]) < 700, 1, 1e12)[:, None]
    ),
    "powers of two": lambda shape: 2.0 ** RNG.integers(-40, 40, shape),
    "random bits": random_bits,
    "extremes": lambda shape: RNG.choice([1.7976931348623157e308, -1.7976931348623157e308, 5e-324, -0.0, 1.0], shape),
    "large, then small": lambda shape: np.where(np.arange(shape[0])[:, None] < 200, 2.0**20, RNG.normal(size=shape)),
}


def same(a, b):
    return a[1] == b[1] and a[0].shape == b[0].shape and a[0].tobytes() == b[0].tobytes()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "columns", "groups"), [(0, 2, 2), (1, 3, 2), (7, 1, 1), (150, 5, 3), (1500, 2, 2)])
def test_both_twins_add_up_the_same(kind, n, columns, groups):
    x, group = KINDS[kind]((n, columns)), RNG.integers(0, groups, n).astype(np.int32)
    counts, first, second = compiled.sum_powers(x, group, None, groups)
    expected_counts, expected_first, expected_second = reference.sum_powers(x, group, None, groups)
    assert np.array_equal(counts, expected_counts)
    assert same(first, expected_first)
    assert same(second, expected_second)


@pytest.mark.parametrize("kind", ["ordinary", "random bits", "extremes", "missing cells", "whole numbers"])
def test_both_twins_weight_the_same(kind):
    x, group = KINDS[kind]((60, 3)), RNG.integers(0, 2, 60).astype(np.int32)
    for weight in (
        RNG.random(60),
        RNG.integers(0, 5, 60).astype(float),
        np.abs(np.nan_to_num(RNG.normal(size=60) * 1e90)),
    ):
        results = [twin.sum_powers(x, group, weight, 2) for twin in (compiled, reference)]
        assert np.array_equal(results[0][0], results[1][0])
        assert same(results[0][1], results[1][1])
        assert same(results[0][2], results[1][2])


def test_many_classes_and_one_class_agree():
    x, group = RNG.normal(size=(20_000, 3)), RNG.integers(0, 300, 20_000).astype(np.int32)
    _, first, second = compiled.sum_powers(x, group, None, 300)
    _, all_first, all_second = compiled.sum_powers(x, np.zeros_like(group), None, 1)
    for apart, together in ((first, all_first), (second, all_second)):
        summed = apart[0].reshape(300, 3, -1).sum(axis=0)
        assert same(compiled.combine(summed, apart[1], np.zeros((3, 0), dtype=np.int64), 0, 1), together)


def test_infinity_is_reported_with_its_column():
    x = np.ones((500, 3))
    x[321, 2] = -np.inf
    for twin in (compiled, reference):
        with pytest.raises(OverflowError, match="2"):
            twin.sum_powers(x, np.zeros(500, dtype=np.int32), None, 1)


doubles = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=200)
@given(st.lists(st.tuples(doubles, doubles, st.sampled_from([0.0, 1.0, 2.0, 3.0, 7.5, 0.1, 1e15, 5e-324])), min_size=1))
def test_both_twins_combine_and_round_the_same(cells):
    a, b = (reference.write_values([Fraction(c[i]) ** 2 * (1 if c[i] > 0 else -1) for c in cells]) for i in (0, 1))
    squares = reference.write_values([Fraction(c[0]) ** 2 for c in cells])
    n, exponent = np.array([c[2] for c in cells]), np.arange(len(cells), dtype=np.int64) - 3
    for sign in (1, -1):
        assert same(compiled.combine(*a, *b, sign), reference.combine(*a, *b, sign))
    for name, arguments in (("divide", (*a, n, exponent)), ("variances", (n, *b, *squares, exponent)), ("split", a)):
        results = [getattr(twin, name)(*arguments) for twin in (compiled, reference)]
        np.testing.assert_array_equal(*results)


def test_a_flush_to_zero_mode_set_by_others_does_not_lose_small_numbers():
    """The environment is set for the length of the call; here it is enough that the smallest number is not lost."""
    x = np.full((300, 1), 5e-324)
    _, first, _ = compiled.sum_powers(x, np.zeros(300, dtype=np.int32), None, 1)
    assert reference.read_values(*first) == [300 * Fraction(5e-324)]
