"""Novelty: a class that was never learned, found by p-values; area under the ROC curve beside two usual scores.

python benchmarks/novelty.py     # prints results/novelty.md

Each class with at least 20 rows (60 texts) is held out in turn, at most five of a set. Two thirds of the other rows (at
most 3,000) are learned; the rest of them are usual, and the rows of the class held out (at most 1,000) are new.
IsolationForest reads texts as 50 components of tf-idf, and labels as numbers. "p < .05" is the share of usual rows with
a p-value below .05: it should be .05 or less.
"""

import warnings

import numpy as np
import pandas as pd
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import IsolationForest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import roc_auc_score

import datasets
import priory

TABLES = ["breast_cancer_wisconsin", "penguins", "soybean", "wine", "nursery", "adult"]
TEXTS = ["trec_questions", "20newsgroups_bydate", "sms_spam", "language_detection17"]


def encode_table(X):
    """Numbers for scikit-learn: labels by their rank, missing numbers as the median."""
    numbers = [X[c].fillna(X[c].median()) if X[c].dtype == float else pd.factorize(X[c])[0] for c in X]
    return np.column_stack(numbers)


def load(name):
    if name in TABLES:
        X, y = datasets.table(name)
        return X.reset_index(drop=True), y.to_numpy(dtype=str), 20
    texts, labels, _, _ = datasets.text(name)
    return pd.Series(texts, dtype=object), np.array(labels), 60


def measure(X, y, least, rng):
    classes, counts = np.unique(y, return_counts=True)
    for held in classes[counts >= least][:5]:
        rest = rng.permutation(np.flatnonzero(y != held))[:4500]
        train, usual = rest[: 2 * len(rest) // 3], rest[2 * len(rest) // 3 :]
        new = rng.permutation(np.flatnonzero(y == held))[:1000]
        test, truth = np.append(usual, new), np.repeat([0, 1], [len(usual), len(new)])
        is_text = isinstance(X, pd.Series)
        model = priory.TextClassifier() if is_text else priory.NaiveBayes()
        model.fit(X.iloc[train].tolist() if is_text else X.iloc[train], y[train])
        rows = X.iloc[test].tolist() if is_text else X.iloc[test]
        p = model.p_value(rows)
        if is_text:
            tfidf = TfidfVectorizer().fit(X.iloc[train])
            svd = TruncatedSVD(50, random_state=0).fit(tfidf.transform(X.iloc[train]))
            encoded = svd.transform(tfidf.transform(X.iloc[np.append(train, test)]))
        else:
            encoded = encode_table(X)[np.append(train, test)]
        forest = IsolationForest(random_state=0).fit(encoded[: len(train)])
        scores = [-p, -forest.score_samples(encoded[len(train) :]), -model.predict_proba(rows).max(axis=1)]
        yield [*(roc_auc_score(truth, score) for score in scores), (p[truth == 0] < 0.05).mean()]


def main():
    warnings.simplefilter("ignore")
    print("# Novelty: a class that was never learned\n\n`python benchmarks/novelty.py`\n")
    print("| set | classes held out | p-value | IsolationForest | largest probability | p < .05 |")
    print("|---|---|---|---|---|---|")
    every = []
    for name in TABLES + TEXTS:
        found = np.array(list(measure(*load(name), np.random.default_rng(0))))
        every.append(found.mean(axis=0))
        print(f"| {name} | {len(found)} |", " | ".join(f"{v:.3f}" for v in every[-1]), "|", flush=True)
    print("| mean | |", " | ".join(f"{v:.3f}" for v in np.mean(every, axis=0)), "|")


if __name__ == "__main__":
    main()
