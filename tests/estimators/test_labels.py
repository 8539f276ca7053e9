"""Labels keep their types: what differs stays different, what mixes types is refused."""

import numpy as np
import pandas as pd
import pytest

import priory as pr
from priory.errors import DataError, KindError
from priory.estimators.labels import encode_labels

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
