"""Model files compared with training again, pickle and joblib: time and size, in one run.

    python benchmarks/storage.py

Reads the IMDB reviews and the adult table (datasets.py); writes benchmarks/results/storage.md. Files are on the disk of
the machine; each time is the best of several runs. Training is `fit` with its defaults, and with ``calibrate=False``.
The lower limit of loading is to read the file and hash it on one core. A pickle is loaded without any check, and may
run code.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import joblib

import datasets
import priory as pr

RESULT = Path(__file__).parent / "results" / "storage.md"


class Time(NamedTuple):
    """Milliseconds of wall time, and of processor time."""

    clock: float
    processor: float


def best(function: Callable[[], Any], times: int) -> Time:
    """The shortest of several runs."""
    spans = []
    for _ in range(times):
        began = time.perf_counter(), time.process_time()
        function()
        spans.append((time.perf_counter() - began[0], time.process_time() - began[1]))
    clock, processor = zip(*spans, strict=True)
    return Time(1000 * min(clock), 1000 * min(processor))


def dumped(model: Any, path: Path) -> None:
    """Write a pickle as durably as a model file: synced and renamed."""
    with open(path, "wb") as file:
        pickle.dump(model, file, protocol=5)
        file.flush()
        os.fsync(file.fileno())


def floor(path: Path) -> None:
    """The lower limit of loading: read the file and hash it."""
    hashlib.sha256(path.read_bytes()).digest()


def measured(name: str, train: Callable[..., Any], folder: Path) -> list[str]:
    """A row for each way to store a model that was trained without calibration."""
    model, plain, full = train(calibrate=False), best(lambda: train(calibrate=False), 5), best(train, 2)
    ways: list[tuple[str, Callable[[Path], Any], Callable[[Path], Any]]] = [
        ("priory", lambda p: pr.save(model, p), pr.load),
        ("priory, floor", lambda p: pr.save(model, p), floor),
        ("pickle", lambda p: dumped(model, p), lambda p: pickle.loads(p.read_bytes())),
        ("joblib", lambda p: joblib.dump(model, p), joblib.load),
    ]
    rows = []
    for way, write, read in ways:
        path = folder / way
        saving = best(lambda write=write, path=path: write(path), 5)
        loading = best(lambda read=read, path=path: read(path), 25)
        times = f"{full.clock:,.0f} | {plain.clock:,.0f} | {saving.clock:.1f} | {loading.clock:.1f}"
        ratios = (full.clock / loading.clock, plain.clock / loading.clock, plain.processor / loading.processor)
        faster = " | ".join(f"{ratio:,.0f}" for ratio in ratios)
        rows.append(f"| {name} | {way} | {times} | {faster} | {path.stat().st_size / 1e6:.2f} |")
    return rows


def main() -> None:
    reviews, table = datasets.text("imdb"), datasets.table("adult")
    if reviews is None or table is None:
        raise SystemExit("the data are not there")
    texts, labels = reviews[:2]
    jobs: list[tuple[str, Callable[..., Any]]] = [
        ("IMDB, words", lambda **how: pr.TextClassifier(**how).fit(texts, labels)),
        ("IMDB, words and pairs", lambda **how: pr.TextClassifier(ngram_range=(1, 2), **how).fit(texts, labels)),
        ("adult, mixed table", lambda **how: pr.NaiveBayes(**how).fit(*table)),
    ]
    lines = [
        "# Model files",
        "",
        "`python benchmarks/storage.py`: milliseconds, best of several, two cores. `plain` is training with"
        " `calibrate=False`; `by processor` is plain / loading in processor time, which a busy machine stretches less;"
        " `floor` reads the file and hashes it on one core."
        f" Others were busy too: load average {os.getloadavg()[0]:.0f}.",
        "",
        "| model | kept by | training | plain | saving | loading "
        "| training / loading | plain / loading | by processor | MB |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name, train in jobs:
            lines += measured(name, train, Path(folder))
    text = "\n".join(lines) + "\n"
    print(text)
    RESULT.write_text(text)


if __name__ == "__main__":
    main()
