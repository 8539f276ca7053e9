"""Texts as vectors: the tables of the lectures, and dictionaries as they are printed."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

import priory as pr
from priory.errors import PrioryWarning
from worked_examples import WORKED_EXAMPLES


def test_cats_and_dogs():
    example = WORKED_EXAMPLES["binary_bag_of_words"]
    fixed = pr.TextClassifier(vocabulary=example["vocabulary"], min_token_length=1)
    assert fixed.transform(example["documents"]).toarray().tolist() == example["expect"]
    assert fixed.get_feature_names_out().tolist() == example["vocabulary"]
    learned = pr.TextClassifier(min_token_length=1).fit(example["documents"], ["a", "b", "a"])
    order = np.argsort(example["vocabulary"])
    assert learned.get_feature_names_out().tolist() == sorted(example["vocabulary"])
    assert (learned.transform(example["documents"]).toarray() == np.array(example["expect"])[:, order]).all()


def test_the_dictionary_as_the_lecture_prints_it():
    example = WORKED_EXAMPLES["bag_of_words_dictionary"]
    *dictionary, _ = example["dictionary"]
    model = pr.TextClassifier(vocabulary=dictionary, unknown=True)
    assert model.transform([example["text"]]).toarray().tolist() == [example["expect_binary"]]
    assert model.get_feature_names_out().tolist()[:2] == ["john", "mary"]
    kept = pr.TextClassifier(vocabulary=["John", "john"], lowercase=False)
    assert kept.transform(["John Johnson john"]).toarray().tolist() == [[1, 1]]
    assert kept.get_feature_names_out().tolist() == ["John", "john"]


@pytest.mark.parametrize(("model", "binary"), [("binary", True), ("multinomial", False)])
def test_the_vectors_are_those_of_a_count_vectorizer(model, binary):
    texts = ["win cash now, win", "see you at noon", "cash, cash prize"]
    ours = pr.TextClassifier(model).fit(texts, [0, 1, 0])
    theirs = CountVectorizer(binary=binary).fit(texts)
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()
    assert (ours.transform(texts).toarray() == theirs.transform(texts).toarray()).all()


def test_hashed_texts_are_vectors_of_buckets():
    model = pr.TextClassifier(buckets=8, salt=1).fit(["win cash", "see you"], [0, 1])
    assert model.transform(["win cash"]).shape == (1, 8)
    assert len(model.get_feature_names_out()) == 8


@pytest.mark.parametrize("entry", ["e-mail", "a"])
def test_an_entry_that_can_never_match_is_warned_of(entry):
    model = pr.TextClassifier(vocabulary=["cash", entry])
    with pytest.warns(PrioryWarning, match=f"'{entry}' in the vocabulary can never match"):
        model.fit(["cash", "e-mail a"], [0, 1])
    with pytest.warns(PrioryWarning, match=f"'{entry}' in the vocabulary can never match"):
        pr.TextClassifier(vocabulary=["cash", entry]).transform(["cash"])


def test_a_dictionary_of_stems_and_of_pairs_matches():
    pytest.importorskip("Stemmer")
    stems = pr.TextClassifier(vocabulary=["meetings", "Sending"], stem="english")
    assert stems.transform(["meeting and send"]).toarray().tolist() == [[1, 1]]
    pairs = pr.TextClassifier(vocabulary=["New York"], ngram_range=(1, 2))
    assert pairs.transform(["in new york"]).toarray().tolist() == [[1]]


def test_capital_letters_no_longer_lose_a_word():
    model = pr.TextClassifier(vocabulary=["Cash", "You"]).fit(["win cash", "see you"], ["spam", "ham"])
    assert model.predict(["cash"]).tolist() == ["spam"]
