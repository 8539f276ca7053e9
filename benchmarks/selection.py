"""Selecting texts for training: what is kept, at what speed, and in how much memory, beside fastText and DSIR.

python benchmarks/selection.py --peers PYTHON [--gigabytes 1 4] [--write]

The crawl is 6,000 film reviews, half of them positive; the wanted collection is 1,500 positive reviews of other films.
Precision is the share of positive reviews among the tenth that is kept. PYTHON is the interpreter of an environment
with fasttext 0.9.2 (one thread, pairs of words, 25 epochs), numpy < 2 and data-selection 1.0.3 (DSIR: its hashed
features, weights and Gumbel noise). MB/s are of processor time, for `priory select` with reading JSON lines twice and
writing them. Memory is measured on the same reviews, repeated to so many gigabytes.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from datasets import DATA
from priory import workflows

RESULT = Path(__file__).parent / "results" / "selection.md"
N_CRAWL, N_WANTED, SHARE = 6000, 1500, 0.1
PEERS = """
import json, sys, time
import numpy as np
kind, wanted, crawl, out = sys.argv[1:]
read = lambda path: [json.loads(line)["text"] for line in open(path)]
target, texts = read(wanted), read(crawl)
start = time.process_time()
if kind == "fastText":
    import fasttext
    with open(out + ".txt", "w") as file:
        for label, part in (("wanted", target), ("rest", texts)):
            file.writelines(f"__label__{label} {' '.join(text.split())}\\n" for text in part)
    model = fasttext.train_supervised(out + ".txt", wordNgrams=2, epoch=25, lr=0.5, thread=1, verbose=0)
    learned = time.process_time()
    labels, shares = model.predict([" ".join(text.split()) for text in texts], k=2)
    scores = np.array([share[label.index("__label__wanted")] for label, share in zip(labels, shares)])
else:
    from data_selection.hashed_ngram_dsir import get_ngram_counts
    counts = [sum((get_ngram_counts(text) for text in part), np.zeros(10000)) for part in (target, texts)]
    log_diff = np.subtract(*(np.log(count / count.sum() + 1e-8) for count in counts))
    learned = time.process_time()
    log_weights = np.array([log_diff @ get_ngram_counts(text) for text in texts])
    scores = log_weights + np.random.default_rng(0).gumbel(size=len(texts))
np.save(out, scores)
print(json.dumps({"learn": learned - start, "score": time.process_time() - learned}))
"""


def read_reviews() -> list[dict]:
    with gzip.open(DATA / "imdb" / "imdb_train.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]


def write_texts(path: Path, rows: list[dict], gigabytes: float = 0) -> float:
    """Write rows as JSON lines, repeated up to a size; return their size in MB."""
    block = "".join(json.dumps({"text": row["text"], "n": n}) + "\n" for n, row in enumerate(rows))
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(max(1, round(gigabytes * 1e9 / len(block)))):
            file.write(block)
    return path.stat().st_size / 1e6


def judge_peer(python: str, kind: str, folder: Path, is_positive: np.ndarray) -> list[str]:
    out = folder / f"{kind}.npy"
    command = [python, "-c", PEERS, kind, "wanted.jsonl", "crawl.jsonl", str(out)]
    seconds = json.loads(subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout)
    size = (folder / "crawl.jsonl").stat().st_size / 1e6
    kept = np.argsort(-np.load(out), kind="stable")[: round(SHARE * len(is_positive))]
    speeds = [f"{size / seconds[step]:.1f}" for step in ("learn", "score")]
    return [kind, f"{is_positive[kept].mean():.3f}", *speeds]


def judge_priory(folder: Path, is_positive: np.ndarray, seed: int | None) -> list[str]:
    crawl = folder / "crawl.jsonl"
    size, start = crawl.stat().st_size / 1e6, time.process_time()
    model = workflows.learn_contrast(folder / "wanted.jsonl", crawl)
    learned = time.process_time()
    rows = workflows.select(model, crawl, options=workflows.SelectionOptions(SHARE, seed=seed))
    kept = rows.to_table()["n"].to_numpy()
    speeds = [f"{size / seconds:.1f}" for seconds in (learned - start, time.process_time() - learned)]
    name = "`priory select`" + (" --draw" if seed is not None else "")
    return [name, f"{is_positive[kept].mean():.3f}", *speeds]


def score_texts(folder: Path) -> float:
    """MB/s of scoring texts in memory, without files."""
    lines = (folder / "crawl.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(line)["text"] for line in lines]
    model = workflows.learn_contrast(folder / "wanted.jsonl", folder / "crawl.jsonl")
    start = time.process_time()
    model.predict_log_proba(texts)
    return sum(map(len, texts)) / 1e6 / (time.process_time() - start)


def measure_command(folder: Path, rows: list[dict], gigabytes: float) -> list[str]:
    size = write_texts(folder / "large.jsonl", rows, gigabytes)
    options = ["--like", "wanted.jsonl", "--share", str(SHARE), "-o", "kept.jsonl", "--force", "--quiet"]
    command = [sys.executable, "-m", "priory", "select", "large.priory", "large.jsonl", *options]
    process = subprocess.Popen(command, cwd=folder)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    seconds = usage.ru_utime + usage.ru_stime
    return [f"{gigabytes:g} GB", f"{size / seconds:.0f}", f"{usage.ru_maxrss / 1024:.0f}"]


def format_table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers")
    parser.add_argument("--gigabytes", type=float, nargs="*", default=[1, 4])
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    rows = read_reviews()
    crawl, others = rows[:N_CRAWL], rows[N_CRAWL:]
    is_positive = np.array([row["label"] == "pos" for row in crawl])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_texts(folder / "crawl.jsonl", crawl)
        write_texts(folder / "wanted.jsonl", [row for row in others if row["label"] == "pos"][:N_WANTED])
        found = [judge_priory(folder, is_positive, seed) for seed in (None, 0)]
        if given.peers:
            found += [judge_peer(given.peers, kind, folder, is_positive) for kind in ("fastText", "DSIR")]
        lines = ["# Selecting texts", "", f"`{__doc__.splitlines()[2]}`", "", *__doc__.strip().split("\n\n")[2:], ""]
        head = ["", "precision of the kept tenth", "learn, MB/s", "score and keep, MB/s"]
        lines += [*format_table(head, found), "", f"Texts in memory are scored at {score_texts(folder):.0f} MB/s.", ""]
        sizes = [measure_command(folder, crawl, gigabytes) for gigabytes in given.gigabytes]
        lines += format_table(["size of the files", "MB/s, all three passes", "largest memory, MB"], sizes)
    print(*lines, sep="\n")
    if given.write:
        RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
