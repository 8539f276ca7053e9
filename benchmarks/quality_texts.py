"""Quality of the probabilities of texts: every set of texts, texts from elsewhere, and labels that mean nothing.

    python benchmarks/quality_texts.py [sets|speed|shift|noise]    # writes results/quality_texts*.md; needs the data

The official split, or the last fifth of a shuffled set that has none. Log loss is in nats; no probability counts as
less than 1e-15. The peer is logistic regression on tf-idf of words and pairs of words (those of at least two texts, and
the 100,000 most frequent), its strength tuned by log loss in three folds of at most 2,000 texts. fastText, where it is
installed, is run once for five epochs on words and pairs.

How strongly a shift of all texts alike is held back (``Reach.hold``) was chosen by looking at all sets and at the texts
from elsewhere: 10, 20, 33, and no shift at all.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

import datasets
import priory as pr
from priory.evaluation.scores import Scores

RESULTS = Path(__file__).parent / "results"
FULL = {"min_token_length": 1, "extra_tokens": "!?"}  # words of one letter too, and these two marks
NOISY_SETS = 20
MAX_TEXTS_TO_TUNE = 2000


class Split(NamedTuple):
    """Texts to learn from and texts to judge by, with their labels."""

    x: list[str]
    y: list[str]
    new_x: list[str]
    new_y: list[str]


class TunedRegression:
    """Logistic regression on tf-idf, its strength tuned on some of the texts."""

    def fit(self, x: list[str], y: list[str]) -> TunedRegression:
        self.reader = TfidfVectorizer(ngram_range=(1, 2), min_df=2, max_features=100_000, sublinear_tf=True)
        rows, labels = self.reader.fit_transform(x), np.asarray(y)
        some = np.random.default_rng(0).permutation(len(y))[:MAX_TEXTS_TO_TUNE]
        tuned = GridSearchCV(LogisticRegression(max_iter=100), {"C": [1, 10, 100]}, scoring="neg_log_loss", cv=3)
        with threadpool_limits(1):  # threads of BLAS only wait for each other here
            strength = tuned.fit(rows[some], labels[some]).best_params_["C"]
            self.model = LogisticRegression(max_iter=100, C=strength).fit(rows, labels)
        self.classes_ = self.model.classes_
        return self

    def predict_proba(self, x: list[str]) -> Any:
        return self.model.predict_proba(self.reader.transform(x))


class FastText:
    """fastText on words and pairs of words."""

    def fit(self, x: list[str], y: list[str]) -> FastText:
        self.classes_ = np.unique(y)
        codes = np.searchsorted(self.classes_, y)
        with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
            file.writelines(f"__label__{c} {' '.join(t.split())}\n" for c, t in zip(codes, x, strict=True))
            file.flush()
            self.model = fasttext.train_supervised(file.name, epoch=5, wordNgrams=2, verbose=0)
        return self

    def predict_proba(self, x: list[str]) -> Any:
        answers = np.zeros((len(x), len(self.classes_)))
        for row, text in zip(answers, x, strict=True):
            for p, label in self.model.f.predict(" ".join(text.split()) + "\n", -1, 0.0, "strict"):
                row[int(label.removeprefix("__label__"))] = p
        return answers


def import_if_installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


fasttext = import_if_installed("fasttext")
MODELS: dict[str, Callable[[], Any]] = {
    "MultinomialNB of scikit-learn": lambda: make_pipeline(CountVectorizer(), MultinomialNB()),
    "tf-idf, tuned logistic regression": TunedRegression,
    **({"fastText": FastText} if fasttext else {}),
    "TextClassifier(calibrate=False)": lambda: pr.TextClassifier(calibrate=False),
    "TextClassifier(refine=False)": lambda: pr.TextClassifier(refine=False),
    "TextClassifier()": pr.TextClassifier,
    'TextClassifier(pairs="auto")': lambda: pr.TextClassifier(pairs="auto"),
    "TextClassifier(refine=True)": lambda: pr.TextClassifier(refine=True),
    'TextClassifier(refine=True, pairs="auto"), single letters and !?': lambda: pr.TextClassifier(
        refine=True, pairs="auto", **FULL
    ),
}


def take_split(name: str) -> Split | None:
    found = datasets.text(name)
    if found is None or len(found[2]):
        return None if found is None else Split(*found)
    texts, labels = found[:2]
    order = np.random.default_rng(0).permutation(len(texts))
    train, test = order[: len(order) * 4 // 5], order[len(order) * 4 // 5 :]
    return Split(*([whole[i] for i in part] for part in (train, test) for whole in (texts, labels)))


def judge(model: Any, split: Split) -> tuple[float, float, float, float]:
    """Accuracy, log loss, calibration error, and the seconds to fit."""
    started = time.perf_counter()
    model.fit(split.x, split.y)
    seconds = time.perf_counter() - started
    answers = np.clip(model.predict_proba(split.new_x), 1e-15, 1)
    scores = Scores.of(np.asarray(split.new_y), answers / answers.sum(axis=1, keepdims=True), model.classes_)
    return scores.accuracy.value, scores.log_loss.value, scores.calibration_error.value, seconds


def say(lines: list[str], line: str) -> None:
    print(line, flush=True)
    lines.append(line)


def run_sets() -> list[str]:
    lines: list[str] = []
    say(lines, "## Every set\n" if fasttext else "## Every set\n\nfastText is not installed, and left out.\n")
    say(
        lines,
        "| set | model | accuracy | log loss | calibration error | fit, s |\n|---|---|---|---|---|---|",
    )
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in MODELS}
    for name in datasets.TEXTS:
        split = take_split(name)
        for label, make in MODELS.items() if split else ():
            scores = judge(make(), split)
            found[label].append(scores)
            say(lines, f"| {name} | {label} | " + " | ".join(f"{v:.4f}" for v in scores[:3]) + f" | {scores[3]:.1f} |")
    for label, rows in found.items():
        means = np.mean(rows, axis=0)
        say(lines, f"| **mean** | {label} | " + " | ".join(f"{v:.4f}" for v in means[:3]) + f" | {means[3]:.1f} |")
    return lines


def run_speed() -> list[str]:
    """What a refinement takes from strings to a fitted model, next to counting words alone, in one run."""
    lines: list[str] = []
    split = take_split("imdb")
    say(lines, "\n## IMDB, from strings to a fitted model\n\n| | seconds | accuracy | log loss |\n|---|---|---|---|")
    pr.TextClassifier().fit(split.x[:500], split.y[:500])  # what is made on first use does not count
    for ngrams, name in (((1, 1), "words"), ((1, 2), "words and pairs")):
        started = time.perf_counter()
        CountVectorizer(ngram_range=ngrams).fit_transform(split.x)
        say(lines, f"| CountVectorizer alone, {name} | {time.perf_counter() - started:.2f} | | |")
        model = pr.TextClassifier(refine=True, pairs=ngrams == (1, 2), **FULL)
        accuracy, loss, _, seconds = judge(model, split)
        say(lines, f"| TextClassifier(refine=True), {name} | {seconds:.2f} | {accuracy:.4f} | {loss:.4f} |")
    split = take_split("20newsgroups_bydate")
    accuracy, loss, _, seconds = judge(pr.TextClassifier(refine=True, pairs=False, **FULL), split)
    say(lines, f"| TextClassifier(refine=True), words, 20 Newsgroups | {seconds:.2f} | {accuracy:.4f} | {loss:.4f} |")
    return lines


# -- shift -----------------------------------------------------------------------------------------------------------


def iter_shifts() -> Iterator[tuple[str, Split]]:
    """Texts to learn from, and texts of another year or place to judge by."""
    mail: dict[str, tuple[list[str], list[str]]] = {}
    archive = datasets.DATA / "spamassassin" / "spamassassin-publiccorpus.tar.gz"
    for (_, kind, _), raw in datasets.members(archive) if archive.exists() else ():
        texts, labels = mail.setdefault("2" if kind.endswith("_2") else "1", ([], []))
        texts.append(raw.decode("latin-1"))
        labels.append("spam" if "spam" in kind else "ham")
    if mail:
        yield "SpamAssassin, first collection to second", Split(*mail["1"], *mail["2"])
        yield "SpamAssassin, second collection to first", Split(*mail["2"], *mail["1"])
        bodies = {k: ([t.partition("\n\n")[2] for t in texts], labels) for k, (texts, labels) in mail.items()}
        yield "the same without headers, first to second", Split(*bodies["1"], *bodies["2"])
        yield "the same without headers, second to first", Split(*bodies["2"], *bodies["1"])
    folder = datasets.DATA / "sentiment_sentences"
    places = {
        path.name.split("_")[0]: datasets.labelled(line.rsplit("\t", 1)[::-1] for line in datasets.lines(path))
        for path in sorted(folder.glob("*_labelled.txt"))
    }
    for name in places:
        rest = [pair for other in places if other != name for pair in zip(*places[other], strict=True)]
        yield f"sentences, the others to {name}", Split([t for t, _ in rest], [c for _, c in rest], *places[name])
    reviews, sentences = take_split("imdb"), take_split("rt_polarity")
    if reviews and sentences:
        yield "IMDB reviews to sentences (rt_polarity)", Split(reviews.x, reviews.y, sentences.new_x, sentences.new_y)
        yield "sentences (rt_polarity) to IMDB reviews", Split(sentences.x, sentences.y, reviews.new_x, reviews.new_y)


def run_shift() -> list[str]:
    lines: list[str] = []
    say(lines, "\n## Texts from elsewhere: accuracy / log loss\n")
    names = ["TextClassifier(refine=False)", "TextClassifier()"]
    names += ["TextClassifier(refine=True)", 'TextClassifier(pairs="auto")']
    say(lines, f"| learned and judged on | {' | '.join(names)} | default less not refined |\n|" + "---|" * 6)
    for label, split in iter_shifts():
        found = [judge(MODELS[name](), split) for name in names]
        cells = " | ".join(f"{accuracy:.4f} / {loss:.4f}" for accuracy, loss, _, _ in found)
        say(lines, f"| {label} | {cells} | {found[1][1] - found[0][1]:+.4f} |")
    return lines


# -- noise -----------------------------------------------------------------------------------------------------------


def run_noise() -> list[str]:
    """Real texts with labels at random: what is claimed, and what new texts get."""
    lines: list[str] = []
    say(lines, "\n## Labels that mean nothing\n")
    excess, claims = [], 0
    for seed in range(NOISY_SETS):
        name = ("sms_spam", "rt_polarity", "sst2", "trec_questions")[seed % 4]
        texts = take_split(name).x
        rng = np.random.default_rng(seed)
        chosen = rng.permutation(len(texts))[: int(np.exp(rng.uniform(np.log(200), np.log(4000))))]
        y = rng.choice(["a", "b"], len(texts), p=[0.6, 0.4])
        model = pr.TextClassifier().fit([texts[i] for i in chosen], y[chosen])
        rest = np.setdiff1d(np.arange(len(texts)), chosen)[:2000]
        answers = model.predict_log_proba([texts[i] for i in rest])
        losses = -answers[np.arange(len(rest)), (y[rest] == "b").astype(int)]
        share = np.mean(y[chosen] == "b")
        excess.append(float(np.mean(losses + np.log(np.where(y[rest] == "b", share, 1 - share)))))
        claims += model.evaluate().gain["log_loss"].low > 0
    say(
        lines,
        f"{NOISY_SETS} samples of real texts: log loss on new texts above that of the base rate "
        f"{np.mean(excess):+.4f}\non average and {np.max(excess):+.4f} at most; "
        f"`evaluate()` claims a gain {claims} times.",
    )
    return lines


PARTS = {"sets": run_sets, "speed": run_speed, "shift": run_shift, "noise": run_noise}


def main() -> None:
    warnings.simplefilter("ignore")
    for part in sys.argv[1:] or PARTS:
        head = [f"# Quality on texts: {part}", "", f"`python benchmarks/quality_texts.py {part}`", ""]
        lines = [*head, *PARTS[part]()]
        suffix = "" if part == "sets" else f"_{part}"
        (RESULTS / f"quality_texts{suffix}.md").write_text("\n".join(lines).replace("\n\n\n", "\n\n") + "\n")


if __name__ == "__main__":
    main()
