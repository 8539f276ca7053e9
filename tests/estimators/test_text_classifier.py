"""TextClassifier: the same numbers as a pipeline of scikit-learn's, and all that a pipeline cannot do."""

from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import BernoulliNB, MultinomialNB

import priory as pr
from priory import inbox
from priory.core.content_hash import hash_content
from priory.errors import DataError, KindError, NotLearnedError, StaleModelError
from priory.sources.cell_parsing import read_text_column
from priory.text.document_models import BAG_MODELS
from priory.text.tokenizer import Tokenizer
from worked_examples import WORKED_EXAMPLES

TextClassifier = partial(pr.TextClassifier, calibrate=False)  # the statistics alone

ROWS, LABELS = inbox()
TEXTS = [row["text"] for row in ROWS]

PEERS = {
    "binary": (True, MultinomialNB),
    "multinomial": (False, MultinomialNB),
    "bernoulli": (True, BernoulliNB),
}


@pytest.mark.parametrize("alpha", [1.0, 0.1])
@pytest.mark.parametrize("ngrams", [(1, 1), (1, 2)])
@pytest.mark.parametrize("model", PEERS)
def test_it_has_the_numbers_of_a_scikit_learn_pipeline(model, ngrams, alpha):
    once, Peer = PEERS[model]
    vectoriser = CountVectorizer(ngram_range=ngrams, binary=once)
    peer = Peer(alpha=alpha).fit(vectoriser.fit_transform(TEXTS[:200]), LABELS[:200])
    ours = TextClassifier(model, ngram_range=ngrams, alpha=alpha).fit(TEXTS[:200], LABELS[:200])
    new = vectoriser.transform(TEXTS[200:])
    assert np.allclose(ours.predict_joint_log_proba(TEXTS[200:]), peer.predict_joint_log_proba(new), atol=1e-9)
    assert ours.vocabulary_ == vectoriser.get_feature_names_out().tolist()
    assert np.array_equal(ours.counts_, peer.feature_count_.T)


# -- the laws ----------------------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(cut=st.integers(1, 307), seed=st.integers(0, 99), model=st.sampled_from(sorted(BAG_MODELS)))
def test_any_split_and_any_order_give_the_same_model(cut, seed, model):
    order = np.random.default_rng(seed).permutation(len(TEXTS))
    parts = TextClassifier(model)
    for part in (order[:cut], order[cut:]):
        parts.partial_fit([TEXTS[i] for i in part], [LABELS[i] for i in part])
    whole = TextClassifier(model).fit(TEXTS, LABELS)
    assert parts.vocabulary_ == whole.vocabulary_
    assert np.array_equal(parts.counts_, whole.counts_)
    assert np.allclose(parts.predict_log_proba(TEXTS), whole.predict_log_proba(TEXTS))


@pytest.mark.parametrize("options", [{}, {"ngram_range": (1, 2)}, {"analyzer": "char_wb", "ngram_range": (2, 3)}])
@pytest.mark.parametrize("model", sorted(BAG_MODELS))
def test_forgetting_is_exact_to_the_bit(model, options):
    left = TextClassifier(model, **options).fit(TEXTS, LABELS).forget(TEXTS[100:], LABELS[100:])
    never = TextClassifier(model, **options).fit(TEXTS[:100], LABELS[:100])
    assert left.vocabulary_ == never.vocabulary_
    assert np.array_equal(left.counts_, never.counts_)
    assert np.array_equal(left.predict_proba(TEXTS), never.predict_proba(TEXTS))


def test_models_with_different_words_merge():
    a, b = TextClassifier().fit(TEXTS[:150], LABELS[:150]), TextClassifier().fit(TEXTS[150:], LABELS[150:])
    whole = TextClassifier().fit(TEXTS, LABELS)
    for merged in (a + b, b + a):
        assert merged.vocabulary_ == whole.vocabulary_
        assert np.array_equal(merged.predict_proba(TEXTS), whole.predict_proba(TEXTS))
    with pytest.raises(DataError, match="the models read texts differently"):
        a + TextClassifier(ngram_range=(1, 2)).fit(TEXTS, LABELS)


def test_weight_k_equals_k_copies_and_fading_halves():
    weight = np.random.default_rng(0).integers(0, 3, len(TEXTS))
    weighted = TextClassifier().fit(TEXTS, LABELS, sample_weight=weight)
    copies = np.repeat(np.arange(len(TEXTS)), weight)
    copied = TextClassifier().fit([TEXTS[i] for i in copies], [LABELS[i] for i in copies])
    assert weighted.vocabulary_ == copied.vocabulary_
    assert np.array_equal(weighted.counts_, copied.counts_)
    assert np.array_equal(TextClassifier().fit(TEXTS, LABELS).decay(0.5).counts_ * 2, _counts())


def _counts():
    return TextClassifier().fit(TEXTS, LABELS).counts_


@pytest.mark.parametrize("alpha", [1.0, 0.05])
@pytest.mark.parametrize("model", sorted(BAG_MODELS))
def test_leave_one_out_is_refitting_the_whole_pipeline(model, alpha):
    honest = TextClassifier(model, alpha=alpha).fit(TEXTS, LABELS).leave_one_out(TEXTS, LABELS)
    for i in range(0, len(TEXTS), 11):
        others = [j for j in range(len(TEXTS)) if j != i]
        refitted = TextClassifier(model, alpha=alpha).fit([TEXTS[j] for j in others], [LABELS[j] for j in others])
        assert np.allclose(honest[i], refitted.predict_log_proba([TEXTS[i]])[0], atol=1e-9)


@pytest.mark.parametrize("options", [{"alpha": "evidence"}, {"alpha": 0.0}])
def test_leave_one_out_where_the_smoothing_moves(options):
    texts, labels = TEXTS[:60], LABELS[:60]
    honest = TextClassifier(**options).fit(texts, labels).leave_one_out(texts, labels)
    for i in range(0, 60, 7):
        others = [j for j in range(60) if j != i]
        refitted = TextClassifier(**options).fit([texts[j] for j in others], [labels[j] for j in others])
        assert np.allclose(honest[i], refitted.predict_log_proba([texts[i]])[0], atol=1e-9)


# -- vocabulary --------------------------------------------------------------------------------------------------


def test_stop_words_stems_and_single_letters():
    model = TextClassifier(stop_words=["the", "a"], min_token_length=1, extra_tokens="!").fit(
        ["The cat! I see a cat"], ["x"]
    )
    assert model.vocabulary_ == ["!", "cat", "i", "see"]
    pytest.importorskip("Stemmer")
    stems = TextClassifier(stem="english").fit(["connected connections connecting"], ["x"])
    assert stems.vocabulary_ == ["connect"]
    pytest.importorskip("stopwordsiso")
    assert "the" not in TextClassifier(stop_words="en").fit(TEXTS, LABELS).vocabulary_


def test_the_dictionary_of_the_lecture():
    example = WORKED_EXAMPLES["bag_of_words_dictionary"]
    words = [word.lower() for word in example["dictionary"][:-1]]
    model = TextClassifier(vocabulary=words, unknown=True).fit([example["text"]], ["only"])
    assert model.counts_[:, 0].tolist() == example["expect_binary"]
    assert model.vocabulary_[:-1] == words


def test_the_reviews_of_the_lecture():
    example = WORKED_EXAMPLES["book_and_movie_reviews"]
    texts, labels = example["positive"] + example["negative"], ["positive"] * 4 + ["negative"] * 4
    for model, key in (("bernoulli", "bernoulli_alpha_1"), ("multinomial", "multinomial_alpha_1")):
        fitted = TextClassifier(model, min_token_length=1).fit(texts, labels)
        assert fitted.vocabulary_ == example["vocabulary"]
        joint = np.exp(fitted.predict_joint_log_proba([example["test"]]))[0]
        expect = example["expect"]
        assert dict(zip(fitted.classes_, joint, strict=True)) == pytest.approx(expect[f"{key}_joint"], rel=1e-12)
        proba = fitted.predict_proba([example["test"]])[0]
        assert dict(zip(fitted.classes_, proba, strict=True)) == pytest.approx(expect[f"{key}_posterior"], rel=1e-12)
        assert fitted.predict([example["test"]]).tolist() == [expect["class"]]
    unsmoothed = TextClassifier("bernoulli", alpha=0.0, min_token_length=1).fit(texts, labels)
    joint = np.exp(unsmoothed.predict_joint_log_proba([example["test"]]))[0]
    expect = example["expect"]["bernoulli_unsmoothed_joint"]
    assert dict(zip(unsmoothed.classes_, joint, strict=True)) == pytest.approx(expect, rel=1e-12)


def test_the_evidence_may_choose_the_smoothing():
    model = TextClassifier(alpha="evidence").fit(TEXTS, LABELS)
    assert 0 < model.alpha_ < 1
    assert model.score(TEXTS, LABELS) > 0.9


# -- explanations ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", sorted(BAG_MODELS))
def test_the_ledger_sums_to_the_log_odds_and_knows_the_places(model):
    fitted = TextClassifier(model).fit(TEXTS, LABELS)
    text = "URGENT: your account was suspended, send money. Send it today"
    (ledger,) = fitted.explain(text)
    log_p = fitted.predict_log_proba([text])[0]
    spam, urgent = (fitted.classes_.tolist().index(c) for c in ("spam", "urgent"))
    assert ledger.log_odds("spam", "urgent") == pytest.approx(log_p[spam] - log_p[urgent], abs=1e-9)
    send = next(line for line in ledger.lines if line.name == "send")
    assert [text[a:b] for a, b in send.spans] == ["send", "Send"]
    assert "<mark" in ledger._repr_html_()


def test_a_text_without_known_words_says_so():
    model = TextClassifier().fit(TEXTS, LABELS)
    for text in ("", "zzzz qqqq", "!!! ?"):
        assert model.explain(text)[0].no_evidence
        assert model.predict_proba([text])[0] == pytest.approx(model.class_count_ / model.class_count_.sum())


def test_the_words_that_speak_for_a_class():
    spam = TextClassifier().fit(TEXTS, LABELS).evidence("spam", max_tokens=10)
    assert len(spam) == 10
    assert all(e.decibans > 0 and e.counts["spam"] > 0 for e in spam)
    with pytest.raises(DataError, match="no class 'eggs'; the model knows"):
        TextClassifier().fit(TEXTS, LABELS).evidence("eggs")


# -- ways in, and bad input ----------------------------------------------------------------------------------------


def test_texts_may_be_bytes_files_series_or_generators(tmp_path):
    import pandas as pd
    import pyarrow as pa

    expected = TextClassifier().fit(TEXTS, LABELS).predict_proba(TEXTS)
    paths = []
    for i, text in enumerate(TEXTS):
        (tmp_path / f"{i}.txt").write_text(text, encoding="utf-8")
        paths.append(tmp_path / f"{i}.txt")
    ways = [[t.encode() for t in TEXTS], paths, pd.Series(TEXTS), np.array(TEXTS), pa.array(TEXTS), (t for t in TEXTS)]
    for way in ways:
        assert np.array_equal(TextClassifier().fit(way, LABELS).predict_proba(TEXTS), expected)


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ("one text", KindError, "X is a str; give a list of texts: [text]."),
        (3, KindError, "X is a int; give a list of texts: [text]."),
        ([], DataError, "Found array with 0 sample(s) while a minimum of 1 is required: X has no documents."),
        (["fine", 7], KindError, "document 1 is int; give str or UTF-8 bytes."),
        (
            ["fine", b"\xff\xfe"],
            DataError,
            "document 1: byte 0 is not UTF-8; decode it first, or replace the invalid bytes.",
        ),
        (["fine", "half \ud800"], DataError, "document 1: character 5 is half a surrogate pair; remove or replace it."),
    ],
)
def test_bad_texts(texts, error, message):
    model = TextClassifier()
    with pytest.raises(error) as caught:
        model.fit(texts, ["a", "b"])
    assert str(caught.value) == message
    assert not hasattr(model, "statistics_")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"model": "trigram"}, "model is 'trigram'; use one of binary, multinomial, bernoulli."),
        ({"alpha": -1}, "alpha is -1; use a number from 0, or 'evidence'."),
        ({"alpha": "some"}, "alpha is 'some'; use a number from 0, or 'evidence'."),
        ({"max_tokens": 0}, "max_tokens is 0; use a number of tokens from 1, or None."),
        ({"buckets": 0}, "buckets is 0; it must be 1 or more."),
        ({"buckets": 64, "vocabulary": ["cash"]}, "buckets and vocabulary do not go together; use one."),
        ({"ngram_range": (2, 1)}, "ngram_range is (2, 1); give the shortest and the longest, from (1, 1) to (32, 32)."),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(DataError) as caught:
        TextClassifier(**parameters).fit(TEXTS, LABELS)
    assert str(caught.value) == message


def test_a_document_never_learned_cannot_be_forgotten():
    model = TextClassifier().fit(TEXTS, LABELS)
    before = model.statistics_
    with pytest.raises(NotLearnedError, match="'quixotic'"):
        model.forget(["quixotic"], ["spam"])
    assert model.statistics_ is before


def test_nul_is_a_separator_and_a_huge_token_is_harmless():
    model = TextClassifier().fit(["win\x00cash", "x" * 5_000_000], ["a", "b"])
    assert "cash" in model.vocabulary_
    assert model.predict(["cash"]).tolist() == ["a"]


def test_it_lives_in_scikit_learn():
    search = GridSearchCV(TextClassifier(), {"model": ["binary", "multinomial"], "alpha": [0.3, 1.0]}, cv=3)
    assert search.fit(TEXTS, LABELS).best_score_ > 0.7
    model = TextClassifier(alpha=0.3)
    assert clone(model).get_params() == model.get_params()


# -- hashed ----------------------------------------------------------------------------------------------------------


def test_hashed_models_forget_merge_and_agree_with_spelt_ones():
    options = {"buckets": 2**16, "salt": 7}
    whole = TextClassifier(**options).fit(TEXTS, LABELS)
    a = TextClassifier(**options).fit(TEXTS[:150], LABELS[:150])
    b = TextClassifier(**options).fit(TEXTS[150:], LABELS[150:])
    assert np.array_equal((a + b).counts_, whole.counts_)
    assert np.array_equal(whole.forget(TEXTS[150:], LABELS[150:]).counts_, a.counts_)
    spelt = TextClassifier().fit(TEXTS, LABELS)
    hashed = TextClassifier(buckets=2**16).fit(TEXTS, LABELS)
    assert (hashed.predict(TEXTS) == spelt.predict(TEXTS)).mean() > 0.9
    assert hashed.counts_.sum() == pytest.approx(spelt.counts_.sum(), rel=0.02)


def test_hashed_models_keep_no_words_and_are_merged_only_with_the_same_salt():
    one, other = (TextClassifier(buckets=1024, salt=salt).fit(TEXTS, LABELS) for salt in (None, 7))
    assert (one.salt_, other.salt_) == (0, 7)
    with pytest.raises(StaleModelError, match="a hashed model keeps no words"):
        one.evidence("spam")
    with pytest.raises(DataError, match="the models read texts differently"):
        one + other
    honest = one.leave_one_out(TEXTS[:20], LABELS[:20])
    assert np.allclose(np.exp(honest).sum(axis=1), 1.0)


# -- the procedures of the lecture, word for word ----------------------------------------------------------------


def tokens_of(text):
    return CountVectorizer().build_analyzer()(text)


def lecture(model, texts, labels):
    """P(c) and P(w | c) as the lecture's two learning procedures say, with loops."""
    vocabulary = sorted({word for text in texts for word in tokens_of(text)})
    prior, chance = {}, {}
    for c in sorted(set(labels)):
        docs = [tokens_of(text) for text, label in zip(texts, labels, strict=True) if label == c]
        prior[c] = len(docs) / len(texts)
        for word in vocabulary:
            if model == "bernoulli":
                chance[word, c] = (sum(word in doc for doc in docs) + 1) / (len(docs) + 2)
            else:
                times, total = sum(doc.count(word) for doc in docs), sum(map(len, docs))
                chance[word, c] = (times + 1) / (total + len(vocabulary))
    return prior, chance, vocabulary


@pytest.mark.parametrize("model", ["bernoulli", "multinomial"])
def test_learning_and_classifying_as_the_lecture_says(model):
    texts, labels, new = TEXTS[:60], LABELS[:60], TEXTS[60:70]
    prior, chance, vocabulary = lecture(model, texts, labels)
    fitted = TextClassifier(model).fit(texts, labels)
    for text, joint in zip(new, fitted.predict_joint_log_proba(new), strict=True):
        words = [word for word in tokens_of(text) if word in vocabulary]  # words never seen are removed
        for c, score in zip(fitted.classes_, joint, strict=True):
            expected = np.log(prior[c])
            if model == "bernoulli":
                present = set(words)
                expected += sum(np.log(chance[w, c] if w in present else 1 - chance[w, c]) for w in vocabulary)
            else:
                expected += sum(np.log(chance[w, c]) for w in words)
            assert score == pytest.approx(expected, rel=1e-12)


def test_a_learned_model_can_be_copied_and_kept():
    import copy
    import pickle

    model = TextClassifier(ngram_range=(1, 2)).fit(TEXTS, LABELS)
    model.predict(TEXTS)
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert np.array_equal(twin.predict_proba(TEXTS), model.predict_proba(TEXTS))
        twin.forget(TEXTS[:9], LABELS[:9])
        assert twin.class_count_.sum() == model.class_count_.sum() - 9


@pytest.mark.parametrize("refine", [False, True])
def test_the_form_of_a_text_changes_nothing(refine):
    texts = [row["text"] + " ça été".upper() * (i % 3) for i, row in enumerate(ROWS)]
    forms = [texts, [text.encode() for text in texts], read_text_column(pa.array(texts))]
    models = [pr.TextClassifier(refine=refine).fit(form, LABELS) for form in forms]
    for model, form in zip(models, forms, strict=True):
        np.testing.assert_array_equal(model.predict_proba(form), models[0].predict_proba(texts))
        np.testing.assert_array_equal(model.leave_one_out(form, LABELS), models[0].leave_one_out(texts, LABELS))
        assert str(model.explain(form[:1])[0]) == str(models[0].explain(texts[:1])[0])


@pytest.mark.parametrize("calibrate", ["loo", False])
@pytest.mark.parametrize("model", ["binary", "multinomial", "bernoulli"])
@pytest.mark.parametrize("texts", [["1", "caf xe", "", "win cash"], ["one two", "caf xe", "two", "win cash"]])
def test_without_smoothing_probabilities_are_never_nan(texts, model, calibrate):
    classifier = TextClassifier(model, alpha=0.0, calibrate=calibrate).fit(texts, list("xyxy"))
    found = classifier.predict_proba(["caf", "new", "win two"])
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert found[0, 1] > (0.8 if calibrate else 0.99)  # after four texts no odds are beyond 5 : 1


@given(
    st.lists(st.lists(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), min_size=1, max_size=9), min_size=4, max_size=12)
)
def test_tokens_are_limited_in_number_while_learning(letters):
    texts = [" ".join(letter * 2 for letter in row) for row in letters]
    model = TextClassifier(model="multinomial", max_tokens=8)
    for i in range(0, len(texts) - 1, 2):
        model.partial_fit(texts[i : i + 2], ["x", "y"])
    assert model.predict_proba(texts).sum(axis=1) == pytest.approx(1)
    assert len(model.vocabulary_) <= 8


@pytest.mark.parametrize(
    "options",
    [{}, {"model": "multinomial"}, {"buckets": 64}, {"vocabulary": ["cash", "win"], "unknown": True}],
    ids=str,
)
def test_texts_that_are_all_kept_are_counted_as_they_were_read(options):
    texts, labels = [*TEXTS, *TEXTS[:2], ""], [*LABELS, *LABELS[:2], LABELS[0]]  # two of them twice
    weight = np.arange(len(texts)) % 3.0
    kept = pr.TextClassifier(**options).fit(texts, labels, weight).statistics_
    dropped = pr.TextClassifier(memory=0, **options).fit(texts, labels, weight).statistics_
    assert kept.sample.is_complete
    assert hash_content(replace(kept, sample=None)) == hash_content(dropped)


def test_texts_are_read_once_by_a_fit_that_keeps_them(monkeypatch):
    rules = []
    build_rule = Tokenizer.build_rule
    monkeypatch.setattr(
        Tokenizer, "build_rule", lambda self, texts: rules.append(len(texts)) or build_rule(self, texts)
    )
    pr.TextClassifier(pairs=False, analyzer="word").fit(TEXTS * 20, LABELS * 20)
    assert rules == [20 * len(TEXTS)]
    rules.clear()
    pr.TextClassifier().fit(TEXTS * 20, LABELS * 20)
    assert rules[:2] == [20 * len(TEXTS)] * 2  # for words and for pairs; what is read then are distinct words
    assert max(rules[2:]) < 2000
