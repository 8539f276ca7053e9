"""Several threads with one estimator: rows that were learned at once, and answers beside a writer.

    python benchmarks/threads.py [--answers 100000] [--write]

`--write` writes benchmarks/results/threads.md.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import priory as pr
from priory.naive_bayes import GaussianNB

RESULTS = Path(__file__).parent / "results" / "threads.md"
LEARNERS, BATCHES, READERS = 8, 100, 16


def run_threads(functions: list[Callable[[], None]]) -> None:
    with ThreadPoolExecutor(len(functions)) as pool:
        for future in [pool.submit(function) for function in functions]:
            future.result()


def count_learned_rows(model: Any, rows: Any, labels: list[str]) -> int:
    """The rows that a model knows after 1,000 were learned by one call and 800 by eight threads at once."""
    model.partial_fit(
        [rows[i % len(rows)] for i in range(1000)], [labels[i % len(rows)] for i in range(1000)], ["a", "b"]
    )

    def learn() -> None:
        for i in range(BATCHES):
            model.partial_fit([rows[i % len(rows)]], [labels[i % len(rows)]])

    run_threads([learn] * LEARNERS)
    return int(model.class_count_.sum())


def count_torn_answers(n_answers: int) -> tuple[int, int]:
    """Answers beside a writer that goes back and forth between two models, and those that are of neither."""
    texts, labels = ["win cash", "lunch at noon", "cash prize"] * 10, ["spam", "ham", "spam"] * 10
    more = (["cash lunch today"] * 7, ["ham"] * 7)
    asked = ["cash", "lunch", "today", "prize"]
    model = pr.TextClassifier(calibrate=False).fit(texts, labels)
    both = pr.TextClassifier(calibrate=False).fit(texts + more[0], labels + more[1])
    possible = {model.predict_proba(asked).tobytes(), both.predict_proba(asked).tobytes()}
    counts, done = np.zeros((READERS, 2), dtype=int), threading.Event()

    def read(number: int) -> None:
        while counts[number, 0] < n_answers // READERS:
            counts[number] += (1, model.predict_proba(asked).tobytes() not in possible)

    def write() -> None:
        while not done.is_set():
            model.partial_fit(*more)
            model.forget(*more)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        run_threads([lambda number=number: read(number) for number in range(READERS)])  # type: ignore[misc]  # a default
    finally:
        done.set()
        writer.join()
    return int(counts[:, 0].sum()), int(counts[:, 1].sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    x = np.random.default_rng(0).normal(size=(50, 2)).tolist()
    texts, labels = [f"word{i % 7} lunch" for i in range(50)], ["ab"[i % 2] for i in range(50)]
    learned = {
        "GaussianNB": count_learned_rows(GaussianNB(), x, labels),
        "NaiveBayes": count_learned_rows(pr.NaiveBayes(calibrate=False), x, labels),
        "TextClassifier": count_learned_rows(pr.TextClassifier(calibrate=False), texts, labels),
    }
    answers, torn = count_torn_answers(given.answers)
    lines = [
        "# Threads",
        "",
        f"`python benchmarks/threads.py --answers {given.answers} --write`, Python {sys.version.split()[0]}.",
        "",
        f"Rows that a model knows after {LEARNERS} threads learned {BATCHES} rows each, on top of 1,000:",
        "",
        "| | rows known | rows learned |",
        "|---|--:|--:|",
        *(f"| {name} | {rows:,} | {1000 + LEARNERS * BATCHES:,} |" for name, rows in learned.items()),
        "",
        f"{READERS} readers beside a writer that learns and forgets: {torn} of {answers:,} answers are of neither",
        "the model before a change nor the model after it.",
    ]
    print("\n".join(lines))
    if given.write:
        RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
