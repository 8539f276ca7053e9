"""Leaks by columns, groups, time and drift."""

import json

import numpy as np
import pandas as pd
import pytest

import priory as pr
from leakage_data import DATA, kinds, needs, only, table, texts
from priory.leakage import Severity

# -- columns -----------------------------------------------------------------------------------------------------------


def test_a_copy_of_the_target_is_found_and_costs_the_score():
    frame = table()
    frame["outcome_code"] = np.where(frame.y == "yes", 7.0, 3.0)
    found = only(pr.audit(frame, target="y"), "column")
    assert found.severity == Severity.HIGH
    assert found.columns == ("outcome_code",)
    assert found.effect.before == 1.0 > found.effect.after


def test_two_copies_do_not_hide_each_other():
    frame = table()
    frame["a"] = frame["b"] = (frame.y == "yes").astype(int)
    assert {f.columns for f in pr.audit(frame, target="y").of("column")} == {("a",), ("b",)}


def test_a_column_out_of_line_with_the_rest_is_found():
    frame = table()
    flipped = (frame.y == "yes") ^ (np.random.default_rng(0).random(len(frame)) < 0.1)
    frame["hint"] = flipped.map({True: "a", False: "b"})
    found = only(pr.audit(frame, target="y"), "column")
    assert found.severity == Severity.MEDIUM
    assert found.columns == ("hint",)


def test_a_few_columns_that_do_as_well_as_all_are_named():
    frame = table()
    frame["hint"] = (frame.y == "yes") ^ (np.random.default_rng(0).random(len(frame)) < 0.02)
    assert only(pr.audit(frame, target="y"), "subset").columns == ("hint",)


def test_missingness_that_knows_the_label_is_found():
    frame = table()
    frame["discharge"] = np.where(frame.y == "yes", np.random.default_rng(0).normal(size=len(frame)), np.nan)
    found = only(pr.audit(frame, target="y"), "missing")
    assert found.severity == Severity.HIGH
    assert "perhaps filled in after the outcome" in found.what


def test_missingness_at_random_is_not_found():
    frame = table()
    frame.loc[np.random.default_rng(0).random(len(frame)) < 0.3, "x1"] = np.nan
    assert "missing" not in kinds(pr.audit(frame, target="y"))


def test_constant_and_empty_columns_are_low():
    frame = table().assign(one=1, none=None)
    found = pr.audit(frame, target="y").of("constant")
    assert {(f.columns, f.severity) for f in found} == {(("one",), Severity.LOW), (("none",), Severity.LOW)}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("row", np.arange(1200)),
        ("ticket", np.cumsum(np.random.default_rng(0).integers(1, 9, 1200))),
        ("n", np.random.default_rng(0).permutation(1200)),
        ("patient_id", np.random.default_rng(0).choice(10**7, 1200, replace=False)),
        ("code", np.array([f"A{i * 7919 % 100003}" for i in range(1200)])),
    ],
)
def test_identifiers_are_found(name, values):
    found = only(pr.audit(table().assign(**{name: values}), target="y"), "identifier")
    assert (found.severity, found.columns) == (Severity.LOW, (name,))


def test_a_measurement_is_no_identifier():
    assert "identifier" not in kinds(pr.audit(table().assign(cents=np.random.default_rng(0).integers(0, 10**7, 1200))))


def test_a_row_number_of_a_sorted_table_knows_the_label():
    frame = table().sort_values("y", kind="stable").reset_index(drop=True)
    found = pr.audit(frame.assign(number=np.arange(1200)), target="y")
    assert {f.severity for f in found.of("identifier")} == {Severity.LOW, Severity.MEDIUM}
    assert only(found, "column").columns == ("number",)
    assert "order" in kinds(found)


@needs("titanic")
@needs("breast_cancer_wisconsin")
@pytest.mark.parametrize(
    ("name", "column", "label"), [("breast_cancer_wisconsin", "id", "class"), ("titanic", "PassengerId", "Survived")]
)
def test_the_ids_of_real_tables(name, column, label):
    frame = pd.read_csv(DATA / name / f"{name}.csv")
    meta = json.loads((DATA / name / "meta.json").read_text())
    found = pr.audit(frame, target=meta["label"]).of("identifier")
    assert column in {f.columns[0] for f in found}


# -- groups, time, drift -----------------------------------------------------------------------------------------------


def patients(rows=1500, seed=0):
    rng = np.random.default_rng(seed)
    patient = rng.integers(rows // 4, size=rows)
    marks = rng.normal(size=(rows // 4, 4)) * 3
    frame = pd.DataFrame(marks[patient] + rng.normal(size=(rows, 4)), columns=list("abcd"))
    frame["y"] = (marks[patient, 0] + rng.normal(size=rows) > 0).astype(int)
    return frame.assign(patient=rng.permutation(10**6)[patient])


def test_a_group_on_both_sides_is_found():
    frame = patients()
    found = only(pr.audit(frame[:1000], frame[1000:], target="y", groups="patient"), "groups")
    assert found.severity == Severity.HIGH
    share = frame.patient[1000:].isin(frame.patient[:1000]).mean()
    assert found.what.startswith(f"{share:.1%}")
    assert found.effect.rows == 500


def test_groups_given_as_arrays_and_kept_apart_are_fine():
    frame = patients()
    side = frame.patient % 3 == 0
    train, test = frame[~side], frame[side]
    given_groups = (train.patient.to_numpy(), test.patient.to_numpy())
    parts = [part.drop(columns="patient") for part in (train, test)]
    assert "groups" not in kinds(pr.audit(*parts, target="y", groups=given_groups))


def test_a_column_that_looks_like_a_group_is_suggested():
    frame = patients()
    found = only(pr.audit(frame[:1000], frame[1000:], target="y"), "groups")
    assert (found.severity, found.columns) == (Severity.MEDIUM, ("patient",))


def test_training_rows_later_than_test_rows_are_found():
    frame = table().assign(day=pd.date_range("2024-01-01", periods=1200, freq="h"))
    shuffled = frame.sample(frac=1, random_state=0)
    found = only(pr.audit(shuffled[:800], shuffled[800:], target="y", time="day"), "time")
    assert found.severity == Severity.HIGH
    assert len(found.rows) > 700
    zoned = shuffled.assign(day=shuffled.day.dt.tz_localize("UTC"))
    assert only(pr.audit(zoned[:800], zoned[800:], target="y", time="day"), "time").rows == found.rows
    assert "time" not in kinds(pr.audit(frame[:800], frame[800:], target="y", time="day"))


def test_dates_written_as_labels_stand_in_their_order():
    frame = table().assign(day=pd.date_range("2024-01-01", periods=1200).strftime("%Y-%m-%d"))
    assert "time" in kinds(pr.audit(frame[400:], frame[:400], target="y", time="day"), Severity.HIGH)
    assert "time" not in kinds(pr.audit(frame[:800], frame[800:], target="y", time="day"))


def hospital(rows, first, seed):
    """At hospital I the suspected are sent to the better scanner; at hospital II there is no such rule."""
    rng = np.random.default_rng(seed)
    ill = rng.random(rows) < 0.4
    better = np.where(rng.random(rows) < 0.9, ill, ~ill) if first else rng.random(rows) < 0.1
    return pd.DataFrame(
        {
            "shadow": rng.normal(size=rows) + ill,
            "age": rng.normal(60, 9, size=rows),
            "scanner": np.where(better, "fine", "coarse"),
            "diagnosis": np.where(ill, "cancer", "none"),
        }
    )


def test_the_scanner_of_hospital_one():
    findings = pr.audit(hospital(2000, True, 0), hospital(1000, False, 1), target="diagnosis")
    assert only(findings, "drift").columns == ("scanner",)
    shortcut = only(findings, "shortcut")
    assert (shortcut.severity, shortcut.columns) == (Severity.HIGH, ("scanner",))
    assert only(findings, "column").columns == ("scanner",)
    assert shortcut.effect.after > shortcut.effect.before


def test_the_views_of_an_article():
    """Predict how many views an article will get: what knows is its author, and its date."""
    rng = np.random.default_rng(0)
    author = rng.integers(200, size=1200)
    fame = rng.normal(size=200)
    frame = pd.DataFrame(
        {
            "date": rng.permutation(pd.date_range("2023-01-01", periods=1200, freq="D")),
            "length": rng.normal(800, 200, size=1200).round() + 100 * fame[author],
            "author": np.array([f"author {i * 37 % 200}" for i in range(200)])[author],
            "language": rng.choice(["en", "de"], size=1200),
            "views": np.exp(4 + fame[author] + 0.3 * rng.normal(size=1200)).round(),
        }
    )
    findings = pr.audit(frame[:800], frame[800:], target="views")
    assert only(findings, "groups").columns == ("author",)
    assert (only(findings, "time").columns, only(findings, "time").severity) == (("date",), Severity.LOW)
    assert "audit with time='date'" in only(findings, "time").advice


def test_texts_of_another_place_are_told_apart():
    documents, _ = texts()
    other = [f"{text} parish vicar" for text in texts(seed=1)[0]]
    found = only(pr.audit(documents, other), "drift")
    assert found.severity == Severity.HIGH
    assert found.examples[0].startswith(("parish", "vicar"))
