"""Quantiles and modes of beliefs: those of scipy.stats, those of draws, and no mode where there is none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaln

from priory.errors import DataError
from priory.families import (
    Bernoulli,
    Binomial,
    Categorical,
    Gamma,
    Gaussian,
    Histogram,
    Multinomial,
    Poisson,
)

LEVELS = (0.025, 0.5, 0.9)
POSITIVE = st.floats(0.3, 50)


@given(a=POSITIVE, b=POSITIVE, q=st.sampled_from(LEVELS))
def test_quantiles_are_those_of_the_posterior_distributions(a, b, q):
    assert Bernoulli(a, b).quantile(q) == pytest.approx(stats.beta(a, b).ppf(q))
    assert Binomial(5, a, b).quantile(q) == pytest.approx(stats.beta(a, b).ppf(q))
    assert Poisson(a, b).quantile(q) == pytest.approx(stats.gamma(a, scale=1 / b).ppf(q))
    assert Gamma(2.0, a, b).quantile(q).rate == pytest.approx(stats.gamma(a, scale=1 / b).ppf(q))
    mean, variance = Gaussian(3.0, 2.0, a, b, unit=10.0).quantile(q)
    assert mean == pytest.approx(10 * stats.t(2 * a, 3.0, np.sqrt(b / (2 * a))).ppf(q))
    assert variance == pytest.approx(100 * stats.invgamma(a, scale=b).ppf(q))
    shares = Multinomial(np.array([a, b, 1.0])).quantile(q)
    assert shares == pytest.approx([stats.beta(v, a + b + 1 - v).ppf(q) for v in (a, b, 1.0)])


BELIEFS = [
    Bernoulli(3.0, 1.5),
    Poisson(4.0, 2.0),
    Gaussian(1.0, 2.0, 4.0, 3.0),
    Categorical(1.0) + Categorical().observe(["a", "b", "b", "c"]),
    Histogram() + Histogram().observe([0.0] * 5 + [3.0, 4.0, 5.0]),
    Gamma() + Gamma().observe([1.0, 2.0, 3.0, 4.0, 2.5, 0.4]),
]


@pytest.mark.parametrize("belief", BELIEFS, ids=lambda belief: type(belief).__name__)
def test_draws_lie_below_a_quantile_as_often_as_it_says(belief):
    def list_parts(parameters):
        return parameters if isinstance(parameters, tuple) else (parameters,)

    draws = belief.draw(np.random.default_rng(0), 20_000)
    for q in LEVELS:
        for drawn, at in zip(list_parts(draws), list_parts(belief.quantile(q)), strict=True):
            if np.shape(drawn) != np.shape(at):  # those of the same shape, values and edges, are not drawn
                known = ~np.isnan(at)
                # the shape of a Gamma is drawn from the few nodes of its quadrature
                margin = 0.12 if isinstance(belief, Gamma) else 0.015
                assert (drawn <= at).mean(axis=0)[known] == pytest.approx(q, abs=margin)


def test_the_quantiles_of_an_unknown_shape_and_rate_are_those_of_the_exact_posterior():
    """The posterior of log shape on a fine grid; for each shape the rate has a Gamma distribution."""
    x = np.array([1.0, 2.0, 3.0, 4.0, 2.5, 0.4])
    s = np.linspace(-3, 5, 4001)
    k = np.exp(s)
    a, b = 1 + k * len(x), 1 / k + x.sum()
    log_p = stats.norm(0, 2).logpdf(s) + (k - 1) * np.log(x).sum() - len(x) * gammaln(k)  # p(s) and p(x | s), with
    log_p += gammaln(a) - a * np.log(b) - s  # the rate integrated out under its prior Gamma(1, 1 / k)
    p = np.exp(log_p - log_p.max())
    cdf = np.cumsum(p) / p.sum()
    belief = Gamma() + Gamma().observe(x)
    for q in LEVELS:
        shape, rate = belief.quantile(q)
        assert float(shape) == pytest.approx(np.exp(np.interp(q, cdf, s)), rel=0.04)
        assert (p * stats.gamma(a, scale=1 / b).cdf(float(rate))).sum() / p.sum() == pytest.approx(q, abs=1e-3)


def test_a_credible_interval_holds_its_mass():
    low, high = Bernoulli(8, 4).credible_interval(0.9)
    assert stats.beta(8, 4).cdf([low, high]) == pytest.approx([0.05, 0.95])
    with pytest.raises(DataError, match=r"mass is 95; give a probability above 0 and below 1\."):
        Bernoulli(8, 4).credible_interval(95)


@pytest.mark.parametrize(
    ("a", "b", "mode"),
    [(3, 2, 2 / 3), (1, 2, 0), (2, 1, 1), (0.5, 2, 0), (1, 0.5, 1), (0.5, 1, 0), (2, 0.5, 1)],
)
def test_the_most_probable_proportion_may_be_at_an_end(a, b, mode):
    assert float(Bernoulli(a, b).mode()) == pytest.approx(mode)
    theta = np.linspace(1e-9, 1 - 1e-9, 2001)
    assert theta[np.argmax(stats.beta(a, b).pdf(theta))] == pytest.approx(mode, abs=1e-3)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (0.5, 0.5), (0.9, 0.3)])
def test_a_flat_belief_and_one_that_is_infinite_at_both_ends_have_no_mode(a, b):
    assert np.isnan(Bernoulli(a, b).mode())
    assert np.isnan(Multinomial(np.array([a, b])).mode()).all()
