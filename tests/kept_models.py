"""Models whose files are kept in tests/model_files; ``python tests/kept_models.py`` writes them anew."""

import priory as pr
from paths import ROOT
from priory.naive_bayes import GaussianBayes, GaussianNB

FOLDER = ROOT / "tests" / "model_files"

NUMBERS = [[1.0, 2.0], [1.5, 1.0], [9.0, 7.0], [8.0, 9.0]]
KEPT = {
    "texts": (
        pr.TextClassifier(calibrate=False),
        ["win cash now", "cash prize", "lunch at noon"],
        ["spam", "spam", "ham"],
    ),
    "table": (
        pr.NaiveBayes(calibrate=False),
        [{"sky": "sun", "wind": 3.0}, {"sky": "rain", "wind": 9.0}, {"sky": "rain", "wind": 8.0}],
        ["go", "stay", "stay"],
    ),
    "numbers": (GaussianNB(), NUMBERS, [0, 0, 1, 1]),
    "covariances": (GaussianBayes(), NUMBERS, [0, 0, 1, 1]),
    "regression": (pr.BayesianLinearRegression(), NUMBERS, [3.0, 4.0, 5.0, 6.5]),
}

if __name__ == "__main__":
    for name, (model, X, y) in KEPT.items():
        pr.save(model.fit(X, y), FOLDER / f"{name}.priory")
