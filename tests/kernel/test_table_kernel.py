"""The compiled loops and their readable twin say the same, and what the twin says is what it should."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from priory.core import column_kernels, sharding
from priory.core._kernel import tables as compiled
from reference_kernels import tables as reference

RNG = np.random.default_rng(5)


@pytest.fixture(params=["reference", "compiled"])
def kernel(request):
    return {"reference": reference, "compiled": compiled}[request.param]


def rows(n, d=3, groups=4, weighted=True, missing=True, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) * 3
    if missing:
        x[rng.random(x.shape) < 0.2] = np.nan
    weight = rng.integers(0, 4, n).astype(float) if weighted else None
    return x, rng.integers(0, groups, n).astype(np.int32), weight


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("n", [0, 1, 50])
def test_group_sums_are_the_sums_of_each_class(kernel, n, weighted):
    x, group, weight = rows(n, weighted=weighted, missing=False)
    w = np.ones(n) if weight is None else weight
    sums = kernel.group_sums(x, group, weight, 4)
    for c in range(4):
        assert np.allclose(sums[c], (x * w[:, None])[group == c].sum(axis=0))


@pytest.mark.parametrize("weighted", [True, False])
def test_tally_counts_each_value_of_each_column(kernel, weighted):
    _, group, weight = rows(60, weighted=weighted)
    codes = RNG.integers(-1, 3, size=(60, 2)).astype(np.int32)
    w = np.ones(60) if weight is None else weight
    counts = kernel.code_counts(codes, np.array([0, 3, 6]), group, weight, 4)
    for c in range(4):
        for j in range(2):
            for v in range(3):
                assert counts[c, 3 * j + v] == w[(group == c) & (codes[:, j] == v)].sum()


@given(st.lists(st.floats(allow_nan=True, allow_infinity=False), max_size=60), st.integers(1, 52))
def test_twins_count_the_same_values(cells, bits):
    x = np.array(cells, dtype=float)
    group = np.arange(len(x), dtype=np.int32) % 2
    with np.errstate(over="ignore"):
        values, counts = reference.value_counts(x, group, None, 2, bits)
    fast_values, fast_counts = compiled.value_counts(x, group, None, 2, bits)
    assert np.array_equal(values, fast_values)
    assert np.array_equal(counts, fast_counts)


def test_more_values_than_the_first_table_holds(kernel):
    x = RNG.normal(size=5000)
    values, counts = kernel.value_counts(x, np.zeros(5000, dtype=np.int32), None, 1, 30)
    assert len(values) > 4000
    assert counts.sum() == 5000
    assert (np.diff(values) > 0).all()


def test_values_keep_their_significant_digits(kernel):
    values, counts = kernel.value_counts(
        np.array([1000.0, 1000.4, 1023.0, -7.0, -0.0, 0.0, np.nan]), np.zeros(7, dtype=np.int32), None, 1, 10
    )
    assert values.tolist() == [-7.0, 0.0, 1000.0, 1023.0]
    assert counts.tolist() == [[1.0, 2.0, 2.0, 1.0]]


SCORES = {
    "quadratic": (np.full(3, 0.5), *(RNG.random((4, 3)) + 0.1 for _ in range(3))),
    "student": (np.full(3, 0.5), *(RNG.random((4, 3)) + 0.1 for _ in range(4))),
}


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("far", [1.0, 1e3, 1e90, 1e300])
def test_twins_score_the_same(name, far):
    x, *_ = rows(40)
    slow = getattr(reference, name)(x * far, *SCORES[name])
    fast = getattr(compiled, name)(x * far, *SCORES[name])
    assert np.isfinite(slow).all()
    assert np.allclose(slow, fast, rtol=1e-12, atol=1e-12)


def test_lookup_adds_what_the_table_says(kernel):
    table = RNG.normal(size=(5, 4))
    scores = kernel.lookup(np.array([[0, 1], [2, -1]], dtype=np.int32), np.array([0, 3, 5]), table)
    assert np.allclose(scores, [table[0] + table[4], table[2]])


def test_the_result_does_not_depend_on_the_number_of_threads(monkeypatch):
    x, group, _ = rows(3 * sharding.ROWS_PER_SHARD + 7, weighted=False)
    results = []
    for threads in (1, 2, 7):
        monkeypatch.setattr(sharding, "N_THREADS", threads)
        results.append(column_kernels.sum_exactly(x, group, None, 4, squares=True))
    for more in results[1:]:
        assert np.array_equal(results[0].n, more.n)
        assert np.array_equal(results[0].first.limbs, more.first.limbs)
        assert np.array_equal(results[0].second.limbs, more.second.limbs)


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda x: x.astype(np.float32), lambda x: x.astype(int)])
def test_any_layout_and_type_is_counted_in_double(layout):
    x = layout(np.arange(60.0).reshape(20, 3))
    group = np.zeros(20, dtype=np.int32)
    assert np.array_equal(
        column_kernels.sum_by_class(x, group, None, 1), np.arange(60.0).reshape(20, 3).sum(axis=0)[None]
    )
