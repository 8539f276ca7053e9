"""Steps and data of ``priory demo``: an inbox, and the breast cancer table of scikit-learn."""

from __future__ import annotations

import csv
from pathlib import Path

from priory.data import inbox

TOUR_STEPS = [
    (
        "Train a model on messages: sender, hour, links and text",
        "train inbox.csv --target label --force --report inbox.html",
    ),
    ("Predict the labels of new messages", "predict inbox.priory new.csv"),
    ("Why is the first one spam? The evidence, in decibans", "explain inbox.priory --from new.csv --row 1"),
    (
        "Train a model on a table of numbers, each column with the family that explains it best",
        "train tumours.csv --target verdict --force",
    ),
    ("Write predictions to a file", "predict tumours.priory tumours.csv -o labelled.csv --force"),
    ("Someone withdraws their messages: forget them, exactly", "forget inbox.priory withdrawn.csv"),
    ("Learn them again", "learn inbox.priory withdrawn.csv"),
    ("Would the scores of a model of these messages be fair? Look for leakage", "audit inbox.csv --target label"),
    ("What does a model file contain, and what would it reveal?", "inspect inbox.priory"),
]


NEW_MESSAGES = [
    ["stranger", 3, 2, "Your parcel is waiting, confirm the delivery fee now"],
    ["colleague", 10, 0, "Could you send me the slides for tomorrow?"],
]


def write_tour_files(folder: Path) -> list[str]:
    """Write the files that the tour works on, and return their names."""
    from sklearn.datasets import load_breast_cancer

    messages, labels = inbox()
    rows = [{**message, "label": label} for message, label in zip(messages, labels, strict=True)]
    _write_csv(folder / "inbox.csv", list(rows[0]), [list(row.values()) for row in rows])
    _write_csv(folder / "withdrawn.csv", list(rows[0]), [list(row.values()) for row in rows[:100]])
    _write_csv(folder / "new.csv", list(messages[0]), NEW_MESSAGES)
    scans = load_breast_cancer()
    names = [*map(str, scans.feature_names), "verdict"]
    tumours = [[*row.tolist(), str(scans.target_names[t])] for row, t in zip(scans.data, scans.target, strict=True)]
    _write_csv(folder / "tumours.csv", names, tumours)
    return ["inbox.csv", "new.csv", "tumours.csv", "withdrawn.csv"]


def _write_csv(path: Path, names: list[str], rows: list[list[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])
