"""Evidence for and against a class, apart: added words take nothing from the other side, and shares are error rates."""

import numpy as np
import pytest

import priory as pr

RNG = np.random.default_rng(0)
WORDS = {"ham": [f"good{i}" for i in range(300)], "spam": [f"bad{i}" for i in range(300)]}
BOTH = [f"word{i}" for i in range(300)]


def write_text(label):
    own = RNG.choice(WORDS[label], RNG.integers(3, 30))
    other = RNG.choice(WORDS["spam" if label == "ham" else "ham"], RNG.integers(0, 4))
    return " ".join([*own, *other, *RNG.choice(BOTH, 30)])


@pytest.fixture(scope="module")
def model():
    labels = ["ham", "spam"] * 300
    return pr.TextClassifier().fit([write_text(label) for label in labels], labels)


def test_words_that_are_added_take_nothing_from_the_other_side(model):
    spam = write_text("spam")
    before, after = model.explain([spam, f"{spam} {' '.join(WORDS['ham'][:100])}"])
    assert after.sides["spam"].evidence_for >= before.sides["spam"].evidence_for
    assert after.sides["ham"].evidence_against >= before.sides["ham"].evidence_against
    assert after.winner == "ham"
    assert after.doubt == "contrary"
    assert after.sides["ham"].typicality < 0.05
    assert "unusual for ham: its strongest words have" in str(after)


def test_a_text_of_unknown_words_is_unlike_those_learned(model):
    [ledger] = model.explain(["nothing that was ever learned"])
    assert ledger.doubt == "unlike"
    assert ledger.sides[ledger.winner].typicality < 0.05


@pytest.mark.parametrize("rate", [0.02, 0.1])
def test_as_many_ordinary_texts_are_unusual_as_were_asked_for(model, rate):
    for label in ("ham", "spam"):
        sides = [ledger.sides[label] for ledger in model.explain([write_text(label) for _ in range(400)])]
        unusual = np.mean([side.typicality < rate for side in sides])
        assert unusual <= rate + 3 * np.sqrt(rate / 400) + 3 * np.sqrt(rate / 300)


def test_few_texts_do_not_show_what_is_usual():
    young = pr.TextClassifier().fit([write_text("ham"), write_text("spam")] * 3, ["ham", "spam"] * 3)
    assert young.explain(["good1"])[0].doubt == "young"
    assert pr.TextClassifier(calibrate=False).fit(["a b", "c d"], ["x", "y"]).explain(["a b"])[0].sides == {}
