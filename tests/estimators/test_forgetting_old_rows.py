"""Rows of fit leave one at a time, in any mix of calls: what is left is never-seen, and hostile rows change nothing."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

from priory import NaiveBayes, TextClassifier, families
from priory.core.content_hash import hash_content
from priory.errors import NotLearnedError
from priory.learning import classifier

N_ROWS = 300
WORDS = ["cash", "win", "lunch", "noon", "free", "été", "now", "you"]


def hash_record(model):
    """Everything learned but the kept rows, of which a model that has forgotten some may have fewer."""
    record = model.statistics_
    return hash_content((record.classes, record.n, record.parts))


def make_table(seed, n_rows=N_ROWS):
    """Numbers that round to the same counts, large and nearly constant ones, counts, labels and texts."""
    rng = np.random.default_rng(seed)
    columns = {
        "size": rng.normal(size=n_rows),
        "near": 1000 + rng.choice([0, 0.25, 0.5], n_rows),
        "time": 1.7e9 + rng.integers(0, 50, n_rows),
        "identity": rng.integers(1, 1 << 52, n_rows).astype(float),
        "constant": np.full(n_rows, 5.0),
        "flag": (rng.random(n_rows) < 0.02).astype(float),
        "events": rng.poisson(0.05, n_rows).astype(float),
        "huge": rng.choice([1e300, -1e300, 5e-324, 1.0], n_rows),
        "colour": rng.choice(["red", "green", "blue"], n_rows),
        "note": [" ".join(rng.choice(WORDS, 3)) for _ in range(n_rows)],
    }
    table = pd.DataFrame(columns)
    table.loc[rng.random(n_rows) < 0.1, "size"] = None
    labels = np.where(rng.random(n_rows) < 0.8, "a", "b")
    return table, labels.tolist()


def make_hostile(rows, labels, rng):
    """A row that was not learned, beginning with one that was."""
    place, other = rng.integers(len(rows), size=2)
    row, label = dict(rows[place]), labels[place]
    kind = rng.integers(5)
    if kind == 0:
        label = "b" if label == "a" else "a"
    elif kind == 1:
        row["colour"] = "purple"
    elif kind == 2:  # rounds to the number that was learned
        row["near"], row["time"] = row["near"] * (1 + 1e-5), row["time"] + rng.normal()
    elif kind == 3:
        row["events"], row["constant"] = 1025.0, 5.001
    else:
        name = list(row)[rng.integers(len(row))]
        row[name] = rows[other][name]
    return row, label


def forget_hostile(model, rows, labels, rng, gone):
    """Try to forget a row that was not learned; if it recombines cells that were, it may leave."""
    row, label = make_hostile(rows, labels, rng)
    before = hash_record(model)
    try:
        model.forget_one(row, label)
    except NotLearnedError:
        assert hash_record(model) == before
    else:
        gone.append((row, label))


def forget_learned(model, rows, labels, gone, forget):
    """Forget rows that were learned; a recombined row that has left may have taken one of their cells with it."""
    try:
        forget(rows, labels)
    except NotLearnedError:
        for row, label in gone:
            model.learn_one(row, label)
        gone.clear()
        forget(rows, labels)


def change(model, rows, labels, rng, gone):
    """Forget some rows that were learned, one at a time or together, and learn some for a moment."""
    how = rng.integers(6)
    if how < 2:
        forget_learned(model, pd.DataFrame(rows) if how else rows, labels, gone, model.forget)
    else:
        for row, label in zip(rows, labels, strict=True):
            forget_learned(model, row, label, gone, model.forget_one)
    if how == 2:
        model.learn_one(rows[0], labels[0]).forget_one(rows[0], labels[0])
    elif how == 3:
        model.partial_fit(pd.DataFrame(rows), labels).forget(pd.DataFrame(rows), labels)
    return [model, copy.copy(model), pickle.loads(pickle.dumps(model)), model][rng.integers(4)]


@pytest.mark.parametrize(
    "declared", ["auto", {"size": "gaussian", "events": families.Binomial(2000)}], ids=["auto", "declared"]
)
@pytest.mark.parametrize("seed", range(3))
def test_any_mix_of_calls_leaves_the_record_of_a_model_that_never_saw_the_rows(seed, declared):
    table, labels = make_table(seed)
    rows, rng = table.astype(object).where(table.notna(), None).to_dict("records"), np.random.default_rng(seed)
    model = NaiveBayes(declared, calibrate="loo" if seed else False, memory=100).fit(table, labels)
    order, gone, left = rng.permutation(N_ROWS), [], N_ROWS
    while left > 40:
        own = order[left - rng.integers(1, 4) : left]
        model = change(model, [rows[i] for i in own], [labels[i] for i in own], rng, gone)
        left -= len(own)
        if rng.random() < 0.3:
            forget_hostile(model, rows, labels, rng, gone)
    for row, label in gone:
        model.learn_one(row, label)
    kept = order[:left]
    never = NaiveBayes(declared, calibrate=False).fit(table.iloc[kept], [labels[i] for i in kept])
    assert hash_record(model) == hash_record(never)


def test_texts_leave_in_any_mix_of_calls():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 4)) + f" word{i}" for i in range(200)]
    labels = rng.choice(["ham", "spam"], 200).tolist()
    model = TextClassifier("multinomial", memory=50).fit(texts, labels)
    for i in range(150):
        with pytest.raises(NotLearnedError):
            model.forget_one(texts[i] + f" word{i}", labels[i])
        model.forget_one(texts[i], labels[i]) if i % 3 else model.forget([texts[i]], [labels[i]])
        model = copy.copy(model) if i % 10 == 0 else model
    assert hash_record(model) == hash_record(
        TextClassifier("multinomial", calibrate=False).fit(texts[150:], labels[150:])
    )


@pytest.mark.parametrize("kind", ["rows", "frame", "dicts"])
def test_rows_of_fit_leave_without_the_statistics_being_subtracted(kind, monkeypatch):
    table, labels = make_table(7)
    model = NaiveBayes(memory=100).fit(table, labels)
    model.predict_proba_one(table.iloc[0].to_dict())  # opens the model for single rows
    monkeypatch.setattr(classifier, "forget", None)
    for i in range(100, 120):
        row = table.iloc[[i]].to_dict("records")
        if kind == "rows":
            model.forget_one(row[0], labels[i])
        else:
            model.forget(table.iloc[[i]] if kind == "frame" else row, [labels[i]])
    monkeypatch.undo()
    left = [i for i in range(N_ROWS) if not 100 <= i < 120]
    never = NaiveBayes(memory=100).fit(table.iloc[left], [labels[i] for i in left])
    assert hash_record(model) == hash_record(never)


def test_a_batch_with_a_row_that_was_not_learned_changes_nothing():
    table, labels = make_table(8)
    model = NaiveBayes(memory=100).fit(table, labels)
    before, answers = hash_record(model), model.predict_proba(table)
    wrong = table.iloc[:3].copy()
    wrong.loc[2, "colour"] = "purple"
    with pytest.raises(NotLearnedError, match="row 2: column 'colour', 'purple'"):
        model.forget(wrong, labels[:3])
    assert hash_record(model) == before
    assert np.array_equal(model.predict_proba(table), answers)


def test_rows_of_weight_one_leave_beside_rows_of_fractional_weight():
    table, labels = make_table(9)
    weights = np.where(np.arange(N_ROWS) % 2, 1.0, 0.375)
    model = NaiveBayes(calibrate=False).fit(table, labels, sample_weight=weights)
    for i in range(1, N_ROWS, 4):
        model.forget_one(table.iloc[i].to_dict(), labels[i])
    with pytest.raises(NotLearnedError):
        model.forget_one(table.iloc[0].to_dict(), labels[0])
    left = [i for i in range(N_ROWS) if i % 4 != 1]
    never = NaiveBayes(calibrate=False).fit(table.iloc[left], [labels[i] for i in left], sample_weight=weights[left])
    assert hash_record(model) == hash_record(never)
