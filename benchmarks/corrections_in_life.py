"""What becomes of corrections: after learning and forgetting again, after merging, and along a stream.

python benchmarks/corrections_in_life.py [--write]

Needs the data sets (see datasets.py). `river` is shown beside where it is installed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import datasets
import priory as pr
from priory.data import inbox

RESULTS = Path(__file__).parent / "results" / "corrections_in_life.md"
SETS = ("nursery", "adult", "spambase", "titanic", "inbox")
FORGOTTEN = (1, 10, 100)
BATCHES = 50


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


class Stream:
    """Batches of rows, each predicted before it is learned; ``window`` forgets all but the last of them."""

    def __init__(self, name: str, rows: Any, labels: Sequence[str]) -> None:
        self.name, self.rows, self.labels = name, rows, np.asarray(labels, dtype=object)
        self.parts = np.array_split(np.arange(len(self.labels)), BATCHES)

    def take(self, part: np.ndarray[Any, Any]) -> Any:
        return self.rows.iloc[part] if isinstance(self.rows, pd.DataFrame) else [self.rows[i] for i in part]

    def run(self, model: Any, window: int | None = None) -> tuple[float, float]:
        """Log loss and calibration error of all answers but those to the first batch."""
        classes = sorted(set(self.labels.tolist()))
        truth, answers = [], []
        for number, part in enumerate(self.parts):
            if number:
                known = model.predict_log_proba(self.take(part))
                wide = np.full((len(part), len(classes)), -30.0)
                wide[:, np.searchsorted(classes, model.classes_)] = known
                truth.append(self.labels[part])
                answers.append(wide)
            model.partial_fit(self.take(part), self.labels[part])
            if window is not None and number >= window:
                old = self.parts[number - window]
                model.forget(self.take(old), self.labels[old])
        scores = pr.Scores.of(np.concatenate(truth), np.concatenate(answers), classes, logs=True)
        return scores.log_loss.value, scores.calibration_error.value


def streams() -> list[Stream]:
    found = []
    adult = datasets.table("adult")
    if adult is not None:
        found.append(Stream("adult", adult[0].reset_index(drop=True), adult[1].to_numpy()))
    for name in ("imdb", "spamassassin"):
        texts = datasets.text(name)
        if texts is not None:
            order = np.random.default_rng(0).permutation(len(texts[0])) if name == "imdb" else np.arange(len(texts[0]))
            found.append(Stream(name, [texts[0][i] for i in order], [texts[1][i] for i in order]))
    return found


def along_stream(stream: Stream) -> list[str]:
    make = pr.NaiveBayes if isinstance(stream.rows, pd.DataFrame) else pr.TextClassifier
    models = {
        "corrected": (make(), None),
        "corrected, the last 20 batches": (make(), 20),
        "plain": (make(calibrate=False), None),
    }
    rows = []
    for title, (model, window) in models.items():
        loss, error = stream.run(model, window)
        rows.append(f"| {stream.name} | {title} | {loss:.4f} | {100 * error:.1f} % |")
        print(rows[-1], file=sys.stderr)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    parser.add_argument("--no-streams", action="store_true")
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
    if not options.no_streams:
        lines += [
            "",
            f"Streams of {BATCHES} batches, each predicted before it is learned: log loss and calibration error.",
            "",
            "| stream | model | log loss | calibration error |",
            "|---|---|---|---|",
        ]
        for stream in streams():
            lines += along_stream(stream)
    text = "\n".join(lines) + "\n"
    if options.write:
        RESULTS.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
