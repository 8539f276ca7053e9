"""Averaging over all sets of features compared with plain naive Bayes: what it gains, and what it costs.

    python benchmarks/averaging.py        # writes results/averaging.md; accuracy needs the data sets of datasets.py

Accuracy and log loss on the official split, or by five stratified folds (seed 0) where there is none; only the first
5,000 rows of a long table are used. The cost is the processor time of ``fit`` and ``predict_proba`` in seconds, the
best of three runs, taken in turn.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

import datasets
import priory as pr

RESULTS = Path(__file__).parent / "results" / "averaging.md"
TEXTS = ["imdb", "rt_polarity", "sms_spam", "trec_questions", "20newsgroups_bydate"]
# two sets are left out because some of their classes have one or two rows
TABLES = [name for name in datasets.CLASSIFICATION if name not in ("nursery", "soybean")]
ROWS = 5_000
LINES: list[str] = []


def say(line: str) -> None:
    print(line, flush=True)
    LINES.append(line)


def score_model(model: Any, train: Any, labels: Any, test: Any, truth: Any) -> tuple[float, float, float]:
    """Accuracy, log loss, and the smoothing strength that was chosen (NaN if none was)."""
    p = model.fit(train, labels).predict_proba(test)
    right = float((model.classes_[p.argmax(axis=1)] == truth).mean())
    return right, float(log_loss(truth, p, labels=model.classes_)), float(getattr(model, "alpha_", np.nan))


def cell(scores: list[tuple[float, float, float]], alpha: bool) -> str:
    right, loss, strength = np.mean(scores, axis=0)
    return f"{100 * right:.1f} / {loss:.3f}" + (f" ({strength:.2g})" if alpha else "")


def texts() -> None:
    say("## Texts: accuracy in per cent / log loss\n")
    say('In brackets the strength chosen by leaving texts out (`alpha="loo"`; the mean over the folds).\n')
    say("| set | model | plain, α = 1 | averaged, α = 1 | plain, α chosen | averaged, α chosen |")
    say("|---|---|---|---|---|---|")
    for name in TEXTS:
        found = datasets.text(name)
        if found is None:
            continue
        train, labels, test, truth = found
        parts = [(train, labels, test, np.asarray(truth))] if test else list(folds(train, labels))
        for model in ("bernoulli", "binary", "poisson", "multinomial")[: 1 if name.startswith("20") else None]:
            cells = []
            for alpha in (1.0, "loo"):
                for average in (False, True):
                    build = pr.TextClassifier(model, average=average, alpha=alpha, calibrate=False)
                    cells.append(cell([score_model(build, *part) for part in parts], alpha == "loo"))
            say(f"| {name} | {model} | {' | '.join(cells)} |")


def folds(x: Any, y: Any) -> Iterator[tuple[list[str], Any, list[str], Any]]:
    texts, labels = np.array(x, dtype=object), np.asarray(y)
    for a, b in StratifiedKFold(5, shuffle=True, random_state=0).split(texts, labels):
        yield texts[a].tolist(), labels[a], texts[b].tolist(), labels[b]


def tables() -> None:
    say("\n## Tables: accuracy in per cent / log loss\n")
    say("The strength of the prior is that of each column by evidence.\n")
    say("| table | columns | of which matter | plain | averaged |\n|---|---|---|---|---|")
    for name in TABLES:
        found = datasets.table(name)
        if found is None:
            continue
        x, y = found[0].iloc[:ROWS], found[1].iloc[:ROWS]
        parts = [
            (x.iloc[a], y.iloc[a], x.iloc[b], y.iloc[b].to_numpy())
            for a, b in StratifiedKFold(5, shuffle=True, random_state=0).split(x, y)
        ]
        builds = [pr.NaiveBayes(calibrate=False), pr.NaiveBayes(average=True, calibrate=False)]
        cells = [cell([score_model(b, *part) for part in parts], False) for b in builds]
        matter = pr.NaiveBayes(calibrate=False).fit(x, y).inclusion_probability_
        say(f"| {name} | {len(matter)} | {matter.sum():.1f} | {' | '.join(cells)} |")


def cost() -> None:
    say("\n## Cost: 1,000,000 rows, 20 columns, two classes; seconds of fit + predict_proba\n")
    say("| columns | of which depend on the class | plain | averaged | ratio |\n|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    y = np.arange(1_000_000) % 2
    for family in ("gaussian", "histogram", "poisson", "bernoulli", "categorical"):
        for depend in (20, 10, 0):
            effect = np.where(np.arange(20) < depend, 1.0, 0.0) * y[:, None]
            x = {
                "poisson": lambda e: rng.poisson(1 + e).astype(float),
                "bernoulli": lambda e: (rng.random(e.shape) < 0.3 + 0.2 * e).astype(float),
                "categorical": lambda e: rng.integers(0, 5, e.shape) + e,
            }.get(family, lambda e: rng.normal(e, 1.0))(effect)
            seconds = [np.inf, np.inf]
            for _ in range(3):
                for i, average in enumerate((False, True)):
                    start = time.process_time()
                    pr.NaiveBayes(family, average=average, calibrate=False).fit(x, y).predict_proba(x)
                    seconds[i] = min(seconds[i], time.process_time() - start)
            say(f"| {family} | {depend} | {seconds[0]:.2f} | {seconds[1]:.2f} | {seconds[1] / seconds[0]:.2f} |")


def main() -> None:
    warnings.simplefilter("ignore")
    say(f"# Averaging over all sets of features\n\n`python benchmarks/averaging.py`; {os.cpu_count()} cores.\n")
    texts()
    tables()
    cost()
    RESULTS.write_text("\n".join(LINES) + "\n")


if __name__ == "__main__":
    main()
