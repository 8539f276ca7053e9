"""Tables of every origin are read right, or refused in one line that says what to do."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import priory as pr
from priory.errors import DataError, KindError, ModelTooLargeError
from priory.tables.table_reading import read_table


def numbers_of(table, name="a"):
    return read_table(table).numbers([read_table(table).names.index(name)])[:, 0].tolist()


def test_a_sparse_pandas_column_holds_its_numbers():
    frame = pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 0.0, 1.0, 2.0])})
    assert numbers_of(frame) == [0, 0, 1, 2]


def test_a_run_end_encoded_column_holds_its_numbers():
    ends, values = pa.array([2, 3], pa.int32()), pa.array([1.0, None])
    found = numbers_of(pa.table({"a": pa.RunEndEncodedArray.from_arrays(ends, values)}))
    assert found[:2] == [1, 1]
    assert np.isnan(found[2])


@pytest.mark.parametrize(
    ("column", "holds"),
    [
        (pd.Series(pd.period_range("2020", periods=3)), "period"),
        (pd.Series(pd.interval_range(0, 3)), "interval"),
    ],
)
def test_a_pandas_column_of_another_type_is_refused(column, holds):
    with pytest.raises(KindError, match=rf"column 'a' holds .*{holds}.*; turn it into a number or a string, or leave"):
        read_table(pd.DataFrame({"a": column}))


def test_an_arrow_uuid_column_is_refused():
    with pytest.raises(KindError, match=r"column 'a' holds .*uuid.*; turn it into a number or a string"):
        read_table(pa.table({"a": pa.array([b"0" * 16, b"1" * 16], pa.uuid())}))


def test_a_column_of_nulls_is_empty():
    assert read_table(pl.DataFrame({"a": [None, None]})).column_kinds() == {"a": "empty"}
    assert read_table(pa.table({"a": pa.nulls(3)})).column_kinds() == {"a": "empty"}


def test_an_arrow_decimal_is_a_number():
    assert numbers_of(pa.table({"a": pa.array([1, 2], pa.decimal128(10, 2))})) == [1, 2]


def test_a_lazy_frame_is_refused():
    with pytest.raises(KindError, match=r"X is a lazy frame, whose rows are not there yet; call .collect\(\) first."):
        read_table(pl.LazyFrame({"a": [1]}))


def test_masked_cells_are_missing():
    masked = np.ma.MaskedArray([[1.0], [99.0]], mask=[[False], [True]])
    assert np.isnan(read_table(masked).numbers([0])[1, 0])
    whole = np.ma.MaskedArray([1, 99], mask=[False, True])
    assert np.isnan(read_table({"a": whole}).numbers([0])[1, 0])
    labels = np.ma.MaskedArray(["x", "y"], mask=[False, True])
    assert read_table({"a": labels}).get_cell(1, 0) is None


HUGE = [2**53, 2**53 + 1]


@pytest.mark.parametrize(
    "table",
    [
        np.array(HUGE)[:, None],
        {"x0": HUGE},
        [{"x0": value} for value in HUGE],
        pd.DataFrame({"x0": HUGE}),
        pl.DataFrame({"x0": HUGE}),
        pa.table({"x0": HUGE}),
    ],
)
def test_whole_numbers_that_a_float_cannot_hold_are_refused(table):
    place = "row 1, column 'x0' holds 9007199254740993, which a float cannot hold exactly"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(DataError, match=place):
            pr.NaiveBayes().fit(table, ["a", "b"])


def test_large_whole_numbers_that_a_float_can_hold_are_numbers():
    assert numbers_of({"a": [2**60, -(2**60)]}) == [2.0**60, -(2.0**60)]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]),
        pd.DataFrame([[1, 2], [3, 4]], columns=[1, "1"]).rename(columns=lambda _: "a"),
        pa.table([[1, 3], [2, 4]], names=["a", "a"]),
    ],
)
@pytest.mark.parametrize(
    "learn",
    [
        lambda X: pr.NaiveBayes().fit(X, ["x", "y"]),
        lambda X: pr.TextClassifier().fit(X, ["x", "y"]),
        lambda X: pr.naive_bayes.GaussianNB().fit(X, ["x", "y"]),
        lambda X: pr.BayesianLinearRegression().fit(X, [0.0, 1.0]),
        lambda X: pr.BayesianLogisticRegression().fit(X, [0, 1]),
        lambda X: pr.Calibrated(pr.NaiveBayes()).fit(X, ["x", "y"]),
        lambda X: pr.audit(X, target=["x", "y"]),
    ],
)
def test_a_column_that_is_there_twice_is_named(learn, table):
    with pytest.raises(DataError) as caught:
        learn(table)
    assert str(caught.value) == "column 'a' is there twice (positions 0 and 1); rename one."


def test_names_that_are_the_same_as_text_are_refused():
    with pytest.raises(DataError, match="column '1' is there twice"):
        read_table({1: [1, 2], "1": [3, 4]})


BAD_UTF8 = pa.Array.from_buffers(
    pa.string(), 3, [None, pa.py_buffer(np.array([0, 1, 2, 3], np.int32)), pa.py_buffer(b"a\xffb")]
)
NOT_UTF8 = "holds bytes that are not UTF-8; decode them with the right encoding first."


@pytest.mark.parametrize("column", [BAD_UTF8, BAD_UTF8.dictionary_encode()], ids=["text", "dictionary"])
def test_arrow_text_that_is_not_utf8_is_refused_with_its_row(column):
    with pytest.raises(DataError) as caught:
        read_table(pa.table({"a": column}))
    assert str(caught.value) == f"row 1, column 'a' {NOT_UTF8}"


def test_arrow_texts_and_labels_that_are_not_utf8_are_refused():
    with pytest.raises(DataError, match=f"^row 1 {NOT_UTF8}$"):
        pr.TextClassifier().fit(BAD_UTF8, ["x", "y", "x"])
    with pytest.raises(DataError, match=rf"^y\[1\] {NOT_UTF8}$"):
        pr.NaiveBayes().fit({"a": [1, 2, 3]}, BAD_UTF8)


@pytest.mark.parametrize(
    ("table", "held"),
    [
        ({"x0": np.array([1, 2], dtype="m8[s]")}, "timedelta64[s]"),
        ({"x0": [datetime.time(12)] * 2}, "a time in row 0"),
        (np.array([[datetime.date(2020, 1, 1)], [None]]), "a date in row 0"),
    ],
)
def test_times_and_dates_without_names_are_refused_with_what_to_do(table, held):
    with pytest.raises(KindError) as caught:
        read_table(table)
    assert str(caught.value) == (
        f"column 'x0' holds dates or times ({held}); dates are learned from tables with names; turn others into a "
        "number, such as hours, or leave them out."
    )


LABELLED = [{"c": "red", "n": 1.0}, {"c": "blue", "n": 2.0}, {"c": "red", "n": 3.0}, {"c": "blue", "n": 4.0}]


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "explain"])
def test_a_number_in_a_column_of_labels_is_refused(ask):
    model = pr.NaiveBayes().fit(LABELLED, list("xyxy"))
    with pytest.raises(KindError) as caught:
        getattr(model, ask)([{"c": None, "n": 1.0}, {"c": 5, "n": 1.0}])
    message = "row 1, column 'c' holds 5.0; the model has learned labels such as 'blue' there: give the same type."
    assert str(caught.value) == message


def test_a_number_in_a_column_of_labels_is_neither_learned_nor_forgotten():
    model = pr.NaiveBayes().fit(LABELLED, list("xyxy"))
    for change in (model.partial_fit, model.forget):
        with pytest.raises(KindError, match=r"row 0, column 'c' holds 5\.0; the model has learned labels such as"):
            change([{"c": 5, "n": 1.0}], ["x"])
    assert model.categories_["c"].tolist() == ["blue", "red"]


def test_a_label_in_a_column_of_declared_categories_that_are_numbers_is_refused():
    model = pr.NaiveBayes({"c": "categorical"}).fit({"c": [1, 2, 1, 2]}, list("xyxy"))
    assert model.predict({"c": [2]}).tolist() == ["y"]
    with pytest.raises(KindError, match=r"row 0, column 'c' holds 'red'; the model has learned numbers such as 1.0"):
        model.predict({"c": ["red"]})


TEXTS = ["win cash now", "lunch at noon", "cash prize", "see you at lunch"]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"text": TEXTS}),
        pl.DataFrame({"text": TEXTS}),
        pa.table({"text": TEXTS}),
        np.array(TEXTS)[:, None],
        pd.Series(TEXTS),
    ],
    ids=["pandas", "polars", "arrow", "array", "series"],
)
def test_a_table_with_one_column_of_texts_is_read_as_texts(table):
    model = pr.TextClassifier(calibrate=False).fit(table, list("xyxy"))
    expected = pr.TextClassifier(calibrate=False).fit(TEXTS, list("xyxy")).predict_proba(TEXTS)
    np.testing.assert_array_equal(model.predict_proba(table), expected)


def test_a_table_with_several_columns_is_no_list_of_texts():
    with pytest.raises(KindError) as caught:
        pr.TextClassifier().fit(pd.DataFrame({"text": TEXTS, "n": range(4)}), list("xyxy"))
    assert str(caught.value) == (
        "X is a table with 2 columns ('text', 'n'); give one column of texts, such as X['text'], or use NaiveBayes, "
        "which learns from all columns."
    )


@pytest.mark.parametrize(
    "model", [pr.TextClassifier(buckets=10**12), pr.NaiveBayes({"text": pr.families.Text(buckets=10**12)})]
)
def test_more_buckets_than_memory_are_refused(model, monkeypatch):
    monkeypatch.setattr("priory.core.sharding.find_memory_limit", lambda: 16 << 30)
    with pytest.raises(ModelTooLargeError) as caught:
        model.fit(TEXTS if isinstance(model, pr.TextClassifier) else {"text": TEXTS}, list("xyxy"))
    assert str(caught.value) == (
        "buckets=1,000,000,000,000 with 2 classes need about 44,703 GiB, and this machine has 16; use fewer, such as "
        "262,144."
    )


@pytest.mark.parametrize("table", [sparse.csr_array(np.eye(3)), np.array(3)])
def test_the_audit_refuses_what_is_not_a_table(table):
    with pytest.raises((DataError, KindError), match=r"X is a sparse matrix|Expected 2D array, got 0D array"):
        pr.audit(table, target=["a", "b", "a"])


CELLS = [
    *(0, 1, -3, True, 2.5, -0.0, 2**53, 2**53 + 1, 10**400, None, np.nan, np.inf, np.int64(4), np.float32(1.1)),
    *("red", "", "12,5", "1.234,5", "é", "\ud800", b"raw", np.str_("blue")),
]


def read_cells(X):
    """The names, kinds and cells of a table, or the error that refuses it."""
    try:
        table = read_table(X)
    except (DataError, KindError) as error:
        return str(error)
    cells = [[repr(table.get_cell(row, j)) for row in range(table.rows)] for j in range(len(table.names))]
    return table.column_kinds(), cells


@given(st.lists(st.sampled_from(CELLS), min_size=1, max_size=4), st.sampled_from([1, 12]))
def test_a_list_of_dicts_is_read_as_an_array_of_objects_is_cell_by_cell(cells, times):
    cells = times * cells
    column = np.empty((len(cells), 1), dtype=object)
    column[:, 0] = cells
    assert read_cells([{"x0": cell} for cell in cells]) == read_cells(column)


def test_dicts_may_lack_columns_and_name_them_by_numbers():
    table = read_table([{0: 1.5, "b": "x"}, {"c": True, 0: 2}])
    assert table.column_kinds() == {"0": "number", "b": "label", "c": "number"}
    assert [table.get_cell(1, j) for j in range(3)] == [2.0, None, 1.0]
