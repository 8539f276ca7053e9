"""How long a command takes from a cold start, in units of the time that importing NumPy and pyarrow takes.

    python benchmarks/cold_start.py [--runs 9] [--write]

Each command is a process of its own that answers for one row. The commands and the import take turns, so that other
work on the machine disturbs all of them alike; of each the quickest run counts. `--write` writes
benchmarks/results/cold_start.md.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import priory as pr
from priory import inbox

RESULTS = Path(__file__).parent / "results" / "cold_start.md"
IMPORT = ["-c", "import numpy, pyarrow"]
COMMANDS = {
    "predict, texts": ["-m", "priory", "predict", "texts.priory", "text.csv"],
    "explain, texts": ["-m", "priory", "explain", "texts.priory", "claim your prize now"],
    "learn, texts": ["-m", "priory", "learn", "texts.priory", "labelled.csv"],
    "forget, texts": ["-m", "priory", "forget", "texts.priory", "labelled.csv"],
    "filter, mail": ["-m", "priory", "filter", "mail.priory"],
    "learn-mail": ["-m", "priory", "learn-mail", "mail.priory", "spam"],
    "predict, table": ["-m", "priory", "predict", "table.priory", "row.csv"],
    "explain, table": ["-m", "priory", "explain", "table.priory", "sender=mother", "hour=7"],
    "learn, table": ["-m", "priory", "learn", "table.priory", "labelled_row.csv"],
    "forget, table": ["-m", "priory", "forget", "table.priory", "labelled_row.csv"],
    "predict, plain table": ["-m", "priory", "predict", "plain.priory", "row.csv"],
    "learn, plain table": ["-m", "priory", "learn", "plain.priory", "labelled_row.csv"],
    "forget, plain table": ["-m", "priory", "forget", "plain.priory", "labelled_row.csv"],
    "inspect, table": ["-m", "priory", "inspect", "table.priory"],
    "priory --help": ["-m", "priory", "--help"],
    "import numpy": ["-c", "import numpy"],
    "import scikit-learn": ["-c", "import sklearn.base"],
}


MESSAGE = b"Received: from mx.example\nSubject: claim your prize\n\nclaim your prize now\n"


def write_examples(folder: Path) -> None:
    """Four models, and rows for them."""
    rows, labels = inbox()
    table = [{name: row[name] for name in ("sender", "hour", "links")} for row in rows]
    pr.save(pr.TextClassifier().fit([row["text"] for row in rows], labels), folder / "texts.priory")
    texts = [row["text"].encode() for row in rows]
    pr.save(pr.TextClassifier(reader="mail").fit([b"\n" + text for text in texts], labels), folder / "mail.priory")
    pr.save(pr.NaiveBayes().fit(table, labels), folder / "table.priory")
    pr.save(pr.NaiveBayes(calibrate=False).fit(table, labels), folder / "plain.priory")
    (folder / "text.csv").write_text("text\nclaim your prize now\n")
    (folder / "labelled.csv").write_text("text,label\nclaim your prize now,spam\n")
    (folder / "row.csv").write_text("sender,hour,links\nmother,7,0\n")
    (folder / "labelled_row.csv").write_text("sender,hour,links,label\nmother,7,0,normal\n")


def time_process(arguments: list[str], folder: Path) -> tuple[float, float]:
    """Seconds, and processor seconds, of a process."""
    used, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(
        [sys.executable, *arguments], cwd=folder, check=True, capture_output=True, env=environment, input=MESSAGE
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    return time.perf_counter() - start, processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    processes = {"import numpy, pyarrow": IMPORT, **COMMANDS}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in processes}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_examples(folder)
        for run in range(given.runs + 1):
            for what, arguments in processes.items():
                times = time_process(arguments, folder)
                if run:  # the first run fills caches
                    found[what].append(times)
    wall, processor = ({name: min(t[i] for t in times) for name, times in found.items()} for i in (0, 1))
    base = "import numpy, pyarrow"
    lines = [
        "# Cold start",
        "",
        f"`python benchmarks/cold_start.py --runs {given.runs} --write`: processes that answer for one row, beside one",
        "that only imports NumPy and pyarrow. The quickest of the runs; ratios are to that import.",
        "",
        "| process | seconds | ratio | processor seconds | ratio |",
        "|---|--:|--:|--:|--:|",
        *(
            f"| {what} | {wall[what]:.2f} | {wall[what] / wall[base]:.1f} | {processor[what]:.2f} | "
            f"{processor[what] / processor[base]:.1f} |"
            for what in processes
        ),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if given.write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
