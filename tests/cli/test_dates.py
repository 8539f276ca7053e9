"""A column of dates from the file to the explanation."""

import json
import subprocess
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from priory.sources.cell_parsing import compute_date_part
from priory.tables.dates import HOUR, KIND_BY_DATE_PART, MONTH, WEEKDAY, parse_dates
from shell import PRIORY, rows_of, write


@pytest.fixture
def calls(run):
    """calls.csv: calls at night are urgent, and a model of it."""
    start = datetime(2024, 1, 1)
    rows = []
    for i in range(400):
        when = start + timedelta(hours=7 * i)
        urgent = when.hour < 6 if i % 9 else when.hour >= 6
        rows.append([when.isoformat(sep=" ") if i % 31 else "", i % 5, "urgent" if urgent else "normal"])
    write("calls.csv", ["when", "n", "label"], rows)
    code, out, err = run("train", "calls.csv", "--target", "label", "--no-audit", "--json")
    assert code == 0
    assert "column 'when' holds dates; learned as hour, weekday, month and days since 2000" in err
    return json.loads(out)


def test_a_model_learns_the_hour_and_every_command_reads_the_column(calls, run):
    assert list(calls["columns"])[:4] == [f"when ({part})" for part in KIND_BY_DATE_PART]
    assert calls["scores"]["accuracy"]["value"] > 0.8
    write("new.csv", ["n", "when"], [[1, "2025-06-02T03:30:00+02:00"], [1, "2.6.2025 14:00"], [1, ""]])
    assert run("predict", "calls.priory", "new.csv", "-o", "out.csv")[0] == 0
    assert [row["label"] for row in rows_of("out.csv")][:2] == ["urgent", "normal"]
    assert list(rows_of("out.csv")[0]) == ["n", "when", "label", "probability", "certainty"]
    for command in ("evaluate", "forget", "learn"):
        assert run(command, "calls.priory", "calls.csv")[0] == 0


def test_the_ledger_says_it_as_a_person_would(calls, run):
    code, out, _ = run("explain", "calls.priory", "when=2025-06-02 03:30", "n=1")
    assert code == 0
    assert "03:00 to 04:00" in out
    assert "Monday" in out
    parts = run("explain", "calls.priory", "when (hour)=03:00 to 04:00", "--json")[1]
    assert json.loads(parts)[0]["label"] == "urgent"


def test_a_cell_that_is_no_date_is_named(calls, here):
    write("new.csv", ["n", "when"], [[1, "2025-06-02"], [1, "tomorrow"]])
    done = subprocess.run(
        [*PRIORY, "predict", "calls.priory", "new.csv"], capture_output=True, text=True, cwd=here, check=False
    )
    assert done.returncode == 3
    assert done.stderr == (
        "priory: new.csv:3:2: 'tomorrow' is not a date; write it as 2024-05-31, or leave the cell empty\n"
    )


def test_dates_can_be_declared(run):
    write(
        "few.csv",
        ["when", "label"],
        [[f"2024-0{i % 5 + 1}-03" if i % 4 else "unknown", "ab"[i % 2]] for i in range(40)],
    )
    options = ["--target", "label", "--plain", "--json", "--force"]
    assert json.loads(run("train", "few.csv", *options)[1])["columns"] == {"when": "categorical"}
    code, out, _ = run("train", "few.csv", *options, "--type", "when=date", "--missing", "unknown")
    assert (code, list(json.loads(out)["columns"])) == (0, ["when (weekday)", "when (month)", "when (days since 2000)"])


@given(st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)))
def test_parts_are_those_of_the_calendar(moment):
    dates = parse_dates(pa.array([moment.isoformat()]))
    found = {part: compute_date_part(dates, part)[0].as_py() for part in KIND_BY_DATE_PART}
    assert found[WEEKDAY] == moment.strftime("%A")
    assert found[MONTH] == moment.strftime("%B")
    assert found[HOUR].startswith(f"{moment.hour:02d}:00")
    assert found["days since 2000"] == (moment.date() - datetime(2000, 1, 1).date()).days


@pytest.mark.parametrize("other", ["1.2.2024", " 2024-02-01", "2024-02-01 05:00:00.25", "1 Feb 2024 5:00"])
def test_a_date_is_the_same_whatever_notation_stands_beside_it(other):
    plain = ["2024-05-31 23:59:59", "1969-12-31 00:30", "2024-02-29", None]
    alone, mixed = parse_dates(pa.array(plain)), parse_dates(pa.array([*plain, other]))
    for quick, thorough in zip(alone, mixed, strict=True):
        assert np.array_equal(quick, thorough[:-1], equal_nan=True)
    assert alone[0].tolist()[:3] == [19874, -1, 19782]
    assert mixed[0][-1] == 19754


def test_moments_of_another_time_zone_are_converted_to_the_one_learned(calls, run):
    moments = [datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=7 * i) for i in range(200)]
    labels = ["urgent" if moment.hour < 6 else "normal" for moment in moments]
    for zone in ("UTC", "Asia/Tokyo"):
        table = pa.table({"when": pa.array(moments, pa.timestamp("us", zone)), "label": labels})
        parquet.write_table(table, f"{zone[:3]}.parquet")
    rows = [[moment.astimezone(ZoneInfo("America/New_York")).isoformat()] for moment in moments]
    write("new.csv", ["when"], rows)
    assert run("train", "UTC.parquet", "--target", "label", "--no-audit")[0] == 0
    for number, file in enumerate(["UTC.parquet", "Asi.parquet", "new.csv"]):
        assert run("predict", "UTC.priory", file, "-o", f"out{number}.csv")[0] == 0
    answers = [[row["probability"] for row in rows_of(f"out{number}.csv")] for number in range(3)]
    assert answers[0] == answers[1] == answers[2]
    table = parquet.read_table("UTC.parquet")
    parquet.write_table(table.append_column("n", [[1] * 200]), "new.parquet")
    code, _, err = run("predict", "calls.priory", "new.parquet", "-o", "out.csv")
    assert code == 3
    assert "column 'when' holds dates of UTC; the model has learned dates without a time zone" in err
