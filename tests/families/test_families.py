"""Every family obeys the same laws: the algebra of its record, and the calculus of its beliefs."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from priory.core.exact_sums import ExactSums
from priory.errors import DataError, NotLearnedError
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

RNG = np.random.default_rng(11)
LABELS = np.array(["red", "green", "blue", "teal"])

EXAMPLES = {  # a family with a declared prior, and rows it can hold
    "Bernoulli": (Bernoulli(0.7, 1.9), RNG.integers(0, 2, 40).astype(float)),
    "Binomial": (Binomial(6, 1.5, 0.8), RNG.integers(0, 7, 40).astype(float)),
    "Categorical": (Categorical(0.6, values=LABELS), RNG.choice(LABELS, 40)),
    "Poisson": (Poisson(2.0, 0.5), RNG.poisson(4.0, 40).astype(float)),
    "Gaussian": (Gaussian(1.0, 0.4, 2.5, 3.0), RNG.normal(5.0, 2.0, 40)),
    "Gamma, known shape": (Gamma(2.5, 1.2, 0.7), RNG.gamma(2.5, 2.0, 40)),
    "Gamma": (Gamma(None, 1.2, 3.0), RNG.gamma(2.5, 2.0, 40)),
    "Histogram": (Histogram(), np.round(RNG.normal(size=40), 1)),
    "Multinomial": (Multinomial(np.array([0.5, 1.0, 2.0])), RNG.multinomial(7, [0.2, 0.3, 0.5], 40).astype(float)),
}
FIXED = [name for name in EXAMPLES if name not in ("Histogram",)]  # those whose parameters do not move with the data


def fields(record, rounded):
    return {
        name: np.asarray(value, dtype=object if name == "values" or isinstance(value, list) else float)
        for name, value in state(record, rounded).items()
    }


def state(record, rounded):
    """What a record says; exact sums as the numbers they are stored as, or rounded."""
    return {
        k: (v.to_floats() if rounded else [v.base, *v.limbs.shape, *v.limbs.ravel()]) if isinstance(v, ExactSums) else v
        for k, v in vars(record).items()
        if not k.startswith("_")
    }


def same(a, b, exactly=False, rounded=False):
    left, right = fields(a, rounded), fields(b, rounded)
    assert left.keys() == right.keys()
    for name in left:
        if exactly or left[name].dtype == object:
            assert np.array_equal(left[name], right[name]), name
        else:
            assert np.allclose(left[name], right[name], rtol=1e-9, atol=1e-9), name


@pytest.fixture(params=EXAMPLES)
def example(request):
    return EXAMPLES[request.param]


# -- the algebra -------------------------------------------------------------------------------------------------


@given(cut=st.integers(0, 40), seed=st.integers(0, 1000))
@pytest.mark.parametrize("name", EXAMPLES)
def test_any_split_and_any_order_give_the_same_record(name, cut, seed):
    family, x = EXAMPLES[name]
    order = np.random.default_rng(seed).permutation(len(x))
    a, b = x[order[:cut]], x[order[cut:]]
    same(family.observe(a) + family.observe(b), family.observe(x))
    same(family.observe(b) + family.observe(a), family.observe(x))


@given(cut=st.integers(0, 40))
@pytest.mark.parametrize("name", EXAMPLES)
def test_forgetting_rows_equals_never_having_seen_them(name, cut):
    family, x = EXAMPLES[name]
    exactly = name != "Multinomial"
    same(family.observe(x) - family.observe(x[cut:]), family.observe(x[:cut]), exactly=exactly)


@pytest.mark.parametrize("name", EXAMPLES)
def test_weight_k_equals_k_copies(name):
    family, x = EXAMPLES[name]
    weight = RNG.integers(0, 4, len(x))
    same(family.observe(x, weight=weight.astype(float)), family.observe(np.repeat(x, weight, axis=0)))
    same(0.5 * family.observe(np.concatenate([x, x])), family.observe(x))


def test_merging_is_associative(example):
    family, x = example
    a, b, c = (family.observe(part) for part in (x[:9], x[9:23], x[23:]))
    same((a + b) + c, a + (b + c))


def test_only_what_was_learned_can_be_forgotten(example):
    family, x = example
    with pytest.raises(NotLearnedError, match="only what was learned can be forgotten"):
        family.observe(x[:3]) - family.observe(x)


def test_a_failure_that_was_not_seen_cannot_be_forgotten():
    with pytest.raises(NotLearnedError):
        Bernoulli().observe([1.0, 1.0]) - Bernoulli().observe([0.0])


def test_classes_are_counted_apart(example):
    family, x = example
    group = RNG.integers(0, 3, len(x)).astype(np.int32)
    together = family.observe(x, group, 3)
    assert np.allclose(together.n, np.bincount(group, minlength=3))
    apart = [family.observe(x[group == c]) for c in range(3)]
    assert np.allclose(np.asarray(together.n), [record.n for record in apart])
    same(together.pool_classes(), _as_one_class(family, x))


def _as_one_class(family, x):
    return family.observe(x, np.zeros(len(x), dtype=np.int32), 1)


@pytest.mark.parametrize("visitor", [1e8, 1.7e9, 1e100, 1e300, -1.7e308, 5e-324])
@pytest.mark.parametrize("family", [Gaussian(), Gamma(), Poisson()], ids=lambda family: type(family).__name__)
def test_a_row_that_came_and_went_leaves_no_trace(family, visitor):
    """However large it was: one row of 1e8 must not ruin what was learned of values near 1."""
    x = np.round(RNG.gamma(2.0, 1.0, 200), 0 if isinstance(family, Poisson) else 12)
    before = family.observe(x)
    same(before + family.observe([visitor]) - family.observe([visitor]), before, exactly=True)


def test_what_was_never_learned_cannot_be_forgotten_even_where_the_counts_agree():
    with pytest.raises(NotLearnedError, match="others were learned"):
        Gaussian().observe([1.0]) - Gaussian().observe([2.0])
    with pytest.raises(NotLearnedError, match="more spread"):
        Gaussian().observe([1.0, 1.0, 1.0]) - Gaussian().observe([3.0])


def test_classes_far_apart_keep_their_own_precision():
    x = np.concatenate([RNG.normal(0, 1, 500), RNG.normal(1e9, 1, 500)])
    group = np.repeat([0, 1], 500).astype(np.int32)
    variance = Gaussian().ml(Gaussian().observe(x, group, 2)).variance
    assert variance == pytest.approx([np.var(x[:500]), np.var(x[500:] - 1e9)], rel=1e-6)


# -- the calculus ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FIXED)
def test_the_evidence_is_the_product_of_the_predictions(name):
    family, x = EXAMPLES[name]
    x = x[:12]
    steps = [(family + family.observe(x[:i])).log_predictive(x[i : i + 1])[0] for i in range(len(x))]
    tolerance = 1e-3 if name == "Gamma" else 1e-10  # an unknown shape is integrated out by quadrature
    assert family.log_evidence(family.observe(x)) == pytest.approx(math.fsum(steps), abs=tolerance)


@pytest.mark.parametrize("name", FIXED)
def test_learning_twice_is_learning_once(name):
    family, x = EXAMPLES[name]
    once = family + family.observe(x)
    twice = family + family.observe(x[:15]) + family.observe(x[15:])
    assert np.allclose(once.log_predictive(x), twice.log_predictive(x), rtol=1e-8)


@pytest.mark.parametrize("name", FIXED)
def test_the_prediction_is_the_likelihood_averaged_over_the_belief(name):
    family, x = EXAMPLES[name]
    belief = family + family.observe(x)
    draws = belief.draw(np.random.default_rng(3), 40_000)
    point = x[:1]
    if name == "Categorical":
        likelihood = draws.probabilities[:, draws.values == point[0]]
    elif name == "Multinomial":
        likelihood = np.exp(belief.log_density(point, draws))
    else:
        likelihood = np.exp(belief.log_density(point[0], draws))
    assert np.mean(likelihood) == pytest.approx(float(np.exp(belief.log_predictive(point)[0])), rel=0.02)


@pytest.mark.parametrize("name", EXAMPLES)
def test_maximum_likelihood_beats_its_neighbours(name):
    family, x = EXAMPLES[name]
    seen = family.observe(x)
    best = family.ml(seen)
    top = _likelihood(family, x, best)
    for nudge in (0.97, 1.03):
        assert _likelihood(family, x, _nudged(family, best, nudge)) <= top + 1e-9


@pytest.mark.parametrize("name", EXAMPLES)
def test_samples_lead_back_to_their_parameters(name):
    family, x = EXAMPLES[name]
    parameters = family.ml(family.observe(x))
    rng = np.random.default_rng(8)
    drawn = family.sample(parameters, rng, 60_000)
    assert len(drawn) == 60_000
    if name == "Histogram":
        inside = (family + family.observe(x)).edges
        assert drawn.min() >= inside[0]
        assert drawn.max() <= inside[-1]
        assert np.mean(drawn) == pytest.approx(np.mean(x), abs=0.1)
        return
    again = family.ml(family.observe(drawn))
    for before, after in zip(_numbers(parameters), _numbers(again), strict=True):
        assert np.allclose(before, after, rtol=0.05, atol=0.02)


@pytest.mark.parametrize("name", ["Bernoulli", "Poisson", "Gaussian", "Gamma, known shape", "Binomial"])
def test_map_is_the_peak_and_mean_the_average_of_the_belief(name):
    family, x = EXAMPLES[name]
    seen = family.observe(x)
    belief = family + seen
    draws = _numbers(belief.draw(np.random.default_rng(4), 200_000))
    for average, drawn in zip(_numbers(belief.mean()), draws, strict=True):
        assert np.mean(drawn) == pytest.approx(float(np.ravel(average)[0]), rel=0.01)
    if name == "Gaussian":
        density = lambda p: _nig(belief, *p)  # noqa: E731  (two parameters, one belief)
        peak = (float(belief.mode().mean), float(belief.mode().variance))
        assert all(
            density((peak[0] * a, peak[1] * b)) <= density(peak) + 1e-12 for a in (0.99, 1.01) for b in (0.99, 1.01)
        )


def _nig(belief, mean, variance):
    return stats.invgamma.logpdf(variance, belief.shape, scale=belief.scale) + stats.norm.logpdf(
        mean, belief.location, math.sqrt(variance / belief.strength)
    )


def _numbers(parameters):
    values = parameters if isinstance(parameters, tuple) else (parameters,)
    return [np.asarray(v, dtype=float) for v in values if np.asarray(v).dtype.kind == "f"]


def _likelihood(family, x, parameters):
    return float(np.sum(family.log_density(x, parameters)))


def _nudged(family, parameters, nudge):
    """A little off: probabilities tilt and stay normalised, everything else is scaled."""
    if isinstance(family, (Categorical, Histogram)):
        return parameters._replace(probabilities=_tilted(parameters.probabilities, nudge))
    if isinstance(family, Multinomial):
        return _tilted(parameters, nudge)
    if isinstance(parameters, tuple):
        return type(parameters)(parameters[0], parameters[1] * nudge)
    return parameters * nudge


def _tilted(p, nudge):
    tilt = p.copy()
    tilt[0] *= nudge
    return tilt / tilt.sum()


# -- against SciPy -----------------------------------------------------------------------------------------------


def test_densities_are_those_of_scipy():
    x = np.array([0.0, 1.0, 3.0])
    assert np.allclose(Bernoulli().log_density(x[:2], np.array(0.3)), stats.bernoulli.logpmf(x[:2], 0.3))
    assert np.allclose(Binomial(5).log_density(x, np.array(0.3)), stats.binom.logpmf(x, 5, 0.3))
    assert np.allclose(Poisson().log_density(x, np.array(2.5)), stats.poisson.logpmf(x, 2.5))
    assert np.allclose(Gaussian().log_density(x, (1.0, 4.0)), stats.norm.logpdf(x, 1.0, 2.0))
    assert np.allclose(Gamma().log_density(x[1:], (2.0, 3.0)), stats.gamma.logpdf(x[1:], 2.0, scale=1 / 3))
    rows, p = np.array([[1.0, 2.0, 0.0]]), np.array([0.2, 0.5, 0.3])
    assert np.allclose(Multinomial().log_density(rows, p), stats.multinomial.logpmf(rows, 3, p))


def test_predictions_are_those_of_scipy():
    k = np.arange(6.0)
    assert np.allclose(Binomial(5, 2.0, 3.0).log_predictive(k), stats.betabinom.logpmf(k, 5, 2, 3))
    assert np.allclose(Poisson(2.0, 3.0).log_predictive(k), stats.nbinom.logpmf(k, 2, 3 / 4))
    student = stats.t.logpdf(k, 5, loc=1.0, scale=math.sqrt(2.0 * 1.5 / (2.5 * 0.5)))
    assert np.allclose(Gaussian(1.0, 0.5, 2.5, 2.0).log_predictive(k), student)
    x = np.linspace(0.1, 5, 7)
    assert np.allclose(Gamma(1.0, 3.0, 2.0).log_predictive(x), stats.lomax.logpdf(x, 3.0, scale=2.0))
    dirichlet = stats.dirichlet_multinomial([0.5, 1.0, 2.0], 3)
    assert np.allclose(
        Multinomial(np.array([0.5, 1.0, 2.0])).log_predictive([[1.0, 2.0, 0.0]]), dirichlet.logpmf([1, 2, 0])
    )


@pytest.mark.parametrize("name", ["Gaussian", "Gamma", "Gamma, known shape", "Histogram"])
def test_continuous_predictions_integrate_to_one(name):
    family, x = EXAMPLES[name]
    belief = family + family.observe(x)
    if name == "Histogram":
        total = float(
            np.sum(np.exp(belief.log_predictive((belief.edges[1:] + belief.edges[:-1]) / 2)) * np.diff(belief.edges))
        )
    else:
        low = -np.inf if name == "Gaussian" else 0
        total = integrate.quad(lambda v: float(np.exp(belief.log_predictive(np.array([v])))[0]), low, np.inf)[0]
    assert total == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("name", ["Bernoulli", "Binomial", "Poisson"])
def test_discrete_predictions_add_up_to_one(name):
    family, x = EXAMPLES[name]
    assert np.exp((family + family.observe(x)).log_predictive(np.arange(400.0))).sum() == pytest.approx(1.0, abs=1e-9)


def test_evidence_by_quadrature():
    x = np.array([2.0, 0.0, 3.0])
    family = Poisson(2.0, 1.5)
    prior = stats.gamma(2.0, scale=1 / 1.5)
    integral = integrate.quad(lambda t: math.exp(stats.poisson.logpmf(x, t).sum()) * prior.pdf(t), 0, np.inf)[0]
    assert float(family.log_evidence(family.observe(x))) == pytest.approx(math.log(integral), abs=1e-9)


# -- what a family cannot hold -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "other", "bad"),
    [
        (Bernoulli(), 0.0, 2.0),
        (Binomial(3), 2.0, 4.0),
        (Poisson(), 2.0, 1.5),
        (Poisson(), 2.0, -1.0),
        (Gamma(), 2.0, 0.0),
    ],
)
def test_a_value_outside_is_counted_and_impossible(family, other, bad):
    seen = family.observe([[1.0], [other], [bad]], np.zeros(3, dtype=np.int32), 1)
    assert seen.outside.tolist() == [[1.0]]
    assert family.evidence(seen).tolist() == [-np.inf]
    assert family.log_predictive(np.array([bad])).tolist() == [-np.inf]
    again = seen - family.observe([[bad]], np.zeros(1, dtype=np.int32), 1)
    assert np.isfinite(family.evidence(again)).all()


@pytest.mark.parametrize("family", [Gaussian(), Histogram()], ids=["Gaussian", "Histogram"])
def test_infinity_is_refused(family):
    with pytest.raises(DataError, match="infinite"):
        family.observe(np.array([1.0, np.inf]))


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e300])
def test_beliefs_hold_at_any_scale(scale):
    x = RNG.normal(3.0, 1.0, (200, 2)) * np.array([scale, 1.0])
    group = RNG.integers(0, 2, 200).astype(np.int32)
    seen = Gaussian().observe(x, group, 2)
    family = Gaussian.empirical_prior(seen)
    plain = Gaussian().observe(x / np.array([scale, 1.0]), group, 2)
    expected = Gaussian.empirical_prior(plain).score(plain, x / np.array([scale, 1.0]), "predictive")
    assert np.allclose(np.diff(family.score(seen, x, "predictive")), np.diff(expected), rtol=1e-6, atol=1e-9)


def test_the_histogram_finds_an_atom_and_a_shape_no_parametric_family_has():
    x = np.concatenate([np.zeros(300), RNG.normal(5, 0.5, 300), RNG.normal(50, 5, 300)])
    belief = Histogram() + Histogram().observe(x)
    density = np.exp(belief.log_predictive(np.array([0.0, 2.5, 5.0, 25.0, 50.0])))
    assert density[0] > density[1] < density[2] > density[3] < density[4]
    assert Histogram().log_evidence(Histogram().observe(x)) > Gaussian().log_evidence(Gaussian().observe(x)) + 300
