"""Columns with hundreds or thousands of labels, and many classes: accuracy, log loss and seconds beside three peers.

    pip install catboost        # left out if it is not installed
    OMP_NUM_THREADS=1 python benchmarks/many_labels.py [--write]     # writes results/many_labels.md

Tables are made: shops and customers are labels with an effect of their own on the odds, beside two numbers; an
identifier is another label in each row, and says nothing; letters are 26 classes of 16 whole numbers, two clusters
each. Seconds are of one core, learning and answering 2,000 rows. CatBoost grows 300 trees; HistGradientBoosting gets
the 254 commonest labels.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import priory as pr
from quality import NUMBERS, import_if_installed, prepared, typed

catboost = import_if_installed("catboost")
NEW_ROWS, MOST_CATEGORIES = 2000, 254


def make_labels(rows: int, labels: int, seed: int, effect: float = 1.5) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of a column of labels, of which some are common and most are not, and two numbers."""
    rng = np.random.default_rng(seed)
    share = rng.gamma(1.0, size=labels)
    own = rng.choice(labels, rows + NEW_ROWS, p=share / share.sum())
    x = rng.normal(size=(rows + NEW_ROWS, 2))
    odds = rng.normal(0, effect, labels)[own] + x[:, 0] - 0.5 * x[:, 1]
    table = pd.DataFrame({"label": [f"n{k:05}" for k in own], "a": x[:, 0], "b": x[:, 1]})
    return table, np.where(rng.random(len(odds)) < 1 / (1 + np.exp(-odds)), "yes", "no")


def make_letters(rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    y, cluster = rng.integers(0, 26, rows + NEW_ROWS), rng.integers(0, 2, rows + NEW_ROWS)
    centres = rng.normal(8, 2.5, (26, 2, 16))
    table = np.clip(np.round(centres[y, cluster] + rng.normal(0, 2, (len(y), 16))), 0, 15)
    return pd.DataFrame(table, columns=[f"c{j}" for j in range(16)]), np.array([chr(97 + k) for k in y])


def list_tables() -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    yield "100 shops, 2,000 rows", *make_labels(2000, 100, 0)
    yield "200 shops, 2,000 rows", *make_labels(2000, 200, 5)
    yield "400 shops, 4,000 rows", *make_labels(4000, 400, 1)
    yield "2,000 customers, 20,000 rows", *make_labels(20_000, 2000, 2)
    yield "5,000 customers, 50,000 rows", *make_labels(50_000, 5000, 6)
    yield "300 shops, 20,000 rows", *make_labels(20_000, 300, 9)
    table, y = make_labels(4000, 20, 3)
    yield "identifier, 4,000 rows", table.assign(id=[f"id{k}" for k in range(len(table))]), y
    yield "letters, 1,000 rows", *make_letters(1000, 4)
    yield "letters, 5,000 rows", *make_letters(5000, 5)


def keep_common(table: pd.DataFrame) -> pd.DataFrame:
    """The table with the labels beyond the commonest as missing ones."""
    columns = [name for name in table if name not in NUMBERS(table)]
    kept = {name: list(table[name].value_counts().index[:MOST_CATEGORIES]) for name in columns}
    changed = {name: table[name].cat.set_categories(labels) for name, labels in kept.items()}
    return table.assign(**changed)


def fit_catboost(x: pd.DataFrame, y: np.ndarray) -> Any:
    options = {"iterations": 300, "thread_count": 1, "random_seed": 0, "verbose": False, "allow_writing_files": False}
    return catboost.CatBoostClassifier(**options).fit(x, y, cat_features=[n for n in x if n not in NUMBERS(x)])


MODELS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[pd.DataFrame], pd.DataFrame]]] = {
    "NaiveBayes()": (lambda x, y: pr.NaiveBayes().fit(x, y), lambda table: table),
    "plain": (lambda x, y: pr.NaiveBayes(calibrate=False).fit(x, y), lambda table: table),
    "LogisticRegression": (
        lambda x, y: make_pipeline(prepared(StandardScaler()), LogisticRegression(max_iter=1000)).fit(x, y),
        typed,
    ),
    "HistGradientBoosting": (
        lambda x, y: HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0).fit(x, y),
        lambda table: keep_common(typed(table)),
    ),
}
if catboost is not None:
    MODELS["CatBoost"] = fit_catboost, typed


def main() -> None:
    warnings.simplefilter("ignore")
    lines = ["# Many labels and many classes", "", "`OMP_NUM_THREADS=1 python benchmarks/many_labels.py --write`", ""]
    lines += [
        "Accuracy / log loss / seconds.",
        "",
        f"| table | {' | '.join(MODELS)} |",
        "|---" * (len(MODELS) + 1) + "|",
    ]
    for name, table, y in list_tables():
        cells = []
        for fit, read in MODELS.values():
            ready, cut = read(table), len(y) - NEW_ROWS
            start = time.process_time()
            model = fit(ready.iloc[:cut], y[:cut])
            p = model.predict_proba(ready.iloc[cut:])
            seconds, classes = time.process_time() - start, np.unique(y)
            right = accuracy_score(y[cut:], classes[p.argmax(axis=1)])
            cells.append(f"{right:.3f} / {log_loss(y[cut:], p, labels=classes):.4f} / {seconds:.2f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    if "--write" in sys.argv:
        (Path(__file__).parent / "results" / "many_labels.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
