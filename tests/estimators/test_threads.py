"""Several threads with one estimator: no row is lost, and an answer is that of one model."""

import os
import signal
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


class WaitingRow(dict):
    """A row that a thread reads until it is told to go on."""

    def __init__(self, cells):
        super().__init__(cells)
        self.is_read, self.may_go_on = threading.Event(), threading.Event()

    def get(self, name, default=None):
        self.is_read.set()
        assert self.may_go_on.wait(30)
        return super().get(name, default)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork while there are threads
def test_the_child_of_a_fork_learns_while_a_thread_learns_in_the_parent():
    model = priory.NaiveBayes(calibrate=False).fit([{"n": float(i)} for i in range(50)], ["x", "y"] * 25)
    model.learn_one({"n": 3.0}, "x")
    row = WaitingRow({"n": 1.0})
    thread = threading.Thread(target=model.learn_one, args=(row, "x"))
    thread.start()
    try:
        assert row.is_read.wait(30)
        child = os.fork()
        if not child:
            _learn_and_exit(model)
    finally:
        row.may_go_on.set()
        thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert model.class_count_.tolist() == [27.0, 25.0]


def _learn_and_exit(model):
    """End a process that has learned a row: with 0 if its model is right, by an alarm if it hangs."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(5)
    try:
        is_right = model.learn_one({"n": 2.0}, "y").class_count_.tolist() == [26.0, 26.0]
        os._exit(not is_right)
    finally:
        os._exit(2)
