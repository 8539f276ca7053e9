"""Prediction sets keep their promise, and p-values are those of rows like the ones learned."""

import numpy as np
import pytest

from priory import NaiveBayes, TextClassifier
from priory.errors import DataError, StaleModelError
from priory.evaluation.prediction_sets import weigh_larger

WORDS = {
    "a": ["red", "green", "blue", "lime", "teal"],
    "b": ["cat", "dog", "fox", "hen", "owl"],
    "c": ["one", "two", "six", "ten", "nine"],
}


def make_table(rows, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows)
    return rng.normal(size=(rows, 3)) + 0.8 * y[:, None], y


def make_texts(rows, seed, labels="abc"):
    rng = np.random.default_rng(seed)
    y = rng.choice(list(labels), rows)
    noise = [f"w{i}" for i in range(60)]
    return [" ".join([*rng.choice(WORDS[c], 2), *rng.choice(noise, 4)]) for c in y], y


@pytest.fixture(scope="module")
def model():
    return NaiveBayes().fit(*make_table(400, 0))


@pytest.mark.parametrize("coverage", [0.6, 0.9])
def test_sets_hold_the_true_class_as_often_as_asked(model, coverage):
    X, y = make_table(4000, 1)
    sets = model.predict_set(X, coverage)
    assert sets.shape == (4000, 3)
    assert sets.dtype == bool
    assert sets[np.arange(len(y)), y].mean() == pytest.approx(coverage, abs=0.04)


def test_sets_hold_every_class_as_often_as_asked(model):
    X, y = make_table(6000, 2)
    right = model.predict_set(X, 0.9, by_class=True)[np.arange(len(y)), y]
    assert min(right[y == c].mean() for c in range(3)) > 0.84


def test_a_larger_coverage_gives_larger_sets(model):
    X, _ = make_table(200, 3)
    assert (model.predict_set(X, 0.5) <= model.predict_set(X, 0.95)).all()


def test_too_few_rows_for_the_promise_give_full_sets():
    X, y = make_table(12, 0)
    assert NaiveBayes().fit(X, y).predict_set(X, 0.99).all()


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 90])
def test_an_impossible_coverage_is_an_error(model, coverage):
    with pytest.raises(DataError, match="coverage is"):
        model.predict_set([[0.0, 0.0, 0.0]], coverage)


def test_a_model_without_rows_says_so():
    X, y = make_table(50, 0)
    with pytest.raises(StaleModelError, match="keeps no rows"):
        NaiveBayes(memory=0).fit(X, y).predict_set(X)


def test_a_weight_counts_as_copies():
    values, weight, limits = np.array([0.2, 0.5, 0.9]), np.array([3.0, 1.0, 2.0]), np.array([0.1, 0.2, 0.7, 1.0])
    copies = weigh_larger(np.repeat(values, weight.astype(int)), np.ones(6), limits)
    assert copies.tolist() == weigh_larger(values, weight, limits).tolist() == [6.0, 3.0, 2.0, 0.0]


def test_p_values_of_rows_like_those_learned_are_not_small(model):
    p = model.p_value(make_table(2000, 4)[0])
    assert (p > 0).all()
    assert (p <= 1).all()
    for level in (0.05, 0.2):
        assert (p <= level).mean() < level + 0.03


def test_a_row_far_from_all_is_unusual(model):
    assert model.p_value([[40.0, -30.0, 25.0]])[0] < 0.02


@pytest.mark.parametrize("kind", ["binary", "multinomial", "bernoulli"])
def test_texts_of_another_class_are_unusual(kind):
    texts, labels = make_texts(200, 0, "ab")
    model = TextClassifier(kind).fit(texts, labels)
    usual, other = model.p_value(make_texts(200, 1, "ab")[0]), model.p_value(make_texts(200, 2, "c")[0])
    assert np.median(other) < 0.1
    assert np.median(usual) > 0.3
    assert np.isfinite(model.p_value(["", "!?", "unheard of"])).all()


def test_p_values_follow_what_was_forgotten():
    X, y = make_table(120, 5)
    whole = NaiveBayes().fit(X, y).forget(X[100:], y[100:])
    assert np.array_equal(whole.p_value(X), NaiveBayes().fit(X[:100], y[:100]).p_value(X))
