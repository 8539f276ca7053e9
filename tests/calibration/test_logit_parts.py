"""The parts of a member's logits: their sum, and the Shapley values of trees and Gaussians."""

from itertools import permutations

import numpy as np
import pytest

import priory as pr
from priory.calibration.tree_member import TreeMember
from priory.core.logspace import log_normalise


@pytest.fixture(scope="module")
def calibrated():
    """A model with all kinds of members, and rows with gaps and a new label."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    rows = [
        {
            "a": float(rng.normal(c)),
            "b": float(rng.normal((c == 1) * 1.5)),
            "c": "xyz"[int(np.clip(c + rng.integers(-1, 2), 0, 2))],
            "d": "uv"[int(rng.random() < 0.5)],
            "e": float(np.round(rng.exponential(1 + c))),
        }
        for c in y
    ]
    for row, c in zip(rows, y, strict=True):  # columns that interact
        row["d"] = "uv"[int((row["a"] > 0.5) ^ (c == 2) ^ (rng.random() < 0.1))]
    model = pr.NaiveBayes().fit(rows[:500], y[:500])
    test = [*rows[500:], rows[0] | {"a": None, "c": "new"}, dict.fromkeys(rows[0])]
    learned = model._learned()
    cells = learned.rows.read_cells(learned.rows.read(test, "answer", learned.statistics)[1])
    return learned.calibrated(), cells


def test_the_parts_of_every_member_add_up_to_its_answer(calibrated):
    model, cells = calibrated
    rows = model.encode_rows(cells)
    assert len({type(member) for member in model.corrections.members}) >= 4
    for member in model.corrections.members:
        parts = member.split_logits(rows)
        total = parts.base + parts.columns.sum(axis=2) + sum(parts.sets.values())
        logits = rows.text_logits.copy()
        for term in member.list_terms(rows.encoding, rows.evidence):
            term.add_rows(rows, logits)
        np.testing.assert_allclose(log_normalise(total), log_normalise(logits), atol=1e-5)


def test_columns_add_nothing_on_average_over_the_learned_rows(calibrated):
    model, _ = calibrated
    corrections = model.corrections
    kept = model.encode_rows(corrections.gaps.list_blocks(corrections.encoding))
    for member in corrections.members:
        parts = member.split_logits(kept)
        spread = np.abs(parts.columns).mean(axis=0)
        average = np.abs(np.tensordot(corrections.gaps.weight, parts.columns, axes=1)) / corrections.gaps.weight.sum()
        assert (average <= 0.02 + 0.25 * spread).all()


@pytest.mark.parametrize("columns", [(0, 1, 2), (1, 0, 1), (2, 2, 2)])
def test_trees_are_split_by_the_average_over_all_orders_of_their_columns(columns):
    rng = np.random.default_rng(0)
    leaves, cover = rng.normal(size=(1, 8, 1)), rng.integers(0, 9, (1, 8)).astype(float)
    tests = np.array([[(column, 0) for column in columns]], dtype=np.int16)
    member = TreeMember((np.zeros(1),) * 3, np.zeros(3, int), tests, leaves, cover, np.zeros(2))

    def average(leaf, known):
        tested = [k for k in range(3) if columns[k] in known]
        same = [all((other >> 2 - k & 1) == (leaf >> 2 - k & 1) for k in tested) for other in range(8)]
        return np.average(leaves[0, same, 0], weights=cover[0, same] + 1e-9)

    for leaf in range(8):
        expected, orders = np.zeros(3), list(permutations(set(columns)))
        for order in orders:
            for place, column in enumerate(order):
                added = average(leaf, order[: place + 1]) - average(leaf, order[:place])
                expected[columns.index(column)] += added / len(orders)
        np.testing.assert_allclose(member._shapley_values[0, leaf, :, 0], expected, atol=1e-9)
