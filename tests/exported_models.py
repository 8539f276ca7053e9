"""Models for the tests of exports, and rows to ask: with gaps, new labels, extreme numbers and hostile names."""

from datetime import datetime, timedelta
from functools import cache

import numpy as np
import pandas as pd

import priory as pr

HOSTILE = '"; DROP TABLE rows; --'
SCRIPT = "</script><script>alert(1)</script>"


def _mixed():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    frame = pd.DataFrame({
        HOSTILE: rng.normal(y, 1.0),
        SCRIPT: np.array(["it's", "\\", "<b>"])[np.clip(y + rng.integers(-1, 2, 300), 0, 2)],
        "p0": np.round(rng.exponential(1 + y), 1),
        "priory_row": np.where(rng.random(300) < 0.2, np.nan, rng.normal(y)),
        "best": np.array(["u", "v"])[((rng.random(300) < 0.5) ^ (y == 2)).astype(int)],
        "constant": ["same"] * 300,
    })  # fmt: skip
    return frame, np.array([SCRIPT, "'; DROP TABLE rows; --", "no"])[y]


def _numbers():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 200)
    frame = pd.DataFrame({
        "amount": rng.gamma(2.0, 1.0 + y), "events": rng.poisson(1.0 + y).astype(float), "size": rng.normal(5 * y, 2.0),
        "yes": (rng.random(200) < 0.3 + 0.3 * y).astype(float),
    })  # fmt: skip
    return frame, np.where(y, "b", "a")


def _labels():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 4, 250)
    columns = {f"c{j}": np.array(list("wxyz"))[(y + rng.integers(0, 2 + j, 250)) % 4] for j in range(4)}
    return pd.DataFrame(columns), y


def _dates():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 200)
    days = rng.integers(0, 700, 200) // 7 * 7 + np.where(y, rng.integers(5, 7, 200), rng.integers(0, 6, 200))
    when = [
        datetime(2023, 1, 2, int(h)) + timedelta(days=int(d))
        for d, h in zip(days, rng.integers(0, 24, 200), strict=True)
    ]
    return pd.DataFrame({"when": when, "n": rng.normal(y)}), np.where(y, "late", "early")


def _far():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, 256)
    columns = {"huge": rng.normal(y) * 1e300, "tiny": rng.normal(y) * 1e-300, "close": 2.0**53 + 8 * y}
    return pd.DataFrame(columns | {"ranked": rng.permutation(256) + 100.0 * y}), y - 1


def _holes():
    """Columns that all had gaps when they were learned."""
    rng = np.random.default_rng(6)
    y = rng.integers(0, 3, 300)
    kind = np.array(list("xyz"))[np.clip(y + rng.integers(-1, 2, 300), 0, 2)]
    frame = pd.DataFrame({
        "size": np.where(rng.random(300) < 0.1 + 0.2 * y, np.nan, rng.normal(y)),
        "kind": np.where(rng.random(300) < 0.2, None, kind),
    })  # fmt: skip
    return frame, np.array(["few", "more", "most"])[y]


def _customers():
    """A column with so many labels that most are rare, about which the kept rows tell less than the counts of all."""
    rng = np.random.default_rng(8)
    own, size = np.minimum(rng.geometric(0.01, 2000), 300), rng.normal(size=2000)
    odds = rng.normal(0, 2, 301)[own] + size
    kind = rng.choice(["u", "v"], 2000)
    frame = pd.DataFrame({"customer": [f"n{k}" for k in own], "size": size, "kind": kind})
    return frame, np.where(rng.random(2000) < 1 / (1 + np.exp(-odds)), "yes", "no")


TABLES = {"far": _far, "holes": _holes, "mixed": _mixed, "numbers": _numbers, "labels": _labels, "dates": _dates}
TABLES["customers"] = _customers
MEMORY = {"customers": 500}


@cache
def make_model(name, calibrate):
    frame, labels = TABLES[name]()
    return pr.NaiveBayes(calibrate=calibrate, memory=MEMORY.get(name)).fit(frame, labels)


@cache
def make_rows(name):
    """Rows to ask as a frame, and as dicts with None for gaps."""
    frame, _ = TABLES[name]()
    rng, asked = np.random.default_rng(5), frame.iloc[:20].copy().reset_index(drop=True)
    for column in asked.columns:
        is_number, gap = asked[column].dtype.kind == "f", None
        for at in np.flatnonzero(rng.random(20) < 0.3):
            odd = [gap, 1e12, -1e300, 0.4, 3.0] if is_number else [gap, "new'\" \\ value"]
            asked.loc[at, column] = gap if asked[column].dtype.kind == "M" else odd[rng.integers(len(odd))]
    asked.loc[19] = None
    asked = asked.astype({c: frame[c].dtype for c in frame.columns})
    rows = asked.astype(object).where(asked.notna(), None).to_dict("records")
    return asked, [{c: x.isoformat(" ") if isinstance(x, datetime) else x for c, x in row.items()} for row in rows]


@cache
def make_text_model():
    """A model that weighs n-grams of characters: endings tell the class, and few words occur twice."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 500)
    stems = rng.choice(list("bcdfgklmnprst"), (500, 6, 3))
    endings = np.array([["ing", "eux"], ["ung", "ois"], ["o", "a"]])
    words = [
        [f"{''.join(s)}{endings[rng.integers(0, 2), c]}" for s in row] for row, c in zip(stems, labels, strict=True)
    ]
    texts = [" ".join(row) for row in words]
    return pr.TextClassifier().fit(texts[:450], labels[:450]), texts[450:]
