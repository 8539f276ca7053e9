"""Texts read in one pass: the tokens that are counted, in the rows that are encoded, from both twins."""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priory.core import sharding
from priory.core._kernel import text as compiled
from priory.errors import DataError, ModelTooLargeError
from priory.text import documents as reading
from priory.text import token_bags
from priory.text import tokenizer as tokens
from priory.text.token_bags import read_token_rows
from priory.text.token_counts import count_tokens
from priory.text.tokenizer import Tokenizer, encode_documents
from reference_kernels import text as reference

TOKENIZERS = [
    Tokenizer(),
    Tokenizer(ngram_range=(1, 2)),
    Tokenizer(ngram_range=(2, 3), min_token_length=1),
    Tokenizer(analyzer="char_wb", ngram_range=(2, 3)),
    Tokenizer(stop_words=frozenset({"the"}), extra_tokens="!"),
]
TEXT = st.text(st.sampled_from("ab the\n.!éΣ中😀"), max_size=40)


@contextmanager
def use_twin(twin):
    with pytest.MonkeyPatch.context() as patch:
        for module in (token_bags, tokens):
            patch.setattr(module, "kernel", twin)
        tokens._cached_rule.cache_clear()
        yield
    tokens._cached_rule.cache_clear()


@pytest.fixture(params=[reference, compiled], ids=["reference", "compiled"])
def kernel(request):
    with use_twin(request.param):
        yield request.param


def read_in_two_passes(texts, tokenizer):
    """What one pass has to find: the tokens counted first, and looked up afterwards."""
    counts = count_tokens(texts, np.zeros(len(texts)), 1, tokenizer)
    return counts.arena, counts.ends, encode_documents(texts, counts.index(tokenizer.analyzer), tokenizer)


def check_rows(texts, tokenizer):
    arena, ends, rows = read_token_rows(texts, tokenizer)
    expected_arena, expected_ends, expected = read_in_two_passes(texts, tokenizer)
    assert arena.tobytes() == expected_arena.tobytes()
    assert np.array_equal(ends, expected_ends)
    assert [part.tolist() for part in rows] == [part.tolist() for part in expected]


@settings(max_examples=40, deadline=None)
@given(st.lists(TEXT, max_size=6), st.sampled_from(TOKENIZERS))
def test_one_pass_finds_what_two_passes_find(texts, tokenizer):
    for twin in (reference, compiled):
        with use_twin(twin):
            check_rows(texts, tokenizer)


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_threads_and_batches_change_nothing(kernel, tokenizer, monkeypatch):
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(200)]
    texts = [" ".join(rng.choice(words[: 2 * i + 2], 30)) for i in range(60)]
    once = read_token_rows(texts, tokenizer)
    monkeypatch.setattr(sharding, "N_THREADS", 3)
    monkeypatch.setattr(reading, "CHARACTERS_PER_THREAD", 500)
    monkeypatch.setattr(reading, "CHARACTERS_PER_BATCH", 4_000)
    for documents in (texts, iter(texts)):  # a list is one batch, a stream is several
        arena, ends, rows = read_token_rows(documents, tokenizer)
        assert (arena.tobytes(), ends.tolist()) == (once[0].tobytes(), once[1].tolist())
        assert all(np.array_equal(a, b) for a, b in zip(rows, once[2], strict=True))


def test_a_long_document_and_one_without_tokens(kernel):
    check_rows([" ".join(f"w{i % 700}" for i in range(5000)), "", "?", "word"], Tokenizer(ngram_range=(2, 2)))


def test_a_document_that_is_no_text_is_named():
    with pytest.raises(DataError, match="document 1: byte 4 is not UTF-8"):
        read_token_rows([b"fine", b"not \xff"], Tokenizer())


def test_texts_that_do_not_fit_into_memory_are_refused(monkeypatch):
    class FullReader:
        def read(self, documents, rule):
            raise MemoryError

    monkeypatch.setattr(token_bags.kernel, "BagReader", FullReader)
    with pytest.raises(ModelTooLargeError, match="the texts to keep do not fit into memory; set memory to fewer"):
        read_token_rows(["text"], Tokenizer())
