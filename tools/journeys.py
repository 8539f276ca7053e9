"""Journeys: how many modules what users do most has to enter, once everything is imported."""

import contextlib
import copy
import csv
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "priory"
CEILINGS = {"fit": 43, "predict": 23, "forget": 34, "text fit": 36, "text predict": 27, "learn one": 8, "train": 112}
GOALS = {
    "lines of code": 33_000,
    "modules": 265,
    "imports between modules": 1_500,
    "import statements, share of the code, per cent": 10,
    "imports inside functions": 120,
    "overridden private hooks": 8,
    "words of a house idiom": 0,
    "modules entered by fit": 44,
    "modules entered by predict": 22,
    "modules entered by text predict": 24,
    "modules entered by train": 95,
}


@dataclass(frozen=True)
class Figure:
    """A measured value, its ceiling, and the places that it counts."""

    name: str
    value: float
    ceiling: float
    places: list[str]

    def __str__(self) -> str:
        mark = "ok   " if self.value <= self.ceiling else "above"
        goal = GOALS.get(self.name)
        aim = "" if goal is None else f", goal {goal:g}"
        return f"{mark} {self.value:>6g}  (at most {self.ceiling:g}{aim})  {self.name}"


def trace_modules(journey: Callable[[], object]) -> list[str]:
    """The modules of the package that a call enters, on any thread; it runs twice, so that all is imported."""
    journey()
    entered = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            entered.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        journey()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sorted(str(Path(name).relative_to(PACKAGE)) for name in entered)


def measure_journeys() -> list[Figure]:
    """Modules entered by fitting, answering, forgetting and learning one row, for tables and texts, and by training."""
    import priory as pr
    from priory import inbox
    from priory.cli.entry_point import main

    rows, labels = inbox()
    table, texts = [{k: row[k] for k in ("sender", "hour", "links")} for row in rows], [row["text"] for row in rows]
    model, words = pr.NaiveBayes().fit(table, labels), pr.TextClassifier().fit(texts, labels)
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
        path = Path(folder, "inbox.csv")
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, ["label", *rows[0]])
            writer.writeheader()
            writer.writerows({"label": label, **row} for row, label in zip(rows, labels, strict=True))
        train = ["train", str(path), "--target", "label", "-o", str(Path(folder, "model.priory")), "--force"]
        journeys: dict[str, Callable[[], object]] = {
            "fit": lambda: pr.NaiveBayes().fit(table, labels),
            "predict": lambda: model.predict_proba(table),
            "forget": lambda: copy.copy(model).forget(table[:1], labels[:1]),
            "text fit": lambda: pr.TextClassifier().fit(texts, labels),
            "text predict": lambda: words.predict_proba(texts),
            "learn one": lambda: model.learn_one(table[0], labels[0]),
            "train": lambda: main(train),
        }
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            entered = {name: trace_modules(journey) for name, journey in journeys.items()}
    return [Figure(f"modules entered by {name}", len(found), CEILINGS[name], found) for name, found in entered.items()]
