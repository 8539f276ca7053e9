"""Bad input gets one clear line that names the place and says what to do; nothing is learned."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import priory as pr
from priory.errors import DataError, KindError, ModelTooLargeError, PrioryWarning
from priory.families import Gaussian

X = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 5.0], [4.0, 4.0]])
Y = ["a", "b", "a", "b"]
MANY = np.arange(1000)

TABLES = [
    (np.where(X == 5.0, np.inf, X), DataError, "row 2, column 'x1' is infinity (inf); use NaN for what is missing."),
    (
        pd.DataFrame({"a": [1.0, -np.inf, 2.0, 3.0]}),
        DataError,
        "row 1, column 'a' is infinity (inf); use NaN for what is missing.",
    ),
    (
        X[0],
        DataError,
        "Expected 2D array, got 1D array instead. Reshape your data: reshape(-1, 1) if it is one column, "
        "reshape(1, -1) if it is one row.",
    ),
    (
        X[:0],
        DataError,
        "Found array with 0 sample(s) while a minimum of 1 is required: X has no rows.",
    ),
    (
        X[:, :0],
        DataError,
        "0 feature(s) (shape=(4, 0)) while a minimum of 1 is required: X has no columns.",
    ),
    (
        X + 1j,
        DataError,
        "Complex data not supported: X holds complex numbers; give real and imaginary parts as columns.",
    ),
    (
        sp.csr_matrix(X),
        KindError,
        "X is a sparse matrix; a table of columns is dense: call .toarray(), or use BernoulliNB, MultinomialNB "
        "or GaussianNB of priory.naive_bayes.",
    ),
    (
        [{"a": 1}, {"a": "two"}, {"a": 3}, {"a": 4}],
        KindError,
        "column 'a' mixes numbers and strings (row 0 holds 1, row 1 holds 'two'); make it one or the other.",
    ),
    (
        [{"a": 1}, {"a": {}}, {"a": 3}, {"a": 4}],
        KindError,
        "row 1, column 'a' holds a dict; argument must be a string or a number.",
    ),
    (
        [{"a": 1}, {"a": 10**400}, {"a": 3}, {"a": 4}],
        DataError,
        "row 1, column 'a' holds a number too large for a float.",
    ),
    (
        [{"a": "x"}, {"a": "\ud800"}, {"a": "x"}, {"a": "x"}],
        DataError,
        "row 1, column 'a' holds a lone surrogate; it is not text: decode it first.",
    ),
    (
        [{"a": b"x"}] * 4,
        KindError,
        "row 0, column 'a' holds bytes; decode them to a string first.",
    ),
    (
        pd.DataFrame({"when": np.array([1, 2, 3, 4], dtype="m8[us]")}),
        KindError,
        "column 'when' holds dates or times (Duration(time_unit='us')); dates are learned from tables with names; turn "
        "others into a number, such as hours, or leave them out.",
    ),
    (
        pd.DataFrame(X, columns=["a", " "]),
        DataError,
        "the column at position 1 has no name; name it, or leave it out.",
    ),
    ({"a": [1, 2, 3, 4], "b": [1, 2]}, DataError, "the columns differ in length: {'a': 4, 'b': 2}."),
    (np.full((4, 2), np.nan), DataError, "every cell of X is missing; there is nothing to learn from."),
]


@pytest.mark.parametrize(("table", "error", "message"), TABLES, ids=[m[:40] for *_, m in TABLES])
def test_a_bad_table(table, error, message):
    model = pr.NaiveBayes()
    with pytest.raises(error) as caught:
        model.fit(table, Y)
    assert str(caught.value) == message
    assert not hasattr(model, "statistics_")


def test_a_column_that_is_there_twice():
    with pytest.raises(ValueError, match="'a'"):
        pr.NaiveBayes().fit(pd.DataFrame(X, columns=["a", "a"]), Y)


LABELS = [
    (None, DataError, "requires y to be passed, but the target y is None."),
    (["a", None, "b", "b"], DataError, "Input y contains NaN: row 1 has no label; label it or leave it out."),
    ([0.0, np.nan, 1.0, 1.0], DataError, "Input y contains NaN or infinity (row 1); give every row a label."),
    (
        ["a", 1, "b", 2.0],
        KindError,
        "y mixes labels of types str (first in row 0) and number (first in row 1); use one type.",
    ),
    (
        [0.1, 0.2, 0.3, 0.4],
        DataError,
        "Unknown label type: continuous. y looks like a number to predict; bin it, or pass strings.",
    ),
    (["a", "b"], DataError, "Found input variables with inconsistent numbers of samples: X has 4, y 2."),
    (
        np.array(["a", "b\ud800", "a", "b"], dtype=object),
        DataError,
        "y[1] holds a lone surrogate; it is not text: decode it first.",
    ),
]


@pytest.mark.parametrize(("labels", "error", "message"), LABELS, ids=[m[:40] for *_, m in LABELS])
def test_bad_labels(labels, error, message):
    if isinstance(labels, list) and {type(v) for v in labels} & {str} and {type(v) for v in labels} != {str}:
        labels = np.array(labels, dtype=object)
    model = pr.NaiveBayes()
    with pytest.raises(error) as caught:
        model.fit(X, labels)
    assert str(caught.value) == message
    assert not hasattr(model, "statistics_")


@pytest.mark.filterwarnings("ignore:labels that may mean the same")
@pytest.mark.parametrize(
    "labels", [["01", "1", "01", "1"], ["NA", "None", "NA", "None"], ["true", "True", "true", "True"]]
)
def test_labels_are_taken_as_they_are(labels):
    assert pr.NaiveBayes().fit(X, labels).classes_.tolist() == sorted(set(labels))


WEIGHTS = [
    ([1, -1, 1, 1], "sample_weight of row 1 is -1; give a number from 0 to 1e+100."),
    ([1, 1, np.nan, 1], "sample_weight of row 2 is nan; give a number from 0 to 1e+100."),
    ([1, 1, 1, np.inf], "sample_weight of row 3 is inf; give a number from 0 to 1e+100."),
    ([0, 0, 0, 0], "every sample_weight is zero: there is nothing to learn; give some row a positive weight."),
    ([1e308, 1, 1, 1], "sample_weight of row 0 is 1e+308; give a number from 0 to 1e+100."),
    ([1, 1], "sample_weight.shape == (2,), expected (4,)!"),
    ([[1, 1, 1, 1]], "Sample weights must be 1D array or scalar: got 2 dimensions."),
]


@pytest.mark.parametrize(("weight", "message"), WEIGHTS, ids=[str(w) for w, _ in WEIGHTS])
def test_bad_weights(weight, message):
    with pytest.raises(DataError) as caught:
        pr.NaiveBayes().fit(X, Y, sample_weight=weight)
    assert str(caught.value) == message


PARAMETERS = [
    ({"alpha": -1.0}, "alpha is -1.0; use a number from 0 to 1e+100, or None."),
    ({"alpha": np.nan}, "alpha is nan; use a number from 0 to 1e+100, or None."),
    ({"alpha": float("1e400")}, "alpha is inf; use a number from 0 to 1e+100, or None."),
    ({"estimate": "best"}, "estimate is 'best'; use one of ml, map, mean, predictive."),
    ({"class_prior": "flat"}, "class_prior is 'flat'; use 'estimated', 'uniform', or probabilities."),
    ({"families": "normal"}, "families of column 'x0' is 'normal'; use 'auto', a family, or one of "),
    ({"families": {"height": Gaussian}}, "families names column 'height', which is not in the table."),
]


@pytest.mark.parametrize(("parameters", "message"), PARAMETERS, ids=[m[:30] for _, m in PARAMETERS])
def test_bad_parameters(parameters, message):
    with pytest.raises(DataError) as caught:
        pr.NaiveBayes(**parameters).fit(X, Y)
    assert str(caught.value).startswith(message)


PRIORS = [
    ([0.5, 0.2], "The sum of the priors should be 1; it is 0.7."),
    ([1.5, -0.5], "Priors must be non-negative; they are [1.5, -0.5]."),
    ([1.0], "Number of priors must match number of classes: 1 for 2 classes."),
    ({"a": 1.0}, "class_prior has no probability for class 'b'."),
]


@pytest.mark.parametrize(("prior", "message"), PRIORS, ids=[m[:30] for _, m in PRIORS])
def test_bad_priors(prior, message):
    with pytest.raises(DataError) as caught:
        pr.NaiveBayes(class_prior=prior).fit(X, Y).predict(X)
    assert str(caught.value) == message


def test_labels_cannot_be_gaussian():
    with pytest.raises(KindError, match="column 'c' holds labels; Gaussian needs numbers"):
        pr.NaiveBayes({"c": Gaussian}).fit([{"c": "x"}, {"c": "y"}], [0, 1])


@pytest.mark.filterwarnings("ignore:no class has two rows")
def test_an_empty_column_is_named_in_a_warning():
    with pytest.warns(PrioryWarning, match=r"columns without a single value say nothing: \['b'\]"):
        pr.NaiveBayes().fit(pd.DataFrame({"a": [1.0, 2.0], "b": [None, None]}), [0, 1])


def test_small_floats_are_computed_in_double():
    single = pr.NaiveBayes("gaussian").fit(X.astype(np.float16), Y).predict_proba(X.astype(np.float16))
    assert single.dtype == np.float64
    assert np.allclose(single, pr.NaiveBayes("gaussian").fit(X, Y).predict_proba(X))


def test_too_many_classes_for_the_memory_are_refused_before_anything_is_built(monkeypatch):
    monkeypatch.setattr("os.sysconf", lambda name: 100)
    with pytest.raises(ModelTooLargeError, match=r"1,000 classes x 1 columns need about 0 GiB, and this machine has 0"):
        pr.NaiveBayes().fit(MANY[:, None], MANY)


@pytest.mark.filterwarnings("ignore:no class has two rows")
def test_a_hundred_thousand_classes_work():
    y = np.arange(100_000)
    model = pr.NaiveBayes("gaussian").fit(y[:, None].astype(float), y)
    assert model.predict([[77_777.0]]).tolist() == [77_777]


def test_the_number_of_columns_must_be_what_it_was():
    model = pr.NaiveBayes().fit(X, Y)
    with pytest.raises(DataError, match="X has 1 features, but NaiveBayes is expecting 2 features as input"):
        model.predict(X[:, :1])
