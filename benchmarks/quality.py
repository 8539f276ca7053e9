"""Quality of the probabilities: every classification data set, compared with its peers in one run.

    pip install lightgbm xgboost catboost        # peers that are not installed are left out
    OMP_NUM_THREADS=1 python benchmarks/quality.py [costs|tables]     # writes results/quality_*.md

Needs the data sets (see datasets.py). Five folds, the same for all models, each with its defaults (scikit-learn's after
the usual preparation). Log loss is in nats; no probability counts as less than 1e-15. What the peers answered is kept
in the folder for temporary files, because they take most of an hour and do not depend on Priory. Costs takes about six
minutes on two quiet cores. Texts are in quality_texts.py.

What corrections are made of, and their few constants, was chosen on half of the tables (``TUNED_ON``, with other folds
than those here) and on simulated ones. The results on all tables were looked at four times before, and
one change (exponents that add up to one) was made because of them.
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

import datasets
import priory as pr
from clock import best
from priory.evaluation.scores import Scores


def import_if_installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


lightgbm, xgboost, catboost = map(import_if_installed, ("lightgbm", "xgboost", "catboost"))
TUNED_ON = ("car", "heart_cleveland", "mushroom", "soybean", "spambase", "titanic", "wine")
OLD_DEFAULT = 0.2068  # the mean log loss of NaiveBayes() of version 0.2 on the same folds
KEPT = Path(tempfile.gettempdir()) / "priory_quality_peers.json"
RESULTS = Path(__file__).parent / "results"
NUMBERS, LABELS = make_column_selector(dtype_include=float), make_column_selector(dtype_include="category")


def scored(truth: Any, probabilities: Any, classes: Any) -> Scores:
    p = np.clip(probabilities, 1e-15, 1)
    return Scores.of(np.asarray(truth), p / p.sum(axis=1, keepdims=True), classes)


# -- tables ----------------------------------------------------------------------------------------------------------


def typed(table: pd.DataFrame) -> pd.DataFrame:
    """Numbers as floats and everything else as categories, as scikit-learn needs them."""
    columns = {}
    for name, column in table.items():
        numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
        filled = column.astype(object).where(column.notna(), "missing").astype(str)
        columns[name] = column.astype(float) if numeric else filled.astype("category")
    return pd.DataFrame(columns)


def prepared(numbers: Any) -> Any:
    labels = OneHotEncoder(handle_unknown="ignore")
    return make_column_transformer((numbers, NUMBERS), (labels, LABELS), sparse_threshold=0)


def filled(then: Any) -> Any:
    return make_pipeline(SimpleImputer(strategy="median", add_indicator=True), then)


class Boosted:
    """A boosting library's classifier, with its defaults, on numbers and categories and labels of any kind."""

    def __init__(self, library: str) -> None:
        self.library = library

    def fit(self, x: pd.DataFrame, y: Any) -> Boosted:
        self.classes_, codes = np.unique(y, return_inverse=True)
        x = self.rename(x)
        labels = [name for name in x.columns if x[name].dtype.name == "category"]
        if self.library == "LightGBM":
            self.model = lightgbm.LGBMClassifier(verbose=-1, random_state=0, n_jobs=1).fit(x, codes)
        elif self.library == "XGBoost":
            self.model = xgboost.XGBClassifier(enable_categorical=True, random_state=0, n_jobs=1).fit(x, codes)
        else:
            quiet = {"verbose": False, "allow_writing_files": False}
            model = catboost.CatBoostClassifier(one_hot_max_size=255, random_seed=0, thread_count=1, **quiet)
            self.model = model.fit(x, codes, cat_features=labels)
        return self

    def predict_proba(self, x: pd.DataFrame) -> Any:
        return self.model.predict_proba(self.rename(x))

    def rename(self, x: pd.DataFrame) -> pd.DataFrame:
        """Columns by their numbers: some names have characters that a library refuses."""
        return x.set_axis([f"c{j}" for j in range(x.shape[1])], axis=1)


PEERS: dict[str, Callable[[], Any]] = {
    "GaussianNB": lambda: make_pipeline(prepared(filled(StandardScaler())), GaussianNB()),
    "BernoulliNB": lambda: make_pipeline(prepared(filled(KBinsDiscretizer(10, encode="onehot-dense"))), BernoulliNB()),
    "LogisticRegression": lambda: make_pipeline(prepared(filled(StandardScaler())), LogisticRegression(max_iter=2000)),
    "HistGradientBoosting": lambda: HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0),
}
for library, module in (("LightGBM", lightgbm), ("XGBoost", xgboost), ("CatBoost", catboost)):
    if module is not None:
        PEERS[library] = functools.partial(Boosted, library)
OURS: dict[str, Callable[[], Any]] = {
    "plain": lambda: pr.NaiveBayes(calibrate=False),
    "NaiveBayes()": lambda: pr.NaiveBayes(),
}


def fitted(make: Callable[[], Any], x: Any, y: Any) -> Any:
    try:
        return make().fit(x, y)
    except ValueError:  # boosting needs two rows of every class for its early stopping
        return make().set_params(early_stopping=False).fit(x, y)


def cross_validated(make: Callable[[], Any], table: Any, y: Any, classes: Any) -> tuple[float, float]:
    """Accuracy and log loss, each the mean of five folds."""
    accuracy, loss = [], []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(y, y):
        model = fitted(make, table.iloc[train], y[train])
        p = np.full((len(test), len(classes)), 1e-15)
        p[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(table.iloc[test])
        scores = scored(y[test], p, classes)
        accuracy.append(scores.accuracy.value)
        loss.append(scores.log_loss.value)
    return float(np.mean(accuracy)), float(np.mean(loss))


def judge_peer(library: str, name: str, table: Any, y: Any, classes: Any) -> tuple[float, float]:
    """What a peer was found to do on a table, or is found to do now."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    key = f"{library} {name}"
    if key not in kept:
        found = cross_validated(PEERS[library], typed(table), y, classes)
        kept = (json.loads(KEPT.read_text()) if KEPT.exists() else {}) | {key: found}
        KEPT.write_text(json.dumps(kept))
    accuracy, loss = kept[key][:2]
    return accuracy, loss


def read_tables() -> dict[str, tuple[Any, Any]]:
    """The tables that are there, small ones first."""
    found = {name: datasets.table(name) for name in datasets.CLASSIFICATION}
    there = {name: (table[0], np.asarray(table[1]).astype(str)) for name, table in found.items() if table is not None}
    return dict(sorted(there.items(), key=lambda item: item[1][0].size))


def name_missing() -> str:
    absent = [name for name in ("LightGBM", "XGBoost", "CatBoost") if name not in PEERS]
    return f"Not installed, and left out: {', '.join(absent)}." if absent else "All peers are installed."


def tables() -> list[str]:
    peers = [name for name in PEERS if name not in ("GaussianNB", "BernoulliNB")]
    names = ["best naive Bayes", *peers, "NaiveBayes()"]
    lines = ["", "## Tables", "", f"Accuracy / log loss. {name_missing()}", ""]
    lines += [f"| set | {' | '.join([*names, 'plain'])} |", "|---" * (len(names) + 2) + "|"]
    losses: dict[str, dict[str, float]] = {}
    accuracies: dict[str, dict[str, float]] = {}
    for name, (table, y) in read_tables().items():
        classes = np.unique(y)
        results = {k: judge_peer(k, name, table, y, classes) for k in PEERS}
        results |= {k: cross_validated(make, table, y, classes) for k, make in OURS.items()}
        results["best naive Bayes"] = min(results["GaussianNB"], results["BernoulliNB"], key=lambda r: r[1])
        losses[name] = {k: r[1] for k, r in results.items()}
        accuracies[name] = {k: r[0] for k, r in results.items()}
        cells = [f"{results[k][0]:.4f} / {results[k][1]:.5f}" for k in [*names, "plain"]]
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    loss, accuracy = pd.DataFrame(losses).T, pd.DataFrame(accuracies).T
    unseen = ~loss.index.isin(TUNED_ON)
    lines += ["", "| mean | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for what, values in (
        ("log loss", loss[names].mean()),
        ("log loss, tables not tuned on", loss.loc[unseen, names].mean()),
        ("rank by log loss", loss[names].rank(axis=1).mean()),
        ("rank by log loss, tables not tuned on", loss.loc[unseen, names].rank(axis=1).mean()),
        ("rank by accuracy", accuracy[names].rank(axis=1, ascending=False).mean()),
    ):
        lines.append(f"| {what} | " + " | ".join(f"{values[k]:.3f}" for k in names) + " |")
    worse = int((loss["NaiveBayes()"] > 1.01 * loss["plain"]).sum())
    change = loss["NaiveBayes()"].mean() / OLD_DEFAULT - 1
    lines += ["", f"Mean log loss against the default of version 0.2 ({OLD_DEFAULT:.4f}): {change:+.1%}."]
    lines += [f"Worse than plain naive Bayes by more than 1 % on {worse} of {len(loss)}."]
    print(*lines, sep="\n")
    return lines


# -- what a default fit costs -----------------------------------------------------------------------------------------


def make_numbers(rows: int, columns: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, columns))
    logit = x[:, :5].sum(axis=1) + x[:, 0] * x[:, 1]
    y = np.where(rng.random(rows) < 1 / (1 + np.exp(-logit)), "yes", "no")
    return pd.DataFrame(x, columns=[f"c{j}" for j in range(columns)]), y


BOOSTING = "HistGradientBoosting"
ROUNDS, LONG = 3, 3.0  # rounds of models in turn; whoever takes more seconds is not asked again
LIMITS: dict[tuple[int, int], Callable[[dict[str, float]], float]] = {  # seconds that a default fit may take
    (1000, 300): lambda seconds: 2.0,
    (200, 10_000): lambda seconds: 15.0,
    (1_000_000, 20): lambda seconds: 3 * seconds["plain"],
}
SIZES = ((1000, 20), (10_000, 20), (50_000, 50), *LIMITS)


def measure_fits(actions: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Processor seconds of each, the best of some rounds in which each has its turn."""
    seconds = dict.fromkeys(actions, np.inf)
    for number in range(ROUNDS):
        for name, action in actions.items():
            if number == 0 or seconds[name] < LONG:
                seconds[name] = min(seconds[name], best(action, 1, time.process_time))
    return seconds


def costs() -> list[str]:
    """Seconds of default fits on every table and on simulated numbers."""
    peers = [name for name in (BOOSTING, "LightGBM", "XGBoost") if name in PEERS]
    names = ["plain", "NaiveBayes()", *peers]
    lines = [
        "",
        "## Costs",
        "",
        f"Processor seconds of a default fit, the best of {ROUNDS} rounds in which each model has its turn; boosting",
        "on one thread. Plain is `NaiveBayes(calibrate=False)`. The limit for `NaiveBayes()` is the time of",
        "HistGradientBoosting or one second, whichever is larger, unless the size has one of its own.",
    ]
    lines += ["", f"| set | rows x columns | {' | '.join(names)} | limit | within |", "|---" * (len(names) + 4) + "|"]
    simulated = {f"numbers {rows:,} x {columns:,}": (rows, columns) for rows, columns in SIZES}
    within = []
    for name, (table, y) in (read_tables() | dict.fromkeys(simulated, (None, None))).items():
        if name in simulated:
            table, y = make_numbers(*simulated[name])
        ready = typed(table)
        actions = {k: functools.partial(fitted, make, table, y) for k, make in OURS.items()}
        actions |= {k: functools.partial(fitted, PEERS[k], ready, y) for k in peers}
        seconds = measure_fits(actions)
        limit = LIMITS.get(simulated.get(name, (0, 0)), lambda s: max(s[BOOSTING], 1.0))(seconds)
        within.append(seconds["NaiveBayes()"] <= limit)
        cells = " | ".join(f"{seconds[k]:.2f}" for k in names)
        shape = f"{table.shape[0]:,} x {table.shape[1]:,}"
        lines.append(f"| {name} | {shape} | {cells} | {limit:.2f} | {'yes' if within[-1] else 'no'} |")
        print(lines[-1], flush=True)
    return [*lines, "", f"Within the limit on {sum(within)} of {len(within)}."]


def main() -> None:
    warnings.simplefilter("ignore")
    parts = {"costs": costs, "tables": tables}
    titles = {"costs": "What a default fit costs", "tables": "Quality on tables"}
    wanted = sys.argv[1:] or list(parts)
    for name in wanted:
        head = [f"# {titles[name]}", "", f"`OMP_NUM_THREADS=1 python benchmarks/quality.py {name}`"]
        (RESULTS / f"quality_{name}.md").write_text("\n".join([*head, *parts[name]()]) + "\n")


if __name__ == "__main__":
    main()
