"""How fast old rows should fade, by the evidence of later ones."""

import numpy as np
import pytest

from priory import NaiveBayes, TextClassifier
from priory.errors import DataError
from priory.estimators.learning_curve import choose_decay


def make_turning(rows, turns, seed):
    """Two classes on both sides of a line that turns."""
    rng = np.random.default_rng(seed)
    X, angle = rng.normal(size=(rows, 2)), np.linspace(0, 2 * np.pi * turns, rows)
    return X, (X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle) + 0.3 * rng.normal(size=rows) > 0).astype(int)


@pytest.mark.parametrize("seed", range(5))
def test_rows_that_do_not_change_are_not_to_fade(seed):
    assert choose_decay(NaiveBayes(), *make_turning(600, 0, seed)) == 1.0


def test_the_chosen_decay_answers_a_turning_stream_better():
    X, y = make_turning(1500, 1, 0)
    factor = choose_decay(NaiveBayes(), X[:1000], y[:1000])
    assert factor < 1
    models = {1.0: NaiveBayes(), factor: NaiveBayes()}
    for each, model in models.items():
        for start in range(0, 1450, 50):
            model.partial_fit(X[start : start + 50], y[start : start + 50]).decay(each)
    assert models[factor].score(X[1450:], y[1450:]) > models[1.0].score(X[1450:], y[1450:]) + 0.1


def test_classes_that_come_late_and_rows_of_any_kind():
    texts = ["win cash", "lunch noon", "see you"] * 100
    labels = ["a", "b"] * 100 + ["c"] * 100
    model = TextClassifier().fit(["win"], ["a"])
    assert 0 < choose_decay(model, texts, labels, rows=20) <= 1
    assert model.class_count_.tolist() == [1.0]
    assert choose_decay(NaiveBayes(), {"x": ["u", "v"] * 100}, [0, 1] * 100, factors=[0.9]) == 1.0


def test_too_few_rows_are_one_line():
    with pytest.raises(DataError, match="three blocks"):
        choose_decay(NaiveBayes(), *make_turning(100, 0, 0))
