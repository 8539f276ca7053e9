"""Counting text: Priory beside scikit-learn and ``wc -w`` on the IMDB training texts, in one run. Writes a table.

python benchmarks/text_speed.py
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable

import datasets
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

from priory import counting
from priory.tokens import Tokens, score
from priory.words import count


def best(function: Callable[[], object], times: int = 3) -> float:
    """Seconds of the quickest run: the machine is shared."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def on(threads: int, function: Callable[[], object], times: int = 5) -> float:
    usual, counting.THREADS = counting.THREADS, threads
    try:
        return best(function, times)
    finally:
        counting.THREADS = usual


def word_count(texts: list[str]) -> float:
    """Seconds that ``wc -w`` takes for the same bytes."""
    with tempfile.NamedTemporaryFile(suffix=".txt") as file:
        file.write("\n".join(texts).encode())
        file.flush()
        return best(lambda: subprocess.run(["wc", "-w", file.name], check=True, capture_output=True))


def main() -> None:
    found = datasets.text("imdb")
    if found is None:
        print("the IMDB texts are not here; set PRIORY_DATA")
        return
    train, labels, test, _ = found
    group = (np.array(labels) == "pos").astype(np.int32)
    megabytes = sum(len(text.encode()) for text in train) / 1e6

    def row(what: str, seconds: float, against: float | None = None) -> str:
        ratio = "" if against is None else f"{against / seconds:.1f}"
        return f"| {what} | {seconds:.3f} | {megabytes / seconds:.0f} | {ratio} |"

    print("| | seconds | MB/s | times scikit-learn |\n|---|---|---|---|")
    print(row("`wc -w`", word_count(train)))
    for ngrams in ((1, 1), (1, 2)):
        rule = Tokens(ngrams=ngrams)
        vectorizer, model = CountVectorizer(ngram_range=ngrams), MultinomialNB()
        fit = best(lambda v=vectorizer, m=model: m.fit(v.fit_transform(train), group), 1)
        print(row(f"scikit-learn, fit, {ngrams}", fit))
        for threads in (1, 2):
            seconds = on(threads, lambda r=rule: count(train, group, 2, r))
            print(row(f"Priory, count, {ngrams}, {threads} threads", seconds, fit))
        predict = best(lambda v=vectorizer, m=model: m.predict(v.transform(test)), 1)
        print(row(f"scikit-learn, predict, {ngrams}", predict))
        words = count(train, group, 2, rule)
        index, table = words.index(), np.log1p(words.counts)
        for threads in (1, 2):
            seconds = on(threads, lambda r=rule, i=index, t=table: score(test, i, t, r))
            print(row(f"Priory, score, {ngrams}, {threads} threads", seconds, predict))


if __name__ == "__main__":
    main()
