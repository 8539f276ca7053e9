"""Many classes, many categories, many columns: processor time and memory of everything that is done with a model.

    python benchmarks/no_cliffs.py [--seconds 60] [--gigabytes 6] [--only WORDS] [--write]

Each case is a process of its own, which may take so many processor seconds and so much memory; what did not get done,
and why, is in the table too. `--write` writes benchmarks/results/no_cliffs.md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "no_cliffs.md"
STEPS = ("fit", "predict", "labels", "learn", "save", "load")
ASKED, LABELLED = 200, 2_000  # rows of which the probabilities are asked, and rows of which the class is asked
LEARNED = 100  # rows that are learned one at a time


def make_texts(classes: int, tokens: int, documents: int) -> tuple[list[str], list[str]]:
    """Texts that show all tokens, with a few common ones in each."""
    import numpy as np

    rng = np.random.default_rng(0)
    words = np.array([f"w{i:x}" for i in range(tokens)], dtype=object)
    parts = np.array_split(rng.permutation(tokens), documents)
    texts = [" ".join(words[np.append(part, rng.zipf(1.3, 10) % tokens)]) for part in parts]
    return texts, [f"class {i % classes}" for i in range(documents)]


def make_categories(values: int) -> tuple[list[dict[str, object]], list[str]]:
    return [{"town": f"town {i}", "size": float(i % 7)} for i in range(values)], ["ab"[i % 2] for i in range(values)]


def make_columns(columns: int, rows: int = 200) -> tuple[Any, list[str]]:
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(0)
    cells = {
        f"c{j}": rng.normal(size=rows) if j % 2 else rng.integers(5, size=rows).astype(str) for j in range(columns)
    }
    return pa.table(cells), ["ab"[i % 2] for i in range(rows)]


def make_mixed_table(classes: int, rows: int = 100_000, columns: int = 10) -> tuple[Any, list[str]]:
    """Numbers and labels that differ from class to class, some rows of each class."""
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(0)
    group = np.arange(rows) % classes
    cells = {
        f"c{j}": rng.normal(rng.normal(size=classes)[group])
        if j % 2
        else (rng.integers(20, size=classes)[group] + rng.integers(5, size=rows)).astype(str)
        for j in range(columns)
    }
    return pa.table(cells), [f"class {i}" for i in group]


def make_counts(classes: int, rows: int = 20_000, columns: int = 100) -> tuple[Any, list[str]]:
    """Whole numbers: counts, categories or measurements, as a classifier reads them."""
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(0)
    group = np.arange(rows) % classes
    cells = rng.poisson(rng.gamma(1.0, 2.0, size=(classes, columns))[group])
    return pa.table({f"c{j}": cells[:, j] for j in range(columns)}), [f"class {i}" for i in group]


Case = tuple[Callable[[], tuple[Any, list[str]]], str, dict[str, object]]
CASES: dict[str, Case] = {
    "texts, 10 classes, 20,000 tokens, plain": (
        lambda: make_texts(10, 20_000, 2_000), "TextClassifier", {"calibrate": False}
    ),
    "texts, 10 classes, 20,000 tokens": (lambda: make_texts(10, 20_000, 2_000), "TextClassifier", {}),
    "texts, 1,000 classes, 20,000 tokens, plain": (
        lambda: make_texts(1_000, 20_000, 2_000), "TextClassifier", {"calibrate": False}
    ),
    "texts, 1,000 classes, 20,000 tokens": (lambda: make_texts(1_000, 20_000, 2_000), "TextClassifier", {}),
    "texts, 100,000 classes, 1,000 tokens, plain": (
        lambda: make_texts(100_000, 1_000, 100_000), "TextClassifier", {"calibrate": False}
    ),
    "texts, 100,000 classes, 1,000,000 tokens, plain": (
        lambda: make_texts(100_000, 1_000_000, 100_000), "TextClassifier", {"calibrate": False}
    ),
    "texts, 100,000 classes, 1,000,000 tokens": (
        lambda: make_texts(100_000, 1_000_000, 100_000), "TextClassifier", {}
    ),
    "a column of 10,000 categories, plain": (lambda: make_categories(10_000), "NaiveBayes", {"calibrate": False}),
    "a column of 10,000 categories": (lambda: make_categories(10_000), "NaiveBayes", {}),
    "a column of 1,000,000 categories, plain": (lambda: make_categories(1_000_000), "NaiveBayes", {"calibrate": False}),
    "a column of 1,000,000 categories": (lambda: make_categories(1_000_000), "NaiveBayes", {}),
    "1,000 columns, plain": (lambda: make_columns(1_000), "NaiveBayes", {"calibrate": False}),
    "1,000 columns": (lambda: make_columns(1_000), "NaiveBayes", {}),
    "10,000 columns, plain": (lambda: make_columns(10_000), "NaiveBayes", {"calibrate": False}),
    "10,000 columns": (lambda: make_columns(10_000), "NaiveBayes", {}),
    "a table of 10 columns, 1,000 classes, plain": (
        lambda: make_mixed_table(1_000), "NaiveBayes", {"calibrate": False}
    ),
    "a table of 10 columns, 1,000 classes": (lambda: make_mixed_table(1_000), "NaiveBayes", {}),
    "a table of 10 columns, 20,000 classes, plain": (
        lambda: make_mixed_table(20_000), "NaiveBayes", {"calibrate": False}
    ),
    "a table of 10 columns, 20,000 classes": (lambda: make_mixed_table(20_000), "NaiveBayes", {}),
    "GaussianNB, 100 columns, 10,000 classes": (lambda: make_counts(10_000), "GaussianNB", {}),
    "CategoricalNB, 100 columns, 10,000 classes": (lambda: make_counts(10_000), "CategoricalNB", {}),
    "MultinomialNB, 100 columns, 10,000 classes": (lambda: make_counts(10_000), "MultinomialNB", {}),
}  # fmt: skip


def measure_case(name: str) -> None:
    """Print, as JSON lines, the processor seconds of each step and the peak of memory in megabytes after it."""
    import priory as pr

    make, estimator, parameters = CASES[name]
    rows, labels = make()
    model = (getattr(pr, estimator, None) or getattr(pr.naive_bayes, estimator))(**parameters)
    first = rows.slice(0, 1).to_pylist()[0] if hasattr(rows, "slice") else rows[0]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.priory"
        steps: dict[str, Callable[[], object]] = {
            "": lambda: None,
            "fit": lambda: model.fit(rows, labels),
            "predict": lambda: model.predict_proba(rows[:ASKED]),
            "labels": lambda: model.predict(rows[:LABELLED]),
            "open": lambda: model.learn_one(first, labels[0]),
            "learn": lambda: [model.learn_one(first, labels[0]) for _ in range(LEARNED)],
            "save": lambda: pr.save(model, path),
            "load": lambda: pr.load(path),
        }
        for step, run in steps.items():
            start = time.process_time()
            try:
                run()
            except MemoryError as error:
                print(json.dumps(["failed", str(error) or "not enough memory", 0]), flush=True)
                return
            seconds = time.process_time() - start
            print(json.dumps([step, seconds, find_peak_megabytes()]), flush=True)


def find_peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_case(name: str, seconds: int, gigabytes: float) -> str:
    """A line of the table."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_AS, (int(gigabytes * 1e9), int(gigabytes * 1e9)))

    command = [sys.executable, __file__, "--case", name]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit, env=dict(os.environ), check=False)
    found = {step: (value, peak) for step, value, peak in map(json.loads, done.stdout.splitlines())}
    before = found.get("", (0, 0))[1]
    peak = max((p for _, p in found.values()), default=0.0)
    cells = [f"{found[step][0]:.3g}" if step in found else "-" for step in STEPS]
    failed = found.get("failed", (None, 0))[0]
    if failed is None and "load" not in found:
        stopped = done.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
        failed = f"more than {seconds} s" if stopped else (done.stderr.strip().splitlines() or ["stopped"])[-1]
    return f"| {name} | {' | '.join(cells)} | {peak - before:.0f} | {failed or ''} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--gigabytes", type=float, default=6)
    parser.add_argument("--only", default="", help="cases whose names have this in them")
    parser.add_argument("--case", help="run one case, in this process")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if given.case:
        measure_case(given.case)
        return
    lines = [
        "# No cliffs",
        "",
        f"`python benchmarks/no_cliffs.py --seconds {given.seconds} --gigabytes {given.gigabytes:g} --write`",
        "",
        f"Processor seconds; `predict` is the probabilities of {ASKED} rows, `labels` the classes of {LABELLED:,}, "
        f"`learn` {LEARNED} rows, one at a time, once the model is open for that. Memory is the peak above that of the "
        f"process with its data. Each case is a process of its own, which may take {given.seconds} s and "
        f"{given.gigabytes:g} GB in all.",
        "",
        f"| | {' | '.join(STEPS)} | MB | |",
        f"|---|{'--:|' * (1 + len(STEPS))}---|",
    ]
    print("\n".join(lines[4:]), flush=True)
    for name in CASES:
        if given.only in name:
            lines.append(run_case(name, given.seconds, given.gigabytes))
            print(lines[-1], flush=True)
    if given.write:
        RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
