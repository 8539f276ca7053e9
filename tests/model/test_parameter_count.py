"""The number of parameters, as the lecture counts them."""

import numpy as np
import pytest

import priory as pr
from priory.errors import KindError
from worked_examples import WORKED_EXAMPLES


def test_the_reviews_need_two_times_twelve():
    example = WORKED_EXAMPLES["book_and_movie_reviews"]
    texts, label = example["positive"] + example["negative"], ["positive"] * 4 + ["negative"] * 4
    count = pr.TextClassifier.textbook().fit(texts, label).n_parameters_
    assert count.naive == example["parameters_to_estimate"]
    assert count.full == 2 * 2**11
    assert str(count) == "24 naive, 4096 without the naive assumption"


def test_columns_of_all_kinds_are_counted():
    rng = np.random.default_rng(0)
    table = {
        "label": np.array(["a", "b", "c"] * 20),
        "yes": (rng.random(60) < 0.5) * 1.0,
        "x": rng.normal(size=60),
        "z": rng.normal(size=60),
    }
    count = pr.NaiveBayes.textbook().fit(table, np.arange(60) % 2).n_parameters_
    assert count.naive == 2 * (2 + 1 + 2 + 2 + 1)
    assert count.full == 2 * ((3 * 2 - 1) + 3 * 2 * (2 + 3) + 1)


def test_many_words_have_more_combinations_than_a_float_can_hold():
    model = pr.TextClassifier().fit([f"word{i}" for i in range(2000)], np.arange(2000) % 2)
    assert model.n_parameters_.full == float("inf")


def test_a_family_of_whole_rows_says_what_to_use():
    instead = "priory.naive_bayes.MultinomialNB or DocumentAverageNB"
    with pytest.raises(KindError, match=f"explains whole rows, and column 'x0' is one of them; use {instead}"):
        pr.NaiveBayes(pr.families.Multinomial()).fit(np.ones((4, 2)), [0, 0, 1, 1])
