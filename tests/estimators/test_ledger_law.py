"""Ledgers add up: to the log-odds of predict_proba and, where nothing corrects the model, to log p(c, x)."""

import numpy as np
import pytest

import priory as pr
from priory import inbox

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 2, 200)
BELLS = RNG.normal(size=(200, 2)) * 37 + 5 + LABELS[:, None]
TABLES = {
    "gaussian": BELLS,
    "gamma": np.abs(BELLS) + 0.1,
    "poisson": np.abs(BELLS).round(),
    "histogram": BELLS,
    "categorical": BELLS.round(-1),
    "bernoulli": (BELLS > 0) * 1.0,
}


@pytest.mark.parametrize("estimate", ["predictive", "mean", "map"])
@pytest.mark.parametrize("family", TABLES)
def test_the_joint_log_probability_is_the_total_of_the_ledger(family, estimate):
    x = TABLES[family].astype(float)
    x[0, 0] = np.nan
    model = pr.NaiveBayes(family, estimate=estimate, calibrate=False).fit(x, LABELS)
    joint = model.predict_joint_log_proba(x[:5])
    assert joint == pytest.approx(np.array([ledger.total for ledger in model.explain(x[:5])]), abs=1e-8)


def test_the_gaussian_joint_is_the_density_that_scipy_has():
    from scipy.stats import norm

    model = pr.NaiveBayes("gaussian", estimate="ml", calibrate=False).fit(BELLS, LABELS)
    expected = [
        np.log(np.mean(c == LABELS))
        + norm(BELLS[c == LABELS].mean(axis=0), BELLS[c == LABELS].std(axis=0)).logpdf(BELLS[:5]).sum(axis=1)
        for c in (0, 1)
    ]
    assert model.predict_joint_log_proba(BELLS[:5]) == pytest.approx(np.array(expected).T)


def models():
    rows, labels = inbox()
    texts = [row["text"] for row in rows]
    for options in ({}, {"calibrate": False}, {"class_prior": "uniform"}):
        yield f"NaiveBayes {options}", pr.NaiveBayes(**options), rows, labels
    for kind in ("binary", "multinomial", "bernoulli"):
        for options in ({}, {"calibrate": False}, {"class_prior": "uniform"}):
            yield f"TextClassifier {kind} {options}", pr.TextClassifier(kind, **options), texts, labels
    yield "TextClassifier refined", pr.TextClassifier(refine=True), texts, labels


@pytest.mark.slow
@pytest.mark.parametrize(("model", "rows", "labels"), [pytest.param(*rest, id=name) for name, *rest in models()])
def test_the_total_of_a_ledger_is_the_log_odds_of_the_answer(model, rows, labels):
    some = rows[:12]
    log_proba = model.fit(rows, labels).predict_log_proba(some)
    for ledger, answer in zip(model.explain(some), log_proba, strict=True):
        first, second = np.argsort(-answer)[:2]
        classes = model.classes_.tolist()
        odds = ledger.log_odds(classes[first], classes[second])
        assert odds == pytest.approx(answer[first] - answer[second], abs=1e-6)
        assert odds == pytest.approx(np.asarray(ledger.total)[first] - np.asarray(ledger.total)[second], abs=1e-6)


EXTREMES = [0.0, 5e-324, 1e-310, 1e-300, 1e-160, 1e-8, 1.0, 1e8, 1e154, 1e155, 1e300, 1.7e308]


def test_the_smallest_number_there_is_does_not_make_an_answer_undefined():
    table = [{"a": 5e-324}, {"a": 0.0}, {"a": 0.0}, {"a": 0.0}]
    model = pr.NaiveBayes(calibrate=False).fit(table, list("xyxx"))
    assert model.predict_proba([{"a": -1e300}]).sum() == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::priory.errors.PrioryWarning")
@pytest.mark.parametrize("options", [{}, {"families": "gaussian"}, {"estimate": "ml"}])
def test_probabilities_are_always_finite_and_sum_to_one(options):
    rng = np.random.default_rng(0)

    def draw(rows, columns):
        return rng.choice(EXTREMES, (rows, columns)) * rng.choice([-1, 1], (rows, columns))

    for _ in range(100):
        rows, columns = rng.integers(2, 9), rng.integers(1, 3)
        model = pr.NaiveBayes(calibrate=False, **options).fit(draw(rows, columns), rng.integers(0, 2, rows))
        answer = model.predict_proba(draw(4, columns))
        assert np.isfinite(answer).all()
        assert answer.sum(axis=1) == pytest.approx(1.0)
