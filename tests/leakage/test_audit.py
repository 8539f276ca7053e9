"""The leakage audit: what comes in, what goes out, and that clean data are clean."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.preprocessing import StandardScaler

import priory as pr
from leakage_data import only, table, texts
from priory.errors import DataError, ModelTooLargeError
from priory.leakage import Finding, Findings, Severity

# -- clean tables say nothing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_a_clean_table_is_clean(seed):
    frame = table(seed=seed)
    findings = pr.audit(frame[:800], frame[800:], target="y")
    assert len(findings) == 0, str(findings)
    assert findings.exit_code == 0
    assert findings.severity is None


def test_clean_texts_are_clean():
    documents, labels = texts()
    assert len(pr.audit(documents[:300], documents[300:], target=(labels[:300], labels[300:]))) == 0


def test_copies_that_chance_explains_are_low():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({f"x{j}": rng.integers(2, size=500) for j in range(4)})
    found = only(pr.audit(frame, target=rng.integers(2, size=500)), "duplicates")
    assert found.severity == Severity.LOW
    assert "this may be chance" in found.what


# -- what comes in, what goes out --------------------------------------------------------------------------------------


def leaky():
    frame = table()
    return frame.assign(answer=(frame.y == "yes").astype(int), note="<b>&\x1b[31m")


@pytest.mark.parametrize(
    "given",
    [
        lambda f: (f, "y"),
        lambda f: (pl.from_pandas(f), "y"),
        lambda f: (pl.from_pandas(f).to_arrow(), "y"),
        lambda f: (f.to_dict("records"), "y"),
        lambda f: (f.to_dict("list"), "y"),
        lambda f: (f.drop(columns="y"), f.y.to_numpy()),
        lambda f: (f.drop(columns="y"), f.y),
        lambda f: (f.drop(columns="y"), f.y.tolist()),
    ],
    ids=["pandas", "polars", "pyarrow", "dicts", "columns", "array", "series", "list"],
)
def test_every_table_gives_the_same_findings(given):
    train, target = given(leaky())
    assert {f.columns for f in pr.audit(train, target=target) if f.kind == "column"} == {("answer",)}


def test_an_array_of_numbers():
    frame = leaky()
    found = pr.audit(frame[["x0", "x1", "x2", "answer"]].to_numpy(), target=frame.y)
    assert only(found, "column").columns == ("x3",)


def test_a_quantity_to_predict_is_cut_into_parts():
    frame = table().drop(columns="y")
    views = np.exp(np.random.default_rng(0).normal(size=len(frame)))
    found = pr.audit(frame.assign(shares=views * 3, views=views), target="views")
    assert only(found, "column").columns == ("shares",)


def test_findings_are_a_sequence_the_gravest_first():
    findings = pr.audit(leaky(), target="y")
    assert isinstance(findings, Findings)
    assert isinstance(findings[0], Finding)
    assert isinstance(findings[:1], Findings)
    assert [f.severity for f in findings] == sorted((f.severity for f in findings), reverse=True)
    assert findings.severity == Severity.HIGH
    assert findings.exit_code == 3
    assert findings[-1:].exit_code == 0


def test_findings_as_a_table_and_as_json():
    findings = pr.audit(leaky(), target="y")
    frame = findings.to_frame()
    assert len(frame) == len(findings)
    assert frame.severity[0] == "high"
    plain = json.loads(findings.to_json())
    assert plain["exit_code"] == 3
    assert plain["findings"][0]["columns"] == ["answer"]
    assert plain["findings"][0]["effect"]["before"] == 1.0


def test_what_is_shown_cannot_harm_the_reader():
    findings = pr.audit(leaky(), target="y")
    assert "\x1b" not in str(findings)
    assert "\\x1b" in str(findings)
    page = findings.to_html()
    assert "<b>&" not in page
    assert "&lt;b&gt;&amp;" in page
    assert page.count("<article") == len(findings)
    assert "<script" not in page
    assert "http" not in page


def test_a_finding_in_words():
    frame = table().assign(one=1)
    assert str(pr.audit(frame, target="y")) == (
        "LOW     column 'one' holds '1' in every row\n"
        "        where columns one\n"
        "        sure  counted, not inferred\n"
        "        do    Leave it out.\n\n"
        "1 finding: 0 high, 0 medium, 1 low; 8 tests, false alarms at most 1%"
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: pr.audit(f, target="z"), "the table has no column 'z'"),
        (lambda f: pr.audit(f, target=[1, 2, 3]), "target has 3 values, but the table has 1200 rows"),
        (lambda f: pr.audit(f, f.rename(columns=lambda c: c + "_")), "train and test have no column in common"),
        (lambda f: pr.audit(f, f.assign(x0="a"), target="y"), "column 'x0' holds numbers in one table and labels in"),
        (lambda f: pr.audit(f.assign(y=f.y.where(f.x0 > -1)), target="y"), "the target 'y' is missing"),
        (lambda f: pr.audit(f, target="y", pipeline=StandardScaler()), "pipeline needs the test table"),
        (lambda f: pr.audit(f[:0], target="y"), "a table has no rows"),
    ],
)
def test_what_cannot_be_audited_is_said(call, message):
    with pytest.raises(DataError, match=message):
        call(table())


def test_a_target_with_too_many_classes_is_refused_before_the_memory_is_taken():
    with pytest.raises(ModelTooLargeError, match="the target 'target' has 20,000 values in 20,000 rows"):
        pr.audit({"x": np.arange(20_000.0)}, target=[f"c{i}" for i in range(20_000)])


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_few_rows_are_enough_to_ask(rows):
    frame = table()[:rows]
    findings = pr.audit(frame, frame, target="y")
    assert findings.exit_code in (0, 3)
    assert json.loads(findings.to_json())["findings"] is not None
