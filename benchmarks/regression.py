"""Regression against scikit-learn in one run: speed, forgetting, fit on real tables, calibration on small samples.

    python benchmarks/regression.py        # prints the tables and writes benchmarks/results/regression.md

Times are ratios to scikit-learn in the same run. Real tables come from the data sets of datasets.py.
"""

from __future__ import annotations

import csv
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
from scipy import stats
from scipy.special import expit
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import BayesianRidge
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from clock import best
from datasets import DATA
from priory.core.exact_products import sum_products_of_rows
from priory.core.exact_sums import ExactSums
from priory.core.sharding import limit_blas_threads, map_shards
from priory.naive_bayes import GaussianBayes
from priory.regression.cross_products import accumulate_products, build_design_matrix
from priory.regression.linear_regression import BayesianLinearRegression
from priory.regression.logistic_regression import BayesianLogisticRegression

HERE = Path(__file__).parent
TABLES = {  # name: target, and the columns whose numbers are labels
    "abalone": ("rings", ["sex"]),
    "auto_mpg": ("class", ["cylinders", "model", "origin"]),
    "diabetes_lars": ("target", ["sex"]),
}


def speed(rows: int = 1_000_000, columns: int = 50) -> list[str]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, columns))
    y = x @ rng.normal(size=columns) + rng.normal(size=rows)
    ours, part = BayesianLinearRegression(), (x[:1000], y[:1000])
    times = {"BayesianRidge's fit": measure(lambda: BayesianRidge().fit(x, y), 2)}
    times["plain X'X in doubles"] = measure(lambda: sum_plain_products(x), 3)
    times["fit"] = measure(lambda: ours.fit(x, y), 3)
    times["learn and forget 1,000 rows"] = measure(lambda: ours.partial_fit(*part).forget(*part), 20)
    times["the same, and the new weights"] = measure(lambda: ours.partial_fit(*part).forget(*part).coef_, 5)
    theirs, theirs_cpu = times["BayesianRidge's fit"]
    return [
        f"{rows:,} x {columns}, the least of several runs. All sums are exact: forgetting rows leaves the bits of a",
        "model that never saw them. Processor time is that of all threads, and depends little on what else runs.",
        "",
        "| | time | BayesianRidge takes | processor time | BayesianRidge takes |",
        "|---|---|---|---|---|",
        *(
            f"| {what} | {1e3 * wall:,.1f} ms | {theirs / wall:,.1f} x "
            f"| {1e3 * cpu:,.1f} ms | {theirs_cpu / cpu:,.1f} x |"
            for what, (wall, cpu) in times.items()
        ),
    ]


def measure(action: Callable[[], object], runs: int) -> tuple[float, float]:
    """Seconds, and seconds of processor time, of the quickest run."""
    found = []
    for _ in range(runs):
        start, cpu = time.perf_counter(), time.process_time()
        action()
        found.append((time.perf_counter() - start, time.process_time() - cpu))
    return min(wall for wall, _ in found), min(cpu for _, cpu in found)


def sum_plain_products(x: np.ndarray) -> np.ndarray:
    """X'X block by block on all cores, as it would be without exactness."""

    def sum_shard(part: slice) -> np.ndarray:
        blocks = (x[i : min(i + 4096, part.stop)] for i in range(part.start, part.stop, 4096))
        return sum(block.T @ block for block in blocks)

    with limit_blas_threads():
        return sum(map_shards(sum_shard, len(x)))


def sum_exact_products(x: np.ndarray, weight: np.ndarray | None) -> ExactSums:
    return sum_products_of_rows(lambda part: np.ascontiguousarray(x[part], dtype=float), *x.shape, weight)


def kinds(rows: int = 200_000, columns: int = 50) -> list[str]:
    rng = np.random.default_rng(1)
    x, outlier = rng.normal(size=(rows, columns)), rng.random((rows, columns)) < 0.001
    tables: dict[str, tuple[np.ndarray, np.ndarray | None]] = {
        "ordinary numbers": (x, None),
        "mean 1e8": (x + 1e8, None),
        "whole numbers": (np.round(50 * x), None),
        "float32": (x.astype(np.float32), None),
        "column-major": (np.asfortranarray(x), None),
        "lognormal, sigma 3": (np.exp(3 * x), None),
        "0.1 % cells of 1e300": (np.where(outlier, 1e300, x), None),
        "Cauchy": (rng.standard_cauchy(x.shape), None),
        "weights 1 to 5": (x, rng.integers(1, 6, rows).astype(float)),
        "any weights": (x[: rows // 10], rng.random(rows // 10)),
    }
    lines = [
        f"Exact sums of all products of {rows:,} x {columns} numbers (a tenth of the rows with any weights), the least",
        "of three runs in processor time, and how many times longer that takes than plain sums in doubles.",
        "",
        "| | time | times plain |",
        "|---|---|---|",
    ]
    for name, (table, weight) in tables.items():
        finite = x[: len(table)].astype(table.dtype)
        plain = measure(lambda z=finite: sum_plain_products(z), 3)[1]
        taken = measure(lambda z=table, w=weight: sum_exact_products(z, w), 3)[1]
        lines.append(f"| {name} | {taken * 1e3:,.0f} ms | {taken / plain:.1f} |")
    return lines


def one_row() -> list[str]:
    rng = np.random.default_rng(2)
    lines = [
        "The least of 200 runs: the record of one row, and the whole of `partial_fit` and `forget`, most of which is",
        "scikit-learn's validation of the input.",
        "",
        "| columns | record | partial_fit | forget |",
        "|---|---|---|---|",
    ]
    for columns in (5, 20, 50):
        x = rng.normal(size=(2000, columns))
        y = x.sum(axis=1)
        model, row = BayesianLinearRegression().fit(x, y), (x[:1], y[:1])
        record, learn, forget = (
            best(lambda act=act, row=row: act(*row), 200)
            for act in (accumulate_products, model.partial_fit, model.forget)
        )
        lines.append(f"| {columns} | {record * 1e3:.3f} ms | {learn * 1e3:.3f} ms | {forget * 1e3:.3f} ms |")
    return lines


def attack() -> list[str]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(1000, 1))
    y = 2 * x[:, 0] + 0.01 * rng.normal(size=1000)
    lines = [
        "One row of this size is learned and forgotten again.",
        "",
        "| size | coefficient before | meanwhile | afterwards | same bits |",
        "|---|---|---|---|---|",
    ]
    for size in (1e9, 1e100, 1e300, 1.7e308):
        model = BayesianLinearRegression().fit(x, y)
        before = float(model.coef_[0])
        row = [[size]], [1.0]
        meanwhile = float(model.partial_fit(*row).coef_[0])
        after = float(model.forget(*row).coef_[0])
        lines.append(f"| {size:g} | {before!r} | {meanwhile:.3g} | {after!r} | {'yes' if after == before else 'no'} |")
    return lines


def classifier(rows: int = 500_000, columns: int = 20) -> list[str]:
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(rows, columns)), rng.integers(0, 5, rows)
    theirs = best(lambda: QuadraticDiscriminantAnalysis(store_covariance=True).fit(x, y), 3)
    ours = GaussianBayes()
    fit = best(lambda: ours.fit(x, y), 3)
    forget = best(lambda: ours.forget(x[:1000], y[:1000]).partial_fit(x[:1000], y[:1000]), 5)
    return [
        f"{rows:,} x {columns}, 5 classes, the least of three runs; scikit-learn's quadratic discriminant analysis:",
        f"{theirs:.2f} s.",
        "",
        "| | time | its refit takes |",
        "|---|---|---|",
        f"| fit | {fit * 1e3:,.0f} ms | {theirs / fit:.1f} x |",
        f"| forget and learn 1,000 rows | {forget * 1e3:,.1f} ms | {theirs / forget:,.0f} x |",
    ]


def tables() -> list[str]:
    lines = [
        "5-fold (shuffled, seed 0). BayesianRidge is given the columns that our rule makes of the table (categories as",
        "levels, missing cells at the mean with a flag): as they are, and standardised. NLPD is the mean negative log",
        "predictive density of the held-out targets.",
        "",
        "| set | R2: ours | BayesianRidge | standardised | NLPD: ours | BayesianRidge | standardised |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, (target, names) in TABLES.items():
        path = DATA / name / f"{name}.csv"
        if not path.exists():
            lines.append(f"| {name} | not found | | | | | |")
            continue
        table, y = read(path, target, names)
        scores = np.mean([fold(table, y, *split) for split in KFold(5, shuffle=True, random_state=0).split(y)], axis=0)
        r2, nlpd = scores.T
        lines.append(f"| {name} | " + " | ".join(f"{v:.4f}" for v in (*r2, *nlpd)) + " |")
    return lines


def read(path: Path, target: str, names: list[str]) -> tuple[pl.DataFrame, np.ndarray]:
    with path.open() as file:
        cells = list(csv.DictReader(file))
    columns = {c: [r[c] if r[c] not in ("", "?") else None for r in cells] for c in cells[0]}
    y = np.array(columns.pop(target), dtype=float)
    return pl.DataFrame(
        {c: v if c in names else [None if i is None else float(i) for i in v] for c, v in columns.items()}
    ), y


def fold(table: pl.DataFrame, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> list[tuple[float, float]]:
    model = BayesianLinearRegression().fit(table[train], y[train])
    student = model.predictive(table[test])
    scores = [(r2(y[test], student.location), -student.log_density(y[test]).mean())]
    seen = model.statistics_
    centre = seen.centre()[1:]
    learn, ask = (
        build_design_matrix(*model._read_rows(table[part], None)[::2], seen.terms, centre) for part in (train, test)
    )
    for scaler in (None, StandardScaler().fit(learn)):
        a, b = (learn, ask) if scaler is None else (scaler.transform(learn), scaler.transform(ask))
        mean, std = BayesianRidge().fit(a, y[train]).predict(b, return_std=True)
        scores.append((r2(y[test], mean), -stats.norm.logpdf(y[test], mean, std).mean()))
    return scores


def r2(y: np.ndarray, mean: np.ndarray) -> float:
    return float(1 - ((y - mean) ** 2).sum() / ((y - y.mean()) ** 2).sum())


def coverage(problems: int = 2000) -> list[str]:
    rng = np.random.default_rng(0)
    levels, inside = (0.5, 0.8, 0.9, 0.95), []
    for _ in range(problems):
        d = int(rng.integers(1, 6))
        n = int(rng.integers(d + 5, 60))
        x = rng.normal(size=(n + 20, d))
        y = 5 + x @ (rng.normal(size=d) * rng.choice([0.1, 1.0, 10.0])) + rng.uniform(0.1, 3) * rng.normal(size=n + 20)
        student = BayesianLinearRegression().fit(x[:n], y[:n]).predictive(x[n:])
        inside.append([np.mean((a <= y[n:]) & (y[n:] <= b)) for a, b in map(student.interval, levels)])
    found = np.mean(inside, axis=0)
    return [
        f"Share of held-out targets inside the interval, {problems:,} simulated problems (1-5 columns, 6-60 rows).",
        "",
        "| interval | " + " | ".join(f"{level:.0%}" for level in levels) + " |",
        "|---" * (1 + len(levels)) + "|",
        "| inside | " + " | ".join(f"{share:.1%}" for share in found) + " |",
    ]


def calibration(problems: int = 200) -> list[str]:
    lines = [
        f"{problems} simulated problems for each row: 4 columns, weights N(0, 1), 1,000 held-out rows each. ECE is",
        "the expected calibration error, ten bins. Always answering one half has a log loss of 0.693.",
        "",
        "| rows | log loss: ML | MAP | Laplace | ECE: ML | MAP | Laplace |",
        "|---|---|---|---|---|---|---|",
    ]
    for n in (10, 20, 50, 100, 500):
        rng = np.random.default_rng(n)
        found = []
        while len(found) < problems:
            x, w = rng.normal(size=(n + 1000, 4)), rng.normal(size=4)
            d = (rng.random(len(x)) < expit(x @ w)).astype(int)
            if len(set(d[:n])) == 2:
                found.append([score_model(m, x[:n], d[:n], x[n:], d[n:]) for m in ("ml", "map", "laplace")])
        loss, ece = np.mean(found, axis=0).T
        lines.append(f"| {n} | " + " | ".join(f"{v:.3f}" for v in (*loss, *ece)) + " |")
    return lines


def agreement(rows: int = 1000, columns: int = 10) -> list[str]:
    if find_spec("blackjax") is None or find_spec("arviz_stats") is None:
        return ["The extra `mcmc` is not installed."]
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(rows, columns)), rng.normal(size=columns)
    d = (rng.random(rows) < expit(x @ w)).astype(int)
    models = {m: BayesianLogisticRegression(m, prior=1.0, random_state=0) for m in ("nuts", "vi", "laplace")}
    taken = {m: best(lambda model=model: model.fit(x, d), 1) for m, model in models.items()}
    p = {m: model.predict_proba(x)[:, 1] for m, model in models.items()}
    rhat, ess, divergences = models["nuts"].diagnostics_
    return [
        f"{rows:,} x {columns}, prior strength 1; `nuts` makes 4 x 1,000 draws: R-hat {rhat:.4f}, {ess:,.0f} effective",
        f"draws (the least of all weights), {divergences} divergences. Times include JAX's compilation.",
        "",
        "| method | time | largest difference of a probability from `nuts` | mean difference |",
        "|---|---|---|---|",
        *(
            f"| {m} | {taken[m]:.2f} s | {np.abs(p[m] - p['nuts']).max():.4f} | {np.abs(p[m] - p['nuts']).mean():.4f} |"
            for m in models
        ),
    ]


def score_model(method: str, x: np.ndarray, d: np.ndarray, new: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        p = BayesianLogisticRegression(method).fit(x, d).predict_proba(new)[:, 1]
    q = np.clip(np.where(truth == 1, p, 1 - p), 1e-12, 1)
    bins = np.minimum((p * 10).astype(int), 9)
    gaps = [abs((p - truth)[bins == b].sum()) for b in range(10)]
    return float(-np.log(q).mean()), float(sum(gaps) / len(p))


def main() -> None:
    sections = {
        "Speed": speed,
        "What exactness costs": kinds,
        "One row": one_row,
        "A row that is withdrawn": attack,
        "Gaussian Bayes classifier": classifier,
        "Real tables": tables,
        "Coverage of the intervals": coverage,
        "Calibration of probabilities on small samples": calibration,
        "Agreement of the methods": agreement,
    }
    page = ["# Regression", ""]
    for title, section in sections.items():
        part = [f"## {title}", "", *section(), ""]
        print("\n".join(part), flush=True)
        page += part
    (HERE / "results").mkdir(exist_ok=True)
    (HERE / "results" / "regression.md").write_text("\n".join(page))


if __name__ == "__main__":
    main()
