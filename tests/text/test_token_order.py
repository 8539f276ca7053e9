"""Vocabularies have one order, that of their code points, however their tokens were met."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from priory.text.token_bags import find_token_order, is_sorted_vocabulary
from priory.text.token_counts import TokenCounts
from priory.text.tokenizer import encode_vocabulary

letters = st.characters(exclude_categories=["Cs"])
tokens = st.one_of(
    st.text(letters, min_size=1, max_size=30),
    st.text(st.sampled_from("ab\0é😀"), min_size=1, max_size=20),  # many with the same beginning
)
vocabularies = st.lists(tokens, unique=True, max_size=60)


def make_record(words):
    """Each token counted as often as it is long."""
    arena, ends = encode_vocabulary(words)
    counts = np.array([[float(len(word))] for word in words]).reshape(len(words), 1)
    return TokenCounts(np.array([100.0]), arena, ends, counts).sort_tokens()


@given(vocabularies)
def test_tokens_are_sorted_by_their_code_points(words):
    arena, ends = encode_vocabulary(words)
    assert [words[i] for i in find_token_order(arena, ends)] == sorted(words)
    assert is_sorted_vocabulary(arena, ends) == (words == sorted(words))
    assert is_sorted_vocabulary(*encode_vocabulary(sorted(words)))


@given(vocabularies, vocabularies, st.integers(0, 200))
def test_a_sum_has_one_order_whatever_the_order_of_its_terms(few, many, filling):
    many = sorted({*many, *(f"word{i}" for i in range(40 * filling // (1 + len(few))))})
    one, other = make_record(few), make_record(many)
    both, same = one + other, other + one
    assert both.tokens() == same.tokens() == sorted({*few, *many})
    assert (both.counts == same.counts).all()
    assert both.counts[:, 0].tolist() == [len(w) * ((w in few) + (w in many)) for w in both.tokens()]
    assert (both - one).tokens() == many
    assert (both - other).tokens() == sorted(few)
