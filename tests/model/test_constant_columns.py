"""What a column does not resolve is no evidence: columns with one value in every row, or in all rows but a few."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import priory as pr
from priory.families import Gamma, Histogram
from priory.model import table_model as folds

NaiveBayes = partial(pr.NaiveBayes, calibrate=False)  # the statistics alone
CONSTANTS = [1e-300, 1e-5, 1 / 3, 1.0, 3.14159, 7.0, 7.25, 7.5, 1000.0, 1e8, 2.0**40, 1e300, 0.0, -4.0, -7.25, -1e200]
SMALLEST_ALPHA = 2.0**-6  # virtual examples of a value, as evidence chooses them


def make_table(sizes, gap, seed=0):
    """One column of numbers, and labels: class c has ``sizes[c]`` rows about ``gap * c``."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    return rng.normal(size=len(y)) + gap * y, y


def make_rows(x, e):
    return [{"x": a, "e": b} for a, b in zip(x.tolist(), np.broadcast_to(e, x.shape).tolist(), strict=True)]


def take_x(rows):
    return [{"x": row["x"]} for row in rows]


def log_loss(model, rows, y):
    return -np.log(np.clip(model.predict_proba(rows)[np.arange(len(y)), y], 1e-15, 1)).mean()


@st.composite
def columns(draw, few):
    """A column that holds one value in all rows but at most ``few``, that value, and the labels."""
    constant = draw(st.sampled_from(CONSTANTS))
    sizes = [*draw(st.lists(st.integers(1, 30), min_size=1, max_size=3)), draw(st.sampled_from([2, 20, 200, 400]))]
    y = np.repeat(np.arange(len(sizes)), sizes)
    e = np.full(len(y), constant)
    changed = draw(st.lists(st.integers(0, len(y) - 1), max_size=min(few, (len(y) - 1) // 3), unique=True))
    moves = [1.1 * constant, 5 * constant, 1e-3 * constant, constant + 1, constant + 2, constant + 50]
    e[changed] = draw(st.lists(st.sampled_from(moves), min_size=len(changed), max_size=len(changed)))
    # a histogram counts at ten binary digits: what differs by less is not seen to differ
    assume((np.abs(e - constant)[e != constant] > 2.0**-9 * abs(constant)).all())
    return e, constant, y


# -- the law ---------------------------------------------------------------------------------------------------------


@given(columns(few=0), st.sampled_from(["auto", "gaussian", "gamma", "histogram", "categorical"]))
@settings(deadline=None)
def test_a_column_with_one_value_is_no_evidence(column, family):
    _, constant, y = column
    assume(family != "gamma" or constant > 0)
    cell = str(constant) if family == "categorical" else constant
    rows = [{"x": float(v), "e": cell} for v in np.arange(len(y)) % 7]
    model = NaiveBayes({"x": "gaussian", "e": family}).fit(rows, y)
    alone = NaiveBayes("gaussian").fit(take_x(rows), y)
    assert model.predict_proba(rows) == pytest.approx(alone.predict_proba(take_x(rows)), abs=1e-9)
    assert all(len(set(line.log_likelihood)) == 1 for line in model.explain(rows[:1])[0].lines if line.name == "e")


@given(columns(few=3))
@example((np.array([1.0] * 101 + [2.0, 2.0, 6.0]), 1.0, np.repeat([0, 1, 2], [50, 42, 12])))
@example((np.array([1 / 3] * 29 + [1.1 / 3]), 1 / 3, np.repeat([0, 1, 2], [2, 27, 1])))
@settings(deadline=None)
def test_no_line_is_longer_than_the_record_bears(column):
    """In a class of n rows a value that it has not shown has at least alpha / (n + alpha values) of the probability."""
    e, _, y = column
    cells = np.unique(e)
    bound = np.log(len(e) / SMALLEST_ALPHA + len(cells))
    model = NaiveBayes().fit(e[:, None], y)
    for ledger in model.explain(cells[:, None]):
        for line in ledger.lines:
            assert np.ptp(line.log_likelihood) <= bound


@pytest.mark.filterwarnings("ignore:no class has two rows")
@given(columns(few=3))
@settings(deadline=None, max_examples=20)
def test_rows_left_out_say_what_a_model_without_them_says(column):
    e, constant, y = column
    assume(abs(constant) > 1e-200)  # beyond the range of Gamma a row left out may be impossible
    some = np.unique(np.stack([e, y]), axis=1, return_index=True)[1]  # one row of each value and class
    rows = [{"e": value} for value in e.tolist()]
    model = NaiveBayes().fit(rows, y)
    learned = model.learned_
    left = learned.model().leave_one_out(learned.rows.read_cells(learned.rows.read(rows, "answer")[1]), y)
    for i in some[np.bincount(y)[y[some]] > 1]:  # a class goes with its last row
        rest = NaiveBayes().fit(rows[:i] + rows[i + 1 :], np.delete(y, i))
        refitted = rest.predict_joint_log_proba(rows[i : i + 1])[0]
        assert left[i] - left[i].max() == pytest.approx(refitted - refitted.max(), abs=1e-7)


@pytest.mark.parametrize("values", [[0, 0, 0, 0, 5, 6], [1.5, 1.5, 1.5, 2.5, 40.0], [3, 3, 9, 9], [2, 2, 2, 0.5]])
def test_an_atom_less_one_row_in_closed_form(values):
    y = np.arange(len(values)) % 2
    model = NaiveBayes(Histogram).fit(np.array(values)[:, None], y)
    learned = model.learned_
    record, cells = (
        learned.statistics.parts[0][0],
        learned.rows.read_cells(learned.rows.read([[v] for v in values], "answer")[1]),
    )
    assert cells[0].data.shape == (len(values), 1)
    quick = folds._leave_out_in_closed_form(Histogram, record[0], cells[0], y)
    for i, value in enumerate(values):
        left = (record[0] - Histogram().observe(np.array([[value]]), np.array([y[i]], dtype=np.int32), 2)[0],)
        assert quick.evidence[i] == pytest.approx(Histogram().evidence(left)[0], abs=1e-9)


# -- what was found --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("constant", [1e-5, 1.0, 7.0, 7.5, 3.14159, 1000.0, 1e8])
@pytest.mark.parametrize(("sizes", "gap"), [((12, 18), 3.0), ((200, 300), 1.5), ((20, 20, 24, 40), 1.5)])
def test_a_constant_changes_no_answer(constant, sizes, gap):
    x, y = make_table(sizes, gap)
    rows = make_rows(x, constant)
    for calibrate in (False, "loo"):
        model = pr.NaiveBayes(calibrate=calibrate).fit(rows, y)
        alone = pr.NaiveBayes(calibrate=calibrate).fit(take_x(rows), y)
        assert model.predict_proba(rows) == pytest.approx(alone.predict_proba(take_x(rows)), abs=1e-9)


@pytest.mark.parametrize("n", [8, 40, 400])
def test_constants_of_both_kinds_change_no_corrected_answer_with_or_without_gaps(n):
    rng = np.random.default_rng(n)
    table = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    table["label"] = np.array(list("xyz"))[rng.integers(0, 3, n)]
    y = (table["a"] + table["b"] * table["c"] + rng.normal(size=n) > 0).to_numpy().astype(int)
    table.loc[rng.random(n) < 0.2, "d"] = np.nan  # gaps that were learned
    wide = table.assign(seven=7.5, same="same")[["a", "seven", "b", "c", "same", "d", "label"]]
    model, alone = pr.NaiveBayes().fit(wide, y), pr.NaiveBayes().fit(table, y)
    for gaps in ([], ["b"], ["b", "label"]):
        given, others = wide.copy(), table.copy()
        given[gaps], others[gaps] = np.nan, np.nan
        np.testing.assert_allclose(model.predict_proba(given), alone.predict_proba(others), atol=1e-9)
        # and neither does another value, or a gap in it
        given["seven"], given["same"] = np.nan, "other"
        np.testing.assert_allclose(model.predict_proba(given), alone.predict_proba(others), atol=1e-9)


@pytest.mark.parametrize("constant", [7.5, 1000.0, 1e-5, 1 / 3])
@pytest.mark.parametrize("cells", [1, 2])
@pytest.mark.parametrize("factor", [1.1, 40.0])
def test_one_or_two_cells_that_differ_spoil_nothing(constant, cells, factor):
    for sizes in ((12, 18), (200, 300)):
        (x, y), (new, labels) = make_table(sizes, 1.5), make_table((200, 200), 1.5, seed=1)
        e = np.full(len(x), constant)
        e[-cells:] *= factor
        model, alone = NaiveBayes().fit(make_rows(x, e), y), NaiveBayes().fit(take_x(make_rows(x, e)), y)
        test = make_rows(new, constant)
        assert log_loss(model, test, labels) < log_loss(alone, take_x(test), labels) + 0.02


def test_rows_left_out_are_answered_by_the_other_columns():
    x, y = make_table((12, 18), 3.0)
    assert pr.NaiveBayes().fit(make_rows(x, 7.5), y).evaluate().accuracy.value >= 0.9


@pytest.mark.parametrize("families", ["auto", "gamma"])
def test_a_stream_with_a_constant_answers_as_one_without(families):
    rng = np.random.default_rng(0)
    model, alone = (NaiveBayes(families) for _ in range(2))
    for _ in range(200):
        label = int(rng.random() < 0.6)
        row = {"x": float(rng.gamma(2.0 + 3 * label))}
        answers = [m.predict_proba_one(r) for m, r in ((model, row | {"e": 7.5}), (alone, row))]
        assert answers[0] == pytest.approx(answers[1], abs=1e-9)
        model.learn_one(row | {"e": 7.5}, label)
        alone.learn_one(row, label)
    model.learn_one({"x": 3.0, "e": 9.0}, 1)  # it varies now
    assert model.predict_proba_one({"x": 3.0, "e": 9.0})[1] > alone.predict_proba_one({"x": 3.0})[1]


def test_a_count_of_one_size_says_nothing_about_a_rate():
    x, y = make_table((1, 3, 6), 2.0)
    model = NaiveBayes({"x": "gaussian", "e": "poisson"}).fit(make_rows(x, 1e8), y)
    (line,) = [line for line in model.explain(make_rows(x[:1], 1e8))[0].lines if line.name == "e"]
    assert np.ptp(line.log_likelihood) < np.log(2)


def test_gamma_columns_keep_their_shapes():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.gamma(2.0, 1.0, 300), rng.gamma(50.0, 100.0, 300)])  # means of 2 and of 5,000
    record = Gamma().observe(x[:, None], np.repeat([0, 1], 300).astype(np.int32), 2)
    assert Gamma().parameters(record, "ml").shape.ravel() == pytest.approx([2.0, 50.0], rel=0.15)
