"""The leakage audit against planted leaks, clean data, real tables, and the clock.

Clean data sets are generated anew each time: 300 to 3,000 rows, 4 to 15 columns of numbers, counts and labels, of
strengths from nothing to strong, correlated, with cells missing at random, two to four classes, split at random into
train and test; a fifth of them have labels only, so that rows coincide by chance; a fifth are texts. A planted leak is
one of these data sets with one change. *Found* means a finding of that kind, of medium or high severity, that names the
right column where there is one. The thresholds are the same throughout, but several were set after looking at earlier
runs of this benchmark and at the real tables below, so neither is an independent check of them.

    python benchmarks/leakage.py            # writes benchmarks/results/leakage.md
    python benchmarks/leakage.py --quick    # fewer of everything, prints only
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import priory as pr
from datasets import CLASSIFICATION, DATA, table, text
from priory.leakage import Findings, Severity
from priory.leakage.row_hashes import cluster_texts

RESULT = Path(__file__).parent / "results" / "leakage.md"
QUICK = "--quick" in sys.argv
CLEAN = 60 if QUICK else 500
EACH = 5 if QUICK else 12

Rng = np.random.Generator
Set = dict  # the arguments of an audit


# -- clean data --------------------------------------------------------------------------------------------------------


def clean_table(rng: Rng, labels_only: bool = False) -> pd.DataFrame:
    n, d, k = int(rng.integers(300, 3000)), int(rng.integers(4, 16)), int(rng.integers(2, 5))
    y = rng.choice(k, size=n, p=rng.dirichlet(np.full(k, 4.0)))
    common = rng.normal(size=n)  # so that the columns are correlated
    frame = {}
    for j in range(d):
        strength = rng.choice([0.0, 0.0, 0.3, 0.6, 1.0, 1.5])
        hidden = rng.normal(size=k)[y] * strength + rng.normal(size=n) + 0.5 * common
        kind = "labels" if labels_only else rng.choice(["numbers", "numbers", "skewed", "rounded", "counts", "labels"])
        if kind == "numbers":
            column = hidden
        elif kind == "skewed":
            column = np.exp(hidden)
        elif kind == "rounded":
            column = hidden.round(1)
        elif kind == "counts":
            column = rng.poisson(np.exp(np.clip(hidden, -3, 3)))
        else:
            cuts = np.quantile(hidden, np.linspace(0, 1, int(rng.integers(2, 7)) + 1)[1:-1])
            column = np.array(list("abcdefgh"))[np.searchsorted(cuts, hidden)]
        column = pd.Series(column, dtype=object if kind == "labels" else float)
        if rng.random() < 0.3:
            column[rng.random(n) < rng.uniform(0.02, 0.4)] = None
        frame[f"x{j}"] = column
    return pd.DataFrame({**frame, "y": np.array(["a", "b", "c", "d"])[y]})


def clean_texts(rng: Rng, lines: int = 1) -> tuple[list[str], np.ndarray]:
    """Texts of words drawn by Zipf's law; each class has some words of its own."""
    n, words = int(rng.integers(300, 1500)), np.array([f"w{i}" for i in range(2000)])
    y = rng.integers(2, size=n)
    weight = 1 / np.arange(1, 2001)
    tilt = [weight * np.exp(0.5 * rng.normal(size=2000)) for _ in range(2)]
    chances = [t / t.sum() for t in tilt]
    documents = [
        "\n".join(" ".join(rng.choice(words, rng.integers(8, 40), p=chances[c])) for _ in range(lines)) for c in y
    ]
    return documents, y


def halves(frame: pd.DataFrame) -> Set:
    cut = 2 * len(frame) // 3
    return {"train": frame[:cut].reset_index(drop=True), "test": frame[cut:].reset_index(drop=True), "target": "y"}


def text_halves(documents: list[str], y: np.ndarray) -> Set:
    cut = 2 * len(documents) // 3
    return {"train": documents[:cut], "test": documents[cut:], "target": (y[:cut], y[cut:])}


def clean(rng: Rng, number: int) -> Set:
    if number % 5 == 0:
        return text_halves(*clean_texts(rng, lines=int(rng.integers(1, 4))))
    return halves(clean_table(rng, labels_only=number % 5 == 1))


# -- leaks: (rng, strength) -> the arguments of an audit, and the column to be named -----------------------------------


def copied(rng: Rng, share: float) -> tuple[Set, str | None]:
    given = halves(clean_table(rng))
    rows = max(1, round(share * len(given["test"])))
    given["test"] = pd.concat([given["test"][rows:], given["train"].sample(rows, random_state=0)])
    return given, None


def disguised(rng: Rng, share: float) -> tuple[Set, str | None]:
    given, _ = copied(rng, share)
    test = given["test"].copy()
    for name in test.columns[:-1]:
        if test[name].dtype == float:
            test[name] = test[name].round(4)
        else:
            test[name] = test[name].map(lambda cell: cell if cell is None or cell != cell else f" {cell.upper()} ")
    given["test"] = test[list(test.columns[::-1])]
    return given, None


def oversampled(rng: Rng, times: float) -> tuple[Set, str | None]:
    frame = clean_table(rng)
    largest = frame.y.value_counts().idxmax()
    rest = frame[frame.y != largest]
    more = pd.concat([frame, rest.sample(round((times - 1) * len(rest)), replace=times > 2, random_state=0)])
    return {"train": more.sample(frac=1, random_state=0), "target": "y"}, None


def conflicting(rng: Rng, share: float) -> tuple[Set, str | None]:
    frame = clean_table(rng)
    other = frame.sample(frac=share, random_state=0)
    other["y"] = np.where(other.y == "a", "b", "a")
    return {"train": pd.concat([frame, other]), "target": "y"}, None


def near_texts(rng: Rng, share: float) -> tuple[Set, str | None]:
    documents, y = clean_texts(rng, lines=2)
    given = text_halves(documents, y)
    for i in range(max(1, round(share * len(given["test"])))):
        words = given["train"][i].split(" ")
        words[int(rng.integers(len(words)))] = "other"
        given["test"][i] = " ".join(words)
    return given, None


def grouped(rng: Rng, size: float, suggested: bool = False) -> tuple[Set, str | None]:
    frame = clean_table(rng)
    n = len(frame)
    who = rng.integers(round(n / size), size=n)
    twin = pd.Series(np.arange(n)).groupby(who).transform("first").to_numpy()
    for name in frame.columns[:-1]:
        if frame[name].dtype == float:
            spread = frame[name].std()
            frame[name] = frame[name].to_numpy()[twin] + rng.normal(0, 0.5 * spread, size=n)
    frame["y"] = np.where(rng.random(n) < 0.8, frame.y.to_numpy()[twin], frame.y)
    frame.insert(0, "who", rng.permutation(10**6)[who])
    return {**halves(frame), **({} if suggested else {"groups": "who"})}, "who"


def late(rng: Rng, share: float) -> tuple[Set, str | None]:
    frame = clean_table(rng)
    frame.insert(0, "day", np.arange(len(frame)))
    given = halves(frame)
    moved = given["test"].sample(frac=share, random_state=0)
    given["train"] = pd.concat([given["train"], moved])
    given["test"] = given["test"].drop(index=moved.index)
    return {**given, "time": "day"}, "day"


def hinted(rng: Rng, wrong: float) -> tuple[Set, str | None]:
    frame = clean_table(rng)
    classes = np.unique(frame.y)
    hint = np.where(rng.random(len(frame)) < wrong, rng.choice(classes, len(frame)), frame.y)
    frame.insert(1, "hint", hint)
    return halves(frame), "hint"


def filled_later(rng: Rng, gap: float) -> tuple[Set, str | None]:
    frame = clean_table(rng)
    chance = np.where(frame.y == frame.y.value_counts().idxmax(), 0.0, gap)
    frame.insert(1, "later", np.where(rng.random(len(frame)) < chance, rng.normal(size=len(frame)), np.nan))
    return halves(frame), "later"


def numbered(rng: Rng, order: float) -> tuple[Set, str | None]:
    frame = clean_table(rng)
    key = np.where(rng.random(len(frame)) < order, frame.y, rng.choice(list("abcd"), len(frame)))
    frame = frame.iloc[np.argsort(key, kind="stable")].reset_index(drop=True)
    frame.insert(0, "number", np.arange(len(frame)))
    return halves(frame.sample(frac=1, random_state=0)), "number"


def drifted(rng: Rng, shift: float) -> tuple[Set, str | None]:
    frame = clean_table(rng)
    frame["moved"] = rng.normal(size=len(frame))
    given = halves(frame)
    given["test"]["moved"] += shift
    return given, "moved"


def scanner(rng: Rng, strength: float) -> tuple[Set, str | None]:
    frame = clean_table(rng)
    given = halves(frame)
    for side, known in (("train", strength), ("test", 0.0)):
        y = given[side].y
        given[side]["scanner"] = np.where(rng.random(len(y)) < known, y, rng.choice(np.unique(frame.y), len(y)))
    return given, "scanner"


def scaled(rng: Rng, rows: float) -> tuple[Set, str | None]:
    x = rng.normal(size=(int(rows), 5))
    y = rng.integers(2, size=len(x))
    cut = 4 * len(x) // 5
    pipeline = make_pipeline(StandardScaler()).fit(x)
    return {"train": x[:cut], "test": x[cut:], "target": (y[:cut], y[cut:]), "pipeline": pipeline}, None


def worded(rng: Rng, words: float) -> tuple[Set, str | None]:
    documents, y = clean_texts(rng)
    given = text_halves(documents, y)
    given["test"][0] += " " + " ".join(f"new{i}" for i in range(int(words)))
    return {**given, "pipeline": make_pipeline(CountVectorizer()).fit(given["train"] + given["test"])}, None


def headed(rng: Rng, gap: float) -> tuple[Set, str | None]:
    documents, y = clean_texts(rng, lines=2)
    listed = rng.random(len(y)) < np.where(y == 1, 0.5 + gap / 2, 0.5 - gap / 2)
    heads = ["List-Id: <list.example>\nPrecedence: bulk\n" if there else "" for there in listed]
    posts = [f"From: a@b.example\nSubject: hello\n{head}\n{body}" for head, body in zip(heads, documents, strict=True)]
    return text_halves(posts, y), "List-Id"


def tokened(rng: Rng, wrong: float) -> tuple[Set, str | None]:
    documents, y = clean_texts(rng)
    noisy = np.where(rng.random(len(y)) < wrong, 1 - y, y)
    return text_halves([f"{body} stamp{c}" for body, c in zip(documents, noisy, strict=True)], y), None


LEAKS: list[tuple[str, str, Callable[..., tuple[Set, str | None]], list[float], str]] = [
    ("copies in test", "duplicates", copied, [0.01, 0.05, 0.2], "share of test rows"),
    ("disguised copies in test", "duplicates", disguised, [0.01, 0.05, 0.2], "share of test rows"),
    ("oversampling before the split", "oversampling", oversampled, [1.05, 1.5, 3.0], "times the smaller classes"),
    ("copies with other labels", "conflicts", conflicting, [0.01, 0.05, 0.2], "share of rows"),
    ("near-duplicate texts in test", "near-duplicates", near_texts, [0.01, 0.05, 0.2], "share of texts"),
    ("groups on both sides, given", "groups", grouped, [2, 4, 8], "rows a group"),
    (
        "groups on both sides, to be guessed",
        "groups",
        lambda rng, size: grouped(rng, size, True),
        [2, 4, 8],
        "rows a group",
    ),
    ("training rows from the future", "time", late, [0.01, 0.1, 0.5], "share of test moved"),
    ("a noisy copy of the label", "column", hinted, [0.0, 0.1, 0.3, 0.5], "share of cells at random"),
    ("filled after the outcome", "missing", filled_later, [0.1, 0.5, 1.0], "share filled"),
    ("row numbers of sorted rows", "identifier", numbered, [0.1, 0.3, 1.0], "share sorted by class"),
    ("a column that drifts", "drift", drifted, [0.2, 0.5, 1.0], "shift in sd"),
    ("scanner: a shortcut", "shortcut", scanner, [0.2, 0.5, 0.9], "share of cells that know"),
    ("scaler fitted to test", "preparation", scaled, [100, 1000], "rows"),
    ("vocabulary fitted to test", "preparation", worded, [1, 10], "new words"),
    ("mail headers", "boilerplate", headed, [0.3, 0.6, 1.0], "difference in List-Id"),
    ("a token for the label", "boilerplate", tokened, [0.0, 0.02, 0.1], "share wrong"),
]


def found(findings: Findings, kind: str, column: str | None, least: Severity) -> bool:
    return any(f.kind == kind and f.severity >= least and (column is None or column in f.columns) for f in findings)


def planted() -> list[str]:
    lines = ["| leak | strength | data sets | found | as high | at any severity |", "|---|---|---|---|---|---|"]
    for title, kind, make, strengths, unit in LEAKS:
        for strength in strengths:
            hits = np.zeros(3)
            for number in range(EACH):
                given, column = make(np.random.default_rng([number, len(lines)]), strength)
                findings = pr.audit(**given)
                hits += [
                    found(findings, kind, column, least) for least in (Severity.MEDIUM, Severity.HIGH, Severity.LOW)
                ]
            shares = " | ".join(f"{share:.0%}" for share in hits / EACH)
            lines.append(f"| {title} | {unit}: {strength:g} | {EACH} | {shares} |")
            print(lines[-1], flush=True)
    return lines


def false_alarms() -> list[str]:
    gravest, kinds = np.zeros(4), {}
    for number in range(CLEAN):
        findings = pr.audit(**clean(np.random.default_rng([number, 10**6]), number))
        gravest[findings.severity or 0] += 1
        for kind in {(f.kind, str(f.severity)) for f in findings if f.severity > Severity.LOW}:
            kinds[kind] = kinds.get(kind, 0) + 1
    share = gravest / CLEAN
    named = ", ".join(f"{kind} ({severity}) {times}" for (kind, severity), times in sorted(kinds.items())) or "none"
    lines = [
        f"Of {CLEAN} clean data sets {share[3]:.1%} raise a finding of high severity (5 % allowed), {share[2]:.1%} one "
        f"of medium at worst, {share[1]:.1%} one of low at worst, {share[0]:.1%} nothing. Above low: {named}.",
    ]
    print(lines[0], flush=True)
    return lines


def real() -> list[str]:
    lines = ["| table | rows x columns | high | medium | low | seconds |", "|---|---|---|---|---|---|"]
    for name in CLASSIFICATION:
        given = table(name)
        if given is None:
            continue
        x, y = given
        start = time.perf_counter()
        findings = pr.audit(x, target=y)
        seconds = time.perf_counter() - start
        cells = []
        for severity in sorted(Severity, reverse=True):
            named = [
                f"{f.kind} {', '.join(f.columns[:2])}{', …' if len(f.columns) > 2 else ''}".strip()
                for f in findings
                if f.severity == severity
            ]
            cells.append("; ".join(named[:4]) + (f"; {len(named) - 4} more" if len(named) > 4 else ""))
        lines.append(f"| {name} | {x.shape[0]} x {x.shape[1]} | {' | '.join(cells)} | {seconds:.2f} |")
    return lines


# -- the clock ---------------------------------------------------------------------------------------------------------


def big_table() -> str:
    rng, n = np.random.default_rng(0), 100_000 if QUICK else 1_000_000
    frame = pd.DataFrame({f"x{j}": rng.normal(size=n).round(6) for j in range(14)})
    frame = frame.assign(**{f"i{j}": rng.integers(0, 50, n) for j in range(3)})
    frame = frame.assign(**{f"c{j}": rng.choice(list("abcdefgh"), n) for j in range(2)})
    frame["y"] = np.where(frame.x0 + rng.normal(size=n) > 0, "yes", "no")
    csv = frame.to_csv(index=False)
    start = time.perf_counter()
    frame = pd.read_csv(io.StringIO(csv))
    reading = time.perf_counter() - start
    start = time.perf_counter()
    pr.audit(frame, target="y")
    auditing = time.perf_counter() - start
    ratio = auditing / reading
    return f"| audit of {n:,} x 20 | pandas.read_csv of it | {auditing:.2f} s | {reading:.2f} s | {ratio:.1f} | 10 |"


def big_texts() -> str | None:
    if not (DATA / "imdb").exists():
        return None
    train, _, test, _ = text("imdb")
    reviews = train + test if not QUICK else train[:5000]
    start = time.perf_counter()
    CountVectorizer().fit_transform(reviews)
    counting = time.perf_counter() - start
    start = time.perf_counter()
    cluster_texts(reviews)
    searching = time.perf_counter() - start
    return (
        f"| near-duplicates of {len(reviews):,} IMDB reviews | CountVectorizer over them | {searching:.2f} s | "
        f"{counting:.2f} s | {searching / counting:.1f} | 5 |"
    )


def main() -> None:
    page = ["# The leakage audit", "", *__doc__.strip().splitlines()[:-3], "## False alarms", "", *false_alarms(), ""]
    page += ["## Planted leaks", "", *planted(), "", "## Real tables, as they are", ""]
    page += [
        "Features as their publishers mean them, ids left out. A strong column may be a good one.",
        "",
        *real(),
        "",
    ]
    speed = ["| what | compared with | seconds | theirs | ratio | goal |", "|---|---|---|---|---|---|", big_table()]
    speed += [line] if (line := big_texts()) else []
    print("\n".join(speed), flush=True)
    page += ["## Time", "", *speed, ""]
    if not QUICK:
        RESULT.write_text("\n".join(page))


if __name__ == "__main__":
    main()
