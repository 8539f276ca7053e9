"""What was forgotten was never there: records, predictions and files, for any finite numbers, order and batches."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import priory as pr
from priory.regression.linear_regression import BayesianLinearRegression

LAWS = settings(max_examples=40, deadline=None)
EXTREMES = [0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1e-200, 1.0, 1e9, 1e100, -1e300, 1.7e308, -1.7e308]
CELL = st.one_of(st.sampled_from(EXTREMES), st.floats(-1e3, 1e3), st.floats(allow_nan=False, allow_infinity=False))


@st.composite
def batches(draw):
    """Some batches of rows: cells (some of them missing), targets, and weights or None."""
    columns = draw(st.integers(1, 3))
    found = []
    for _ in range(draw(st.integers(2, 5))):
        n = draw(st.integers(1, 4))
        cells = st.lists(st.one_of(CELL, st.just(np.nan)), min_size=columns, max_size=columns)
        x = np.array(draw(st.lists(cells, min_size=n, max_size=n)))
        y = np.array(draw(st.lists(CELL, min_size=n, max_size=n)))
        weight = draw(st.none() | st.lists(st.sampled_from([1.0, 2.0, 0.1, 1e-20, 3e50]), min_size=n, max_size=n))
        found.append((x, y, weight))
    return found


def save(model, path):
    pr.save(model, path)
    return path.read_bytes()


def assert_equal_records(a, b):
    assert a.terms == b.terms
    assert a.products.base == b.products.base
    np.testing.assert_array_equal(a.products.limbs, b.products.limbs)


@LAWS
@given(parts=batches(), data=st.data())
def test_learned_forgotten_and_merged_in_any_order_is_never_seen(parts, data, tmp_path_factory):
    n_kept = data.draw(st.integers(1, len(parts) - 1))
    kept, gone = parts[:n_kept], parts[n_kept:]
    plain = BayesianLinearRegression(prior=1.0)
    for part in kept:
        plain.partial_fit(*part)

    order = data.draw(st.permutations(range(len(parts))))
    model, other = BayesianLinearRegression(prior=1.0), BayesianLinearRegression(prior=1.0)
    for place, i in enumerate(order):
        (model if place % 2 else other).partial_fit(*parts[i])
    model = model.merge(other)
    for part in data.draw(st.permutations(gone)):
        model.forget(*part)

    assert_equal_records(model.statistics_, plain.statistics_)
    folder = tmp_path_factory.mktemp("models")
    assert save(model, folder / "a.priory") == save(plain, folder / "b.priory")


@pytest.mark.parametrize("size", [1e9, 1e100, 1e300, 1.7e308, 5e-324])
def test_a_row_of_any_size_can_be_learned_and_withdrawn(size, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    y = x @ [2.0, -1.0, 0.5] + 0.01 * rng.normal(size=200)
    model = BayesianLinearRegression().fit(x, y)
    weights, noise, before = model.coef_, model.noise_, save(model, tmp_path / "before.priory")
    attack = np.full((1, 3), size), [-size]
    model.partial_fit(*attack)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.predict(x)).all()
    assert not np.isnan(model.noise_)
    model.forget(*attack)
    np.testing.assert_array_equal(model.coef_, weights)
    assert model.noise_ == noise
    assert save(model, tmp_path / "after.priory") == before


def test_a_table_with_levels_and_gaps_keeps_nothing_of_a_forgotten_row(tmp_path):
    table = pl.DataFrame({"cm": [3.0, None, 5.0, 4.0], "sex": ["F", "M", "I", "F"], "kg": [1.0, 2.0, 3.0, None]})
    y = np.array([1.0, 2.0, 3.0, 4.0])
    for kept in ([0, 3], [1, 2], [2, 0, 3]):
        gone = [i for i in range(4) if i not in kept]
        plain = BayesianLinearRegression(prior=1.0).fit(table[kept], y[kept])
        model = BayesianLinearRegression(prior=1.0).fit(table[::-1], y[::-1]).forget(table[gone], y[gone])
        assert save(model, tmp_path / "a.priory") == save(plain, tmp_path / "b.priory")


def test_a_model_that_has_forgotten_everything_learns_like_a_new_one():
    table = pl.DataFrame({"sex": ["F", "M"], "kg": [1.0, 2.0]})
    model = BayesianLinearRegression(prior=1.0).fit(table, [1.0, 2.0]).forget(table, [1.0, 2.0])
    again = model.partial_fit(table, [1.0, 2.0])
    assert_equal_records(again.statistics_, BayesianLinearRegression().fit(table, [1.0, 2.0]).statistics_)


@pytest.mark.parametrize("kind", ["float32", "int64", "column-major", "pandas"])
def test_the_type_and_layout_of_the_table_do_not_matter(kind):
    rng = np.random.default_rng(1)
    x, y = rng.integers(-99, 99, size=(2000, 9)).astype(float), rng.normal(size=2000)
    table = {
        "float32": lambda: x.astype(np.float32),
        "int64": lambda: x.astype(np.int64),
        "column-major": lambda: np.asfortranarray(x),
        "pandas": lambda: pl.DataFrame(x, schema=[f"x{i}" for i in range(9)]).to_pandas(),
    }[kind]()
    model, plain = BayesianLinearRegression().fit(table, y), BayesianLinearRegression().fit(x, y)
    np.testing.assert_array_equal(model.statistics_.products.limbs, plain.statistics_.products.limbs)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
