"""Every line of docs/differences.md: what scikit-learn does, and what we do."""

import re

import numpy as np
import pytest
import sklearn.naive_bayes as theirs
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import priory.naive_bayes as ours
from paths import ROOT
from priory.errors import DataError, PrioryWarning

TABLE = ROOT / "docs" / "differences.md"
SHOWN = set()

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # scikit-learn's


def difference(what):
    SHOWN.add(what)
    return lambda test: test


def test_every_line_of_the_table_is_shown_here():
    lines = re.findall(r"^\| (.+?) \|", TABLE.read_text(), re.M)
    assert set(lines) - {"case"} == SHOWN


def assert_probabilities(p):
    assert np.isfinite(p).all()
    assert_allclose(p.sum(axis=1), 1.0)


@difference("GaussianNB at 1e160")
@pytest.mark.parametrize("scale", [1e160, 1e300])
def test_numbers_whose_squares_overflow(scale):
    X, y = scale * np.array([[1.0], [1.1], [2.0], [2.1]]), [0, 0, 1, 1]
    assert np.isnan(theirs.GaussianNB().fit(X, y).predict_proba(X)).any()
    model = ours.GaussianNB().fit(X, y)
    assert_probabilities(model.predict_proba(X))
    assert_array_equal(model.predict(X), y)


@difference("GaussianNB with one wide column")
def test_one_wide_column_ruins_no_other():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 500)
    X = np.column_stack([rng.normal(0, 1e6, 1000), rng.normal(3e-3 * y, 1e-3)])
    assert theirs.GaussianNB().fit(X, y).score(X, y) < 0.7
    model = ours.GaussianNB().fit(X, y)
    assert model.score(X, y) > 0.9
    assert_allclose(model.epsilon_, theirs.GaussianNB().fit(X, y).epsilon_)


@difference("GaussianNB smoothing and weights")
def test_smoothing_knows_weights():
    X, y, weight = np.array([[0.0], [1.0], [2.0], [9.0]]), [0, 0, 1, 1], [1, 1, 1, 5]
    copies = np.repeat(X, weight, axis=0), np.repeat(y, weight)

    def weighed_and_copied(module):
        return module.GaussianNB().fit(X, y, weight), module.GaussianNB().fit(*copies)

    a, b = weighed_and_copied(theirs)
    assert a.epsilon_ != b.epsilon_
    a, b = weighed_and_copied(ours)
    assert_allclose(a.epsilon_, b.epsilon_)
    assert_allclose(a.var_, b.var_)


@difference("GaussianNB smoothing and batches")
def test_smoothing_knows_all_batches():
    X, y = np.array([[0.0], [100.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])

    def in_batches(module):
        model = module.GaussianNB(var_smoothing=0.1)
        return model.partial_fit(X[:2], y[:2], classes=[0, 1]).partial_fit(X[2:], y[2:])

    whole = theirs.GaussianNB(var_smoothing=0.1).fit(X, y)
    assert not np.allclose(in_batches(theirs).var_, whole.var_)
    assert_allclose(in_batches(ours).var_, whole.var_)


@difference("GaussianNB on constant data")
def test_constant_data():
    X, y = np.ones((3, 2)), [0, 0, 1]
    assert np.isnan(theirs.GaussianNB().fit(X, y).predict_proba(X)).all()
    assert_allclose(ours.GaussianNB().fit(X, y).predict_proba(X), [[2 / 3, 1 / 3]] * 3)


@difference("float32 input")
def test_single_precision_is_computed_in_double():
    X, y = np.float32([[10000.001], [10000.002], [10000.004], [10000.005]]), [0, 0, 1, 1]
    exact = ours.GaussianNB().fit(X.astype(float), y)
    single = ours.GaussianNB().fit(X, y)
    assert single.var_.dtype == single.predict_proba(X).dtype == np.float32
    assert_allclose(single.var_, exact.var_, rtol=1e-6)
    assert not np.allclose(theirs.GaussianNB().fit(X, y).var_, exact.var_, rtol=1e-3)


@difference("huge counts")
def test_probabilities_at_huge_counts_add_up_to_one():
    X, y = [[1, 1], [1, 1]], [0, 1]
    row = [[1e17, 1e17]]
    assert theirs.MultinomialNB().fit(X, y).predict_proba(row).sum() == 2.0
    assert_allclose(ours.MultinomialNB().fit(X, y).predict_proba(row), [[0.5, 0.5]])


@difference("a label not in `classes`, in `partial_fit`")
@pytest.mark.parametrize("name", ["BernoulliNB", "CategoricalNB", "ComplementNB", "MultinomialNB"])
def test_unknown_labels_raise(name):
    X = [[0, 1], [1, 0], [1, 1]]
    silent = getattr(theirs, name)().partial_fit(X, [0, 1, 2], classes=[0, 1])
    assert silent.class_count_.sum() == 2
    model = getattr(ours, name)()
    with pytest.raises(DataError) as error:
        model.partial_fit(X, [0, 1, 2], classes=[0, 1])
    assert str(error.value) == "The target label(s) [2] in y do not exist in the initial classes [0 1]"
    assert not hasattr(model, "statistics_")


@difference("CategoricalNB `n_categories_` after `partial_fit`")
def test_categories_of_all_batches():
    def in_batches(module):
        return module.CategoricalNB().partial_fit([[3]], [0], classes=[0, 1]).partial_fit([[1]], [1])

    assert in_batches(theirs).n_categories_.tolist() == [2]
    assert in_batches(ours).n_categories_.tolist() == [4]


@difference("CategoricalNB, a category that was never seen")
def test_a_category_beyond_those_seen():
    X, y = [[0], [1], [1]], [0, 1, 1]
    with pytest.raises(IndexError):
        theirs.CategoricalNB().fit(X, y).predict_proba([[5]])
    assert_allclose(ours.CategoricalNB().fit(X, y).predict_proba([[5]]), [[1 / 3, 2 / 3]])


@difference("CategoricalNB, a category with weight 0 only")
def test_a_category_without_weight():
    X, y, weight = [[0], [1], [4]], [0, 1, 1], [1, 1, 0]
    assert theirs.CategoricalNB().fit(X, y, weight).n_categories_.tolist() == [5]
    assert ours.CategoricalNB().fit(X, y, weight).n_categories_.tolist() == [2]


@difference("CategoricalNB, fractions")
def test_fractions_are_cut_off_with_a_warning():
    X, y = [[0.0], [1.7]], [0, 1]
    assert theirs.CategoricalNB().fit(X, y).category_count_[0].tolist() == [[1, 0], [0, 1]]
    message = "row 1, column 0 holds 1.7, which is not a whole number; "
    with pytest.warns(PrioryWarning) as warned:
        model = ours.CategoricalNB().fit(X, y)
    assert str(warned[0].message) == message + "fractions are cut off: round or bin the column first."
    assert model.category_count_[0].tolist() == [[1, 0], [0, 1]]


@difference("CategoricalNB, a category in the billions")
def test_a_category_in_the_billions():
    with pytest.raises(DataError, match="column 0 holds category 5000000000; its counts would not fit in memory"):
        ours.CategoricalNB().fit([[5_000_000_000], [0]], [0, 1])  # scikit-learn would ask for 80 GB


@difference("`alpha=0`, a value never seen in a class")
def test_no_smoothing():
    X, y = np.array([[1, 0], [0, 2], [0, 3]]), [0, 1, 1]
    assert np.isnan(theirs.MultinomialNB(alpha=0.0).fit(X, y).predict_proba(X)).any()
    model = ours.MultinomialNB(alpha=0.0).fit(X, y)
    assert_allclose(model.predict_proba(X), [[1, 0], [0, 1], [0, 1]])
    assert_allclose(model.predict_proba([[1, 1]]), [[1 / 3, 2 / 3]])
    assert_allclose(model.predict_proba(sparse.csr_array([[1, 1]])), [[1 / 3, 2 / 3]])
    assert np.isnan(theirs.BernoulliNB(alpha=0.0).fit(X, y).predict_proba(X)).any()
    assert_allclose(ours.BernoulliNB(alpha=0.0).fit(X, y).predict_proba(X), [[1, 0], [0, 1], [0, 1]])


@difference("ComplementNB with `alpha=0`")
def test_no_smoothing_of_the_complement():
    X, y = np.array([[1, 0], [0, 2]]), [0, 1]
    assert np.isnan(theirs.ComplementNB(alpha=0.0).fit(X, y).predict_proba(X)).any()
    model = ours.ComplementNB(alpha=0.0).fit(X, y)
    assert_probabilities(model.predict_proba(X))
    assert_array_equal(model.predict(X), y)


@difference("ComplementNB with `norm` and one column")
def test_one_column_normed():
    X, y = [[1], [2]], [0, 1]
    assert np.isnan(theirs.ComplementNB(norm=True).fit(X, y).predict_proba(X)).all()
    assert_allclose(ours.ComplementNB(norm=True).fit(X, y).predict_proba(X), 0.5)


@difference("BernoulliNB with an alpha for each column")
def test_one_alpha_for_each_column():
    X, y, alpha = [[1, 0, 1], [0, 1, 1]], [0, 1], [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="broadcast"):
        theirs.BernoulliNB(alpha=alpha).fit(X, y)
    model = ours.BernoulliNB(alpha=alpha).fit(X, y)
    assert_allclose(np.exp(model.feature_log_prob_[0]), [2 / 3, 2 / 5, 4 / 7])


@difference("BernoulliNB with `binarize=None`")
def test_cells_that_are_neither_yes_nor_no():
    X, y = [[5, 0], [0, 1]], [0, 1]
    assert np.isnan(theirs.BernoulliNB(binarize=None).fit(X, y).predict_proba(X)).any()
    for form in (np.array(X), sparse.csr_array(X)):
        with pytest.raises(DataError) as error:
            ours.BernoulliNB(binarize=None).fit(form, y)
        assert str(error.value) == "row 0, column 0 holds 5, not 0 or 1; set binarize to a threshold."


@difference("BernoulliNB, a sparse cell stored in pieces")
def test_a_cell_stored_in_pieces():
    pieces = sparse.csr_array((np.ones(3), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    assert theirs.BernoulliNB(binarize=1.0).fit(pieces, [0, 1]).feature_count_.tolist() == [[0, 0], [0, 0]]
    assert ours.BernoulliNB(binarize=1.0).fit(pieces, [0, 1]).feature_count_.tolist() == [[1, 0], [0, 0]]
    assert pieces.nnz == 3


@difference("GaussianNB on sparse rows")
def test_sparse_rows_of_numbers():
    X, y = np.array([[1.5, 0.0], [2.0, 0.0], [0.0, -1.0], [0.0, -2.0]]), [0, 0, 1, 1]
    with pytest.raises(TypeError, match="dense data is required"):
        theirs.GaussianNB().fit(sparse.csr_array(X), y)
    model = ours.GaussianNB().fit(sparse.csr_array(X), y)
    assert_allclose(model.predict_proba(sparse.csr_array(X)), theirs.GaussianNB().fit(X, y).predict_proba(X))


@difference("`class_prior` that is negative or does not add up to 1")
@pytest.mark.parametrize("name", ["BernoulliNB", "CategoricalNB", "ComplementNB", "MultinomialNB"])
def test_impossible_priors(name):
    X, y = [[0, 1], [1, 0]], [0, 1]
    for prior in ([-1.0, 2.0], [1.0, 1.0]):
        getattr(theirs, name)(class_prior=prior).fit(X, y)
        with pytest.raises(DataError):
            getattr(ours, name)(class_prior=prior).fit(X, y)


@difference("negative counts when predicting")
@pytest.mark.parametrize("name", ["ComplementNB", "MultinomialNB"])
def test_negative_counts_when_predicting(name):
    X, y = [[0, 1], [1, 0]], [0, 1]
    getattr(theirs, name)().fit(X, y).predict([[-1, 2]])
    with pytest.raises(DataError, match="row 0, column 0 holds -1"):
        getattr(ours, name)().fit(X, y).predict([[-1, 2]])


@difference("fractional weights")
def test_fractional_weights_are_kept_in_single_precision():
    X, y, weight = [[0, 1], [1, 0], [1, 1]], [0, 1, 1], [0.3, 2.7, 0.1]
    model, reference = ours.MultinomialNB().fit(X, y, weight), theirs.MultinomialNB().fit(X, y, weight)
    assert model.class_count_[0] == np.float32(0.3)
    assert_allclose(model.class_count_, reference.class_count_, rtol=6e-8)
    assert_allclose(model.predict_log_proba(X), reference.predict_log_proba(X), rtol=1e-6)
    whole = [0.0, 2.0**24 + 1, 2.0**53 - 1]
    assert ours.MultinomialNB().fit(X, y, whole).class_count_.tolist() == [sum(whole[1:])]


@difference("negative weights")
@pytest.mark.parametrize("name", ["GaussianNB", "MultinomialNB"])
def test_negative_weights(name):
    X, y, weight = [[0, 1], [1, 0], [1, 1]], [0, 1, 1], [1.0, -0.5, 1.0]
    getattr(theirs, name)().fit(X, y, weight)
    with pytest.raises(DataError, match=r"sample_weight of row 1 is -0.5; give a number from 0 to 1e"):
        getattr(ours, name)().fit(X, y, weight)


@difference("a `fit` that fails")
def test_a_fit_that_fails():
    good, bad = ([[0, 1], [1, 0]], [0, 1]), ([[0, 1], [1, -1], [2, 2]], [0, 1, 2])
    changed, kept = theirs.MultinomialNB().fit(*good), ours.MultinomialNB().fit(*good)
    for model in (changed, kept):
        with pytest.raises(ValueError, match="Negative values"):
            model.fit(*bad)
    assert changed.classes_.tolist() == [0, 1, 2]
    assert kept.classes_.tolist() == [0, 1]
    assert_allclose(kept.predict_proba([[0, 1]]), theirs.MultinomialNB().fit(*good).predict_proba([[0, 1]]))


@difference("attributes")
def test_attributes_are_functions_of_what_was_seen():
    theirs.GaussianNB().fit([[0.0], [1.0]], [0, 1]).theta_ = 3
    with pytest.raises(AttributeError):
        ours.GaussianNB().fit([[0.0], [1.0]], [0, 1]).theta_ = 3


def test_labels_that_differ_in_a_last_nul_character_stay_apart_in_every_call():
    model = ours.MultinomialNB().partial_fit([[1], [2]], ["a", "a\0"], classes=["a", "a\0"])
    model.partial_fit([[3]], ["a\0"], classes=["a\0", "a"])
    assert model.classes_.tolist() == ["a", "a\0"]
    assert model.class_count_.tolist() == [1.0, 2.0]
