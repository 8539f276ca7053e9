"""What evaluate shows besides scores: folds, groups, time, curves, comparisons, costs and thresholds."""

import json
import random
import subprocess

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, cross_val_score

import priory
from priory.evaluation.comparison import compare_scores
from priory.evaluation.scores import Scores
from shell import PRIORY, write


def make_rows(n, seed, start=0):
    """People with several visits each: two columns that matter, one that does not, and a time."""
    draw = random.Random(seed)
    for i in range(n):
        bad = draw.random() < 0.3
        income = draw.gauss(40 - 8 * bad, 8)
        job = draw.choice(["yes", "no", "no"] if bad else ["yes", "yes", "no"])
        day = f"2024-{1 + (start + i) * 12 // 400 % 12:02d}-{1 + i % 28:02d}"
        yield [f"p{i // 4}", day, draw.choice("xy"), f"{income:.1f}", job, "bad" if bad else "good"]


HEADER = ["person", "day", "side", "income", "job", "verdict"]
FEATURES = ["--columns", "income,job"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    write(folder / "old.csv", HEADER, make_rows(400, 0))
    write(folder / "new.csv", HEADER, make_rows(300, 1))
    for name, columns in (("full", "income,job"), ("poor", "side")):
        command = ["train", f"{folder}/old.csv", "--target", "verdict", "--columns", columns, "--plain"]
        assert priory.cli.main([*command, "-o", f"{folder}/{name}.priory"]) == 0
    return folder


@pytest.fixture
def evaluate(trained, run):
    def evaluate_json(*arguments):
        files = [f"{trained}/{name}" if "." in name and "=" not in name else name for name in arguments]
        code, out, err = run("evaluate", *files, "--json")
        assert code == 0, err
        return json.loads(out)

    return evaluate_json


@pytest.mark.parametrize(
    ("options", "folds"),
    [
        (["--folds", "4"], 4),
        (["--groups", "person"], 5),
        (["--groups", "person", "--folds", "3"], 3),
        (["--time", "day"], 5),
    ],
)
def test_learned_rows_are_judged_by_models_without_their_fold(evaluate, trained, run, options, folds):
    scores = evaluate("full.priory", "old.csv", *options)["scores"]
    n_judged = 330 if "--time" in options else 400  # the earliest rows are never judged
    assert scores["rows"] == n_judged
    assert 0.7 < scores["accuracy"]["value"] < 0.95
    out = run("evaluate", f"{trained}/full.priory", f"{trained}/old.csv", *options)[1]
    assert out.startswith(f"{folds} folds: each row judged by a model that has not learned it\n")


def test_groups_are_left_out_as_scikit_learn_leaves_them_out(evaluate, trained):
    """Accuracy by groups is that of a model fitted anew to the other groups."""
    import pyarrow.csv

    table = pyarrow.csv.read_csv(trained / "old.csv")
    X, y = table.select(["income", "job"]).to_pandas(), table["verdict"].to_pandas()
    model = priory.NaiveBayes(calibrate=False, families={"job": "categorical"})
    splitter = GroupKFold(5)
    right = cross_val_score(model, X, y, groups=table["person"].to_pandas(), cv=splitter)
    sizes = [len(test) for _, test in splitter.split(X, y, table["person"].to_pandas())]
    found = evaluate("full.priory", "old.csv", "--groups", "person")["scores"]["accuracy"]["value"]
    assert found == pytest.approx(np.average(right, weights=sizes))


def test_two_models_are_compared_on_the_same_rows(evaluate, trained, run):
    answer = evaluate("full.priory", "new.csv", "--compare", "poor.priory")
    [(name, poor)] = answer["compared"].items()
    assert poor["log_loss"]["value"] > answer["scores"]["log_loss"]["value"]
    difference = answer["differences"][name]["log_loss"]
    assert difference["low"] > 0
    assert difference["value"] == pytest.approx(poor["log_loss"]["value"] - answer["scores"]["log_loss"]["value"])
    out = run("evaluate", f"{trained}/full.priory", f"{trained}/new.csv", "--compare", f"{trained}/full.priory")[1]
    assert "the difference in accuracy and in log loss may be chance." in " ".join(out.split())
    answer = evaluate("full.priory", "old.csv", "--compare", "poor.priory", "--folds", "3")
    assert answer["differences"][name]["log_loss"]["value"] > 0


def test_the_learning_curve_has_fewer_rows_and_judges_the_others(evaluate):
    curve = evaluate("full.priory", "old.csv", "--curve")["curve"]
    assert [(int(n), scores["rows"]) for n, scores in curve.items()] == [
        (20, 380),
        (40, 360),
        (80, 320),
        (160, 240),
        (240, 160),
        (320, 80),
    ]


def test_groups_of_rows_are_scored_and_the_verdict_follows(evaluate):
    answer = evaluate("full.priory", "new.csv", "--by", "job", "--by", "side")
    assert sum(group["rows"] for group in answer["by"]["job"]["groups"].values()) == 300
    assert "may be chance" in answer["by"]["side"]["verdict"]
    assert answer["by"]["side"]["chance"] > 0.01


def test_costs_are_those_of_the_truth(evaluate):
    answer = evaluate("full.priory", "new.csv", "--cost", "fn=5", "--thresholds")
    costs = answer["costs"]
    assert answer["positive"] == "bad"
    confusion = np.array(answer["scores"]["confusion"])  # bad, good
    assert costs["most_probable"]["value"] == pytest.approx((5 * confusion[0, 1] + confusion[1, 0]) / 300)
    assert costs["least_cost"]["value"] < min(costs["most_probable"]["value"], costs["constant"]["value"])
    half = next(row for row in answer["thresholds"] if row["threshold"] == 0.5)
    assert half["cost"] == pytest.approx(costs["most_probable"]["value"])
    assert half["recall"] == pytest.approx(confusion[0, 0] / confusion[0].sum())


def test_all_of_it_in_one_process(trained):
    command = [*PRIORY, "evaluate", "full.priory", "old.csv", "--folds", "3", "--compare", "poor.priory"]
    done = subprocess.run(
        [*command, "--by", "side", "--cost", "fn=5", "--thresholds", "--curve"],
        capture_output=True,
        text=True,
        cwd=trained,
        check=True,
    )
    for part in (
        "3 folds",
        "by side",
        "on the same rows",
        "learning curve",
        "mean cost of a row",
        "Answering 'bad'",
    ):
        assert part in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        ("full.priory new.csv --groups person --time day", 2, "exclude each other"),
        ("full.priory new.csv --folds 1", 2, "1 is not in the range"),
        ("full.priory new.csv --by colour", 3, "new.csv: has no column 'colour'"),
        ("full.priory new.csv --time job", 3, "column 'job' has neither numbers nor dates"),
        ("full.priory old.csv --groups verdict_ --folds 3", 3, "has no column 'verdict_' (did you mean 'verdict'?)"),
        ("full.priory new.csv --thresholds --positive worse", 3, "the model has no class 'worse'"),
        ("full.priory new.csv --compare none.priory", 5, "none.priory: no such file or directory"),
    ],
)
def test_what_cannot_be_judged_is_one_line(trained, run, monkeypatch, arguments, code, problem):
    monkeypatch.chdir(trained)
    found, _, err = run("evaluate", *arguments.split())
    assert found == code
    assert problem in err


def test_the_interval_of_a_difference_holds_the_true_difference():
    """Two models of known probabilities: the interval misses the true difference about one time in twenty."""
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(200):
        p = rng.uniform(0.05, 0.95, 400)
        y = rng.random(400) < p
        worse = np.clip(p + rng.normal(0, 0.2, 400), 0.02, 0.98)
        first, second = (Scores.of(y, np.c_[1 - q, q], [False, True]) for q in (p, worse))
        expected = np.mean(p * np.log(worse / p) + (1 - p) * np.log((1 - worse) / (1 - p)))  # given the rows
        found = compare_scores(first, second).log_loss
        missed += not found.low <= expected <= found.high
    assert missed <= 20
