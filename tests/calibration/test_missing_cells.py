"""Cells that are missing at answering time, in columns that were never missing when learned."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import priory as pr

LABELS = ("low", "middle", "high")


def draw_rows(n, seed, informative_gaps=False):
    """Three classes, two numbers and a label that depend on them, and a column of noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    rows = [
        {
            "size": float(rng.normal(c, 0.8)),
            "weight": float(rng.normal(1.5 * (c == 1), 0.8)),
            "grade": LABELS[int(np.clip(c + rng.integers(-1, 2), 0, 2))],
            "noise": float(rng.normal()),
        }
        for c in y
    ]
    if informative_gaps:
        for row, c in zip(rows, y, strict=True):
            row["visit"] = None if rng.random() < (0.9 if c == 2 else 0.1) else float(rng.normal())
    return rows, y


@pytest.fixture(scope="module")
def model():
    return pr.NaiveBayes().fit(*draw_rows(500, seed=0))


def measure_loss(model, rows, y):
    return -model.predict_log_proba(rows)[np.arange(len(y)), y].mean()


@pytest.mark.parametrize("memory", [None, 0])
def test_a_row_without_any_cell_is_answered_with_the_class_prior(memory):
    rows, y = draw_rows(300, seed=1)
    texts = [{**row, "note": ["small thing", "round thing", "big thing"][c]} for row, c in zip(rows, y, strict=True)]
    share = np.bincount(y) / len(y)
    some, rng = draw_rows(300, seed=1, informative_gaps=True)[0], np.random.default_rng(0)
    holes = [{name: None if rng.random() < 0.1 else cell for name, cell in row.items()} for row in rows]
    for given_rows in (rows, texts, some, holes):
        model = pr.NaiveBayes(memory=memory).fit(given_rows, y)
        empty = dict.fromkeys(given_rows[0])
        np.testing.assert_allclose(model.predict_proba([empty, given_rows[0]])[0], share, atol=1e-12)
        np.testing.assert_allclose(model.predict_proba([given_rows[0], {}])[1], share, atol=1e-12)
        assert list(model.predict_proba_one({}).values()) == pytest.approx(share, abs=1e-12)


@pytest.mark.parametrize("n_classes", [2, 70])
def test_a_model_that_is_only_tempered_answers_a_row_without_any_cell_with_the_class_prior(n_classes):
    rng = np.random.default_rng(0)
    y = np.append(np.repeat(np.arange(n_classes), 2), np.zeros(4 * n_classes, int))  # class 0 is more common
    rows = [{"a": float(rng.normal(c)), "b": "xy"[int(rng.random() < 0.5)]} for c in y]
    model = pr.NaiveBayes().fit(rows, y)
    assert not model.corrections_.members
    share = np.unique(y, return_counts=True)[1] / len(y)
    np.testing.assert_allclose(model.predict_proba([{"a": None, "b": None}])[0], share, atol=1e-9)
    assert list(model.predict_proba_one({}).values()) == pytest.approx(share, abs=1e-9)
    assert model.explain([{"a": None, "b": None}])[0].probabilities() == pytest.approx(share, abs=1e-9)


def test_a_declared_prior_is_the_answer_to_a_row_without_any_cell():
    rows, y = draw_rows(300, seed=2)
    model = pr.NaiveBayes(class_prior=[0.2, 0.3, 0.5]).fit(rows, y)
    np.testing.assert_allclose(model.predict_proba([dict.fromkeys(rows[0])])[0], [0.2, 0.3, 0.5], atol=1e-12)


def test_a_gap_costs_what_its_column_told(model):
    """A model that never saw the column does as well as one that misses its cell."""
    (train, y), (test, truth) = draw_rows(500, seed=0), draw_rows(500, seed=3)
    whole = measure_loss(model, test, truth)
    for name in ("size", "weight", "noise"):
        without = pr.NaiveBayes().fit([{k: v for k, v in row.items() if k != name} for row in train], y)
        lost = measure_loss(without, [{k: v for k, v in row.items() if k != name} for row in test], truth)
        gap = measure_loss(model, [row | {name: None} for row in test], truth)
        assert gap == pytest.approx(lost, abs=0.04)
        assert (gap > whole + 0.05) == (name != "noise")


def test_more_gaps_cost_more_and_never_more_than_the_base_rate(model):
    test, truth = draw_rows(400, seed=4)
    rng = np.random.default_rng(0)
    base = -np.log(np.bincount(draw_rows(500, seed=0)[1])[truth] / 500).mean()
    losses = []
    for share in (0.0, 0.2, 0.5, 0.8, 1.0):
        rows = [{name: None if rng.random() < share else cell for name, cell in row.items()} for row in test]
        losses.append(measure_loss(model, rows, truth))
    assert losses == sorted(losses)
    assert losses[-1] == pytest.approx(base, abs=1e-9)


def test_gaps_that_were_learned_keep_their_meaning():
    rows, y = draw_rows(500, seed=5, informative_gaps=True)
    model = pr.NaiveBayes().fit(rows, y)
    test, truth = draw_rows(300, seed=6, informative_gaps=True)
    shown = [row | {"visit": 0.0 if row["visit"] is None else row["visit"]} for row in test]
    assert measure_loss(model, test, truth) < measure_loss(model, shown, truth) - 0.05
    gap = np.array([row["visit"] is None for row in test])
    assert model.predict_proba(test)[gap, 2].mean() > model.predict_proba(shown)[gap, 2].mean() + 0.1


@given(st.lists(st.sets(st.sampled_from(["size", "weight", "grade", "noise"])), min_size=1, max_size=8))
@settings(max_examples=20, deadline=None)
def test_single_rows_batches_and_absent_keys_give_one_answer(model, gaps):
    rows = [
        {k: v for k, v in row.items() if k not in gone}
        for row, gone in zip(draw_rows(8, seed=7)[0], gaps, strict=False)
    ]
    whole = [{**dict.fromkeys(("size", "weight", "grade", "noise")), **row} for row in rows]
    together = model.predict_proba(whole)
    np.testing.assert_allclose(model.predict_proba(whole[::-1])[::-1], together, rtol=1e-12)
    for row, p in zip(rows, together, strict=True):
        assert list(model.predict_proba_one(row).values()) == pytest.approx(p, abs=1e-6)


def test_rows_that_complete_others_do_not_depend_on_the_order_of_learning(model):
    rows, y = draw_rows(500, seed=0)
    order = np.random.default_rng(0).permutation(len(y))
    other = pr.NaiveBayes().fit([rows[i] for i in order[:200]], y[order[:200]])
    other.partial_fit([rows[i] for i in order[200:]], y[order[200:]])
    other.refresh()
    test = [row | {"size": None, "grade": None} for row in draw_rows(50, seed=8)[0]]
    np.testing.assert_array_equal(other.predict_proba(test), model.predict_proba(test))


def test_a_forgotten_row_completes_no_other(model):
    rows, y = draw_rows(500, seed=0)
    before = pr.NaiveBayes().fit(rows[1:], y[1:])
    after = pr.NaiveBayes().fit(rows, y).forget(rows[:1], y[:1])
    test = [row | {"weight": None} for row in draw_rows(50, seed=9)[0]]
    np.testing.assert_array_equal(after.predict_proba(test), before.predict_proba(test))


def test_a_saved_model_completes_the_same_rows_and_says_that_it_keeps_them(model, tmp_path):
    test = [row | {"size": None} for row in draw_rows(20, seed=10)[0]]
    pr.save(model, tmp_path / "m.priory")
    np.testing.assert_array_equal(pr.load(tmp_path / "m.priory").predict_proba(test), model.predict_proba(test))


def test_a_new_label_and_a_table_of_gaps_are_answered(model):
    rows = [{"grade": "unheard of", "size": None, "weight": None, "noise": None}] * 600
    answers = model.predict_proba(rows)
    assert np.isfinite(answers).all()
    np.testing.assert_allclose(answers.sum(axis=1), 1.0)
    np.testing.assert_array_equal(answers, np.repeat(answers[:1], 600, axis=0))
