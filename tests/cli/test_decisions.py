"""How predict chooses an answer, what it adds to the rows, and what it says at the end."""

import json
import subprocess

import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from shell import PRIORY, rows_of, write


@pytest.fixture
def credit(run):
    """credit.csv with 90 good and 30 bad rows of one column, and credit.priory trained on it."""
    rows = [["good", "yes" if i % 3 else "no"] for i in range(90)] + [
        ["bad", "yes" if i % 3 == 0 else "no"] for i in range(30)
    ]
    write("credit.csv", ["verdict", "job"], rows)
    assert run("train", "credit.csv", "--target", "verdict", "--plain")[0] == 0


def answers(out):
    return [json.loads(line) for line in out.splitlines()]


def test_proba_and_top_add_columns_that_add_up(table, run):
    code, out, _ = run("predict", "inbox.priory", "inbox.csv", "--proba", "--top", "9", "--json")
    assert code == 0
    for row in answers(out):
        names = ["normal", "spam", "urgent"]
        p = {name: row[f"probability_{name}"] for name in names}
        assert sum(p.values()) == pytest.approx(1, abs=3e-6)
        ranked = [row["predicted_label"], row["label_2"], row["label_3"]]
        assert sorted(ranked) == names
        assert [p[name] for name in ranked] == sorted(p.values(), reverse=True)
        assert p[ranked[1]] == row["probability_2"]
        assert "label_4" not in row


def test_a_costly_mistake_changes_the_answer_where_it_lowers_the_expected_cost(credit, run):
    plain = answers(run("predict", "credit.priory", "credit.csv", "--json", "--proba")[1])
    assert {row["label"] for row in plain} == {"good", "bad"} or {row["label"] for row in plain} == {"good"}
    code, out, err = run("predict", "credit.priory", "credit.csv", "--json", "--proba", "--cost", "fn=10,fp=1")
    assert code == 0
    assert "priory: the positive class is 'bad', the rarer one in training\n" in err
    for row in answers(out):
        missed, alarmed = 10 * row["probability_bad"], row["probability_good"]
        assert row["label"] == ("bad" if alarmed < missed else "good")
        assert row["expected_cost"] == pytest.approx(min(missed, alarmed), abs=1e-5)
    named = run("predict", "credit.priory", "credit.csv", "--json", "--proba", "--cost", "bad:good=10")[1]
    assert named == out
    reversed_ = run("predict", "credit.priory", "credit.csv", "--json", "--cost", "fn=10", "--positive", "good")[1]
    assert {row["label"] for row in answers(reversed_)} == {"good"}


def test_costs_may_leave_rows_without_an_answer(credit, run):
    code, out, err = run("predict", "credit.priory", "credit.csv", "--json", "--cost", "abstain=0.2")
    assert code == 0
    for row in answers(out):
        assert (row["label"] is None) == (row["probability"] < 0.8)
        assert row["expected_cost"] <= 0.2
    n_without = sum(row["label"] is None for row in answers(out))
    assert 0 < n_without < 120
    assert f"; {n_without} without an answer" in err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--cost", "fn"], "--cost: 'fn' is not a cost"),
        (["--cost", "fn=many"], "'many' is not a cost; give a number"),
        (["--cost", "fn=1", "--threshold", "0.5"], "exclude each other"),
        (["--positive", "bad"], "use it with --cost"),
        (["--threshold", "0.5,bad=0.4"], "one number for all classes"),
        (["--threshold", "bad=2"], "2 is not allowed; use a number from 0 to 1"),
        (["--top", "0"], "0 is not in the range"),
    ],
)
def test_options_that_make_no_sense_are_usage_errors(credit, options, problem, run):
    code, out, err = run("predict", "credit.priory", "credit.csv", *options)
    assert (code, out) == (2, "")
    assert problem in err


def test_costs_name_classes_of_the_model(credit, table, run):
    code, _, err = run("predict", "credit.priory", "credit.csv", "--cost", "bat:good=1")
    assert (code, err) == (3, "priory: the model has no class 'bat' (did you mean 'bad'?); it has 'bad', 'good'\n")
    code, _, err = run("predict", "inbox.priory", "inbox.csv", "--cost", "fn=1")
    assert code == 3
    assert "fn and fp are for two classes, and the model has 3" in err


def test_a_threshold_of_one_class_is_where_the_answer_changes(credit, run):
    rows = answers(run("predict", "credit.priory", "credit.csv", "--json", "--proba", "--threshold", "bad=0.2")[1])
    assert {row["label"] for row in rows} == {"good", "bad"}
    assert all(row["label"] == ("bad" if row["probability_bad"] >= 0.2 else "good") for row in rows)
    options = ["--threshold", "bad=0.2", "--threshold", "good=0.99"]
    rows = answers(run("predict", "credit.priory", "credit.csv", "--json", "--proba", *options)[1])
    assert {row["label"] for row in rows} == {None, "bad"}


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet", "out.arrow"])
def test_numbers_of_a_csv_stay_numbers(table, name, run):
    write("new.csv", ["id", "sender", "hour", "links", "text"], [["007", "stranger", "3", "", "win"]])
    assert run("predict", "inbox.priory", "new.csv", "-o", name)[0] == 0
    if name.endswith("jsonl"):
        with open(name, encoding="utf-8") as lines:
            found = pa.Table.from_pylist(answers(lines.read()))
    else:
        found = parquet.read_table(name) if name.endswith("parquet") else feather.read_table(name)
    row = found.to_pylist()[0]
    assert (row["id"], row["hour"], row["links"]) == ("007", 3.0, None)
    assert isinstance(row["probability"], float)
    run("predict", "inbox.priory", "new.csv", "-o", "out.csv")
    assert rows_of("out.csv")[0]["hour"] == "3"  # as it was


def test_the_closing_line_sums_up_and_reports_drift(credit, run):
    _, out, err = run("predict", "credit.priory", "credit.csv", "--threshold", "0.8", "--json")
    rows = answers(out)
    certain = [row["probability"] for row in rows if row["label"]]
    assert f"priory: 120 rows: good {sum(r['label'] == 'good' for r in rows) / 120:.1%}; " in err
    assert f"mean probability of the answer {sum(certain) / len(certain):.1%}" in err
    assert "drift" not in err
    write("poor.csv", ["job"], [["no"]] * 500)
    _, _, err = run("predict", "credit.priory", "poor.csv")
    assert "priory: drift: the classes are not as in training: bad " in err
    assert "(in training 25.0%)" in err


def test_one_process_from_a_pipe_to_a_decision(credit, here):
    command = [*PRIORY, "predict", "credit.priory", "-", "--cost", "fn=10", "--top", "2"]
    done = subprocess.run(command, input="job\nno\nyes\n", capture_output=True, text=True, cwd=here, check=True)
    header, first, _ = done.stdout.splitlines()
    assert header == "job,label,probability,certainty,expected_cost,label_2,probability_2"
    assert first.startswith("no,bad,")
    assert "priory: 2 rows: " in done.stderr
