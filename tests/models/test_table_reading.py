"""Tables of every origin are read right, or refused in one line that says what to do."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import priory as pr
from priory.errors import DataError, KindError
from priory.models.table_reading import read_table


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
        (pd.Series(pd.to_datetime(["2020-01-01"] * 3)), "Datetime"),
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
