"""Every classifier answers one row as it answers a table; it learns one row, or says what to use instead."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

import priory as pr
from priory import naive_bayes
from priory.errors import DataError, KindError, NotAvailableError
from priory.regression.logistic_posterior import LaplaceApproximation, TrainingExamples, fit_newton

EXPORTED = [getattr(pr, name) for name in pr.__all__] + [getattr(naive_bayes, name) for name in naive_bayes.__all__]
CLASSIFIERS = [cls for cls in EXPORTED if isinstance(cls, type) and issubclass(cls, ClassifierMixin)]
VOTERS = [("gauss", naive_bayes.GaussianNB()), ("counts", naive_bayes.MultinomialNB())]
SETTINGS = {
    pr.BayesOptimalClassifier: {"estimators": VOTERS},
    pr.GibbsClassifier: {"estimators": VOTERS, "random_state": 0},
    pr.Calibrated: {"estimator": naive_bayes.GaussianNB()},
    pr.SigmoidUnit: {"eta": 0.1, "steps": 5},
}
WITHOUT_LEARN_ONE = {
    pr.Calibrated: "its map is fitted to folds of all rows; call fit with all of them, or use priory.NaiveBayes or "
    "TextClassifier, which calibrate themselves.",
    pr.MDLTreeClassifier: "a tree is grown and pruned over all rows at once; call fit with all of them, or use "
    "priory.NaiveBayes.",
    **dict.fromkeys(
        (pr.BayesOptimalClassifier, pr.GibbsClassifier),
        "its models are weighed by all rows; call fit with all of them, or use priory.NaiveBayes.",
    ),
}
WITHOUT_FORGET_ONE = WITHOUT_LEARN_ONE | {
    pr.BayesianLogisticRegression: "its posterior is an approximation, from which no row can be taken out; call fit "
    "with the rows left.",
    pr.SigmoidUnit: "a step cannot be taken back; call fit with the rows that are left.",
}


def make(cls):
    return cls(**SETTINGS.get(cls, {}))


def make_rows(cls, n=60):
    """Rows of two classes, as dicts or texts, and their labels."""
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(n) < 0.5, "calm", "wild").tolist()
    if cls is pr.TextClassifier:
        return [f"{label} day" if rng.random() < 0.8 else "a day" for label in labels], labels
    counts = [rng.poisson([0.4, 3.0, 2.0] if label == "calm" else [3.0, 0.4, 2.0]) for label in labels]
    return [dict(zip("abc", map(float, row), strict=True)) for row in counts], labels


def make_table(rows):
    return rows if isinstance(rows[0], str) else pd.DataFrame(rows)


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_one_answer_is_that_of_a_table_of_one_row(cls):
    rows, labels = make_rows(cls)
    assert make(cls).predict_proba_one(rows[0]) == {}
    assert make(cls).predict_one(rows[0]) is None
    model = make(cls).fit(make_table(rows), labels)
    for row in rows[:10]:
        one = make_table([row])
        answer = model.predict_proba_one(row)
        assert list(answer) == model.classes_.tolist()
        assert list(answer.values()) == pytest.approx(model.predict_proba(one)[0].tolist(), abs=1e-6)
        assert model.predict_one(row) == model.predict(one)[0]
        assert type(model.predict_one(row)) is str


@pytest.mark.parametrize("method", ["learn_one", "forget_one"])
@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_a_method_is_there_or_its_absence_is_explained(cls, method):
    reason = (WITHOUT_LEARN_ONE if method == "learn_one" else WITHOUT_FORGET_ONE).get(cls)
    model = make(cls)
    assert hasattr(model, method) == (reason is None)
    if reason is not None:
        with pytest.raises(NotAvailableError) as found:
            getattr(model, method)
        assert str(found.value) == f"{cls.__name__} has no {method}: {reason}"


@pytest.mark.parametrize("cls", [cls for cls in CLASSIFIERS if cls not in WITHOUT_LEARN_ONE])
def test_rows_learned_one_by_one_are_learned(cls):
    rows, labels = make_rows(cls, 120)
    model = start(cls, rows, labels)
    for row, label in zip(rows[20:], labels[20:], strict=True):
        assert model.learn_one(row, label) is model
    assert sum(model.predict_one(row) == label for row, label in zip(rows, labels, strict=True)) > 80
    assert model.class_count_.tolist() == [labels.count("calm"), labels.count("wild")]
    assert model.class_prior_ == pytest.approx(model.class_count_ / 120, abs=0.01)


def start(cls, rows, labels):
    """A model that has learned the first 20 rows."""
    model = make(cls)
    if hasattr(model, "learn_one") and cls not in (pr.SigmoidUnit, pr.BayesianLogisticRegression):
        for row, label in zip(rows[:20], labels[:20], strict=True):
            model.learn_one(row, label)
        return model
    if hasattr(model, "learn_one"):
        return model.partial_fit(make_table(rows[:20]), labels[:20], classes=["calm", "wild"])
    return model.fit(make_table(rows[:20]), labels[:20])


def test_river_evaluates_every_classifier_that_learns_one_row():
    pytest.importorskip("river")
    from river import base, compose, evaluate, metrics

    for cls in CLASSIFIERS:
        base.Classifier.register(cls)
        rows, labels = make_rows(cls, 120)
        model = start(cls, rows, labels)
        stream = zip(rows[20:], labels[20:], strict=True)
        if cls in WITHOUT_LEARN_ONE:
            with pytest.raises(NotAvailableError, match="call fit with all of them"):
                evaluate.progressive_val_score(stream, model, metrics.Accuracy())
            continue
        assert evaluate.progressive_val_score(stream, model, metrics.Accuracy()).get() > 0.7, cls
        if cls is not pr.TextClassifier:
            chosen = compose.Select("a", "b") | start(cls, [{"a": row["a"], "b": row["b"]} for row in rows], labels)
            stream = zip(rows[20:], labels[20:], strict=True)
            assert evaluate.progressive_val_score(stream, chosen, metrics.CrossEntropy()).get() < 0.9, cls


# -- votes ---------------------------------------------------------------------------------------------------------


def test_models_of_scikit_learn_answer_one_row_in_a_vote():
    rows, labels = make_rows(pr.BayesOptimalClassifier)
    vote = pr.BayesOptimalClassifier([("gauss", naive_bayes.GaussianNB()), ("base", DummyClassifier())])
    vote.fit(make_table(rows), labels)
    assert list(vote.predict_proba_one(rows[3]).values()) == pytest.approx(vote.predict_proba(make_table(rows[3:4]))[0])


@pytest.mark.parametrize("wrap", [pr.Calibrated, lambda model: pr.BayesOptimalClassifier([("words", model)])])
def test_what_wraps_a_classifier_of_texts_answers_one_text(wrap):
    texts, labels = make_rows(pr.TextClassifier)
    model = wrap(make_pipeline(CountVectorizer(), naive_bayes.MultinomialNB())).fit(texts, labels)
    assert model.predict_one("wild day") == "wild"


# -- weights -------------------------------------------------------------------------------------------------------


def test_a_row_for_the_sigmoid_unit_is_a_step():
    unit = pr.SigmoidUnit(eta=0.1).partial_fit([[1.0]], [0], classes=[0, 1])
    assert unit.weights_.tolist() == [-0.05, -0.05]
    unit.learn_one({"x": 3.0}, 1)
    h = 1 / (1 + np.exp(0.05 + 0.15))
    assert unit.weights_ == pytest.approx([-0.05 + 0.1 * (1 - h), -0.05 + 0.3 * (1 - h)])
    whole = pr.SigmoidUnit(eta=0.1).partial_fit([[1.0], [3.0]], [0, 1], classes=[0, 1])
    assert whole.weights_ == pytest.approx(unit.weights_, rel=1e-15)
    assert whole.errors_[0] == pytest.approx(2 * np.log(2))


@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_regression_row_by_row_is_close_to_all_rows_at_once(classes):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 2))
    y = np.argmax(x @ rng.normal(size=(2, classes)) + rng.gumbel(size=(600, classes)), axis=1)
    whole = pr.BayesianLogisticRegression(prior=1.0, standardise=False).fit(x, y)
    stream = pr.BayesianLogisticRegression(prior=1.0, standardise=False).fit(x[:60], y[:60])
    for row, label in zip(x[60:].tolist(), y[60:].tolist(), strict=True):
        stream.learn_one({"a": row[0], "b": row[1]}, label)
    np.testing.assert_allclose(stream.predict_proba(x), whole.predict_proba(x), atol=0.03)
    assert stream.log_evidence_ == pytest.approx(whole.log_evidence_, abs=2.0)
    apart = pr.BayesianLogisticRegression(prior=1.0, standardise=False).fit(x[:60], y[:60])
    assert abs(apart.predict_proba(x) - whole.predict_proba(x)).max() > 0.1


@pytest.mark.parametrize("classes", [2, 3])
def test_all_rows_learned_from_the_prior_are_the_laplace_approximation(classes):
    rng = np.random.default_rng(0)
    u = np.column_stack([np.ones(50), rng.normal(size=(50, 2))])
    rows = TrainingExamples(u, np.eye(classes)[rng.integers(classes, size=50)], np.ones(50))
    precision = np.array([0.5, 2.0, 3.0])
    prior = LaplaceApproximation(np.zeros(rows.shape), np.diag(np.tile(precision**-0.5, classes - 1)), 0.0)
    learned = prior.learn(rows)
    expected = LaplaceApproximation.at(rows, precision, fit_newton(rows, precision).weights)
    np.testing.assert_allclose(learned.mean, expected.mean, atol=1e-8)
    np.testing.assert_allclose(learned.root, expected.root, atol=1e-8)
    assert learned.log_evidence == pytest.approx(expected.log_evidence, rel=1e-10)


def test_only_the_laplace_approximation_is_updated():
    model = pr.BayesianLogisticRegression("map")
    assert not hasattr(model, "partial_fit")
    message = 'method="map" needs all rows at once; call fit with all of them, or use method="laplace".'
    with pytest.raises(NotAvailableError, match=message):
        model.learn_one({"a": 1.0}, 1)


@pytest.mark.parametrize("cls", [pr.SigmoidUnit, pr.BayesianLogisticRegression])
def test_classes_of_weights_are_declared_first(cls):
    with pytest.raises(DataError, match="classes must be passed on the first call to partial_fit"):
        cls().learn_one({"a": 1.0}, "p")
    model = cls().partial_fit([[1.0], [2.0]], ["p", "p"], classes=["q", "p"])
    assert model.classes_.tolist() == ["p", "q"]
    before = model.predict_proba_one({"a": 1.0})
    with pytest.raises(DataError, match="label 'new' is not one of the classes"):
        model.learn_one({"a": 1.0}, "new")
    with pytest.raises(DataError, match="is not the same as on last call to partial_fit"):
        model.partial_fit([[1.0]], ["p"], classes=["p", "new"])
    with pytest.raises(KindError, match="x is a list; give one row as a dict of column to cell"):
        model.learn_one([1.0], "p")
    assert model.predict_proba_one({"a": 1.0}) == before
