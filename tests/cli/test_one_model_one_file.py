"""`priory train`, then `priory forget`, run as processes, write the file of a model never trained on the rows."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from priory import NaiveBayes, load, save
from shell import PRIORY, write

WORDS = ["cash", "win", "lunch", "noon", "été", "now", "free", "you"]
HEADER = ["label", "size", "count", "colour", "when", "note"]
N_GONE = 20


def draw_rows(n_rows=120):
    """Rows of a number, a count, a label, a date and a text, with cells missing."""
    rng = np.random.default_rng(0)
    for i in range(n_rows):
        label = rng.choice(["no", "yes"])
        number = "" if rng.random() < 0.1 else round(float(rng.normal(label == "yes")), 3)
        date = f"2024-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d} {rng.integers(24):02d}:30:00"
        text = " ".join([*rng.choice(WORDS, 7), f"word{i}"])
        yield [label, number, int(rng.poisson(3)), rng.choice(["red", "blue"]), date, text]


def run_priory(*arguments):
    subprocess.run([*PRIORY, *arguments, "--quiet"], check=True, capture_output=True)


@pytest.mark.parametrize(
    "names", [HEADER, pytest.param(["label", "note"], marks=pytest.mark.slow)], ids=["table", "texts"]
)
def test_a_file_that_has_forgotten_rows_is_the_file_of_a_model_never_trained_on_them(names, here):
    rows = [[row[HEADER.index(name)] for name in names] for row in draw_rows()]
    write("all.csv", names, rows)
    write("gone.csv", names, rows[:N_GONE])
    write("kept.csv", names, rows[N_GONE:])
    for name in ("all", "kept"):
        run_priory("train", f"{name}.csv", "--target", "label", "--no-audit")
    assert Path("all.priory").read_bytes() != Path("kept.priory").read_bytes()
    run_priory("forget", "all.priory", "gone.csv")
    assert Path("all.priory").read_bytes() == Path("kept.priory").read_bytes()
    assert load("kept.priory").corrections_ is not None


def test_rows_of_fractional_weight_stay_as_they_are(here):
    rows = [dict(zip(HEADER[:4], row[:4], strict=True)) for row in draw_rows()]
    for row in rows:
        row["size"] = None if row["size"] == "" else row["size"]
    weights = np.where(np.arange(len(rows)) < N_GONE, 1.0, 0.375)
    for name, start in (("all", 0), ("kept", N_GONE)):
        labels = [row["label"] for row in rows[start:]]
        cells = [{k: v for k, v in row.items() if k != "label"} for row in rows[start:]]
        model = NaiveBayes().fit(cells, labels, sample_weight=weights[start:])
        model.target_ = "label"
        save(model, f"{name}.priory")
    write("gone.csv", list(rows[0]), [["" if v is None else v for v in row.values()] for row in rows[:N_GONE]])
    run_priory("forget", "all.priory", "gone.csv")
    assert Path("all.priory").read_bytes() == Path("kept.priory").read_bytes()
