"""A mixed table larger than memory would like: every command against only reading the file with pyarrow.

The table is adult, over and over, with noise: numbers are jittered, one label in a hundred is another one, and one cell
in a hundred is missing. It also has a date with a time, an identifier and a measurement with decimals.

python benchmarks/streaming_mixed.py [--mb 1000] [--runs 3] [--write]    # writes benchmarks/results/streaming_mixed.md
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

sys.path.insert(0, str(Path(__file__).parent))
import datasets
from streaming import Run, load, python, run

RESULTS = Path(__file__).parent / "results" / "streaming_mixed.md"
ROWS_PER_BLOCK = 100_000
MB = 10**6
READ = """
import sys, pyarrow.csv as csv
print(sum(batch.num_rows for batch in csv.open_csv(sys.argv[1], csv.ReadOptions(block_size=1 << 22))))
"""
LIMITS = {"train": 6.0, "train --plain": 6.0, "predict": 4.0, "evaluate": 4.0, "learn": 4.0, "forget": 4.0}


def make_block(first_row: int, rng: np.random.Generator) -> pa.Table:
    """Rows of adult, drawn at random, with noise."""
    loaded = datasets.table("adult")
    if loaded is None:
        raise SystemExit("adult is not there; see benchmarks/datasets.py")
    X, y = loaded
    taken = rng.integers(0, len(X), ROWS_PER_BLOCK)
    columns: dict[str, object] = {"id": [f"r{first_row + i:09d}" for i in range(ROWS_PER_BLOCK)]}
    for name in X.columns:
        cells = X[name].to_numpy()[taken]
        gaps = rng.random(ROWS_PER_BLOCK) < 0.01
        if X[name].dtype.kind == "f":
            jitter = rng.integers(-2, 3, ROWS_PER_BLOCK) * (rng.random(ROWS_PER_BLOCK) < 0.2) * (cells > 2)
            columns[name] = pa.array((cells + jitter).astype(int), mask=gaps)
        else:
            other = X[name].to_numpy()[rng.integers(0, len(X), ROWS_PER_BLOCK)]
            noisy = np.where(rng.random(ROWS_PER_BLOCK) < 0.01, other, cells)
            columns[name] = pa.array(noisy, pa.string(), mask=gaps, from_pandas=True)
    seconds = rng.integers(1_600_000_000, 1_700_000_000, ROWS_PER_BLOCK)
    columns["when"] = pa.array(np.datetime_as_string(seconds.astype("datetime64[s]")))
    columns["measured"] = np.round(rng.normal(50 + 5 * (y.to_numpy()[taken] == ">50K"), 10), 3)
    return pa.table({**columns, "label": y.to_numpy()[taken]})


def write_table(path: Path, size: int, seed: int = 0) -> None:
    """A CSV of at least ``size`` bytes."""
    rng, rows = np.random.default_rng(seed), 0
    with path.open("wb") as file:
        while file.tell() < size:
            options = pyarrow.csv.WriteOptions(include_header=rows == 0, quoting_style="needed")
            pyarrow.csv.write_csv(make_block(rows, rng), file, options)
            rows += ROWS_PER_BLOCK


def list_commands(path: Path) -> dict[str, list[str]]:
    """Each command on the whole file; what is learned is then forgotten."""
    priory, model, plain = [sys.executable, "-m", "priory"], path.with_suffix(".priory"), path.with_name("plain.priory")
    options, output = ["--target", "label", "--force"], ["-o", str(path.with_name("out.csv")), "--force"]
    return {
        "pyarrow.csv, only reading it": python(READ, path),
        "train": [*priory, "train", str(path), *options, "-o", str(model)],
        "train --plain": [*priory, "train", str(path), *options, "--plain", "-o", str(plain)],
        "predict": [*priory, "predict", str(plain), str(path), *output],
        "evaluate": [*priory, "evaluate", str(plain), str(path)],
        "learn": [*priory, "learn", str(plain), str(path)],
        "forget": [*priory, "forget", str(plain), str(path)],
        "predict, with corrections": [*priory, "predict", str(model), str(path), *output],
        "evaluate, with corrections": [*priory, "evaluate", str(model), str(path)],
    }


def format_results(best: dict[str, Run], size: int, runs: int) -> list[str]:
    reading = best["pyarrow.csv, only reading it"]
    return [
        "# A mixed table, one process each, start to end",
        "",
        f"`python benchmarks/streaming_mixed.py --mb {size // MB} --write`, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, load {load()}.",
        f"The best of {runs} runs in turn; {size / 1e9:.2f} GB of CSV: adult with noise, a date and an identifier.",
        "",
        "| | seconds | times only reading | limit | seconds of all cores | times only reading | peak MB |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {name} | {r.wall:.1f} | {r.wall / reading.wall:.1f} | {LIMITS.get(name, '')} | {r.cpu:.1f} | "
            f"{r.cpu / reading.cpu:.1f} | {r.peak:.0f} |"
            for name, r in best.items()
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mixed.csv"
        write_table(path, given.mb * MB)
        commands = list_commands(path)
        found: dict[str, list[Run]] = {name: [] for name in commands}
        for _ in range(given.runs):  # in turn, so that a busy moment affects all of them
            for name, arguments in commands.items():
                found[name].append(run(arguments))
                print(name, found[name][-1], file=sys.stderr)
        lines = format_results({name: min(runs) for name, runs in found.items()}, path.stat().st_size, given.runs)
    print("\n".join(lines))
    if given.write:
        RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
