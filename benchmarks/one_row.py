"""One row at a time: the processor time of learning, forgetting and answering a single message or a single dict.

python benchmarks/one_row.py [--write]

`river` and `vowpalwabbit` are shown beside where they are installed; tables need the adult data set (see datasets.py).
Times are the best of several rounds in turn, in microseconds of processor time for each row; for rows that `fit` has
learned and for batches of one row, medians in milliseconds.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, starmap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import datasets
import priory as pr

RESULTS = Path(__file__).parent / "results" / "one_row.md"
ROUNDS = 3
OLD_ROWS = 5  # of those that fit has learned, to be forgotten one by one
MESSAGES, LETTERS = 200, 900
TEXTS_BEFORE = 8000
VOCABULARIES = (10_000, 300_000, 1_000_000)
ROWS_BEFORE = (1_000, 1_000_000)
CATEGORIES = (10_000, 1_000_000)
TRIALS = 20

Calls = Sequence[tuple[Any, ...]]


def measure(function: Callable[..., object], calls: Calls) -> float:
    """Microseconds of processor time for each call."""
    gc.collect()
    start = time.process_time()
    for arguments in calls:
        function(*arguments)
    return (time.process_time() - start) / len(calls) * 1e6


def run_rounds(model: Any, rows: Calls, asked: Calls) -> dict[str, float]:
    """The best times of each method, and the time of the first answer after rows were forgotten."""
    best: dict[str, float] = {}
    model.predict_proba_one(*asked[0])  # opens the model for single rows
    for _ in range(ROUNDS):
        found = {"predict": measure(model.predict_proba_one, asked), "learn": measure(model.learn_one, rows)}
        if hasattr(model, "forget_one"):
            found["forget"] = measure(model.forget_one, rows)
            found["anew"] = measure(model.predict_proba_one, asked[:1])  # derives what is not valid any more
        best = {name: min(value, best.get(name, np.inf)) for name, value in found.items()}
    return best


def measure_batches(model: Any, old: Calls, new: Calls, asked: Calls) -> dict[str, float]:
    """Milliseconds to forget a row that `fit` has learned, to learn one by `partial_fit`, and to answer after each."""

    def learn_batch(x: Any, y: Any) -> None:
        model.partial_fit([x], [y])

    found: dict[str, list[float]] = {"forget": [], "after forget": [], "partial_fit": [], "after partial_fit": []}
    for old_row, new_row in zip(old, new, strict=False):
        for name, change, row in (("forget", model.forget_one, old_row), ("partial_fit", learn_batch, new_row)):
            found[name].append(measure(change, [row]))
            found[f"after {name}"].append(measure(model.predict_proba_one, asked[:1]))
    return {name: float(np.median(times)) / 1000 for name, times in found.items()}


def format_batches(name: str, times: dict[str, float]) -> str:
    return f"| {name} | {' | '.join(f'{value:.2g}' if value < 10 else f'{value:.0f}' for value in times.values())} |"


def format_row(name: str, times: dict[str, float]) -> str:
    cells = [f"{times[key]:.0f}" if key in times else "-" for key in ("learn", "forget", "predict")]
    anew = f"{times['anew'] / 1000:.1f}" if times.get("anew", 0) > 3 * times["predict"] else "-"
    return f"| {name} | {' | '.join(cells)} | {anew} |"


def describe_ratios(found: dict[str, dict[str, float]]) -> Iterable[str]:
    """How many times as long the others take as Priory's models: the smallest and the largest ratio of each method."""
    ours = [times for name, times in found.items() if name.startswith("Priory")]
    for name, theirs in found.items():
        if not name.startswith("Priory"):
            ratios = {key: sorted(theirs[key] / times[key] for times in ours) for key in ("learn", "predict")}
            told = ", ".join(f"{key} {values[0]:.1f} to {values[-1]:.1f}" for key, values in ratios.items())
            yield f"{name}: its time divided by Priory's, {told}."


HEADER = ["| | learn | forget again | predict | once after forgetting, ms |", "|---|---|---|---|---|"]
HEADER_OF_BATCHES = [
    "",
    "Rows that `fit` has learned, and batches of one row; milliseconds:",
    "",
    "| | forget a row of `fit` | the answer after it | `partial_fit` of one row | the answer after it |",
    "|---|---|---|---|---|",
]


# -- messages --------------------------------------------------------------------------------------------------------


def make_messages(vocabulary: int, n: int, seed: int, letters: int = LETTERS) -> tuple[list[str], list[str]]:
    """Messages of words drawn by Zipf's law; each class prefers every other word a little."""
    rng = np.random.default_rng(seed)
    words = np.array([f"w{i:x}" for i in range(vocabulary)], dtype=object)
    share = 1 / np.arange(2, vocabulary + 2)
    odd = np.arange(vocabulary) % 2
    fond = [np.cumsum(share * np.where(odd == c, 1.5, 1.0)) for c in (0, 1)]
    labels = rng.integers(2, size=n).tolist()
    texts = [
        " ".join(words[np.searchsorted(fond[c], rng.random(letters // 4) * fond[c][-1])])[:letters] for c in labels
    ]
    return texts, ["ham" if c else "spam" for c in labels]


def make_history(vocabulary: int) -> tuple[list[str], list[str]]:
    """Messages that together show every word."""
    texts, labels = make_messages(vocabulary, TEXTS_BEFORE, seed=0)
    words = np.array([f"w{i:x}" for i in range(vocabulary)], dtype=object)
    parts = np.array_split(np.random.default_rng(1).permutation(vocabulary), TEXTS_BEFORE)
    return [f"{text} {' '.join(words[part])}" for text, part in zip(texts, parts, strict=True)], labels


def open_vowpal_wabbit() -> Any | None:
    try:
        from vowpalwabbit import Workspace
    except ImportError:
        return None
    return Workspace("--loss_function logistic --quiet -b 22")


class RiverTexts:
    """river's bag of words and multinomial naive Bayes."""

    def __init__(self) -> None:
        from river import feature_extraction, naive_bayes

        self.model = feature_extraction.BagOfWords(lowercase=True) | naive_bayes.MultinomialNB(alpha=1)
        self.predict_proba_one, self.learn_one = self.model.predict_proba_one, self.model.learn_one


class VowpalWabbit:
    """Vowpal Wabbit, online logistic regression on the same words."""

    def __init__(self) -> None:
        self.model = open_vowpal_wabbit()

    def learn_one(self, text: str, label: str) -> None:
        self.model.learn(f"{1 if label == 'ham' else -1} | {text}")

    def predict_proba_one(self, text: str) -> float:
        return self.model.predict(f"| {text}")


def list_text_models() -> dict[str, Callable[[], Any]]:
    models: dict[str, Callable[[], Any]] = {
        "Priory, plain": lambda: pr.TextClassifier(calibrate=False),
        "Priory, corrected": pr.TextClassifier,
    }
    try:
        import river  # noqa: F401 - whether it is installed

        models["river"] = RiverTexts
    except ImportError:
        pass
    return models | ({"Vowpal Wabbit": VowpalWabbit} if open_vowpal_wabbit() is not None else {})


def measure_messages() -> Iterable[str]:
    yield f"## One message of {LETTERS} letters"
    yield ""
    yield from HEADER
    ratios: list[str] = []
    batches: list[str] = []
    for vocabulary in VOCABULARIES:
        history = make_history(vocabulary)
        texts, labels = make_messages(vocabulary, MESSAGES, seed=2)
        found = {}
        for name, make in list_text_models().items():
            model = make()
            if hasattr(model, "fit"):
                model.fit(*history)
            else:
                list(starmap(model.learn_one, zip(*history, strict=True)))
            times = run_rounds(model, list(zip(texts, labels, strict=True)), [(text,) for text in texts])
            title = f"{name}, {vocabulary:,} tokens known"
            found[title] = times
            yield format_row(title, times)
            if hasattr(model, "forget_one"):
                old = list(zip(*history, strict=True))[:OLD_ROWS]
                new = list(zip(*make_messages(vocabulary, OLD_ROWS, seed=3), strict=True))
                batches.append(format_batches(title, measure_batches(model, old, new, [(text,) for text in texts])))
        ratios += describe_ratios(found)
    yield from ["", *(f"- {line}" for line in ratios)]
    yield from [*HEADER_OF_BATCHES, *batches]


# -- dicts -----------------------------------------------------------------------------------------------------------


class RiverTable:
    """river's mixed pipeline: numbers scaled, labels as indicators, then one of its classifiers."""

    def __init__(self, classifier: str) -> None:
        from river import compose, linear_model, naive_bayes, preprocessing

        numbers = compose.SelectType(float) | preprocessing.StandardScaler()
        labels = compose.SelectType(str) | preprocessing.OneHotEncoder()
        last = naive_bayes.GaussianNB() if classifier == "GaussianNB" else linear_model.LogisticRegression()
        self.model = (numbers + labels) | last

    def learn_one(self, x: dict[str, object], y: str) -> None:
        self.model.learn_one(x, y == ">50K")

    def predict_proba_one(self, x: dict[str, object]) -> object:
        return self.model.predict_proba_one(x)


def make_table(rows: int, categories: int = 0) -> tuple[pd.DataFrame, np.ndarray[Any, Any]] | None:
    """Rows of adult again and again, with noise in one column, and a column of many labels if wanted."""
    found = datasets.table("adult")
    if found is None:
        return None
    rng = np.random.default_rng(0)
    chosen = rng.integers(len(found[0]), size=max(rows, categories))
    table = found[0].iloc[chosen].reset_index(drop=True)
    table["fnlwgt"] += rng.integers(1000, size=len(table))
    if categories:
        table["town"] = [f"town {i % categories}" for i in range(len(table))]
    return table, found[1].to_numpy()[chosen]


def drop_missing(table: pd.DataFrame) -> list[dict[str, object]]:
    return [{k: v for k, v in row.items() if v == v} for row in table.to_dict("records")]


def measure_dicts() -> Iterable[str]:
    small = make_table(ROWS_BEFORE[0])
    if small is None:
        return
    yield "## One dict of the adult data set"
    yield ""
    yield from HEADER
    more = make_table(ROWS_BEFORE[0] + MESSAGES)
    assert more is not None
    calls = list(zip(drop_missing(more[0][-MESSAGES:]), more[1][-MESSAGES:].tolist(), strict=True))
    asked = [(row,) for row, _ in calls]
    histories = [(f"{rows:,} rows before", make_table(rows)) for rows in ROWS_BEFORE]
    histories += [(f"{n:,} labels in a column", make_table(n, categories=n)) for n in CATEGORIES]
    found = {}
    batches = []
    for described, history in histories:
        assert history is not None
        for name, calibrate in (("plain", False), ("corrected", "loo")):
            model = pr.NaiveBayes(calibrate=calibrate).fit(*history)  # type: ignore[arg-type]  # a str of two
            title = f"Priory, {name}, {described}"
            found[title] = run_rounds(model, calls, asked)
            yield format_row(title, found[title])
            old = list(zip(history[0][:OLD_ROWS].to_dict("records"), history[1][:OLD_ROWS].tolist(), strict=True))
            batches.append(format_batches(title, measure_batches(model, old, calls, asked)))
    for classifier in ("GaussianNB", "LogisticRegression"):
        try:
            beside = RiverTable(classifier)
        except ImportError:
            break
        list(starmap(beside.learn_one, zip(drop_missing(small[0]), small[1].tolist(), strict=True)))
        title = f"river, {classifier}, {ROWS_BEFORE[0]:,} rows before"
        found[title] = run_rounds(beside, calls, asked)
        yield format_row(title, found[title])
    yield from ["", *(f"- {line}" for line in describe_ratios(found))]
    yield from [*HEADER_OF_BATCHES, *batches]


# -- families --------------------------------------------------------------------------------------------------------


def measure_families() -> Iterable[str]:
    """One column of whole numbers: counts that change in place, and a family that only has its record."""
    yield f"## One number, by family, {ROWS_BEFORE[0]:,} rows before"
    yield ""
    yield from ["| | learn | forget again | predict |", "|---|---|---|---|"]
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=ROWS_BEFORE[0] + MESSAGES)
    values = 1 + rng.binomial(TRIALS - 1, np.where(labels, 0.2, 0.5))
    rows, y = [{"x": value} for value in values.tolist()], labels.tolist()
    for family in ("poisson", "histogram", "gaussian", "gamma", pr.families.Binomial(trials=TRIALS)):
        model = pr.NaiveBayes({"x": family}, calibrate=False).fit(rows[:-MESSAGES], y[:-MESSAGES])
        calls = list(zip(rows[-MESSAGES:], y[-MESSAGES:], strict=True))
        times = run_rounds(model, calls, [(row,) for row, _ in calls])
        name = family if isinstance(family, str) else "binomial, by its record"
        yield f"| {name} | {' | '.join(f'{times[key]:.0f}' for key in ('learn', 'forget', 'predict'))} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    lines = [
        "# One row at a time",
        "",
        "`python benchmarks/one_row.py --write`",
        "",
        "Microseconds of processor time for each row; the best of several rounds, all models in turn in one run. "
        '"Forget again" is of rows that `learn_one` has just added, as when a click is taken back. The last column is '
        "what the first answer takes after rows were forgotten that corrections, or the choice of families, had seen: "
        "they are derived anew. A row that `fit` has learned, the answer after it is forgotten, and `partial_fit` can "
        "cost what the model is rather than what the row is: they have tables of their own, in milliseconds.",
        "",
    ]
    arguments = parser.parse_args()
    for line in chain(measure_messages(), [""], measure_dicts(), [""], measure_families()):
        print(line, flush=True)
        lines.append(line)
    if arguments.write:
        RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
