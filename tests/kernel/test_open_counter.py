"""Counts of tokens that change document by document: the compiled twin, the readable one, and the records."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from priory.core._kernel import text as compiled
from priory.text.sparse_counts import SparseCounts
from priory.text.token_counts import count_tokens, make_empty_token_counts
from priory.text.tokenizer import Tokenizer, build_character_tables
from reference_kernels import text as reference

WORDS = ["win", "cash", "now", "lunch", "été", "señor", "a" * 40]
DOCUMENTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
ROWS = st.lists(st.tuples(DOCUMENTS, st.integers(0, 1)), min_size=1, max_size=12)


OPEN_COUNTERS = pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])


def open_counter(twin, tokenizer, words, sparse=False):
    split = tokenizer.analyzer == "word"
    if not sparse:
        return twin.OpenCounter(2, words.arena, words.ends, np.ascontiguousarray(words.counts), split)
    counts = SparseCounts.from_csr(csr_array(words.counts))
    return twin.SparseOpenCounter(2, words.arena, words.ends, counts.ends, counts.classes, counts.values, split)


def rule_of(twin, tokenizer):
    if twin is compiled:
        return tokenizer.build_rule(["é"])
    tables = build_character_tables(tokenizer)
    return reference.Rule(tokenizer.analyzer, tokenizer.min_token_length, tokenizer.ngram_range, *tables)


def assert_counts(counter, words):
    assert counter.n_used == len(words)
    assert counter.totals.tolist() == words.counts.sum(axis=0).tolist()


@OPEN_COUNTERS
@pytest.mark.parametrize("twin", [compiled, reference], ids=["compiled", "reference"])
@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 3), (2, 2)])
@pytest.mark.parametrize("once", [True, False])
@settings(max_examples=20)
@given(before=ROWS, after=ROWS)
def test_counts_are_those_of_a_record_whatever_came_and_went(twin, sparse, ngram_range, once, before, after):
    tokenizer = Tokenizer(ngram_range=ngram_range)
    group = np.array([label for _, label in before])
    words = count_tokens([text for text, _ in before], group, 2, tokenizer, binary=once)
    counter, rule = open_counter(twin, tokenizer, words, sparse), rule_of(twin, tokenizer)
    assert_counts(counter, words)
    for text, label in after:
        counter.learn(text, rule, label, once)
    rows = before + after
    labels = np.array([label for _, label in rows])
    assert_counts(counter, count_tokens([text for text, _ in rows], labels, 2, tokenizer, binary=once))
    assert all(counter.forget(text, rule, label, once) for text, label in before)
    rest = count_tokens([text for text, _ in after], labels[len(before) :], 2, tokenizer, binary=once)
    assert_counts(counter, rest)
    for complement in (False, True):
        scores, length = counter.score("win cash, win: zebra", rule, once, 0.5, complement)
        known = open_counter(reference, tokenizer, rest)
        expected = known.score("win cash, win: zebra", rule_of(reference, tokenizer), once, 0.5, complement)
        assert length == expected[1]
        np.testing.assert_allclose(scores, expected[0], rtol=1e-13)


@OPEN_COUNTERS
@pytest.mark.parametrize("twin", [compiled, reference], ids=["compiled", "reference"])
def test_what_was_not_learned_is_not_forgotten_and_nothing_changes(twin, sparse):
    tokenizer = Tokenizer()
    words = count_tokens(["win cash", "cash now"], np.array([0, 1]), 2, tokenizer)
    counter, rule = open_counter(twin, tokenizer, words, sparse), rule_of(twin, tokenizer)
    assert not counter.forget("win now", rule, 0, True)  # "now" is of the other class
    assert not counter.forget("win zebra", rule, 0, True)  # "zebra" of none
    assert not counter.forget("cash cash", rule, 0, False)  # once, not twice
    assert_counts(counter, words)


@OPEN_COUNTERS
@pytest.mark.parametrize("twin", [compiled, reference], ids=["compiled", "reference"])
def test_known_tokens_are_found_by_their_numbers(twin, sparse):
    tokenizer = Tokenizer(ngram_range=(1, 2))
    words = count_tokens(["win cash", "cash now"], np.array([0, 1]), 2, tokenizer)
    counter, rule = open_counter(twin, tokenizer, words, sparse), rule_of(twin, tokenizer)
    nodes, times = counter.find("cash now! cash?", rule)
    name = dict(zip(counter.first_nodes.tolist(), words.tokens(), strict=True))
    assert {name[node]: n for node, n in zip(nodes.tolist(), times.tolist(), strict=True)} == {
        "cash": 2,
        "now": 1,
        "cash now": 1,
    }


@OPEN_COUNTERS
@pytest.mark.parametrize("twin", [compiled, reference], ids=["compiled", "reference"])
def test_a_counter_of_nothing_learns(twin, sparse):
    tokenizer = Tokenizer()
    counter = open_counter(twin, tokenizer, make_empty_token_counts(2), sparse)
    counter.learn(b"win caf\xc3\xa9", rule_of(twin, tokenizer), 1, True)
    assert (counter.n_used, counter.totals.tolist()) == (2, [0.0, 2.0])


@OPEN_COUNTERS
def test_text_that_is_not_utf8_changes_nothing(sparse):
    tokenizer = Tokenizer()
    counter = open_counter(compiled, tokenizer, make_empty_token_counts(2), sparse)
    with pytest.raises(UnicodeError):
        counter.learn(b"win caf\xe9 cash", rule_of(compiled, tokenizer), 1, True)
    assert counter.n_used == 0


@OPEN_COUNTERS
def test_fractions_that_are_forgotten_leave_no_rest(sparse):
    tokenizer = Tokenizer()
    words = count_tokens(["win", "win", "win"], np.zeros(3, int), 2, tokenizer, np.array([0.1, 0.2, 1.0]))
    counter = open_counter(compiled, tokenizer, words, sparse)
    assert counter.forget("win", rule_of(compiled, tokenizer), 0, True)
    assert not counter.forget("win", rule_of(compiled, tokenizer), 0, True)
