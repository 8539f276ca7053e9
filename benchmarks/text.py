"""Texts: speed, memory and accuracy compared with scikit-learn, fastText and ``wc -w``, in one run.

    python benchmarks/text.py            # writes results/text.md; needs the data sets of datasets.py

Speed on the IMDB training texts: the best of seven runs (two with word pairs), the same number for all. Memory is the
peak of a process minus what it used before.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import BernoulliNB, ComplementNB, MultinomialNB
from sklearn.pipeline import make_pipeline

import datasets
import priory as pr
from clock import best
from priory.core import sharding
from priory.text.document_models import BAG_MODELS

plain = partial(pr.TextClassifier, calibrate=False)  # the same task as the others; quality.py measures calibration
RESULTS = Path(__file__).parent / "results" / "text.md"
SETS = ["sms_spam", "20newsgroups_bydate", "imdb", "rt_polarity", "trec_questions", "spamassassin"]


def on(threads: int, action: Callable[[], Any], runs: int) -> float:
    usual, sharding.N_THREADS = sharding.N_THREADS, threads
    try:
        return best(action, runs)
    finally:
        sharding.N_THREADS = usual


def word_count(texts: list[str]) -> float:
    with tempfile.NamedTemporaryFile(suffix=".txt") as file:
        file.write("\n".join(texts).encode())
        file.flush()
        return best(lambda: subprocess.run(["wc", "-w", file.name], check=True, capture_output=True), 7)


def fast_text(texts: list[str], labels: list[str]) -> float | None:
    """fastText's supervised learning, on one thread and with its own defaults; None where it is not installed."""
    try:
        import fasttext
    except ImportError:
        return None
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
        for text, label in zip(texts, labels, strict=True):
            file.write(f"__label__{label} {' '.join(text.split())}\n")
        file.flush()
        return best(lambda: fasttext.train_supervised(file.name, thread=1, verbose=0), 1)


def peer(ngrams: tuple[int, int] = (1, 1)) -> Any:
    return make_pipeline(CountVectorizer(ngram_range=ngrams), MultinomialNB())


def peak(kind: str, ngrams: tuple[int, int]) -> float:
    """Peak memory of fitting in MiB, measured in a process of its own."""
    out = subprocess.run([sys.executable, __file__, "peak", kind, str(ngrams[1])], check=True, capture_output=True)
    return float(out.stdout)


def measure_peak(kind: str, longest: int) -> None:
    train, labels, _, _ = datasets.text("imdb")
    model = plain(ngram_range=(1, longest)) if kind == "priory" else peer((1, longest))
    model.fit(train[:100], labels[:100])  # so that imports and tables made on first use do not count
    held = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    model.fit(train, labels)
    print(memory("VmHWM") - held)


def memory(field: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def speed(lines: list[str]) -> None:
    train, labels, test, _ = datasets.text("imdb")
    size = sum(len(text.encode()) for text in train) / 1e6

    def say(line: str) -> None:
        print(line, flush=True)
        lines.append(line)

    say(f"## Speed: {size:.0f} MB of IMDB training texts\n")
    say("| | seconds | MB/s | times scikit-learn |\n|---|---|---|---|")

    def row(what: str, seconds: float, against: float | None = None) -> None:
        ratio = "" if against is None else f"**{against / seconds:.0f}x**"
        say(f"| {what} | {seconds:.3f} | {size / seconds:.0f} | {ratio} |")

    row("`wc -w`", word_count(train))
    for ngrams, name in (((1, 1), "words"), ((1, 2), "words and pairs")):
        runs = 7 if ngrams == (1, 1) else 2  # the same number for both
        theirs = peer(ngrams)
        fit = best(lambda m=theirs: m.fit(train, labels), runs)
        row(f"CountVectorizer + MultinomialNB, fit, {name}", fit)
        if ngrams == (1, 1):
            hashing = make_pipeline(HashingVectorizer(alternate_sign=False), MultinomialNB())
            row("HashingVectorizer + MultinomialNB, fit, words", best(lambda m=hashing: m.fit(train, labels), 1), fit)
            seconds = fast_text(train, labels)
            if seconds is not None:
                row("fastText supervised, fit, words", seconds, fit)
        ours = plain(ngram_range=ngrams)
        for threads in (1, 2):
            row(
                f"TextClassifier, fit, {name}, {threads} thread(s)",
                on(threads, lambda m=ours: m.fit(train, labels), runs),
                fit,
            )
        predict = best(lambda m=theirs: m.predict(test), runs)
        row(f"CountVectorizer + MultinomialNB, predict, {name}", predict)
        ours.predict(test[:10])  # the index is built on first use
        for threads in (1, 2):
            seconds = on(threads, lambda m=ours: m.predict(test), runs)
            row(f"TextClassifier, predict, {name}, {threads} thread(s)", seconds, predict)
    say("\n## Peak memory of fit, in addition to the texts\n\n| | scikit-learn | Priory |\n|---|---|---|")
    for ngrams, name in (((1, 1), "words"), ((1, 2), "words and pairs")):
        say(f"| {name} | {peak('sklearn', ngrams):.0f} MiB | {peak('priory', ngrams):.0f} MiB |")
    say("\n## How it grows\n\n| texts | seconds to fit (2 threads) | MB/s |\n|---|---|---|")
    for times in (1, 4, 16):
        seconds = best(lambda t=times: plain().fit(train * t, labels * t), 2)
        say(f"| {times}x, {size * times:.0f} MB | {seconds:.2f} | {size * times / seconds:.0f} |")


def accuracy(lines: list[str]) -> None:
    def say(line: str) -> None:
        print(line, flush=True)
        lines.append(line)

    peers = {"Multinomial": MultinomialNB, "Complement": ComplementNB, "Bernoulli": BernoulliNB}
    say("\n## Accuracy, bags of words with alpha = 1, and TextClassifier() as it is\n")
    say("Official splits, else 5-fold (stratified, seed 0).\n")
    head = [f"scikit-learn {name}" for name in peers] + [*BAG_MODELS, "TextClassifier()"]
    say(f"| set | {' | '.join(head)} | best of ours − best of theirs |\n|---|{'---|' * (len(head) + 1)}")
    for name in SETS:
        found = datasets.text(name)
        if found is None:
            continue
        scores = []
        for x, y, new, truth in splits(*found):
            vectoriser = CountVectorizer()
            counts, unseen = vectoriser.fit_transform(x), None
            unseen = vectoriser.transform(new)
            theirs = [(Peer().fit(counts, y).predict(unseen) == truth).mean() for Peer in peers.values()]
            models = [*map(plain, BAG_MODELS), pr.TextClassifier()]
            ours = [(model.fit(x, y).predict(new) == truth).mean() for model in models]
            scores.append(theirs + ours)
        mean = np.mean(scores, axis=0)
        gap = mean[3:].max() - mean[:3].max()
        say(f"| {name} | {' | '.join(f'{v:.4f}' for v in mean)} | {gap:+.4f} |")


def splits(train: list[str], labels: list[str], test: list[str], truth: list[str]) -> Any:
    if len(test):
        yield train, labels, test, np.asarray(truth)
        return
    x, y = np.array(train, dtype=object), np.asarray(labels)
    for a, b in StratifiedKFold(5, shuffle=True, random_state=0).split(x, y):
        yield x[a].tolist(), y[a], x[b].tolist(), y[b]


def main() -> None:
    if datasets.text("imdb") is None:
        print("the texts are not here; set PRIORY_DATA")
        return
    warnings.simplefilter("ignore")
    lines = [
        "# Texts",
        "",
        f"`python benchmarks/text.py`; scikit-learn {sklearn.__version__}, {os.cpu_count()} cores.",
        "",
    ]
    speed(lines)
    accuracy(lines)
    RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["peak"]:
        measure_peak(sys.argv[2], int(sys.argv[3]))
    else:
        main()
