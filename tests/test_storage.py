"""Model files: the same bits again, learning that goes on, and nothing believed that cannot be."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import priory as pr
from priory import families as f
from priory import naive_bayes as nb
from priory.data import inbox
from priory.errors import BadModel, KindError, Stale
from priory.tokens import Tokens

MIXED, LABELS = inbox()
TEXTS = [row["text"] for row in MIXED]
RNG = np.random.default_rng(8)
NUMBERS = RNG.normal(size=(60, 4)) * [1.0, 10.0, 1e-3, 1e6]
COUNTS = RNG.poisson(2.0, size=(60, 4))
GROUPS = np.array(["no", "yes", "perhaps"])[RNG.integers(0, 3, 60)]

TABLES = [
    (pr.NaiveBayes(), MIXED, LABELS),
    (pr.NaiveBayes(average=True, alpha=0.5, class_prior={"normal": 0.5, "spam": 0.25, "urgent": 0.25}), MIXED, LABELS),
    (pr.NaiveBayes({"hour": f.Gaussian, "links": f.Poisson(2.0, 1.0), "sender": "categorical"}), MIXED, LABELS),
    (pr.NaiveBayes({"text": f.Text("multinomial", 0.1, Tokens(ngrams=(1, 2)))}, estimate="mean"), MIXED, LABELS),
    (pr.NaiveBayes(f.Histogram(alpha=1.0)), NUMBERS.astype(np.float32), GROUPS),
    (pr.NaiveBayes(f.Binomial(trials=50)), COUNTS, GROUPS == "no"),
    (nb.GaussianNB(priors=[0.2, 0.3, 0.5]), NUMBERS, GROUPS),
    (nb.GaussianNB(), NUMBERS.astype(np.float32), GROUPS.astype("S")),
    (nb.BernoulliNB(alpha=np.array([1.0, 2.0, 0.5, 0.1])), COUNTS, GROUPS),
    (nb.MultinomialNB(), COUNTS, GROUPS),
    (nb.ComplementNB(norm=True), COUNTS, GROUPS),
    (nb.CategoricalNB(min_categories=12), COUNTS, GROUPS),
    (nb.PoissonNB(prior=f.Poisson(1.0, 2.0)), COUNTS, COUNTS[:, 0] > 2),
    (nb.GammaNB(estimate="map"), np.abs(NUMBERS), GROUPS),
    (nb.GaussianBayes(covariance="shared"), NUMBERS, GROUPS),
]
WRITINGS = [
    (pr.TextClassifier(), TEXTS, LABELS),
    (pr.TextClassifier("multinomial", ngrams=(1, 2), alpha="evidence", min_df=2, stop_words="en"), TEXTS, LABELS),
    (pr.TextClassifier("bernoulli", vocabulary=["free", "meeting", "now"], unknown=True), TEXTS, LABELS),
    (pr.TextClassifier("complement", buckets=64), TEXTS, LABELS),
    (pr.TextClassifier("poisson", unit="char_wb", ngrams=(2, 3), most=20_000), TEXTS, LABELS),
]
LINES = [
    (pr.BayesianLinearRegression(), NUMBERS[:, 1:], NUMBERS[:, 0]),
    (pr.BayesianLogisticRegression(), NUMBERS, GROUPS),
    (pr.BayesianLogisticRegression("map"), NUMBERS, GROUPS == "no"),
]


def named(case):
    return str(case[0]).replace("\n", "")[:60]


def answers(model, X):
    return model.predict_log_proba(X) if hasattr(model, "predict_log_proba") else np.stack(model.predict(X, True))


def same(a, b, X):
    """To the last bit."""
    return np.array_equal(answers(a, X), answers(b, X)) and np.array_equal(a.predict(X), b.predict(X))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.priory"


@pytest.mark.parametrize("mapped", [False, True], ids=["read", "mapped"])
@pytest.mark.parametrize("case", TABLES + WRITINGS + LINES, ids=named)
def test_a_loaded_model_answers_bit_for_bit_the_same(case, path, mapped):
    model, X, y = case
    model = clone(model).fit(X, y)
    pr.save(model, path)
    loaded = pr.load(path, mapped=mapped)
    assert type(loaded) is type(model)
    assert repr(loaded) == repr(model)
    assert same(loaded, model, X)
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("case", TABLES + WRITINGS, ids=named)
def test_a_loaded_model_goes_on_learning_forgets_and_merges(case, path):
    model, X, y = case
    model = clone(model).fit(X, y)
    pr.save(model, path)
    loaded = pr.load(path)
    for each in (model, loaded):
        each.partial_fit(X[:20], y[:20])
        each.forget(X[10:30], y[10:30])
    assert same(loaded, model, X)
    assert same(loaded + pr.load(path), model + pr.load(path), X)


def test_a_faded_model_keeps_its_clock(path):
    model = pr.TextClassifier().fit(TEXTS, LABELS).decay(0.5)
    pr.save(model, path)
    loaded = pr.load(path)
    assert loaded.clock_ == 0.5
    with pytest.raises(Stale, match="learned_at"):
        loaded.forget(TEXTS[:1], LABELS[:1])
    assert same(loaded.forget(TEXTS[:1], LABELS[:1], learned_at=1.0), model.forget(TEXTS[:1], LABELS[:1], learned_at=1.0), TEXTS)
