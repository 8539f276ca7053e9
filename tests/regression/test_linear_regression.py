"""BayesianLinearRegression: scikit-learn's checks, parity, exact forgetting, interval coverage, tables, bad input."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import load_diabetes
from sklearn.linear_model import BayesianRidge, LinearRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from priory.errors import DataError, KindError, NotLearnedError
from priory.regression.linear_posterior import NormalInverseGamma
from priory.regression.linear_regression import BayesianLinearRegression

LAWS = settings(max_examples=30, deadline=None)


@parametrize_with_checks([BayesianLinearRegression(), BayesianLinearRegression(prior=1.0, fit_intercept=False)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def problem(seed=0, n=60, d=4, mean=0.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) * (1 + np.arange(d))
    return x + mean, x @ rng.normal(size=d) + rng.normal(size=n) + mean


def agree(a, b, x, tol=1e-10):
    """Two models make the same predictions of the same width, and find the rows equally probable."""
    for one, other in zip(a.predict(x, return_std=True), b.predict(x, return_std=True), strict=True):
        np.testing.assert_allclose(one, other, rtol=tol, atol=tol)
    assert a.log_evidence_ == pytest.approx(b.log_evidence_, rel=1e-8, abs=1e-6)


# -- parity -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_weights_and_their_covariance_are_bayesian_ridges_at_its_own_strength(fit_intercept):
    x, y = problem()
    ridge = BayesianRidge(fit_intercept=fit_intercept).fit(x, y)
    ours = BayesianLinearRegression(
        prior=ridge.lambda_ / ridge.alpha_, standardise=False, fit_intercept=fit_intercept
    ).fit(x, y)
    np.testing.assert_allclose(ours.coef_, ridge.coef_, rtol=1e-10)
    assert ours.intercept_ == pytest.approx(ridge.intercept_, abs=1e-10)
    first = int(fit_intercept)
    np.testing.assert_allclose(ours.posterior_.covariance()[first:, first:] / ridge.alpha_, ridge.sigma_, rtol=1e-8)


def test_the_strength_that_evidence_finds_is_near_bayesian_ridges():
    x, y = problem(n=500, d=10)
    ridge = BayesianRidge(lambda_1=0, lambda_2=0, alpha_1=0, alpha_2=0, tol=1e-8, max_iter=1000).fit(x, y)
    ours = BayesianLinearRegression(standardise=False).fit(x, y)
    assert ours.prior_.precision[1, 1] == pytest.approx(ridge.lambda_ / ridge.alpha_, rel=0.02)
    np.testing.assert_allclose(ours.coef_, ridge.coef_, rtol=1e-3)


def test_a_strength_is_ridge_and_zero_is_least_squares():
    x, y = problem()
    np.testing.assert_allclose(
        BayesianLinearRegression(prior=3.0, standardise=False).fit(x, y).coef_, Ridge(3.0).fit(x, y).coef_, rtol=1e-10
    )
    np.testing.assert_allclose(
        BayesianLinearRegression(prior=0).fit(x, y).coef_, LinearRegression().fit(x, y).coef_, rtol=1e-10
    )


def test_units_of_the_columns_do_not_matter():
    x, y = problem()
    scale = np.array([1e-6, 1.0, 1e3, 1e6])
    a, b = BayesianLinearRegression().fit(x, y), BayesianLinearRegression().fit(x * scale, y)
    np.testing.assert_allclose(a.predict(x), b.predict(x * scale), rtol=1e-8)


# -- the algebra ------------------------------------------------------------------------------------------------------


@LAWS
@given(seed=st.integers(0, 1000), cut=st.integers(2, 58), mean=st.sampled_from([0.0, 1e8]))
def test_learning_in_parts_merging_and_forgetting_are_exact(seed, cut, mean):
    x, y = problem(seed, mean=mean)
    tol = 1e-10 if mean == 0 else 1e-7  # with mean 1e8 the input itself holds 8 digits of the deviations
    whole = BayesianLinearRegression().fit(x, y)
    head, tail = (BayesianLinearRegression().fit(x[s], y[s]) for s in (slice(cut), slice(cut, None)))
    agree(head + tail, whole, x, tol)
    agree(BayesianLinearRegression().partial_fit(x[:cut], y[:cut]).partial_fit(x[cut:], y[cut:]), whole, x, tol)
    if cut >= 10:
        agree(BayesianLinearRegression().fit(x, y).forget(x[cut:], y[cut:]), head, x, tol)


def test_forgetting_is_exact_to_ten_digits_on_real_data():
    x, y = load_diabetes(return_X_y=True, scaled=False)
    model = BayesianLinearRegression().fit(x, y).forget(x[:100], y[:100])
    again = BayesianLinearRegression().fit(x[100:], y[100:])
    np.testing.assert_allclose(model.coef_, again.coef_, rtol=1e-10)
    for one, other in zip(model.predict(x, return_std=True), again.predict(x, return_std=True), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_weights_repeat_rows_and_can_be_forgotten():
    x, y = problem()
    w = np.random.default_rng(1).integers(0, 3, size=len(y))
    repeated = BayesianLinearRegression().fit(np.repeat(x, w, axis=0), np.repeat(y, w))
    agree(BayesianLinearRegression().fit(x, y, w), repeated, x)
    agree(BayesianLinearRegression().fit(x, y, w + 1.0).forget(x, y), repeated, x)


@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_equals_refitting_without_each_row(weighted):
    x, y = problem(n=25)
    w = np.random.default_rng(2).uniform(0.5, 2, size=25) if weighted else np.ones(25)
    model = BayesianLinearRegression(prior=0.7, standardise=False).fit(x, y, w)
    closed = model.leave_one_out(x, y, w)
    for i in range(25):
        rest = np.arange(25) != i
        one = BayesianLinearRegression(prior=0.7, standardise=False).fit(x[rest], y[rest], w[rest]).predictive(x[[i]])
        assert closed.location[i] == pytest.approx(one.location[0], abs=1e-10)
        assert closed.scale[i] == pytest.approx(one.scale[0], rel=1e-10)
        assert closed.degrees_of_freedom[i] == pytest.approx(one.degrees_of_freedom)


def test_leave_one_out_with_the_prior_kept_is_close_to_a_complete_refit():
    x, y = load_diabetes(return_X_y=True, scaled=False)
    closed = BayesianLinearRegression().fit(x, y).leave_one_out(x, y).log_density(y)
    complete = [
        BayesianLinearRegression().fit(x, y).forget(x[[i]], y[[i]]).predictive(x[[i]]).log_density(y[i])[0]
        for i in range(60)
    ]
    assert np.abs(closed[:60] - complete).max() < 0.05
    assert np.abs(closed[:60] - complete).mean() < 0.001


# -- hard data --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_coverage_of_ninety_per_cent_intervals_over_2000_problems():
    rng = np.random.default_rng(3)
    inside = []
    for _ in range(2000):
        d = int(rng.integers(1, 6))
        n = int(rng.integers(d + 5, 60))
        w, noise = rng.normal(size=d) * rng.choice([0.1, 1.0, 10.0]), rng.uniform(0.1, 3.0)
        x = rng.normal(size=(n + 20, d))
        y = 5 + x @ w + noise * rng.normal(size=n + 20)
        low, high = BayesianLinearRegression().fit(x[:n], y[:n]).predict_interval(x[n:])
        inside.append(((low <= y[n:]) & (y[n:] <= high)).mean())
    assert 0.88 <= np.mean(inside) <= 0.92


def test_collinear_columns_share_the_weight():
    x, y = problem(d=1)
    model = BayesianLinearRegression().fit(np.column_stack([x, x, x]), y)
    np.testing.assert_allclose(model.coef_, model.coef_[0], rtol=1e-6)
    np.testing.assert_allclose(
        model.predict(np.column_stack([x, x, x])), BayesianRidge().fit(x, y).predict(x), atol=0.05
    )


def test_ill_conditioned_columns_predict_like_least_squares():
    t = np.linspace(-1, 1, 200)
    x = np.vander(t, 12)[:, :-1]
    noise = 1e-3 * np.random.default_rng(4).normal(size=200)
    model = BayesianLinearRegression().fit(x, np.sin(3 * t) + noise)
    assert np.abs(model.predict(x) - np.sin(3 * t)).max() < 1e-3


def test_more_columns_than_rows():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(80, 200))
    y = x[:, :5].sum(axis=1) + 0.1 * rng.normal(size=80)
    model = BayesianLinearRegression().fit(x[:50], y[:50])
    mean, std = model.predict(x[50:], return_std=True)
    z = (y[50:] - mean) / std
    assert np.isfinite(z).all()
    assert 0.5 < z.std() < 1.5
    assert model.score(x[50:], y[50:]) > BayesianRidge().fit(x[:50], y[:50]).score(x[50:], y[50:]) - 0.05


def test_mean_1e8_gives_the_slopes_of_mean_zero():
    x, y = problem(n=300)
    far_x, far_y = x + 1e8, y + 1e8
    near = BayesianLinearRegression().fit(far_x - 1e8, far_y - 1e8)
    far = BayesianLinearRegression().fit(far_x, far_y)
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-10)
    assert far.noise_ == pytest.approx(near.noise_, rel=1e-10)


def test_a_perfect_line_and_a_constant_target():
    x = np.arange(10.0)[:, None]
    line = BayesianLinearRegression().fit(x, 3 * x[:, 0] - 1)
    np.testing.assert_allclose(line.predict([[20.0]]), [59.0], rtol=1e-8)
    flat = BayesianLinearRegression().fit(x, np.full(10, 7.0))
    mean, std = flat.predict([[20.0]], return_std=True)
    assert (mean[0], std[0]) == (7.0, 0.0)


def test_lines_drawn_from_prior_and_posterior():
    x, y = problem(d=1)
    prior = NormalInverseGamma.isotropic(1, strength=0.5, shape=3.0, scale=2.0)
    model = BayesianLinearRegression(prior=prior).fit(x, y)
    before, after = (model.sample_lines(4000, prior=p, random_state=0) for p in (True, False))
    assert before.coef.std() == pytest.approx(np.sqrt(2.0 / 2 / 0.5), rel=0.1)
    assert before.intercept.mean() == pytest.approx(0, abs=0.1)
    assert after.coef.mean() == pytest.approx(model.coef_[0], abs=0.01)
    assert after.intercept.mean() == pytest.approx(model.intercept_, abs=0.02)
    assert after.noise.mean() == pytest.approx(model.noise_, rel=0.05)
    assert after.coef.var() == pytest.approx(model.coef_covariance_[0, 0], rel=0.1)


def test_the_predictive_is_the_lines_with_their_noise_integrated_out():
    x, y = problem(d=1)
    model = BayesianLinearRegression().fit(x, y)
    lines, noise = model.sample_lines(20_000, random_state=0), np.random.default_rng(1).normal(size=20_000)
    drawn = lines.intercept + 2.5 * lines.coef[:, 0] + noise * np.sqrt(lines.noise)
    location, scale, freedom = model.predictive([[2.5]])
    assert stats.kstest(drawn, stats.t(freedom, location[0], scale[0]).cdf).pvalue > 1e-3


# -- tables -----------------------------------------------------------------------------------------------------------

CELLS = {
    "length": [1.0, 2.0, None, 4.0, 5.0, 3.5, 2.2, None, 1.5, 2.5, None, 4.2, 5.1, 3.3, 2.0, 6.0],
    "sex": ["M", "F", "F", "I", "M", None, "F", "I", "M", "F", "I", "I", "M", None, "F", "M"],
    "alive": [True, False, True, True, False, True, False, True, True, True, False, True, False, False, True, True],
}
RINGS = [3.0, 4.0, 5.0, 6.0, 8.0, 5.5, 4.2, 7.0, 2.0, 4.4, 6.1, 6.6, 7.0, 5.0, 3.9, 9.1]
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.mark.parametrize("library", FRAMES)
def test_every_kind_of_frame_gives_the_same_model(library):
    model = BayesianLinearRegression().fit(FRAMES[library](CELLS), RINGS)
    assert [tuple(t) for t in model.terms_] == [
        ("length", "value", None),
        ("sex", "level", "F"),
        ("sex", "level", "I"),
        ("sex", "level", "M"),
        ("sex", "level", None),
        ("alive", "value", None),
        ("length", "missing", None),
    ]
    reference = BayesianLinearRegression().fit(pd.DataFrame(CELLS), RINGS)
    np.testing.assert_allclose(
        model.predict(FRAMES[library](CELLS)), reference.predict(pd.DataFrame(CELLS)), rtol=1e-12
    )
    assert list(model.feature_names_in_) == ["length", "sex", "alive"]


def test_columns_are_found_by_name():
    table = pl.DataFrame(CELLS)
    model = BayesianLinearRegression().fit(table, RINGS)
    np.testing.assert_array_equal(model.predict(table), model.predict(table.select("alive", "sex", "length")))


def test_tables_learn_forget_and_merge_with_levels_of_their_own():
    table, y = pl.DataFrame(CELLS), np.array(RINGS)
    whole = BayesianLinearRegression().fit(table, y)
    head, tail = BayesianLinearRegression().fit(table[:12], y[:12]), BayesianLinearRegression().fit(table[12:], y[12:])
    agree(head + tail, whole, table)
    agree(BayesianLinearRegression().fit(table[:12], y[:12]).partial_fit(table[12:], y[12:]), whole, table)
    forgotten = BayesianLinearRegression().fit(table, y).forget(table[12:], y[12:])
    for one, other in zip(forgotten.predict(table, True), head.predict(table, True), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_a_missing_cell_stands_at_the_mean_with_a_flag():
    x, y = problem(d=2, n=200)
    x[::5, 0] = np.nan
    model = BayesianLinearRegression(prior=1e-9).fit(x, y)
    filled = np.column_stack([np.where(np.isnan(x[:, 0]), np.nanmean(x[:, 0]), x[:, 0]), x[:, 1], np.isnan(x[:, 0])])
    np.testing.assert_allclose(model.predict(x), LinearRegression().fit(filled, y).predict(filled), rtol=1e-6)


def test_what_was_never_learned_adds_doubt_and_nothing_else():
    x, y = problem(d=2)
    model = BayesianLinearRegression().fit(x, y)
    (at_mean, gap), (std, wider) = model.predict([x.mean(axis=0), [np.nan, x[:, 1].mean()]], return_std=True)
    assert gap == pytest.approx(at_mean, abs=1e-9)
    assert wider > std
    table = pl.DataFrame({"k": ["a", "b"] * 10, "v": np.arange(20.0)})
    by_level = BayesianLinearRegression().fit(table, np.arange(20.0) + np.tile([0, 5], 10))
    mean, std = by_level.predict(pl.DataFrame({"k": ["a", "b", "z", "q"], "v": [3.0] * 4}), return_std=True)
    assert mean[0] < mean[2] == mean[3] < mean[1]
    assert std[2] == std[3] > std[0]


# -- bad input --------------------------------------------------------------------------------------------------------


def refused(kind, message, call):
    with pytest.raises(kind) as error:
        call()
    assert str(error.value) == message


X, Y = problem(n=10, d=2)
NOT_LEARNED = "was not learned, or not this often; forget only rows that were learned; the model is unchanged."


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.r_[1, -1, np.ones(8)], "sample_weight of row 1 is -1; give a number from 0 to 1e+100."),
        (np.r_[1, 1, np.nan, np.ones(7)], "sample_weight of row 2 is nan; give a number from 0 to 1e+100."),
        (np.r_[1e308, np.ones(9)], "sample_weight of row 0 is 1e+308; give a number from 0 to 1e+100."),
        (np.r_[np.inf, np.ones(9)], "sample_weight of row 0 is inf; give a number from 0 to 1e+100."),
        (
            np.zeros(10),
            "every sample_weight is zero: there is nothing to learn; give some row a positive weight.",
        ),
        (np.ones(3), "sample_weight.shape == (3,), expected (10,)!"),
        (np.ones((10, 1)), "Sample weights must be 1D array or scalar: got 2 dimensions."),
    ],
)
def test_bad_weights(weight, message):
    refused(DataError, message, lambda: BayesianLinearRegression().fit(X, Y, weight))


@pytest.mark.parametrize("prior", ["auto", -1.0, np.nan, np.inf, None])
def test_bad_priors(prior):
    message = f'prior is {prior!r}; give "evidence", a strength of 0 or more, or a NormalInverseGamma.'
    refused(DataError, message, lambda: BayesianLinearRegression(prior=prior).fit(X, Y))


def test_bad_tables():
    table = pl.DataFrame(CELLS)
    model = BayesianLinearRegression().fit(table, RINGS)
    refused(
        DataError,
        "column 'sex' is missing from the table; it has ['length', 'alive'].",
        lambda: model.predict(table.drop("sex")),
    )
    refused(
        DataError,
        "this model has learned a table with named columns; give a data frame.",
        lambda: model.predict(np.ones((2, 3))),
    )
    refused(
        KindError,
        "column 'when' holds Date; give numbers or categories.",
        lambda: BayesianLinearRegression().fit(pl.DataFrame({"when": pl.Series([1, 2]).cast(pl.Date)}), [1.0, 2.0]),
    )
    refused(
        DataError,
        "row 1 of column 'length' holds an infinite number; leave it empty if it is missing.",
        lambda: BayesianLinearRegression().fit(table.with_columns(length=pl.Series([1.0, np.inf] + [2.0] * 14)), RINGS),
    )
    refused(
        DataError,
        "column 'id' holds 1,001 different values; leave it out, or give numbers.",
        lambda: BayesianLinearRegression().fit(pl.DataFrame({"id": [f"a{i}" for i in range(1001)]}), np.arange(1001.0)),
    )
    refused(
        DataError,
        "X has 16 rows and y has 15; give one target for each row.",
        lambda: BayesianLinearRegression().fit(table, RINGS[:15]),
    )
    refused(
        DataError,
        "the target of row 0 is nan; give a finite number.",
        lambda: BayesianLinearRegression().fit(table, [np.nan, *RINGS[1:]]),
    )


def test_a_level_that_was_not_learned_cannot_be_forgotten():
    table = pl.DataFrame(CELLS)
    model = BayesianLinearRegression().fit(table, RINGS)
    other = table[:2].with_columns(sex=pl.lit("X"))
    message = f"row 0: column 'sex' {NOT_LEARNED}"
    refused(NotLearnedError, message, lambda: model.forget(other, RINGS[:2]))


@pytest.mark.parametrize("row", [0, 3, 7])
def test_the_row_that_cannot_be_forgotten_is_named(row):
    model = BayesianLinearRegression().fit(X, Y)
    x, y = X[:8].copy(), Y[:8].copy()
    x[row, 1] = 50.0
    with pytest.raises(NotLearnedError) as error:
        model.forget(x, y)
    assert str(error.value) == f"row {row}: column 1 {NOT_LEARNED}"
    assert error.value.row == row
    y[row], x = 60.0, X[:8]
    refused(NotLearnedError, f"row {row}: the target {NOT_LEARNED}", lambda: model.forget(x, y))
    assert model.forget(X[:8], Y[:8]).statistics_.n == 2


def test_a_refused_forget_leaves_the_model_as_it_was():
    model = BayesianLinearRegression().fit(X, Y)
    before = model.coef_
    again = np.tile(X, (2, 1)), np.tile(Y, 2)
    refused(NotLearnedError, f"row 10: it {NOT_LEARNED}", lambda: model.forget(*again))
    np.testing.assert_array_equal(model.coef_, before)
