"""Counts of values: parts are added and subtracted at their own cost, and a part of a long table is its own labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from priory.core._kernel import tables as kernel
from priory.core.column_kernels import count_values
from priory.core.content_hash import hash_value
from priory.core.statistics import Statistics
from priory.core.value_counts import ValueCounts, round_to_bits, take_shown_values
from priory.errors import KindError, NotLearnedError
from priory.model import cells
from priory.model.cells import LabelCells, hash_labelled_rows


def draw_counts(rng, values):
    return ValueCounts.of(np.array(values, dtype=object), rng.integers(3, size=(2, len(values))).astype(float))


@given(seed=st.integers(0, 2**32))
def test_a_smaller_record_is_added_and_subtracted_as_any_other_is(seed):
    rng = np.random.default_rng(seed)
    total, part = draw_counts(rng, list("abcdefgh")), draw_counts(rng, list("bdz"[: rng.integers(1, 4)]))
    for ours, expected in [(total + part, Statistics.__add__(total, part)), (total + part - part, total)]:
        assert ours.values.tolist() == expected.values.tolist()
        assert np.array_equal(ours.counts, expected.counts)
        assert ours.counts.flags.c_contiguous


def test_values_vanish_with_their_last_row():
    total = ValueCounts(np.array(["a", "b", "c"], dtype=object), np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 4.0]]))
    left = total - ValueCounts(np.array(["b"], dtype=object), np.array([[2.0], [0.0]]))
    assert left.values.tolist() == ["a", "c"]
    assert left.counts.tolist() == [[1.0, 0.0], [0.0, 4.0]]


def test_what_cannot_be_subtracted_is_named_by_its_place_in_the_whole_record():
    total = ValueCounts(np.array(["a", "b", "c"], dtype=object), np.array([[1.0, 2.0, 3.0]]))
    with pytest.raises(NotLearnedError) as caught:
        total - ValueCounts(np.array(["c"], dtype=object), np.array([[4.0]]))
    assert caught.value.index == (0, 2)


def test_a_smaller_record_of_another_type_is_refused():
    total = ValueCounts(np.array(["a", "b"], dtype=object), np.ones((1, 2)))
    with pytest.raises(KindError, match=r"values such as 'a' and 1\.0 are of different types"):
        total + ValueCounts(np.array([1.0]), np.ones((1, 1)))


@pytest.mark.parametrize("weighted", [False, True])
def test_with_many_classes_the_counts_are_those_of_the_kernel(weighted):
    rng = np.random.default_rng(0)
    x, group = rng.normal(size=(2000, 1)), rng.integers(100, size=2000).astype(np.int32)
    x[::7], x[::11] = np.nan, -0.0
    weight = rng.random(2000) if weighted else None
    [(values, counts)] = count_values(x, group, weight, 100, 10)
    expected, expected_counts = kernel.value_counts(x[:, 0].copy(), group, weight, 100, 10)
    assert np.array_equal(values, expected)
    assert np.array_equal(counts, expected_counts)
    assert set(values) == set(round_to_bits(x[~np.isnan(x)], 10))


def test_a_part_of_a_column_keeps_the_labels_that_it_shows():
    values = np.array(["a", "b", "c", "d", "e"], dtype=object)
    codes, shown = take_shown_values(np.array([3, -1, 1], dtype=np.int32), values)
    assert (codes.tolist(), shown.tolist()) == ([1, -1, 0], ["b", "d"])
    assert take_shown_values(np.zeros(5, dtype=np.int32), values)[1] is values


def test_each_label_of_a_long_table_is_hashed_about_once(monkeypatch):
    rows, n_hashed = 100_000, []
    monkeypatch.setattr(cells, "hash_value", lambda value: n_hashed.append(1) or hash_value(value))
    labels = cells.CategoricalCells(
        np.arange(rows, dtype=np.int32)[:, None], (np.array([f"{i:06}" for i in range(rows)], dtype=object),)
    )
    group = np.zeros(rows, dtype=np.int32)
    hashes = hash_labelled_rows([["name"]], [LabelCells(labels)], np.array(["class"], dtype=object), group)
    assert len(np.unique(hashes)) == rows
    assert len(n_hashed) == rows + 1  # the labels and the class
