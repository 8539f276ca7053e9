"""A target that is a number: train, predict, evaluate, learn and forget."""

import json
import random
import subprocess

import numpy as np
import pytest

import priory
from shell import PRIORY, rows_of, write


def make_flats(n, seed):
    draw = random.Random(seed)
    for _ in range(n):
        area, town = draw.gauss(80, 20), draw.choice(["A", "B", "C"])
        price = 2000 * area + {"A": 0, "B": 20000, "C": -10000}[town] + draw.gauss(0, 9000)
        yield [f"{area:.1f}" if draw.random() > 0.05 else "", town, f"{price:.0f}"]


@pytest.fixture
def flats(run):
    write("flats.csv", ["area", "town", "price"], make_flats(400, 0))
    write("new.csv", ["area", "town", "price"], make_flats(200, 1))
    code, out, _ = run("train", "flats.csv", "--target", "price", "--json")
    assert code == 0
    return json.loads(out)


def test_it_is_scored_by_leave_one_out_and_its_intervals_hold(flats, run):
    assert (flats["kind"], flats["rows"]) == ("regression", 400)
    assert flats["columns"] == {"area": "number", "town": "label"}
    claimed = flats["scores"]
    code, out, _ = run("evaluate", "flats.priory", "new.csv", "--json")
    assert code == 0
    true = json.loads(out)["scores"]
    assert claimed["r2"]["low"] < true["r2"]["high"]
    assert true["r2"]["low"] < claimed["r2"]["high"]
    assert true["coverage"]["high"] > 0.9
    _, out, _ = run("evaluate", "flats.priory", "flats.csv", "--learned", "--json")
    assert json.loads(out)["scores"]["rmse"]["value"] == pytest.approx(claimed["rmse"]["value"])
    out = run("evaluate", "flats.priory", "new.csv")[1]
    assert out.startswith("200 rows  ")
    assert "coverage of 90% intervals" in out


def test_leave_one_out_is_what_a_model_without_the_row_says(flats):
    model = priory.load("flats.priory")
    rows = [{"area": float(r["area"]) if r["area"] else None, "town": r["town"]} for r in rows_of("flats.csv")]
    y = np.array([float(r["price"]) for r in rows_of("flats.csv")])
    import polars as pl

    table = pl.DataFrame(rows)
    student = model.leave_one_out(table, y)
    without = priory.BayesianLinearRegression(prior=model.prior_).fit(table[1:], y[1:])
    assert student.location[0] == pytest.approx(without.predict(table[:1])[0], rel=1e-6)


def test_predictions_are_numbers_with_bounds(flats, here):
    command = [*PRIORY, "predict", "flats.priory", "new.csv", "-o", "out.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=here)
    assert "priory: 200 rows: mean prediction " in done.stderr
    rows = [json.loads(line) for line in (here / "out.jsonl").read_text().splitlines()]
    assert all(row["low"] < row["prediction"] < row["high"] for row in rows)
    inside = [row["low"] <= float(row["price"]) <= row["high"] for row in rows]
    assert sum(inside) / len(inside) > 0.85


def test_learning_and_forgetting_rows_is_exact(flats, run):
    before = priory.load("flats.priory").coef_
    assert run("learn", "flats.priory", "new.csv")[1] == "200 rows learned; flats.priory now knows 600\n"
    assert not np.array_equal(priory.load("flats.priory").coef_, before)
    assert run("forget", "flats.priory", "new.csv")[1] == "200 rows forgotten; flats.priory now knows 400\n"
    np.testing.assert_array_equal(priory.load("flats.priory").coef_, before)
    write("never.csv", ["area", "town", "price"], [["1e6", "A", "5"]])
    code, _, err = run("forget", "flats.priory", "never.csv")
    assert code == 3
    assert err.startswith("priory: never.csv:2:3: ")


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        ("predict flats.priory new.csv --proba", 3, "the model predicts a number; costs, thresholds and probabilities"),
        ("explain flats.priory area=3", 3, "flats.priory: predicts a number; give a model of classes"),
        (
            "learn flats.priory gap.csv",
            3,
            "gap.csv:3:3: has no number to predict; give it one, or use --skip-unlabelled",
        ),
        ("learn flats.priory word.csv", 3, "word.csv:2:3: 'dear' is not a number; correct it"),
        ("train text.csv --target price", 3, "text.csv: a regression needs a column of numbers or labels"),
    ],
)
def test_what_a_regression_cannot_do_is_one_line(flats, arguments, code, problem, run):
    write("gap.csv", ["area", "town", "price"], [[1, "A", 2], [1, "A", ""]])
    write("word.csv", ["area", "town", "price"], [[1, "A", "dear"]])
    write("text.csv", ["t", "price"], [[f"many words of text {i}", i] for i in range(50)])
    found, _, err = run(*arguments.split())
    assert found == code
    assert problem in err.splitlines()[-1]
