"""Few labels and many texts without: accuracy and log loss beside scikit-learn's, on the same labelled texts.

python benchmarks/few_labels.py [seeds]    # prints results/few_labels.md

Of each set up to 2,000 texts are the test, 5, 20 or 100 texts of each class (with at least 60) are labelled, and up to
3,000 others have no label; "Priory, others" is `TextClassifier(unlabelled=True)` with them. Logistic regression is on
tf-idf (C = 10); SelfTraining is around multinomial naive Bayes (alpha .1, threshold .9). Worse: cells (set and number
of labels, mean over seeds) in which one is worse than another by more than .005 in accuracy or .01 in log loss. The
constants of `priory.calibration.text_refinement` were chosen on the sets `CHOSEN_ON`; the others have their own mean.
"""

import sys
import warnings

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import SelfTrainingClassifier

import datasets
import priory

SETS = ["sms_spam", "trec_questions", "rt_polarity", "sentiment_sentences", "language_detection17", "germeval2018"]
SETS += ["sst2", "20newsgroups_bydate"]
CHOSEN_ON = ("sms_spam", "trec_questions", "language_detection17", "20newsgroups_bydate")
METHODS = ("Priory", "Priory, others", "logistic regression", "SelfTraining")


def answer(method, labelled, labels, others, test):
    """Classes, and the probabilities of the test texts."""
    if method.startswith("Priory"):
        more = others if method.endswith("others") else []
        model = priory.TextClassifier(unlabelled="," in method).fit(labelled + more, labels + [None] * len(more))
        return model.classes_, model.predict_proba(test)
    if method == "SelfTraining":
        vectors = CountVectorizer().fit(labelled + others)
        classes = np.unique(labels)
        model = SelfTrainingClassifier(MultinomialNB(alpha=0.1), threshold=0.9)
        numbers = np.append(np.searchsorted(classes, labels), np.full(len(others), -1))
        return classes, model.fit(vectors.transform(labelled + others), numbers).predict_proba(vectors.transform(test))
    model = make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(C=10, max_iter=2000))
    return np.unique(labels), model.fit(labelled, labels).predict_proba(test)


def measure(name, n_labels, seed):
    """(methods, 2): accuracy and log loss."""
    texts, y = datasets.text(name)[:2]
    y = np.array(y)
    classes, counts = np.unique(y, return_counts=True)
    rng = np.random.default_rng(seed)
    order = rng.permutation(np.flatnonzero(np.isin(y, classes[counts >= 60])))
    test, rest = order[: min(2000, len(order) // 3)], order[min(2000, len(order) // 3) :]
    known = np.concatenate([rest[y[rest] == c][:n_labels] for c in np.unique(y[rest])])
    others = np.setdiff1d(rest, known, assume_unique=True)[:3000]
    parts = [[texts[row] for row in rows] for rows in (known, others, test)]
    found = []
    for method in METHODS:
        known_classes, p = answer(method, parts[0], y[known].tolist(), *parts[1:])
        own = np.searchsorted(known_classes, y[test])
        loss = -np.log(np.maximum(p[np.arange(len(own)), own], 1e-15)).mean()
        found.append(((p.argmax(axis=1) == own).mean(), loss))
    return np.array(found)


def count_worse(cells, one, other):
    """Cells in which a method is worse than another: by accuracy, and by log loss."""
    by_accuracy = sum(cell[one, 0] < cell[other, 0] - 0.005 for cell in cells)
    return f"accuracy in {by_accuracy}, log loss in {sum(cell[one, 1] > cell[other, 1] + 0.01 for cell in cells)}"


def main():
    warnings.simplefilter("ignore")
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    print(f"# Few labels and many texts without\n\n`python benchmarks/few_labels.py {seeds}`\n")
    print(
        f"Accuracy / log loss, means of {seeds} seeds\n\n| set | labels |",
        " | ".join(METHODS),
        "|\n" + "|---" * 6 + "|",
    )
    every = {}
    for name in SETS:
        for n_labels in (5, 20) if name.startswith("20") else (5, 20, 100):
            cell = np.mean([measure(name, n_labels, seed) for seed in range(seeds)], axis=0)
            every[name, n_labels] = cell
            print(f"| {name} | {n_labels} |", " | ".join(f"{a:.3f} / {b:.3f}" for a, b in cell), "|", flush=True)
    for kind in ("mean", "mean of the sets that nothing was chosen on", "mean with 5 labels", "mean with 20 labels"):
        chosen = [c for (name, n), c in every.items() if "that" not in kind or name not in CHOSEN_ON]
        chosen = [c for (_, n), c in every.items() if f"with {n} " in kind] or chosen
        print(f"| {kind} | |", " | ".join(f"{a:.3f} / {b:.3f}" for a, b in np.mean(chosen, axis=0)), "|")
    cells = list(every.values())
    print(f"\nOf {len(cells)} cells")
    for one, other in ((1, 0), (0, 2), (1, 2), (1, 3)):
        print(f"- {METHODS[one]} is worse than {METHODS[other]}: {count_worse(cells, one, other)}")


if __name__ == "__main__":
    main()
