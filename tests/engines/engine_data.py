"""The rows that both engines learn from, the models that one process makes of them, and their bytes."""

import numpy as np
import pandas as pd
import pyarrow as pa

import priory

N_ROWS = 700


def make_mixed_table():
    """Numbers with holes, labels, a text, a column that is empty but for a few rows, and the label."""
    random = np.random.default_rng(1)
    label = random.choice(["ham", "spam"], N_ROWS)
    words = np.array([f"word{i}" for i in range(300)])
    notes = [" ".join(random.choice(words[:150] if side == "ham" else words[100:], 8)) for side in label]
    rare = np.full(N_ROWS, None, dtype=object)
    rare[[3, 300, 690]] = "seen"
    size = random.normal(5.0, 2.0, N_ROWS) + (label == "spam")
    size[random.random(N_ROWS) < 0.2] = np.nan
    return pd.DataFrame(
        {
            "size": size,
            "links": random.poisson(np.where(label == "spam", 3, 1)),
            "sender": random.choice(["work", "home", "shop"], N_ROWS),
            "note": notes,
            "rare": rare,
            "label": label,
        }
    )


def make_dated_table():
    """Moments with and without a time zone, days, a date that few rows have, and numbers."""
    random = np.random.default_rng(3)
    late = random.choice(["no", "yes"], N_ROWS)
    hours = random.integers(0, 24 * 300, N_ROWS) + 7 * (late == "yes")
    moments = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(hours, "h")).astype("datetime64[us]")
    rare = moments.where(np.isin(np.arange(N_ROWS), [3, 300, 690]))
    return pd.DataFrame(
        {
            "sent": moments.mask(random.random(N_ROWS) < 0.1),
            "n": random.poisson(2, N_ROWS),
            "read": moments.dt.tz_localize("UTC").dt.tz_convert("America/New_York"),
            "day": moments.dt.date.astype(pd.ArrowDtype(pa.date32())),
            "rare": rare,
            "late": late,
        }
    )


def make_texts():
    return make_mixed_table()[["note", "label"]].rename(columns={"note": "text"})


def make_amounts():
    random = np.random.default_rng(2)
    x = random.normal(size=(N_ROWS, 3)) * [1.0, 100.0, 1e-3]
    return pd.DataFrame(
        {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2], "y": x @ [2.0, 0.1, 5.0] + random.normal(size=N_ROWS)}
    )


TASKS = {
    "mixed table": (priory.NaiveBayes, make_mixed_table, "label"),
    "dates": (priory.NaiveBayes, make_dated_table, "late"),
    "text": (priory.TextClassifier, make_texts, "label"),
    "regression": (priory.BayesianLinearRegression, make_amounts, "y"),
}


def read_bytes(model, folder):
    """The bytes of the model's file."""
    priory.save(model, folder / "model.priory")
    return (folder / "model.priory").read_bytes()


def fit_in_one_process(task, rows=slice(None)):
    make_model, make_rows, target = TASKS[task]
    table = make_rows().iloc[rows]
    return make_model().fit(table.drop(columns=target), table[target])
