"""Training from files larger than memory, compared with only reading them and with a script that uses scikit-learn.

python benchmarks/streaming.py [folder]       # writes benchmarks/results/streaming.md; needs 7 GB in the folder
"""

from __future__ import annotations

import csv
import os
import platform
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import datasets

RESULTS = Path(__file__).parent / "results" / "streaming.md"
GB = 10**9
RUNS = 5

READ = """
import sys, pyarrow.csv as csv
options = csv.ReadOptions(block_size=1 << 22), csv.ParseOptions(newlines_in_values=True)
print(sum(batch.num_rows for batch in csv.open_csv(sys.argv[1], *options)))
"""
SCIKIT = """
import sys, pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
table = pd.read_csv(sys.argv[1])
MultinomialNB().fit(CountVectorizer(binary=True).fit_transform(table["text"]), table["label"])
"""


class Run(NamedTuple):
    """Run one process; return its wall time and processor time in seconds, and its peak memory in megabytes."""

    wall: float
    cpu: float
    peak: float


def load() -> str:
    """The load of the machine while it was measured."""
    return f"{os.getloadavg()[2]:.1f}"


def run(arguments: list[str]) -> Run:
    start = time.perf_counter()
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{arguments[:4]} failed")
    return Run(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def train(path: Path, *options: str) -> list[str]:
    model = path.with_suffix(".priory")
    return [
        sys.executable,
        "-m",
        "priory",
        "train",
        str(path),
        "--target",
        "label",
        "--force",
        "-o",
        str(model),
        *options,
    ]


def python(script: str, path: Path) -> list[str]:
    return [sys.executable, "-c", script, str(path)]


def write(path: Path, rows: Iterable[tuple[str, str]], size: int) -> None:
    """A CSV of at least ``size`` bytes."""
    if path.exists() and path.stat().st_size >= size:
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["label", "text"])
        for number, row in enumerate(rows):
            writer.writerow(row)
            if number % 1000 == 0 and file.tell() >= size:
                return


def reviews() -> Iterator[tuple[str, str]]:
    """The IMDB reviews, shuffled and repeated without end."""
    loaded = datasets.text("imdb")
    if loaded is None:
        raise SystemExit("the IMDB reviews are not there; see benchmarks/datasets.py")
    texts, labels, more_texts, more_labels = loaded
    rows = list(zip(labels + more_labels, texts + more_texts, strict=True))
    shuffle = random.Random(0).shuffle
    while True:
        shuffle(rows)
        yield from rows


def generated(words: int = 100_000, pool: int = 50_000) -> Iterator[tuple[str, str]]:
    """Endless texts of 120 words drawn by Zipf's law; each class prefers every other word a little."""
    rng = np.random.default_rng(0)
    vocabulary = np.array([f"word{i:x}" for i in range(words)], dtype=object)
    odd = np.arange(words) % 2
    fond = [np.cumsum(np.where(odd == c, 1.3, 1.0) / np.arange(1, words + 1)) for c in (0, 1)]
    rows = [
        ("ab"[c], " ".join(vocabulary[np.searchsorted(fond[c], rng.random(120) * fond[c][-1])]))
        for c in (np.arange(pool) % 2).tolist()
    ]
    while True:
        yield from rows


def main(folder: Path) -> None:
    big, tenth, huge = folder / "reviews.csv", folder / "tenth.csv", folder / "generated.csv"
    write(big, reviews(), GB)
    write(tenth, reviews(), GB // 10)
    jobs = {
        "pyarrow.csv, only reading it": python(READ, big),
        "priory train --plain": train(big, "--plain"),
        "priory train": train(big),
        "scikit-learn, a tenth of it": python(SCIKIT, tenth),
    }
    found: dict[str, list[Run]] = {name: [] for name in jobs}
    for _ in range(RUNS):  # in turn, so that a busy moment affects all of them
        for name, arguments in jobs.items():
            found[name].append(run(arguments))
            print(name, found[name][-1], file=sys.stderr)
    best = {name: min(runs) for name, runs in found.items()}
    scaled = best["scikit-learn, a tenth of it"]
    best["scikit-learn, scaled to all of it"] = Run(10 * scaled.wall, 10 * scaled.cpu, scaled.peak)
    reading = best["pyarrow.csv, only reading it"].wall
    lines = [
        "# Training from files, one process each, start to end",
        "",
        f"`python benchmarks/streaming.py`, {os.cpu_count()} cores, Python {platform.python_version()}, load {load()}.",
        f"The best of {RUNS} runs in turn. {big.stat().st_size / GB:.2f} GB of CSV, the IMDB reviews over and over.",
        "",
        "| | seconds | times only reading | seconds of all cores | peak MB |",
        "|---|---|---|---|---|",
        *(f"| {n} | {r.wall:.1f} | {r.wall / reading:.1f} | {r.cpu:.1f} | {r.peak:.0f} |" for n, r in best.items()),
    ]
    write(huge, generated(), 5 * GB)
    only_read, alone = run(python(READ, huge)), run(train(huge))
    lines += [
        "",
        f"A generated CSV of {huge.stat().st_size / GB:.2f} GB, once: `priory train` {alone.wall:.1f} s "
        f"({alone.wall / only_read.wall:.1f} times only reading), {alone.cpu:.1f} s of all cores, "
        f"peak {alone.peak:.0f} MB.",
    ]
    RESULTS.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
