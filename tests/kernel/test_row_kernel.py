"""Loops over the cells of a single row: the compiled ones beside their readable twins."""

import numpy as np
import pytest

from priory.core._kernel import rows
from reference_kernels import rows as rows_reference

RNG = np.random.default_rng(0)


def run_both(name, classes, *arguments):
    """What both twins make of the same numbers."""
    start = RNG.normal(size=classes)
    found = []
    for kernel in (rows, rows_reference):
        out = start.copy()
        getattr(kernel, name)(*arguments, out)
        found.append(out)
    return found


@pytest.mark.parametrize("classes", [1, 2, 5])
@pytest.mark.parametrize("n_places", [0, 1, 300])
def test_weights_are_added_as_by_the_twin(classes, n_places):
    weights = RNG.normal(size=(50, classes))
    assert np.allclose(*run_both("add_weights", classes, weights, RNG.integers(0, 40, n_places), 10, 0.3))


@pytest.mark.parametrize("order", [2, 3])
def test_cells_of_sets_are_added_as_by_the_twin_and_new_labels_have_none(order):
    sets, levels = RNG.integers(0, 6, (9, order)), np.array([0, 3, -1, 2, 1, 3])
    weights = RNG.normal(size=(5 + 9 * 4**order, 3))
    assert np.allclose(*run_both("add_cells", 3, weights, levels, sets, 4, 5))


@pytest.mark.parametrize("odd", [-1.0, -np.inf, -1e9])
def test_evidence_is_weighed_as_by_the_twin(odd):
    values = RNG.normal(size=(3, 5))
    values[1, 2] = values[:, 3] = odd
    lengths, weights, exponents = RNG.uniform(0.1, 2, 4), RNG.uniform(size=9), RNG.uniform(size=9)
    evidence = values[:, 1:], np.array([1, 4, 8, 0]), lengths, weights, exponents, -1e4
    assert np.allclose(*run_both("weigh_parts", 3, *evidence))


@pytest.mark.parametrize("scale", [1.0, 2000.0])
@pytest.mark.parametrize("share", [0.0, 0.9, 1.0])
def test_members_are_mixed_as_by_the_twin(scale, share):
    exponents = np.array([0.2, 0.5, 0.3])
    found, expected = run_both("mix_members", 4, scale * RNG.normal(size=(4, 4)), exponents, share)
    assert np.allclose(found, expected)
    assert np.exp(found).sum() == pytest.approx(1.0)


def test_a_place_that_is_not_there_is_an_error():
    with pytest.raises(IndexError):
        rows.add_weights(np.ones((3, 2)), np.array([3]), 0, 1.0, np.zeros(2))
    with pytest.raises(IndexError):
        rows.add_cells(np.ones((3, 2)), np.array([0, 5]), np.array([[0, 1]]), 2, 0, np.zeros(2))


CELLS = [0.0, -0.0, 1.0, 2.0, 3.0, 0.5, -1.5, 1024.0, 1025.0, 5e-324, 1e-300, 1e16, 1e17, 1.7e308, -1.7e308, np.nan]


def test_numbers_are_hashed_as_by_the_twin():
    x, keys = np.array(CELLS), RNG.integers(0, 1 << 63, len(CELLS)).astype(np.uint64)
    assert rows.hash_numbers(x, keys) == rows_reference.hash_numbers(x, keys) != 0


def make_guards(kernel, x):
    """Guards of every kind that have counted these rows, (rows, columns)."""
    n_columns = x.shape[1]
    zero = np.zeros(n_columns)
    guards = [
        kernel.SupportGuard(0, 1, True, zero, zero, zero),
        kernel.SupportGuard(0, 2.0**53, True, zero, zero, zero),
        kernel.SupportGuard(1e-300, 1e300, False, zero, zero),
        kernel.MomentsGuard(np.ones(n_columns), zero, zero, zero),
        kernel.RoundedGuard([np.array([1.0])] * n_columns, [np.array([3.0])] * n_columns, 10),
    ]
    for guard in guards:
        for row in x:
            guard.count(row, 1)
    return guards


@pytest.mark.parametrize("seed", range(20))
def test_guards_decide_as_their_twins(seed):
    rng, cells = np.random.default_rng(seed), CELLS if seed % 2 else CELLS[:9]
    x = rng.choice(cells, (40, 2))
    tried = np.concatenate([rng.permuted(x, axis=0), rng.choice(cells, (20, 2))])
    for guard, twin in zip(make_guards(rows, x), make_guards(rows_reference, x), strict=True):
        decisions = []
        for row in tried:
            decisions.append(guard.allows(row))
            assert twin.allows(row) == decisions[-1]
            if decisions[-1]:
                guard.count(row, -1)
                twin.count(row, -1)
        assert cells is CELLS or 0 < sum(decisions) < len(decisions)
