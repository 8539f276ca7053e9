"""Logistic regression: the seed's rule, the peak, the posterior around it, and what is averaged over it."""

import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, stats
from scipy.special import expit, softmax
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from priory.errors import DataError, MissingDependencyError, PrioryWarning
from priory.regression.logistic_posterior import (
    LaplaceApproximation,
    TrainingExamples,
    contrast_matrix,
    expected_softmax,
    fit_gradient_ascent,
    fit_newton,
    prior_precision,
)
from priory.regression.logistic_regression import BayesianLogisticRegression

LAWS = settings(max_examples=40, deadline=None)


@pytest.mark.slow
@parametrize_with_checks(
    [
        BayesianLogisticRegression(),
        BayesianLogisticRegression("map"),
        BayesianLogisticRegression("ml"),
        BayesianLogisticRegression("ml", solver="gradient", max_iter=300),
    ]
)
@pytest.mark.filterwarnings("ignore::priory.errors.PrioryWarning")
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def problem(seed=0, n=200, d=3, classes=2):
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(n, d)), rng.normal(size=(d, classes))
    y = (softmax(x @ w, axis=1).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return x, y


def examples_of(x, y, classes=2, weight=None):
    u = np.column_stack([np.ones(len(x)), x])
    return TrainingExamples(u, np.eye(classes)[y], np.ones(len(x)) if weight is None else weight)


# -- the peak ---------------------------------------------------------------------------------------------------------


def test_the_gradient_solver_is_the_rule_of_the_sigmoid_unit_as_written():
    x, d = problem(n=30)
    u, w, eta = np.column_stack([np.ones(30), x]), np.zeros(4), 0.05
    for _ in range(7):
        h = expit(u @ w)
        w = w + eta * sum((d[i] - h[i]) * u[i] for i in range(30))
    rows = examples_of(x, d)
    np.testing.assert_allclose(fit_gradient_ascent(rows, np.zeros(4), eta, max_iter=7).weights[0], w, rtol=1e-12)


def test_its_cross_entropy_is_the_seeds():
    x, d = problem(n=30)
    w = np.array([0.1, -0.4, 0.2, 1.0])
    h = expit(np.column_stack([np.ones(30), x]) @ w)
    rows = examples_of(x, d)
    assert rows.log_likelihood(w[None]) == pytest.approx((d * np.log(h) + (1 - d) * np.log(1 - h)).sum(), rel=1e-12)


@LAWS
@given(seed=st.integers(0, 1000), classes=st.integers(2, 4))
def test_gradient_and_information_are_the_derivatives_of_the_likelihood(seed, classes):
    x, y = problem(seed, 25, 2, classes)
    rng = np.random.default_rng(seed)
    rows = examples_of(x, y, classes, rng.uniform(0, 2, 25))
    w = rng.normal(size=rows.shape)
    step = 1e-5 * np.eye(w.size).reshape(-1, *w.shape)
    slope = [(rows.log_likelihood(w + s) - rows.log_likelihood(w - s)) / 2e-5 for s in step]
    np.testing.assert_allclose(rows.gradient(w).ravel(), slope, atol=1e-6)
    curve = [-(rows.gradient(w + s) - rows.gradient(w - s)).ravel() / 2e-5 for s in step]
    np.testing.assert_allclose(rows.information(w), curve, atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_both_solvers_find_the_peak_that_scikit_learn_finds(classes):
    x, y = problem(1, 300, 3, classes)
    reference = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x, y)
    fast = BayesianLogisticRegression("ml").fit(x, y)
    slow = BayesianLogisticRegression("ml", solver="gradient", tol=1e-8, max_iter=100_000).fit(x, y)
    np.testing.assert_allclose(fast.predict_proba(x), reference.predict_proba(x), atol=1e-6)
    np.testing.assert_allclose(fast.predict_proba(x), slow.predict_proba(x), atol=1e-8)
    if classes == 2:
        np.testing.assert_allclose(fast.coef_, reference.coef_, atol=1e-5)
        np.testing.assert_allclose(fast.intercept_, reference.intercept_, atol=1e-5)
    assert fast.n_iter_ < 10 < slow.n_iter_


def test_map_is_the_peak_of_likelihood_times_prior():
    x, y = problem(2, 80)
    u, precision = np.column_stack([np.ones(80), x]), prior_precision(2.0, 4)

    def cost(w):
        return np.logaddexp(0, -(2 * y - 1) * (u @ w)).sum() + 0.5 * (precision * w**2).sum()

    reference = optimize.minimize(cost, np.zeros(4), tol=1e-12).x
    model = BayesianLogisticRegression("map", prior=2.0, standardise=False).fit(x, y)
    np.testing.assert_allclose(np.r_[model.intercept_, model.coef_[0]], reference, atol=1e-5)


@pytest.mark.parametrize("method", ["map", "laplace"])
def test_units_and_places_of_the_columns_do_not_matter(method):
    x, y = problem(3)
    a = BayesianLogisticRegression(method).fit(x, y)
    b = BayesianLogisticRegression(method).fit(x * [1e-6, 1, 1e6] + [1e-3, 1e8, 0], y)
    moved = x * [1e-6, 1, 1e6] + [1e-3, 1e8, 0]
    np.testing.assert_allclose(a.predict_proba(x), b.predict_proba(moved), atol=1e-6)


def test_a_weight_is_a_repetition():
    x, y = problem(4, 60)
    times = np.random.default_rng(0).integers(0, 3, 60)
    weighted = BayesianLogisticRegression().fit(x, y, times)
    repeated = BayesianLogisticRegression().fit(np.repeat(x, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.predict_proba(x), repeated.predict_proba(x), atol=1e-8)


def test_a_single_class_is_certain():
    model = BayesianLogisticRegression().fit([[1.0], [2.0]], ["a", "a"])
    assert model.predict_proba([[5.0]]).tolist() == [[1.0]]


# -- the posterior ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@LAWS
@given(mean=st.floats(-20, 20), sd=st.floats(0.0, 30.0))
def test_two_classes_are_integrated_exactly(mean, sd):
    edges = sorted({-40.0, -8.0, np.clip(-mean / max(sd, 0.1), -40, 40), 8.0, 40.0})
    exact = sum(
        integrate.quad(lambda t: expit(mean + sd * t) * stats.norm.pdf(t), a, b, epsabs=1e-12, limit=200)[0]
        for a, b in pairwise(edges)
    )
    found = expected_softmax(np.array([[mean]]), np.array([[[sd]]]), contrast_matrix(2))
    assert found[0, 1] == pytest.approx(exact, abs=1e-8)
    assert found.sum() == pytest.approx(1, abs=1e-12)


def test_three_classes_are_integrated_to_three_digits():
    t, weight = np.polynomial.hermite_e.hermegauss(60)
    grid = np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2)
    mass = np.outer(weight, weight).ravel() / weight.sum() ** 2
    root = np.array([[1.2, 0.3], [0.0, 0.8]])
    for mean in ([0.0, 0.0], [1.5, -0.5], [3.0, 2.0]):
        exact = mass @ softmax((mean + grid @ root) @ contrast_matrix(3).T, axis=1)
        found = expected_softmax(np.array([mean]), root[None], contrast_matrix(3))[0]
        np.testing.assert_allclose(found, exact, atol=1e-3)


def test_laplace_is_near_the_quadrature_of_the_whole_posterior():
    x, y = problem(5, 60, 1)
    rows, precision = examples_of(x, y), prior_precision(1.0, 2)
    gaussian = LaplaceApproximation.at(rows, precision, fit_newton(rows, precision).weights)
    a, b = np.meshgrid(np.linspace(-4, 4, 201), np.linspace(-5, 5, 201))
    grid = np.stack([a, b], axis=-1).reshape(-1, 2)
    log_odds = grid @ rows.u.T
    log_joint = (y * log_odds - np.logaddexp(0, log_odds)).sum(axis=1)
    log_joint += stats.norm.logpdf(grid, 0, 1 / np.sqrt(precision)).sum(axis=1)
    mass = np.exp(log_joint) * (8 / 200) * (10 / 200)
    assert gaussian.log_evidence == pytest.approx(np.log(mass.sum()), abs=0.05)
    new = np.array([[1.0, 2.0], [1.0, -1.0]])
    exact = (mass / mass.sum()) @ expit(grid @ new.T)
    np.testing.assert_allclose(gaussian.probabilities(new, rows.class_contrasts)[:, 1], exact, atol=0.01)


def test_evidence_chooses_a_strong_prior_when_there_is_nothing_to_learn():
    rng = np.random.default_rng(6)
    x, noise = rng.normal(size=(200, 5)), rng.integers(0, 2, 200)
    signal = (x @ np.full(5, 3.0) + rng.logistic(size=200) > 0).astype(int)
    strengths = [BayesianLogisticRegression().fit(x, y).strength_ for y in (noise, signal)]
    assert strengths[0] > 10 > 1 > strengths[1]


def test_on_separable_data_ml_is_certain_map_is_confident_and_bayes_is_careful():
    x, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    with pytest.warns(PrioryWarning) as caught:
        ml = BayesianLogisticRegression("ml").fit(x, y)
    assert [str(w.message) for w in caught] == [
        'the classes are separable, so the likelihood has no maximum; use method="map" or "laplace".'
    ]
    others = [BayesianLogisticRegression(m, prior=0.1).fit(x, y) for m in ("map", "laplace")]
    p_ml, p_map, p_bayes = (float(m.predict_proba([[1.0]])[0, 1]) for m in (ml, *others))
    assert p_ml > 1 - 1e-6
    assert p_ml > p_map > p_bayes > 0.6


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::priory.errors.PrioryWarning")
def test_laplace_beats_plugging_in_on_small_samples():
    rng = np.random.default_rng(7)
    loss = {"ml": [], "laplace": []}
    for _ in range(60):
        w = rng.normal(size=4)
        x = rng.normal(size=(520, 4))
        y = (rng.random(520) < expit(x @ w)).astype(int)
        if len(set(y[:20])) < 2:
            continue
        for method, scores in loss.items():
            model = BayesianLogisticRegression(method)
            p = np.clip(model.fit(x[:20], y[:20]).predict_proba(x[20:])[:, 1], 1e-12, 1 - 1e-12)
            scores.append(-np.log(np.where(y[20:] == 1, p, 1 - p)).mean())
    assert np.mean(loss["laplace"]) < 0.62  # always answering one half would be 0.693
    assert np.mean(loss["ml"]) > 1


# -- sampling: the extra mcmc -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three_ways():
    pytest.importorskip("blackjax")
    pytest.importorskip("arviz_stats")
    x, y = problem(8, 300, 3)
    return x, {m: BayesianLogisticRegression(m, prior=1.0, random_state=0).fit(x, y) for m in ("laplace", "vi", "nuts")}


@pytest.mark.slow
@pytest.mark.mcmc
def test_laplace_vi_and_nuts_agree_on_a_well_posed_problem(three_ways):
    x, models = three_ways
    p = {m: model.predict_proba(x)[:, 1] for m, model in models.items()}
    assert np.abs(p["laplace"] - p["nuts"]).max() < 0.01
    assert np.abs(p["vi"] - p["nuts"]).max() < 0.01
    spread = {m: models[m].weight_draws_[:, 0].std(axis=0) for m in ("vi", "nuts")}
    np.testing.assert_allclose(spread["vi"], spread["nuts"], rtol=0.1)
    np.testing.assert_allclose(models["vi"].coef_, models["nuts"].coef_, atol=0.05)


@pytest.mark.slow
@pytest.mark.mcmc
def test_the_chains_agree(three_ways):
    rhat, ess, divergences = three_ways[1]["nuts"].diagnostics_
    assert rhat < 1.01
    assert ess > 1000
    assert divergences == 0
    assert three_ways[1]["nuts"].weight_draws_.shape == (4000, 1, 4)


@pytest.mark.slow
@pytest.mark.mcmc
@pytest.mark.filterwarnings("ignore::priory.errors.PrioryWarning")  # so few draws may well disagree, and say so
def test_three_classes_by_sampling_and_the_line_that_counts_the_draws(capsys):
    pytest.importorskip("blackjax")
    pytest.importorskip("arviz_stats")
    x, y = load_iris(return_X_y=True)
    models = [
        BayesianLogisticRegression(m, prior=1.0, draws=400, random_state=0, progress=True).fit(x, y)
        for m in ("laplace", "nuts")
    ]
    p, q = (m.predict_proba(x) for m in models)
    assert np.abs(p - q).max() < 0.06
    assert q.sum(axis=1) == pytest.approx(1)
    shown = capsys.readouterr().err
    assert shown.startswith("\rnuts: 80 of 1,600\rnuts: 160 of 1,600")
    assert shown.endswith("\rnuts: 1,600 of 1,600\n")


@pytest.mark.parametrize("method", ["vi", "nuts"])
def test_without_the_extra_the_message_says_what_to_install(method, monkeypatch):
    monkeypatch.setitem(sys.modules, "blackjax", None)
    with pytest.raises(MissingDependencyError) as error:
        BayesianLogisticRegression(method).fit(*problem())
    assert str(error.value) == ("blackjax is not installed; this method needs the extra: pip install 'priory[mcmc]'.")


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"method": "bayes"}, "method is 'bayes'; give one of ml, map, laplace, vi, nuts."),
        ({"solver": "adam"}, "solver is 'adam'; give one of newton, gradient."),
        ({"prior": 0}, 'prior is 0; give "evidence" or a strength above 0 (for no prior, method="ml").'),
        ({"prior": np.nan}, 'prior is nan; give "evidence" or a strength above 0 (for no prior, method="ml").'),
        ({"prior": "auto"}, 'prior is \'auto\'; give "evidence" or a strength above 0 (for no prior, method="ml").'),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(DataError) as error:
        BayesianLogisticRegression(**parameters).fit(*problem())
    assert str(error.value) == message


def test_bad_weights():
    x, y = problem(n=5)
    with pytest.raises(DataError, match=r"^sample_weight of row 3 is -2; give a number from 0 to 1e\+100\.$"):
        BayesianLogisticRegression().fit(x, y, [1, 1, 1, -2, 1])


def test_numbers_of_any_size_that_have_a_square():
    x, y = problem()
    plain = BayesianLogisticRegression().fit(x, y).predict_proba(x)
    for scale in (1e-200, 1e140):
        np.testing.assert_allclose(BayesianLogisticRegression().fit(x * scale, y).predict_proba(x * scale), plain)
    with pytest.raises(DataError, match=r"^row 0 of column 1 holds 1e\+200, whose square is infinite: rescale it\.$"):
        BayesianLogisticRegression().fit([[1.0, 1e200], [2.0, 3.0]], [0, 1])


def test_only_samplers_have_draws():
    with pytest.raises(DataError, match=r'^method="laplace" makes no draws; use "vi" or "nuts"\.$'):
        BayesianLogisticRegression().fit(*problem()).weight_draws_  # noqa: B018


def test_too_many_weights_for_a_second_order_solver():
    rows = TrainingExamples(np.ones((2, 30_000)), np.eye(2), np.ones(2))
    with pytest.raises(DataError, match=r'^30,000 weights need a matrix of 7 GiB; use solver="gradient"\.$'):
        fit_newton(rows, np.ones(30_000))


def test_a_solver_that_is_stopped_short_says_so():
    with pytest.warns(
        PrioryWarning, match=r"^the gradient solver did not converge in 2 steps; raise max_iter or tol\.$"
    ):
        BayesianLogisticRegression("map", solver="gradient", max_iter=2, prior=1.0).fit(*problem())
