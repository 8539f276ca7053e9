"""What the tour shows: a shipped inbox, and a table of tumours that comes with scikit-learn."""

from __future__ import annotations

import csv
from pathlib import Path

from priory.data import inbox

TOUR_STEPS = [
    (
        "Train on messages: sender, hour, links and text",
        "train inbox.csv --target label --force --report inbox.html",
    ),
    ("Label new messages; their columns stay", "predict inbox.priory new.csv"),
    ("Why is the first one spam?", "explain inbox.priory --from new.csv --row 1"),
    (
        "Train on a table of numbers, each column with the family that explains it best",
        "train tumours.csv --target verdict --force",
    ),
    ("Write the labels to a file", "predict tumours.priory tumours.csv -o labelled.csv --force"),
    ("Somebody withdraws their messages: forget them, exactly", "forget inbox.priory withdrawn.csv"),
    ("... and learn them again", "learn inbox.priory withdrawn.csv"),
    ("Would a model of these messages be judged fairly?", "audit inbox.csv --target label"),
    ("What is in a model file, and what would it reveal?", "inspect inbox.priory"),
]


NEW_MESSAGES = [
    ["stranger", 3, 2, "Your parcel is waiting, confirm the delivery fee now"],
    ["colleague", 10, 0, "Could you send me the slides for tomorrow?"],
]


def write_tour_files(folder: Path) -> list[str]:
    """The files the tour works on; their names."""
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
