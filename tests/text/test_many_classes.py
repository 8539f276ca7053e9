"""Counts of many classes are kept without their zeros: whatever is computed from them is what it is with them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priory import TextClassifier, load, save
from priory.calibration import calibrator
from priory.core.statistics import find_members
from priory.errors import ModelTooLargeError, NotLearnedError
from priory.learning import left_out_scores
from priory.text import sparse_counts, token_features
from priory.text.document_models import BAG_MODELS
from priory.text.sparse_counts import SparseCounts, make_dense_counts
from priory.text.token_counts import TokenCounts, count_tokens
from priory.text.token_features import TokenFeatures
from priory.text.tokenizer import decode_vocabulary

WORDS = ["win", "cash", "now", "lunch", "noon", "prize", "été", "see you"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
N_CLASSES = 5
ROWS = st.lists(st.tuples(TEXTS, st.integers(0, N_CLASSES - 1)), min_size=2, max_size=14)
VOCABULARIES = {
    "growing": {},
    "fixed": {"vocabulary": ["win", "cash", "rare", "lunch"]},
    "fixed and the rest": {"vocabulary": ["win", "cash"], "unknown": True},
    "hashed": {"buckets": 16},
    "stemmed": {"stem": "english"},
    "pairs": {"ngram_range": (1, 2)},
}


@pytest.fixture(scope="module", autouse=True)
def few_classes_are_many():
    """Models of more than two classes are kept as those of thousands are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_counts, "MAX_DENSE_CLASSES", 2)
        yield


def fit_both(rows, **parameters):
    """The same model with its zeros and without them."""
    texts, labels = [text for text, _ in rows], [label for _, label in rows]
    sparse = TextClassifier(**parameters).partial_fit(texts, labels, classes=range(N_CLASSES))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_counts, "MAX_DENSE_CLASSES", N_CLASSES)
        dense = TextClassifier(**parameters).partial_fit(texts, labels, classes=range(N_CLASSES))
        expected = dense.predict_proba(QUESTIONS)
    assert isinstance(sparse.statistics_.parts[0].counts, SparseCounts)
    assert not isinstance(dense.statistics_.parts[0].counts, SparseCounts)
    return sparse, dense, expected


QUESTIONS = ["win cash now, win", "lunch at noon", "", "zebra", "see you"]


@pytest.mark.parametrize("vocabulary", VOCABULARIES.values(), ids=VOCABULARIES)
@pytest.mark.parametrize("model", BAG_MODELS)
@settings(max_examples=10)
@given(rows=ROWS)
def test_answers_are_those_of_a_table_with_its_zeros(model, vocabulary, rows):
    if vocabulary.get("stem"):
        pytest.importorskip("Stemmer")
    sparse, _, expected = fit_both(rows, model=model, calibrate=False, **vocabulary)
    np.testing.assert_allclose(sparse.predict_proba(QUESTIONS), expected, rtol=1e-9, atol=1e-12)
    one_by_one = [list(sparse.predict_proba_one(text).values()) for text in QUESTIONS]
    np.testing.assert_allclose(one_by_one, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "parameters", [{"alpha": 0.0}, {"alpha": "evidence"}, {"alpha": "evidence", "model": "bernoulli"}]
)
@settings(max_examples=10)
@given(rows=ROWS)
def test_without_smoothing_averaged_or_smoothed_by_evidence_too(parameters, rows):
    sparse, _, expected = fit_both(rows, calibrate=False, **parameters)
    np.testing.assert_allclose(sparse.predict_proba(QUESTIONS), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("model", BAG_MODELS)
@settings(max_examples=20)
@given(rows=ROWS)
def test_a_text_left_out_is_answered_as_with_zeros(model, rows):
    sparse, dense, _ = fit_both(rows, model=model, calibrate=False)
    texts, group = [text for text, _ in rows], np.array([label for _, label in rows])
    scores = [m.learned_.rows.text_model.leave_one_out(m.statistics_.parts[0], texts, group) for m in (sparse, dense)]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-9, atol=1e-9)
    priors = [m.learned_.model().leave_one_out_prior(group) for m in (sparse, dense)]
    np.testing.assert_array_equal(*priors)


@settings(max_examples=40)
@given(first=ROWS, second=ROWS, weight=st.sampled_from([0.0, 0.5, 2.0]))
def test_records_add_subtract_and_scale_as_their_tables_do(first, second, weight):
    a, b, both = (count(rows) for rows in (first, second, first + second))
    assert_same_record(a + b, both)
    assert_same_record(both - b, a)
    assert_same_record(b + a, both)
    assert dense(weight * a).tolist() == ((weight * dense(a)).tolist() if weight else [])
    kept = np.array([3, 0, 4])
    np.testing.assert_array_equal(make_dense_counts(a.take_classes(kept).counts), dense(a)[:, kept])
    wide = a.regroup_classes(np.array([1, 2, 5, 6, 7]), 9)
    np.testing.assert_array_equal(dense(wide)[:, [1, 2, 5, 6, 7]], dense(a))
    assert dense(wide).sum() == dense(a).sum()
    np.testing.assert_array_equal(a.pool_classes().counts[:, 0], dense(a).sum(axis=1))


def test_what_was_not_learned_is_refused_by_its_name():
    total = count([("win cash", 0), ("cash", 1), ("noon", 4)])
    with pytest.raises(NotLearnedError, match="cannot forget 1 of 0 of 'cash': only what was learned") as caught:
        total - count([("cash", 4)])
    assert caught.value.index == (4, 0)  # the class, and the token
    with pytest.raises(NotLearnedError, match="cannot forget 1 of 0"):
        total - count([("zebra", 2)])


def count(rows) -> TokenCounts:
    return count_tokens([text for text, _ in rows], np.array([label for _, label in rows]), N_CLASSES, binary=False)


def dense(words):
    return make_dense_counts(words.counts)


def assert_same_record(a, b):
    assert a.tokens() == b.tokens()
    np.testing.assert_array_equal(a.n, b.n)
    for name in ("ends", "classes", "values", "n_classes"):
        np.testing.assert_array_equal(getattr(a.counts, name), getattr(b.counts, name))


@settings(max_examples=20)
@given(rows=ROWS, more=ROWS)
def test_a_forgotten_text_was_never_learned_byte_for_byte(rows, more, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    texts, labels = zip(*rows, strict=True)
    classes = range(N_CLASSES)
    never = TextClassifier(calibrate=False).partial_fit(texts, labels, classes=classes)
    history = TextClassifier(calibrate=False).partial_fit(texts, labels, classes=classes)
    for text, label in more:
        history.learn_one(text, label)
    for text, label in more:
        history.forget_one(text, label)
    save(never, folder / "never.priory")
    save(history, folder / "history.priory")
    assert (folder / "never.priory").read_bytes() == (folder / "history.priory").read_bytes()
    loaded = load(folder / "history.priory")
    np.testing.assert_array_equal(loaded.predict_proba(QUESTIONS), never.predict_proba(QUESTIONS))


def test_the_kind_of_record_follows_from_the_number_of_classes():
    model = TextClassifier(calibrate=False).fit(["win", "lunch"], ["spam", "ham"])
    assert not isinstance(model.statistics_.parts[0].counts, SparseCounts)
    model.partial_fit(["see you"], ["late"])
    assert isinstance(model.statistics_.parts[0].counts, SparseCounts)
    assert dict(zip(model.vocabulary_, model.counts_.toarray().tolist(), strict=True)) == {
        "lunch": [1.0, 0.0, 0.0],
        "see": [0.0, 1.0, 0.0],
        "win": [0.0, 0.0, 1.0],
        "you": [0.0, 1.0, 0.0],
    }
    model.forget(["see you"], ["late"])
    assert not isinstance(model.statistics_.parts[0].counts, SparseCounts)
    assert model.predict(["win"]).tolist() == ["spam"]


def test_tables_and_evidence_of_many_classes():
    rows = [("win cash", 0), ("lunch noon", 1), ("win prize", 2), ("see you", 3), ("cash", 4)]
    sparse, dense, _ = fit_both(rows, calibrate=False)
    np.testing.assert_allclose(sparse.word_probabilities_, dense.word_probabilities_)
    assert [(e.token, e.counts) for e in sparse.evidence(0)] == [(e.token, e.counts) for e in dense.evidence(0)]
    assert str(sparse.tabulate_words(["win"])) == str(dense.tabulate_words(["win"]))
    assert str(sparse.explain(["win cash"])[0]) == str(dense.explain(["win cash"])[0])
    assert sparse.n_parameters_ == dense.n_parameters_


def test_a_model_of_nothing_but_empty_texts_answers_by_its_prior():
    model = TextClassifier(calibrate=False).fit(["", "", ""], ["a", "a", "b"])
    answer = {"a": pytest.approx(2 / 3), "b": pytest.approx(1 / 3)}
    assert model.predict_proba_one("win") == answer
    assert dict(zip(model.classes_.tolist(), model.predict_proba(["win"])[0].tolist(), strict=True)) == answer


def test_a_hundred_thousand_classes_fit_where_a_table_does_not():
    texts = [f"word{i} word{i + 1} common" for i in range(100_000)]
    model = TextClassifier(calibrate=False).fit(texts, [f"class {i}" for i in range(100_000)])
    assert model.counts_.shape == (100_002, 100_000)
    assert model.counts_.nnz == 300_000
    assert model.predict(["word70 common word71"]).tolist() == ["class 70"]
    model.learn_one("zebra", "class 5")
    assert model.predict_one("zebra") == "class 5"
    with pytest.raises(ModelTooLargeError, match="tables of 100,002 tokens and 100,000 classes need about"):
        TextClassifier(calibrate=False, alpha=0.0).fit(texts, [f"class {i}" for i in range(100_000)]).predict(["word1"])


def test_corrections_weigh_the_most_frequent_tokens_if_all_would_be_too_many(monkeypatch):
    texts = ["win cash", "win cash now", "win now", "lunch"]
    counts = TextClassifier(calibrate=False).fit(texts, list("abcd")).statistics_.parts[0]
    assert len(TokenFeatures.of(counts)) == 3  # "lunch" is in one text only
    monkeypatch.setattr(token_features, "MAX_TOKEN_WEIGHTS", 2 * 4)
    kept = TokenFeatures.of(counts)
    assert decode_vocabulary(kept.arena, kept.ends) == ["cash", "win"]  # of "cash" and "now" the first


def test_so_many_rows_are_judged_as_fit_into_memory(monkeypatch):
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=400)
    texts = [" ".join(f"w{label}{k}" for k in rng.integers(9, size=5)) for label in labels]
    model = TextClassifier().fit(texts, labels)
    assert len(model.evaluate().truth) == 400
    monkeypatch.setattr(left_out_scores, "MAX_JUDGED_ANSWERS", 4 * 100)
    some = model.evaluate()
    assert len(some.truth) == 100
    assert some.accuracy.value > 0.8


def test_labels_are_looked_up_whatever_their_type():
    labels = np.array(["ham", 3, None, "spam"], dtype=object)
    assert find_members(labels, np.array(["spam", "ham"], dtype=object)).tolist() == [True, False, False, True]
    assert find_members(np.array([1, 2]), np.array([2, 3])).tolist() == [False, True]


def make_topics(n_classes, n_rows):
    """Texts of a few words of their topic among common ones."""
    rng = np.random.default_rng(3)
    labels = np.arange(n_rows) % n_classes
    words = [
        [f"t{c}w{k}" for k in rng.integers(6, size=3)] + [f"c{k}" for k in rng.integers(50, size=5)] for c in labels
    ]
    return [" ".join(text) for text in words], [f"class {c}" for c in labels]


def test_texts_of_very_many_classes_are_tempered_only(monkeypatch):
    monkeypatch.setattr(calibrator, "MAX_CLASSES_TO_REFINE_TEXTS", 50)
    texts, labels = make_topics(100, 3_000)
    model = TextClassifier().fit(texts, labels)
    assert model.corrections_.names == ("tempering",)
    new, truth = make_topics(100, 4_000)
    new, truth = new[3_000:], model.classes_.searchsorted(truth[3_000:])
    losses = [-m.predict_log_proba(new)[np.arange(1_000), truth].mean() for m in (model, model.without_corrections())]
    assert losses[0] < 0.5 * losses[1]
    one = model.predict_proba_one(new[0])
    np.testing.assert_allclose(list(one.values()), model.predict_proba(new[:1])[0], rtol=1e-9)
