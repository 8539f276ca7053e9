"""Classifiers over spaces of models: scikit-learn's checks, the vote, the draw, and Gibbs' factor of two."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from priory.bayes.finite import Hypotheses
from priory.errors import DataError
from priory.estimators.bayes_optimal import BayesOptimalClassifier, GibbsClassifier

PAIR = [("gauss", GaussianNB()), ("bernoulli", BernoulliNB())]
TREES = [
    ("stump", DecisionTreeClassifier(max_depth=1, random_state=0)),
    ("tree", DecisionTreeClassifier(max_depth=4, random_state=0)),
]


@pytest.mark.slow
@parametrize_with_checks(
    [
        BayesOptimalClassifier(PAIR),
        BayesOptimalClassifier(TREES, weigh="evidence"),
        GibbsClassifier(PAIR),
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


# -- Gibbs' bound ------------------------------------------------------------------------------------------------------


def errors_of_one_world(rng, inputs=10, hypotheses=16, rows=3):
    """Concepts and a prior at random, the target drawn from the prior: expected error of Gibbs, error of the vote."""
    says = rng.integers(0, 2, size=(hypotheses, inputs))
    prior = rng.dirichlet(np.ones(hypotheses))
    target = says[rng.choice(hypotheses, p=prior)]
    likelihood = {h: {(x, int(says[h, x])): 1 / inputs for x in range(inputs)} for h in range(hypotheses)}
    space = Hypotheses(dict(enumerate((prior / prior.sum()).tolist())), likelihood)
    space.update_many((int(x), int(target[x])) for x in rng.integers(0, inputs, rows))
    posterior = np.array(list(space.posterior.values()))
    gibbs = posterior @ (says != target).mean(axis=1)
    vote = ((posterior @ says > 0.5) != target).mean()
    return gibbs, vote


def test_gibbs_errs_at_most_twice_as_often_as_the_bayes_optimal_vote():
    """E[error Gibbs] <= 2 E[error vote], at 99.9 % confidence: the mean surplus is positive by 3.09 standard errors."""
    rng = np.random.default_rng(20)
    gibbs, vote = np.array([errors_of_one_world(rng) for _ in range(800)]).T
    surplus = 2 * vote - gibbs
    assert surplus.mean() - 3.09 * surplus.std(ddof=1) / math.sqrt(len(surplus)) > 0
    assert gibbs.mean() > vote.mean()  # and the vote is the better of the two


# -- the vote ----------------------------------------------------------------------------------------------------------


def test_the_weights_are_the_out_of_fold_log_scores():
    x, y = load_breast_cancer(return_X_y=True)
    x, y = x[:120, :4], y[:120]
    folds = StratifiedKFold(4, shuffle=True, random_state=1)
    space = BayesOptimalClassifier([("gauss", GaussianNB()), ("bernoulli", BernoulliNB())], cv=folds).fit(x, y)
    p = cross_val_predict(GaussianNB(), x, y, cv=folds, method="predict_proba")[range(120), y]
    assert space.log_likelihood_[0] == pytest.approx(
        np.log((90 * p + 1 / 2) / 91).sum()
    )  # fitted on 90 rows, 2 classes
    odds = space.log_likelihood_[0] - space.log_likelihood_[1]
    assert space.posterior_["gauss"] == pytest.approx(1 / (1 + math.exp(-odds)))


def test_the_vote_is_the_posterior_mean_of_the_models():
    x, y = load_iris(return_X_y=True)
    twins = [("a", GaussianNB()), ("b", GaussianNB()), ("c", DummyClassifier())]
    space = BayesOptimalClassifier(twins, prior={"a": 0.5, "b": 0.25, "c": 0.25}, random_state=0).fit(x, y)
    assert space.posterior_["a"] == pytest.approx(2 / 3)  # equal evidence leaves the prior's odds
    assert space.posterior_["b"] == pytest.approx(1 / 3)
    assert space.predict_proba(x) == pytest.approx(GaussianNB().fit(x, y).predict_proba(x))


@pytest.mark.parametrize("weigh", ["score", "evidence"])
def test_the_vote_finds_the_model_that_is_true(weigh):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    x = rng.normal(size=(300, 2)) + y[:, None]
    space = [("right", GaussianNB()), ("coarse", BernoulliNB(binarize=0.5)), ("base rate", DummyClassifier())]
    vote = BayesOptimalClassifier(space, weigh=weigh, random_state=0).fit(x, y)
    assert vote.posterior_["right"] > 0.99
    assert vote.score(x, y) > 0.7


def test_a_model_that_called_the_truth_impossible_is_doubted_not_dropped():
    x = np.arange(40.0)[:, None]
    y = np.array([0, 1] * 20)
    vote = BayesOptimalClassifier([("tree", DecisionTreeClassifier(random_state=0))], random_state=0).fit(x, y)
    assert np.isfinite(vote.log_likelihood_).all()
    assert vote.posterior_ == {"tree": 1.0}


def test_texts_go_through_pipelines_untouched():
    texts = ["good film", "good book", "bad film", "bad book"] * 5
    labels = ["+", "+", "-", "-"] * 5
    space = [
        (name, make_pipeline(CountVectorizer(), nb)) for name, nb in [("m", MultinomialNB()), ("b", BernoulliNB())]
    ]
    vote = BayesOptimalClassifier(space, random_state=0).fit(texts, labels)
    assert vote.predict(["good good", "bad"]).tolist() == ["+", "-"]
    assert vote.set_params(m__multinomialnb__alpha=3.0).get_params()["m__multinomialnb__alpha"] == 3.0


# -- the draw ----------------------------------------------------------------------------------------------------------


def test_gibbs_answers_with_one_model_a_row_as_often_as_it_is_probable():
    x, y = load_iris(return_X_y=True)
    pair = [("gauss", GaussianNB()), ("twin", GaussianNB()), ("base rate", DummyClassifier(strategy="uniform"))]
    gibbs = GibbsClassifier(pair, prior={"gauss": 0.3, "twin": 0.7, "base rate": 0.0}, random_state=0).fit(x, y)
    assert gibbs.posterior_ == pytest.approx({"gauss": 0.3, "twin": 0.7, "base rate": 0.0})
    assert np.array_equal(gibbs.predict(x), GaussianNB().fit(x, y).predict(x))
    gibbs.posterior_ = {"gauss": 0.3, "twin": 0.0, "base rate": 0.7}
    many = np.repeat(x[:1], 5000, axis=0)
    drawn = (gibbs.predict_proba(many)[:, 0] > 0.9).mean()
    assert drawn == pytest.approx(0.3, abs=4 * math.sqrt(0.21 / 5000))
    assert np.array_equal(gibbs.predict(many), gibbs.predict(many))
    gibbs.set_params(random_state=None)
    assert not np.array_equal(gibbs.predict_proba(many), gibbs.predict_proba(many))


# -- in the open -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (BayesOptimalClassifier([]), "estimators []: give at least one, each with a different name."),
        (
            BayesOptimalClassifier([("a", GaussianNB()), ("a", BernoulliNB())]),
            "estimators ['a', 'a']: give at least one, each with a different name.",
        ),
        (
            BayesOptimalClassifier([("svm", LinearSVC())]),
            "estimator 'svm' has no predict_proba: wrap it, e.g. in CalibratedClassifierCV.",
        ),
        (
            BayesOptimalClassifier(PAIR, prior={"gauss": 1.0}),
            "the prior has ['gauss'], but the estimators are ['bernoulli', 'gauss']: use the same names.",
        ),
        (
            BayesOptimalClassifier(PAIR, prior={"gauss": 0.5, "bernoulli": 0.4}),
            "the prior sums to 0.9, not 1: give the probability of every case.",
        ),
        (GibbsClassifier(PAIR, weigh="votes"), "weigh='votes': give 'score' or 'evidence'."),
    ],
)
def test_errors_say_what_was_given_and_what_to_do(space, message):
    x, y = load_iris(return_X_y=True)
    with pytest.raises(DataError) as error:
        space.fit(x / 10, y)
    assert str(error.value) == message


def test_models_without_names_are_refused():
    with pytest.raises(DataError, match=r"^estimators holds GaussianNB\(\): give pairs of a name and a classifier\.$"):
        BayesOptimalClassifier([GaussianNB()]).fit([[1.0], [2.0]], [0, 1])


def test_one_row_cannot_be_predicted_from_another():
    with pytest.raises(DataError) as error:
        BayesOptimalClassifier(PAIR).fit([[1.0]], [0])
    assert str(error.value) == "n_samples = 1: give at least two rows, so that one can be predicted from the other."
