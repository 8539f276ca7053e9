"""What answers reveal about the rows that were learned, beside LightGBM; and the price of a file without rows.

    pip install lightgbm
    python benchmarks/membership.py [--write]

Every model is trained without one of ten folds (five beyond 1,000 rows), and the attacker has a threshold on the
probability of the true class: rows of the other folds were learned, rows of this fold were not. Priory makes these
models by subtraction, LightGBM is trained again. The price of `memory=0` is the log loss on a third of the rows that no
model has seen: with the default file, without rows, and without rows after one row was forgotten, when the corrections
have to be dropped. `--write` writes benchmarks/results/membership.md.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd

import datasets
import priory as pr
from priory.evaluation.membership import MembershipAudit

RESULTS = Path(__file__).parent / "results" / "membership.md"
TABLES = ["heart_cleveland", "iris", "wine", "penguins", "voting", "pima", "titanic", "soybean", "spambase", "adult"]
MAX_ROWS = 4000


def read(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    X, y = datasets.table(name)
    order = np.random.default_rng(0).permutation(len(y))[:MAX_ROWS]
    return X.iloc[order].reset_index(drop=True), y.to_numpy()[order]


def audit_lightgbm(X: pd.DataFrame, y: np.ndarray) -> MembershipAudit:
    classes, codes = np.unique(y, return_inverse=True)
    table = X.astype(dict.fromkeys(X.select_dtypes(exclude="number"), "category"))
    table.columns = [f"c{j}" for j in range(table.shape[1])]  # it does not take every name
    folds, rows = 10 if len(y) <= 1000 else 5, np.arange(len(y))
    fold, scores = rows % folds, np.empty((folds, len(y)))
    for f in range(folds):
        model = lightgbm.LGBMClassifier(verbose=-1, random_state=0, n_jobs=1).fit(table[fold != f], codes[fold != f])
        p = np.zeros((len(y), len(classes)))
        p[:, model.classes_] = model.predict_proba(table)
        scores[f] = np.log(np.maximum(p[rows, codes], 1e-300))
    is_out = fold == np.arange(folds)[:, None]
    return MembershipAudit.of(np.where(is_out, np.nan, scores), scores[fold, rows])


def measure_price(X: pd.DataFrame, y: np.ndarray) -> list[float]:
    n = 2 * len(y) // 3
    losses = []
    kept, none = (pr.NaiveBayes(memory=memory).fit(X[:n], y[:n]) for memory in (None, 0))
    after = pr.NaiveBayes(memory=0).fit(X[:n], y[:n]).forget(X[:1], y[:1])
    for model in (kept, none, after):
        known = np.isin(y[n:], model.classes_)
        p = model.predict_log_proba(X[n:][known])
        losses.append(-p[np.arange(len(p)), np.searchsorted(model.classes_, y[n:][known])].mean())
    return losses


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--tables", nargs="*", default=TABLES)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = [
        "# What answers reveal, and the price of a file without rows",
        "",
        "`python benchmarks/membership.py --write`: the area under the ROC curve of the attack that tells learned rows",
        "from others by the probability of their class (0.5 is chance), and the share of learned rows that it",
        f"recognises at one false alarm in a thousand. Up to {MAX_ROWS:,} rows of each table.",
        "",
        "| table | rows | Priory, AUC | at 0.1 % | plain naive Bayes | LightGBM, AUC | at 0.1 % |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    prices: list[Any] = []
    for name in given.tables:
        X, y = read(name)
        audit, plain = (pr.NaiveBayes(**kind).fit(X, y).audit_membership(X, y) for kind in ({}, {"calibrate": False}))
        other = audit_lightgbm(X, y)
        lines.append(
            f"| {name} | {len(y):,} | {audit.area:.3f} | {audit.caught:.2%} | {plain.area.value:.3f} | "
            f"{other.area:.3f} | {other.caught:.2%} |"
        )
        print(lines[-1], flush=True)
        prices.append((name, *measure_price(X, y)))
    lines += [
        "",
        "The price of a file without rows (`memory=0`), in log loss on rows that were not learned:",
        "",
        "| table | default | without rows | without rows, after one row was forgotten |",
        "|---|---:|---:|---:|",
        *(f"| {name} | {a:.4f} | {b:.4f} | {c:.4f} |" for name, a, b, c in prices),
        "| mean | {:.4f} | {:.4f} | {:.4f} |".format(*np.mean([price[1:] for price in prices], axis=0)),
    ]
    print("\n".join(lines))
    if given.write:
        RESULTS.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
