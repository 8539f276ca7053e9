"""The worked examples of the lectures on distributions and naive Bayes come out to the last digit."""

import numpy as np
import pytest

import priory as pr
from priory.core.logspace import log_sum_exp
from priory.families import Bernoulli, Categorical, Gaussian, Multinomial, Poisson
from worked_examples import WORKED_EXAMPLES


def table(example):
    names = example["columns"][:-1]
    rows = [dict(zip(names, row[:-1], strict=True)) for row in example["rows"]]
    return rows, [row[-1] for row in example["rows"]], dict(zip(names, example["query"], strict=True))


def joint(model, query):
    return dict(zip(model.classes_.tolist(), np.exp(model.predict_joint_log_proba([query]))[0].tolist(), strict=True))


def posterior(model, query):
    return dict(zip(model.classes_.tolist(), model.predict_proba([query])[0].tolist(), strict=True))


def test_play_tennis():
    example = WORKED_EXAMPLES["play_tennis"]
    rows, play, query = table(example)
    model = pr.NaiveBayes(estimate="ml", calibrate=False).fit(rows, play)
    assert joint(model, query) == pytest.approx(example["expect"]["joint"], rel=1e-12)
    assert posterior(model, query) == pytest.approx(example["expect"]["posterior"], rel=1e-12)
    assert model.predict([query]).tolist() == [example["expect"]["class"]]
    assert np.exp(model._log_prior()) == pytest.approx(list(example["expect"]["prior"].values()), rel=1e-12)
    for answer, expected in example["expect"]["P(strong|play)"].items():
        seen = [row["wind"] for row, label in zip(rows, play, strict=True) if label == answer]
        wind = Categorical().ml(Categorical().observe(seen))
        assert float(wind.probabilities[wind.values == "strong"][0]) == pytest.approx(expected)


def test_a_missing_feature_drops_its_term():
    example = WORKED_EXAMPLES["missing_feature"]
    rows, play, query = table({**WORKED_EXAMPLES["play_tennis"], "query": example["query"]})
    model = pr.NaiveBayes(estimate="ml", calibrate=False).fit(rows, play)
    assert joint(model, query) == pytest.approx(example["expect"]["joint"], rel=1e-12)
    assert posterior(model, query) == pytest.approx(example["expect"]["posterior"], rel=1e-12)


def test_go_to_library_with_and_without_smoothing():
    example = WORKED_EXAMPLES["go_to_library"]
    rows, library, query = table(example)
    expect = example["expect"]
    plain = pr.NaiveBayes(estimate="ml", calibrate=False).fit(rows, library)
    assert joint(plain, query) == pytest.approx(expect["ml_joint"], rel=1e-12)
    assert plain.predict([query]).tolist() == [expect["ml_class"]]
    smoothed = pr.NaiveBayes(alpha=1.0, calibrate=False).fit(rows, library)
    assert joint(smoothed, query) == pytest.approx(expect["laplace_joint"], rel=1e-12)
    assert posterior(smoothed, query) == pytest.approx(expect["laplace_posterior"], rel=1e-12)


def test_log_sum_exp():
    example = WORKED_EXAMPLES["log_sum_exp"]
    assert float(log_sum_exp(example["input"])) == pytest.approx(example["expect"], rel=1e-15)


def words(text, vocabulary):
    tokens = text.lower().replace(".", "").split()
    return [float(word in tokens) for word in vocabulary], [float(tokens.count(word)) for word in vocabulary]


def test_book_and_movie_reviews():
    example = WORKED_EXAMPLES["book_and_movie_reviews"]
    vocabulary, expect = example["vocabulary"], example["expect"]
    texts = example["positive"] + example["negative"]
    label = ["positive"] * 4 + ["negative"] * 4
    present = np.array([words(t, vocabulary)[0] for t in texts])
    query = np.array([words(example["test"], vocabulary)[0]])

    def answers(model):
        return dict(zip(model.classes_.tolist(), np.exp(model.predict_joint_log_proba(query))[0].tolist(), strict=True))

    smoothed = pr.NaiveBayes(Bernoulli(1.0, 1.0), calibrate=False).fit(present, label)
    assert answers(smoothed) == pytest.approx(expect["bernoulli_alpha_1_joint"], rel=1e-12)
    proba = dict(zip(smoothed.classes_.tolist(), smoothed.predict_proba(query)[0].tolist(), strict=True))
    assert proba == pytest.approx(expect["bernoulli_alpha_1_posterior"], rel=1e-12)
    plain = pr.NaiveBayes(Bernoulli(1.0, 1.0), estimate="ml", calibrate=False).fit(present, label)
    assert answers(plain) == pytest.approx(expect["bernoulli_unsmoothed_joint"], rel=1e-12)
    assert 2 * (present.shape[1] + 1) == example["parameters_to_estimate"]


def test_book_and_movie_reviews_as_counts():
    example = WORKED_EXAMPLES["book_and_movie_reviews"]
    vocabulary = example["vocabulary"]
    query = np.array(words(example["test"], vocabulary)[1])
    joint = {}
    for label in ("positive", "negative"):
        counts = np.array([words(t, vocabulary)[1] for t in example[label]])
        theta = (Multinomial(np.ones(len(vocabulary))) + Multinomial().observe(counts)).mean()
        joint[label] = float(0.5 * np.prod(theta**query))
    assert joint == pytest.approx(example["expect"]["multinomial_alpha_1_joint"], rel=1e-12)


def test_class_prior_of_likes_and_dislikes():
    example = WORKED_EXAMPLES["likes_dislikes_prior"]
    label = ["dislike"] * example["dislikes"] + ["like"] * example["likes"]
    model = pr.NaiveBayes().fit(np.zeros((example["documents"], 1)), label)
    assert np.exp(model._log_prior()) == pytest.approx([example["expect"]["P(dislike)"], example["expect"]["P(like)"]])


def test_bernoulli_maximum_likelihood():
    example = WORKED_EXAMPLES["bernoulli_ml"]
    seen = Bernoulli().observe([1.0] * example["cherries"] + [0.0] * example["limes"])
    assert float(Bernoulli().ml(seen)) == example["expect"]["theta_ML"]


def test_gaussian_maximum_likelihood():
    example = WORKED_EXAMPLES["gaussian_ml"]
    mean, variance = Gaussian().ml(Gaussian().observe(example["data"]))
    assert float(mean) == pytest.approx(example["expect"]["mean"], rel=1e-14)
    assert float(variance) == pytest.approx(example["expect"]["variance"], rel=1e-14)


def test_both_multinomial_estimators():
    example = WORKED_EXAMPLES["two_multinomial_estimators"]
    seen = Multinomial().observe(example["counts_of_one_class"])
    assert Multinomial().ml(seen) == pytest.approx(example["expect"]["pooled"], rel=1e-14)
    by_document = Multinomial(weigh="documents").ml(seen)
    assert by_document == pytest.approx(example["expect"]["mean_of_documents"], rel=1e-14)


def test_poisson_maximum_likelihood():
    example = WORKED_EXAMPLES["poisson_ml"]
    rates = Poisson().ml(Poisson().observe(example["counts_of_one_class"]))
    assert rates == pytest.approx(example["expect"]["rates"], rel=1e-14)


def test_m_estimate():
    example = WORKED_EXAMPLES["m_estimate"]
    seen = Bernoulli().observe([1.0] * example["n_c"] + [0.0] * (example["n"] - example["n_c"]))
    belief = Bernoulli.m_estimate(m=example["m"], p=example["p"]) + seen
    assert float(belief.mean()) == pytest.approx(example["expect"], rel=1e-12)


def test_gibbs_errs_at_most_twice_as_often_as_the_vote():
    example, expect = WORKED_EXAMPLES["bayes_optimal_vs_map"], WORKED_EXAMPLES["gibbs_bound"]["expect"]
    answers = {h: {"+": p, "-": 1 - p} for h, p in example["P(+|h)"].items()}
    space, rng = pr.Hypotheses(example["posterior"], answers), np.random.default_rng(0)
    drawn = [space.gibbs(rng) for _ in range(4000)]
    truth = space.predict_proba()
    vote = 1 - truth[space.predict()]
    gibbs = sum(p * (1 - drawn.count(label) / len(drawn)) for label, p in truth.items())
    assert vote == pytest.approx(expect["error_of_the_vote"])
    assert gibbs == pytest.approx(expect["error_of_gibbs"], abs=0.02)
    assert gibbs <= expect["most_times_as_often"] * vote


def test_gibbs_may_err_more_than_twice_as_often_if_hypotheses_are_not_certain():
    example = WORKED_EXAMPLES["gibbs_of_noisy_hypotheses"]
    expect = example["expect"]
    space = pr.Hypotheses(
        example["prior"], {h: {"cherry": p, "lime": 1 - p} for h, p in example["P(cherry|h)"].items()}
    )
    wrong = space.answers().to_frame().set_index("learner")["P(wrong)"]
    assert wrong["Bayes-optimal vote"] == pytest.approx(expect["error_of_the_vote"])
    assert wrong["Gibbs"] == pytest.approx(expect["error_of_gibbs"])
    assert wrong["Gibbs"] > 2.56 * wrong["Bayes-optimal vote"]


def test_one_step_of_the_sigmoid_unit():
    example = WORKED_EXAMPLES["sigmoid_unit"]
    unit = pr.SigmoidUnit(eta=example["eta"], steps=1, fit_intercept=False).fit(example["x"], example["d"])
    assert unit.weights_ == pytest.approx([example["expect"]["weight"]], rel=1e-12)
    assert unit.errors_ == pytest.approx(example["expect"]["errors"], rel=1e-12)


def test_both_multinomial_estimators_as_classifiers():
    example = WORKED_EXAMPLES["two_multinomial_estimators"]
    documents, label = example["counts_of_one_class"], ["c"] * 3
    pooled = pr.naive_bayes.MultinomialNB(alpha=0).fit(documents, label)
    averaged = pr.naive_bayes.DocumentAverageNB(alpha=0).fit(documents, label)
    assert np.exp(pooled.feature_log_prob_[0]) == pytest.approx(example["expect"]["pooled"], rel=1e-12)
    assert np.exp(averaged.feature_log_prob_[0]) == pytest.approx(example["expect"]["mean_of_documents"], rel=1e-12)
