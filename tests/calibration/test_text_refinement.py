"""Texts refined over words and pairs of words: what it learns, its laws, and what it does not claim."""

import numpy as np
import pytest

import priory as pr
from priory import inbox
from priory.errors import DataError
from priory.storage import load, save
from sparse_tables import to_csr

FILLERS = ["film", "plot", "cast", "score", "end", "scene", "light", "tone"]


def make_reviews(n, seed=0):
    """Whether a review praises depends on two words together; the others say nothing."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(n):
        negated, good = rng.random(2) < 0.5
        said = ["not" if negated else "so", "good" if good else "bad"]
        around = rng.choice(FILLERS, rng.integers(2, 9)).tolist()
        at = int(rng.integers(0, len(around)))
        texts.append(" ".join([*around[:at], *said, *around[at:]]))
        labels.append("pos" if good != negated else "neg")
    return texts, labels


def make_model():
    return pr.TextClassifier(pairs="auto")


@pytest.fixture(scope="module")
def reviews():
    return make_reviews(400)


@pytest.fixture(scope="module")
def whole(reviews):
    return make_model().fit(*reviews)


def count_pairs(model):
    return sum(len(features.pairs) for features in model.corrections_.tokens)


def test_pairs_are_weighed_where_they_help(whole, reviews):
    new, truth = make_reviews(300, seed=1)
    words = pr.TextClassifier(pairs=False).fit(*reviews)
    assert words.score(new, truth) < 0.65
    assert whole.score(new, truth) > 0.95
    assert count_pairs(whole) > 0
    assert count_pairs(words) == 0
    assert "refinement" in whole.corrections_.names


def make_misspelled(n, seed=0):
    """Made-up words, each seldom there twice, whose class is told by a syllable in them."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(["north", "south"], n).tolist()
    syllables = {"north": ["ska", "vik"], "south": ["ela", "ino"]}
    letters = list("abcdefghijklmnopqrstuvwxyz")

    def make_word(label):
        before, after = ("".join(rng.choice(letters, 2)) for _ in range(2))
        return before + rng.choice(syllables[label]) + after

    return [" ".join(make_word(label) for _ in range(6)) for label in labels], labels


def test_characters_are_weighed_where_words_are_seldom_seen_twice():
    texts, labels = make_misspelled(400)
    new, truth = make_misspelled(200, seed=1)
    model = pr.TextClassifier().fit(texts, labels)
    assert model.score(new, truth) > 0.95
    assert pr.TextClassifier(analyzer="word").fit(texts, labels).score(new, truth) < 0.8
    single = [model.predict_proba_one(text)["north"] for text in new]
    assert single == pytest.approx(model.predict_proba(new)[:, 0].tolist(), abs=1e-6)
    for ledger, p in zip(model.explain(new[:20]), model.predict_proba(new[:20]), strict=True):
        assert ledger.probabilities() == pytest.approx(p, abs=1e-6)
    # a function of the record: nothing is left of a forgotten text, and parts merge
    more = model.partial_fit(new[:40], truth[:40]).forget(new[:40], truth[:40])
    assert np.array_equal(more.predict_proba(new), pr.TextClassifier().fit(texts, labels).predict_proba(new))
    halves = [pr.TextClassifier().fit(texts[at], labels[at]) for at in (slice(0, 200), slice(200, None))]
    assert np.array_equal((halves[0] + halves[1]).predict_proba(new), more.predict_proba(new))


def test_punctuation_and_emoji_are_weighed_in_pairs():
    rng = np.random.default_rng(0)
    labels = rng.choice(["glad", "sad"], 500).tolist()
    marks = {"glad": "😀", "sad": "…"}
    texts = [f"{' '.join(rng.choice(FILLERS, 5))} {marks[label]} {rng.choice(FILLERS)}" for label in labels]
    assert pr.TextClassifier().fit(texts[:400], labels[:400]).score(texts[400:], labels[400:]) > 0.95
    assert pr.TextClassifier(pairs=False).fit(texts[:400], labels[:400]).score(texts[400:], labels[400:]) < 0.7


def test_pairs_are_left_alone_where_words_say_it_all():
    rows, labels = inbox()
    texts = [row["text"] for row in rows]
    assert count_pairs(make_model().fit(texts, labels)) == 0
    assert count_pairs(pr.TextClassifier(pairs=True).fit(texts, labels)) > 0
    assert count_pairs(pr.TextClassifier(pairs=True, ngram_range=(1, 2)).fit(texts, labels)) == 0


def test_pairs_are_left_alone_where_few_texts_need_them():
    def learn_with_pairs(n_needing, n_plain):
        """Texts of which some need pairs, and the others have a word that says it all."""
        texts, labels = make_reviews(n_needing)
        plain = [f"{text} {label}" for text, label in zip(*make_reviews(n_plain, seed=1), strict=True)]
        return make_model().fit(texts + plain, labels + [text.split()[-1] for text in plain])

    assert count_pairs(learn_with_pairs(160, 240)) > 0
    assert count_pairs(learn_with_pairs(40, 3000)) == 0


def test_batches_merging_and_forgetting_give_the_refinement_of_one_fit(whole, reviews):
    texts, labels = reviews
    streamed = make_model()
    for part in np.array_split(np.random.default_rng(2).permutation(400), 3):
        streamed.partial_fit([texts[i] for i in part], [labels[i] for i in part])
    assert streamed.refresh().corrections_version_ == whole.corrections_version_
    merged = make_model().fit(texts[150:], labels[150:]) + make_model().fit(texts[:150], labels[:150])
    assert merged.corrections_version_ == whole.corrections_version_
    more, others = make_reviews(60, seed=3)
    forgotten = make_model().fit(texts + more, labels + others).forget(more, others)
    assert forgotten.corrections_version_ == whole.corrections_version_
    assert np.array_equal(forgotten.predict_proba(texts), whole.predict_proba(texts))


def test_a_refined_model_is_saved_with_what_it_derives_its_corrections_from(whole, reviews, tmp_path):
    texts, labels = reviews
    save(whole, tmp_path / "reviews.priory")
    loaded = load(tmp_path / "reviews.priory")
    assert np.array_equal(loaded.predict_proba(texts), whole.predict_proba(texts))
    loaded.forget(texts[:50], labels[:50])
    assert loaded.corrections_version_ == make_model().fit(texts[50:], labels[50:]).corrections_version_


def test_one_text_is_answered_as_among_many(whole, reviews):
    texts = reviews[0][:20]
    alone = np.concatenate([whole.predict_proba([text]) for text in texts])
    assert np.allclose(alone, whole.predict_proba(texts), atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_labels_that_mean_nothing_are_answered_with_the_base_rate(seed):
    texts, _ = make_reviews(300, seed)
    labels = np.random.default_rng(seed).choice(["a", "b"], 300, p=[0.7, 0.3])
    model = make_model().fit(texts, labels)
    assert model.evaluate().gain["log_loss"].low <= 0
    assert np.abs(model.predict_proba(texts)[:, 1] - np.mean(labels == "b")).max() < 0.15


def test_texts_that_were_learned_several_times_are_left_out_as_a_whole(reviews):
    texts, labels = reviews
    once = pr.TextClassifier(pairs=True).fit(texts, labels)
    thrice = pr.TextClassifier(pairs=True).fit(texts * 3, labels * 3)
    new, truth = make_reviews(300, seed=1)
    assert thrice.score(new, truth) > 0.95
    assert once.evaluate().log_loss.value < 0.3
    weights = thrice.corrections_.members[-1].weights
    assert np.isfinite(weights).all()


@pytest.mark.parametrize("name", ["refine", "pairs"])
def test_options_that_are_not_there(name):
    with pytest.raises(DataError, match=f"{name} is 'yes'; use 'auto', True or False."):
        pr.TextClassifier(**{name: "yes"}).fit(["a b", "c d"], ["x", "y"])


def test_a_shift_of_all_texts_alike_is_held_back_unless_refinement_was_asked_for():
    rng = np.random.default_rng(0)
    labels = rng.permutation(["ham", "spam"] * 300)  # the class prior has no part in it
    said = {"ham": ["offer"] * 3 + ["lunch"] * 2, "spam": ["offer"] * 4 + ["prize"]}
    texts = [f"from to subject {' '.join(rng.choice(said[label], 3))} {rng.integers(200)}" for label in labels]

    def measure_shift(model):
        learned = model.learned_
        cells = learned.rows.read_cells(learned.rows.read(texts, "answer")[1])
        [rows] = learned.model().encode_tokens(model.corrections_.tokens, cells)
        added = np.asarray(to_csr(rows).mean(axis=0)) @ model.corrections_.members[-1].weights[1:]
        return abs(added[1] - added[0])

    careful, asked = (pr.TextClassifier(refine=refine).fit(texts, labels) for refine in ("auto", True))
    assert measure_shift(careful) < 0.6 * measure_shift(asked)


def make_topics(texts_of_class, seed, classes=12):
    """Texts of many classes with a few words of their own, among very many that say nothing; some are long."""
    rng, texts, labels = np.random.default_rng(seed), [], []
    for c in range(classes):
        for _ in range(texts_of_class):
            own = [f"topic{c}word{k}" for k in rng.choice(8, 2, replace=False)]
            texts.append(
                " ".join(own + [f"filler{k}" for k in rng.zipf(1.3, rng.integers(5, 60 + 20 * c)) if k < 5000])
            )
            labels.append(f"c{c:02d}")
    return texts, labels


def test_words_that_no_class_has_seen_are_no_argument_for_short_texts():
    texts, labels = make_topics(4, 0)
    asked, truth = make_topics(20, 1)
    model = pr.TextClassifier().fit(texts, labels)
    assert model.score(asked, truth) > 0.5 > pr.TextClassifier(calibrate=False).fit(texts, labels).score(asked, truth)
    assert model.evaluate().log_loss.value < 2.0


def test_single_texts_are_answered_as_in_a_batch_where_texts_are_few():
    texts, labels = make_topics(4, 0)
    model, asked = pr.TextClassifier().fit(texts, labels), make_topics(1, 1)[0]
    one = [list(model.predict_proba_one(text).values()) for text in asked]
    assert np.array(one) == pytest.approx(model.predict_proba(asked), abs=1e-12)


@pytest.mark.parametrize("texts", [["a b", "b c"], ["a", ""], ["", ""], ["!", "?"]])
@pytest.mark.parametrize("n_texts", [8, 40, 200])
def test_texts_without_words_are_answered_with_probabilities(texts, n_texts):
    labels = np.resize(["p", "q"], n_texts)
    answers = pr.TextClassifier().fit(list(np.resize(texts, n_texts)), labels).predict_proba([*texts, "new word"])
    assert np.isfinite(answers).all()
    np.testing.assert_allclose(answers.sum(axis=1), 1.0)


def make_opinions(n, share, seed):
    """Texts with one word in so many that tells the class two times in three."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(["neg", "pos"], n)
    tells = np.where(rng.random(n) < 2 / 3, labels == "pos", labels == "neg")
    words = np.where(tells, "fine", "dull")
    texts = [
        " ".join([*rng.choice(FILLERS, 6), *([word] if told else [])])
        for word, told in zip(words, rng.random(n) < share, strict=True)
    ]
    return texts, labels.tolist()


def test_weak_signal_is_used_and_noise_costs_next_to_nothing():
    gains = {0.9: [], 0.0: []}
    for share, found in gains.items():
        for seed in range(12):
            model = pr.TextClassifier().fit(*make_opinions(120, share, seed))
            new, truth = make_opinions(400, share, 100 + seed)
            own = np.searchsorted(model.classes_, truth)
            found.append(model.predict_log_proba(new)[np.arange(400), own].mean() + np.log(2))
    assert np.mean(gains[0.9]) > 0.02
    assert np.mean(gains[0.0]) > -0.005


@pytest.mark.parametrize("parameters", [{}, {"alpha": 0.1}, {"vocabulary": ["film", "plot", "not", "good"]}])
def test_leaving_out_folds_and_rows_is_to_forget_them(parameters):
    texts, labels = make_reviews(24)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 3.0], 24)
    fitted = pr.TextClassifier(pairs=False, **parameters).fit(texts, labels, weight)
    model, cells = fitted._learned().model(), fitted.statistics_.sample.blocks
    group, weight = fitted.statistics_.sample.group, fitted.statistics_.sample.weight.astype(float)
    fold = np.arange(len(group)) % 3
    parts = [np.where(fold == k, weight, 0.0) for k in (1, -1)]
    for k, found in zip((1, -1), model.leave_parts_out(cells, group, weight, parts), strict=True):
        rest = model.forget([block.take_rows(fold == k) for block in cells], group[fold == k], weight[fold == k])
        assert found.values[:, :, 0] == pytest.approx(np.tile(rest.estimated_log_prior(), (len(group), 1)))
        for i in range(len(group)):
            one = [block.take_rows(slice(i, i + 1)) for block in cells]
            left = rest if fold[i] == k else rest.forget(one, group[i : i + 1], weight[i : i + 1])
            expected = left.evidence_terms(one).values[0, :, 1]
            assert np.diff(found.values[i, :, 1]) == pytest.approx(np.diff(expected))
