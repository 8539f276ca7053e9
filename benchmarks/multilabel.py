"""Several labels for a text beside one-vs-rest logistic regression: F1, log loss and processor time.

python benchmarks/multilabel.py    # prints results/multilabel.md

Newsgroups: each row is the ends (1,500 characters) of one to three posts, with the groups of all of them; 4,000 rows of
training posts, 2,000 of test posts. Made: scikit-learn's make_multilabel_classification (30 counts, 8 labels), 2,000
and 2,000 rows, as texts of so many words and as a table of numbers. Thresholds are .5, and "f1" those with the largest
F1 of left-out rows. "learn" is counting, "answer" the first answers to the test rows, which derive the corrections.
"""

import time
import warnings

import numpy as np
from sklearn.datasets import make_multilabel_classification
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

import datasets
from priory import MultiLabelClassifier, NaiveBayes, TextClassifier
from priory.evaluation.label_scores import LabelScores


def join_posts(texts, labels, rows, seed):
    rng, made = np.random.default_rng(seed), []
    for _ in range(rows):
        some = rng.choice(len(texts), rng.integers(1, 4), replace=False)
        made.append(("\n".join(texts[k][-1500:] for k in some), sorted({labels[k] for k in some})))
    return [text for text, _ in made], [held for _, held in made]


def make_sets():
    counts, held = make_multilabel_classification(4000, 30, n_classes=8, n_labels=2, random_state=0)
    texts = [" ".join(f"w{j}" for j in np.repeat(np.arange(30), row.astype(int))) for row in counts]
    labels = [[f"c{k}" for k in np.flatnonzero(row)] for row in held]
    return {
        name: (rows[:2000], labels[:2000], rows[2000:], labels[2000:])
        for name, rows in (("made, texts", texts), ("made, table", counts))
    }


def compare(name, texts, labels, new_texts, new_labels):
    names = sorted({label for held in labels for label in held})
    truth, marks = (np.array([[n in row for n in names] for row in rows]) for rows in (new_labels, labels))
    is_table = isinstance(texts, np.ndarray)
    base = NaiveBayes() if is_table else None
    peers = {
        "Priory": MultiLabelClassifier(base),
        "Priory, f1": MultiLabelClassifier(base, threshold="f1"),
        "Priory, not refined": MultiLabelClassifier(TextClassifier(refine=False)),
        "one-vs-rest": OneVsRestClassifier(LogisticRegression(C=1 if is_table else 10, max_iter=1000)),
    }
    if is_table:
        peers.pop("Priory, not refined")
    for peer, model in peers.items():
        is_ours = isinstance(model, MultiLabelClassifier)
        model = model if is_ours or is_table else make_pipeline(TfidfVectorizer(sublinear_tf=True), model)
        start = time.process_time()
        model.fit(texts, labels if is_ours else marks)
        learned = time.process_time()
        p = model.predict_proba(new_texts)
        answered = time.process_time()
        thresholds = model.thresholds_ if is_ours else np.full(len(names), 0.5)
        s = LabelScores.of(truth, p, thresholds, names)
        scores = [s.micro_f1, s.macro_f1, s.hamming, s.subset_accuracy, s.log_loss]
        times = f"{learned - start:.2f} | {answered - learned:.2f}"
        print(f"| {name} | {peer} |", " | ".join(f"{v:.3f}" for v in scores), f"| {times} |", flush=True)


def main():
    warnings.simplefilter("ignore")
    print("# Several labels for a text\n\n`python benchmarks/multilabel.py`\n")
    print("| set | model | micro F1 | macro F1 | Hamming | subset accuracy | log loss | learn s | answer s |")
    print("|---" * 9 + "|")
    texts, labels, new_texts, new_labels = datasets.text("20newsgroups_bydate")
    compare("newsgroups", *join_posts(texts, labels, 4000, 0), *join_posts(new_texts, new_labels, 2000, 1))
    for name, rows in make_sets().items():
        compare(name, *rows)


if __name__ == "__main__":
    main()
