"""Whether the lines of a ledger are what moved the answer: compared with sampled Shapley values, on ten tables.

    OMP_NUM_THREADS=1 python benchmarks/ledger.py            # writes results/ledger.md

Needs the data sets (see datasets.py). Each table is split once (70 % to learn, at most 1,500 rows). Of some test rows
the Shapley values of the answer are sampled: the cells of a learned row are replaced by those of the row, one column
after the other in random order, and the change of the answer is what the column did. The answer is the log probability
of the row's likeliest class less the mean over the classes. The interaction of several columns is divided equally among
them. "Naive Bayes" are the lines of tempered naive Bayes, which the ledger had before it explained the pool of members.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import priory as pr
from gaps import TABLES, split
from priory.calibration.answer_lines import weigh_parts
from quality import read_tables

ROWS, PERMUTATIONS = 10, 40
RESULT = Path(__file__).parent / "results" / "ledger.md"


def centre(logs: Any, best: Any) -> Any:
    """The entry of each row's best class, less the mean over the classes, which are the second axis."""
    return logs[np.arange(len(logs)), best] - logs.mean(axis=1)


def sample_shapley_values(model: Any, rows: pd.DataFrame, learned: pd.DataFrame, best: Any) -> Any:
    """(rows, columns)."""
    rng, width = np.random.default_rng(0), rows.shape[1]
    own, others = rows.astype(object).to_numpy(), learned.astype(object).to_numpy()
    steps, columns = [], []
    for row in own:
        for _ in range(PERMUTATIONS):
            order = rng.permutation(width)
            changed = np.tile(others[rng.integers(len(others))], (width + 1, 1))
            for k, j in enumerate(order):
                changed[k + 1 :, j] = row[j]
            steps.append(changed)
            columns.append(order)
    table = pd.DataFrame(np.concatenate(steps), columns=rows.columns).astype(rows.dtypes)
    logs = centre(model.predict_log_proba(table), np.repeat(best, PERMUTATIONS * (width + 1)))
    moves = np.diff(logs.reshape(len(own), PERMUTATIONS, width + 1), axis=2)
    values = np.zeros(own.shape)
    for i, order in enumerate(columns):
        values[i // PERMUTATIONS, order] += moves[i // PERMUTATIONS, i % PERMUTATIONS] / PERMUTATIONS
    return values


def read_lines(model: Any, rows: pd.DataFrame, best: Any) -> Any:
    """(rows, columns): the lines of the ledger, interactions divided among their columns."""
    place = {name: j for j, name in enumerate(rows.columns)}
    found = np.zeros(rows.shape)
    for i, ledger in enumerate(model.explain(rows)):
        for line in ledger.lines:
            weight = line.log_likelihood[best[i]] - np.mean(line.log_likelihood)
            for name in line.columns:
                found[i, place[name]] += weight / len(line.columns)
    return found


def read_naive_lines(model: Any, rows: pd.DataFrame, best: Any) -> Any:
    """(rows, columns): the tempered evidence of naive Bayes."""
    learned = model._learned()
    batch = learned.rows.read(rows, "answer", learned.statistics)[1]
    lines = weigh_parts(learned.calibrated(), learned.rows.read_cells(batch)).lines
    return np.stack([centre(lines[:, :, j], best) for j in range(lines.shape[2])], axis=1)


def judge_table(x: pd.DataFrame, y: Any) -> dict[str, float]:
    train, y_train, test, _ = split(x, y)
    model = pr.NaiveBayes().fit(train, y_train)
    rows = test.iloc[np.linspace(0, len(test) - 1, ROWS).astype(int)]
    best = model.predict_log_proba(rows).argmax(axis=1)
    sampled = sample_shapley_values(model, rows, train, best).ravel()
    lines = read_lines(model, rows, best)
    found = {"ledger": lines, "naive Bayes": read_naive_lines(model, rows, best)}
    named = [len(line.columns) > 1 for line in model.explain(rows[:1])[0].lines]
    return {name: float(np.corrcoef(own.ravel(), sampled)[0, 1]) for name, own in found.items()} | {
        "interactions": float(sum(named))
    }


def main() -> None:
    lines = ["# What the lines of a ledger are", "", *__doc__.split("\n\n")[1:], ""]
    lines += ["| table | ledger | naive Bayes | lines of several columns |", "|---|---|---|---|"]
    found = []
    for name, (x, y) in read_tables().items():
        if name in (sys.argv[1:] or TABLES):
            one = judge_table(x, y)
            found.append(one)
            lines.append(f"| {name} | {one['ledger']:.2f} | {one['naive Bayes']:.2f} | {one['interactions']:.0f} |")
            print(lines[-1], flush=True)
    means = {key: np.mean([one[key] for one in found]) for key in ("ledger", "naive Bayes")}
    lines.append(f"| mean | {means['ledger']:.2f} | {means['naive Bayes']:.2f} | |")
    print(lines[-1])
    if not sys.argv[1:]:
        RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
