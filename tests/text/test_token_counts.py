"""The record of texts: learning adds, forgetting subtracts, bit for bit; vocabularies align by themselves."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from priory import TextClassifier
from priory.errors import NotLearnedError
from priory.model.model_statistics import ModelStatistics
from priory.text.token_counts import count_tokens, make_empty_token_counts
from priory.text.tokenizer import Tokenizer

RULE = Tokenizer(min_token_length=1, ngram_range=(1, 2))
TEXTS = st.lists(st.text(st.sampled_from("ab é中."), max_size=12), min_size=1, max_size=8)


def learnt(texts, start=0, weight=None, groups=2):
    group = ((np.arange(len(texts)) + start) % groups).astype(np.int32)
    return count_tokens(texts, group, groups, RULE, weight, binary=False)


def same(a, b):
    a, b = a.sort_tokens(), b.sort_tokens()
    assert a.tokens() == b.tokens()
    assert np.array_equal(a.counts, b.counts)
    assert np.array_equal(a.n, b.n)


@given(TEXTS, st.integers(0, 8))
def test_any_split_learns_the_same(texts, cut):
    whole, a, b = learnt(texts), learnt(texts[:cut]), learnt(texts[cut:], cut)
    same(a + b, whole)
    same(b + a, whole)
    same(sum([a, b]), whole)
    same(whole + make_empty_token_counts(2), whole)


@given(TEXTS, st.integers(0, 8))
def test_forgetting_equals_never_having_seen(texts, cut):
    whole, a, b = learnt(texts), learnt(texts[:cut]), learnt(texts[cut:], cut)
    same(whole - b, a)
    same(whole - a, b)
    assert (whole - whole).tokens() == []


@given(TEXTS, st.integers(1, 4))
def test_a_weight_is_so_many_copies(texts, copies):
    weighted = learnt(texts, weight=np.full(len(texts), float(copies)))
    same(weighted, copies * learnt(texts))
    same(weighted, sum([learnt(texts)] * copies))
    same(0.5 * (2.0 * weighted), weighted)


def test_what_was_not_learned_is_named():
    with pytest.raises(
        NotLearnedError, match=r"^cannot forget 1 of 0 of 'beta': only what was learned can be forgotten\.$"
    ):
        learnt(["alpha", "gamma"]) - learnt(["beta"])
    with pytest.raises(NotLearnedError, match=r"^cannot forget 1 of 0 \(cell 1\)"):
        learnt(["alpha"]) - learnt(["alpha"], start=1)


def test_tokens_without_weight_are_not_there():
    assert learnt(["aa bb", "cc"], weight=np.array([0.0, 1.0])).tokens() == ["cc"]
    assert (0 * learnt(["aa"])).tokens() == []


def test_classes_are_regrouped_and_pooled():
    words = learnt(["aa bb", "bb"])
    wide = words.regroup_classes(np.array([2, 0]), 3).sort_tokens()
    assert wide.n.tolist() == [1.0, 0.0, 1.0]
    assert wide.counts.tolist() == [[0, 0, 1], [0, 0, 1], [1, 0, 1]]
    assert words.pool_classes().sort_tokens().counts.tolist() == [[1], [1], [2]]
    assert words.pool_classes().n.tolist() == [2.0]


def test_it_is_a_part_of_what_a_classifier_has_seen():
    def seen(texts, classes):
        words = count_tokens(texts, np.arange(len(texts), dtype=np.int32), len(texts), RULE)
        return ModelStatistics(np.array(classes), words.n, (words,))

    a, b = seen(["cash now", "see you"], ["ham", "spam"]), seen(["cash"], ["other"])
    both = a + b
    assert both.classes.tolist() == ["ham", "other", "spam"]
    assert both.parts[0].tokens() == ["cash", "cash now", "now", "see", "see you", "you"]
    same((both - b).parts[0].regroup_classes(np.arange(3), 3), a.regroup_classes(np.array([0, 2]), 3).parts[0])
    assert (2 * both).parts[0].counts.sum() == 2 * both.parts[0].counts.sum()


def test_selected_tokens_keep_their_counts():
    words = learnt(["aa bb cc", "bb"]).sort_tokens()
    some = words.take_tokens(words.counts.sum(axis=1) > 1)
    assert some.tokens() == ["bb"]
    assert some.counts.tolist() == [[1.0, 1.0]]


def test_many_classes_take_a_few_tables_of_memory():
    classes, tokens = 5_000, 300
    texts = [f"w{i % tokens} w{(7 * i) % tokens}" for i in range(classes)]
    tracemalloc.start()
    try:
        model = TextClassifier(calibrate=False).fit(texts, [f"class {i}" for i in range(classes)])
        assert model.predict_proba(texts[:3]).shape == (3, classes)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 * 8 * classes * tokens
