"""What was forgotten was never there, bit for bit: numbers of any size, in any order, with weights."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import priory as pr
from priory.core.exact_sums import ExactSums
from priory.core.statistics import Statistics
from priory.naive_bayes import GaussianNB

RNG = np.random.default_rng(3)
Y = RNG.integers(0, 2, 300)
X = RNG.normal(Y[:, None] * 1.5, 1.0, (300, 3))


def list_bytes(value):
    """Every number of a record as bytes."""
    if value is None:
        return []
    if isinstance(value, ExactSums):
        return [value.base, value.limbs.shape, value.limbs.tobytes()]
    if isinstance(value, np.ndarray):
        return [value.shape, value.tobytes()]
    if isinstance(value, Statistics):
        return [list_bytes(v) for k, v in sorted(vars(value).items()) if not k.startswith("_")]
    return [list_bytes(v) for v in value]


@pytest.mark.parametrize("visitor", [1e8, 1.7e9, 1e100, 1e300, -1.7976931348623157e308, 5e-324])
@pytest.mark.parametrize(
    "make", [GaussianNB, lambda: pr.NaiveBayes("gaussian", calibrate=False)], ids=["GaussianNB", "NaiveBayes"]
)
def test_one_row_of_any_size_comes_and_goes_without_a_trace(make, visitor):
    model, row = make().fit(X, Y), np.full((1, 3), visitor)
    before, answers = list_bytes(model.statistics_), model.predict_proba(X)
    model.partial_fit(row, [0])
    assert np.isfinite(model.predict_proba(X)).all()
    assert np.isfinite(model.predict_proba(row)).all()
    model.forget(row, [0])
    assert list_bytes(model.statistics_) == before
    assert np.array_equal(model.predict_proba(X), answers)


rows = st.lists(
    st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 1), st.integers(1, 5)),
    min_size=3,
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(rows, st.randoms())
def test_any_order_of_learning_and_forgetting_leaves_the_rows_that_are_left(given_rows, random):
    x, y, weight = np.array([[r[0]] for r in given_rows]), [r[1] for r in given_rows], [float(r[2]) for r in given_rows]
    y[:2] = [0, 1]
    order = list(range(2, len(x)))
    random.shuffle(order)
    gone = order[: random.randrange(len(order) + 1)]
    kept = [i for i in range(len(x)) if i not in gone]
    with np.errstate(all="ignore"):
        model = GaussianNB().fit(x[:2], y[:2], sample_weight=weight[:2])
        for i in order:
            model.partial_fit(x[[i]], [y[i]], sample_weight=[weight[i]])
        for i in random.sample(gone, len(gone)):
            model.forget(x[[i]], [y[i]], sample_weight=[weight[i]])
        fresh = GaussianNB().fit(x[kept], [y[i] for i in kept], sample_weight=[weight[i] for i in kept])
    assert list_bytes(model.statistics_) == list_bytes(fresh.statistics_)


@pytest.mark.parametrize("family", ["gamma", "poisson"])
def test_amounts_and_counts_are_forgotten_bit_for_bit(family):
    x = RNG.poisson(3.0, (200, 2)).astype(float) if family == "poisson" else RNG.gamma(2.0, 1.0, (200, 2))
    y, order = np.arange(200) % 2, RNG.permutation(200)
    model = pr.NaiveBayes(family, calibrate=False)
    left = clone(model).fit(x, y).forget(x[:70], y[:70])
    fresh = clone(model).fit(x[order[order >= 70]], y[order[order >= 70]])
    assert list_bytes(left.statistics_) == list_bytes(fresh.statistics_)


def test_whole_weights_are_repeated_rows_and_threads_do_not_matter():
    weight = RNG.integers(1, 4, 300)
    weighted = GaussianNB().fit(X, Y, sample_weight=weight.astype(float))
    repeated = GaussianNB().fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    assert list_bytes(weighted.statistics_) == list_bytes(repeated.statistics_)


def test_a_constant_column_has_no_variance_even_after_decay():
    x = np.column_stack([X[:, 0], np.full(300, 1e8 / 3)])
    model = GaussianNB(var_smoothing=0.0).fit(x, Y, sample_weight=RNG.random(300))
    assert (model.var_[:, 1] == 0).all()
    assert (model.decay(0.9).decay(0.3).var_[:, 1] == 0).all()


def test_decay_changes_no_mean_and_no_variance():
    x = 1e8 + X
    model = GaussianNB(var_smoothing=0.0).fit(x, Y)
    mean, variance = model.theta_, model.var_
    for _ in range(20):
        model.decay(0.93)
    np.testing.assert_allclose(model.theta_, mean, rtol=1e-15)
    np.testing.assert_allclose(model.var_, variance, rtol=1e-12)


def test_a_nearly_constant_column_does_not_decide_everything():
    """A class of 10,000 zeros in a column of whole numbers: a one there is unlikely, not impossible."""
    y = np.repeat([0, 1], 10_000)
    x = np.column_stack([RNG.normal(y * 2.0, 1.0), np.zeros(20_000)])
    x[y == 1, 1] = RNG.integers(0, 2, 10_000)
    model = pr.NaiveBayes("gaussian", calibrate=False).fit(x, y)
    log_odds = np.diff(model.predict_log_proba([[1.0, 1.0]]))[0, 0]
    assert 0 < log_odds < 100
    assert model.score(x, y) > 0.85
