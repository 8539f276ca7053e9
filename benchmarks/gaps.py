"""Cells that are missing only at answering time: Priory beside its peers, on ten tables.

    pip install catboost        # left out if it is not installed
    OMP_NUM_THREADS=1 python benchmarks/gaps.py            # writes results/gaps.md

Needs the data sets (see datasets.py). Each table is split once (70 % to learn, stratified, at most 1,500 rows on either
side); then a share of the cells of the test rows is removed at random, the same cells for all models. Log loss in nats;
no probability counts as less than 1e-6. CatBoost has its defaults and is given the categories.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

import priory as pr
from quality import OURS, PEERS, fitted, read_tables, typed

TABLES = (
    "adult",
    "breast_cancer_wisconsin",
    "car",
    "heart_cleveland",
    "iris",
    "mushroom",
    "penguins",
    "pima",
    "spambase",
    "wine",
)
SHARES = (0.0, 0.1, 0.2, 0.4, 1.0)
MAX_ROWS = 1500
RESULT = Path(__file__).parent / "results" / "gaps.md"
MODELS = {
    "NaiveBayes()": OURS["NaiveBayes()"],
    "memory=0": lambda: pr.NaiveBayes(memory=0),
    "plain": OURS["plain"],
    **{name: PEERS[name] for name in ("HistGradientBoosting", "CatBoost") if name in PEERS},
}


def split(x: pd.DataFrame, y: Any) -> tuple[Any, Any, Any, Any]:
    parts = train_test_split(np.arange(len(y)), train_size=0.7, stratify=y, random_state=0)
    train, test = (part[:MAX_ROWS] for part in parts)
    return x.iloc[train], y[train], x.iloc[test], y[test]


def remove_cells(x: pd.DataFrame, share: float) -> pd.DataFrame:
    gone = np.random.default_rng(0).random(x.shape) < share
    return x.astype(object).mask(gone)


def measure_loss(model: Any, x: Any, y: Any) -> float:
    p = np.clip(model.predict_proba(x), 1e-6, 1)
    p /= p.sum(axis=1, keepdims=True)
    return float(-np.log(p[np.arange(len(y)), np.searchsorted(model.classes_, y)]).mean())


def judge_table(x: pd.DataFrame, y: Any) -> dict[str, list[float]]:
    """The log loss of each model at each share of missing cells, and of the base rate."""
    train, y_train, test, y_test = split(x, y)
    losses = {}
    for name, make in MODELS.items():
        is_ours = name in ("NaiveBayes()", "memory=0", "plain")
        prepare = (lambda table: table) if is_ours else typed
        model = fitted(make, prepare(train), y_train)
        types = train.dtypes
        gaps = [remove_cells(test, share).astype(types) for share in SHARES]
        losses[name] = [measure_loss(model, prepare(rows), y_test) for rows in gaps]
    classes, counts = np.unique(y_train, return_counts=True)
    base = np.log(counts / counts.sum())[np.searchsorted(classes, y_test)]
    losses["base rate"] = [float(-base.mean())] * len(SHARES)
    return losses


def main() -> None:
    tables = {name: table for name, table in read_tables().items() if name in (sys.argv[1:] or TABLES)}
    found = {}
    for name, (x, y) in tables.items():
        found[name] = judge_table(x, y)
        print(name, {k: np.round(v, 4).tolist() for k, v in found[name].items()}, flush=True)
    models = list(next(iter(found.values())))
    head = [f"{share:.0%}" for share in SHARES]
    lines = ["# Cells that are missing only at answering time", "", *__doc__.split("\n\n")[1:2], ""]
    lines += [__doc__.split("\n\n")[2], "", "Mean log loss over the tables, by the share of cells removed:", ""]
    lines += [f"| model | {' | '.join(head)} |", "|---" * (len(head) + 1) + "|"]
    for model in models:
        means = np.mean([losses[model] for losses in found.values()], axis=0)
        lines.append(f"| {model} | {' | '.join(f'{mean:.3f}' for mean in means)} |")
    for name, losses in found.items():
        lines += ["", f"## {name}", "", f"| model | {' | '.join(head)} |", "|---" * (len(head) + 1) + "|"]
        lines += [f"| {model} | {' | '.join(f'{loss:.3f}' for loss in losses[model])} |" for model in models]
    print(*lines[:16], sep="\n")
    if not sys.argv[1:]:
        RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
