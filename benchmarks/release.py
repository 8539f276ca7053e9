"""Private releases beside diffprivlib's GaussianNB, the same model without noise, and the base rate.

    uv venv peer && uv pip install --python peer/bin/python diffprivlib==0.6.6 scikit-learn==1.5.2
    pip install statsmodels                                                  (for `--unseen`: some of its tables)
    python benchmarks/release.py --peer peer/bin/python [--seeds 20] [--unseen] [--write]

Two thirds of the rows are learned, the others judge. Domains and bounds are read from the whole table, for both. Labels
are one-hot columns for GaussianNB, and missing numbers the middle of their bounds. diffprivlib runs in an environment
of its own, because it needs an older scikit-learn. The attack: of 400 rows one is left out or not, the model is
released with another seed each time, and the attacker, who knows all other rows, thresholds the probability of the
row's class; an epsilon bounds the difference of true and false positives by (e^epsilon - 1) / (e^epsilon + 1) at any
threshold.
Shares of the budget and the like were chosen on ten tables; `--unseen` judges on ten others, of which none was looked
at when they were chosen. `--write` writes benchmarks/results/release.md, or release_unseen.md.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"
TABLES = [
    *("adult", "mushroom", "nursery", "spambase", "titanic", "pima"),
    *("breast_cancer_wisconsin", "heart_cleveland", "wine", "iris"),
]
OF_STATSMODELS = {"fair": "affairs", "anes96": "vote", "modechoice": "choice", "randhie": "mdvis"}  # and their labels
UNSEEN = ["car", "voting", "penguins", "soybean", "digits", "breast_cancer", *OF_STATSMODELS]
EPSILONS = (0.1, 0.3, 1.0, 3.0)


def read_table(name: str) -> tuple[Any, Any]:
    """A table of the data, of scikit-learn, or of statsmodels (whose counts become "none" and "some")."""
    import datasets

    if name in OF_STATSMODELS:
        import statsmodels.api as sm

        table = getattr(sm.datasets, name).load_pandas().data.astype(float)
        y = table.pop(OF_STATSMODELS[name])
        return table, (y > 0).map({True: "some", False: "none"})
    if name in ("digits", "breast_cancer"):
        import sklearn.datasets

        table = getattr(sklearn.datasets, f"load_{name}")(as_frame=True)
        return table.data.astype(float), table.target.astype(str)
    return datasets.table(name)


def score(log_p: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Accuracy and log loss; a class of probability zero costs what one in a million does."""
    picked = log_p[np.arange(len(truth)), truth]
    return float((log_p.argmax(axis=1) == truth).mean()), float(-np.maximum(picked, math.log(1e-6)).mean())


def run_peer(folder: str) -> None:
    """In diffprivlib's environment: accuracy and log loss for each epsilon and seed, as JSON."""
    from diffprivlib.models import GaussianNB

    warnings.simplefilter("ignore")
    data = np.load(Path(folder) / "table.npz")
    given = json.loads((Path(folder) / "given.json").read_text())
    found: dict[str, list[tuple[float, float]]] = {}
    for epsilon in EPSILONS:
        found[str(epsilon)] = []
        for seed in range(given["seeds"]):
            model = GaussianNB(epsilon=epsilon, bounds=(data["low"], data["high"]), random_state=seed)
            model.fit(data["train"], data["train_y"])
            log_p = np.full((len(data["test"]), given["classes"]), -np.inf)
            log_p[:, model.classes_] = np.nan_to_num(model.predict_log_proba(data["test"]), nan=-np.inf)
            found[str(epsilon)].append(score(log_p, data["test_y"]))
    print(json.dumps(found))


def find_domains(X: Any) -> dict[str, Any]:
    domains: dict[str, Any] = {}
    for name in X:
        values = X[name].dropna()
        if X[name].dtype.kind == "f":
            low, high = float(values.min()), float(values.max())
            domains[name] = (low, high) if low < high else (low - 1, low + 1)
        else:
            domains[name] = sorted(values.unique().tolist())
    return domains


def ask_peer(python: str, X: Any, y: np.ndarray, domains: dict[str, Any], n: int, seeds: int) -> dict[str, Any]:
    columns, low, high = [], [], []
    for name, domain in domains.items():
        if isinstance(domain, tuple):
            columns.append(X[name].fillna(sum(domain) / 2).to_numpy())
            low, high = [*low, domain[0]], [*high, domain[1]]
        else:
            columns += [(X[name] == label).to_numpy(dtype=float) for label in domain]
            low, high = [*low, *[0.0] * len(domain)], [*high, *[1.0] * len(domain)]
    table = np.column_stack(columns)
    with tempfile.TemporaryDirectory() as folder:
        arrays = {"train": table[:n], "train_y": y[:n], "test": table[n:], "test_y": y[n:], "low": low, "high": high}
        np.savez(Path(folder) / "table.npz", **arrays)
        (Path(folder) / "given.json").write_text(json.dumps({"seeds": seeds, "classes": int(y.max()) + 1}))
        command = [python, __file__, "--run-peer", folder]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def attack(epsilon: float, releases: int) -> tuple[float, float]:
    """The largest difference of true and false positives over all thresholds, on fresh releases, and its bound."""
    import priory as pr

    rng = np.random.default_rng(0)
    rows = [{"a": float(a), "b": b} for a, b in zip(rng.normal(size=400), rng.choice(list("xyz"), 400), strict=True)]
    labels = ["yes" if row["a"] > 0 else "no" for row in rows]
    target = {"a": 3.9, "b": "z"}
    rows[0], labels[0] = target, "no"  # an outlier with the wrong label is the easiest to recognise
    models = [pr.NaiveBayes().fit(rows, labels), pr.NaiveBayes().fit(rows[1:], labels[1:])]
    domains: dict[str, Any] = {"a": (-4.0, 4.0), "b": list("xyz")}
    scores = [
        [
            model.release(
                epsilon, domains=domains, classes=["yes", "no"], source=random.Random(2 * i + is_out)
            ).predict_proba([target])[0, 0]
            for i in range(releases)
        ]
        for is_out, model in enumerate(models)
    ]
    half = releases // 2  # thresholds are chosen on one half, and judged on the other
    _, at = max(
        (sum(s > t for s in scores[0][:half]) - sum(s > t for s in scores[1][:half]), t)
        for t in [*scores[0][:half], *scores[1][:half]]
    )
    advantage = (sum(s > at for s in scores[0][half:]) - sum(s > at for s in scores[1][half:])) / (releases - half)
    return advantage, math.expm1(epsilon) / (math.exp(epsilon) + 1)


def run(given: argparse.Namespace) -> list[str]:
    import priory as pr

    lines = []
    means: dict[str, list[Any]] = {}
    for name in given.tables:
        X, labels = read_table(name)
        order = np.random.default_rng(0).permutation(len(labels))
        X, labels = X.iloc[order].reset_index(drop=True), labels.to_numpy()[order]
        classes, y = np.unique(labels, return_inverse=True)
        n, domains = 2 * len(y) // 3, find_domains(X)
        model = pr.NaiveBayes().fit(X[:n], labels[:n])
        base = np.log((np.bincount(y[:n], minlength=len(classes)) + 0.5) / (n + 0.5 * len(classes)))
        fixed = [score(np.tile(base, (len(y) - n, 1)), y[n:]), score(_answer(model, X[n:], classes), y[n:])]
        peer = ask_peer(given.peer, X, y, domains, n, given.seeds) if given.peer else {}
        for epsilon in EPSILONS:
            made = [
                model.release(epsilon, domains=domains, classes=classes.tolist(), source=random.Random(seed))
                for seed in range(given.seeds)
            ]
            own = np.mean([score(_answer(m, X[n:], classes), y[n:]) for m in made], axis=0)
            other = np.mean(peer[str(epsilon)], axis=0) if peer else (np.nan, np.nan)
            means.setdefault(str(epsilon), []).append([*own, *other, *fixed[0], *fixed[1]])
            numbers = f"{own[0]:.3f} / {own[1]:.3f} | {other[0]:.3f} / {other[1]:.3f}"
            rest = " | ".join(f"{accuracy:.3f} / {loss:.3f}" for accuracy, loss in fixed)
            lines.append(f"| {name} | {n:,} | {epsilon:g} | {numbers} | {rest} |")
            print(lines[-1], flush=True)
    for epsilon, found in means.items():
        m = np.mean(found, axis=0)
        worse = [name for name, own in zip(given.tables, found, strict=True) if own[0] < own[2] or own[1] > own[3]]
        given.worse += [f"At epsilon {epsilon} diffprivlib is better in one of both on: {', '.join(worse) or 'none'}."]
        pairs = " | ".join(f"**{m[i]:.3f} / {m[i + 1]:.3f}**" for i in range(0, 8, 2))
        lines.append(f"| **mean** | | {float(epsilon):g} | {pairs} |")
    return lines


def _answer(model: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    log_p = np.full((len(X), len(classes)), -np.inf)
    log_p[:, np.searchsorted(classes, model.classes_)] = model.predict_log_proba(X)
    return log_p


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", default="")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--attacks", type=int, default=4000)
    parser.add_argument("--tables", nargs="*")
    parser.add_argument("--unseen", action="store_true", help="tables on which nothing was chosen")
    parser.add_argument("--run-peer", default="")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    if given.run_peer:
        run_peer(given.run_peer)
        return 0
    warnings.simplefilter("ignore")
    given.tables, given.worse = given.tables or (UNSEEN if given.unseen else TABLES), []
    option = " --unseen" * given.unseen
    lines = [
        "# Private releases",
        "",
        f"`python benchmarks/release.py --peer peer/bin/python --seeds {given.seeds}{option} --write`: accuracy and",
        f"log loss on a third of the rows, mean of {given.seeds} seeds, at the same epsilon for both (pure",
        "differential privacy), beside diffprivlib 0.6.6's GaussianNB, the base rate, and Priory without noise.",
        "",
        "| table | rows | epsilon | release | diffprivlib | base rate | without noise |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *run(given),
        "",
        *given.worse,
        "",
        f"The attack on one outlier among 400 rows, {given.attacks:,} releases with it and as many without: true minus",
        "false positives at the best threshold, and the bound that epsilon gives.",
        "",
        "| epsilon | attack | bound |",
        "|---:|---:|---:|",
    ]
    for epsilon in EPSILONS:
        advantage, bound = attack(epsilon, given.attacks)
        lines.append(f"| {epsilon:g} | {advantage:.3f} ± {math.sqrt(0.5 / (given.attacks / 2)):.3f} | {bound:.3f} |")
    print("\n".join(lines))
    if given.write:
        (RESULTS / f"release{'_unseen' * given.unseen}.md").write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
