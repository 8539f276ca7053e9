"""Many classes: answers in parts of the rows, corrections that weigh columns only, and one line where memory ends."""

import numpy as np
import pandas as pd
import pytest

import priory as pr
from priory.errors import ModelTooLargeError
from priory.learning import learned
from priory.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(3.0, size=(300, 4))
LABELS = np.arange(300) % 30


def draw_table(classes, rows, seed=0):
    """Columns of numbers and labels, each of them twice: naive Bayes believes its copies too much."""
    rng = np.random.default_rng(seed)
    group = np.arange(rows) % classes
    centre, label = np.random.default_rng(9).normal(size=(classes, 2)), np.arange(classes) % 7
    number = 2 * centre[group] + rng.normal(size=(rows, 2))
    table = {f"number {j}": number[:, j % 2] + 0.1 * rng.normal(size=rows) for j in range(4)}
    table["label"] = (label[group] + rng.integers(3, size=rows)).astype(str)
    return pd.DataFrame(table), np.array([f"class {c:03}" for c in group], dtype=object)


@pytest.mark.parametrize("make", [GaussianNB, CategoricalNB, MultinomialNB, BernoulliNB, pr.NaiveBayes])
def test_answers_are_computed_for_a_part_of_the_rows_at_a_time(make, monkeypatch):
    model = make().fit(COUNTS, LABELS)
    labels, answers, joint = model.predict(COUNTS), model.predict_proba(COUNTS), model.predict_joint_log_proba(COUNTS)
    sizes = []

    rows = type(model.learned_.rows)
    read_cells = rows.read_cells

    def note_size(self, batch):
        sizes.append(batch.rows * len(model.classes_))
        return read_cells(self, batch)

    monkeypatch.setattr(learned, "ANSWERS_AT_A_TIME", 40 * 30)
    monkeypatch.setattr(rows, "read_cells", note_size)
    assert np.array_equal(model.predict(COUNTS), labels)
    assert np.array_equal(model.predict_proba(COUNTS), answers)
    assert np.array_equal(model.predict_joint_log_proba(COUNTS), joint)
    assert max(sizes) == 40 * 30
    assert len(sizes) > 3 * 300 // 40


def test_texts_are_answered_in_parts(monkeypatch):
    texts, labels = ["good film", "bad film", "good", "bad play"] * 20, ["+", "-", "+", "-"] * 20
    model = pr.TextClassifier().fit(texts, labels)
    expected = model.predict_proba(texts)
    monkeypatch.setattr(learned, "ANSWERS_AT_A_TIME", 14)
    assert np.array_equal(model.predict_proba(texts), expected)
    assert model.predict(texts).tolist() == labels


def test_answers_that_do_not_fit_into_memory_are_refused_in_one_line(monkeypatch):
    model = pr.NaiveBayes(calibrate=False).fit(COUNTS, LABELS)
    monkeypatch.setattr("priory.core.sharding.find_memory_limit", lambda: 2**15)
    with pytest.raises(ModelTooLargeError) as caught:
        model.predict_proba(COUNTS)
    assert str(caught.value) == (
        "the answers to 300 rows x 30 classes need about 0 GiB, and this machine has 0; ask for fewer rows at a time, "
        "or for labels with predict."
    )
    assert len(model.predict(COUNTS)) == 300


def test_counts_that_do_not_fit_into_memory_are_refused_before_they_are_made(monkeypatch):
    monkeypatch.setattr("priory.core.column_kernels.MAX_COUNTS_UNCHECKED", 1000)
    monkeypatch.setattr("priory.core.sharding.find_memory_limit", lambda: 2**14)
    numbers, group = np.arange(200.0)[:, None], np.arange(200) % 50
    with pytest.raises(ModelTooLargeError) as caught:
        pr.NaiveBayes().fit(numbers, group)
    assert str(caught.value) == (
        "counts of 200 different values in 50 classes need about 0 GiB, and this machine has 0; use fewer classes, "
        "round numbers, or declare a family that counts no values: families='gaussian'."
    )
    assert pr.NaiveBayes("gaussian").fit(numbers, group).classes_.tolist() == list(range(50))


def test_with_many_classes_the_columns_are_weighed_and_rows_not_seen_are_answered_better():
    X, y = draw_table(100, 4000)
    corrected = pr.NaiveBayes().fit(X, y)
    assert corrected.corrections_.names == ("tempering",)
    new, truth = draw_table(100, 1000, seed=1)
    group = np.searchsorted(corrected.classes_, truth)
    losses = [
        -model.predict_log_proba(new)[np.arange(1000), group].mean()
        for model in (corrected, corrected.without_corrections())
    ]
    assert losses[0] < losses[1] - 0.1


def test_a_single_row_is_answered_as_the_rows_of_a_table_are():
    X, y = draw_table(70, 1400)
    model = pr.NaiveBayes().fit(X, y)
    for row in [*X.head(3).to_dict("records"), {"number 0": 1.0}]:
        expected = model.predict_proba(pd.DataFrame([row], columns=X.columns))[0]
        assert np.allclose(list(model.predict_proba_one(row).values()), expected, rtol=1e-9, atol=1e-12)


def test_with_many_classes_a_forgotten_row_was_never_seen():
    X, y = draw_table(70, 700)
    some = np.arange(700) % 10 != 3
    model, reference = pr.NaiveBayes().fit(X, y), pr.NaiveBayes().fit(X[some], y[some])
    model.forget(X[~some], y[~some])
    assert model.corrections_version_ == reference.corrections_version_
    assert np.array_equal(model.predict_proba(X), reference.predict_proba(X))


def test_one_by_one_rows_are_learned_and_forgotten_with_many_classes():
    X, y = draw_table(70, 700)
    rows = X.to_dict("records")
    model = pr.NaiveBayes().fit(X, y)
    before = model.predict_proba_one(rows[0])
    model.learn_one(rows[5], y[8])
    assert model.predict_proba_one(rows[0]) != before
    model.forget_one(rows[5], y[8])
    assert model.predict_proba_one(rows[0]) == pytest.approx(before, rel=1e-9, abs=1e-12)


def test_the_prior_without_a_row_takes_no_table_of_classes_by_classes():
    y = np.append(np.arange(20_000), [0, 1, 2])
    model = pr.NaiveBayes("gaussian", calibrate=False).fit(np.arange(len(y))[:, None].astype(float), y).learned_.model()
    left = model.leave_one_out_prior(np.array([0, 7, 0]))  # 20,000 x 20,000 numbers would be 3 GB
    assert left.shape == (3, 20_000)
    assert np.exp(left[0, :2]) == pytest.approx(np.array([1, 2]) / 20_002)
    assert np.exp(left[1, 7]) == pytest.approx(0.5 / 20_002.5)
