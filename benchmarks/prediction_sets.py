"""Prediction sets beside MAPIE, on the same rows: coverage, and the number of classes in a set.

python benchmarks/prediction_sets.py     # prints results/prediction_sets.md

Half of the rows (at most 2,000) are learned, the others (at most 2,000) are new. MAPIE is around the same model: split
conformal holds out a third of the rows that are learned, cross-conformal answers by the votes of five models.
"""

import warnings

import numpy as np
from mapie.classification import CrossConformalClassifier, SplitConformalClassifier
from sklearn.base import BaseEstimator, ClassifierMixin

import datasets
import priory

TABLES = ["adult", "breast_cancer_wisconsin", "car", "heart_cleveland", "nursery", "pima", "soybean", "spambase"]
TABLES += ["titanic", "voting"]
SEEDS, COVERAGE, MAX_ROWS = 5, 0.9, 2000


class NumberedRows(ClassifierMixin, BaseEstimator):
    """The model over the numbers of rows of a table, which is what MAPIE's checks of arrays let through."""

    def __init__(self, table=None):
        self.table = table

    def fit(self, X, y):
        self.model_ = priory.NaiveBayes().fit(self.table.iloc[X[:, 0]], y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(self.table.iloc[X[:, 0]])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def predict_sets(X, y, train, test):
    """Sets (rows, classes) of each method."""
    model = priory.NaiveBayes().fit(X.iloc[train], y[train])
    yield "Priory", model.predict_set(X.iloc[test], COVERAGE)
    yield "Priory, by class", model.predict_set(X.iloc[test], COVERAGE, by_class=True)
    learned, held = train[: 2 * len(train) // 3, None], train[2 * len(train) // 3 :, None]
    split = SplitConformalClassifier(NumberedRows(X), confidence_level=COVERAGE, prefit=False)
    split.fit(learned, y[learned[:, 0]]).conformalize(held, y[held[:, 0]])
    yield "MAPIE, split", split.predict_set(test[:, None])[1][:, :, 0]
    cross = CrossConformalClassifier(NumberedRows(X), confidence_level=COVERAGE, cv=5)
    cross.fit_conformalize(train[:, None], y[train])
    yield "MAPIE, cross", cross.predict_set(test[:, None])[1][:, :, 0]


def measure(name):
    """Coverage, worst coverage of a class with at least 50 new rows, and mean size of each method."""
    X, labels = datasets.table(name)
    labels = labels.to_numpy(dtype=str)
    _, group, counts = np.unique(labels, return_inverse=True, return_counts=True)
    X, group = X[counts[group] >= 20], group[counts[group] >= 20]
    y = np.unique(group, return_inverse=True)[1]
    found = {}
    for seed in range(SEEDS):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[: len(y) // 2][:MAX_ROWS], order[len(y) // 2 :][:MAX_ROWS]
        if len(np.unique(y[train])) < len(np.unique(y)):
            continue
        for method, sets in predict_sets(X, y, train, test):
            right = sets[np.arange(len(test)), y[test]]
            large = [c for c in np.unique(y) if (y[test] == c).sum() >= 50]
            worst = min((right[y[test] == c].mean() for c in large), default=np.nan)
            found.setdefault(method, []).append((right.mean(), worst, sets.sum(axis=1).mean()))
    return {method: np.mean(rows, axis=0) for method, rows in found.items()}


def main():
    warnings.simplefilter("ignore")
    print("# Prediction sets beside MAPIE\n\n`python benchmarks/prediction_sets.py`\n")
    print(f"Coverage asked {COVERAGE}, means of {SEEDS} splits. coverage / of the worst class / classes in a set\n")
    methods = ["Priory", "Priory, by class", "MAPIE, split", "MAPIE, cross"]
    print("| table |", " | ".join(methods), "|")
    print("|---" * (1 + len(methods)) + "|")
    for name in TABLES:
        found = measure(name)
        cells = [" / ".join(f"{value:.3f}" for value in found[method]) for method in methods]
        print(f"| {name} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
