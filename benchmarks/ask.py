"""Which rows to label next: the mean accuracy along the learning curve, beside random and least certain rows.

python benchmarks/ask.py [seeds]    # prints results/ask.md

1,200 rows are the pool and 1,200 others the test. Two rows of each class are labelled at first, then eight times ten
more; the figure is the mean accuracy after each of the eight. modAL's entropy sampling ranks by the entropy of the
answers of the same model. The last column: in how many seeds the figure is below that of random rows.
"""

import sys
import warnings

import numpy as np
from modAL.uncertainty import classifier_entropy

import datasets
import priory

TEXTS = ["sms_spam", "trec_questions", "language_detection17", "rt_polarity", "20newsgroups_bydate"]
TABLES = ["adult", "nursery", "mushroom"]
METHODS = ("ask", "random", "least certain", "entropy (modAL)")


def choose(method, model, rows, rng):
    if method == "ask":
        return model.ask(rows, 10).rows
    if method == "random":
        return rng.permutation(len(rows))[:10]
    if method == "least certain":
        return np.argsort(model.predict_proba(rows).max(axis=1), kind="stable")[:10]
    return np.argsort(-classifier_entropy(model, rows), kind="stable")[:10]


def follow(name, seed):
    """The mean accuracy along the learning curve of each method."""
    rng = np.random.default_rng(seed)
    is_text = name in TEXTS
    X, y = datasets.text(name)[:2] if is_text else datasets.table(name)
    y = np.array(y, dtype=str)
    classes, counts = np.unique(y, return_counts=True)
    order = rng.permutation(np.flatnonzero(np.isin(y, classes[counts >= 60])))
    pool, test = order[:1200], order[1200:2400]

    def take(rows):
        return [X[row] for row in rows] if is_text else X.iloc[rows]

    start = np.concatenate([np.flatnonzero(y[pool] == c)[:2] for c in np.unique(y[pool])])
    found = []
    for method in METHODS:
        labelled, accuracy, picks = list(start), [], np.random.default_rng(1000 + seed)
        for turn in range(9):
            model = (priory.TextClassifier() if is_text else priory.NaiveBayes()).fit(
                take(pool[labelled]), y[pool[labelled]]
            )
            if turn:
                accuracy.append((model.predict(take(test)) == y[test]).mean())
            rest = np.setdiff1d(np.arange(len(pool)), labelled)
            labelled += rest[choose(method, model, take(pool[rest]), picks)].tolist()
        found.append(np.mean(accuracy))
    return found


def main():
    warnings.simplefilter("ignore")
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(f"# Which rows to label next\n\n`python benchmarks/ask.py {seeds}`\n")
    print(f"{seeds} seeds\n\n| set |", " | ".join(METHODS), "| ask below random |\n" + "|---" * 6 + "|")
    for name in TEXTS + TABLES:
        areas = np.array([follow(name, seed) for seed in range(seeds)])
        cells = [f"{area:.4f}" for area in areas.mean(axis=0)]
        print(f"| {name} |", " | ".join(cells), f"| {(areas[:, 0] < areas[:, 1]).sum()} of {seeds} |", flush=True)


if __name__ == "__main__":
    main()
