"""Corrections of tables with classes of a single row, which can be learned and not judged."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

import priory as pr


def clusters(alone, seed=0):
    """Twenty rows of two classes far apart, and one row each of ``alone`` others, with new rows of all."""
    rng = np.random.default_rng(seed)
    group = np.append(np.arange(20) % 2, 2 + np.arange(alone))
    centres = rng.normal(0, 4, (2 + alone, 5))
    new = rng.integers(0, 2 + alone, 300)
    x, more = (centres[g] + rng.normal(size=(len(g), 5)) for g in (group, new))
    return x, group.astype(str), more, new.astype(str)


def test_a_row_alone_in_its_class_is_learned_by_all_members():
    x, y, new, truth = clusters(alone=3)
    model = pr.NaiveBayes().fit(x, y)
    assert model.corrections_.members
    assert log_loss(truth, model.predict_proba(new), labels=model.classes_) < 0.7  # the base rate: about 1.6


def test_few_rows_of_many_classes_are_answered_much_better_than_by_the_base_rate():
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(y))
    some, new = order[:25], order[25:525]
    model = pr.NaiveBayes().fit(x[some], y[some])
    new = new[np.isin(y[new], model.classes_)]
    assert model.corrections_.members
    assert (np.unique(y[some], return_counts=True)[1] == 1).any()
    assert log_loss(y[new], model.predict_proba(x[new]), labels=model.classes_) < 1.2
