"""Calibration maps fitted on rows left out, Venn-Abers intervals, and decisions."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from priory import ABSTAIN, Calibrated, NaiveBayes, Scores, TextClassifier, bayes_rate, decide, inbox
from priory.calibration.calibration_maps import CALIBRATION_METHODS, fit_calibration_map, log_odds, venn_abers_bounds
from priory.core.logspace import log_normalise
from priory.errors import DataError
from worked_examples import WORKED_EXAMPLES


@pytest.mark.slow
@parametrize_with_checks(
    [
        Calibrated(GaussianNB(), method="temperature", cv=2),
        Calibrated(RidgeClassifier(), method="isotonic", cv=2),
        Calibrated(DecisionTreeClassifier(random_state=0), method="beta", cv=2),
        Calibrated(GaussianNB(), method="platt", cv=2),
    ]
)
def test_scikit_learn_finds_nothing_to_object_to(estimator, check):
    check(estimator)


# -- maps --------------------------------------------------------------------------------------------------------


def overconfident(rows, classes, seed=0, heat=3.0):
    """True probabilities, labels drawn from them, and what a model says that is ``heat`` times too sure."""
    rng = np.random.default_rng(seed)
    true = log_normalise(rng.normal(size=(rows, classes)) * 1.5)
    y = (np.exp(true).cumsum(axis=1) > rng.random((rows, 1))).argmax(axis=1)
    return true, y, log_normalise(heat * true)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("method", CALIBRATION_METHODS)
def test_what_is_too_sure_is_cooled_to_the_truth(method, classes):
    true, y, log_p = overconfident(8000, classes)
    better = fit_calibration_map(method, log_p, y)(log_p)
    assert np.exp(better).sum(axis=1) == pytest.approx(1)
    assert np.abs(np.exp(better) - np.exp(true)).mean() < 0.03 < np.abs(np.exp(log_p) - np.exp(true)).mean()
    assert Scores.of(y, better, range(classes), logs=True).calibration_error.low < 0.01


@pytest.mark.parametrize("method", ["temperature", "platt", "beta"])
def test_what_is_right_is_left_as_it_is(method):
    true, y, _ = overconfident(8000, 3)
    assert np.abs(np.exp(fit_calibration_map(method, true, y)(true)) - np.exp(true)).max() < 0.03


def test_the_temperature_is_found():
    _, y, log_p = overconfident(20000, 4, heat=3.0)
    assert fit_calibration_map("temperature", log_p, y).slope == pytest.approx(1 / 3, rel=0.03)


@pytest.mark.parametrize("method", ["temperature", "platt"])
def test_temperature_never_changes_the_answer_and_platt_of_two_classes_never_the_order(method):
    _, y, log_p = overconfident(500, 2)
    better = fit_calibration_map(method, log_p, y)(log_p)
    order = np.argsort(log_odds(log_p)[:, 0])
    assert (np.diff(log_odds(better)[order, 0]) >= -1e-9).all()
    if method == "temperature":
        assert (better.argmax(axis=1) == log_p.argmax(axis=1)).all()


def test_platt_and_beta_are_the_logistic_regressions_of_the_books():
    _, y, log_p = overconfident(4000, 2)
    odds = log_odds(log_p)[:, [1]]
    platt = LogisticRegression(C=np.inf).fit(odds, y).predict_proba(odds)
    assert np.exp(fit_calibration_map("platt", log_p, y)(log_p)) == pytest.approx(platt, abs=2e-3)
    features = np.column_stack([log_p[:, 1], -log_p[:, 0]])  # ln p, -ln(1 - p)
    beta = LogisticRegression(C=np.inf).fit(features, y)
    assert (beta.coef_ > 0).all()
    assert np.exp(fit_calibration_map("beta", log_p, y)(log_p)) == pytest.approx(beta.predict_proba(features), abs=2e-3)


def test_the_impossible_is_merely_improbable():
    logs = np.log(np.array([[1.0, 1e-300], [0.5, 0.5]]))
    logs[0, 1] = -math.inf
    for method in CALIBRATION_METHODS:
        assert np.isfinite(fit_calibration_map(method, logs, np.array([1, 0]))(logs)).all()


# -- Venn-Abers --------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=25), st.integers(-1, 10))
def test_venn_abers_is_isotonic_regression_with_the_row_added_either_way(seen, asked):
    scores, labels = np.array([s for s, _ in seen], dtype=float), np.array([b for _, b in seen], dtype=float)
    low, high = venn_abers_bounds(scores, labels, np.array([float(asked)]))
    for label, ours in ((0.0, low), (1.0, high)):
        with_it = IsotonicRegression().fit(np.r_[scores, asked], np.r_[labels, label])
        assert ours == pytest.approx(with_it.predict([asked]), abs=1e-9)
    assert low <= high


def test_venn_abers_holds_what_it_promises_whatever_the_scores_mean():
    rng = np.random.default_rng(0)
    score = rng.normal(size=3000) ** 3
    y = rng.random(3000) < 1 / (1 + np.exp(-np.cbrt(score)))
    low, high = venn_abers_bounds(score[:1000], y[:1000], score[1000:])
    assert low.mean() <= y[1000:].mean() <= high.mean()
    for part in np.array_split(np.argsort(score[1000:]), 5):
        error = 3 * math.sqrt(0.25 / len(part))
        assert low[part].mean() - error <= y[1000:][part].mean() <= high[part].mean() + error


def test_intervals_are_narrow_where_much_was_seen():
    X, y = load_breast_cancer(return_X_y=True)
    small, large = (Calibrated(GaussianNB()).fit(X[:n], y[:n]) for n in (60, 500))
    widths = []
    for model in (small, large):
        low, high = model.interval(X[500:])
        assert low.shape == high.shape == (69, 2)
        assert (low <= high).all()
        assert low[:, 0] == pytest.approx(1 - high[:, 1])
        widths.append(float((high - low).mean()))
    assert widths[1] < widths[0] / 2


# -- the estimator -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", CALIBRATION_METHODS)
@pytest.mark.parametrize("load", [load_breast_cancer, load_wine, load_digits])
def test_real_data_are_calibrated_better(load, method):
    X, y = load(return_X_y=True)
    train, test = next(StratifiedKFold(2, shuffle=True, random_state=0).split(X, y))

    def scores(model):
        return Scores.of(y[test], model.fit(X[train], y[train]).predict_log_proba(X[test]), np.unique(y), logs=True)

    plain, calibrated = scores(GaussianNB()), scores(Calibrated(GaussianNB(), method=method))
    assert calibrated.log_loss.value < max(0.7 * plain.log_loss.value, 0.15)
    assert calibrated.accuracy.value > plain.accuracy.value - 0.02


def test_a_decision_function_becomes_probabilities():
    X, y = load_breast_cancer(return_X_y=True)
    model = Calibrated(LinearSVC(C=1e-4), method="platt").fit(X[::2], y[::2])
    scores = Scores.of(y[1::2], model.predict_proba(X[1::2]), model.classes_)
    assert scores.verdict.startswith("Beats")
    assert scores.calibration_error.low < 0.02


@pytest.mark.slow
def test_texts_and_tables_go_through_as_they_are():
    rows, labels = inbox()
    texts = [row["text"] for row in rows]
    for model, X in ((TextClassifier(), texts), (NaiveBayes(), rows)):
        calibrated = Calibrated(model).fit(X, labels)
        assert calibrated.predict_proba(X[:3]).sum(axis=1) == pytest.approx(1)
        assert calibrated.interval(X[:2])[0].shape == (2, 3)


def test_a_class_of_one_row_is_no_accident():
    X, y = load_wine(return_X_y=True)
    keep = np.r_[np.flatnonzero(y < 2), np.flatnonzero(y == 2)[:1]]
    model = Calibrated(LogisticRegression(max_iter=10000), cv=3).fit(X[keep] / 100, y[keep])
    assert np.isfinite(model.predict_log_proba(X / 100)).all()


def test_what_is_not_known_is_refused():
    with pytest.raises(DataError) as error:
        Calibrated(GaussianNB(), method="magic").fit([[0.0], [1.0]], [0, 1])
    assert str(error.value) == "method is 'magic'; use one of temperature, platt, isotonic, beta."


# -- decisions ---------------------------------------------------------------------------------------------------


def test_a_rare_cancer_is_looked_for_though_never_looking_is_right_more_often():
    rng = np.random.default_rng(0)
    ill = rng.random(100_000) < 0.002
    marker = rng.normal(size=100_000) + 3 * ill
    odds = np.log(0.002 / 0.998) + 3 * marker - 4.5
    p = np.exp(log_normalise(np.column_stack([np.zeros(100_000), odds])))
    truth = np.where(ill, "ill", "healthy")
    scores = Scores.of(truth, p, ["healthy", "ill"])
    assert scores.base.accuracy == pytest.approx(0.998, abs=3e-4)
    assert scores.gain["accuracy"].high < 0.002  # next to nothing is gained in accuracy
    cost = np.array([[0, 1], [1000, 0]])
    chosen = decide(p, ["healthy", "ill"], cost=cost)
    check = np.array(chosen.labels) == "ill"
    paid = np.where(ill, np.where(check, 0, 1000), check)
    assert (check == (p[:, 1] > 1 / 1001)).all()
    assert paid.mean() < 0.35 * 1000 * ill.mean()  # never looking
    assert paid.mean() < 0.35 * (1 - ill.mean())  # always looking
    assert chosen.cost.mean() == pytest.approx(paid.mean(), rel=0.1)  # as was expected


def test_without_costs_the_most_probable_class_is_the_answer():
    p = np.random.default_rng(0).dirichlet(np.ones(4), 50)
    chosen = decide(p, list("abcd"))
    assert chosen.labels == [list("abcd")[c] for c in p.argmax(axis=1)]
    assert chosen.cost == pytest.approx(1 - p.max(axis=1))
    assert not chosen.abstained.any()


def test_an_answer_is_withheld_when_asking_is_cheaper_or_nothing_is_certain():
    p = [[0.55, 0.45], [0.8, 0.2], [0.97, 0.03]]
    chow = decide(p, ["a", "b"], reject=0.1)
    assert chow.labels == [ABSTAIN, ABSTAIN, "a"]
    assert chow.cost == pytest.approx([0.1, 0.1, 0.03])
    shy = decide(p, ["a", "b"], certainty=0.6)
    assert shy.labels == [ABSTAIN, "a", "a"]
    assert shy.abstained.tolist() == [True, False, False]
    assert math.isnan(shy.cost[0])
    assert pickle.loads(pickle.dumps(shy)).labels[0] is ABSTAIN
    assert repr(ABSTAIN) == "ABSTAIN"


@given(st.floats(0.01, 0.6), st.integers(0, 100))
def test_chows_rule_costs_least(reject, seed):
    p = np.random.default_rng(seed).dirichlet(np.ones(3), 20)
    chosen = decide(p, range(3), reject=reject)
    assert chosen.cost == pytest.approx(np.minimum(1 - p.max(axis=1), reject))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"probabilities": [0.5, 0.5]},
            "probabilities have shape (2,); give one row of 2 probabilities per case.",
        ),
        ({"cost": [[0, 1]]}, "cost has shape (1, 2); give a finite number for each true class (row) and answer."),
    ],
)
def test_what_cannot_be_decided_is_refused(arguments, message):
    with pytest.raises(DataError) as error:
        decide(**{"probabilities": [[0.5, 0.5]], "classes": ["a", "b"]} | arguments)
    assert str(error.value) == message


# -- the Bayes rate ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("apart", [0.0, 1.0, 2.0, 4.0])
def test_the_neighbours_bracket_the_bayes_rate_of_two_normal_classes(apart):
    rng = np.random.default_rng(0)
    y = np.arange(5000) % 2
    x = rng.normal(size=(5000, 1)) + apart * y[:, None]
    best = math.erfc(apart / 2 / math.sqrt(2)) / 2
    bounds = bayes_rate(x, y)
    assert bounds.with_near_neighbours.low <= best <= bounds.at_most.high
    log_joint = -((x - apart * np.array([0, 1])) ** 2) / 2
    posterior = Scores.of(y, log_normalise(log_joint), [0, 1], logs=True)
    assert posterior.expected_error.low - 0.005 <= best <= posterior.expected_error.high + 0.005


def test_what_is_printed_of_the_bayes_rate_is_true_among_columns_of_noise():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    x = np.column_stack([rng.normal(size=2000) + 2 * y, rng.normal(size=(2000, 49))])
    found = bayes_rate(x, y)
    best = math.erfc(1 / math.sqrt(2)) / 2  # 15.9 %
    assert str(found) == f"at most {found.at_most:.1%}"
    assert best <= found.at_most.low
    assert found.with_near_neighbours.low > best  # so it is no bound of this table


def test_the_bayes_rate_of_a_frame_with_labels_and_gaps():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"x": [0.0, 0.1, None, 5.0, 5.1, 5.2], "colour": ["r", "r", "r", "b", "b", "b"]})
    assert bayes_rate(frame, [0, 0, 0, 1, 1, 1]).at_most.value == 0


def test_bayes_optimal_vote_of_the_lecture_has_a_bayes_rate_of_four_in_ten():
    vote = WORKED_EXAMPLES["bayes_optimal_vs_map"]["expect"]["bayes_optimal"]
    p = np.tile([vote["+"], vote["-"]], (10, 1))
    scores = Scores.of(["+"] * 4 + ["-"] * 6, p, ["+", "-"])
    assert scores.expected_error.value == pytest.approx(0.4)
    assert scores.accuracy.value == pytest.approx(0.6)


def test_confusion_matrix_of_the_lecture_s_reviews():
    example = WORKED_EXAMPLES["book_and_movie_reviews"]
    texts = example["positive"] + example["negative"]
    y = ["positive"] * 4 + ["negative"] * 4
    model = TextClassifier("bernoulli", min_token_length=1, calibrate=False).fit(texts, y)
    scores = Scores.of(y, model.predict_proba(texts), model.classes_)
    assert scores.confusion.tolist() == [[4.0, 0.0], [0.0, 4.0]]
    assert model.predict_proba([example["test"]])[0, 1] == pytest.approx(0.7142857142857143)
    scores = Scores.of(y, model.leave_one_out(texts, y), model.classes_, logs=True)
    assert scores.confusion.sum() == 8
    assert scores.accuracy.value < 1
