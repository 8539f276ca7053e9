"""Speed and memory on 1,000,000 x 20 cells and 5 classes, as ratios to scikit-learn in one run.

    make benchmark          # or: python benchmarks/tables.py [rows]

Best of five runs of each, on the same arrays. Memory is the peak of what is allocated in addition to the input.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import sklearn
from sklearn import naive_bayes as peer

import priory as pr
from clock import best
from priory import naive_bayes
from priory.core import sharding

RESULTS = Path(__file__).parent / "results" / "tables.md"
COLUMNS, CLASSES = 20, 5
RUNS = 5  # the same number for both


def problems(rows: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, CLASSES, rows)
    reals = rng.normal(y[:, None] * 0.3, 1.0, (rows, COLUMNS))
    codes = (rng.random((rows, COLUMNS)) * (6 + y[:, None] % 3)).astype(np.int64)
    return {"GaussianNB": (reals, y), "BernoulliNB": (reals, y), "CategoricalNB": (codes, y)}


def peak(action: Callable[[], object]) -> float:
    tracemalloc.start()
    action()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 2**20


def versus(name: str, x: np.ndarray, y: np.ndarray) -> list[str]:
    """The lines of the table for one drop-in: fit and predict_proba."""
    ours, theirs = getattr(naive_bayes, name)(), getattr(peer, name)()
    lines = []
    for method, args in (("fit", (x, y)), ("predict_proba", (x,))):
        counting_threads = sharding.N_THREADS
        slow = best(lambda args=args, m=method: getattr(theirs, m)(*args), RUNS)
        both = best(lambda args=args, m=method: getattr(ours, m)(*args), RUNS)
        sharding.N_THREADS = 1
        one = best(lambda args=args, m=method: getattr(ours, m)(*args), RUNS)
        sharding.N_THREADS = counting_threads
        extra = [peak(lambda args=args, m=method, e=e: getattr(e, m)(*args)) for e in (ours, theirs)]
        lines.append(
            f"| {name}.{method} | {slow * 1e3:.0f} ms | {one * 1e3:.0f} ms | {both * 1e3:.0f} ms | "
            f"{slow / one:.0f}x | **{slow / both:.0f}x** | {extra[0]:.0f} MiB | {extra[1]:.0f} MiB |"
        )
        print(lines[-1], flush=True)
    gap = np.abs(ours.predict_proba(x[:5000]) - theirs.predict_proba(x[:5000])).max()
    assert gap < 1e-9, f"{name} differs from scikit-learn by {gap}"
    return lines


def flagship(x: np.ndarray, y: np.ndarray) -> list[str]:
    """NaiveBayes on the same matrix: with one declared family, and with all candidates."""
    theirs = peer.GaussianNB().fit(x, y)
    slow = best(lambda: theirs.fit(x, y), RUNS), best(lambda: theirs.predict_proba(x), RUNS)
    lines = []
    for families in ("gaussian", "auto"):
        model = pr.NaiveBayes(families, calibrate=False)
        fit = best(lambda m=model: m.fit(x, y), RUNS)
        predict = best(lambda m=model: m.predict_proba(x), RUNS)
        lines.append(
            f'| NaiveBayes("{families}") | {fit * 1e3:.0f} ms | {predict * 1e3:.0f} ms | '
            f"{slow[0] / fit:.1f}x | {slow[1] / predict:.1f}x |"
        )
        print(lines[-1], flush=True)
    return lines


def main(rows: int = 1_000_000) -> None:
    sets = problems(rows)
    size = sets["GaussianNB"][0].nbytes / 2**20
    lines = [
        f"# Tables: {rows:,} x {COLUMNS}, {CLASSES} classes, float64 or int64 ({size:.0f} MiB)",
        "",
        f"`python benchmarks/tables.py`; scikit-learn {sklearn.__version__}, NumPy {np.__version__}, "
        f"{sharding.N_THREADS} threads where it says so. Same probabilities to 1e-9.",
        "",
        "| | scikit-learn | Priory, 1 thread | 2 threads | ratio, 1 thread | 2 threads | extra memory | theirs |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, (x, y) in sets.items():
        lines += versus(name, x, y)
    lines += ["", "The flagship on the same matrix, against scikit-learn's GaussianNB:", ""]
    lines += ["| | fit | predict_proba | ratio of fit | ratio of predict_proba |", "|---|---|---|---|---|"]
    lines += flagship(*sets["GaussianNB"])
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
