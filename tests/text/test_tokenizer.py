"""Tokens: CountVectorizer's in Latin texts, by script in others, the same from both twins, for any input."""

import re
import resource
from unicodedata import is_normalized, normalize

import numpy as np
import pytest
import scipy.sparse
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer

import datasets
from priory.core import sharding
from priory.core._kernel import text as compiled
from priory.errors import DataError, KindError, ModelTooLargeError
from priory.text import documents as reading
from priory.text import tokenizer as tokens
from priory.text import vocabulary as hashing
from priory.text.documents import PackedDocuments
from priory.text.sparse_counts import make_dense_counts
from priory.text.token_counts import count_tokens
from priory.text.tokenizer import (
    TokenIndex,
    Tokenizer,
    encode_documents,
    find_token_spans,
    score_documents,
)
from priory.text.vocabulary import count_hashed_tokens, encode_hashed_documents, score_hashed_tokens
from reference_kernels import text as reference
from worked_examples import WORKED_EXAMPLES

BIG = {"imdb", "20newsgroups_bydate", "spamassassin"}
LIKE_SKLEARN = {
    "words": (Tokenizer(), {}),
    "bigrams": (Tokenizer(ngram_range=(1, 2)), {"ngram_range": (1, 2)}),
    "char": (Tokenizer(analyzer="char", ngram_range=(2, 3)), {"analyzer": "char", "ngram_range": (2, 3)}),
    "char_wb": (Tokenizer(analyzer="char_wb", ngram_range=(2, 4)), {"analyzer": "char_wb", "ngram_range": (2, 4)}),
    "cased": (Tokenizer(lowercase=False, ngram_range=(2, 3)), {"lowercase": False, "ngram_range": (2, 3)}),
    "stopped": (
        Tokenizer(stop_words=frozenset({"the", "of", "über"}), ngram_range=(1, 3)),
        {"stop_words": ["the", "of", "über"], "ngram_range": (1, 3)},
    ),
    "one letter": (Tokenizer(min_token_length=1), {"token_pattern": r"(?u)\b\w+\b"}),
}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
WORDY = st.text(st.sampled_from("aAbZ09_ :\n\t\0.!-éÉßẞΣσςİıǅ中国語กำ٣ªK\u0301\u200d😀𝔘𐐀жЖहि한각ᅡᆨ"), max_size=60)
LATIN = st.text(st.sampled_from("aAbZ09_ \n\t\0.!-éÉßẞıǅªKſÅøŁ÷“”…€😀½²"), max_size=60)
ANY = st.one_of(TEXT, WORDY)


@pytest.fixture(params=["reference", "compiled"])
def kernel(request, monkeypatch):
    twin = {"reference": reference, "compiled": compiled}[request.param]
    monkeypatch.setattr(tokens, "kernel", twin)
    monkeypatch.setattr(hashing, "kernel", twin)
    tokens._cached_rule.cache_clear()
    yield twin
    tokens._cached_rule.cache_clear()


def classes(n, groups=3):
    return (np.arange(n) % groups).astype(np.int32)


def counts_of(vectorizer, texts, group, groups=3):
    """CountVectorizer's tokens, and their occurrences in each class; none where it finds no tokens at all."""
    try:
        matrix = vectorizer.fit_transform(texts)
    except ValueError:
        return [], np.zeros((0, groups)), None
    return (
        list(vectorizer.get_feature_names_out()),
        np.stack([np.asarray(matrix[group == c].sum(axis=0)).ravel() for c in range(groups)], 1),
        matrix,
    )


@pytest.mark.slow
@pytest.mark.parametrize("how", ["words", "bigrams", "char", "char_wb"])
@pytest.mark.parametrize("name", sorted({*datasets.TEXTS} - {"waimai_10k_zh", "language_detection17"}))
def test_tokens_of_real_texts_are_those_of_countvectorizer(name, how):
    found = datasets.text(name)
    if found is None:
        pytest.skip("data set not here")
    texts = found[0][:: (8 if name in BIG else 1) * (1 if how == "words" else 20)]
    texts = [text for text in texts if not re.search("[\u02b0-\u1fff\u3000-\ud7ff\ufb00-\uffff]", text)]  # Latin
    rule, options = LIKE_SKLEARN[how]
    group = classes(len(texts))
    vocabulary, occurrences, matrix = counts_of(CountVectorizer(**options), texts, group)
    words = count_tokens(texts, group, 3, rule, binary=False).sort_tokens()
    assert words.tokens() == vocabulary
    assert np.array_equal(words.counts, occurrences)
    present = count_tokens([text.encode() for text in texts], group, 3, rule).sort_tokens()
    assert present.tokens() == vocabulary
    assert np.array_equal(present.counts, counts_of(CountVectorizer(binary=True, **options), texts, group)[1])
    indptr, columns, times = encode_documents(texts, words.index(rule.analyzer), rule)
    assert abs(scipy.sparse.csr_matrix((times, columns, indptr), matrix.shape) - matrix).nnz == 0


@pytest.mark.parametrize("how", LIKE_SKLEARN)
@given(texts=st.lists(LATIN, min_size=1, max_size=6))
@example(texts=["ΑΣ ΑΣΑ ΟΔΟΣ", "ISTANBUL Iı ǅ", "a\0bb_cc", "x\x1cyy\u2028zz  w"])
def test_tokens_of_latin_texts_are_those_of_countvectorizer(how, texts):
    rule, options = LIKE_SKLEARN[how]
    group = classes(len(texts))
    vocabulary, occurrences, _ = counts_of(CountVectorizer(**options), texts, group)
    words = count_tokens(texts, group, 3, rule, binary=False).sort_tokens()
    assert words.tokens() == vocabulary
    assert np.array_equal(words.counts, occurrences)


RULES = [rule for rule, _ in LIKE_SKLEARN.values()]
RULES += [
    Tokenizer(extra_tokens="!?¿"),
    Tokenizer(extra_tokens="!", ngram_range=(1, 2)),
    Tokenizer(extra_tokens="_a", min_token_length=1),
]


def both(function):
    """What each twin says."""
    said = []
    for twin in (reference, compiled):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tokens, "kernel", twin)
            patch.setattr(hashing, "kernel", twin)
            tokens._cached_rule.cache_clear()
            said.append(function())
    tokens._cached_rule.cache_clear()
    return said


def packed(blobs):
    """The documents inside of a larger piece of memory."""
    memory = b"before " + b"".join(blobs) + b"after"
    edges = np.cumsum([len(b"before "), *map(len, blobs)])
    return PackedDocuments(np.frombuffer(memory, np.uint8), edges)


FORMS = {
    "str": lambda texts: texts,
    "bytes": lambda texts: [text.encode() for text in texts],
    "packed": lambda texts: packed([text.encode() for text in texts]),
}


@given(st.lists(ANY, min_size=1, max_size=5), st.sampled_from(RULES), st.booleans(), st.sampled_from(list(FORMS)))
def test_twins_say_the_same(texts, rule, once, form):
    documents = FORMS[form](texts)
    group, weight = classes(len(texts)), np.arange(1.0, len(texts) + 1)
    vocabulary = count_tokens(texts[:2], classes(len(texts[:2])), 3, rule).tokens()
    table = np.random.default_rng(0).normal(size=(len(vocabulary), 2))

    def everything():
        words = count_tokens(documents, group, 3, rule, weight, binary=once).sort_tokens()
        index = TokenIndex.of(vocabulary, rule.analyzer)
        rows = encode_documents(documents, index, rule, unknown=True)
        return [
            words.tokens(),
            words.counts.tolist(),
            np.round(
                score_documents(documents, index, table, rule, binary=once, unknown=np.array([0.5, 2.0])), 9
            ).tolist(),
            scipy.sparse.csr_matrix((rows[2], rows[1], rows[0]), (len(documents), len(vocabulary) + 1))
            .toarray()
            .tolist(),
            count_hashed_tokens(documents, group, 3, rule, 13, 2**63 + 5, weight, binary=once).tolist(),
            np.round(score_hashed_tokens(documents, np.arange(26.0).reshape(13, 2), rule, 7, binary=once), 9).tolist(),
        ]

    slow, fast = both(everything)
    assert slow == fast


@given(ANY, st.sampled_from(RULES))
def test_spans_are_where_the_tokens_stand(text, rule):
    found = find_token_spans(text, rule)
    expected = count_tokens([text], np.zeros(1, dtype=np.int32), 1, rule, binary=False).sort_tokens()
    assert sorted({token for token, _, _ in found}) == expected.tokens()
    assert len(found) == expected.counts.sum()
    for token, start, end in found:
        assert 0 <= start < end <= len(text)
        if (
            "Σ" not in text
            and "İ" not in text
            and is_normalized("NFC", text)
            and rule.analyzer == "word"
            and rule.ngram_range == (1, 1)
        ):
            assert (text[start:end].lower() if rule.lowercase else text[start:end]) == token


@given(ANY, st.sampled_from(RULES))
def test_both_twins_find_the_same_pieces(text, rule):
    document = tokens.prepare_document(text, 0, rule.lowercase)
    slow, fast = both(lambda: tokens.kernel.find_pieces(document, rule.build_rule([document])))
    assert [piece for piece, _, _ in slow] == [piece for piece, _, _ in fast]
    if rule.analyzer == "word":
        assert slow == fast


@pytest.mark.slow
@pytest.mark.parametrize("letter", ["a", "é", "中", "ที่", "1ж", "a中", "中\u0301", "😀x", "ab ", "a-", "語 "])
@pytest.mark.parametrize("rule", RULES[:4] + RULES[-2:], ids=str)
def test_long_texts_are_read_across_blocks(letter, rule):
    text = (letter * 30_001 + ". ") * 2 + "tail end"
    for document in (text, text.encode()):
        slow, fast = both(
            lambda document=document: count_tokens([document, "tail"], classes(2), 3, rule, binary=False).sort_tokens()
        )
        assert slow.tokens() == fast.tokens()
        assert np.array_equal(slow.counts, fast.counts)


def list_tokens(text, **options):
    return [token for token, _, _ in find_token_spans(text, Tokenizer(**options))]


def test_scripts_without_spaces_become_characters_and_pairs():
    assert list_tokens("我们在。ok 人") == ["我", "我们", "们", "们在", "在", "ok", "人"]
    assert list_tokens("ที่นี่") == ["ที่", "ที่นี่", "นี่"]


def test_words_keep_their_marks():
    assert list_tokens("यह होटल बहुत अच्छा है") == ["यह", "होटल", "बहुत", "अच्छा", "है"]
    assert list_tokens("كَتَبَ x̂ŷ") == ["كَتَبَ", "x̂ŷ"]
    assert list_tokens("❤️ 1️⃣ ok") == ["ok"]


def test_another_script_ends_a_word_and_digits_do_not():
    assert list_tokens("iPhone15手機 12км abвг παράγω") == [
        "iphone15",
        "手",
        "手機",
        "機",
        "12км",
        "ab",
        "вг",
        "παράγω",
    ]
    assert list_tokens("[=]\nsubject:привет url:a", reader="mail") == ["subject:привет", "url:a"]


@given(st.lists(ANY, min_size=1, max_size=4), st.booleans())
def test_twins_join_words_alike(texts, pairs):
    rule = Tokenizer(reader="mail", ngram_range=(1, 1 + pairs))
    read = [f"[=]\n{text}" for text in texts]
    slow, fast = both(lambda: count_tokens(read, classes(len(read)), 3, rule, binary=False))
    assert slow.tokens() == fast.tokens()
    assert np.array_equal(slow.counts, fast.counts)


def test_composed_and_decomposed_letters_are_one():
    for text, token in (("cafe\u0301", "café"), ("각", "각")):
        assert find_token_spans(f"{text}! x", Tokenizer(min_token_length=1)) == [
            (token, 0, len(text)),
            ("x", len(text) + 2, len(text) + 3),
        ]
        words = count_tokens(
            [text, text.encode(), packed([text.encode()])[0]], classes(3), 3, Tokenizer(min_token_length=1)
        )
        assert words.tokens() == [token]


def test_many_marks_in_a_row_are_cut():
    assert list_tokens("a" + "\u0301\u0323" * 5000 + "b") == [normalize("NFC", "a" + "\u0301\u0323" * 15 + "b")]


def test_no_letter_is_beyond_the_tables():
    beyond = "".join(map(chr, range(tokens.N_CODE_POINTS, 0x110000)))
    assert re.findall(r"[\w\s]", beyond) == []
    assert beyond.lower() == beyond


def test_words_are_stemmed_before_they_are_joined():
    rule = Tokenizer(stem="english", ngram_range=(1, 2), stop_words=frozenset({"the"}))
    slow, fast = both(lambda: count_tokens(["Running the races", "He runs a race"], classes(2), 2, rule).sort_tokens())
    assert slow.tokens() == fast.tokens() == ["he", "he run", "race", "run", "run race"]
    assert find_token_spans("Running the races", rule) == [("run", 0, 7), ("race", 12, 17), ("run race", 0, 17)]


def test_the_dictionary_of_the_course_and_its_unknown_slot(kernel):
    case = WORKED_EXAMPLES["bag_of_words_dictionary"]
    rule = Tokenizer(lowercase=False)
    index = TokenIndex.of(case["dictionary"][:-1])
    _, columns, _ = encode_documents([case["text"]], index, rule, unknown=True)
    assert np.bincount(columns, minlength=7).tolist() == case["expect_binary"]
    slots = np.eye(7)
    assert (
        score_documents([case["text"]], index, slots[:6], rule, unknown=slots[6])[0].tolist() == case["expect_binary"]
    )


def test_the_binary_bag_of_words_of_the_course(kernel):
    case = WORKED_EXAMPLES["binary_bag_of_words"]
    index = TokenIndex.of(case["vocabulary"])
    assert (
        score_documents(case["documents"], index, np.eye(8), Tokenizer(min_token_length=1)).tolist() == case["expect"]
    )


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (b"caf\xe9 noir", "document 1: byte 3 is not UTF-8; decode it first, or replace the invalid bytes."),
        (b"\xce\xa3 \xff", "document 1: byte 3 is not UTF-8; decode it first, or replace the invalid bytes."),
        (b"ok \xed\xa0\x80", "document 1: byte 3 is not UTF-8; decode it first, or replace the invalid bytes."),
        (b"\xf4\x90\x80\x80", "document 1: byte 0 is not UTF-8; decode it first, or replace the invalid bytes."),
        (b"cut \xe4\xb8", "document 1: byte 4 is not UTF-8; decode it first, or replace the invalid bytes."),
        ("x\ud800y", "document 1: character 1 is half a surrogate pair; remove or replace it."),
        ("Σ\udfff", "document 1: character 1 is half a surrogate pair; remove or replace it."),
        ("😀\udfff", "document 1: character 1 is half a surrogate pair; remove or replace it."),
    ],
)
@pytest.mark.parametrize("rule", [Tokenizer(), Tokenizer(analyzer="char"), Tokenizer(stem="english")], ids=str)
def test_what_is_no_text_is_named(kernel, broken, message, rule):
    index = TokenIndex.of(["ok"], rule.analyzer)
    for call in (
        lambda: count_tokens(["fine", broken], classes(2), 3, rule),
        lambda: score_documents(["fine", broken], index, np.ones((1, 2)), rule),
        lambda: encode_documents(["fine", broken], index, rule),
        lambda: count_hashed_tokens(["fine", broken], classes(2), 3, rule, 8, 1),
    ):
        with pytest.raises(DataError) as error:
            call()
        assert str(error.value) == message


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4), st.sampled_from(RULES))
def test_random_bytes_are_counted_or_refused(blobs, rule):
    def attempt(documents):
        try:
            return count_tokens(documents, classes(len(blobs)), 3, rule).tokens()
        except DataError as error:
            return str(error)

    slow, fast = both(lambda: attempt(blobs))
    assert slow == fast == attempt(packed(blobs))


def test_documents_of_the_wrong_kind():
    with pytest.raises(KindError, match=r"^document 1 is float; give str or UTF-8 bytes\.$"):
        count_tokens(["a", float("nan")], classes(2), 3)
    with pytest.raises(KindError, match=r"^documents is one str; give a list of documents: \[text\]\.$"):
        count_tokens("a text", classes(1), 3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"analyzer": "line"},
        {"min_token_length": 0},
        {"ngram_range": (2, 1)},
        {"ngram_range": (1, 99)},
        {"extra_tokens": "! "},
        {"stem": "klingon"},
    ],
    ids=str,
)
def test_a_tokenizer_that_cannot_be_is_refused(wrong):
    with pytest.raises(DataError):
        Tokenizer(**wrong)


def test_nothing_to_count(kernel):
    for texts in ([], [""], ["", b""], ["the of"], ["\0\0", "!"]):
        words = count_tokens(
            texts, classes(len(texts)), 3, Tokenizer(stop_words=frozenset({"the", "of"}), ngram_range=(1, 2))
        )
        assert words.tokens() == []
        assert words.counts.shape == (0, 3)
        index = words.index()
        assert score_documents(texts, index, np.zeros((0, 3)), Tokenizer()).shape == (len(texts), 3)
        assert encode_documents(texts, index, Tokenizer())[0].tolist() == [0] * (len(texts) + 1)


def test_one_huge_word_takes_no_memory():
    text = "a" * 100_000_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    words = count_tokens([text], np.zeros(1, dtype=np.int32), 1, Tokenizer(ngram_range=(1, 2)))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64_000
    assert words.tokens() == ["a" * reference.MAX_WORD_LENGTH]


def test_a_million_classes_take_no_more_memory_than_what_they_show():
    many = [" ".join(f"w{i}" for i in range(20_000))]
    words = count_tokens(many, np.array([999_999]), 1_000_000)
    assert (len(words.counts.values), words.counts.classes.min()) == (20_000, 999_999)
    with pytest.raises(ModelTooLargeError, match="tables of 20,000 tokens and 1,000,000 classes need about 447 GiB"):
        make_dense_counts(words.counts)


@pytest.mark.slow
def test_the_result_does_not_depend_on_threads_or_batches(monkeypatch):
    rng = np.random.default_rng(3)
    texts = [" ".join(f"w{k}" for k in rng.zipf(1.3, 40) % 5000) for _ in range(4000)]
    group, weight = classes(len(texts)), rng.random(len(texts))
    rule = Tokenizer(ngram_range=(1, 2))
    words_of_all = count_tokens(texts, group, 3, rule).tokens()

    def everything():
        assert count_tokens(packed([text.encode() for text in texts]), group, 3, rule).tokens() == words_of_all
        words = count_tokens(iter(texts), group, 3, rule).sort_tokens()
        weighted = count_tokens(iter(texts), group, 3, rule, weight).sort_tokens()
        scores = score_documents(texts, words.index(), words.counts, rule)
        return words.tokens(), words.counts, weighted.counts, scores, *encode_documents(texts, words.index(), rule)

    many = everything()
    monkeypatch.setattr(sharding, "N_THREADS", 1)
    one = everything()
    monkeypatch.setattr(sharding, "N_THREADS", 3)
    monkeypatch.setattr(reading, "CHARACTERS_PER_BATCH", 50_000)
    monkeypatch.setattr(reading, "CHARACTERS_PER_THREAD", 5_000)
    batched = everything()
    for other in (one, batched):
        assert all(np.array_equal(a, b) for a, b in zip(many, other, strict=True))


@pytest.mark.parametrize("most", [50, 400])
@pytest.mark.parametrize("rule", [Tokenizer(), Tokenizer(ngram_range=(1, 3)), Tokenizer(ngram_range=(2, 2))], ids=str)
def test_pruning_misses_no_more_than_it_says(kernel, most, rule, monkeypatch):
    rng = np.random.default_rng(1)
    texts = [" ".join(f"w{k}" for k in rng.zipf(1.2, 12) % 3000) for _ in range(500)]
    monkeypatch.setattr(reading, "CHARACTERS_PER_THREAD", 4_000)
    exact = count_tokens(texts, classes(500), 3, rule, binary=False)
    truth = dict(zip(exact.tokens(), exact.counts.sum(axis=1), strict=True))
    pruned = count_tokens(texts, classes(500), 3, rule, binary=False, max_tokens=most)
    kept = dict(zip(pruned.tokens(), pruned.counts.sum(axis=1), strict=True))
    assert len(kept) <= most
    assert pruned.missed > 0
    for token, times in truth.items():
        assert times - pruned.missed <= kept.get(token, 0.0) <= times
    roomy = count_tokens(texts, classes(500), 3, rule, binary=False, max_tokens=10**6)
    assert roomy.missed == 0
    assert roomy.tokens() == exact.tokens()


def test_hashed_counts_are_the_counts_of_their_tokens_and_merge_by_addition():
    texts = ["one two", "two three three", "one"]
    rule = Tokenizer(ngram_range=(1, 2))
    whole = count_hashed_tokens(texts, classes(3), 3, rule, 1 << 16, 42, binary=False)
    assert np.array_equal(
        whole,
        count_hashed_tokens(texts[:1], classes(3)[:1], 3, rule, 1 << 16, 42, binary=False)
        + count_hashed_tokens(texts[1:], classes(3)[1:], 3, rule, 1 << 16, 42, binary=False),
    )
    words = count_tokens(texts, classes(3), 3, rule, binary=False)
    assert sorted(map(tuple, whole[whole.any(axis=1)])) == sorted(map(tuple, words.counts))
    assert not np.array_equal(whole, count_hashed_tokens(texts, classes(3), 3, rule, 1 << 16, 43, binary=False))
    table = np.random.default_rng(0).normal(size=(1 << 16, 2))
    scores = score_hashed_tokens(texts, table, rule, 42, binary=False)
    buckets = [np.flatnonzero(count_hashed_tokens([t], [0], 1, rule, 1 << 16, 42).ravel()) for t in texts]
    assert np.allclose(scores[0], table[buckets[0]].sum(axis=0))


@given(st.lists(ANY, min_size=1, max_size=5), st.sampled_from(RULES), st.sampled_from(list(FORMS)))
def test_hashed_rows_hold_what_is_counted(texts, rule, form):
    documents = FORMS[form](texts)
    for buckets in (3, 1 << 16):
        indptr, columns, times = encode_hashed_documents(documents, rule, buckets, 42)
        rows = scipy.sparse.csr_array((times, columns, indptr), (len(texts), buckets)).toarray()
        one_class_each = np.arange(len(texts))
        counted = count_hashed_tokens(documents, one_class_each, len(texts), rule, buckets, 42, binary=False)
        assert np.array_equal(rows.T, counted)
        counted = count_hashed_tokens(documents, one_class_each, len(texts), rule, buckets, 42, binary=True)
        assert np.array_equal(rows.T > 0, counted > 0)


def test_a_dictionary_with_a_word_twice_is_refused():
    with pytest.raises(DataError, match="given twice"):
        TokenIndex.of(["a", "b", "a"])
    with pytest.raises(ValueError, match="token"):
        compiled.Index(np.frombuffer(b"aa", dtype=np.uint8), np.array([1, 2]), True)
    with pytest.raises(ValueError, match="token"):
        compiled.Index(np.frombuffer(b"ab", dtype=np.uint8), np.array([1, 9]), True)
    with pytest.raises(ValueError, match="row"):
        compiled.Index(np.frombuffer(b"ab", dtype=np.uint8), np.array([1, 2]), True).score(
            ["a"], tokens._cached_rule(Tokenizer(), False), np.ones((1, 2)), True, None
        )


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(-2, 2), st.integers(0, 2))
@example([b"x" * 17, b"x" * 16, b"x" * 17], 0, 0)
def test_twins_agree_on_what_tokens_are_distinct(words, off, more):
    arena = np.frombuffer(b"".join(words) + bytes(more), dtype=np.uint8)
    ends = np.cumsum([len(w) for w in words], dtype=np.int64)
    ends[len(ends) // 2 :][:1] += off
    assert compiled.are_tokens_distinct(arena, ends) == reference.are_tokens_distinct(arena, ends)
    if not off and not more:
        whole = all(word and word[0] & 0xC0 != 0x80 for word in words)
        assert compiled.are_tokens_distinct(arena, ends) == (whole and len(set(words)) == len(words))


def test_one_token_twice_among_many_is_found():
    words = [f"{i:x}" * (1 + i % 7) for i in range(50_000)]
    assert tokens.is_valid_vocabulary(*tokens.encode_vocabulary(sorted(set(words))))
    assert not tokens.is_valid_vocabulary(*tokens.encode_vocabulary([*sorted(set(words)), words[12_345]]))
    assert not tokens.is_valid_vocabulary(*tokens.encode_vocabulary(["same"] * 50_000))
    for ends in ([2**62, -(2**63)], [-1, 4], [2**63 - 1]):
        assert not tokens.is_valid_vocabulary(np.zeros(4, dtype=np.uint8), np.array(ends, dtype=np.int64))
