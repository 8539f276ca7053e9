"""A column of texts in a table can do what `TextClassifier` can, and is forgotten, merged and saved like any column."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import priory as pr
from priory import inbox
from priory.errors import DataError, ModelFileError
from priory.families import Text
from priory.text.tokenizer import Tokenizer

ROWS, LABELS = inbox()
ROWS, LABELS = [{"text": row["text"]} for row in ROWS], list(LABELS)
TEXTS = [row["text"] for row in ROWS]
DECLARED = {
    "plain": {},
    "evidence": {"alpha": "evidence"},
    "occurrences": {"model": "multinomial"},
    "vocabulary": {"vocabulary": ("cash", "lunch", "meeting", "win"), "unknown": True},
    "buckets": {"buckets": 256, "salt": 5},
    "stop_words": {"stop_words": frozenset({"the", "to"})},
    "unsmoothed": {"alpha": 0.0},
}
declared = pytest.mark.parametrize("options", DECLARED.values(), ids=DECLARED)


def table_model(options):
    return pr.NaiveBayes({"text": Text(tokenizer=Tokenizer(), **options)}, calibrate=False)


def text_model(options):
    return pr.TextClassifier(**options, calibrate=False)


@declared
def test_a_column_of_texts_answers_as_the_text_classifier(options):
    table, text = table_model(options).fit(ROWS, LABELS), text_model(options).fit(TEXTS, LABELS)
    assert np.allclose(table.predict_log_proba(ROWS), text.predict_log_proba(TEXTS), atol=1e-9)


@declared
def test_leave_one_out_is_refitting(options):
    rows, labels = ROWS[:60], LABELS[:60]
    left_out = table_model(options).fit(rows, labels).leave_one_out(rows, labels)
    for i in range(0, 60, 7):
        others = [j for j in range(60) if j != i]
        refitted = table_model(options).fit([rows[j] for j in others], [labels[j] for j in others])
        expected = refitted.predict_log_proba([rows[i]])[0]
        if np.isfinite(refitted.predict_joint_log_proba([rows[i]])).any():  # otherwise only the class prior answers
            assert np.allclose(left_out[i], expected, atol=1e-9)


@declared
def test_forgetting_is_exact_and_merging_is_learning_both(options):
    never = table_model(options).fit(ROWS[:200], LABELS[:200])
    left = table_model(options).fit(ROWS, LABELS).forget(ROWS[200:], LABELS[200:])
    assert np.array_equal(left.predict_proba(ROWS), never.predict_proba(ROWS))
    merged = never + table_model(options).fit(ROWS[200:], LABELS[200:])
    whole = table_model(options).fit(ROWS, LABELS)
    assert np.allclose(merged.predict_proba(ROWS), whole.predict_proba(ROWS), atol=1e-12)


@declared
def test_a_saved_model_goes_on_learning_and_forgetting(options, tmp_path):
    model = table_model(options).fit(ROWS[:200], LABELS[:200])
    pr.save(model, tmp_path / "model.priory")
    loaded = pr.load(tmp_path / "model.priory")
    assert np.array_equal(loaded.predict_proba(ROWS), model.predict_proba(ROWS))
    loaded.partial_fit(ROWS[200:], LABELS[200:]).forget(ROWS[:100], LABELS[:100])
    refitted = table_model(options).fit(ROWS[100:], LABELS[100:])
    assert np.allclose(loaded.predict_proba(ROWS), refitted.predict_proba(ROWS), atol=1e-12)


@pytest.mark.parametrize("options", [{"buckets": 1024}, {"alpha": "evidence"}, {"max_tokens": 300}])
def test_probabilities_are_calibrated_whatever_the_vocabulary(options):
    model = pr.NaiveBayes({"text": Text(**options)}).fit(ROWS, LABELS)
    scores = model.evaluate()
    assert scores.log_loss.value < 0.75  # base rate: 1.07
    assert np.isfinite(model.predict_log_proba(ROWS)).all()


def test_a_file_cannot_ask_for_more_buckets_than_it_holds(tmp_path):
    model = table_model({"buckets": 16}).fit(ROWS, LABELS)
    learned = model.learned_
    [block] = learned.rows.schema.blocks
    schema = replace(learned.rows.schema, blocks=(replace(block, candidates=(Text(buckets=1 << 45),)),))
    model.adopt(replace(learned, rows=replace(learned.rows, schema=schema)), finish=False)
    with pytest.raises(ModelFileError, match="does not fit the columns"):
        pr.save(model, tmp_path / "model.priory")


def test_a_lossy_count_can_be_left_out_and_forgotten():
    for options in ({}, {"model": "bernoulli"}):
        model = pr.TextClassifier(max_tokens=300, **options).fit(TEXTS, LABELS)
        assert np.isfinite(model.leave_one_out(TEXTS, LABELS)).all()
        model.forget(TEXTS[:50], LABELS[:50])
        assert (model.counts_ >= 0).all()


def test_text_can_be_cloned_compared_and_hashed():
    text = Text(vocabulary=["cash", "win"], stop_words=["the"])
    model = clone(pr.NaiveBayes({"text": text}).fit(ROWS, LABELS))
    assert model.families["text"] == text
    assert hash(text) == hash(Text(vocabulary=("cash", "win"), stop_words={"the"}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "trigram"}, "model is 'trigram'; use one of binary, multinomial, bernoulli."),
        ({"alpha": -1}, "alpha is -1; use a number from 0, or 'evidence'."),
        ({"alpha": "loo"}, "alpha is 'loo'; use a number from 0, or 'evidence'."),
        ({"buckets": 0}, "buckets is 0; it must be 1 or more."),
        ({"buckets": 4, "salt": -1}, "salt is -1; it must be a whole number from 0 to 2**64 - 1."),
        ({"buckets": 4, "vocabulary": ["cash"]}, "buckets and vocabulary do not go together; use one."),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_declared_is_refused(options, message):
    with pytest.raises(DataError) as caught:
        Text(**options)
    assert str(caught.value) == message
