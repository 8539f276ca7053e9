"""Labels keep their types: what differs stays different, what mixes types is refused."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import priory as pr
from priory import MultiLabelClassifier, NaiveBayes, TextClassifier
from priory.core.input_guard import find_similar_labels
from priory.errors import DataError, KindError, PrioryWarning
from priory.estimators.label_encoding import encode_labels
from priory.naive_bayes import GaussianNB

X = [{"a": 1.0}, {"a": 2.0}]


@pytest.mark.parametrize(
    ("y", "types"),
    [
        (["1", 1], r"str \(first in row 0\) and number \(first in row 1\)"),
        ([True, 2], r"bool \(first in row 0\) and number \(first in row 1\)"),
        (np.array(["1", 1], dtype=object), "str .* and number"),
        (pd.Series([True, 2], dtype=object), "bool .* and number"),
    ],
)
def test_labels_of_two_types_are_refused(y, types):
    with pytest.raises(KindError, match=f"y mixes labels of types {types}"):
        encode_labels(y)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT])
def test_a_missing_label_is_refused(missing):
    with pytest.raises(DataError, match="row 1 has no label; label it or leave it out"):
        encode_labels(["a", missing])


def test_a_masked_label_is_refused():
    with pytest.raises(DataError, match=r"y\[1\] is masked: the row has no label; leave it out."):
        encode_labels(np.ma.MaskedArray(["a", "b"], mask=[False, True]))


def test_a_number_does_not_join_classes_that_are_strings():
    model = pr.NaiveBayes(calibrate=False).fit([*X, *X], ["a", "b", "a", "b"])
    with pytest.raises(KindError, match=r"y holds labels such as 5 \(number\), the classes are such as 'a' \(str\)"):
        model.partial_fit(X, [5, 5])
    assert model.classes_.tolist() == ["a", "b"]


def test_booleans_and_numbers_keep_their_types():
    assert encode_labels([True, False])[0].dtype == bool
    assert encode_labels([1, 2.0])[0].tolist() == [1.0, 2.0]


SEVERAL = {
    "sets": [{"x", "y"}, {"x"}],
    "frozen sets": [frozenset("xy"), frozenset("x")],
    "lists": [["x", "y"], ["x"]],
    "lists of one length": [["x", "y"], ["x", "z"]],
    "tuples": [("x", "y"), ("x",)],
    "dicts": [{"x": 1}, {"y": 1}],
    "arrays": [np.array(["x", "y"]), np.array(["x"])],
    "a series of lists": pd.Series([["x", "y"], ["x"]]),
    "Arrow lists": pa.array([["x", "y"], ["x"]]),
    "a label and a list": ["x", ["x", "y"]],
    "an indicator matrix": np.eye(2, dtype=int),
    "a table": pd.DataFrame(np.eye(2, dtype=int)),
}


@pytest.mark.filterwarnings("ignore:no class has two rows")
@pytest.mark.parametrize("y", SEVERAL.values(), ids=SEVERAL)
@pytest.mark.parametrize("make", [NaiveBayes, TextClassifier, GaussianNB])
def test_several_labels_for_a_row_are_refused_in_one_line(make, y):
    X = ["win cash", "see you"] if make is TextClassifier else [[1.0], [2.0]]
    with pytest.raises(KindError, match=r"y(\[\d\] is a \w+| has 2 columns): several labels for a row \(multi-label\)"):
        make().fit(X, y)
    model = make().fit(X, ["x", "y"])
    with pytest.raises(KindError, match="multi-label"):
        model.partial_fit(X, y)


def test_what_the_error_about_several_labels_advises_works():
    texts = ["win cash now", "see you", "cash for lunch", "lunch?"] * 5
    labels = [{"spam"}, set(), {"spam", "food"}, {"food"}] * 5
    assert MultiLabelClassifier().fit(texts, labels).list_labels(["cash for lunch"]) == [["food", "spam"]]


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
def test_a_column_of_labels_is_one_label_a_row():
    assert NaiveBayes().fit([[1.0], [2.0], [2.5]], [["x"], ["y"], ["y"]]).classes_.tolist() == ["x", "y"]


def test_labels_that_may_mean_the_same_are_named_and_not_joined():
    labels = ["yes"] * 20 + ["Yes", "yes ", "yse"] + ["no"] * 20
    with pytest.warns(PrioryWarning, match=r"the same are different classes: 'yes' \(20\) and 'Yes' \(1\) and 'yes '"):
        model = NaiveBayes(calibrate=False).fit([[float(i)] for i in range(43)], labels)
    assert model.classes_.tolist() == ["Yes", "no", "yes", "yes ", "yse"]
    [found] = pr.audit({"x": np.arange(43.0)}, target=labels).of("labels")
    assert "'yes' (20) and 'Yes' (1) and 'yes ' (1) and 'yse' (1)" in found.what


@pytest.mark.parametrize(
    ("counts", "groups"),
    [
        ({"spam": 50, "sapm": 1, "ham": 50}, [("spam", "sapm")]),
        ({"spam": 50, "spamm": 1, "sapm": 2, "ham": 50}, [("spam", "sapm", "spamm")]),
        ({"caf\u00e9": 3, "cafe\u0301": 3}, [("cafe\u0301", "caf\u00e9")]),
        ({"cat": 50, "car": 40, "A": 90, "B": 1, "class 1": 50, "class 2": 1, "10": 9, "100": 90}, []),
        ({f"label {i}": 1.0 for i in range(2000)}, []),
    ],
)
def test_which_labels_may_mean_the_same(counts, groups):
    assert find_similar_labels(counts) == groups
