"""Answers after forgetting: nothing in them was computed from the row, and standby corrections need no derivation."""

import copy
import pickle

import numpy as np
import pytest

from priory import NaiveBayes, TextClassifier, save
from priory.calibration.calibrator import Calibrator
from priory.core.content_hash import hash_content

N_ROWS = 400


def make_rows(n=N_ROWS, seed=0):
    rng = np.random.default_rng(seed)
    rows = [
        {
            "size": float(rng.normal()),
            "colour": str(rng.choice(["red", "blue", "green"])),
            "age": float(rng.integers(90)),
        }
        for _ in range(n)
    ]
    labels = ["b" if row["size"] + (row["colour"] == "red") + rng.normal() > 0.5 else "a" for row in rows]
    return rows, labels


def find_hashes(model, rows, labels):
    """The hash of each row, by which rows are kept."""
    alone = (copy.copy(model).fit([row] * 2, [label] * 2) for row, label in zip(rows, labels, strict=True))
    return [int(one.statistics_.sample.hashes[0]) for one in alone]


def find_blocks(model, rows, labels):
    """The block of each row: the last two bits of its hash."""
    return [row_hash % 4 for row_hash in find_hashes(model, rows, labels)]


@pytest.fixture
def forbid_deriving(monkeypatch):
    def forbid():
        monkeypatch.setattr(Calibrator, "fit", lambda *_: pytest.fail("corrections were fitted"))

    return forbid


def answer(model, rows):
    return np.array([list(model.predict_proba_one(row).values()) for row in rows])


@pytest.mark.parametrize("is_ready", [False, True], ids=["derived anew", "standby"])
def test_no_number_in_an_answer_was_computed_from_a_forgotten_row(is_ready):
    """Two models that differ in one row answer alike as soon as it is forgotten (with standby: rows of one block)."""
    rows, labels = make_rows()
    candidates = [{"size": 50.0 + i, "colour": "purple", "age": -1.0} for i in range(12)]
    blocks = find_blocks(NaiveBayes(), candidates, ["a"] * 12)
    chosen = [row for row, block in zip(candidates, blocks, strict=True) if block == blocks[0]][:2]
    found = []
    for row in chosen:
        model = NaiveBayes().fit([*rows, row], [*labels, "a"])
        model = model.prepare_standby() if is_ready else model
        model.predict_proba_one(rows[0])
        model.forget_one(row, "a")
        found.append(np.concatenate([answer(model, rows[:20]), model.predict_proba(rows)]))
    assert len(chosen) == 2
    assert np.array_equal(*found)


def test_as_soon_as_corrections_are_derived_answers_are_those_of_a_model_that_never_saw_the_row(tmp_path):
    rows, labels = make_rows()
    never = NaiveBayes().fit(rows[1:], labels[1:])
    model = NaiveBayes().fit(rows, labels).prepare_standby().forget_one(rows[0], labels[0])
    assert not np.array_equal(model.predict_proba(rows), never.predict_proba(rows))
    files = [tmp_path / name for name in ("model.priory", "never.priory")]
    for one, path in zip((model.with_corrections(), never), files, strict=True):
        save(one, path)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert np.array_equal(model.refresh().predict_proba(rows), never.predict_proba(rows))
    assert np.array_equal(answer(model, rows[:9]), answer(never, rows[:9]))


@pytest.mark.parametrize("forget", ["one", "table", "after a copy"])
def test_kept_rows_of_one_block_are_forgotten_without_deriving(forget, forbid_deriving):
    rows, labels = make_rows()
    blocks = find_blocks(NaiveBayes(), rows[:40], labels[:40])
    own = [i for i, block in enumerate(blocks) if block == blocks[0]]
    model = NaiveBayes().fit(rows, labels).prepare_standby()
    forbid_deriving()
    for i in own:
        if forget == "table":
            model.forget([rows[i]] * 1, [labels[i]])
        else:
            model = copy.copy(model) if forget == "after a copy" else model
            model.forget_one(rows[i], labels[i])
        assert np.allclose(answer(model, rows[50:52]), model.predict_proba(rows[50:52]))


def test_a_standby_set_is_that_of_a_model_that_never_saw_the_block():
    rows, labels = make_rows()
    blocks = find_blocks(NaiveBayes(), rows, labels)
    model = NaiveBayes().fit(rows, labels).prepare_standby()
    model.forget_one(rows[0], labels[0])
    outside = [i for i, block in enumerate(blocks) if block != blocks[0]]
    never = NaiveBayes().fit([rows[i] for i in outside], [labels[i] for i in outside])
    parts = [(c.tempering, c.encoding, c.members, c.pool) for c in (model.corrections_, never.corrections_)]
    assert hash_content(parts[0]) == hash_content(parts[1])


def test_rows_of_two_blocks_need_new_corrections():
    rows, labels = make_rows()
    blocks = find_blocks(NaiveBayes(), rows[:40], labels[:40])
    other = next(i for i, block in enumerate(blocks) if block != blocks[0])
    model = NaiveBayes().fit(rows, labels).prepare_standby()
    model.forget_one(rows[0], labels[0]).forget_one(rows[other], labels[other])
    left = [i for i in range(N_ROWS) if i not in (0, other)]
    never = NaiveBayes().fit([rows[i] for i in left], [labels[i] for i in left])
    assert np.array_equal(model.predict_proba(rows), never.predict_proba(rows))


def test_rows_learned_meanwhile_are_learned_and_standby_sets_are_not_pickled():
    rows, labels = make_rows()
    model = NaiveBayes().fit(rows[1:], labels[1:]).prepare_standby()
    model.forget_one(rows[1], labels[1]).learn_one(rows[0], labels[0])
    loaded = pickle.loads(pickle.dumps(model))
    never = NaiveBayes().fit([rows[0], *rows[2:]], [labels[0], *labels[2:]])
    for one in (model.refresh(), loaded):
        assert np.array_equal(one.predict_proba(rows), never.predict_proba(rows))


def test_texts_have_standby_sets_too(forbid_deriving):
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["win", "cash", "lunch", "noon", "now", "you"], 6)) + f" w{i}" for i in range(150)]
    labels = ["spam" if "cash" in text else "ham" for text in texts]
    model = TextClassifier().fit(texts, labels).prepare_standby()
    never = TextClassifier().fit(texts[1:], labels[1:])
    version = hash_content(never.corrections_)
    forbid_deriving()
    model.forget_one(texts[0], labels[0])
    assert model.predict_proba(texts[:3]).shape == (3, 2)
    assert model.corrections_version_ != version


def test_rows_that_are_not_kept_are_counted_out_of_the_evidence_and_nothing_is_derived(forbid_deriving):
    rows, labels = make_rows(600)
    model = NaiveBayes(memory=100).fit(rows, labels)
    kept = set(model.statistics_.sample.hashes.tolist())
    gone = [i for i, row_hash in enumerate(find_hashes(model, rows[:60], labels[:60])) if row_hash not in kept]
    left = [i for i in range(600) if i not in gone]
    never = NaiveBayes(memory=100).fit([rows[i] for i in left], [labels[i] for i in left])
    model.predict_proba_one(rows[0])
    forbid_deriving()
    for i in gone:
        model.forget_one(rows[i], labels[i])
        assert len(answer(model, rows[:2])) == 2
    assert len(gone) > 20
    assert np.array_equal(answer(model, rows[:30]), answer(never, rows[:30]))
    assert np.array_equal(model.predict_proba(rows), never.predict_proba(rows))
    assert model.corrections_version_ == never.corrections_version_


def make_texts(n):
    rng = np.random.default_rng(1)
    words = np.array(["win", "cash", "lunch", "noon", "now", "you", "free", "call"])
    texts = [" ".join(rng.choice(words, 6)) + f" w{rng.integers(200)} v{i}" for i in range(n)]
    return texts, ["spam" if "cash" in text or rng.random() < 0.1 else "ham" for text in texts]


@pytest.mark.parametrize("kind", ["texts", "a column of texts"])
def test_texts_that_are_not_kept_leave_without_deriving(kind, forbid_deriving):
    rows, labels = make_texts(700)
    model = TextClassifier(memory=500)
    if kind != "texts":
        rows = [{"note": text, "size": float(i % 7)} for i, text in enumerate(rows)]
        model = NaiveBayes({"note": "text"}, memory=500)
    never, model = copy.copy(model), model.fit(rows, labels)
    kept = set(model.statistics_.sample.hashes.tolist())
    gone = [i for i, row_hash in enumerate(find_hashes(model, rows[:60], labels[:60])) if row_hash not in kept]
    left = [i for i in range(700) if i not in gone]
    never.fit([rows[i] for i in left], [labels[i] for i in left])
    forbid_deriving()
    for i in gone:
        model.predict_proba_one(rows[0])
        model.learn_one(rows[i], labels[i]).forget_one(rows[i], labels[i])  # the tempering learns, and is restored
        model.forget_one(rows[i], labels[i])
        assert len(answer(model, rows[:2])) == 2
    assert len(gone) > 5
    assert np.array_equal(answer(model, rows[:30]), answer(never, rows[:30]))
    assert np.array_equal(model.predict_proba(rows), never.predict_proba(rows))
    assert model.corrections_version_ == never.corrections_version_


def test_a_text_that_is_not_kept_changes_no_correction_but_the_class_prior():
    """Below 250 kept texts for each class, corrections are fitted with the counts of all texts."""
    texts, labels = make_texts(700)
    for memory, is_same in ((500, True), (300, False)):
        model = TextClassifier(memory=memory).fit(texts, labels)
        kept = set(model.statistics_.sample.hashes.tolist())
        hashes = find_hashes(model, texts[:30], labels[:30])
        i = next(i for i, row_hash in enumerate(hashes) if row_hash not in kept)
        never = TextClassifier(memory=memory).fit(texts[:i] + texts[i + 1 :], labels[:i] + labels[i + 1 :])
        found = [
            hash_content((c.tempering, c.members, c.pool, c.tokens)) for c in (model.corrections_, never.corrections_)
        ]
        assert (found[0] == found[1]) is is_same
