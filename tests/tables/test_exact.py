"""Exact sums by group: the nearest double, in any order of the rows, from any kind of table."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import priory as pr
from priory.errors import DataError, KindError


def make_frame(rows: int = 5000) -> pd.DataFrame:
    draw = np.random.default_rng(3)
    size = draw.normal(0, 1, rows) * 10.0 ** draw.integers(-20, 20, rows)
    size[draw.random(rows) < 0.05] = np.nan
    groups = {"shop": draw.integers(0, 9, rows), "day": draw.choice(["mon", "tue", None], rows)}
    return pd.DataFrame(groups | {"size": size, "count": draw.integers(-(2**62), 2**62, rows), "text": "x"})


def test_sums_are_the_nearest_doubles_and_whole_numbers_exact():
    frame = make_frame()
    for found in pr.exact.group_sums(frame, ["shop", "day"]).to_pylist():
        is_day = frame["day"].isna() if found["day"] is None else frame["day"] == found["day"]
        own = frame[(frame["shop"] == found["shop"]) & is_day]
        assert found["size"] == math.fsum(own["size"].dropna())
        assert int(found["count"]) == sum(map(int, own["count"]))


@pytest.mark.parametrize(
    "convert", [lambda f: f, pl.from_pandas, lambda f: pa.Table.from_pandas(f, preserve_index=False)]
)
def test_neither_order_nor_kind_of_table_changes_a_bit(convert):
    frame = make_frame()
    expected = pr.exact.group_sums(frame, "shop")
    for seed in range(3):
        found = pr.exact.group_sums(convert(frame.sample(frac=1, random_state=seed)), "shop")
        assert found.equals(expected)


def test_groups_are_those_of_pandas():
    frame = make_frame()
    expected = frame.groupby(["shop", "day"], dropna=False)[["size", "count"]].sum().reset_index()
    found = pr.exact.group_sums(frame.assign(day=frame["day"].astype("category")), ["shop", "day"])
    keys = expected[["shop", "day"]].astype(object).where(expected[["shop", "day"]].notna(), None)
    assert found.select(["shop", "day"]).to_pylist() == keys.to_dict("records")
    np.testing.assert_allclose(found["size"].to_numpy(), expected["size"], rtol=1e-9)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0]])
def test_both_zeros_are_one_group(order):
    table = pa.table({"g": [0.0, -0.0, math.nan, None], "v": [1, 2, 3, 4]}).take(order)
    found = pr.exact.group_sums(table, "g").to_pydict()
    assert str(found) == "{'g': [0.0, nan, None], 'v': [3, 3, 4]}"


def test_a_table_without_rows_has_no_groups():
    table = pl.DataFrame({"g": ["a"], "v": [1.0], "n": [1]}).head(0)
    assert pr.exact.group_sums(table, "g").to_pydict() == {"g": [], "v": [], "n": []}


def test_columns_that_are_not_numbers_are_left_out():
    table = {"g": ["a", None, "a"], "t": ["x", "y", "z"], "b": [True, True, None]}
    assert pr.exact.group_sums(table, "g").to_pydict() == {"g": ["a", None], "b": [1, 1]}


def test_faults_are_named():
    with pytest.raises(DataError, match="no column 'shpo'"):
        pr.exact.group_sums({"shop": [1]}, "shpo")
    with pytest.raises(DataError, match="by names no column"):
        pr.exact.group_sums({"shop": [1]}, [])
    with pytest.raises(DataError, match="infinite"):
        pr.exact.group_sums({"shop": [1], "x": [math.inf]}, "shop")
    with pytest.raises(DataError, match="table cannot be read"):
        pr.exact.group_sums(pl.LazyFrame({"shop": [1]}), "shop")
    with pytest.raises(KindError, match="column 'shop' holds cells of several values"):
        pr.exact.group_sums({"shop": [[1], [2]]}, "shop")
    with pytest.raises(KindError, match="decimals"):
        pr.exact.group_sums({"shop": [1], "x": pa.array([1], pa.decimal128(4, 1))}, "shop")
