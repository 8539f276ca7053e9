"""MDL discretisation: scikit-learn's checks, the published criterion computed the slow way, and bad columns."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

from priory.estimators.mdl_discretiser import MDLDiscretiser, find_mdl_cuts


@parametrize_with_checks([MDLDiscretiser()])
def test_scikit_learn_check(estimator, check):
    check(estimator)


def entropy(labels):
    return sum(-labels.count(c) / len(labels) * math.log2(labels.count(c) / len(labels)) for c in set(labels))


def cuts_by_the_book(rows):
    """Fayyad & Irani (1993) on a sorted list of (value, class), written as they write it."""
    labels, n = [c for _, c in rows], len(rows)
    places = [i for i in range(1, n) if rows[i - 1][0] < rows[i][0]]
    if not places:
        return []

    def split_entropy(i):
        return i / n * entropy(labels[:i]) + (n - i) / n * entropy(labels[i:])

    i = min(places, key=lambda i: (round(n * split_entropy(i), 8), i))
    left, right = labels[:i], labels[i:]
    k, k1, k2 = len(set(labels)), len(set(left)), len(set(right))
    delta = math.log2(3**k - 2) - (k * entropy(labels) - k1 * entropy(left) - k2 * entropy(right))
    if entropy(labels) - split_entropy(i) <= (math.log2(n - 1) + delta) / n:
        return []
    return [*cuts_by_the_book(rows[:i]), (rows[i - 1][0] + rows[i][0]) / 2, *cuts_by_the_book(rows[i:])]


@settings(max_examples=100)
@given(st.integers(0, 2**32 - 1), st.integers(2, 120), st.integers(2, 30), st.integers(2, 4))
def test_cuts_are_those_of_the_book(seed, n, values, classes):
    rng = np.random.default_rng(seed)
    column = rng.integers(0, values, n).astype(float)
    codes = np.where(rng.random(n) < 0.8, column * classes // values, rng.integers(0, classes, n)).astype(int)
    expected = cuts_by_the_book(sorted(zip(column.tolist(), codes.tolist(), strict=True)))
    assert find_mdl_cuts(column, codes) == pytest.approx(expected)


def test_iris_is_cut_where_the_literature_cuts_it():
    data = load_iris()
    edges = MDLDiscretiser().fit(data.data, data.target).edges_
    assert [e.round(2).tolist() for e in edges] == [[5.55, 6.15], [2.95, 3.35], [2.45, 4.75], [0.8, 1.75]]


def test_a_column_that_says_nothing_is_not_cut():
    rng = np.random.default_rng(0)
    binned = MDLDiscretiser().fit(rng.normal(size=(500, 4)), rng.integers(0, 3, 500))
    assert binned.n_bins_.tolist() == [1, 1, 1, 1]
    assert (binned.transform(rng.normal(size=(5, 4))) == 0).all()


def test_missing_cells_stay_missing_and_change_no_cut():
    data = load_iris()
    more = np.vstack([data.data, np.full((20, 4), np.nan)])
    binned = MDLDiscretiser().fit(more, np.append(data.target, [0] * 20))
    plain = MDLDiscretiser().fit(data.data, data.target)
    assert all(np.array_equal(a, b) for a, b in zip(binned.edges_, plain.edges_, strict=True))
    assert np.isnan(binned.transform(more)[-20:]).all()
    assert np.array_equal(binned.transform(more)[:150], plain.transform(data.data))


def test_a_column_without_values_and_enormous_values_are_handled():
    x = np.column_stack([np.full(40, np.nan), np.repeat([1e308, 1.7e308], 20)])
    binned = MDLDiscretiser().fit(x, np.repeat([0, 1], 20))
    assert binned.n_bins_.tolist() == [1, 2]
    assert np.isfinite(binned.edges_[1]).all()


def test_numbers_to_predict_are_no_classes():
    x = np.random.default_rng(0).normal(size=(20, 1))
    with pytest.raises(ValueError, match="Unknown label type"):
        MDLDiscretiser().fit(x, x[:, 0])
