"""Quality of the probabilities: every classification data set, compared with its peers in one run.

    pip install lightgbm xgboost catboost        # peers that are not installed are left out
    OMP_NUM_THREADS=1 python benchmarks/quality.py [costs|tables|splits]     # writes results/quality_*.md

Needs the data sets (see datasets.py). Five folds, the same for all models, each with its defaults (scikit-learn's after
the usual preparation). Log loss is in nats; no probability counts as less than 1e-15. What the peers answered is kept
in the folder for temporary files, because they take most of an hour and do not depend on Priory. Costs takes about six
minutes on two quiet cores. Splits is quick: at most 1,500 rows are learned and 1,500 judged, three times, beside peers
that are tuned. Texts are in quality_texts.py.

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
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold, train_test_split
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
BOOSTING = "HistGradientBoosting"
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


# -- splits, beside peers that are tuned -------------------------------------------------------------------------------

SPLITS, MAX_SPLIT_ROWS, LEAST_SPLIT_PROBABILITY = 3, 1500, 1e-6
CONFIGURATIONS, TUNING_FOLDS = 6, 3


class TunedLightGBM(Boosted):
    """LightGBM with the best of some random configurations, by cross-validation with early stopping."""

    def fit(self, x: pd.DataFrame, y: Any) -> TunedLightGBM:
        self.classes_, codes = np.unique(y, return_inverse=True)
        x, rng, tried = self.rename(x), np.random.default_rng(0), []
        for _ in range(CONFIGURATIONS):
            options = {
                "learning_rate": float(10 ** rng.uniform(-2, -0.7)),
                "num_leaves": int(2 ** rng.uniform(2, 6)),
                "min_child_samples": int(2 ** rng.uniform(1, 6)),
                "colsample_bytree": float(rng.uniform(0.4, 1)),
                "reg_lambda": float(10 ** rng.uniform(-3, 1)),
            }
            tried.append((*self.judge(x, codes, options), options))
        _, rounds, options = min(tried, key=lambda found: found[0])
        self.model = self.make(rounds, options).fit(x, codes)
        return self

    def make(self, rounds: int, options: dict[str, Any]) -> Any:
        return lightgbm.LGBMClassifier(n_estimators=rounds, verbose=-1, random_state=0, n_jobs=1, **options)

    def judge(self, x: pd.DataFrame, codes: Any, options: dict[str, Any]) -> tuple[float, int]:
        """The mean loss and number of rounds over the folds."""
        found = []
        for train, test in StratifiedKFold(TUNING_FOLDS, shuffle=True, random_state=0).split(codes, codes):
            judged = [(x.iloc[test], codes[test])]
            stop = [lightgbm.early_stopping(30, verbose=False)]
            model = self.make(1000, options).fit(x.iloc[train], codes[train], eval_set=judged, callbacks=stop)
            found.append((next(iter(model.best_score_["valid_0"].values())), model.best_iteration_))
        loss, rounds = np.mean(found, axis=0)
        return float(loss), max(1, int(rounds))


def tuned_regression() -> Any:
    return make_pipeline(prepared(filled(StandardScaler())), LogisticRegressionCV(Cs=8, cv=3, max_iter=1000))


def list_split_tables() -> dict[str, tuple[Any, Any]]:
    """The given tables and scikit-learn's own, without classes that are too rare to be split."""
    found = read_tables()
    for name, read in (("sklearn_digits", load_digits), ("sklearn_breast_cancer", load_breast_cancer)):
        bunch = read(as_frame=True)
        found[name] = bunch.data, np.asarray(bunch.target).astype(str)
    tables = {}
    for name, (table, y) in found.items():
        classes, counts = np.unique(y, return_counts=True)
        kept = np.isin(y, classes[counts >= 8])
        tables[name] = table[kept].reset_index(drop=True), y[kept]
    return tables


def measure_errors(p: Any, y: Any, classes: Any) -> tuple[float, float, float, float]:
    """Log loss, error rate, Brier score and expected calibration error of the likeliest class (10 bins)."""
    p = np.clip(p, LEAST_SPLIT_PROBABILITY, 1)
    p /= p.sum(axis=1, keepdims=True)
    truth = np.searchsorted(classes, y)[:, None] == np.arange(len(classes))
    right, top = truth[np.arange(len(y)), p.argmax(axis=1)], p.max(axis=1)
    bins = np.minimum((top * 10).astype(int), 9)
    gap = np.abs(np.bincount(bins, right, 10) - np.bincount(bins, top, 10)).sum() / len(y)
    return float(-np.log(p[truth]).mean()), 1 - float(right.mean()), float(((p - truth) ** 2).sum(axis=1).mean()), gap


def splits() -> list[str]:
    peers = {"LogisticRegressionCV": tuned_regression, BOOSTING: PEERS[BOOSTING]}
    if lightgbm is not None:
        peers |= {"LightGBM": PEERS["LightGBM"], "LightGBM, tuned": lambda: TunedLightGBM("LightGBM")}
    if catboost is not None:
        peers["CatBoost"] = PEERS["CatBoost"]
    names, measures = [*OURS, *peers], ("log loss", "error rate", "Brier score", "calibration error")
    found: dict[str, Any] = {}
    lines = [
        f"Log loss, mean of {SPLITS} splits.",
        "",
        f"| set | {' | '.join(names)} |",
        "|---" * (len(names) + 1) + "|",
    ]
    for name, (table, y) in list_split_tables().items():
        results, classes, ready = {k: [] for k in names}, np.unique(y), typed(table)
        for seed in range(SPLITS):
            train, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=seed, stratify=y)
            train, test = train[:MAX_SPLIT_ROWS], test[:MAX_SPLIT_ROWS]
            for k, make in (OURS | peers).items():
                x = table if k in OURS else ready
                model = fitted(make, x.iloc[train], y[train])
                p = np.zeros((len(test), len(classes)))
                p[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(x.iloc[test])
                results[k].append(measure_errors(p, y[test], classes))
        found[name] = {k: np.mean(r, axis=0) for k, r in results.items()}
        lines.append(f"| {name} | " + " | ".join(f"{found[name][k][0]:.4f}" for k in names) + " |")
        print(lines[-1], flush=True)
    for title, chosen in (
        ("all tables", list(found)),
        ("tables not tuned on", [k for k in found if k not in TUNED_ON]),
    ):
        lines += ["", f"| {title} ({len(chosen)}) | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
        for m, measure in enumerate(measures):
            values = pd.DataFrame({t: {k: found[t][k][m] for k in names} for t in chosen}).T
            others = values.drop(columns="plain").rank(axis=1).mean()
            lines.append(f"| {measure} | " + " | ".join(f"{values[k].mean():.4f}" for k in names) + " |")
            ranks = " | ".join(f"{others[k]:.2f}" if k in others else "" for k in names)
            lines.append(f"| rank by {measure} | {ranks} |")
    loss = pd.DataFrame({t: {k: found[t][k][0] for k in names} for t in found}).T
    worse = int((loss["NaiveBayes()"] > 1.01 * loss["plain"]).sum())
    lines += ["", f"Worse than plain naive Bayes by more than 1 % on {worse} of {len(loss)}."]
    return lines


# -- what a default fit costs -----------------------------------------------------------------------------------------


def make_numbers(rows: int, columns: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, columns))
    logit = x[:, :5].sum(axis=1) + x[:, 0] * x[:, 1]
    y = np.where(rng.random(rows) < 1 / (1 + np.exp(-logit)), "yes", "no")
    return pd.DataFrame(x, columns=[f"c{j}" for j in range(columns)]), y


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
    parts = {"costs": costs, "tables": tables, "splits": splits}
    titles = {"costs": "What a default fit costs", "tables": "Quality on tables", "splits": "Quality on small splits"}
    wanted = sys.argv[1:] or list(parts)
    for name in wanted:
        head = [f"# {titles[name]}", "", f"`OMP_NUM_THREADS=1 python benchmarks/quality.py {name}`"]
        (RESULTS / f"quality_{name}.md").write_text("\n".join([*head, *parts[name]()]) + "\n")


if __name__ == "__main__":
    main()
