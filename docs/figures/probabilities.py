"""Draw the figures of docs/probabilities.md, with the same bytes every time."""

from pathlib import Path

import matplotlib
from sklearn.datasets import load_breast_cancer

from priory import Calibrated, Scores, TextClassifier, inbox, naive_bayes, plots

rows, labels = inbox()
texts = [row["text"] for row in rows]
model = TextClassifier().fit(texts, labels)
scores = Scores.of(labels, model.leave_one_out(texts, labels), model.classes_, logs=True)

X, y = load_breast_cancer(return_X_y=True)


def score_classifier(classifier):
    classifier.fit(X[::2], y[::2])
    return Scores.of(y[1::2], classifier.predict_log_proba(X[1::2]), classifier.classes_, logs=True)


plain = naive_bayes.GaussianNB()
figures = {
    "confusion_matrix": plots.confusion_matrix(scores),
    "score_histogram": plots.score_histogram(scores),
    "reliability": plots.reliability_diagram(
        {"before": score_classifier(plain), "after": score_classifier(Calibrated(plain, method="beta"))}, bins=8
    ),
}

if __name__ == "__main__":
    with matplotlib.rc_context({"svg.hashsalt": "priory"}):
        for name, figure in figures.items():
            figure.savefig(Path(__file__).parent / f"{name}.svg", metadata={"Date": None})
