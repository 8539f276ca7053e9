"""What becomes of corrections: after learning and forgetting again, and after merging.

python benchmarks/corrections_in_life.py [--write]

Needs the data sets (see datasets.py). `streams.py` shows them along a stream.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import datasets
import priory as pr
from priory import inbox

RESULTS = Path(__file__).parent / "results" / "corrections_in_life.md"
SETS = ("nursery", "adult", "spambase", "titanic", "inbox")
FORGOTTEN = (1, 10, 100)


def load(name: str) -> tuple[pd.DataFrame, np.ndarray[Any, Any]] | None:
    if name == "inbox":
        rows, labels = inbox()
        return pd.DataFrame(rows), np.array(labels, dtype=object)
    found = datasets.table(name)
    return None if found is None else (found[0].reset_index(drop=True), found[1].to_numpy())


def log_loss(model: Any, x: Any, y: Any) -> float:
    return pr.Scores.of(y, model.predict_log_proba(x), model.classes_, logs=True).log_loss.value


def after_changes(name: str) -> str | None:
    """Log loss on a third of the rows, before and after rows are learned and forgotten, and of two merged halves."""
    found = load(name)
    if found is None:
        return None
    table, y = found
    order = np.random.default_rng(0).permutation(len(y))
    test, train = order[: len(y) // 3], order[len(y) // 3 :]
    most = max(FORGOTTEN)
    more, train = train[:most], train[most:]
    model = pr.NaiveBayes().fit(table.iloc[train], y[train])
    before = log_loss(model, table.iloc[test], y[test])
    changes = []
    for n in FORGOTTEN:
        rows = more[:n]
        model.partial_fit(table.iloc[rows], y[rows]).forget(table.iloc[rows], y[rows])
        changes.append(log_loss(model, table.iloc[test], y[test]) - before)
    half = len(train) // 2
    merged = pr.NaiveBayes().fit(table.iloc[train[:half]], y[train[:half]]) + pr.NaiveBayes().fit(
        table.iloc[train[half:]], y[train[half:]]
    )
    plain = log_loss(pr.NaiveBayes(calibrate=False).fit(table.iloc[train], y[train]), table.iloc[test], y[test])
    cells = [
        name,
        f"{len(train):,}",
        "all" if model.statistics_.sample.is_complete else f"{len(model.statistics_.sample):,}",
        f"{plain:.4f}",
        f"{before:.4f}",
        *(f"{change:+.1e}" for change in changes),
        f"{log_loss(merged, table.iloc[test], y[test]) - before:+.1e}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    lines = [
        "# Corrections in a model's life",
        "",
        "`python benchmarks/corrections_in_life.py --write`",
        "",
        "Log loss on a third of the rows: plain naive Bayes; corrected; how it changed after rows were learned and",
        "forgotten again; and of two halves that were merged, against one fit.",
        "",
        "| set | rows learned | rows kept | plain | corrected | 1 row | 10 rows | 100 rows | merged |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in SETS:
        row = after_changes(name)
        if row is not None:
            print(row, file=sys.stderr)
            lines.append(row)
    text = "\n".join(lines) + "\n"
    if options.write:
        RESULTS.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
