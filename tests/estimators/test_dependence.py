"""How dependent columns are given the class, measured within the classes, and what that costs the answers."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

import priory as pr
from priory.errors import DataError


def draw_pair(apart, rows=3000, correlation=0.6, seed=0):
    """Two Gaussian columns with the same correlation in two classes that are ``apart``."""
    rng = np.random.default_rng(seed)
    c = rng.integers(0, 2, rows)
    return rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], rows) + apart * c[:, None], c


@pytest.mark.parametrize("apart", [0, 1, 2, 4])
def test_equal_dependence_is_equal_however_far_the_classes_are_apart(apart):
    x, c = draw_pair(apart)
    table = {"a": x[:, 0], "b": x[:, 1], "skewed": np.exp(x[:, 0])}
    bits = pr.measure_dependence(table, c).bits
    assert bits[1, [0, 2]] == pytest.approx(-0.5 * np.log2(1 - 0.6**2), abs=0.03)  # 0.32


def test_all_six_pairs_of_iris_are_dependent():
    iris = load_iris(as_frame=True)
    found = pr.measure_dependence(iris.data, iris.target)
    assert found.verdict.startswith("6 of 6 pairs are dependent given the class")
    first, second, bits = found.violations()[0]
    assert {first, second} == {"sepal length (cm)", "petal length (cm)"}
    assert bits == pytest.approx(0.55, abs=0.03)


def test_two_copies_of_noise_are_dependent_and_cost_nothing():
    rng = np.random.default_rng(0)
    c, x = rng.integers(0, 2, 1000), rng.normal(size=1000)
    found = pr.measure_dependence({"x": x, "copy": x}, c)
    assert found.bits[0, 1] > 5
    assert abs(found.cost.value) < 0.01
    assert f"What it costs the answers may be chance, {found.cost:.2g} in log loss" in found.verdict


def test_copies_that_tell_the_class_cost_what_counting_them_twice_costs():
    rng = np.random.default_rng(0)
    c = rng.integers(0, 2, 1000)
    x = 1.5 * c + rng.normal(size=1000)
    found = pr.measure_dependence(dict.fromkeys("abcd", x), c)
    assert found.cost.low > 0.1
    assert found.cost.value == pytest.approx(found.naive.log_loss.value - found.corrected.log_loss.value)
    assert f"It costs the answers {found.cost:.2g} in log loss: naive Bayes has" in found.verdict


@pytest.mark.slow
@pytest.mark.parametrize("values", [2, 12])
def test_independent_columns_show_no_dependence(values):
    """Numbers, and labels with many empty cells, in 30 tables: at 1 % for all pairs, hardly one is found."""
    found, bits = 0, []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        c = rng.integers(0, 3, 150)
        table = {"x": c + rng.normal(size=150), "y": rng.exponential(size=150)}
        table |= {name: rng.integers(0, values, 150).astype(str) for name in "uv"}
        one = pr.measure_dependence(table, c)
        found += len(one.violations())
        bits.append(one.bits[np.triu_indices(4, 1)].mean())
    assert found <= 1
    assert np.mean(bits) < 0.03


def test_dependence_that_is_no_correlation_and_dependence_of_labels_are_found():
    rng = np.random.default_rng(0)
    c, x = rng.integers(0, 2, 1000), rng.normal(size=1000)
    u = rng.integers(0, 2, 1000)
    v = np.where(rng.random(1000) < 0.11, 1 - u, u)  # it differs from u in 11 % of the rows: 0.5 bits in common
    table = {
        "x": np.where(np.arange(1000) % 10 == 0, np.nan, x),
        "square": x**2,
        "u": u.astype(str),
        "v": v.astype(str),
    }
    found = pr.measure_dependence(table, c)
    assert {frozenset(pair[:2]) for pair in found.violations()} == {frozenset(("x", "square")), frozenset("uv")}
    assert found.bits[2, 3] == pytest.approx(0.5, abs=0.07)
    with pytest.raises(DataError, match="there are 1000 rows and 999 labels"):
        pr.measure_dependence(table, c[1:])
