"""What exact sums cost, and what they are worth: speed beside scikit-learn and plain sums, and bits that are right.

    python benchmarks/exact.py [rows] [--write]

Times are processor time, the least of several runs of each, interleaved in one process: other work on the machine slows
all of them alike. "Two threads" is elapsed time, for both.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn
from sklearn.naive_bayes import GaussianNB as PeerGaussianNB

from priory.core import sharding
from priory.core._kernel import tables
from priory.families import Gaussian
from priory.naive_bayes import GaussianNB

RESULTS = Path(__file__).parent / "results" / "exact.md"
COLUMNS, CLASSES, RUNS = 20, 5, 3
RNG = np.random.default_rng(15)


def time_together(
    actions: dict[str, Callable[[], object]], clock: Callable[[], float], runs: int = RUNS
) -> dict[str, float]:
    """Seconds of the quickest run of each action, the actions taking turns."""
    best = dict.fromkeys(actions, np.inf)
    for _ in range(RUNS):
        for name, action in actions.items():
            start = clock()
            action()
            best[name] = min(best[name], clock() - start)
    return best


def set_threads(threads: int) -> None:
    sharding.N_THREADS = threads


def replace_cells(x: np.ndarray, share: float, value: float) -> np.ndarray:
    return np.where(RNG.random(x.shape) < share, value, x)


def list_inputs(rows: int) -> dict[str, tuple[object, np.ndarray]]:
    y = RNG.integers(0, CLASSES, rows)
    x = RNG.normal(y[:, None] * 0.3, 1.0, (rows, COLUMNS))
    return {
        "ordinary": (x, y),
        "whole numbers": (np.rint(100 * x), y),
        "single precision": (x.astype(np.float32), y),
        "column-major": (np.asfortranarray(x), y),
        "pandas": (pd.DataFrame(x), y),
        "100 classes": (x, RNG.integers(0, 100, rows)),
        "lognormal(3)": (RNG.lognormal(0, 3, x.shape), y),
        "0.1 % of cells 1e300": (replace_cells(x, 0.001, 1e300), y),
        "5 % of cells missing": (replace_cells(x, 0.05, np.nan), y),
    }


def measure_fit(rows: int) -> list[str]:
    lines = []
    for name, (x, y) in list_inputs(rows).items():
        cells = np.ascontiguousarray(x, dtype=np.float64)
        group, groups = y.astype(np.int32), int(y.max()) + 1
        with np.errstate(over="ignore"):
            squares = cells * cells

        def sum_plainly(parts=(cells, squares), group=group, groups=groups) -> None:
            for part in parts:
                tables.group_sums(part, group, None, groups)

        missing = np.isnan(cells).any()
        learn = (lambda x, y: Gaussian().observe(x, y.astype(np.int32), CLASSES)) if missing else GaussianNB().fit
        ours = partial(learn, x, y)
        actions = {"plain": sum_plainly, "ours": ours}
        if not missing:
            actions["peer"] = partial(PeerGaussianNB().fit, x, y)
        set_threads(1)
        with np.errstate(all="ignore"):
            one = time_together(actions, time.thread_time)
            set_threads(2)
            del actions["plain"]
            two = time_together(actions, time.perf_counter)
        ratios = ["", ""] if missing else [f"{t['peer'] / t['ours']:.1f}x" for t in (one, two)]
        lines.append(
            f"| {name} | {one['plain'] * 1e3:.0f} ms | {one['ours'] * 1e3:.0f} ms | {one['ours'] / one['plain']:.1f} | "
            f"{ratios[0]} | {ratios[1]} |"
        )
        print(lines[-1], flush=True)
    return lines


def measure_one_row() -> list[str]:
    """Microseconds for one more row of 20 columns: its record, the sum, and the whole of partial_fit."""
    x, y = RNG.normal(size=(1000, COLUMNS)), RNG.integers(0, CLASSES, 1000)
    model, row, group = GaussianNB().fit(x, y), x[:1], y[:1].astype(np.int32)
    total, part = Gaussian().observe(x, y.astype(np.int32), CLASSES), Gaussian().observe(row, group, CLASSES)
    actions = {
        "the record of the row": lambda: Gaussian().observe(row, group, CLASSES),
        "its sum with the total": lambda: total + part,
        "`partial_fit`, whole": lambda: model.partial_fit(row, y[:1]),
    }
    found = time_together(
        {name: lambda a=action: [a() for _ in range(200)] for name, action in actions.items()}, time.thread_time
    )
    return [f"| {name} | {seconds * 1e6 / 200:.0f} µs |" for name, seconds in found.items()]


def make_adversarial_column(kind: int) -> np.ndarray:
    n = int(RNG.integers(2, 60))
    x = [
        lambda: RNG.normal(size=n),
        lambda: 10.0 ** RNG.integers(1, 16) + RNG.normal(size=n),
        lambda: RNG.normal(size=n) * 10.0 ** RNG.integers(-150, 150, n),
        lambda: np.repeat(RNG.normal() * 1e8, n),
        lambda: np.ldexp(RNG.random(n), RNG.integers(-1074, 500, n)),
        lambda: np.append(RNG.normal(size=n), RNG.choice([1e8, 1e100, 1e150])),
        lambda: np.append(RNG.normal(size=n), [1e16, -1e16]),
        lambda: RNG.choice([0.1, 0.2, 0.3], n),
    ][kind % 8]()
    return np.asarray(x, dtype=np.float64)


def count_correct(columns: int) -> list[str]:
    """How many means and variances are the doubles nearest to the true ones."""
    right = {"priory": [0, 0], "NumPy": [0, 0], "scikit-learn": [0, 0]}
    for i in range(columns):
        x = make_adversarial_column(i)
        values = [Fraction(v) for v in x.tolist()]
        mean = sum(values, Fraction(0)) / len(values)
        truth = float(mean), float(sum(((v - mean) ** 2 for v in values), Fraction(0)) / len(values))
        with np.errstate(all="ignore"):
            peer = PeerGaussianNB(var_smoothing=0.0).fit(x[:, None], np.zeros(len(x)))
            answers = {
                "priory": Gaussian().ml(Gaussian().observe(x)),
                "NumPy": (np.mean(x), np.var(x)),
                "scikit-learn": (peer.theta_[0, 0], peer.var_[0, 0]),
            }
        for name, answer in answers.items():
            for k in range(2):
                right[name][k] += float(answer[k]) == truth[k]
    return [f"| {name} | {mean:,} | {variance:,} |" for name, (mean, variance) in right.items()]


def attack() -> list[str]:
    """One row learned and forgotten again: the accuracy before and after, and whether every bit is as before."""
    y = RNG.integers(0, 2, 2000)
    x = RNG.normal(y[:, None] * 1.5, 1.0, (2000, 4))
    lines = []
    for visitor in (1e8, 1.7e9, 1e100, 1e300):
        model = GaussianNB().fit(x, y)
        before, moments = model.score(x, y), model.statistics_.parts[0]
        row = np.full((1, 4), visitor)
        with np.errstate(all="ignore"):
            model.partial_fit(row, [0]).forget(row, [0])
        after = model.statistics_.parts[0]
        same = (
            moments.second.limbs.tobytes() == after.second.limbs.tobytes() and moments.second.base == after.second.base
        )
        same &= moments.first.limbs.tobytes() == after.first.limbs.tobytes() and moments.first.base == after.first.base
        lines.append(f"| {visitor:g} | {before:.3f} | {model.score(x, y):.3f} | {'yes' if same else 'no'} |")
    return lines


def main() -> None:
    numbers = [a for a in sys.argv[1:] if a.isdigit()]
    rows = int(numbers[0]) if numbers else 1_000_000
    fits, one_row = measure_fit(rows), measure_one_row()
    text = "\n".join(
        [
            "# Exact sums",
            "",
            f"`python benchmarks/exact.py {rows} --write`. scikit-learn {sklearn.__version__}, NumPy {np.__version__},",
            f"Python {platform.python_version()}, two cores that other work was using too.",
            "",
            f"## `GaussianNB.fit`, {rows:,} x {COLUMNS}, {CLASSES} classes",
            "",
            "Processor time on one thread beside plain sums of numbers and of ready squares in doubles, and",
            "how many times slower scikit-learn is: in processor time on one thread, in elapsed time on two.",
            "scikit-learn refuses missing cells; there it is the record alone.",
            "",
            "| input | plain sums | exact, whole fit | times plain | scikit-learn, one thread | two threads |",
            "|---|---|---|---|---|---|",
            *fits,
            "",
            "## One row of 20 columns",
            "",
            "| | processor time |",
            "|---|---|",
            *one_row,
            "",
            "## 1,000 adversarial columns: means and variances that are the nearest double",
            "",
            "| | means | variances |",
            "|---|---|---|",
            *count_correct(1000),
            "",
            "## A row learned and forgotten again",
            "",
            "| its numbers | accuracy before | after | every bit as before |",
            "|---|---|---|---|",
            *attack(),
            "",
        ]
    )
    print(text)
    if "--write" in sys.argv:
        RESULTS.write_text(text)


if __name__ == "__main__":
    main()
