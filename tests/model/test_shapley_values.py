"""The ledger as Shapley values: exact, additive, and in the form that shap draws."""

from itertools import combinations
from math import factorial

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.datasets import load_iris

import priory as pr
from priory import inbox
from priory.errors import DataError

X, y = load_iris(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module", params=[False, "loo"])
def two_classes(request):
    return pr.NaiveBayes(calibrate=request.param).fit(X[y > 0], y[y > 0])


def test_base_value_and_values_are_the_log_odds_of_the_second_class(two_classes):
    found = two_classes.explain(X).shapley_values()
    assert found.values.shape == (150, len(found.feature_names))
    assert found.output_names == 2
    answers = expit(found.base_values + found.values.sum(axis=1))
    assert np.allclose(answers, two_classes.predict_proba(X)[:, 1], atol=1e-9)


def test_of_several_classes_the_softmax_is_the_answer():
    model = pr.NaiveBayes().fit(X, y)
    found = model.explain(X[::10]).shapley_values()
    assert found.values.shape == (15, len(found.feature_names), 3)
    answers = softmax(found.base_values + found.values.sum(axis=1), axis=1)
    assert np.allclose(answers, model.predict_proba(X[::10]), atol=1e-9)


def test_tokens_are_columns():
    emails, labels = inbox()
    texts = [email["text"] for email in emails]
    model = pr.TextClassifier().fit(texts, labels)
    found = model.explain(texts[:5]).shapley_values()
    answers = softmax(found.base_values + found.values.sum(axis=1), axis=1)
    assert np.allclose(answers, model.predict_proba(texts[:5]), atol=1e-9)


def test_the_interaction_of_two_columns_is_divided_between_them():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 400))
    rows = [{"a": "uv"[i], "b": "xy"[j]} for i, j in zip(a, b, strict=True)]
    model = pr.NaiveBayes().fit(rows, (a ^ b) ^ (rng.random(400) < 0.1))
    [ledger] = ledgers = model.explain(rows[:1])
    pair = next(line for line in ledger.lines if line.columns == ("a", "b"))
    assert pair.name == "a x b"
    found = ledgers.shapley_values()
    assert found.feature_names[:2] == ("a", "b")
    assert found.data[0, 0] == rows[0]["a"]
    lines = {line.name: line.log_likelihood[1] - line.log_likelihood[0] for line in ledger.lines}
    assert found.values[0, 0] == pytest.approx(lines["a"] + lines["a x b"] / 2)


def test_they_are_the_shapley_values_of_the_game_of_known_columns():
    model = pr.NaiveBayes(calibrate=False).fit(X[y > 0], y[y > 0])
    row, names = X[60:61], list(X.columns)

    def value(coalition):
        known = row.astype(object).where([[name in coalition for name in names]], np.nan).astype(float)
        return float(np.diff(model.predict_log_proba(known))[0, 0])

    n = len(names)
    for j, name in enumerate(names):
        others = [other for other in names if other != name]
        share = sum(
            factorial(k) * factorial(n - k - 1) / factorial(n) * (value({*s, name}) - value(set(s)))
            for k in range(n)
            for s in combinations(others, k)
        )
        assert model.explain(row).shapley_values().values[0, j] == pytest.approx(share, abs=1e-9)


def test_shap_draws_them(two_classes):
    shap = pytest.importorskip("shap")
    found = two_classes.explain(X[:4]).shapley_values()
    explanation = found.to_shap()
    assert isinstance(explanation, shap.Explanation)
    assert explanation.feature_names == list(found.feature_names)


def test_what_is_infinite_has_no_share():
    rows = [{"a": "x"}, {"a": "x"}, {"a": "z"}]
    model = pr.NaiveBayes.textbook().fit(rows, ["no", "yes", "yes"])
    with pytest.raises(DataError, match="a cell rules a class out"):
        model.explain([{"a": "z"}]).shapley_values()
