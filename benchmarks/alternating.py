"""Two versions of the package on the same work, in turns: how much slower or faster is the new one?

    python benchmarks/alternating.py OLD_SRC NEW_SRC [--table FILE --target NAME] [--texts FILE]

Each version runs in a process of its own (PYTHONPATH is its ``src``). The processes take turns, task by task, so that
what else the machine does meets both alike; a ratio is that of the shortest processor times. ``--texts`` is a file of
lines "label<tab>text".
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

N_TURNS = 15


def make_table(n_rows: int = 10_000) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of 15 columns of numbers and 5 of labels."""
    rng = np.random.default_rng(0)
    numbers = {f"n{j}": rng.normal(size=n_rows) for j in range(15)}
    table = pd.DataFrame(numbers | {f"c{j}": rng.choice(["a", "b", "c", "d"], n_rows) for j in range(5)})
    return table, np.where(table["n0"] + table["n1"] + rng.normal(size=n_rows) > 0, "yes", "no")


def list_tasks(name: str, make: Callable[[], Any], X: Any, y: np.ndarray, rows: list[Any]) -> Iterator[tuple]:
    """The tasks of one model: their names, and functions of the number of the turn."""
    model = make().fit(X, y)
    plain = make().set_params(calibrate=False).fit(X, y)
    few = X.iloc[:100] if hasattr(X, "iloc") else X[:100]
    yield f"{name}: fit", lambda i: make().fit(X, y)
    yield f"{name}: fit, no corrections", lambda i: make().set_params(calibrate=False).fit(X, y)
    yield f"{name}: predict_proba", lambda i: model.predict_proba(X)
    yield f"{name}: predict_proba of 100 rows", lambda i: model.predict_proba(few)
    yield f"{name}: forget 100 rows", lambda i: plain.forget(few, y[:100])
    yield f"{name}: partial_fit of 100 rows", lambda i: plain.partial_fit(few, y[:100])
    yield f"{name}: learn_one, 100 rows", lambda i: [plain.learn_one(x, label) for x, label in rows]
    yield f"{name}: predict_one, 100 rows", lambda i: [plain.predict_proba_one(x) for x, _ in rows]
    yield f"{name}: forget_one, 100 rows", lambda i: [plain.forget_one(x, label) for x, label in rows]


def serve(arguments: argparse.Namespace) -> None:
    """Run tasks as the driver asks for them: a number in, seconds out."""
    import warnings

    from priory import NaiveBayes, TextClassifier

    warnings.simplefilter("ignore")
    tasks: list[tuple] = []
    tables = [("table", *make_table())]
    if arguments.table:
        frame = pd.read_csv(arguments.table)
        tables.append(
            (Path(arguments.table).parent.name, frame.drop(columns=arguments.target), frame[arguments.target])
        )
    for name, X, y in tables:
        y = np.asarray(y, dtype=object)
        rows = list(zip(X.iloc[:100].to_dict("records"), y[:100].tolist(), strict=True))
        tasks += list_tasks(name, NaiveBayes, X, y, rows)
    if arguments.texts:
        with open(arguments.texts, encoding="utf-8") as file:
            pairs = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        texts, y = [text for _, text in pairs], np.array([label for label, _ in pairs], dtype=object)
        tasks += list_tasks("texts", TextClassifier, texts, y, list(zip(texts[:100], y[:100].tolist(), strict=True)))
    print(json.dumps([name for name, _ in tasks]), flush=True)
    for line in sys.stdin:
        task, turn = map(int, line.split())
        start = time.process_time()
        tasks[task][1](turn)
        print(time.process_time() - start, flush=True)


def start(src: str, arguments: list[str]) -> subprocess.Popen:
    """A process with one version of the package."""
    environment = {**os.environ, "PYTHONPATH": str(Path(src).resolve()), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--serve", *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def run_turns(versions: list[subprocess.Popen]) -> None:
    """Let the versions take turns, and print the shortest times and their ratio."""
    [names, _] = [json.loads(version.stdout.readline()) for version in versions]
    seconds = np.full((2, len(names), N_TURNS), np.inf)
    for turn in range(N_TURNS):
        for task in range(len(names)):
            if names[task].endswith(": fit") and turn > 4:
                continue
            for v in (0, 1) if turn % 2 else (1, 0):
                versions[v].stdin.write(f"{task} {turn}\n")
                versions[v].stdin.flush()
                seconds[v, task, turn] = float(versions[v].stdout.readline())
    for name, old, new in zip(names, *seconds.min(axis=2), strict=True):
        print(f"{name:32} {1e3 * old:9.2f} ms {1e3 * new:9.2f} ms  {new / old:5.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*")
    parser.add_argument("--table")
    parser.add_argument("--target")
    parser.add_argument("--texts")
    parser.add_argument("--serve", action="store_true")
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments)
        return
    given = {"--table": arguments.table, "--target": arguments.target, "--texts": arguments.texts}
    options = [part for name, value in given.items() if value for part in (name, value)]
    versions = [start(src, options) for src in arguments.versions]
    try:
        run_turns(versions)
    finally:
        for version in versions:
            version.kill()


if __name__ == "__main__":
    main()
