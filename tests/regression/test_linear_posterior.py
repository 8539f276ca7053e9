"""The record of linear regression and the belief it adds to: laws, quadrature, and SciPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from priory.errors import DataError, NotLearnedError
from priory.regression.cross_products import Term, accumulate_products, build_design_matrix, centre_products
from priory.regression.design_matrix import choose_linear_strength, term_scales
from priory.regression.linear_posterior import NormalInverseGamma, StudentT

LAWS = settings(max_examples=60, deadline=None)


def rows(seed, n, d, mean=0.0, gaps=False):
    rng = np.random.default_rng(seed)
    x = mean + rng.normal(size=(n, d))
    y = mean + (x - mean) @ np.arange(1.0, d + 1) + rng.normal(size=n)
    if gaps:
        x[rng.random((n, d)) < 0.2] = np.nan
    return x, y


def same(a, b):
    """Two records are equal to the last bit."""
    assert a.terms == b.terms
    assert a.products.base == b.products.base
    np.testing.assert_array_equal(a.products.limbs, b.products.limbs)


PROBLEMS = given(
    seed=st.integers(0, 10_000),
    n=st.integers(3, 40),
    d=st.integers(1, 5),
    mean=st.sampled_from([0.0, -3.0, 1e4, 1e8]),
    gaps=st.booleans(),
    cut=st.floats(0.1, 0.9),
)


@LAWS
@PROBLEMS
def test_the_parts_add_up_to_the_whole_in_any_order(seed, n, d, mean, gaps, cut):
    x, y = rows(seed, n, d, mean, gaps)
    k = int(cut * n)
    head, tail = accumulate_products(x[:k], y[:k]), accumulate_products(x[k:], y[k:])
    same(head + tail, accumulate_products(x, y))
    same(tail + head, accumulate_products(x, y))


@LAWS
@PROBLEMS
def test_forgetting_rows_equals_never_having_seen_them(seed, n, d, mean, gaps, cut):
    x, y = rows(seed, n, d, mean, gaps)
    k = 1 + int(cut * (n - 1))
    same(accumulate_products(x, y) - accumulate_products(x[k:], y[k:]), accumulate_products(x[:k], y[:k]))


@LAWS
@PROBLEMS
def test_a_weight_is_a_repetition_and_a_scalar_scales(seed, n, d, mean, gaps, cut):
    x, y = rows(seed, n, d, mean, gaps)
    times = np.random.default_rng(seed).integers(0, 4, size=n)
    times[0] = 2
    same(accumulate_products(x, y, times), accumulate_products(np.repeat(x, times, axis=0), np.repeat(y, times)))
    same(2 * accumulate_products(x, y), accumulate_products(x, y) + accumulate_products(x, y))


@LAWS
@PROBLEMS
def test_products_about_a_point_are_those_of_the_moved_rows(seed, n, d, mean, gaps, cut):
    x, y = rows(seed, n, d, mean, gaps)
    x, y = np.round(x, 1), np.round(y, 1)
    centre = np.round(np.r_[cut + mean, np.full(d, mean - cut)], 1)
    seen = accumulate_products(x, y)
    centre = np.pad(centre, (0, len(seen.terms) - d))
    about = centre_products(seen, centre, np.ones(1 + len(seen.terms)))
    z = np.column_stack([y - centre[0], build_design_matrix(x, seen.terms[:d], seen.terms, centre[1:])])
    np.testing.assert_allclose(about.first, z.sum(axis=0), rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(about.second, z.T @ z, rtol=1e-9, atol=1e-5)


def test_mean_1e8_keeps_its_digits_when_a_tenth_is_forgotten():
    x, y = rows(0, 1000, 3)
    far = accumulate_products(x + 1e8, y + 1e8) - accumulate_products(x[:100] + 1e8, y[:100] + 1e8)
    near = accumulate_products((x[100:] + 1e8) - 1e8, (y[100:] + 1e8) - 1e8)
    beliefs = [NormalInverseGamma.ridge(np.zeros(3), r.centre()) + r for r in (far, near)]
    np.testing.assert_allclose(beliefs[0].mean[1:], beliefs[1].mean[1:], rtol=1e-13)
    assert beliefs[0].scale == pytest.approx(beliefs[1].scale, rel=1e-13)


@pytest.mark.parametrize("size", [1e9, 1e100, 1e300, -1.7e308, 5e-324])
def test_one_row_of_any_size_learned_and_forgotten_leaves_nothing(size):
    x, y = rows(1, 500, 2)
    seen, row = accumulate_products(x, y), accumulate_products([[size, -size]], [size])
    same(seen + row - row, seen)
    same(row + seen - row, seen)


def test_a_row_of_weight_zero_is_not_there():
    x, y = rows(1, 50, 2)
    x[0], y[0] = 1e9, -1e9
    same(accumulate_products(x, y, np.r_[0.0, np.ones(49)]), accumulate_products(x[1:], y[1:]))


def test_levels_and_flags_leave_with_their_last_row():
    terms = [Term("a"), Term("k", "level", "x"), Term("k", "level", "y")]
    head = accumulate_products([[1.0, 1, 0], [2.0, 1, 0]], [1.0, 2.0], terms=terms)
    tail = accumulate_products([[np.nan, 0, 1]], [1.0], terms=terms)
    assert [t.level for t in (head + tail).terms if t.kind == "level"] == ["x", "y"]
    same(head + tail - tail, head)
    same(tail + head - head, tail)
    same(tail + head, head + tail)
    assert [tuple(t) for t in head.terms] == [("a", "value", None), ("k", "level", "x")]


def test_what_was_not_seen_cannot_be_forgotten():
    x, y = rows(2, 20, 2)
    seen = accumulate_products(x, y)
    with pytest.raises(NotLearnedError, match=r"^cannot forget 21 of 20: only what was learned can be forgotten\.$"):
        seen - accumulate_products(*rows(2, 21, 2))
    with pytest.raises(
        NotLearnedError, match=r"^cannot forget these rows: they have more spread in column 1 than was learned\.$"
    ):
        seen - accumulate_products(x[:5] * [1.0, 100.0], y[:5])
    with pytest.raises(
        NotLearnedError, match=r"^cannot forget these rows: they have more spread in the target than was learned\.$"
    ):
        seen - accumulate_products(x[:5], 100 * y[:5])


def test_rows_that_leave_sums_without_rows_were_not_learned():
    seen = accumulate_products([[1.0], [3.0]], [1.0, 2.0])
    with pytest.raises(NotLearnedError, match=r"more spread in column 0 than was learned\.$"):
        seen - accumulate_products([[2.0], [2.0]], [1.0, 2.0])


def test_when_all_is_forgotten_nothing_is_left():
    seen = accumulate_products(*rows(3, 20, 2, 1e8))
    left = seen - seen
    assert left.n == 0
    assert left.products.limbs.size == 0


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e200, 1e308])
def test_columns_without_a_square_are_learned_as_any_others(size):
    x, y = rows(12, 30, 2)
    plain = NormalInverseGamma.ridge(np.zeros(2), np.zeros(3)) + accumulate_products(x, y)
    x = np.column_stack([x[:, 0] / 16 * size, x[:, 1]])
    belief = NormalInverseGamma.ridge(np.zeros(2), np.zeros(3)) + accumulate_products(x, y)
    assert belief.units[1] != 1
    assert belief.units[2] == 1
    assert belief.scale == pytest.approx(plain.scale, rel=1e-9 if size != 1e-320 else 1e-2)
    assert np.isfinite(belief.predictive(np.zeros((1, 2))).scale).all()


@pytest.mark.parametrize("gaps", [False, True])
def test_many_rows_on_many_threads_make_the_record_of_their_parts(gaps):
    x, y = rows(11, 70_000, 2, gaps=gaps)
    same(accumulate_products(x, y), accumulate_products(x[:1234], y[:1234]) + accumulate_products(x[1234:], y[1234:]))


def test_records_of_different_columns_do_not_add():
    a = accumulate_products([[1.0]], [1.0], terms=[Term("a")])
    b = accumulate_products([[1.0]], [1.0], terms=[Term("b")])
    with pytest.raises(DataError, match=r"^cannot combine numbers in 'a' with numbers in 'b'\.$"):
        a + b


# -- the belief --------------------------------------------------------------------------------------------------------


def slope_problem():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(6, 1)), rng.normal(size=6)
    prior = NormalInverseGamma(np.array([0.4]), np.array([[1.7]]), 2.3, 1.1, np.zeros(2), level=False)
    return x, y, prior


def quadrature(x, y, prior):
    """Brute force: the joint density on a grid of w and log σ²; the trapezium rule is exact on such tails."""
    log_s = np.linspace(-14, 14, 1201)[:, None]
    s2 = np.exp(log_s)
    sd = np.sqrt(s2 / (prior.precision[0, 0] + x[:, 0] @ x[:, 0]))
    middle = (prior.precision[0, 0] * prior.mean[0] + x[:, 0] @ y) / (prior.precision[0, 0] + x[:, 0] @ x[:, 0])
    w = middle + sd * np.linspace(-14, 14, 801)
    joint = (
        stats.norm.logpdf(y, w[..., None] * x[:, 0], np.sqrt(s2)[..., None]).sum(axis=-1)
        + stats.norm.logpdf(w, prior.mean[0], np.sqrt(s2 / prior.precision[0, 0]))
        + stats.invgamma.logpdf(s2, prior.shape, scale=prior.scale)
        + log_s
    )
    return w, s2, np.exp(joint) * sd * (28 / 800) * (28 / 1200)


@pytest.mark.slow
def test_posterior_predictive_and_evidence_equal_brute_force_quadrature():
    x, y, prior = slope_problem()
    seen = accumulate_products(x, y)
    belief = prior + seen
    w, s2, mass = quadrature(x, y, prior)
    evidence = mass.sum()
    assert prior.log_evidence(seen) == pytest.approx(np.log(evidence), abs=1e-10)
    posterior = mass / evidence
    mean = (posterior * w).sum()
    assert belief.mean[0] == pytest.approx(mean, abs=1e-10)
    noise = (posterior * s2).sum()
    assert belief.scale / (belief.shape - 1) == pytest.approx(noise, rel=1e-10)
    assert belief.covariance()[0, 0] * noise == pytest.approx((posterior * (w - mean) ** 2).sum(), rel=1e-10)
    for new, target in [(0.3, 0.1), (-2.0, 1.5)]:
        density = (posterior * stats.norm.pdf(target, w * new, np.sqrt(s2))).sum()
        assert belief.predictive(np.array([[new]])).log_density(target)[0] == pytest.approx(np.log(density), abs=1e-10)


def test_evidence_is_a_multivariate_t_density():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(7, 2)), rng.normal(size=7)
    prior = NormalInverseGamma.isotropic(2, strength=0.7, shape=1.5, scale=2.5)
    u = np.column_stack([np.ones(7), x])
    t = stats.multivariate_t(np.zeros(7), 2.5 / 1.5 * (np.eye(7) + u @ u.T / 0.7), df=3.0)
    assert prior.log_evidence(accumulate_products(x, y)) == pytest.approx(t.logpdf(y), abs=1e-10)


def test_learning_in_two_steps_is_learning_in_one():
    (x, y), prior = rows(6, 30, 3), NormalInverseGamma.isotropic(3)
    once, twice = (
        prior + accumulate_products(x, y),
        prior + accumulate_products(x[:11], y[:11]) + accumulate_products(x[11:], y[11:]),
    )
    np.testing.assert_allclose(once.mean, twice.mean, rtol=1e-10)
    assert once.scale == pytest.approx(twice.scale, rel=1e-10)
    chain = prior.log_evidence(accumulate_products(x[:11], y[:11])) + (
        prior + accumulate_products(x[:11], y[:11])
    ).log_evidence(accumulate_products(x[11:], y[11:]))
    assert prior.log_evidence(accumulate_products(x, y)) == pytest.approx(chain, abs=1e-9)


def test_a_flat_prior_gives_the_intervals_of_least_squares():
    x, y = rows(7, 12, 1)
    seen = accumulate_products(x, y)
    belief = NormalInverseGamma.ridge(np.zeros(1), seen.centre()) + seen
    line = stats.linregress(x[:, 0], y)
    assert belief.mean[1] == pytest.approx(line.slope, abs=1e-12)
    assert 2 * belief.shape == 10
    stderr = np.sqrt(belief.scale / belief.shape * belief.covariance()[1, 1])
    assert stderr == pytest.approx(line.stderr, rel=1e-10)


def test_student_is_scipys():
    student, t = StudentT(np.array([1.0]), np.array([2.0]), 4.5), stats.t(4.5, loc=1.0, scale=2.0)
    assert student.std()[0] == pytest.approx(t.std())
    assert student.log_density(2.3)[0] == pytest.approx(t.logpdf(2.3), abs=1e-12)
    np.testing.assert_allclose(np.ravel(student.interval(0.8)), t.interval(0.8), rtol=1e-10)
    with pytest.raises(DataError, match=r"^level is 90; give a probability between 0 and 1\.$"):
        student.interval(90)


def test_too_few_rows_bound_nothing():
    seen = accumulate_products([[1.0]], [2.0])
    student = (NormalInverseGamma.ridge(np.ones(1), seen.centre()) + seen).predictive(np.zeros((1, 1)))
    assert student.location[0] == 2.0
    assert student.std()[0] == np.inf
    assert [float(b[0]) for b in student.interval()] == [-np.inf, np.inf]
    assert student.log_density(2.0)[0] == -np.inf


@LAWS
@PROBLEMS
def test_leave_one_out_is_total_minus_row(seed, n, d, mean, gaps, cut):
    x, y = rows(seed, n, d, mean)
    weight = np.random.default_rng(seed).uniform(0.5, 2.0, size=n)
    seen = accumulate_products(x, y, weight)
    prior = NormalInverseGamma.ridge(np.full(d, 0.5), seen.centre())
    inputs, centre = seen.terms, seen.centre()[1:]
    closed = (prior + seen).predict_leave_one_out(build_design_matrix(x, inputs, seen.terms, centre), y, weight)
    for i in range(0, n, 7):
        row = slice(i, i + 1)
        plain = (prior + (seen - accumulate_products(x[row], y[row], weight[row]))).predictive(x[row] - centre)
        assert closed.location[i] == pytest.approx(plain.location[0], rel=1e-9, abs=1e-7)
        assert closed.scale[i] == pytest.approx(plain.scale[0], rel=1e-6)


def test_the_evidence_is_largest_where_the_search_says():
    x, y = rows(8, 40, 6)
    seen = accumulate_products(x, 0.1 * y)
    unit = term_scales(seen)
    best = choose_linear_strength(seen, unit)

    def evidence(strength):
        return NormalInverseGamma.ridge(strength * unit**2, seen.centre()).log_evidence(seen)

    grid = 10.0 ** np.linspace(-9, 9, 400)
    assert evidence(best) >= max(evidence(s) for s in grid) - 1e-9


def test_draws_have_the_moments_of_the_belief():
    belief = NormalInverseGamma.isotropic(1, shape=4.0, scale=3.0) + accumulate_products(*rows(9, 10, 1))
    weights, noise = belief.draw(np.random.default_rng(0), 100_000)
    np.testing.assert_allclose(weights.mean(axis=0), belief.mean, atol=0.02)
    variance = belief.scale / (belief.shape - 1)
    assert noise.mean() == pytest.approx(variance, rel=0.02)
    np.testing.assert_allclose(np.cov(weights.T), variance * belief.covariance(), rtol=0.05, atol=0.01)


def test_a_flat_belief_cannot_be_drawn_from():
    with pytest.raises(DataError) as error:
        NormalInverseGamma.ridge(np.ones(1), np.zeros(2)).draw(np.random.default_rng(0), 1)
    assert str(error.value) == (
        "cannot draw from a flat prior: use a proper one, NormalInverseGamma.isotropic(columns)."
    )


def test_collinear_columns_need_a_prior():
    x, y = rows(10, 20, 1)
    twice = np.column_stack([x, 2 * x])
    seen = accumulate_products(twice, y)
    with pytest.raises(DataError) as error:
        NormalInverseGamma.ridge(np.zeros(2), seen.centre()) + seen
    assert str(error.value) == (
        "the rows do not determine all weights: with prior=0 the columns must be linearly independent."
    )


def test_a_prior_for_other_columns_is_refused():
    with pytest.raises(DataError, match=r"^the prior is for 2 columns, but the rows have 1 terms\.$"):
        NormalInverseGamma.isotropic(2) + accumulate_products([[1.0]], [1.0])


@pytest.mark.parametrize("value", [0.1, 1e8 + 0.1, 1e-300, 1.7e308])
def test_a_column_with_one_value_has_no_spread(value):
    x = np.column_stack([np.full(7, value), [*[value] * 3, *[np.nan] * 4], np.arange(7.0)])
    seen = accumulate_products(x, np.arange(7.0), np.linspace(0.1, 0.7, 7))
    assert term_scales(seen)[:2].tolist() == [1.0, 1.0]
    assert seen.centre()[1:3].tolist() == [value, value]
