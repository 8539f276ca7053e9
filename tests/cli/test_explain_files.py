"""What matters in a whole file, for one class, and what would have to be different in one row."""

import json
import math
import random
import subprocess

import numpy as np
import pytest

import priory
from shell import PRIORY, rows_of, write


@pytest.fixture
def loans(run):
    """loans.csv with a column that decides, one that says a little and one that says nothing, and a model of it."""
    draw, rows = random.Random(0), []
    for _ in range(300):
        bad = draw.random() < 0.4
        job = "no" if (draw.random() < 0.9) == bad else "yes"
        rows.append([job, f"{draw.gauss(40 - 4 * bad, 8):.1f}", draw.choice("xy"), "bad" if bad else "good"])
    write("loans.csv", ["job", "age", "side", "verdict"], rows)
    assert run("train", "loans.csv", "--target", "verdict", "--plain")[0] == 0


def test_columns_are_ranked_by_what_is_lost_without_them(loans, run):
    code, out, _ = run("explain", "loans.priory", "--from", "loans.csv", "--overall", "--json")
    assert code == 0
    answer = json.loads(out)
    bits = {one["column"]: one["bits"] for one in answer["columns"]}
    assert list(bits) == sorted(bits, key=lambda name: -bits[name]["value"])
    assert next(iter(bits)) == "job"
    assert bits["job"]["low"] > 0.2
    assert abs(bits["side"]["value"]) < 0.02
    model, rows = priory.load("loans.priory"), rows_of("loans.csv")
    cells = [{"job": r["job"], "age": float(r["age"]), "side": r["side"]} for r in rows]
    truth = np.searchsorted(model.classes_, [r["verdict"] for r in rows])
    seen, blind = (
        model.predict_log_proba(table)[np.arange(300), truth] for table in (cells, [{**c, "job": None} for c in cells])
    )
    assert bits["job"]["value"] == pytest.approx((seen - blind).mean() / math.log(2))
    out = run("explain", "loans.priory", "--from", "loans.csv", "--overall", "--class", "bad")[1]
    assert out.startswith("what is lost without a column, in bits a row of bad\n")
    assert "good:" not in out


def test_a_text_model_shows_its_words(mail, run):
    code, out, _ = run("explain", "mail.priory", "--from", "mail.csv", "--overall")
    assert code == 0
    assert "spam: cash" in out
    assert run("explain", "mail.priory", "--from", "mail.csv", "--what-if")[::2] == (
        3,
        "priory: the model reads one text; cells can be changed in tables only\n",
    )


def test_a_change_that_is_named_changes_the_answer(loans, run, here):
    command = [*PRIORY, "explain", "loans.priory", "--from", "loans.csv", "--what-if", "--json"]
    arguments = [part for row in range(1, 21) for part in ("--row", str(row))]
    done = subprocess.run([*command, *arguments], capture_output=True, check=True, cwd=here)
    found, model, rows = json.loads(done.stdout), priory.load("loans.priory"), rows_of("loans.csv")
    assert len(found) == 20
    assert any(one["changes"] for one in found)
    for one in found:
        row = rows[one["row"] - 1]
        cells = {"job": row["job"], "age": float(row["age"]), "side": row["side"]}
        assert model.predict([cells])[0] == one["label"]
        for change in one["changes"]:
            assert cells[change["column"]] == change["value"]
            assert model.predict([{**cells, change["column"]: change["changed"]}])[0] == change["label"] != one["label"]
    out = run("explain", "loans.priory", "--from", "loans.csv", "--what-if")[1]
    assert out.startswith("row 1: ")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("job=no --what-if", "use --from FILE"),
        ("--from loans.csv --what-if --overall", "exclude each other"),
        ("--from loans.csv --class bad", "use it with --overall"),
    ],
)
def test_options_that_do_not_go_together_are_usage_errors(loans, run, arguments, problem):
    code, _, err = run("explain", "loans.priory", *arguments.split())
    assert (code, problem in err) == (2, True)
    code, _, err = run("explain", "loans.priory", "--from", "loans.csv", "--overall", "--class", "worse")
    assert (code, "the model has no class 'worse'" in err) == (3, True)
