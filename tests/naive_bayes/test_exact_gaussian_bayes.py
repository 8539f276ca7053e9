"""GaussianBayes: what was forgotten was never there, for any finite numbers, order and batches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import priory as pr
from priory.naive_bayes import GaussianBayes

LAWS = settings(max_examples=40, deadline=None)
EXTREMES = [0.0, -0.0, 5e-324, 2.2e-308, 1.0, 1e9, -1e100, 1e300, 1.7e308, -1.7e308]
CELL = st.one_of(st.sampled_from(EXTREMES), st.floats(-1e3, 1e3), st.floats(allow_nan=False, allow_infinity=False))


@st.composite
def tables(draw):
    """Rows of two classes, each of them there at least twice, and whole weights or none."""
    columns, n = draw(st.integers(1, 3)), draw(st.integers(8, 14))
    cells = st.lists(CELL, min_size=columns, max_size=columns)
    x = np.array(draw(st.lists(cells, min_size=n, max_size=n)))
    weight = draw(st.none() | st.lists(st.integers(1, 3), min_size=n, max_size=n))
    return x, np.arange(n) % 2, None if weight is None else np.array(weight, dtype=float)


def take(table, rows):
    return tuple(None if part is None else part[rows] for part in table)


def save(model, path):
    pr.save(model, path)
    return path.read_bytes()


def assert_equal_records(a, b):
    for name in ("total", "first", "second"):
        one, other = getattr(a.statistics_.parts[0], name), getattr(b.statistics_.parts[0], name)
        assert one.base == other.base
        np.testing.assert_array_equal(one.limbs, other.limbs)


@LAWS
@given(table=tables(), seed=st.integers(0, 2**32 - 1), n_gone=st.integers(1, 4))
def test_learned_forgotten_and_merged_in_any_order_is_never_seen(table, seed, n_gone, tmp_path_factory):
    rng = np.random.default_rng(seed)
    rows = np.arange(len(table[1]))
    kept = take(table, rows[n_gone:])
    plain = GaussianBayes().partial_fit(*kept[:2], [0, 1], kept[2])
    head, tail = np.array_split(rng.permutation(rows), 2)
    a, b = (GaussianBayes().partial_fit(*take(table, part)[:2], [0, 1], take(table, part)[2]) for part in (head, tail))
    model = a.merge(b).forget(*take(table, rng.permutation(rows[:n_gone])))
    assert_equal_records(model, plain)
    folder = tmp_path_factory.mktemp("models")
    assert save(model, folder / "a.priory") == save(plain, folder / "b.priory")


@pytest.mark.parametrize("covariance", ["class", "shared"])
@pytest.mark.parametrize("estimate", ["predictive", "mean", "ml"])
@pytest.mark.parametrize("size", [1e8, 1e100, 1e300, 1.7e308])
def test_a_row_of_any_size_can_be_learned_and_withdrawn(size, estimate, covariance):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    x[y == 1] += 1
    model = GaussianBayes(estimate=estimate, covariance=covariance).fit(x, y)
    before = model.predict_proba(x), model.theta_, model.covariance_
    attack = np.full((1, 3), size), [1]
    p = model.partial_fit(*attack).predict_proba(x)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    model.forget(*attack)
    for one, other in zip(before, (model.predict_proba(x), model.theta_, model.covariance_), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_class_whose_rows_are_all_forgotten_leaves_no_sums():
    rng = np.random.default_rng(1)
    x, y = rng.normal(1e8, 1e-3, size=(40, 2)), np.arange(40) % 2
    weight = rng.choice([0.1, 0.7, 3.0], 40)
    model = GaussianBayes().fit(x, y, weight).forget(x[y == 1], y[y == 1], weight[y == 1])
    plain = GaussianBayes().fit(x[y == 0], y[y == 0], weight[y == 0])
    assert model.classes_.tolist() == [0]
    assert_equal_records(model, plain)


def test_decayed_rows_far_from_zero_are_forgotten_to_the_last_digit_but_ten():
    rng = np.random.default_rng(2)
    x, y = rng.normal(1e8, 1.0, size=(60, 2)), np.arange(60) % 2
    model = GaussianBayes(estimate="ml").fit(x, y).decay(0.9).decay(0.3)
    np.testing.assert_allclose(
        model.covariance_, GaussianBayes(estimate="ml").fit(x, y).covariance_, rtol=1e-12, atol=1e-12
    )
    model.forget(x[:20], y[:20], learned_at=1.0)
    rest = GaussianBayes(estimate="ml").fit(x[20:], y[20:])
    np.testing.assert_allclose(model.covariance_, rest.covariance_, rtol=1e-12, atol=1e-12)
    model.forget(x[20:], y[20:], learned_at=1.0)
    assert not hasattr(model, "classes_")


def test_a_constant_column_has_a_variance_of_zero_whatever_the_weights():
    x = np.column_stack([np.full(9, 0.1), np.arange(9.0)])
    weight = np.linspace(0.1, 0.9, 9)
    covariance = GaussianBayes(estimate="ml").fit(x, np.zeros(9), weight).covariance_
    assert covariance[0, 0].tolist() == [0.0, 0.0]
