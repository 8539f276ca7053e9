"""Bayes factors, sensitivity to the prior, and posterior predictive checks of every family."""

import numpy as np
import pytest
from scipy.stats import beta, betabinom

from priory.families import (
    Bernoulli,
    Binomial,
    Categorical,
    Gamma,
    Gaussian,
    Histogram,
    Multinomial,
    Poisson,
    bayes_factor,
    check_predictions,
    compare_priors,
)

TOSSES = [1] * 7 + [0] * 3
RNG = np.random.default_rng(0)
FITTING = [
    (Bernoulli(1, 1), RNG.integers(0, 2, 50)),
    (Binomial(5, 1, 1), RNG.binomial(5, 0.3, 50)),
    (Poisson(), RNG.poisson(4, 50)),
    (Gaussian(0, 1, 2, 1), RNG.normal(size=50)),
    (Gamma(), RNG.gamma(3, size=50)),
    (Histogram(), RNG.normal(size=50)),
]


def test_a_bayes_factor_is_the_ratio_of_the_evidence():
    wanted = betabinom(10, 5, 5).pmf(7) / betabinom(10, 1, 1).pmf(7)
    assert bayes_factor(Bernoulli(5, 5), Bernoulli(1, 1), TOSSES) == pytest.approx(wanted)
    assert bayes_factor(Bernoulli(1, 1), Bernoulli(5, 5), TOSSES) == pytest.approx(1 / wanted)


def test_priors_are_compared_by_mean_and_interval():
    frame = compare_priors({"flat": Bernoulli(1, 1), "fair": Bernoulli(20, 20)}, TOSSES, mass=0.9).to_frame()
    assert frame["mean"].tolist() == pytest.approx([8 / 12, 27 / 50])
    assert frame["90 % from"].tolist() == pytest.approx([beta(8, 4).ppf(0.05), beta(27, 23).ppf(0.05)])
    several = compare_priors({"prior": Categorical(1.0)}, ["a", "b", "b"]).to_frame()
    assert several["mean"].tolist() == pytest.approx([0.4, 0.6])


@pytest.mark.parametrize(("family", "data"), FITTING, ids=lambda one: type(one).__name__)
def test_data_of_the_family_pass_its_check(family, data):
    assert 0.02 < check_predictions(family, data, np.median, draws=300).share <= 1


def test_data_of_another_family_fail_it():
    spread = np.repeat([0, 12], 20)
    check = check_predictions(Poisson(), spread, np.var, draws=300)
    assert check.observed == 36
    assert check.share == 0
    assert len(check.drawn) == 300
    words = check_predictions(Multinomial(np.ones(2)), np.tile([[1.0, 0.0]], (9, 1)), lambda x: x[:, 0].mean(), 50)
    assert 0 < words.share < 1


def test_a_check_of_labels():
    share = check_predictions(Categorical(1.0), ["a", "b", "b", "a"], lambda x: float(np.mean(x == "a")), 200).share
    assert 0.1 < share < 1
