"""The engine of the corrections: codes, counts per fold, the lock-step solver, and laws of the whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression

import priory as pr
from priory.calibration import solvers
from priory.calibration.code_counts import (
    CodeCounts,
    CodeEvidence,
    assign_folds,
    choose_pairs,
    count_learned_codes,
    encode_cells,
)
from priory.calibration.members import LinearMember
from priory.calibration.number_members import GaussianMember, SlopeMember
from priory.calibration.solvers import LockstepProblem, LockstepSearch, solve_lockstep
from priory.calibration.table_encoding import MISSING_LEVEL, N_LEVELS, TableEncoding, assign_bins, make_one_hot
from priory.calibration.tree_member import TreeMember, find_tree_cuts
from priory.core import sparse_rows
from priory.core.content_hash import hash_content
from priory.core.sparse_rows import pad_columns
from priory.model.cells import NumberCells
from priory.model.schema import Schema
from priory.storage import load, save
from priory.tables.table_reading import read_table
from sparse_tables import to_csr


def read_cells(columns, like=None):
    table = read_table(columns)
    return (like or Schema.of(table, "auto", None)).read_cells(table)


def mixed(rows=300, seed=0):
    """Labels and numbers with gaps, and a class that depends on two of them together."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=rows), rng.integers(0, 3, rows)
    y = np.where((a > 0) ^ (b == 1) ^ (rng.random(rows) < 0.1), "yes", "no")
    c = np.where(rng.random(rows) < 0.2, np.nan, rng.poisson(3, rows))
    return [
        {"a": float(p), "b": f"v{q}", "c": None if r != r else float(r)} for p, q, r in zip(a, b, c, strict=True)
    ], y


# -- codes -----------------------------------------------------------------------------------------------------------


def test_a_label_of_one_row_a_new_label_and_a_missing_one():
    table = read_table({"a": ["x", "x", "x", "y", "y", "z", None]})
    schema = Schema.of(table, "auto", None)
    encoding = TableEncoding.of(schema.read_cells(table), np.ones(7))
    new = schema.read_cells(read_table({"a": ["x", "y", "z", "never", None]}))
    assert encoding.encode(new)[:, 0].tolist() == [0, 1, -1, -1, 2]
    assert encoding.encode_levels(encoding.encode(new))[:, 0].tolist() == [0, 1, -1, -1, MISSING_LEVEL]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=60), st.integers(1, 24))
def test_bins_are_in_order_and_no_more_than_wanted(counts, bins):
    found = assign_bins(np.array(counts, dtype=float), bins)
    assert found[0] == 0
    assert set(np.diff(found).tolist()) <= {0, 1}
    assert found[-1] < bins


def test_a_value_that_fills_a_bin_has_it_for_itself():
    x = np.concatenate([np.zeros(500), np.random.default_rng(0).gamma(2, 1, 500)])
    encoding = TableEncoding.of([NumberCells(x[:, None])], np.ones(1000))
    codes = encoding.encode([NumberCells(x[:, None])])[:, 0]
    assert set(codes[x > 0]).isdisjoint(codes[x == 0])
    assert len(np.unique(codes)) > 10


# -- counts ----------------------------------------------------------------------------------------------------------


def test_counts_without_a_fold_are_counts_of_the_other_rows():
    rng = np.random.default_rng(0)
    cells = read_cells({"a": rng.normal(size=200).tolist(), "b": list(rng.choice(["p", "q", "r"], 200))})
    group, fold, weight = rng.integers(0, 2, 200), rng.integers(0, 5, 200), rng.integers(1, 4, 200).astype(float)
    encoding = TableEncoding.of(cells, weight)
    codes = encoding.encode(cells)
    counts = CodeCounts.of(encoding, codes, group, weight, fold, (5, 2))
    rest = ~np.isin(fold, (1, 3))
    others = CodeCounts.of(encoding, codes[rest], group[rest], weight[rest], fold[rest], (5, 2))
    assert np.array_equal(counts.without(1, 3)[0], others.total)
    assert np.allclose(counts.log_ratios(1, 3), others.log_ratios())
    assert np.allclose(counts.log_prior(1, 3), others.log_prior())


def test_a_missing_cell_and_an_empty_code_say_nothing():
    cells = read_cells({"a": ["x", "x", "y", "y", None, None]})
    encoding = TableEncoding.of(cells, np.ones(6))
    group = np.array([0, 0, 1, 1, 1, 1])
    counts = CodeCounts.of(encoding, encoding.encode(cells), group, np.ones(6), np.arange(6) // 2, (3, 2))
    assert (counts.log_ratios()[:, -1] == 0).all()
    without_y = counts.log_ratios(1)
    assert (without_y[:, 1] == 0).all()


def test_evidence_of_a_sample_follows_the_counts_of_all_rows():
    x, y = mixed(2000)
    model = pr.NaiveBayes(calibrate=False).fit(x, y)
    rows, batch = model.learned_.rows.read(x, "answer")
    cells = rows.read_cells(batch)
    some = [block.take_rows(slice(0, 100)) for block in cells]
    group = np.searchsorted(model.classes_, y)
    encoding = TableEncoding.of(some, np.ones(100), 2000.0)
    every = CodeCounts.of(encoding, encoding.encode(cells), group, np.ones(2000), np.arange(2000) % 5, (5, 2))
    sample = CodeCounts.of(encoding, encoding.encode(some), group[:100], np.ones(100), np.arange(100) % 5, (5, 2))
    evidence = CodeEvidence(np.ones(4), sample.log_prior(), sample.log_ratios(), sample.shares)
    learned = count_learned_codes(encoding, model.learned_.model(), 2)
    followed = evidence.follow_counts(encoding, *learned, model.statistics_.n)
    assert np.array_equal(followed.log_ratios, every.log_ratios())
    assert np.array_equal(followed.log_prior, every.log_prior())


def test_codes_and_smoothing_change_little_with_the_number_of_rows():
    cells = [NumberCells(np.arange(5000.0)[:, None])]
    sizes = [TableEncoding.of(cells, np.ones(5000), n).columns[0] for n in np.arange(4900.0, 30_000.0, 50.0)]
    steps = np.diff([column.n_codes for column in sizes])
    assert set(steps.tolist()) <= {0, 1}
    assert sizes[0].n_codes < 30
    assert sizes[-1].n_codes > 60
    assert np.abs(np.diff([column.blends.max() for column in sizes])).max() < 0.01


# -- the solver ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_solver_finds_what_scikit_learn_finds_for_every_fold(n_classes, monkeypatch):
    monkeypatch.setattr(solvers, "CONVERGED", 0.0)
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, (400, 5))
    group = (codes[:, 0] + codes[:, 1] + rng.integers(0, 2, 400)) % n_classes
    fold, rows = np.arange(400) % 3, make_one_hot(codes, np.arange(6) * 4)
    n_logits = 1 if n_classes == 2 else n_classes
    problem = LockstepProblem(rows, group, np.ones(400), fold, n_classes, 3, pad_columns(np.zeros((400, 4 * n_logits))))
    search = LockstepSearch(problem, np.ones((20, 1)))
    for strength in (100.0, 10.0, *[1.0] * 8):  # what was found about the curvature is kept
        search.descend(np.float32(strength))
    for m in range(4):
        train = fold != m
        peer = LogisticRegression(C=1.0, fit_intercept=False, max_iter=1000, tol=1e-8)
        peer.fit(to_csr(rows)[train], group[train])
        expected = peer.coef_[0] if n_classes == 2 else (peer.coef_ - peer.coef_.mean(axis=0)).T
        found = search.weights[:, m, 0] if n_classes == 2 else search.weights[:, m]
        found = found if n_classes == 2 else found - found.mean(axis=1, keepdims=True)
        assert np.allclose(found, expected, atol=5e-3)


def test_weights_that_are_not_allowed_stay_zero_and_noise_is_left_alone():
    rng = np.random.default_rng(2)
    codes, group = rng.integers(0, 8, (200, 6)), rng.integers(0, 2, 200)
    rows = make_one_hot(codes, np.arange(7) * 8)
    penalty = np.where(rng.random((48, 6)) < 0.5, 1.0, np.inf)
    problem = LockstepProblem(rows, group, np.ones(200), np.arange(200) % 5, 2, 5, pad_columns(np.zeros((200, 6))))
    search = LockstepSearch(problem, penalty)
    search.descend(np.float32(0.1))
    assert (search.weights[np.isinf(penalty)] == 0).all()
    assert (search.weights[np.isfinite(penalty)] != 0).any()
    chosen = solve_lockstep(problem, (100.0, 10.0, 1.0, 0.1), np.ones((48, 1)))
    assert chosen.loss <= np.log(2) + 1e-6  # the offset alone is a candidate


def test_the_cells_of_pairs():
    levels = np.array([[1, 2, -1, 3]])
    pairs = encode_cells(levels, np.array([[0, 1], [0, 2], [1, 3]]))
    assert pairs.indices.tolist() == [N_LEVELS + 2, 2 * N_LEVELS**2 + 2 * N_LEVELS + 3]


def test_columns_that_matter_together_are_chosen_and_held_least():
    rng = np.random.default_rng(3)
    levels = rng.integers(0, 2, (1000, 12))
    group = levels[:, [1, 4]].sum(axis=1) % 2  # neither column says anything alone
    group ^= rng.random(1000) < 0.1
    logits = np.zeros((1000, 6, 1))
    problem = LockstepProblem(
        make_one_hot(levels, np.arange(13) * 2),
        group,
        np.ones(1000),
        np.arange(1000) % 5,
        2,
        5,
        pad_columns(logits[..., 0]),
    )
    pairs, penalty = choose_pairs(levels, logits, problem, np.ones((6, 12)))
    best = pairs.tolist().index([1, 4])
    assert (penalty[best] == 1).all()
    others = np.delete(penalty, best, axis=0)
    assert others.min() > 5
    assert np.isinf(others).any()


# -- trees -----------------------------------------------------------------------------------------------------------


def test_cuts_lie_between_values_and_reach_into_the_tails():
    few = find_tree_cuts(np.array([3.0, 1.0, np.nan, 1.0, 2.0]), np.ones(5))
    assert few.tolist() == [1.5, 2.5]
    many = find_tree_cuts(np.arange(1000.0), np.ones(1000))
    assert 240 < len(many) <= 254
    assert (many % 1 == 0.5).all()
    assert many[0] < 3
    assert many[-1] > 996
    assert len(find_tree_cuts(np.full(5, np.nan), np.ones(5))) == len(find_tree_cuts(np.ones(5), np.ones(5))) == 0


def test_a_sharp_threshold_and_a_gap_that_means_something_are_learned_and_one_row_is_answered_as_among_many():
    rng = np.random.default_rng(0)
    x, label = rng.uniform(0, 100, 600), rng.choice(["p", "q", None], 600)
    x[rng.random(600) < 0.2] = np.nan
    y = np.where((x > 63.2) & (label == "p") | np.isnan(x), "in", "out")
    rows = [{"x": float(a), "label": b} for a, b in zip(x, label, strict=True)]
    model = pr.NaiveBayes().fit(rows[:400], y[:400])
    assert "trees" in model.corrections_.names
    assert model.score(rows[400:], y[400:]) > 0.98
    odd = [*rows[400:420], {"x": None, "label": "new"}, {"x": 1e300, "label": None}, {"x": -1e300, "label": "p"}]
    for row, expected in zip(odd, model.predict_proba(odd), strict=True):
        assert np.allclose(list(model.predict_proba_one(row).values()), expected, atol=1e-6)


# -- folds -----------------------------------------------------------------------------------------------------------


def test_equal_rows_share_a_fold_unless_few_are_distinct():
    x = np.random.default_rng(3).normal(size=(100, 2))
    twice = [NumberCells(np.concatenate([x, x]))]
    found = assign_folds(twice, np.zeros(200, dtype=int), np.ones(200), 5)
    assert len(found.rows) == 100
    assert (found.weight == 2).all()
    assert np.bincount(found.fold).tolist() == [20] * 5
    few = assign_folds([NumberCells(x[:4].repeat(30, axis=0))], np.zeros(120, dtype=int), np.ones(120), 5)
    assert np.bincount(few.fold, few.weight).tolist() == [24] * 5
    assert {few.weight[few.rows == row].sum() for row in np.unique(few.rows)} == {30.0}
    # dealt out one by one and not evenly, so that a fold differs from the others as new rows do
    assert len(set(few.weight.tolist())) > 3


def test_labels_that_say_nothing_are_not_confirmed_by_copies_of_a_row():
    rng = np.random.default_rng(0)
    x = np.array([rng.choice(list("abcdef"), 330), rng.choice(list("vwxyz"), 330)]).T.tolist()
    for seed in range(12):
        y = np.random.default_rng(seed).choice(list("klmn"), 330, p=[0.4, 0.3, 0.2, 0.1])
        model = pr.NaiveBayes().fit(x, y)
        assert "trees" not in model.corrections_.names
        assert np.abs(model.predict_proba(x) - np.unique(y, return_counts=True)[1] / 330).max() < 0.01


# -- laws ------------------------------------------------------------------------------------------------------------


@given(st.integers(0, 1000))
@settings(max_examples=4, deadline=None)
def test_the_order_of_the_rows_changes_no_bit(seed):
    x, y = mixed(150)
    order = np.random.default_rng(seed).permutation(150)
    model = pr.NaiveBayes("histogram", calibrate=False).fit([{"a": r["a"], "c": r["c"]} for r in x], y)
    rows, batch = model.learned_.rows.read([{"a": r["a"], "c": r["c"]} for r in x], "answer")
    cells = rows.read_cells(batch)
    group = np.searchsorted(model.classes_, y)
    fit = pr.NaiveBayes("histogram").counter().rows.calibrator().fit
    once = fit(model.learned_.model(), cells, group, None)
    again = fit(model.learned_.model(), [block.take_rows(order) for block in cells], group[order], None)
    assert hash_content(once) == hash_content(again)


def test_the_number_of_threads_changes_no_bit_of_the_corrections(monkeypatch):
    x, y = mixed(200)
    once = pr.NaiveBayes().fit(x, y).predict_log_proba(x)
    monkeypatch.setattr(sparse_rows, "N_THREADS", 3)
    monkeypatch.setattr(sparse_rows, "MIN_PRODUCTS_PER_THREAD", 1)
    assert np.array_equal(pr.NaiveBayes().fit(x, y).predict_log_proba(x), once)


def parity_of_three(rows=500):
    rng = np.random.default_rng(5)
    x = rng.integers(0, 2, (rows, 5))
    return x.astype(str), (x[:, 0] + x[:, 2] + x[:, 4] + (rng.random(rows) < 0.05)) % 2


def slope(rows=150):
    rng = np.random.default_rng(6)
    x = rng.normal(size=(rows, 6))
    return x, (x.sum(axis=1) + rng.logistic(size=rows) > 0).astype(int)


@pytest.mark.parametrize(
    ("make", "member"),
    [
        (lambda: mixed(200), lambda m: isinstance(m, LinearMember) and len(m.pairs)),
        (parity_of_three, lambda m: isinstance(m, TreeMember)),
        (slope, lambda m: isinstance(m, SlopeMember) and m.of_scores),
        (slope, lambda m: isinstance(m, SlopeMember) and not m.of_scores),
        (lambda: load_wine(return_X_y=True), lambda m: isinstance(m, GaussianMember)),
    ],
)
def test_corrections_come_back_from_a_file_and_answer_alike(tmp_path, make, member):
    x, y = make()
    model = pr.NaiveBayes().fit(x, y)
    assert any(map(member, model.corrections_.members))
    save(model, tmp_path / "m.priory")
    assert np.array_equal(load(tmp_path / "m.priory").predict_log_proba(x), model.predict_log_proba(x))


def test_what_three_columns_say_together_is_learned():
    x, y = parity_of_three(1500)
    assert pr.NaiveBayes().fit(x[:500], y[:500]).score(x[500:], y[500:]) > 0.9


def test_what_two_columns_say_together_is_learned_and_new_values_say_nothing():
    x, y = mixed(800)
    fresh, truth = mixed(1000, seed=1)
    model = pr.NaiveBayes().fit(x, y)
    assert model.score(fresh, truth) > 0.85
    of_new = model.predict_proba([{"a": a, "b": "new", "c": c} for a in (-2.0, -1.0, 1.0, 2.0) for c in (1.0, 4.0)])
    assert of_new[:, 1].mean() == pytest.approx(np.mean(y == "yes"), abs=0.1)


@pytest.mark.parametrize(("rows", "columns"), [(60, 30), (400, 12)])
def test_on_noise_new_rows_are_answered_with_the_base_rate(rows, columns):
    excess = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 3, (rows + 1000, columns)).astype(str)
        y = np.where(rng.random(rows + 1000) < 0.4, 1, 0)
        model = pr.NaiveBayes().fit(x[:rows], y[:rows])
        p = model.predict_proba(x[rows:])[:, 1]
        share = y[:rows].mean()
        base = np.where(y[rows:] == 1, np.log(share), np.log(1 - share))
        excess.append(np.mean(base - np.where(y[rows:] == 1, np.log(p), np.log(1 - p))))
    assert np.mean(excess) < 0.01
