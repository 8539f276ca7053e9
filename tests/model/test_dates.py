"""Dates in the tables of the library: their parts are columns, whoever makes the table."""

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import priory as pr
from priory.core.content_hash import hash_content
from priory.errors import DataError, KindError, PrioryWarning
from priory.tables.table_reading import read_table

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


# -- dates that come late ------------------------------------------------------------------------------------------


def save_to_bytes(model, folder):
    pr.save(model, folder / "late.priory")
    return (folder / "late.priory").read_bytes()


LATE = [{"n": row["n"], "when": None if i < 20 else row["when"]} for i, row in enumerate(ROWS)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("new_columns", ["learn", "ignore", "error"])
@pytest.mark.parametrize("cuts", [(20,), (1, 2, 19, 21, 60), (7, 119)])
def test_a_date_column_that_begins_empty_is_that_of_one_table(cuts, new_columns, tmp_path):
    whole = pr.NaiveBayes(new_columns=new_columns).fit(LATE, LABELS)
    assert whole.feature_names_in_.tolist() == ["n", *PARTS]
    model = pr.NaiveBayes(new_columns=new_columns)
    for start, stop in zip((0, *cuts), (*cuts, len(LATE)), strict=True):
        model.partial_fit(LATE[start:stop], LABELS[start:stop])
    model.refresh()
    whole.refresh()
    assert save_to_bytes(model, tmp_path) == save_to_bytes(whole, tmp_path)
    assert np.array_equal(model.predict_proba(FRAME), whole.predict_proba(ROWS))
    parts = [pr.NaiveBayes(new_columns=new_columns).fit(LATE[a:b], LABELS[a:b]) for a, b in ((0, 20), (20, 120))]
    for merged in (parts[0] + parts[1], parts[1] + parts[0]):
        assert save_to_bytes(merged.refresh(), tmp_path) == save_to_bytes(whole, tmp_path)


@pytest.mark.filterwarnings("ignore")
def test_a_stream_whose_first_dates_are_missing_learns_and_forgets_them(tmp_path):
    stream = pr.NaiveBayes(calibrate=False)
    for row, label in zip(LATE, LABELS, strict=True):
        stream.learn_one(row, label)
    whole = pr.NaiveBayes(calibrate=False).fit(LATE, LABELS)
    assert save_to_bytes(stream, tmp_path) == save_to_bytes(whole, tmp_path)
    for row, label in zip(LATE[20:], LABELS[20:], strict=True):
        stream.forget_one(row, label)
    first = pr.NaiveBayes(calibrate=False).fit(LATE[:20], LABELS[:20])
    assert stream.feature_names_in_.tolist() == ["n", "when"]
    assert save_to_bytes(stream, tmp_path) == save_to_bytes(first, tmp_path)


@pytest.mark.filterwarnings("error")
def test_a_model_that_has_seen_no_date_answers_tables_of_dates():
    rows = [{"n": 1.0, "when": None, "m": 2.0}, {"n": 2.0, "when": None, "m": 1.0}] * 3
    with pytest.warns(PrioryWarning, match="columns without a single value say nothing: ..when.."):
        model = pr.NaiveBayes(calibrate=False).fit(rows, ["a", "b"] * 3)
    dated = [{**row, "when": datetime(2024, 5, 6, 12)} for row in rows]
    assert np.array_equal(model.predict_proba(dated), model.predict_proba(rows))
    assert model.predict_proba_one(dated[0]) == model.predict_proba_one(rows[0])


def test_hours_that_come_after_days_are_where_one_table_has_them(tmp_path):
    days = [{"when": date(2024, 1, 1 + i), "n": 1.0} for i in range(20)]
    rows, labels = [*days, *ROWS[20:40]], LABELS[:40]
    whole = pr.NaiveBayes(calibrate=False).fit(rows, labels)
    batches = pr.NaiveBayes(calibrate=False).fit(rows[:20], labels[:20]).partial_fit(rows[20:], labels[20:])
    assert save_to_bytes(batches, tmp_path) == save_to_bytes(whole, tmp_path)
    only = pr.NaiveBayes(calibrate=False).fit(rows[:20], labels[:20])
    assert save_to_bytes(batches.forget(rows[20:], labels[20:]), tmp_path) == save_to_bytes(only, tmp_path)


# -- time zones ------------------------------------------------------------------------------------------------------


def localise(frame, zone):
    return frame.assign(when=frame["when"].dt.tz_localize("UTC").dt.tz_convert(zone))


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_the_same_moments_in_another_time_zone_have_the_same_answers(zone, tmp_path):
    learned = localise(FRAME, "Europe/Berlin")
    model = pr.NaiveBayes(calibrate=False).fit(learned, LABELS)
    pr.save(model, tmp_path / "model.priory")
    model = pr.load(tmp_path / "model.priory")
    assert model.column_zones_ == {"when": "Europe/Berlin"}
    expected = model.predict_proba(learned)
    there = localise(FRAME, zone)
    arrow = pa.Table.from_pandas(there, preserve_index=False)
    rows = [{**row, "when": None if row["when"] is pd.NaT else row["when"]} for row in there.to_dict("records")]
    written = there.assign(when=[None if cell is pd.NaT else cell.isoformat() for cell in there["when"]])
    for table in (there, arrow, pl.from_arrow(arrow), rows, written):
        assert np.array_equal(model.predict_proba(table), expected)
    assert np.allclose(list(model.predict_proba_one(rows[7]).values()), expected[7])
    model.forget(learned[60:], LABELS[60:])
    assert np.array_equal(model.predict(there), model.predict(learned))


def test_moments_with_and_without_a_time_zone_are_not_mixed():
    there = localise(FRAME, "Asia/Tokyo")
    zoned, plain = (pr.NaiveBayes(calibrate=False).fit(frame, LABELS) for frame in (there, FRAME))
    with pytest.raises(
        KindError, match="'when' holds dates without a time zone; the model has learned dates of Asia/To"
    ):
        zoned.predict(FRAME)
    with pytest.raises(
        KindError, match="'when' holds dates of Asia/Tokyo; the model has learned dates without a time z"
    ):
        plain.predict(there)
    with pytest.raises(
        KindError, match="'when' holds dates of UTC; the model has learned dates of Asia/Tokyo: convert"
    ):
        zoned.partial_fit(localise(FRAME, "Etc/UTC"), LABELS)
    with pytest.raises(
        KindError, match="'when' holds dates of UTC; the model has learned dates of Asia/Tokyo: convert"
    ):
        zoned.learn_one({"when": datetime(2024, 5, 6, tzinfo=UTC), "n": 1.0}, "normal")
    with pytest.raises(
        DataError, match="column 'when' holds dates of Asia/Tokyo in one and of no time zone in the oth"
    ):
        zoned + plain
    mixed = [{"when": datetime(2024, 5, 6, tzinfo=zone)} for zone in (UTC, None)]
    with pytest.raises(KindError, match=r"several time zones, UTC \(row 0\) and none \(row 1\); convert them to one"):
        pr.NaiveBayes().fit(mixed, ["a", "b"])
    assert zoned.predict([{"when": date(2024, 5, 6), "n": 1.0}]).shape == (1,)
