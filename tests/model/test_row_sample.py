"""A sample of rows adds and subtracts: what it keeps depends on the rows alone, not on how they came."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from priory.core.content_hash import hash_content
from priory.core.value_counts import CategoricalCells
from priory.errors import NotLearnedError
from priory.model.cells import (
    NO_LIMIT,
    LabelCells,
    NumberCells,
    RowSample,
    TextCells,
    find_limit_above,
    find_limit_below,
    hash_labelled_rows,
    split_weights,
)
from priory.text.tokenizer import Tokenizer
from priory.text.vocabulary import GrowingVocabulary

CLASSES = np.array(["ham", "spam"], dtype=object)
NAMES = [("size", "age"), ("colour",), ("text",)]
numbers = st.sampled_from([0.0, -0.0, 1.5, -2.0, 1e300, 5e-324, float("nan")])
labels = st.sampled_from(["red", "green", "ÄÖ", None])
texts = st.sampled_from(["", "win cash", "lunch at noon", "cash cash"])
rows = st.tuples(numbers, numbers, labels, texts, st.integers(0, 1))


def make_sample(given_rows, memory=1000, weight=None):
    sizes, ages, colours, documents, group = zip(*given_rows, strict=True) if given_rows else ([],) * 5
    cells = [
        NumberCells(np.column_stack([np.array(sizes, float), np.array(ages, float)])),
        LabelCells(CategoricalCells.of(np.array(colours, dtype=object))),
        TextCells(list(documents)),
    ]
    return RowSample.of(NAMES, cells, CLASSES, np.array(group, int), weight, memory, keep_cells)[0]


def keep_cells(cells):
    return [*cells[:2], TextCells(GrowingVocabulary(Tokenizer()).read_bags(cells[2].data))]


@given(st.lists(rows, min_size=1, max_size=30), st.randoms(use_true_random=False), st.integers(1, 12))
def test_order_and_batches_do_not_matter(given_rows, random, memory):
    whole = make_sample(given_rows, memory)
    assert whole.find_fault() is None
    shuffled = random.sample(given_rows, len(given_rows))
    cut = random.randint(0, len(shuffled))
    parts = [make_sample(part, memory) for part in (shuffled[:cut], shuffled[cut:]) if part]
    assert hash_content(sum(parts[1:], parts[0])) == hash_content(whole)
    assert hash_content(sum(parts[:-1], parts[-1])) == hash_content(whole)


@given(st.lists(rows, min_size=1, max_size=20), st.lists(rows, min_size=1, max_size=20))
def test_what_is_forgotten_was_never_there(kept, forgotten):
    both = make_sample(kept + forgotten)
    assert both.is_complete
    assert hash_content(both - make_sample(forgotten)) == hash_content(make_sample(kept))


@given(st.lists(rows, min_size=1, max_size=30))
def test_weights_are_repeated_rows(given_rows):
    weight = np.arange(len(given_rows)) % 3.0
    repeated = [row for row, w in zip(given_rows, weight, strict=True) for _ in range(int(w))]
    if repeated:
        assert hash_content(make_sample(given_rows, weight=weight)) == hash_content(make_sample(repeated))


def test_a_row_that_was_not_learned_cannot_be_forgotten():
    sample = make_sample([(1.5, 0.0, "red", "win cash", 0), (1.5, 1.5, "green", "win cash", 0)])
    with pytest.raises(NotLearnedError):  # each of its cells was learned, but not in one row
        sample - make_sample([(1.5, 1.5, "red", "win cash", 0)])
    with pytest.raises(NotLearnedError):  # it was learned once
        sample - make_sample([(1.5, 0.0, "red", "win cash", 0)] * 2)


def test_beyond_its_memory_it_keeps_a_fair_share():
    random = np.random.default_rng(0)
    x = NumberCells(random.normal(size=(20_000, 2)))
    group = (np.arange(20_000) < 4_000).astype(int)
    sample, positions = RowSample.of(NAMES[:1], [x], CLASSES, group, None, 2_000, list)
    assert 2_200 <= len(sample) == len(positions) < 2_400  # with the reserve
    assert sample.limit == find_limit_above(int(sample.hashes[2_199]))
    assert (sample.hashes < np.uint64(find_limit_below(sample.limit))).sum() < 2_200
    used = sample.take_used()
    assert len(used) == 2_000
    assert used.limit == int(sample.hashes[2_000])
    assert used.estimate_rows() == pytest.approx(20_000, rel=0.1)
    assert not sample.is_complete
    assert abs(sample.group.mean() - 0.2) < 4 * np.sqrt(0.2 * 0.8 / 2_000)
    assert (sample.blocks[0].data == x.data[positions]).all()
    # a row above the limit leaves no trace, in either direction
    far = np.flatnonzero(hash_labelled_rows(NAMES[:1], [x], CLASSES, group) >= np.uint64(sample.limit))[:1]
    other = RowSample.of(NAMES[:1], [x.take_rows(far)], CLASSES, group[far], None, 2_000, list)[0]
    assert hash_content(sample + other) == hash_content(sample - other) == hash_content(sample)
    # what was dropped does not come back, so that late rows are not preferred
    left = sample - sample.take(np.arange(500))
    assert len(left + other) == len(sample) - 500


def test_while_the_reserve_is_there_a_forgotten_row_leaves_no_trace_in_the_sample():
    x = NumberCells(np.random.default_rng(1).normal(size=(4_000, 2)))
    group = np.zeros(4_000, int)

    def make(rows):
        return RowSample.of(NAMES[:1], [x.take_rows(rows)], CLASSES, group[rows], None, 1_000, list)

    sample, positions = make(np.arange(4_000))
    assert sample.limit not in hash_labelled_rows(NAMES[:1], [x], CLASSES, group)
    for gone in (1, len(sample) - 1_100, len(sample) - 1_099):  # the last one is too many for the reserve
        left = sample - sample.take(np.arange(gone))
        never, _ = make(np.setdiff1d(np.arange(4_000), positions[:gone]))
        assert (hash_content(left) == hash_content(never)) is (len(left) >= 1_100)
        assert hash_content(left.take_used().blocks) == hash_content(never.take_used().blocks)


def test_one_row_more_pushes_at_most_one_other_out_of_use():
    """As private releases assume; the reserve may lose many at once."""
    x = NumberCells(np.random.default_rng(2).normal(size=(600, 2)))
    group = np.zeros(600, int)
    rows = [RowSample.of(NAMES[:1], [x.take_rows([i])], CLASSES, group[:1], None, 100, list)[0] for i in range(600)]
    sample, dropped = rows[0], 0
    for row in rows[1:]:
        more = sample + row
        assert more.take_used().count_changes(sample.take_used()) <= 2
        sample, dropped = more, max(dropped, len(sample) + 1 - len(more))
    assert dropped > 2


def test_columns_are_known_by_name_and_missing_cells_add_nothing():
    x = np.array([[1.0, 2.0], [np.nan, 2.0]])
    group = np.zeros(2, int)
    straight = hash_labelled_rows([("a", "b")], [NumberCells(x)], CLASSES, group)
    turned = hash_labelled_rows([("b", "a")], [NumberCells(x[:, ::-1])], CLASSES, group)
    assert (straight == turned).all()
    assert straight[1] == hash_labelled_rows([("b",)], [NumberCells(x[1:, 1:])], CLASSES, group[:1])[0]
    assert straight[0] != hash_labelled_rows([("a", "c")], [NumberCells(x)], CLASSES, group)[0]
    assert int(straight.max()) < NO_LIMIT


@given(st.lists(rows, min_size=1, max_size=30), st.integers(2, 10))
def test_folds_share_out_the_weights(given_rows, folds):
    sample = make_sample(given_rows)
    weights = split_weights(sample, folds)
    assert weights.sum(axis=0) == pytest.approx(sample.weight)
    assert (weights >= 0).all()
    for c in (0, 1):  # each class is spread evenly
        of_class = weights[:, sample.group == c].sum(axis=1)
        assert of_class.max() - of_class.min() <= 1
