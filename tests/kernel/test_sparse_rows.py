"""Products of sparse rows: the compiled loops and their readable twins, on any number of threads."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from priory.calibration.solvers import DualAscent, TokenRegression, compute_probabilities
from priory.core import sparse_rows
from priory.core._kernel import sparse
from priory.core.sparse_rows import (
    SparseRows,
    compute_log_losses,
    join_columns,
    score_column_sets,
    sort_entries,
    sum_entries_by_class,
)
from reference_kernels import sparse as sparse_reference
from sparse_tables import to_csr


def make_rows(seed, rows=40, width=12, ones=False):
    rng = np.random.default_rng(seed)
    table = csr_array(random_array((rows, width), density=0.3, rng=rng, format="csr"))
    if ones:
        table.data[:] = 1
    dense = SparseRows.from_dense(table.toarray())
    return replace(dense, data=None) if ones else dense


@pytest.mark.parametrize("kernel", [sparse, sparse_reference])
@pytest.mark.parametrize("ones", [False, True])
def test_a_product_is_that_of_scipy(kernel, ones):
    rows = make_rows(0, ones=ones)
    dense = np.random.default_rng(1).normal(size=(12, 16)).astype(np.float32)
    out = np.empty((40, 16), dtype=np.float32)
    kernel.multiply_rows(rows.ends, rows.indices, rows.data, dense, out, 0, 40)
    assert np.allclose(out, to_csr(rows) @ dense, atol=1e-5)
    assert (rows.data is None) == ones


@pytest.mark.parametrize("kernel", [sparse, sparse_reference])
@pytest.mark.parametrize(("real", "column"), [(np.float32, np.int32), (np.float64, np.int64)])
def test_products_of_any_width_and_the_order_of_columns_are_those_of_scipy(kernel, real, column):
    rows, rng = make_rows(0), np.random.default_rng(1)
    table, indices, data = to_csr(rows), rows.indices.astype(column), rows.values.astype(real)
    left, right = (rng.normal(size=(n, 3)).astype(real) for n in (40, 12))
    out, transposed = np.zeros((40, 3), real), np.zeros((12, 3), real)
    kernel.add_products(rows.ends, indices, data, right, out)
    kernel.add_transposed_products(rows.ends, indices, data, left, transposed)
    assert np.allclose(out, table @ right, atol=1e-5)
    assert np.allclose(transposed, table.T @ left, atol=1e-5)
    assert np.array_equal(kernel.order_entries(indices, 12), np.argsort(indices, kind="stable"))


@pytest.mark.parametrize("kernel", [sparse, sparse_reference])
def test_rows_of_parts_are_united(kernel):
    rng = np.random.default_rng(0)
    ends, part_ends = (np.append(0, np.cumsum(rng.integers(0, 5, n))) for n in (30, 20))
    ids, parts = rng.integers(0, 20, ends[-1]), rng.integers(0, 12, part_ends[-1]).astype(np.int32)
    counted, united = np.zeros(31, np.int64), np.zeros(31, np.int64)
    kernel.unite_rows(ends, ids, part_ends, parts, np.full(12, -1), None, counted)
    out = np.empty(counted[-1], np.int32)
    kernel.unite_rows(ends, ids, part_ends, parts, np.full(12, -1), out, united)
    assert np.array_equal(counted, united)
    for i in range(30):
        own = {p for e in ids[ends[i] : ends[i + 1]] for p in parts[part_ends[e] : part_ends[e + 1]].tolist()}
        found = out[united[i] : united[i + 1]].tolist()
        assert len(found) == len(own)
        assert set(found) == own


@pytest.mark.parametrize("scale", [0.1, 30, 1000])
@pytest.mark.parametrize("n_logits", [1, 3])
def test_losses_and_slopes_are_those_of_the_twin(n_logits, scale):
    rng = np.random.default_rng(2)
    logits = (scale * rng.normal(size=(50, 16))).astype(np.float32)
    group = rng.integers(0, max(2, n_logits), 50).astype(np.int32)
    weight = rng.uniform(0, 2, (50, 5)).astype(np.float32)
    losses, wrong = compute_log_losses(logits, group, weight, n_logits)
    twin_losses, twin_wrong = np.empty_like(losses), np.zeros_like(wrong)
    sparse_reference.judge_logits(logits.astype(float), group, weight, n_logits, twin_wrong, twin_losses)
    assert np.allclose(losses, twin_losses, rtol=1e-5, atol=1e-5)
    assert np.allclose(wrong, twin_wrong, atol=1e-5)


@given(st.integers(0, 1000), st.integers(1, 7))
@settings(max_examples=20, deadline=None)
def test_the_number_of_threads_changes_no_bit(seed, threads):
    rows = make_rows(seed)
    dense = np.random.default_rng(seed).normal(size=(12, 8)).astype(np.float32)
    once = rows.multiply(dense)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_rows, "N_THREADS", threads)
        patch.setattr(sparse_rows, "MIN_PRODUCTS_PER_THREAD", 1)
        assert np.array_equal(rows.multiply(dense), once)


@given(st.integers(0, 1000), st.integers(2, 3), st.integers(1, 4))
@settings(max_examples=20, deadline=None)
def test_scores_of_cells_are_those_of_the_twin_on_any_number_of_threads(seed, order, threads):
    rng = np.random.default_rng(seed)
    levels = rng.integers(-1, 4, (60, 5))
    sets = np.array([rng.permutation(5)[:order] for _ in range(7)])
    wrong, chance = rng.normal(size=(60, 8)).astype(np.float32), rng.uniform(0, 0.25, (60, 8)).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_rows, "N_THREADS", threads)
        patch.setattr(sparse_rows, "MIN_PRODUCTS_PER_THREAD", 1)
        found = score_column_sets(levels, sets, 4, wrong, chance)
    twin = np.empty((7, 8))
    sparse_reference.score_cells(levels.T, sets, 4, wrong, chance, np.empty((2, 4**order, 8)), twin, 0, 7)
    assert np.allclose(found, twin, rtol=1e-4, atol=1e-4)


def test_some_of_the_columns():
    for ones in (False, True):
        rows = make_rows(5, ones=ones)
        assert np.array_equal(
            to_csr(rows.take_columns(np.array([1, 4, 9]))).toarray(), to_csr(rows).toarray()[:, [1, 4, 9]]
        )


def test_columns_side_by_side_and_transposed():
    left, ones, right = make_rows(3), make_rows(5, ones=True), make_rows(4, width=5)
    both = join_columns([left, ones, right])
    assert np.array_equal(to_csr(both).toarray(), np.hstack([to_csr(part).toarray() for part in (left, ones, right)]))
    assert join_columns([ones, ones]).data is None
    assert np.allclose(to_csr(both.transposed).toarray(), to_csr(both).toarray().T)


# -- dual ascent -----------------------------------------------------------------------------------------------------


def make_regression(seed, n_logits, rows=60, width=12):
    rng = np.random.default_rng(seed)
    features = make_rows(seed, rows, width)
    group = rng.integers(0, max(2, n_logits), rows)
    offset = rng.normal(size=(rows, n_logits)).astype(np.float32)
    weight = rng.choice([0.5, 1.0, 2.0], rows)
    common = rng.normal(size=width).astype(np.float32)
    common *= 0.9 / np.linalg.norm(common)
    return TokenRegression(features, group, weight, offset, common, np.arange(rows))


@pytest.mark.parametrize("n_logits", [1, 3])
def test_a_pass_of_dual_ascent_is_that_of_the_twin(n_logits):
    problem = make_regression(5, n_logits)
    order, moved = np.arange(60, dtype=np.int32), np.zeros(60, np.float32)
    found = []
    for kernel, dtype in ((sparse, np.float32), (sparse_reference, np.float64)):
        answers = problem.own_class.astype(dtype)
        weights, moved = np.zeros((12, problem.width), dtype), np.zeros(60, dtype)
        rows, common, shift = problem.rows, problem.common_parts, np.zeros(problem.width, dtype)
        squares = rows.squared_lengths - common**2
        given = rows.ends, rows.indices, rows.values, squares, common, problem.offset
        for _ in range(3):
            kernel.ascend_rows(
                *given,
                problem.group.astype(np.int32),
                problem.weight.astype(np.float32),
                0.5,
                order,
                n_logits,
                answers,
                weights,
                shift,
                moved,
            )
        found.append((answers, weights, shift, moved))
    for ours, twin in zip(*found, strict=True):
        assert np.allclose(ours, twin, atol=1e-4)


@given(st.integers(0, 1000), st.sampled_from([1, 3]), st.sampled_from([0.1, 1.0, 10.0]))
@settings(max_examples=30, deadline=None)
def test_dual_ascent_ends_where_the_gradient_is_zero(seed, n_logits, strength):
    problem = make_regression(seed, n_logits)
    search = DualAscent(problem)
    search.ascend(strength, 1000, 1e-6)
    p = compute_probabilities(problem.offset + problem.rows.multiply_columns(search.weights)[:, :n_logits])
    pull = to_csr(problem.rows).T @ ((problem.own_class - p) * problem.weight[:, None])
    held_back = pull - np.outer(problem.common, problem.common @ pull)
    assert np.allclose(strength * search.weights[:, :n_logits], held_back, atol=5e-3)


def test_dual_ascent_starts_from_the_answers_of_another_strength():
    problem = make_regression(7, 3)
    slow, quick = DualAscent(problem), DualAscent(problem)
    slow.ascend(0.5, 300, 0.0)
    quick.ascend(5.0, 50, 0.0)
    quick.ascend(0.5, 300, 0.0)
    assert np.allclose(slow.weights, quick.weights, atol=1e-3)
    again = DualAscent(problem)
    again.start_from(slow.answers, 0.5)
    assert np.allclose(again.weights, slow.weights, atol=1e-3)


@pytest.mark.parametrize("classes", [2, 5])
def test_counts_and_scores_of_rows_left_out_are_those_of_the_twin_and_of_counting_again(classes):
    rng = np.random.default_rng(classes)
    rows, group = make_rows(8), rng.integers(0, classes, 40)
    weight = rng.choice([0.0, 1.0, 3.0], 40)
    counts = rows.count_by_class(group, weight, classes)
    scores, remaining = rows.score_left_out(counts, group, weight, 0.7)
    twin_counts = np.zeros_like(counts)
    sparse_reference.count_entries(rows.ends, rows.indices, None, group, weight, twin_counts)
    assert np.array_equal(counts, twin_counts)
    twin, left = np.zeros_like(scores), np.zeros_like(remaining)
    tables = counts, counts.sum(axis=1), np.log(counts + 0.7)
    sparse_reference.score_left_out(rows.ends, rows.indices, group, weight, 0.7, *tables, twin, left, 0, 40)
    assert np.allclose(scores, twin)
    assert np.array_equal(remaining, left)
    for i in range(40):
        others = weight * (np.arange(40) != i)
        again = rows.count_by_class(group, others, classes)
        columns = rows.indices[rows.ends[i] : rows.ends[i + 1]]
        known = columns[again[columns].sum(axis=1) > 0]
        assert np.allclose(scores[i], np.log(again[known] + 0.7).sum(axis=0))


@pytest.mark.parametrize("kernel", [sparse, sparse_reference])
@pytest.mark.parametrize("size", [0, 20, 400])
def test_entries_are_sorted_row_by_row_with_their_values(kernel, size, monkeypatch):
    monkeypatch.setattr(sparse_rows, "kernel", kernel)
    rng = np.random.default_rng(size)
    sizes = rng.integers(0, size + 1, 30)
    ends = np.append(0, np.cumsum(sizes))
    columns = np.concatenate([np.zeros(0, np.int64), *(rng.permutation(1 << 20)[:n] * 4099 for n in sizes)])
    values = rng.normal(size=len(columns))
    expected = csr_array((values, columns, ends), shape=(30, 1 << 33))
    expected.sort_indices()
    found, moved = sort_entries(ends, columns, values)
    assert np.array_equal(found, expected.indices)
    assert np.array_equal(moved, expected.data)
    assert sort_entries(ends, found, moved)[0] is found  # what is sorted stays as it is


@pytest.mark.parametrize("kernel", [sparse, sparse_reference])
def test_rows_are_taken_in_any_order(kernel, monkeypatch):
    monkeypatch.setattr(sparse_rows, "kernel", kernel)
    rows = make_rows(3)
    for chosen in (np.array([5, 2, 2, 39]), np.arange(0), slice(10, 30), np.arange(40) % 3 == 0):
        taken = rows.take_rows(chosen)
        assert np.array_equal(to_csr(taken).toarray(), to_csr(rows).toarray()[chosen])
        assert taken.data.dtype == np.float32


@pytest.mark.parametrize("kernel", [sparse, sparse_reference])
def test_entries_are_counted_by_class_as_a_product_would(kernel, monkeypatch):
    monkeypatch.setattr(sparse_rows, "kernel", kernel)
    rng = np.random.default_rng(4)
    rows, group, weight = make_rows(4), rng.integers(0, 3, 40), rng.uniform(0, 2, 40)
    columns, values = rows.indices.astype(np.int64), rows.data.astype(float)
    table = csr_array((values, columns, rows.ends), shape=(40, 12)).toarray()
    classes = np.eye(3)[group]
    assert np.allclose(
        sum_entries_by_class(rows.ends, columns, values, group, weight, (12, 3)), table.T * weight @ classes
    )
    assert np.array_equal(
        sum_entries_by_class(rows.ends, columns, None, group, None, (12, 3)), (table.T != 0) @ classes
    )
