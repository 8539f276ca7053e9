"""Public data sets, read from the folder PRIORY_DATA (by default ../shared/data); None where one is absent."""

from __future__ import annotations

import csv
import gzip
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd

DATA = Path(os.environ.get("PRIORY_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))

CLASSIFICATION = [
    "adult",
    "breast_cancer_wisconsin",
    "car",
    "heart_cleveland",
    "iris",
    "mushroom",
    "nursery",
    "penguins",
    "pima",
    "soybean",
    "spambase",
    "titanic",
    "voting",
    "wine",
]


def table(name: str) -> tuple[pd.DataFrame, pd.Series] | None:
    """The columns with the types that the set declares, and the labels as strings."""
    folder = DATA / name
    if not folder.exists():
        return None
    meta = json.loads((folder / "meta.json").read_text())
    files = sorted(folder.glob(f"{name}*.csv*"))
    path = next((f for f in files if "train" in f.name), files[0])
    types = {c: ("float64" if t == "numeric" else "str") for c, t in meta["types"].items() if c != meta["label"]}
    frame = pd.read_csv(path, dtype={**types, meta["label"]: "str"}, na_values=[""], keep_default_na=False)
    ignored = [c for c in meta.get("ignore", []) if c in frame.columns]
    ignored += [c for c in ("id", "PassengerId", "Name", "Ticket", "Cabin") if c in frame.columns and c not in ignored]
    frame = frame[frame[meta["label"]].notna()]
    return frame.drop(columns=[meta["label"], *ignored]), frame[meta["label"]]


Labelled = tuple[list[str], list[str]]  # texts and their labels


def text(name: str) -> tuple[list[str], list[str], list[str], list[str]] | None:
    """Texts and labels for training, and texts and labels for testing (empty where the set has no split)."""
    if not (DATA / name).exists():
        return None
    train, test = TEXTS[name](DATA / name)
    return *train, *test


def lines(path: Path, encoding: str = "utf-8") -> Iterator[str]:
    """The lines of a file, split at newlines only, because some texts contain other line breaks."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as file:
        yield from (line.rstrip("\r\n") for line in file.read().decode(encoding).split("\n") if line)


def labelled(pairs: Iterator[tuple[str, str]]) -> Labelled:
    """(label, text) pairs as texts and labels."""
    found = list(pairs)
    return [text for _, text in found], [label for label, _ in found]


def label_first(*files: str, sep: str, encoding: str = "utf-8") -> Callable[[Path], tuple[Labelled, Labelled]]:
    """Files of lines with a label, a separator and the text; the last of several files is the test set."""

    def load(folder: Path) -> tuple[Labelled, Labelled]:
        sets = [labelled(tuple(line.split(sep, 1)) for line in lines(folder / f, encoding)) for f in files]
        return sets[0], sets[1] if len(sets) > 1 else ([], [])

    return load


def newsgroups(folder: Path) -> tuple[Labelled, Labelled]:
    sets: dict[str, list[tuple[str, str]]] = {"20news-bydate-train": [], "20news-bydate-test": []}
    for (part, group, _), content in members(folder / "20news-bydate.tar.gz"):
        sets[part].append((group, content.decode("latin-1")))
    return labelled(iter(sets["20news-bydate-train"])), labelled(iter(sets["20news-bydate-test"]))


def spamassassin(folder: Path) -> tuple[Labelled, Labelled]:
    """Raw messages, headers included, decoded as latin-1 so that every byte is kept."""
    mail = members(folder / "spamassassin-publiccorpus.tar.gz")
    pairs = (("spam" if "spam" in kind else "ham", raw.decode("latin-1")) for (_, kind, _), raw in mail)
    return labelled(pairs), ([], [])


def members(path: Path) -> Iterator[tuple[tuple[str, ...], bytes]]:
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file is not None and len(Path(member.name).parts) == 3:
                yield Path(member.name).parts, file.read()


def imdb(folder: Path) -> tuple[Labelled, Labelled]:
    def part(name: str) -> Labelled:
        rows = (json.loads(line) for line in lines(folder / f"imdb_{name}.jsonl.gz"))
        return labelled((row["label"], row["text"]) for row in rows)

    return part("train"), part("test")


def germeval(folder: Path) -> tuple[Labelled, Labelled]:
    def part(name: str) -> Labelled:
        rows = (line.split("\t") for line in lines(folder / f"germeval2018.{name}.txt.gz"))
        return labelled((row[1], row[0]) for row in rows)

    return part("training"), part("test")


def comma_separated(file: str, text: str, label: str) -> Callable[[Path], tuple[Labelled, Labelled]]:
    def load(folder: Path) -> tuple[Labelled, Labelled]:
        with gzip.open(folder / file, "rt", encoding="utf-8", newline="") as rows:
            return labelled((row[label], row[text]) for row in csv.DictReader(rows)), ([], [])

    return load


def polarity(folder: Path) -> tuple[Labelled, Labelled]:
    pairs = ((side, line) for side in ("pos", "neg") for line in lines(folder / f"rt-polarity.{side}.gz", "cp1252"))
    return labelled(pairs), ([], [])


def sentences(folder: Path) -> tuple[Labelled, Labelled]:
    rows = (line.rsplit("\t", 1) for path in sorted(folder.glob("*_labelled.txt")) for line in lines(path))
    return labelled((label, text) for text, label in rows), ([], [])


def questions(folder: Path) -> tuple[Labelled, Labelled]:
    def part(name: str) -> Labelled:
        rows = (line.split(" ", 1) for line in lines(folder / f"TREC.{name}", "latin-1"))
        return labelled((label.split(":")[0], text) for label, text in rows)

    return part("train"), part("test")


TEXTS: dict[str, Callable[[Path], tuple[Labelled, Labelled]]] = {
    "20newsgroups_bydate": newsgroups,
    "germeval2018": germeval,
    "imdb": imdb,
    "language_detection17": comma_separated("language_detection.csv.gz", "Text", "Language"),
    "rt_polarity": polarity,
    "sentiment_sentences": sentences,
    "sms_spam": label_first("SMSSpamCollection", sep="\t"),
    "spamassassin": spamassassin,
    "sst2": label_first("stsa.binary.train.gz", "stsa.binary.test", sep=" "),
    "sst5": label_first("stsa.fine.train.gz", "stsa.fine.test", sep=" "),
    "trec_questions": questions,
    "waimai_10k_zh": comma_separated("waimai_10k.csv.gz", "review", "label"),
}
