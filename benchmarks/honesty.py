"""Whether corrections are honest: on labels that are pure noise, and on simulated tables with signal.

    python benchmarks/honesty.py [tables of noise] [tables with signal]    # writes results/honesty.md

Each table is judged from inside, by `evaluate()`, and from outside, on new rows. On noise the model should answer with
the base rate and claim no more. With signal, what is claimed should be what new rows get: the differences, in units of
their standard error, have mean 0 and deviation 1. Tables are shared out to processes.
"""

from __future__ import annotations

import sys
import warnings
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

import priory as pr

RESULTS = Path(__file__).parent / "results"
NEW_ROWS = 2000
WORDS = np.array([f"{a}{b}" for a in ("ka", "lo", "mi", "ne", "ru", "so", "ta", "vi") for b in "abcdefghijklmnopqrst"])


class Table(NamedTuple):
    """Rows to learn and new rows."""

    kind: str
    x: pd.DataFrame
    y: np.ndarray
    new_x: pd.DataFrame
    new_y: np.ndarray


def make_columns(kind: str, rows: int, columns: int, rng: np.random.Generator) -> pd.DataFrame:
    if kind == "texts":
        lengths = rng.integers(3, 30, rows)
        return pd.DataFrame({"text": [" ".join(rng.choice(WORDS, n)) for n in lengths]})
    made = {
        "labels": lambda: np.array(list("abcdefgh"))[rng.integers(0, rng.integers(2, 9), rows)].astype(object),
        "numbers": lambda: np.exp(rng.normal(size=rows)) if rng.random() < 0.3 else rng.normal(size=rows),
        "counts": lambda: rng.poisson(rng.gamma(1.0, 4.0), rows).astype(float),
    }
    return pd.DataFrame({f"c{j}": made[kind]() for j in range(columns)})


def make_noise(seed: int) -> Table:
    """A table whose labels have nothing to do with its columns."""
    rng = np.random.default_rng(seed)
    kind = ("labels", "numbers", "counts", "texts")[seed % 4]
    rows, columns = int(np.exp(rng.uniform(np.log(50), np.log(2000)))), int(rng.integers(5, 101))
    share = rng.uniform(0.2, 0.5)
    x = make_columns(kind, rows + NEW_ROWS, columns, rng)
    y = np.where(rng.random(len(x)) < share, "yes", "no")
    return Table(kind, x[:rows], y[:rows], x[rows:], y[rows:])


def make_signal(seed: int) -> Table:
    """Numbers, some of which matter: one by one, in pairs, or not at all."""
    rng = np.random.default_rng(10_000 + seed)
    rows, columns = int(np.exp(rng.uniform(np.log(100), np.log(2000)))), int(rng.integers(4, 31))
    x = rng.normal(size=(rows + NEW_ROWS, columns))
    logit = x[:, : columns // 2] @ rng.normal(0, 1 / np.sqrt(columns), columns // 2) + rng.normal() * x[:, 0] * x[:, 1]
    if seed % 2:
        x = np.round(x)
    y = np.where(rng.random(len(x)) < 1 / (1 + np.exp(-rng.uniform(0.5, 2.5) * logit)), "yes", "no")
    table = pd.DataFrame(x, columns=[f"c{j}" for j in range(columns)])
    if seed % 3 == 0:
        table = table.round().astype(int).astype(str)
    return Table("signal", table[:rows], y[:rows], table[rows:], y[rows:])


def log_losses(answers: np.ndarray, y: np.ndarray) -> np.ndarray:
    return -answers[np.arange(len(y)), (y == "yes").astype(int)]


def base_losses(learned: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The losses of answering with the share of each class among the rows learned."""
    share = np.mean(learned == "yes")
    return -np.log(np.where(y == "yes", share, 1 - share))


def mean_and_error(x: np.ndarray) -> tuple[float, float]:
    return float(np.mean(x)), float(np.std(x, ddof=1) / np.sqrt(len(x)))


def judge_noise(seed: int) -> tuple[str, float, bool, bool]:
    """The kind of a table, the excess of log loss on new rows, and whether accuracy and log loss are claimed."""
    table = make_noise(seed)
    model = pr.NaiveBayes().fit(table.x, table.y)
    excess = log_losses(model.predict_log_proba(table.new_x), table.new_y) - base_losses(table.y, table.new_y)
    claimed = model.evaluate()
    return (
        table.kind,
        float(excess.mean()),
        bool(claimed.accuracy.low > claimed.base.accuracy),
        bool(claimed.gain["log_loss"].low > 0),
    )


def run_noise(tables: int) -> list[str]:
    with Pool() as pool:
        found = pool.map(judge_noise, range(tables), chunksize=1)
    frame = pd.DataFrame(found, columns=["kind", "excess", "claims_accuracy", "claims_log_loss"])
    lines = [
        "## Noise",
        "",
        "Excess: mean log loss on new rows above that of the base rate. Claims: the 95 % interval of `evaluate()` is",
        "above the base rate.",
        "",
        "| kind | tables | excess | largest | claims by accuracy | claims by log loss |",
        "|---|---|---|---|---|---|",
    ]
    for kind, part in [*frame.groupby("kind"), ("all", frame)]:
        lines.append(
            f"| {kind} | {len(part)} | {part.excess.mean():.4f} | {part.excess.max():.4f} | "
            f"{part.claims_accuracy.mean():.1%} | {part.claims_log_loss.mean():.1%} |"
        )
    return lines


def judge_signal(seed: int) -> tuple[float, float]:
    """Claimed less true log loss, and the standard error of that."""
    table = make_signal(seed)
    model = pr.NaiveBayes().fit(table.x, table.y)
    claimed = model.evaluate().log_loss
    true, true_error = mean_and_error(log_losses(model.predict_log_proba(table.new_x), table.new_y))
    return claimed.value - true, float(np.hypot((claimed.high - claimed.low) / 2 / 1.96, true_error))


def run_signal(tables: int) -> list[str]:
    with Pool() as pool:
        differences, errors = np.array(pool.map(judge_signal, range(tables), chunksize=1)).T
    mean, error = mean_and_error(differences)
    varied = errors > 0.001  # where the base rate answers, the losses hardly vary, and have no error to speak of
    scores = differences[varied] / errors[varied]
    return [
        "",
        "## Signal",
        "",
        f"{tables} simulated tables: claimed less true log loss is {mean:+.4f} on average (error {error:.4f});",
        f"the z-scores of the {varied.sum()} whose answers vary have mean {np.mean(scores):+.2f} and standard",
        f"deviation {np.std(scores, ddof=1):.2f}.",
    ]


def main() -> None:
    warnings.simplefilter("ignore")
    noise, signal = (int(sys.argv[k]) if len(sys.argv) > k else default for k, default in ((1, 500), (2, 200)))
    lines = [f"Made by `python benchmarks/honesty.py {noise} {signal}`.", "", *run_noise(noise), *run_signal(signal)]
    print("\n".join(lines))
    (RESULTS / "honesty.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
