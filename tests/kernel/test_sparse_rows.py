"""Products of sparse rows: the compiled loops and their readable twins, on any number of threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array

from priory._kernel import sparse, sparse_reference
from priory.core import sparse_rows
from priory.core.sparse_rows import SparseRows, compute_log_losses, join_columns, score_column_sets


def make_rows(seed, rows=40, width=12, ones=False):
    rng = np.random.default_rng(seed)
    table = csr_array(random_array((rows, width), density=0.3, rng=rng, format="csr"))
    if ones:
        table.data[:] = 1
    return SparseRows.from_csr(table)


@pytest.mark.parametrize("kernel", [sparse, sparse_reference])
@pytest.mark.parametrize("ones", [False, True])
def test_a_product_is_that_of_scipy(kernel, ones):
    rows = make_rows(0, ones=ones)
    dense = np.random.default_rng(1).normal(size=(12, 16)).astype(np.float32)
    out = np.empty((40, 16), dtype=np.float32)
    kernel.multiply_rows(rows.ends, rows.indices, rows.data, dense, out, 0, 40)
    assert np.allclose(out, rows.csr @ dense, atol=1e-5)
    assert (rows.data is None) == ones


@pytest.mark.parametrize("n_logits", [1, 3])
def test_losses_and_slopes_are_those_of_the_twin(n_logits):
    rng = np.random.default_rng(2)
    logits = (30 * rng.normal(size=(50, 16))).astype(np.float32)
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
        assert np.array_equal(rows.take_columns(np.array([1, 4, 9])).csr.toarray(), rows.csr.toarray()[:, [1, 4, 9]])


def test_columns_side_by_side_and_transposed():
    left, right = make_rows(3), make_rows(4, width=5)
    both = join_columns([left, right])
    assert np.allclose(both.csr.toarray(), np.hstack([left.csr.toarray(), right.csr.toarray()]))
    assert np.allclose(both.transposed.csr.toarray(), both.csr.toarray().T)
