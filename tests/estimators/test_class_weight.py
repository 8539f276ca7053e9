"""Weights of classes multiply the class prior: they are those of the rows, learned and forgotten in any way."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.class_weight import compute_class_weight

import priory as pr
from exact_forgetting import save_to_bytes
from priory.errors import DataError

RNG = np.random.default_rng(0)
LABELS = np.where(RNG.random(200) < 0.15, "bad", "good").tolist()
TABLE = [{"n": float(RNG.normal(label == "bad")), "of": str(RNG.choice(["x", "y"]))} for label in LABELS]
TEXTS = [f"{row['of']} {'late' if row['n'] > 1 else 'early'} word{i % 7}" for i, row in enumerate(TABLE)]
MODELS = {"table": (pr.NaiveBayes, TABLE), "texts": (pr.TextClassifier, TEXTS)}


@pytest.fixture(params=MODELS)
def case(request):
    return MODELS[request.param]


def test_weights_of_classes_are_weights_of_rows_where_nothing_is_smoothed():
    weight = {"bad": 5.0, "good": 0.5}
    model = pr.NaiveBayes.textbook().set_params(class_weight=weight).fit(TABLE, LABELS)
    rows = pr.NaiveBayes.textbook().fit(TABLE, LABELS, sample_weight=[weight[label] for label in LABELS])
    np.testing.assert_allclose(model.predict_proba(TABLE), rows.predict_proba(TABLE), rtol=1e-9)


def test_balanced_is_the_weight_of_scikit_learn(case):
    make, X = case
    weights = dict(
        zip(["bad", "good"], compute_class_weight("balanced", classes=np.array(["bad", "good"]), y=LABELS), strict=True)
    )
    balanced = make(class_weight="balanced").fit(X, LABELS)
    assert balanced.class_prior_ == pytest.approx([0.5, 0.5])
    np.testing.assert_allclose(balanced.predict_proba(X), make(class_weight=weights).fit(X, LABELS).predict_proba(X))
    plain = make().fit(X, LABELS)
    assert (balanced.predict(X) == "bad").sum() > (plain.predict(X) == "bad").sum()
    shift = np.diff(balanced.predict_log_proba(X) - plain.predict_log_proba(X))  # of the log-odds
    assert shift == pytest.approx(np.full((200, 1), np.log(weights["good"] / weights["bad"])))


@pytest.mark.parametrize("weight", ["balanced", {"bad": 3.7}])
def test_weights_hold_for_rows_learned_and_forgotten_in_any_way(case, weight):
    make, X = case
    model = make(class_weight=weight).fit(X[:90], LABELS[:90]).partial_fit(X[90:], LABELS[90:])
    for x, label in zip(X[150:], LABELS[150:], strict=True):
        model.forget_one(x, label)
    model.forget(X[120:150], LABELS[120:150])
    fresh = make(class_weight=weight).fit(X[:120], LABELS[:120])
    assert save_to_bytes(model) == save_to_bytes(fresh)
    assert model.predict_proba_one(X[0]) == pytest.approx(
        dict(zip(["bad", "good"], fresh.predict_proba(X[:1])[0], strict=True))
    )


def test_the_file_keeps_the_weights(case, tmp_path):
    make, X = case
    model = make(class_weight={"bad": 3.7}).fit(X, LABELS)
    pr.save(model, tmp_path / "model.priory")
    loaded = pr.load(tmp_path / "model.priory")
    assert loaded.class_weight == {"bad": 3.7}
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert clone(loaded).fit(X, LABELS).class_prior_.tolist() == model.class_prior_.tolist()


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"class_weight": "even"}, "class_weight is 'even'; use 'balanced', a dict of class to weight, or None"),
        ({"class_weight": {"bad": -1}}, "class 'bad' has the weight -1; give a number that is 0 or more"),
        (
            {"class_weight": {"bad": 0, "good": 0}},
            "every class has the weight 0; give at least one class a weight above 0",
        ),
        (
            {"class_weight": {"bda": 2}},
            r"class_weight names class 'bda', of which there is no row \(did you mean 'bad'\?\)",
        ),
        ({"class_weight": "balanced", "class_prior": "uniform"}, "class_prior declares one; give one"),
    ],
)
def test_weights_that_cannot_be_are_refused(case, parameters, problem):
    make, X = case
    with pytest.raises(DataError, match=problem):
        make(**parameters).fit(X, LABELS)
