"""Dates in the tables of the library: their parts are columns, whoever makes the table."""

from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import priory as pr
from priory.core.content_hash import hash_content
from priory.errors import DataError
from priory.models.table_reading import read_table

PARTS = ["when (hour)", "when (weekday)", "when (month)", "when (days since 2000)"]
MOMENTS = [datetime(2024, 1, 1) + timedelta(hours=7 * i) if i != 5 else None for i in range(120)]
ROWS = [{"when": moment, "n": float(i % 5)} for i, moment in enumerate(MOMENTS)]
LABELS = ["urgent" if moment is not None and moment.hour < 6 else "normal" for moment in MOMENTS]
FRAME = pd.DataFrame({"when": pd.Series(MOMENTS, dtype="datetime64[us]"), "n": [row["n"] for row in ROWS]})
TABLES = {
    "pandas": FRAME,
    "polars": pl.DataFrame(ROWS),
    "pyarrow": pa.Table.from_pylist(ROWS),
    "dicts": ROWS,
    "columns": {"when": FRAME["when"].to_numpy(), "n": FRAME["n"].to_numpy()},
    "objects": FRAME.assign(when=pd.Series(MOMENTS, dtype=object)),
}


@pytest.fixture(scope="module")
def model():
    return pr.NaiveBayes(calibrate=False).fit(ROWS, LABELS)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_every_kind_of_table_gives_the_same_model(table, model):
    other = pr.NaiveBayes(calibrate=False).fit(table, LABELS)
    assert other.feature_names_in_.tolist() == [*PARTS, "n"]
    assert hash_content(other.statistics_) == hash_content(model.statistics_)
    assert model.score(table, LABELS) > 0.9


def test_the_ledger_says_dates_as_a_person_would(model):
    values = {line.name: line.value for line in model.explain(ROWS[:1])[0].lines}
    assert [values[name] for name in PARTS] == ["00:00 to 01:00", "Monday", "January", 8766.0]


@pytest.mark.parametrize(
    ("zone", "expected"),
    [("Asia/Tokyo", ["09:00 to 10:00", "Monday"]), ("America/New_York", ["20:00 to 21:00", "Sunday"])],
)
def test_the_hour_is_that_of_the_time_zone(zone, expected):
    there = pd.DataFrame({"when": pd.to_datetime(["2024-05-06 00:30"]).tz_localize("UTC").tz_convert(zone)})
    arrow = pa.table({"when": pa.array(there["when"].to_list(), pa.timestamp("us", zone))})
    tables = [there, pl.from_arrow(arrow), arrow, there.to_dict("records")]
    assert [[read_table(t).get_cell(0, place) for place in (0, 1)] for t in tables] == [expected] * len(tables)


def test_rows_one_at_a_time_are_learned_answered_and_forgotten(model):
    stream = pr.NaiveBayes(calibrate=False).fit(ROWS[:60], LABELS[:60])
    for row, label in zip(ROWS[60:], LABELS[60:], strict=True):
        stream.learn_one(row, label)
    assert hash_content(stream.statistics_) == hash_content(model.statistics_)
    answer = list(stream.predict_proba_one(ROWS[7]).values())
    assert np.allclose(answer, model.predict_proba(ROWS[7:8])[0])
    assert np.allclose(list(stream.predict_proba_one({**ROWS[7], "when": str(ROWS[7]["when"])}).values()), answer)
    for row, label in zip(ROWS[60:], LABELS[60:], strict=True):
        stream.forget_one(row, label)
    first = pr.NaiveBayes(calibrate=False).fit(ROWS[:60], LABELS[:60])
    assert hash_content(stream.statistics_) == hash_content(first.statistics_)


def test_models_of_dates_merge_and_are_kept_in_files(model, tmp_path):
    parts = [pr.NaiveBayes(calibrate=False).fit(ROWS[a:b], LABELS[a:b]) for a, b in ((0, 50), (50, 120))]
    pr.save(parts[0] + parts[1], tmp_path / "model.priory")
    loaded = pr.load(tmp_path / "model.priory")
    assert hash_content(loaded.statistics_) == hash_content(model.statistics_)
    assert np.array_equal(loaded.predict_proba(FRAME), model.predict_proba(ROWS))


def test_a_model_of_dates_reads_strings_days_and_missing_dates(model):
    strings = FRAME.assign(when=[None if moment is None else str(moment) for moment in MOMENTS])
    assert np.array_equal(model.predict_proba(strings), model.predict_proba(FRAME))
    missing = model.predict_proba(pd.DataFrame({"when": [None], "n": [1.0]}))
    assert np.array_equal(missing, model.predict_proba([{"when": None, "n": 1.0}]))
    day = model.explain([{"when": date(2024, 1, 1), "n": 1.0}])[0]
    assert [line.value for line in day.lines[:2]] == [None, "Monday"]
    with pytest.raises(DataError, match="row 1, column 'when' holds 'soon', which is not a date; give a date"):
        model.predict(pd.DataFrame({"when": ["2024-01-01", "soon"], "n": [1.0, 2.0]}))


def test_a_part_that_is_there_twice_is_refused():
    with pytest.raises(DataError, match="when"):
        read_table(FRAME.assign(**{"when (hour)": "noon"}))
