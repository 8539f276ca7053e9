"""Columns that appear in a stream, stop coming, come back as something else, and are forgotten."""

from datetime import datetime

import numpy as np
import pytest

import priory as pr
from priory import NaiveBayes
from priory.core.content_hash import hash_content
from priory.errors import DataError, KindError, NotLearnedError

KINDS = {
    "number": lambda rng: float(np.round(rng.normal(), 2)),
    "count": lambda rng: int(rng.integers(5)),
    "label": lambda rng: str(rng.choice(["red", "green", "blue"])),
    "flag": lambda rng: bool(rng.integers(2)),
    "text": lambda rng: " ".join(rng.choice(["win", "cash", "lunch", "noon"], 4)),
    "date": lambda rng: datetime(2024, 5, int(rng.integers(1, 29)), int(rng.integers(24))),
    "missing": lambda rng: None,
}
MODELS = [NaiveBayes(calibrate=False), NaiveBayes()]
BASE = [{"a": 1.0, "c": "x"}, {"a": 2.0, "c": "y"}] * 5
LABELS = ["p", "q"] * 5


def make_stream(kind, seed=0):
    """Ten rows without column b, ten with it, and six without it; and their labels."""
    rng = np.random.default_rng(seed)
    rows = [{"a": float(np.round(rng.normal(), 2)), "c": str(rng.choice(["x", "y"]))} for _ in range(26)]
    for row in rows[10:20]:
        row["b"] = KINDS[kind](rng)
    return rows, rng.choice(["p", "q"], 26).tolist()


def copy_of(model):
    return type(model)(**model.get_params())


def record_of(model):
    return hash_content((model.statistics_, model.learned_.rows.schema))


def save_and_load(model, folder):
    pr.save(model, folder / "model.priory")
    return pr.load(folder / "model.priory")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("declared", MODELS, ids=["plain", "corrected"])
@pytest.mark.filterwarnings("ignore:learning columns:priory.errors.PrioryWarning")
def test_a_column_that_comes_late_and_leaves_is_the_same_row_by_row_in_batches_and_from_a_file(
    declared, kind, tmp_path
):
    rows, labels = make_stream(kind)
    stream, batches, loaded = (copy_of(declared) for _ in range(3))
    for number, (row, label) in enumerate(zip(rows, labels, strict=True)):
        stream.learn_one(row, label)
        assert set(stream.predict_proba_one(row)) <= {"p", "q"}
        loaded.learn_one(row, label)
        if number % 9 == 5:
            loaded = save_and_load(loaded, tmp_path)
    for start, stop in ((0, 10), (10, 20), (20, 26)):
        batches.partial_fit(rows[start:stop], labels[start:stop])
    assert record_of(stream) == record_of(loaded) == record_of(batches)
    for row, label in zip(rows[:10], labels[:10], strict=True):  # from before the column was there
        stream.forget_one(row, label)
    batches.forget(rows[:10], labels[:10])
    assert record_of(stream) == record_of(batches)
    for row, label in zip(rows[10:20], labels[10:20], strict=True):
        stream.forget_one(row, label)
    assert record_of(stream) == record_of(copy_of(declared).fit(rows[20:], labels[20:]))
    assert stream.feature_names_in_.tolist() == ["a", "c"]


@pytest.mark.parametrize(
    ("first", "then", "message"),
    [
        (2.5, "red", "row 0, column 'b' holds 'red'; this column is numbers."),
        ("red", 2.5, "row 0, column 'b' holds 2.5; the model has learned labels such as 'red' there"),
        (datetime(2024, 5, 6), 2.5, "column 'b' holds numbers; the model has learned dates there."),
    ],
)
def test_a_column_that_comes_back_as_something_else_is_refused(first, then, message):
    model = NaiveBayes(calibrate=False).fit(BASE, LABELS)
    model.learn_one({"a": 1.0, "b": first}, "p")
    before = record_of(model)
    for learn in (lambda row: model.learn_one(row, "p"), lambda row: model.partial_fit([row], ["p"])):
        with pytest.raises(KindError, match=message):
            learn({"a": 1.0, "b": then})
    assert record_of(model) == before
    model.forget_one({"a": 1.0, "b": first}, "p")  # with its last cell the column goes, and may come back as it likes
    model.learn_one({"a": 1.0, "b": then}, "p")
    assert "b" in model.feature_names_in_


@pytest.mark.parametrize("declared", MODELS, ids=["plain", "corrected"])
def test_a_column_whose_last_cell_was_forgotten_does_not_answer(declared):
    model = copy_of(declared)
    for row, label in (({"a": 1.0}, "p"), ({"b": "x"}, "q"), ({"c": 3}, "p"), ({"d": "z"}, "p")):
        model.learn_one(row, label)
    model.predict_proba_one({"a": 1.0, "d": "z"})
    model.forget_one({"a": 1.0}, "p")
    fresh = copy_of(declared).partial_fit([{"a": None, "b": "x"}, {"c": 3}, {"d": "z"}], ["q", "p", "p"])
    for row in ({"a": 2.0}, {"b": "x", "d": "z"}, {"c": 3}, {}):
        assert model.predict_proba_one(row) == pytest.approx(fresh.predict_proba_one(row), abs=1e-9)


@pytest.mark.parametrize("new_columns", ["learn", "error"])
def test_a_row_with_a_column_that_was_never_learned_was_never_learned(new_columns):
    model = NaiveBayes(calibrate=False, new_columns=new_columns).fit(BASE, LABELS)
    before = record_of(model)
    row = {"a": 1.0, "c": "x", "late": 9.5}
    for forget in (lambda: model.forget_one(row, "p"), lambda: model.forget([row], ["p"])):
        with pytest.raises(NotLearnedError) as caught:
            forget()
        assert str(caught.value) == (
            "row 0: column 'late', 9.5, was never learned; forget only rows that were learned, or leave the column "
            "out; the model is unchanged."
        )
    assert record_of(model) == before
    model.forget_one({**row, "late": None}, "p")
    assert model.class_count_.tolist() == [4, 5]


@pytest.mark.filterwarnings("ignore:ignoring columns:priory.errors.PrioryWarning")
def test_a_row_with_a_column_that_is_ignored_can_be_forgotten():
    model = NaiveBayes(calibrate=False, new_columns="ignore").fit(BASE, LABELS)
    before = record_of(model)
    row = {"a": 1.0, "c": "x", "late": 9.5}
    model.learn_one(row, "p").forget_one(row, "p")
    model.partial_fit([row], ["p"]).forget([row], ["p"])
    assert record_of(model) == before


def test_columns_may_be_named_by_numbers():
    """As river's ``stream.iter_array`` names them."""
    rows = [{0: 1.0, 1: 5.0}, {0: 2.0, 1: 3.0}, {0: 1.5, 1: 4.0}, {0: 2.5, 1: 1.0}]
    stream, table = NaiveBayes(calibrate=False), NaiveBayes(calibrate=False).fit(rows, ["p", "q", "p", "q"])
    for row, label in zip(rows, ["p", "q", "p", "q"], strict=True):
        stream.learn_one(row, label)
    assert record_of(stream) == record_of(table)
    assert table.feature_names_in_.tolist() == ["0", "1"]
    assert stream.predict_proba_one({0: 1.0}) == stream.predict_proba_one({"0": 1.0}) != stream.predict_proba_one({})
    gauss = pr.naive_bayes.GaussianNB()
    for row, label in zip(rows, ["p", "q", "p", "q"], strict=True):
        gauss.learn_one(row, label)
    assert gauss.predict_one(rows[0]) == "p"
    for learn in (lambda row: stream.learn_one(row, "p"), lambda row: stream.partial_fit([row], ["p"])):
        with pytest.raises(DataError, match=r"column '1' is there twice \(positions 1 and 2\); rename one"):
            learn({0: 1.0, 1: 2.0, "1": 3.0})


def test_the_hours_of_dates_are_labels_even_if_the_first_row_is_one_date():
    model = NaiveBayes(calibrate=False)
    for hour in range(3):
        model.learn_one({"when": datetime(2024, 5, 6, hour)}, "pq"[hour % 2])
    assert model.column_kinds_["when (hour)"] == "label"
