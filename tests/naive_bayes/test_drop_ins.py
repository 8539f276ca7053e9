"""The eight array classifiers: the laws of the records, the numbers of the book, and bad input."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from priory.core.statistics import Statistics
from priory.errors import DataError, NotLearnedError
from priory.naive_bayes import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    DocumentAverageNB,
    GaussianBayes,
    GaussianNB,
    MultinomialNB,
)

COUNTING = [BernoulliNB(), CategoricalNB(), ComplementNB(), MultinomialNB()]
ALL = [
    *COUNTING,
    DocumentAverageNB(),
    GaussianNB(),
    GaussianBayes(),
    GaussianBayes(covariance="shared"),
]

every_estimator = pytest.mark.parametrize("estimator", ALL, ids=repr)
every_counting_estimator = pytest.mark.parametrize("estimator", COUNTING, ids=repr)
few = settings(max_examples=20, deadline=None)


def table(estimator, seed, rows=40, columns=3, classes=3):
    """Rows that the estimator can hold, every class among them."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.append(np.arange(classes), rng.integers(0, classes, rows - classes)))
    if isinstance(estimator, (GaussianNB, GaussianBayes)):
        return rng.normal(y[:, None] + np.array([1e8, 0.0, -3.0])[:columns], 1.0, (rows, columns)), y
    return rng.poisson(1.0 + y[:, None], (rows, columns)).astype(float), y


def sums(record):
    """The numbers of a record, whatever it is made of."""
    if isinstance(record, Statistics):
        return [number for name in record.summed_fields() for number in sums(getattr(record, name))]
    return [n for part in record for n in sums(part)] if isinstance(record, tuple) else [record]


def assert_same_record(a, b, exact):
    for mine, other in zip(sums(a), sums(b), strict=True):
        if exact:
            assert_array_equal(mine, other)
        else:
            assert_allclose(mine, other, rtol=1e-9, atol=1e-9)


def assert_same_model(a, b, X, exact):
    if exact:
        assert_same_record(a.statistics_, b.statistics_, exact)
    assert_array_equal(a.class_count_, b.class_count_)
    assert_allclose(a.predict_proba(X), b.predict_proba(X), rtol=1e-7, atol=1e-9)


def counts_exactly(estimator):
    return type(estimator) in {type(e) for e in COUNTING}


# -- the laws ----------------------------------------------------------------------------------------------------------


@every_estimator
@few
@given(seed=st.integers(0, 2**32 - 1), cuts=st.lists(st.integers(0, 40), max_size=4))
def test_any_split_and_order_of_the_rows_give_the_same_model(estimator, seed, cuts):
    X, y = table(estimator, seed)
    whole = clone(estimator).fit(X, y)
    parts = clone(estimator)
    order = np.random.default_rng(seed).permutation(len(y))
    for rows in np.split(order, sorted(cuts)):
        if len(rows):
            parts.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    assert_same_model(parts, whole, X, counts_exactly(estimator))


@every_estimator
@few
@given(seed=st.integers(0, 2**32 - 1), gone=st.integers(1, 30))
def test_forgetting_rows_equals_never_having_seen_them(estimator, seed, gone):
    X, y = table(estimator, seed)
    rest = clone(estimator).partial_fit(X[gone:], y[gone:], classes=[0, 1, 2])
    model = clone(estimator).partial_fit(X, y, classes=[0, 1, 2]).forget(X[:gone], y[:gone])
    assert_same_model(model, rest, X[gone:], counts_exactly(estimator))


@few
@given(seed=st.integers(0, 2**32 - 1))
def test_forgetting_far_from_nought_keeps_twelve_digits(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(1e8, 1.0, (1000, 3)), rng.integers(0, 2, 1000)
    model = GaussianNB().fit(X, y).forget(X[:100], y[:100])
    rest = GaussianNB().fit(X[100:], y[100:])
    assert_allclose(model.theta_, rest.theta_, rtol=1e-12)
    assert_allclose(model.var_, rest.var_, rtol=1e-12)


@few
@given(seed=st.integers(0, 2**32 - 1))
def test_a_covariance_far_from_nought_keeps_twelve_digits(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(1e8, 1.0, (1000, 3)), rng.integers(0, 2, 1000)
    model = GaussianBayes(estimate="ml").fit(X, y).forget(X[:100], y[:100])
    rest = GaussianBayes(estimate="ml").fit(X[100:], y[100:])
    assert_allclose(model.covariance_, rest.covariance_, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@every_estimator
@few
@given(seed=st.integers(0, 2**32 - 1))
def test_a_weight_of_k_is_k_copies(estimator, seed):
    X, y = table(estimator, seed)
    weight = np.random.default_rng(seed).integers(0, 4, len(y))
    weight[[np.flatnonzero(y == c)[0] for c in range(3)]] = 1
    weighed = clone(estimator).fit(X, y, sample_weight=weight)
    copied = clone(estimator).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_same_model(weighed, copied, X, counts_exactly(estimator))


@pytest.mark.slow
@every_estimator
@few
@given(seed=st.integers(0, 2**32 - 1))
def test_merging_is_associative_and_commutative(estimator, seed):
    X, y = table(estimator, seed)
    parts = np.array_split(np.arange(len(y)), 3)
    a, b, c = (clone(estimator).partial_fit(X[p], y[p], classes=[0, 1, 2]) for p in parts)
    whole, exact = clone(estimator).fit(X, y), counts_exactly(estimator)
    for merged in ((a + b) + c, a + (b + c), c.merge(b, a), sum([a, b, c])):
        assert_same_model(merged, whole, X, exact)


@pytest.mark.parametrize(
    "estimator",
    [BernoulliNB(), GaussianNB(var_smoothing=0.0), GaussianBayes(), GaussianBayes(covariance="shared")],
    ids=repr,
)
@few
@given(seed=st.integers(0, 2**32 - 1), factor=st.floats(1e-6, 1e6), column=st.integers(0, 2))
def test_scaling_one_column_changes_nothing_else(estimator, seed, factor, column):
    X, y = table(estimator, seed)
    scaled = X.copy()
    scaled[:, column] *= factor
    before, after = (clone(estimator).fit(x, y).predict_proba(x) for x in (X, scaled))
    # a mean of 1e8 leaves eight digits of the spread, in the input itself
    assert_allclose(after, before, rtol=1e-5, atol=1e-6)


@every_estimator
def test_fading_to_half_is_half_the_weight(estimator):
    X, y = table(estimator, 0)
    faded = clone(estimator).fit(X, y).decay(0.5)
    assert_same_model(faded, clone(estimator).fit(X, y, sample_weight=np.full(len(y), 0.5)), X, False)
    assert_array_equal(faded.partial_fit(X, y).class_count_, 1.5 * np.bincount(y))


@every_estimator
def test_nothing_is_learned_when_predicting(estimator):
    X, y = table(estimator, 1)
    model = clone(estimator).fit(X, y)
    before = model.__getstate__()
    model.predict_proba(X)
    assert model.__getstate__() == before
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert_same_model(again.partial_fit(X, y), model.partial_fit(X, y), X, True)


# -- every finite input has an answer ----------------------------------------------------------------------------------


def assert_probabilities(p):
    assert np.isfinite(p).all()
    assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("estimator", [GaussianNB(), GaussianNB(var_smoothing=0.0), GaussianBayes()], ids=repr)
@settings(max_examples=60, deadline=None)
@given(
    cells=st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), min_size=12, max_size=12),
    asked=st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), min_size=4, max_size=4),
)
def test_any_numbers_have_probabilities(estimator, cells, asked):
    X = np.reshape(cells, (6, 2))
    model = clone(estimator).fit(X, [0, 0, 0, 1, 1, 1])
    assert_probabilities(model.predict_proba(np.vstack([X, np.reshape(asked, (2, 2))])))


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.0, 1e-300, 1.0])
@every_counting_estimator
@settings(max_examples=60, deadline=None)
@given(
    cells=st.lists(st.integers(0, 5), min_size=12, max_size=12),
    asked=st.lists(st.integers(0, 9), min_size=4, max_size=4),
)
def test_any_counts_have_probabilities_with_and_without_smoothing(estimator, alpha, cells, asked):
    X, new = np.reshape(cells, (6, 2)), np.reshape(asked, (2, 2))
    model = clone(estimator).set_params(alpha=alpha, fit_prior=False).fit(X, [0, 0, 0, 1, 1, 1])
    assert_probabilities(model.predict_proba(np.vstack([X, new])))
    if type(estimator) is not CategoricalNB:
        assert_allclose(model.predict_proba(sparse.csr_array(new)), model.predict_proba(new))
    assert_probabilities(model.partial_fit(X, np.zeros(6, dtype=int)).predict_proba(new))


@pytest.mark.parametrize("estimator", [MultinomialNB(), ComplementNB(), BernoulliNB()], ids=repr)
def test_counts_near_the_largest_float_have_probabilities(estimator):
    model = clone(estimator).fit([[3, 1], [1, 5]], [0, 1])
    assert_probabilities(model.predict_proba([[1.7e308, 1.7e308], [1e300, 0.0], [0.0, 1e-308]]))
    assert model.predict([[1.7e308, 0.0]]) == [0]


def test_a_row_that_no_class_allows_is_answered_by_the_prior():
    model = CategoricalNB(alpha=0.0).fit([[0, 1], [0, 1], [1, 0]], ["a", "a", "b"])
    assert_allclose(model.predict_proba([[0, 0]]), [[2 / 3, 1 / 3]])


# -- the numbers of the book -------------------------------------------------------------------------------------------


def test_full_covariance_is_the_multivariate_normal_of_scipy():
    X, y = load_iris(return_X_y=True)
    model = GaussianBayes(estimate="ml").fit(X, y)
    expected = [
        np.log(1 / 3) + stats.multivariate_normal.logpdf(X, X[y == c].mean(axis=0), np.cov(X[y == c].T, bias=True))
        for c in range(3)
    ]
    assert_allclose(model.predict_joint_log_proba(X), np.transpose(expected), rtol=1e-6)


def test_full_covariance_integrated_out_is_the_multivariate_t_of_scipy():
    X, y = load_iris(return_X_y=True)
    within = np.mean([X[y == c].var(axis=0) for c in range(3)], axis=0) * 150 + X.var(axis=0) / 9
    within /= 150 - 3 + 1  # the variance within classes, a little of the total added
    strength, location = min(1.0, np.min(within / X.var(axis=0))), X.mean(axis=0)
    expected = []
    for c in range(3):  # the textbook's update of a normal-inverse-Wishart prior with 5 degrees of freedom
        rows = X[y == c]
        off, n = rows.mean(axis=0) - location, strength + 50
        scale = np.diag(within) + 50 * np.cov(rows.T, bias=True) + 50 * strength / n * np.outer(off, off)
        centre, freedom = (strength * location + 50 * rows.mean(axis=0)) / n, 5 + 50 - 4 + 1
        expected.append(stats.multivariate_t.logpdf(X[:9], centre, scale * (n + 1) / (n * freedom), freedom))
    model = GaussianBayes().fit(X, y)
    assert_allclose(model.predict_joint_log_proba(X[:9]), np.log(1 / 3) + np.transpose(expected), rtol=1e-9)


def test_one_shared_covariance_is_linear_discriminant_analysis():
    X, y = load_iris(return_X_y=True)
    model = GaussianBayes(covariance="shared", estimate="ml").fit(X, y)
    reference = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    assert_allclose(model.predict_proba(X), reference.predict_proba(X), atol=1e-6)
    assert_allclose(model.covariance_, reference.covariance_, rtol=1e-9)


# -- bad input: one line that names the place, and the model as it was -------------------------------------------------

NAN = np.array([[1.0, 2.0], [3.0, np.nan]])
INF = np.array([[1.0, np.inf], [3.0, 4.0]])


@every_estimator
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (
            NAN,
            "Input X contains NaN: row 1, column 1; fill it, or use priory.NaiveBayes, which leaves missing cells out.",
        ),
        (INF, "Input X contains infinity or a value too large for dtype('float64'): row 0, column 1."),
    ],
)
def test_missing_and_infinite_cells_are_named(estimator, X, message):
    model = clone(estimator).fit([[1, 2], [3, 4]], [0, 1])
    before = model.statistics_
    attempts = [model.fit, model.partial_fit, model.forget, lambda X, y: model.fit(X, y, sample_weight=[1.0, 0.0])]
    for attempt in [*attempts, lambda X, y: model.predict_proba(X)]:
        with pytest.raises(DataError) as error:
            attempt(X, [0, 1])
        assert str(error.value) == message
        assert model.statistics_ is before


@pytest.mark.parametrize("estimator", [MultinomialNB(), ComplementNB(), CategoricalNB()], ids=repr)
def test_negative_counts_are_named(estimator):
    name = type(estimator).__name__
    model = clone(estimator).fit([[1, 2], [3, 4]], [0, 1])
    before = model.statistics_
    for attempt in (model.fit, model.partial_fit, lambda X, y: model.predict(X)):
        with pytest.raises(DataError) as error:
            attempt([[0, 1], [0, -2]], [0, 1])
        where = "row 1, column 1 holds -2; counts are 0 or more."
        assert str(error.value) == f"Negative values in data passed to {name} (input X): {where}"
        assert model.statistics_ is before


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("estimator", [MultinomialNB(), ComplementNB()], ids=repr)
def test_a_negative_count_is_found_in_a_sparse_matrix(estimator, container):
    with pytest.raises(DataError, match=r"row 1, column 0 holds -3"):
        clone(estimator).fit(container([[0, 1], [-3, 0]]), [0, 1])


BAD = [
    (GaussianNB(var_smoothing=-1), "var_smoothing is -1; it must be finite and not negative."),
    (GaussianNB(var_smoothing=np.nan), "var_smoothing is nan; it must be finite and not negative."),
    (GaussianNB(priors=[1.0]), "Number of priors must match number of classes: 1 for 2 classes."),
    (GaussianNB(priors=[-1, 2]), "Priors must be non-negative; they are [-1.0, 2.0]."),
    (GaussianNB(priors=[0.5, 0.6]), "The sum of the priors should be 1; it is 1.1."),
    (MultinomialNB(class_prior=[0.5, 0.6]), "The sum of the priors should be 1; it is 1.1."),
    (CategoricalNB(class_prior=[np.nan, 1]), "Priors must be non-negative; they are [nan, 1.0]."),
    (MultinomialNB(alpha=-1), "All values in alpha must be greater than 0, or 0, and at most 1e+100; alpha is -1."),
    (BernoulliNB(alpha=np.inf), "All values in alpha must be greater than 0, or 0, and at most 1e+100; alpha is inf."),
    (
        ComplementNB(alpha=[1, 2, 3]),
        "When alpha is an array, it should contains `n_features`. Got 3 elements instead of 2.",
    ),
    (CategoricalNB(alpha=[1, 2]), "alpha is [1, 2]; all categories share one alpha: use a number."),
    (CategoricalNB(min_categories=1.5), "'min_categories' should have integral type. Got float64 instead."),
    (
        CategoricalNB(min_categories=[2]),
        "'min_categories' should have shape (2,) when an array-like is provided. Got (1,) instead.",
    ),
    (BernoulliNB(binarize=-1), "binarize is -1; use a threshold from 0, or None for cells of 0 and 1."),
    (GaussianBayes(estimate="map"), "estimate is 'map'; use one of predictive, mean, ml."),
    (GaussianBayes(covariance="full"), "covariance is 'full'; use 'class' or 'shared'."),
]


@pytest.mark.parametrize(("estimator", "message"), BAD, ids=lambda v: v if isinstance(v, str) else "")
def test_bad_parameters_are_refused_in_one_line(estimator, message):
    with pytest.raises(DataError) as error:
        clone(estimator).fit([[1, 2], [3, 4]], [0, 1])
    assert str(error.value) == message
    assert "\n" not in message


@every_estimator
def test_bad_weights_and_labels_leave_the_model_as_it_was(estimator):
    X, y = np.array([[1, 2], [3, 4]]), [0, 1]
    model = clone(estimator).fit(X, y)
    before = model.statistics_
    for y_, weight, message in [
        (y, [1, -1], "sample_weight of row 1 is -1; give a number from 0 to 1e+100."),
        (y, [np.nan, 1], "sample_weight of row 0 is nan; give a number from 0 to 1e+100."),
        (y, [1, np.inf], "sample_weight of row 1 is inf; give a number from 0 to 1e+100."),
        (y, [1e308, 1e308], "sample_weight of row 0 is 1e+308; give a number from 0 to 1e+100."),
        (y, [0, 0], "every sample_weight is zero: there is nothing to learn; give some row a positive weight."),
        (y, [1], "sample_weight.shape == (1,), expected (2,)!"),
        ([0, 2], None, "The target label(s) [2] in y do not exist in the initial classes [0 1]"),
        ([0], None, "Found input variables with inconsistent numbers of samples: X has 2, y 1."),
    ]:
        with pytest.raises(DataError) as error:
            model.partial_fit(X, y_, sample_weight=weight)
        assert str(error.value) == message
        assert model.statistics_ is before


@every_estimator
def test_forgetting_what_was_never_learned_is_refused(estimator):
    model = clone(estimator).fit([[1, 2], [3, 4], [3, 4]], [0, 1, 1])
    before = model.statistics_
    with pytest.raises(NotLearnedError, match="the model is unchanged"):
        model.forget([[1, 2], [1, 2]], [0, 0])
    with pytest.raises(NotLearnedError, match="no row of class 7 was ever learned"):
        model.forget([[1, 2]], [7])
    assert model.statistics_ is before


def test_categories_too_many_to_count_are_refused_before_they_are_counted():
    message = "column 0 holds category 9000000000; its counts would not fit in memory: "
    with pytest.raises(DataError) as error:
        CategoricalNB().fit([[9_000_000_000], [1]], [0, 1])
    assert str(error.value) == message + "number the categories from 0 (OrdinalEncoder)."


def test_counts_out_of_range_are_named():
    with pytest.raises(DataError, match="the counts of column 1 add up to infinity; scale them"):
        MultinomialNB().fit([[0, 1.7e308], [0, 1.7e308]], [0, 0])


def test_a_sparse_matrix_with_indices_outside_is_refused():
    X = sparse.csr_array((np.ones(2), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
    X.indices[1] = 7
    with pytest.raises(DataError) as error:
        MultinomialNB().fit(X, [0, 1])
    assert str(error.value) == "X is not a valid sparse matrix: indices must be < 2; build it again."


@every_estimator
def test_an_unfitted_model_says_so(estimator):
    with pytest.raises(NotFittedError):
        clone(estimator).predict([[1, 2]])
    assert not hasattr(clone(estimator), "classes_")


# -- among scikit-learn's tools ----------------------------------------------------------------------------------------


@every_estimator
def test_columns_have_names(estimator):
    X, y = table(estimator, 2)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = clone(estimator).fit(frame, y)
    assert_array_equal(model.feature_names_in_, ["a", "b", "c"])
    assert_array_equal(model.predict(frame), clone(estimator).fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c"]])


def test_pipelines_searches_and_output_containers():
    X, y = load_iris(return_X_y=True, as_frame=True)
    pipeline = make_pipeline(StandardScaler(), GaussianNB()).set_output(transform="pandas")
    assert pipeline.fit(X, y).score(X, y) > 0.94
    search = GridSearchCV(CategoricalNB(), {"alpha": [0.1, 1.0], "min_categories": [10]}, cv=3)
    assert search.fit(X.round().astype(int), y).best_score_ > 0.9
    search = GridSearchCV(GaussianBayes(), {"covariance": ["class", "shared"]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.95


@every_estimator
def test_the_type_and_layout_of_the_table_do_not_matter(estimator):
    X, y = table(estimator, 3)
    X = np.round(X % 50)
    expected = clone(estimator).fit(X, y).predict_proba(X)
    forms = [np.asfortranarray(X), X.astype(np.float32), X.astype(object), X.tolist(), pd.DataFrame(X).astype("Int64")]
    if not isinstance(estimator, (GaussianNB, GaussianBayes)):
        forms += [X.astype(np.int8), X.astype(np.uint64)]
    for form in forms:
        assert_allclose(clone(estimator).fit(form, y).predict_proba(form), expected, atol=1e-6)


def test_more_rows_than_a_shard_holds():
    rng = np.random.default_rng(0)
    X, y = rng.poisson(2.0, (70_000, 2)), rng.integers(0, 2, 70_000)
    for estimator in (BernoulliNB(), CategoricalNB(), MultinomialNB(), GaussianNB(), GaussianBayes()):
        model = clone(estimator).fit(X, y)
        assert_allclose(model.class_count_, np.bincount(y))
        assert_allclose(model.predict_proba(X)[65_000:], model.predict_proba(X[65_000:]), rtol=1e-12)
        bad = X.astype(float)
        bad[66_000, 1] = np.nan
        with pytest.raises(DataError, match="NaN: row 66000, column 1"):
            clone(estimator).fit(bad, y)
