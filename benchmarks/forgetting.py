"""Forget one row that `fit` has learned: how long it takes, and how long the next answer takes.

    python benchmarks/forgetting.py [--write] [--rows 1000000] [--tokens 1000000] [--only numbers]

Old rows of adult, of a table of numbers and of texts with many distinct tokens are forgotten one at a time; then kept
rows (in the sample that corrections are derived from) and rows that are not kept, each followed by an answer, without
and with standby corrections. Beside: LightGBM fitted again without the row. Times are of the processor, in one thread:
a wall clock would measure what else the machine does. Adult needs the data (see datasets.py). `--only` measures one
of the data; with `--write` the other lines of the results stay.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import datasets
import priory as pr

RESULTS = Path(__file__).parent / "results" / "forgetting.md"
ADULT_ROWS = 22_792  # 70 % of the training rows
N_COLUMNS = 20
TOKENS_PER_TEXT, COMMON_TOKENS = 150, 5000
N_FORGOTTEN = 1000
N_ANSWERS = 5  # of each kind


@dataclass(frozen=True)
class Data:
    """Rows that a model learns, as it learns them and one at a time."""

    name: str
    make_model: Callable[[], Any]
    X: Any
    y: np.ndarray[Any, Any]

    def take(self, places: Sequence[int]) -> list[tuple[Any, Any]]:
        """Some rows with their labels."""
        rows = [self.X[i] for i in places] if isinstance(self.X, list) else self.X.iloc[places].to_dict("records")
        return list(zip(rows, self.y[places].tolist(), strict=True))


def make_data(n_rows: int, n_tokens: int, only: str) -> Iterator[Data]:
    """The data whose names begin with ``only``."""
    rng = np.random.default_rng(0)
    adult = datasets.table("adult")
    if adult is not None and "adult".startswith(only):
        table, labels = adult[0].iloc[:ADULT_ROWS], adult[1].to_numpy()[:ADULT_ROWS]
        yield Data(f"adult, {ADULT_ROWS:,} x 14", pr.NaiveBayes, table, labels)
    if "numbers".startswith(only):
        numbers = rng.normal(size=(n_rows, N_COLUMNS))
        above = numbers[:, 0] + numbers[:, 1] * numbers[:, 2] + rng.normal(size=n_rows) > 0
        table = pd.DataFrame(numbers, columns=[f"x{j}" for j in range(N_COLUMNS)])
        yield Data(f"numbers, {n_rows:,} x {N_COLUMNS}", pr.NaiveBayes, table, above.astype(int))
    if not "texts".startswith(only):
        return
    texts, labels = make_texts(n_tokens, np.random.default_rng(0))
    yield Data(f"texts, {n_tokens:,} distinct tokens", pr.TextClassifier, texts, labels)
    n_kept = len(texts) // 3
    yield Data(f"texts, {n_kept:,} of {len(texts):,} kept", lambda: pr.TextClassifier(memory=n_kept), texts, labels)


def make_texts(n_tokens: int, rng: np.random.Generator) -> tuple[list[str], np.ndarray[Any, Any]]:
    """Texts of two classes, half of whose tokens are common and half occur nowhere else."""
    n_rare = TOKENS_PER_TEXT // 2
    n_texts = n_tokens // n_rare
    labels = rng.integers(2, size=n_texts)
    common = (COMMON_TOKENS * rng.random((n_texts, n_rare)) ** 3).astype(int) + 40 * labels[:, None]
    texts = [
        " ".join([*(f"c{token}" for token in common[i]), *(f"t{i * n_rare + j}" for j in range(n_rare))])
        for i in range(n_texts)
    ]
    return texts, labels


def measure(function: Callable[..., object], *arguments: object) -> float:
    """Milliseconds of processor time."""
    start = time.thread_time()
    function(*arguments)
    return (time.thread_time() - start) * 1e3


def forget_old_rows(data: Data, model: Any, rng: np.random.Generator) -> str:
    """Forget many rows of `fit`, one at a time."""
    old = data.take(rng.choice(len(data.y), min(N_FORGOTTEN, len(data.y) // 4), replace=False).tolist())
    asked = data.take([0])[0][0]
    model.predict_proba_one(asked)  # opens the model for single rows
    first = measure(model.forget_one, *old[0])
    gc.collect()
    times = [measure(model.forget_one, *row) for row in old[1:]]
    settled = measure(lambda: model.statistics_)
    low, high = np.median(times), np.percentile(times, 99)
    return f"| {data.name} | {first:.2f} | {low * 1e3:.0f} | {high * 1e3:.0f} | {max(times):.2f} | {settled:.0f} |"


def find_kept(data: Data, model: Any, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Which rows are kept in the sample."""
    learned = model.learned_
    rows = [data.X[i] for i in places] if isinstance(data.X, list) else data.X.iloc[places]
    cells = learned.rows.read_cells(learned.rows.read(rows, "answer", learned.statistics)[1])
    group = np.searchsorted(learned.classes, data.y[places])
    return np.isin(learned.rows.hash_rows(cells, learned.classes, group), learned.statistics.sample.hashes)


def answer_after(model: Any, rows: Sequence[tuple[Any, Any]], asked: object, prepare: Callable[[], object]) -> float:
    """Milliseconds of the answer after each row was forgotten."""
    times = []
    for row in rows:
        prepare()
        model.predict_proba_one(asked)
        model.forget_one(*row)
        times.append(measure(model.predict_proba_one, asked))
    return float(np.median(times)) if times else np.nan


def measure_answers(data: Data, model: Any, rng: np.random.Generator) -> str:
    """The next answer after a row was forgotten that is kept or not, without and with standby corrections."""
    places = rng.permutation(len(data.y))[: 4 * N_FORGOTTEN]
    kept = find_kept(data, model, places)
    inside, outside = data.take(places[kept].tolist()), data.take(places[~kept].tolist())
    asked = data.take([0])[0][0]
    cells = []
    for prepare in (model.refresh, model.prepare_standby):
        for rows in (outside, inside):
            took = answer_after(model, [rows.pop() for _ in range(min(N_ANSWERS, len(rows)))], asked, prepare)
            cells.append("-" if np.isnan(took) else f"{took:.2f}" if took < 10 else f"{took:.0f}")
    return f"| {data.name} | {kept.mean():.1%} | {' | '.join(cells)} |"


def refit_lightgbm(data: Data) -> str:
    """Seconds that LightGBM takes to be fitted again."""
    import lightgbm

    table = data.X.astype(dict.fromkeys(data.X.select_dtypes(exclude="number"), "category"))
    model = lightgbm.LGBMClassifier(n_jobs=1, verbose=-1)
    start = time.process_time()
    model.fit(table.iloc[1:], data.y[1:])
    return f"{time.process_time() - start:.1f} s"


def measure_peers(data: Data) -> Iterator[str]:
    if not isinstance(data.X, pd.DataFrame):
        return
    try:
        yield f"| LightGBM, fitted again, {data.name} | {refit_lightgbm(data)} |"
    except ImportError:
        yield "| LightGBM | not installed |"


def read_other_lines(only: str) -> tuple[list[str], list[str], list[str]]:
    """The lines of the three tables of the results that are about other data."""
    tables = [part.split("\n\n")[0].splitlines() for part in RESULTS.read_text(encoding="utf-8").split("---:|\n")[1:]]
    forgotten, answers, peers = ([line for line in lines if f"| {only}" not in line] for lines in tables)
    return forgotten, answers, [line for line in peers if f"fitted again, {only}" not in line]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    parser.add_argument("--only", default="", help="adult, numbers or texts")
    given = parser.parse_args()
    forgotten, answers, peers = ([], [], []) if not given.only else read_other_lines(given.only)
    for data in make_data(given.rows, given.tokens, given.only):
        rng = np.random.default_rng(1)
        model = data.make_model().fit(data.X, data.y)
        answers.append(measure_answers(data, model, rng))
        print(answers[-1], flush=True)
        forgotten.append(forget_old_rows(data, data.make_model().fit(data.X, data.y), rng))
        print(forgotten[-1], flush=True)
        peers += measure_peers(data)
    text = f"""# Forget one row of `fit`

`python benchmarks/forgetting.py --rows {given.rows} --tokens {given.tokens} --write`: processor time, one thread
(or in parts, with `--only adult`, `numbers`, `texts`; on a busy machine times are up to twice as long).

{N_FORGOTTEN:,} rows that `fit` has learned, each by `forget_one`. The first one prepares the guards of its class;
"settle" is what reading the statistics takes afterwards, which counts all of them in one batch.

| | first, ms | median, us | p99, us | slowest, ms | settle, ms |
|---|---:|---:|---:|---:|---:|
{chr(10).join(forgotten)}

The answer after one row was forgotten, in ms: kept rows are those that corrections are fitted to.

| | kept rows | not kept | kept | standby, not kept | standby, kept |
|---|---:|---:|---:|---:|---:|
{chr(10).join(answers)}

| beside | |
|---|---:|
{chr(10).join(peers)}

DaRE forests (`dare-rf` on PyPI) are not beside: the source distribution lacks the Cython files that it is built from.
"""
    print(text)
    if given.write:
        RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
