"""What train is told about columns and classes: which to use, what they are, how much they count."""

import json
import random
import subprocess
from pathlib import Path

import pytest

import priory
from shell import PRIORY, rows_of, write


@pytest.fixture
def loans(here):
    """loans.csv: an identifier, a row number, two columns that matter, and 60 good and 20 bad rows."""
    draw = random.Random(0)
    rows = []
    for i in range(80):
        bad = i % 4 == 0
        rows.append(
            [
                f"K{i:04d}",
                i + 1,
                draw.gauss(40 - 10 * bad, 5),
                "no" if bad or i % 5 == 0 else "yes",
                ["good", "bad"][bad],
            ]
        )
    draw.shuffle(rows)
    write(
        "loans.csv",
        ["customer", "row", "age", "job", "verdict"],
        [[r[0], n, f"{r[2]:.1f}", *r[3:]] for n, r in enumerate(rows)],
    )


def train(run, *options):
    code, out, err = run("train", "loans.csv", "--target", "verdict", "--plain", "--json", "--force", *options)
    assert code == 0, err
    return json.loads(out), err


def test_identifiers_are_left_out_with_a_line_unless_they_are_kept(loans, run):
    answer, err = train(run)
    assert list(answer["columns"]) == ["age", "job"]
    assert answer["left_out"] == ["customer", "row"]
    assert err.splitlines() == [
        "priory: left out what looks like identifiers: 'customer' (nearly every row has a label of its own), "
        "'row' (it numbers the rows); to learn them, use --keep-ids"
    ]
    answer, err = train(run, "--keep-ids")
    assert (list(answer["columns"]), err) == (["customer", "row", "age", "job"], "")
    answer, _ = train(run, "--type", "row=numeric")  # declared, so it is wanted
    assert list(answer["columns"]) == ["row", "age", "job"]
    write("only.csv", ["n", "verdict"], [[i, "ab"[i % 2]] for i in range(40)])
    assert run("train", "only.csv", "--target", "verdict", "--plain")[0] == 0  # nothing else to learn from


def test_columns_are_chosen_left_out_and_declared(loans, run):
    assert list(train(run, "--columns", "job,age")[0]["columns"]) == ["job", "age"]
    assert list(train(run, "--columns", "job,age", "--ignore", "job")[0]["columns"]) == ["age"]
    answer, _ = train(run, "--types", "age=gaussian,row=poisson")
    assert (answer["columns"]["age"], answer["columns"]["row"]) == ("gaussian", "poisson")
    code, _, err = run("train", "loans.csv", "--target", "verdict", "--columns", "jb", "--force")
    assert code == 3
    assert "has no column 'jb' (did you mean 'job'?)" in err


def test_a_prior_is_declared_by_name_or_uniform(loans, run):
    def prior(*options):
        train(run, *options)
        return priory.load("loans.priory").class_prior_.round(6).tolist()

    assert prior() == [0.25, 0.75]
    assert prior("--prior", "uniform") == [0.5, 0.5]
    assert prior("--prior", "bad=0.01,good=0.99") == [0.01, 0.99]
    assert prior("--prior", "good=900,bad=100") == [0.1, 0.9]
    assert run("learn", "loans.priory", "loans.csv")[0] == 0
    assert run("forget", "loans.priory", "loans.csv")[0] == 0
    assert priory.load("loans.priory").class_prior_.round(6).tolist() == [0.1, 0.9]


def test_a_declared_prior_moves_every_answer_by_the_same_odds(loans, run):
    def odds(*options):
        code, _, err = run("train", "loans.csv", "--target", "verdict", "--no-audit", "--force", *options)
        assert code == 0, err
        out = run("predict", "loans.priory", "loans.csv", "--proba", "--json")[1]
        return [(p := json.loads(line)["probability_bad"]) / (1 - p) for line in out.splitlines()]

    pairs = [(b / a) for a, b in zip(odds(), odds("--prior", "uniform"), strict=True) if 0.01 < a < 1]
    assert pairs == pytest.approx([3.0] * len(pairs), rel=1e-2)
    assert len(pairs) > 5


@pytest.mark.parametrize(
    ("options", "code", "problem"),
    [
        (["--prior", "bad=x"], 2, "'bad=x' is not CLASS=NUMBER"),
        (["--prior", "bad=0.1"], 3, "the prior has no probability for class 'good'; give one"),
        (["--prior", "bd=0.1,good=0.9"], 3, "the model has no class 'bd' (did you mean 'bad'?)"),
    ],
)
def test_a_prior_that_cannot_be_is_refused_and_nothing_is_written(loans, options, code, problem, run):
    found, _, err = run("train", "loans.csv", "--target", "verdict", "--plain", *options)
    assert found == code
    assert problem in err
    assert not Path("loans.priory").exists()


def test_a_csv_without_a_header_has_columns_by_number(here, run):
    lines = [f"{'good' if i % 4 else 'bad'};{i % 7};{'yes' if i % 4 else 'no'}" for i in range(60)]
    Path("bare.csv").write_text("\n".join(lines))
    command = [*PRIORY, "train", "bare.csv", "--no-header", "--target", "c1", "--plain", "--json"]
    answer = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert (answer["rows"], list(answer["columns"])) == (60, ["c2", "c3"])
    assert run("predict", "bare.priory", "bare.csv", "--no-header", "-o", "out.csv")[0] == 0
    first = rows_of("out.csv")[0]
    assert (first["c1"], first["label"]) == ("bad", "bad")
    Path("bare.csv").write_text("\n".join([*lines, "good;x;yes"]))
    err = run("train", "bare.csv", "--no-header", "--target", "c1", "--force")[2]
    assert err.startswith("priory: bare.csv:61:2: 'x' is not a number; ")
    Path("bare.csv").write_text("\n".join([*lines, "good;1"]))
    err = run("train", "bare.csv", "--no-header", "--target", "c1", "--force")[2]
    assert err.startswith("priory: bare.csv:61:2: has 2 fields, the first row has 3; ")


def test_a_constant_column_costs_no_accuracy(run):
    draw = random.Random(0)
    rows = [[label, draw.gauss(3 * (label == "b"), 1), 7.5] for label in ["a"] * 12 + ["b"] * 18]
    write("rows.csv", ["label", "x", "e"], rows)
    code, _, err = run("train", "rows.csv", "--target", "label")
    assert (code, err) == (0, "")
    assert priory.load("rows.priory").evaluate().accuracy.value >= 0.85
