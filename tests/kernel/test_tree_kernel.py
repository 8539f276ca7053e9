"""Boosted oblivious trees: the compiled loops and their readable twin."""

import numpy as np
import pytest

from priory.core._kernel import trees
from reference_kernels import trees as trees_reference

KERNELS = pytest.mark.parametrize("kernel", [trees, trees_reference])


def grow(kernel, codes, group, n_logits=1, weight=None, is_label=None, n_trees=3, depth=2, rate=0.5, ridge=0.3):
    """Grow trees that may test every column; return tests, leaves, cover and the logits of the rows."""
    rows, columns = codes.shape[1], np.tile(np.arange(len(codes), dtype=np.int32), (n_trees, 1))
    is_label = np.zeros(len(codes), np.uint8) if is_label is None else is_label
    weight = np.ones(rows) if weight is None else weight
    logits, cover = np.zeros((rows, n_logits)), np.empty((n_trees, 1 << depth), np.float32)
    tests = np.empty((n_trees, depth, 2), np.int16)
    leaves = np.empty((n_trees, 1 << depth, n_logits), np.float32)
    n_codes = codes.max(axis=1).astype(np.int32) + 1
    data = codes, n_codes, is_label, group.astype(np.int32), weight, columns
    kernel.grow_trees(*data, rate, ridge, logits, tests, leaves, cover)
    return tests, leaves, cover, logits


def make_codes(seed, rows=120, columns=5):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 7, (columns, rows)).astype(np.uint8)
    return codes, rng


@pytest.mark.parametrize("n_logits", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_the_compiled_loop_grows_the_trees_of_its_twin(n_logits, seed):
    codes, rng = make_codes(seed)
    group = (codes[0] > 3) + 1 * (codes[1] == 2) if n_logits == 3 else (codes[0] > 3) ^ (codes[1] == 2)
    group = np.where(rng.random(120) < 0.1, 0, group)
    weight = rng.integers(0, 3, 120).astype(float)
    is_label = np.array([0, 1, 0, 1, 0], np.uint8)
    found, expected = (
        grow(kernel, codes, group, n_logits, weight, is_label, n_trees=4, depth=3)
        for kernel in (trees, trees_reference)
    )
    assert np.array_equal(found[0], expected[0])
    for one, other in zip(found[1:], expected[1:], strict=True):
        assert np.allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n_logits", [1, 3])
def test_the_cut_of_a_number_with_many_codes_is_found_among_all_of_them(n_logits):
    rng = np.random.default_rng(n_logits)
    codes = rng.integers(0, 240, (3, 400)).astype(np.uint8)
    codes[1] //= 2  # not as many
    group = (codes[0] > 101) + (codes[1] > 70 if n_logits == 3 else 0)
    found, expected = (grow(kernel, codes, group, n_logits, n_trees=3, depth=3) for kernel in (trees, trees_reference))
    if n_logits == 1:
        assert found[0][0, 0].tolist() == [0, 101]
    assert np.array_equal(found[0], expected[0])
    for one, other in zip(found[1:], expected[1:], strict=True):
        assert np.allclose(one, other, rtol=1e-5, atol=1e-6)


@KERNELS
def test_one_test_that_separates_the_classes_is_found_and_leaves_are_newton_steps(kernel):
    codes = np.array([[0, 1, 0, 1, 0, 1], [0, 1, 2, 3, 4, 5]], dtype=np.uint8)
    group = np.array([0, 0, 0, 0, 1, 1])
    tests, leaves, cover, logits = grow(kernel, codes, group, n_trees=1, depth=1, rate=1.0, ridge=1.0)
    assert tests[0].tolist() == [[1, 3]]
    assert cover[0].tolist() == [4, 2]
    # at p = 1/2: sum of (y - p) over sum of p (1 - p) plus the ridge
    assert np.allclose(leaves[0, :, 0], [-2 / 2, 1 / 1.5])
    assert np.allclose(logits[:, 0], np.repeat([-1, 2 / 3], [4, 2]))


@KERNELS
def test_labels_are_tested_for_equality_and_ties_go_to_the_first_column(kernel):
    codes = np.array([[0, 1, 2, 0, 1, 2]] * 2, dtype=np.uint8)
    group = np.array([0, 1, 0, 0, 1, 0])
    tests, _, cover, _ = grow(kernel, codes, group, n_trees=1, depth=1, is_label=np.ones(2, np.uint8))
    assert tests[0].tolist() == [[0, 1]]
    assert cover[0].tolist() == [4, 2]


@KERNELS
def test_rows_without_weight_are_answered_but_teach_nothing(kernel):
    codes, rng = make_codes(9)
    group, weight = (codes[2] > 2).astype(int), (rng.random(120) < 0.7).astype(float)
    *found, logits = grow(kernel, codes, group, weight=weight)
    *other, _ = grow(kernel, codes, np.where(weight > 0, group, 1 - group), weight=weight)
    assert all(map(np.array_equal, found, other))
    out = weight == 0
    assert ((logits[out, 0] > 0) == (codes[2, out] > 2)).all()


@KERNELS
def test_trees_are_added_in_turn(kernel):
    codes, _ = make_codes(3)
    group = codes[0].astype(int) % 3
    tests, leaves, _, logits = grow(kernel, codes, group, n_logits=3, n_trees=5, depth=4)
    again = np.zeros_like(logits)
    kernel.add_trees(codes, np.zeros(5, np.uint8), tests[:2], leaves[:2], again)
    kernel.add_trees(codes, np.zeros(5, np.uint8), tests[2:], leaves[2:], again)
    assert np.array_equal(again, logits)


@KERNELS
@pytest.mark.parametrize("rows", [0, 1])
def test_hardly_any_rows_make_finite_leaves(kernel, rows):
    weight = np.zeros(4)
    weight[:rows] = 1.0
    codes = np.zeros((2, 4), dtype=np.uint8)
    _, leaves, cover, logits = grow(kernel, codes, np.array([1, 0, 0, 1]), weight=weight)
    assert np.isfinite(leaves).all()
    assert np.isfinite(logits).all()
    assert cover.sum() == 3 * rows


def test_the_compiled_exponential_is_the_exponential():
    """The probabilities behind the first leaves are softmax of any logits, and huge ones are no accident."""
    for start in (0.0, 3.0, -30.0, 800.0, -800.0):
        logits = np.array([[start], [start]])
        arrays = np.empty((1, 1, 2), np.int16), np.empty((1, 2, 1), np.float32), np.empty((1, 2), np.float32)
        codes, group = np.zeros((1, 2), np.uint8), np.array([0, 1], np.int32)
        data = codes, np.ones(1, np.int32), np.zeros(1, np.uint8), group, np.ones(2), np.zeros((1, 1), np.int32)
        trees.grow_trees(*data, 1.0, 1.0, logits, *arrays)
        p = 1 / (1 + np.exp(-np.float64(start))) if start > -700 else 0.0
        assert np.allclose(arrays[1][0, 0, 0], (1 - 2 * p) / (2 * p * (1 - p) + 1), rtol=1e-6)
