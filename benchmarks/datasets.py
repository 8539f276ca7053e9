"""The data sets of ../shared/data, loaded by path; whoever asks gets None where they are absent."""

from __future__ import annotations

import json
import os
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
    """Columns with the types the set declares, and the labels as strings."""
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
