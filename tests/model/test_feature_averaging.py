"""Averaging over all sets of features is one naive classifier, and equals the sum over all of them."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

import priory as pr
from priory.core.logspace import log_sum_exp
from priory.families import Categorical, Gaussian, Poisson

NaiveBayes = partial(pr.NaiveBayes, calibrate=False)  # the statistics alone

RNG = np.random.default_rng(7)


def columns(kind, rows=60):
    """Ten columns, of which some depend on the class, some faintly, some not at all."""
    y = RNG.integers(0, 3, rows)
    effect = y[:, None] * np.linspace(0, 0.9, 10)
    if kind == "gaussian":
        return RNG.normal(effect, 1.0), y, Gaussian(0.5, 0.3, 2.0, 1.5)
    if kind == "poisson":
        return RNG.poisson(np.exp(effect)).astype(float), y, Poisson(1.5, 0.7)
    labels = np.array(["a", "b", "c", "d"])[(RNG.random((rows, 10)) * 3 + effect / 2).astype(int)]
    return labels.astype(object), y, Categorical(0.8, values=["a", "b", "c", "d"])


@pytest.mark.parametrize("kind", ["gaussian", "poisson", "labels"])
def test_it_equals_brute_force_over_all_feature_sets(kind):
    x, y, family = columns(kind)
    model = NaiveBayes(family, average=True).fit(x, y)
    query = x[:8]
    prior = np.log(np.bincount(y) / len(y))
    apart, together, e1, e0 = [], [], [], []
    for j in range(10):
        seen = [family.observe(x[y == c, j]) for c in range(3)]
        apart.append(np.stack([(family + s).log_predictive(query[:, j]) for s in seen], axis=1))
        whole = family.observe(x[:, j])
        together.append((family + whole).log_predictive(query[:, j])[:, None])
        e1.append(sum(float(family.log_evidence(s)) for s in seen))
        e0.append(float(family.log_evidence(whole)))
    totals = []
    for included in product([False, True], repeat=10):
        weight = sum(e1[j] if here else e0[j] for j, here in enumerate(included))
        terms = sum(apart[j] if here else together[j] for j, here in enumerate(included))
        totals.append(weight + prior + terms)
    brute = log_sum_exp(np.array(totals), axis=0)
    brute = brute - log_sum_exp(brute, axis=1)[:, None]
    assert np.allclose(model.predict_log_proba(query), brute, atol=1e-10)
    matter = 1 / (1 + np.exp(np.array(e0) - np.array(e1)))
    assert np.allclose(model.inclusion_probability_, matter, atol=1e-10)


@pytest.mark.slow
def test_it_forgets_and_leaves_out_like_everything_else():
    x, y, _ = columns("gaussian")
    model = NaiveBayes(average=True).fit(x, y)
    honest = model.leave_one_out(x, y)
    for i in range(0, 60, 13):
        others = np.arange(60) != i
        assert np.allclose(
            honest[i], NaiveBayes(average=True).fit(x[others], y[others]).predict_log_proba(x[~others])[0]
        )
    never = NaiveBayes(average=True).fit(x[:40], y[:40])
    model.forget(x[40:], y[40:])
    assert np.allclose(model.predict_log_proba(x), never.predict_log_proba(x), atol=1e-8)


@pytest.mark.parametrize("family", ["gaussian", "poisson", "bernoulli", "histogram", "gamma", "categorical"])
def test_the_ledger_of_an_average_sums_to_its_log_odds(family):
    x, y, _ = columns("poisson", rows=600)
    x = {"bernoulli": np.minimum(x, 1), "gamma": x + 0.5}.get(family, x)
    x[::7, 3] = np.nan
    model = NaiveBayes(family, average=True).fit(x, y)
    assert ((model.inclusion_probability_ > 1e-9) & (model.inclusion_probability_ < 0.99)).any()
    for ledger, row in zip(model.explain(x[:9]), model.predict_log_proba(x[:9]), strict=True):
        assert ledger.log_odds(0, 1) == pytest.approx(row[0] - row[1], abs=1e-9)


def test_noise_columns_do_no_harm_and_are_told_from_signal():
    rng = np.random.default_rng(1)
    y = np.arange(1200) % 2
    signal = rng.normal(y[:, None] * 0.8, 1.0, (1200, 20))
    x = np.hstack([signal, rng.normal(size=(1200, 200))])
    train, test = slice(0, 200), slice(200, 1200)
    plain = NaiveBayes("gaussian").fit(x[train], y[train])
    clean = NaiveBayes("gaussian").fit(signal[train], y[train])
    averaged = NaiveBayes("gaussian", average=True).fit(x[train], y[train])
    assert averaged.score(x[test], y[test]) > plain.score(x[test], y[test]) + 0.02
    assert averaged.score(x[test], y[test]) > clean.score(signal[test], y[test]) - 0.02
    assert set(np.argsort(-averaged.inclusion_probability_)[:20]) == set(range(20))


def test_where_everything_matters_nothing_changes():
    x, y = load_breast_cancer(return_X_y=True)
    strong = x[:, [0, 2, 3, 7, 20, 22, 23, 27]]
    plain, averaged = (NaiveBayes(average=a).fit(strong, y) for a in (False, True))
    assert np.array_equal(plain.predict_log_proba(strong), averaged.predict_log_proba(strong))
