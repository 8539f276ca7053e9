"""Learning in parts equals learning all rows at once, bit for bit, however the rows are dealt to the parts."""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import priory
from priory.errors import KindError, NotLearnedError, PrioryWarning
from priory.estimators.label_encoding import encode_labels
from priory.learning.counting import add_parts, check_countable
from priory.learning.left_out_scores import judge_parts, sample_part
from priory.model.column_profile import ColumnProfile, add_profiles, profile_columns
from priory.naive_bayes import CategoricalNB, GaussianNB, MultinomialNB
from priory.tables.table_reading import read_table

N_ROWS = 120
RANDOM = np.random.default_rng(0)
WORDS = [f"word{i}" for i in range(60)]
LABELS = RANDOM.choice(["no", "yes"], N_ROWS)
TABLE = pd.DataFrame(
    {
        "age": np.where(RANDOM.random(N_ROWS) < 0.2, np.nan, RANDOM.normal(40, 10, N_ROWS) + 9 * (LABELS == "yes")),
        "city": RANDOM.choice(["Bonn", "Rome", "Oslo"], N_ROWS),
        "note": [" ".join(RANDOM.choice(WORDS, 5)) for _ in range(N_ROWS)],
        "rare": [None] * (N_ROWS - 1) + ["once"],
    }
)
COUNTS = pd.DataFrame(RANDOM.poisson(3, (N_ROWS, 4)), columns=list("abcd"))
WEIGHTS = RANDOM.integers(0, 3, N_ROWS).astype(float)
AMOUNT = COUNTS["a"] * 2.5 - COUNTS["b"] + RANDOM.normal(size=N_ROWS)
CASES = {
    "mixed table": (priory.NaiveBayes(), TABLE, LABELS, None),
    "weights": (priory.NaiveBayes(), TABLE, LABELS, WEIGHTS),
    "nothing kept": (priory.NaiveBayes(memory=0), TABLE, LABELS, None),
    "few rows kept": (priory.NaiveBayes(memory=20), TABLE, LABELS, None),
    "textbook": (priory.NaiveBayes.textbook(m=1), TABLE.drop(columns="note"), LABELS, None),
    "declared classes": (priory.NaiveBayes(class_prior=[0.2, 0.8]), TABLE[["age"]], LABELS, WEIGHTS),
    "text": (priory.TextClassifier(), TABLE[["note"]], LABELS, None),
    "text, occurrences": (priory.TextClassifier("multinomial"), TABLE[["note"]], LABELS, WEIGHTS),
    "hashed text": (priory.TextClassifier(buckets=64), TABLE[["note"]], LABELS, None),
    "GaussianNB": (GaussianNB(), COUNTS, LABELS, WEIGHTS),
    "MultinomialNB": (MultinomialNB(), COUNTS, LABELS, None),
    "CategoricalNB": (CategoricalNB(), COUNTS, LABELS, None),
    "regression": (priory.BayesianLinearRegression(), COUNTS, AMOUNT.to_numpy(), WEIGHTS),
    "regression with labels": (priory.BayesianLinearRegression(), TABLE[["age", "city"]], AMOUNT.to_numpy(), None),
}


def read_bytes(model, path):
    priory.save(model, path)
    return path.read_bytes()


def split_rows(order, cuts):
    return [rows for rows in np.split(order, sorted(cuts)) if len(rows)]


def profile_parts(counter, X, parts):
    names = [str(name) for name in X.columns]
    open_columns = counter.find_open_columns(names, [n for n in names if not pd.api.types.is_numeric_dtype(X[n])], [])
    profiles = [profile_columns(read_table(X.iloc[rows][open_columns])) for rows in parts]
    return counter.with_profiles(names, add_parts(profiles, add_profiles))


def fit_in_parts(model, X, y, weight, parts):
    counter = profile_parts(model.counter(), X, parts)
    learned = [counter.count(X.iloc[r], y[r], None if weight is None else weight[r]) for r in parts]
    half = len(learned) // 2
    return model.adopt(add_parts([add_parts(learned[:half]), add_parts(learned[half:])]))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@settings(max_examples=2)
@given(order=st.permutations(range(N_ROWS)), cuts=st.sets(st.integers(1, N_ROWS - 1), max_size=12))
def test_any_parts_make_the_model_of_all_rows(case, order, cuts, tmp_path_factory):
    model, X, y, weight = CASES[case]
    folder = tmp_path_factory.mktemp("parts")
    parts = split_rows(np.array(order), cuts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrioryWarning)
        whole = read_bytes(type(model)(**model.get_params()).fit(X, y, sample_weight=weight), folder / "whole.priory")
        in_parts = fit_in_parts(type(model)(**model.get_params()), X, y, weight, parts)
    assert read_bytes(in_parts, folder / "parts.priory") == whole


@pytest.mark.parametrize("case", ["weights", "declared classes", "GaussianNB", "regression"])
def test_rows_without_weight_are_a_part_like_any_other(case, tmp_path):
    model, X, y, weight = CASES[case]
    light, others = np.flatnonzero(weight == 0), np.flatnonzero(weight)
    whole = type(model)(**model.get_params()).fit(X, y, sample_weight=weight)
    in_parts = fit_in_parts(type(model)(**model.get_params()), X, y, weight, [others, light])
    assert read_bytes(in_parts, tmp_path / "parts.priory") == read_bytes(whole, tmp_path / "whole.priory")


@pytest.mark.parametrize("case", [case for case in CASES if case != "few rows kept"])  # rows do not return to a sample
def test_forgetting_parts_is_never_having_seen_them(case, tmp_path):
    model, X, y, weight = CASES[case]
    kept, gone = np.arange(0, 80), np.arange(80, N_ROWS)
    weights = [None if weight is None else weight[rows] for rows in (kept, gone)]
    if weight is not None:
        weights = [w + 1 for w in weights]  # a class may not vanish
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrioryWarning)
        never = type(model)(**model.get_params()).fit(X.iloc[kept], y[kept], sample_weight=weights[0])
        every = None if weight is None else np.concatenate(weights)
        taught = type(model)(**model.get_params()).fit(X, y, sample_weight=every)
    counter = taught.counter(known=True)
    halves = [gone[:15], gone[15:]]
    parts = [counter.count(X.iloc[r], y[r], None if weight is None else weights[1][r - 80]) for r in halves]
    taught.subtract(add_parts(parts))
    if getattr(never, "memory", None) == 0:  # corrections cannot be derived again
        for model in (never, taught):
            model.adopt(replace(model.learned_, corrections=None, stale=()), finish=False)
    assert read_bytes(taught, tmp_path / "forgot.priory") == read_bytes(never, tmp_path / "never.priory")


def test_parts_that_were_not_learned_cannot_be_forgotten():
    model = priory.TextClassifier().fit(["win cash", "see you"], ["spam", "ham"])
    part = model.counter(known=True).count(["win a prize"], ["spam"])
    with pytest.raises(NotLearnedError, match="token 'prize' was not learned, or not this often; forget only rows"):
        model.subtract(part)
    assert model.class_count_.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("calibrate", ["loo", False])
def test_scores_of_a_sample_are_those_of_evaluate(calibrate):
    model = priory.NaiveBayes(calibrate=calibrate).fit(TABLE[["age", "city"]], LABELS)
    halves = [
        sample_part(model.learned_, TABLE[["age", "city"]][rows], partial(encode_labels, LABELS[rows]))
        for rows in (slice(50), slice(50, None))
    ]
    scores = judge_parts(model.learned_, halves[1] + halves[0])
    whole = model.evaluate(TABLE[["age", "city"]], LABELS)
    assert scores.log_loss.value == pytest.approx(whole.log_loss.value, abs=1e-12)
    assert scores.accuracy.value == pytest.approx(whole.accuracy.value, abs=1e-12)


def test_a_model_that_does_not_add_is_refused():
    with pytest.raises(KindError, match="a MDLTreeClassifier cannot be learned in parts; use NaiveBayes, "):
        check_countable(priory.MDLTreeClassifier())


def test_parts_of_different_kinds_name_the_column_and_both_kinds():
    parts = [pd.DataFrame({"size": [1, 2]}, dtype=object), pd.DataFrame({"size": ["small"]}, dtype=object)]
    profiles = [profile_columns(read_table(part[["size"]])) for part in parts]
    with pytest.raises(KindError, match="column 'size' holds numbers in one partition and labels in another"):
        add_profiles(*profiles)


def test_a_profile_of_many_values_is_fair_and_does_not_depend_on_order(monkeypatch):
    monkeypatch.setattr("priory.model.column_profile.MAX_VALUES_KEPT", 50)
    cells = [f"value number {i} of many" for i in range(300)] * 3
    profiles = [ColumnProfile.of(read_table({"x": cells[at::4]}), 0) for at in range(4)]
    forward, backward = (sum(parts[1:], start=parts[0]) for parts in (profiles, profiles[::-1]))
    assert forward.hashes.tolist() == backward.hashes.tolist()
    assert set(forward.times.tolist()) == {3}
    assert not forward.is_prose


def test_merged_vocabularies_stay_within_their_bound():
    texts = [" ".join(RANDOM.choice(WORDS, 30)) for _ in range(60)]
    labels = ["a", "b"] * 30
    model = priory.TextClassifier("multinomial", max_tokens=20, calibrate=False)
    counter = model.counter()
    total = add_parts(counter.count(texts[at : at + 6], labels[at : at + 6]) for at in range(0, 60, 6))
    exact = priory.TextClassifier("multinomial", calibrate=False).fit(texts, labels)
    counts, [record] = dict(zip(exact.vocabulary_, exact.counts_, strict=True)), total.statistics.parts
    assert len(record) <= 20
    for token, count in zip(record.tokens(), record.counts, strict=True):
        assert (count <= counts[token]).all()
        assert (counts[token] - count <= record.missed).all()
    assert all((counts[token] <= record.missed).all() for token in set(counts) - set(record.tokens()))
