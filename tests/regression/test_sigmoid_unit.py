"""The sigmoid unit follows the rule as it is written, and keeps the error of every step."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

import priory as pr
from priory.errors import DataError

X = np.array([[1.0, 2.0], [2.0, 0.5], [3.0, 1.0], [0.5, 1.5]])
D = np.array([0, 1, 1, 0])


def test_one_step_from_zero_weights_is_the_rule():
    unit = pr.SigmoidUnit(eta=0.05, steps=1).fit(X, D)
    ones = np.column_stack([np.ones(4), X])
    assert unit.weights_ == pytest.approx(0.05 * ((D - 0.5) @ ones), rel=1e-15)


def test_every_step_is_the_rule_and_every_error_the_cross_entropy():
    unit = pr.SigmoidUnit(eta=0.1, steps=30, fit_intercept=False).fit(X, D)
    for before, after, error in zip(unit.path_, unit.path_[1:], unit.errors_, strict=False):
        h = 1 / (1 + np.exp(-X @ before))
        assert after == pytest.approx(before + 0.1 * ((D - h) @ X), rel=1e-12)
        assert error == pytest.approx(-np.sum(D * np.log(h) + (1 - D) * np.log(1 - h)), rel=1e-12)
    assert (np.diff(unit.errors_) < 0).all()


def test_many_steps_lead_to_the_maximum_of_the_likelihood():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    d = (x @ [1.0, -2.0] + rng.logistic(size=200) > 0).astype(int)
    unit = pr.SigmoidUnit(eta=0.02, steps=3000).fit(x, d)
    peer = LogisticRegression(C=np.inf, tol=1e-10).fit(x, d)
    assert unit.weights_[1:] == pytest.approx(peer.coef_[0], abs=1e-5)
    assert unit.predict_proba(x) == pytest.approx(peer.predict_proba(x), abs=1e-5)


@pytest.mark.parametrize(
    ("unit", "labels", "message"),
    [
        (pr.SigmoidUnit(eta=0), D, "eta is 0 and steps 100; give a rate above 0 and 1 step or more."),
        (pr.SigmoidUnit(), [0, 1, 2, 1], "Only binary classification is supported: y has 3 class(es), give two."),
    ],
)
def test_what_cannot_be_trained_is_refused(unit, labels, message):
    with pytest.raises(DataError) as error:
        unit.fit(X, labels)
    assert str(error.value) == message


@pytest.mark.slow
@parametrize_with_checks([pr.SigmoidUnit()])
def test_scikit_learn_finds_nothing_to_object_to(estimator, check):
    check(estimator)
