"""Texts without labels: used where they help, never seen once forgotten, and no worse than without them."""

import numpy as np
import pytest

import priory
from paths import DATA
from priory import TextClassifier
from priory.errors import DataError, NotLearnedError

WORDS = {"a": ["cash", "win", "prize", "bank"], "b": ["lunch", "noon", "soup", "home"]}
NOISE = [f"w{k}" for k in range(60)]


def make_texts(rows, seed, words=WORDS, labels="ab"):
    rng = np.random.default_rng(seed)
    y = rng.choice(list(labels), rows)
    return [" ".join([*rng.choice(words[c], 2), *rng.choice(NOISE, 5)]) for c in y], y.tolist()


def fit(labelled, others, **parameters):
    (texts, labels), more = labelled, list(others)
    return TextClassifier(unlabelled=True, **parameters).fit(texts + more, labels + [None] * len(more))


def measure_losses(model, texts, labels):
    own = np.searchsorted(model.classes_, labels)
    return -model.predict_log_proba(texts)[np.arange(len(own)), own]


def save(model, path):
    priory.save(model, path)
    return path.read_bytes()


def test_texts_without_label_help():
    labelled, others, new = make_texts(12, 0), make_texts(400, 1)[0], make_texts(400, 2)
    with_others, alone = fit(labelled, others), TextClassifier().fit(*labelled)
    assert "400 texts without label: used" in with_others.unlabelled_
    assert with_others.score(*new) > alone.score(*new) + 0.02
    assert measure_losses(with_others, *new).mean() < measure_losses(alone, *new).mean()


@pytest.mark.parametrize("seed", range(4))
def test_they_are_not_used_where_labels_are_noise(seed):
    texts, labels = make_texts(40, seed)
    shuffled = np.random.default_rng(seed).permutation(labels).tolist()
    model = fit((texts, shuffled), make_texts(200, 50 + seed)[0])
    new = make_texts(200, 90 + seed)
    noise = np.random.default_rng(seed).permutation(new[1]).tolist()
    plain = TextClassifier().fit(texts, shuffled)
    assert measure_losses(model, new[0], noise).mean() < measure_losses(plain, new[0], noise).mean() + 0.05


def test_any_history_gives_the_same_file(tmp_path):
    (texts, labels), others = make_texts(20, 0), make_texts(60, 1)[0]
    once = fit((texts, labels), others)
    parts = TextClassifier(unlabelled=True).fit(texts[:8], labels[:8]).partial_fit(others[:30], None)
    parts.partial_fit(texts[8:] + others[30:], labels[8:] + [None] * 30)
    parts.partial_fit(["extra words"], None).partial_fit(["labelled extra"], ["a"])
    parts.forget(["labelled extra", "extra words"], ["a", None])
    merged = fit((texts[:10], labels[:10]), others[:5]) + fit((texts[10:], labels[10:]), others[5:])
    files = {save(model, tmp_path / "model.priory") for model in (once, parts, merged)}
    assert len(files) == 1
    loaded = priory.load(tmp_path / "model.priory")
    assert np.array_equal(loaded.predict_proba(others[:9]), once.predict_proba(others[:9]))
    assert loaded.unlabelled_ == once.unlabelled_


@pytest.mark.parametrize("seed", range(3))
def test_random_histories_leave_what_was_never_forgotten(seed, tmp_path):
    rng = np.random.default_rng(seed)
    (texts, labels), others = make_texts(30, seed), make_texts(30, seed + 50)[0]
    rows = [*zip(texts, labels, strict=True), *((text, None) for text in others)]
    order, gone = rng.permutation(60), set(rng.choice(60, 20, replace=False).tolist())
    model = TextClassifier(unlabelled=True).fit(texts[:1], labels[:1]).forget(texts[:1], labels[:1])
    for part in np.array_split(order, 5):
        model.partial_fit([rows[k][0] for k in part], [rows[k][1] for k in part])
        out = [k for k in part if k in gone]
        if out:
            model.forget([rows[k][0] for k in out], [rows[k][1] for k in out])
    left = [rows[k] for k in range(60) if k not in gone]
    fresh = TextClassifier(unlabelled=True).fit([text for text, _ in left], [label for _, label in left])
    assert save(model, tmp_path / "a.priory") == save(fresh, tmp_path / "b.priory")


def test_all_others_forgotten_is_a_model_without_them(tmp_path):
    labelled, others = make_texts(20, 0), make_texts(30, 1)[0]
    left = fit(labelled, others).forget(others, None)
    assert save(left, tmp_path / "a.priory") == save(fit(labelled, []), tmp_path / "b.priory")
    with pytest.raises(NotLearnedError):
        left.forget(others[:1], None)


def test_a_text_gets_its_label():
    labelled, others = make_texts(20, 0), make_texts(30, 1)
    model = fit(labelled, others[0]).forget(others[0][:1], None).partial_fit(others[0][:1], others[1][:1])
    assert model.class_count_.sum() == 21


def test_forgetting_one_that_was_not_learned_changes_nothing(tmp_path):
    labelled, others = make_texts(20, 0), make_texts(30, 1)[0]
    model = fit(labelled, others)
    before = save(model, tmp_path / "a.priory")
    with pytest.raises(NotLearnedError):
        model.forget([labelled[0][0], "never seen"], [labelled[1][0], None])
    assert save(model, tmp_path / "a.priory") == before


def test_evaluation_and_explanation_are_of_the_answers():
    labelled, others = make_texts(24, 0), make_texts(300, 1)[0]
    model = fit(labelled, others)
    assert model.evaluate().accuracy.value > 0.8
    [ledger] = model.explain(others[:1])
    assert ledger.probabilities() == pytest.approx(model.predict_proba(others[:1])[0], abs=1e-6)
    assert model.predict_proba_one(others[0])["a"] == pytest.approx(model.predict_proba(others[:1])[0, 0])


@pytest.mark.parametrize("parameters", [{"buckets": 4096}, {"model": "multinomial"}, {"memory": 0}])
def test_other_models_of_texts(parameters):
    model = fit(make_texts(24, 0), make_texts(100, 1)[0], **parameters)
    assert np.isfinite(model.predict_log_proba(["cash now", "", "unheard of"])).all()


def test_missing_labels_have_to_be_declared():
    texts, labels = make_texts(10, 0)
    with pytest.raises(DataError, match="row 9 has no label"):
        TextClassifier().fit(texts, [*labels[:-1], None])
    with pytest.raises(DataError, match="the target y is None"):
        TextClassifier().fit(texts, labels).partial_fit(texts, None)
    with pytest.raises(DataError, match="for labelled texts"):
        TextClassifier(unlabelled=True).fit(texts, [*labels[:-1], None], np.ones(10))
    with pytest.raises(DataError, match="10 texts and y 3"):
        TextClassifier(unlabelled=True).fit(texts, labels[:3])


def test_few_labelled_messages_with_many_others():
    path = DATA / "sms_spam" / "SMSSpamCollection"
    if not path.exists():
        pytest.skip("the data set is absent")
    rows = [line.split("\t", 1) for line in path.read_text(encoding="utf-8").split("\n") if line]
    rng = np.random.default_rng(0)
    order = rng.permutation(len(rows)).tolist()
    chosen = [r for r in order if rows[r][0] == "spam"][:20] + [r for r in order if rows[r][0] == "ham"][:20]
    rest = [r for r in order if r not in set(chosen)]
    labelled = [rows[r][1] for r in chosen], [rows[r][0] for r in chosen]
    new = [rows[r][1] for r in rest[1500:3000]], [rows[r][0] for r in rest[1500:3000]]
    model = fit(labelled, [rows[r][1] for r in rest[:1500]])
    assert model.score(*new) > TextClassifier().fit(*labelled).score(*new) + 0.05
