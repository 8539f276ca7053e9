"""Along a stream: each batch is predicted before it is learned, and a window forgets all but the last batches.

    pip install river                                       # a peer; it is left out where it is not installed
    python benchmarks/streams.py [adult|imdb|spamassassin ...]     # writes results/streams.md

Needs the data sets (see datasets.py); takes about five minutes on a quiet core. Log loss and calibration error are
those of all answers but the ones to the first batch. Mails come in the order of their dates, reviews in a random
order. No probability counts as less than 1e-15.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Sequence
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import datasets
import priory as pr

try:
    from river import compose, feature_extraction, linear_model, naive_bayes, preprocessing, tree
except ImportError:
    compose = None

RESULTS = Path(__file__).parent / "results" / "streams.md"
BATCHES, WINDOW = 50, 20
MAX_TEXTS = 8000  # river takes minutes for more
LEAST = 1e-15


class Stream(NamedTuple):
    """Rows (a table, or texts) in the order in which they come, and their labels."""

    name: str
    rows: Any
    labels: np.ndarray[Any, Any]

    @property
    def classes(self) -> list[str]:
        return sorted(set(self.labels.tolist()))

    @property
    def batches(self) -> list[np.ndarray[Any, Any]]:
        return np.array_split(np.arange(len(self.labels)), BATCHES)

    def take(self, part: np.ndarray[Any, Any]) -> Any:
        return self.rows.iloc[part] if isinstance(self.rows, pd.DataFrame) else [self.rows[i] for i in part]


def read_date(mail: str) -> float:
    """When a mail was sent, in seconds; mails without a readable date come first."""
    line = next((line for line in mail.splitlines() if line.lower().startswith("date:")), "")
    try:
        return parsedate_to_datetime(line[5:].strip()).timestamp()
    except (TypeError, ValueError, IndexError, OverflowError):
        return 0.0


def read_stream(name: str) -> Stream | None:
    if name == "adult":
        table = datasets.table(name)
        return None if table is None else Stream(name, table[0].reset_index(drop=True), table[1].to_numpy(dtype=object))
    found = datasets.text(name)
    if found is None:
        return None
    texts, labels = found[:2]
    if name == "spamassassin":
        order = np.argsort([read_date(text) for text in texts], kind="stable")
    else:
        order = np.random.default_rng(0).permutation(len(texts))[:MAX_TEXTS]
    return Stream(name, [texts[i] for i in order], np.array([labels[i] for i in order], dtype=object))


def judge(stream: Stream, predict: Callable[[Any], Any], learn: Callable[[int], None]) -> tuple[float, float, float]:
    """Log loss, calibration error and seconds; ``learn`` is given the number of a batch."""
    truth: list[Any] = []
    answers: list[Any] = []
    started = time.process_time()
    for number, part in enumerate(stream.batches):
        if number:
            answers.append(np.clip(predict(stream.take(part)), LEAST, 1))
            truth.append(stream.labels[part])
        learn(number)
    p = np.concatenate(answers)
    scores = pr.Scores.of(np.concatenate(truth), p / p.sum(axis=1, keepdims=True), stream.classes)
    return scores.log_loss.value, scores.calibration_error.value, time.process_time() - started


def judge_priory(stream: Stream, model: Any, window: int | None = None) -> tuple[float, float, float]:
    def predict(rows: Any) -> Any:
        wide = np.zeros((len(rows), len(stream.classes)))
        wide[:, np.searchsorted(stream.classes, model.classes_)] = model.predict_proba(rows)
        return wide

    def learn(number: int) -> None:
        part = stream.batches[number]
        model.partial_fit(stream.take(part), stream.labels[part])
        if window is not None and number >= window:
            old = stream.batches[number - window]
            model.forget(stream.take(old), stream.labels[old])

    return judge(stream, predict, learn)


def judge_river(stream: Stream, model: Any) -> tuple[float, float, float]:
    def as_river(rows: Any) -> Sequence[Any]:
        if not isinstance(rows, pd.DataFrame):
            return list(rows)
        return [{k: v for k, v in row.items() if v == v and v is not None} for row in rows.to_dict("records")]

    def predict(rows: Any) -> Any:
        answers = [model.predict_proba_one(row) for row in as_river(rows)]
        return np.array([[answer.get(label, 0.0) for label in stream.classes] for answer in answers])

    def learn(number: int) -> None:
        part = stream.batches[number]
        for row, label in zip(as_river(stream.take(part)), stream.labels[part], strict=True):
            model.learn_one(row, label)

    return judge(stream, predict, learn)


def make_peers(stream: Stream) -> dict[str, Any]:
    """River's models of a stream; its logistic regression knows True and False only."""
    if compose is None:
        return {}
    if isinstance(stream.rows, pd.DataFrame):
        return {"river: HoeffdingTreeClassifier": tree.HoeffdingTreeClassifier()}
    return {"river: MultinomialNB": compose.Pipeline(feature_extraction.BagOfWords(), naive_bayes.MultinomialNB())}


def make_regression(stream: Stream) -> Any:
    if isinstance(stream.rows, pd.DataFrame):
        numbers = compose.SelectType(int, float) | preprocessing.StandardScaler()
        return (numbers + (compose.SelectType(str) | preprocessing.OneHotEncoder())) | linear_model.LogisticRegression()
    return compose.Pipeline(feature_extraction.TFIDF(), linear_model.LogisticRegression())


def run(stream: Stream) -> list[str]:
    make = pr.NaiveBayes if isinstance(stream.rows, pd.DataFrame) else pr.TextClassifier
    window = f"the last {WINDOW} batches"
    tasks: dict[str, Callable[[], tuple[float, float, float]]] = {
        f"{make.__name__}()": lambda: judge_priory(stream, make()),
        f"{make.__name__}(), {window}": lambda: judge_priory(stream, make(), WINDOW),
        "without corrections": lambda: judge_priory(stream, make(calibrate=False)),
        f"without corrections, {window}": lambda: judge_priory(stream, make(calibrate=False), WINDOW),
    }
    for title, peer in make_peers(stream).items():
        tasks[title] = lambda peer=peer: judge_river(stream, peer)
    if compose is not None:
        second = stream._replace(labels=stream.labels == stream.classes[1])
        tasks["river: LogisticRegression"] = lambda: judge_river(second, make_regression(stream))
    lines = []
    for title, task in tasks.items():
        loss, error, seconds = task()
        lines.append(f"| {stream.name} | {title} | {loss:.4f} | {100 * error:.1f} % | {seconds:.0f} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    warnings.simplefilter("ignore")
    names = sys.argv[1:] or ["adult", "spamassassin", "imdb"]
    lines = [
        "# Streams, batch by batch",
        "",
        f"`python benchmarks/streams.py {' '.join(names)}`",
        "",
        f"{BATCHES} batches, each predicted before it is learned; processor seconds. "
        + ("" if compose is not None else "river is not installed, and left out."),
        "",
        "| stream | model | log loss | calibration error | s |",
        "|---|---|---|---|---|",
    ]
    for name in names:
        stream = read_stream(name)
        if stream is not None:
            lines += run(stream)
            RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
