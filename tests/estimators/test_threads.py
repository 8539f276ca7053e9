"""Several threads with one estimator: no row is lost, and an answer is that of one model."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import priory
from priory.naive_bayes import GaussianNB


def run_threads(functions):
    with ThreadPoolExecutor(len(functions)) as pool:
        for future in [pool.submit(function) for function in functions]:
            future.result()


@pytest.mark.parametrize(
    "make",
    [lambda: GaussianNB(), lambda: priory.NaiveBayes(calibrate=False), lambda: priory.NaiveBayes(memory=50)],
    ids=["GaussianNB", "plain NaiveBayes", "NaiveBayes"],
)
def test_no_row_is_lost(make):
    x, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    model = make().partial_fit(x, y, classes=[0, 1])

    def learn():
        for i in range(10):
            model.partial_fit(x[i : i + 1], y[i : i + 1])

    run_threads([learn] * 8)
    assert model.class_count_.sum() == 40 + 8 * 10


def test_no_row_of_a_regression_is_lost():
    x = np.random.default_rng(0).normal(size=(400, 30))
    model = priory.BayesianLinearRegression().fit(x, x[:, 0])

    def learn():
        for i in range(10):
            model.partial_fit(x[i : i + 5], x[i : i + 5, 0])

    run_threads([learn] * 8)
    assert float(model.statistics_.n) == 400 + 8 * 10 * 5


def test_learning_and_forgetting_at_once_cancel():
    texts, y = ["win cash", "lunch at noon", "cash prize"] * 10, ["spam", "ham", "spam"] * 10
    model = priory.TextClassifier(calibrate=False).fit(texts, y)

    def learn_and_forget():
        for _ in range(20):
            model.partial_fit(["brand new"], ["ham"])
            model.forget(["brand new"], ["ham"])

    run_threads([learn_and_forget] * 4)
    assert model.class_count_.tolist() == [10.0, 20.0]
    assert "brand" not in model.vocabulary_


def test_an_answer_is_that_of_one_model():
    """A writer moves between two models; every answer is that of one of them."""
    texts, y = ["win cash", "lunch at noon", "cash prize"] * 10, ["spam", "ham", "spam"] * 10
    more, labels = ["cash lunch today"] * 7, ["ham"] * 7
    model = priory.TextClassifier(calibrate=False).fit(texts, y)
    asked = ["cash", "lunch", "today", "prize"]
    possible = [model.predict_proba(asked)]
    possible.append(priory.TextClassifier(calibrate=False).fit(texts + more, y + labels).predict_proba(asked))
    stop, torn = threading.Event(), []

    def ask():
        while not stop.is_set():
            answer = model.predict_proba(asked)
            if not any(np.allclose(answer, one, atol=1e-12) for one in possible):
                torn.append(answer)

    def write():
        try:
            for _ in range(100):
                model.partial_fit(more, labels)
                model.forget(more, labels)
        finally:
            stop.set()

    run_threads([write, ask, ask, ask])
    assert not torn
