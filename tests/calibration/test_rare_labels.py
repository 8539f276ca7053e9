"""Columns with so many labels that kept rows tell little of most: the counts of all learned rows decide."""

import numpy as np
import pytest

import priory as pr
from exact_forgetting import save_to_bytes
from exported_models import TABLES, make_model, make_rows
from priory.calibration.code_counts import find_rare_log_ratios
from second_reader import answer, read_model

FRAME, LABELS = TABLES["customers"]()
ROWS = FRAME.to_dict("records")


def fit(rows, labels):
    return pr.NaiveBayes(memory=500).fit(rows, labels)


def take_loss(model, rows, labels):
    p = np.asarray(model.predict_proba(rows))
    return -np.log(p[np.arange(len(labels)), np.searchsorted(model.classes_, labels)]).mean()


def test_new_rows_are_answered_as_well_as_by_the_counts_of_all_rows():
    corrected, plain = fit(ROWS[:1500], LABELS[:1500]), pr.NaiveBayes(calibrate=False).fit(ROWS[:1500], LABELS[:1500])
    assert take_loss(corrected, ROWS[1500:], LABELS[1500:]) < 1.005 * take_loss(plain, ROWS[1500:], LABELS[1500:])


def test_a_label_tells_the_more_the_more_rows_it_has_and_nothing_with_one():
    counts = np.array([[1, 4, 40, 2, 0, 9, 1.0], [0, 0, 0, 2, 5, 1, 1.0]])  # (classes, labels)
    ratios = find_rare_log_ratios(counts, counts.sum(axis=1))
    assert ratios[:, 0].tolist() == [0, 0]
    assert 0 < ratios[0, 1] < ratios[0, 2] < np.log(1 / 0.8)
    assert ratios[0, 4] < ratios[0, 3] < 0


def test_equal_labels_tell_nothing_however_many_rows_they_have():
    assert np.abs(find_rare_log_ratios(np.full((2, 50), 30.0), np.full(2, 1500.0))).max() < 0.01


def test_a_reader_of_the_file_without_priory_answers_alike(tmp_path):
    model, (asked, rows) = make_model("customers", "loo"), make_rows("customers")
    pr.save(model, tmp_path / "model.priory")
    found = answer(read_model(tmp_path / "model.priory"), rows)
    np.testing.assert_allclose(np.exp(found), model.predict_proba(asked), atol=1e-12)


def test_single_rows_and_tables_are_answered_alike():
    model, (asked, rows) = make_model("customers", "loo"), make_rows("customers")
    one_by_one = [list(model.predict_proba_one(row).values()) for row in rows]
    np.testing.assert_allclose(one_by_one, model.predict_proba(asked), atol=1e-12)


def test_the_lines_of_a_ledger_add_up_to_the_answer():
    model, (asked, _) = make_model("customers", "loo"), make_rows("customers")
    no, yes = model.predict_log_proba(asked).T
    found = [ledger.log_odds("yes", "no") for ledger in model.explain(asked)]
    assert found == pytest.approx(list(yes - no))


@pytest.mark.parametrize("is_ready", [False, True], ids=["derived anew", "standby"])
def test_forgotten_rows_leave_the_answers_of_a_model_that_never_saw_them(is_ready):
    new = [{"customer": "new", "size": float(k), "kind": "u"} for k in range(6)]
    never = fit([*ROWS[12:], *new[:3]], [*LABELS[12:], *["yes"] * 3])
    model = fit(ROWS, LABELS)
    model = model.prepare_standby() if is_ready else model
    model.predict_proba_one(ROWS[0])
    for row in new:
        model.learn_one(row, "yes")
    for row, label in [*zip(ROWS[:12], LABELS[:12], strict=True), *((row, "yes") for row in new[3:])]:
        model.forget_one(row, label)
    asked = [*ROWS[:30], *new]
    single = [list(model.predict_proba_one(row).values()) for row in asked]
    expected = never.refresh().predict_proba(asked)
    assert np.array_equal(model.refresh().predict_proba(asked), expected)
    if not is_ready:
        np.testing.assert_allclose(single, expected, atol=1e-12)


def test_nothing_of_a_forgotten_label_is_in_the_file():
    """All rows of some labels are forgotten one by one: as if they had never been learned, in any order."""
    model = fit(ROWS, LABELS)
    model.predict_proba_one(ROWS[0])
    is_gone = FRAME["customer"].isin(["n80", "n120"])
    for k in np.flatnonzero(is_gone):
        model.forget_one(ROWS[k], LABELS[k])
    left = np.flatnonzero(~is_gone)[::-1]
    never = fit([ROWS[k] for k in left], LABELS[left])
    asked = [ROWS[k] for k in np.flatnonzero(is_gone)]
    single = [list(model.predict_proba_one(row).values()) for row in asked]
    np.testing.assert_allclose(single, never.predict_proba(asked), atol=1e-12)
    assert save_to_bytes(model.with_corrections()) == save_to_bytes(never.with_corrections())
