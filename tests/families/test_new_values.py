"""A value that was never learned says nothing about the class: one law for families, drop-ins, texts, corrections."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import priory as pr
from priory.errors import DataError
from priory.families import Categorical, Text
from priory.naive_bayes import CategoricalNB

COLUMNS = [f"c{j}" for j in range(5)]


def unbalanced(seed=0, rows=(1000, 10)):
    """Many rows of ham, few of spam, five columns of labels that hardly differ between them."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(["ham", "spam"], rows)
    return [{name: f"v{rng.integers(4)}" for name in COLUMNS} for _ in labels], labels


NEW = [dict.fromkeys(COLUMNS, "new")]


@pytest.mark.parametrize("estimate", ["predictive", "mean", "map", "ml"])
@pytest.mark.parametrize("family", ["auto", Categorical(1.0), Categorical(0.01)])
def test_a_row_of_new_values_is_answered_by_the_prior(estimate, family):
    table, y = unbalanced()
    model = pr.NaiveBayes(family, estimate=estimate, calibrate=False).fit(table, y)
    assert model.predict_proba(NEW)[0, 1] == pytest.approx(10 / 1010)


def test_corrections_do_not_read_new_values_as_evidence_for_the_rare_class():
    table, y = unbalanced()
    model = pr.NaiveBayes().fit(table, y)
    assert model.predict_proba(NEW)[0, 1] < 0.03


def test_the_drop_in_answers_with_the_prior():
    table, y = unbalanced()
    x = np.array([[int(row[name][1]) for name in COLUMNS] for row in table])
    model = CategoricalNB().fit(x, y)
    assert model.predict_proba(np.full((1, 5), 9))[0, 1] == pytest.approx(10 / 1010)


TEXTS = ["lunch at noon"] * 100 + ["win cash"] * 2
SPAM = np.repeat(["ham", "spam"], (100, 2))


@pytest.mark.parametrize("model", ["binary", "multinomial"])
@pytest.mark.parametrize(
    "options",
    [{}, {"buckets": 4096, "salt": 1}, {"vocabulary": ["lunch", "at", "noon", "win", "cash"], "unknown": True}],
)
def test_new_words_say_nothing(model, options):
    classifier = pr.TextClassifier(model, calibrate=False, **options).fit(TEXTS, SPAM)
    nothing, new = classifier.predict_joint_log_proba(["", "zebra quagga okapi"])
    assert new - nothing == pytest.approx((new - nothing)[0])  # the same for all classes


def test_new_words_in_a_column_of_texts_say_nothing():
    table = [{"text": text} for text in TEXTS]
    for family in (Text(), Text(buckets=4096), Text(alpha="evidence")):
        model = pr.NaiveBayes({"text": family}, calibrate=False).fit(table, SPAM)
        assert model.predict_proba([{"text": "zebra quagga okapi"}])[0, 1] == pytest.approx(2 / 102)


# -- a prior for each value --------------------------------------------------------------------------------------------


def test_an_m_estimate_has_a_prior_for_each_value():
    """(n_c + m p) / (n + m) with m = 4 and p = (1/2, 1/4, 1/4), by hand."""
    table, y = [{"sky": v} for v in ("sunny", "sunny", "rain", "sunny")], ["no", "no", "yes", "yes"]
    model = pr.NaiveBayes(Categorical([2, 1, 1], values=["sunny", "rain", "cloud"]), calibrate=False).fit(table, y)
    sunny, rain, cloud = np.exp(model.predict_joint_log_proba([{"sky": v} for v in ("sunny", "rain", "cloud")])) * 2
    assert sunny == pytest.approx([(2 + 2) / (2 + 4), (1 + 2) / (2 + 4)])
    assert rain == pytest.approx([1 / 6, 2 / 6])
    assert cloud == pytest.approx([1 / 6, 1 / 6])


@given(st.permutations([("a", 0.5), ("b", 2.0), ("c", 7.0)]))
@settings(max_examples=6)
def test_the_order_in_which_values_are_declared_does_not_matter(pairs):
    values, alpha = zip(*pairs, strict=True)
    belief = Categorical(list(alpha), values=list(values)) + Categorical().observe(["a", "b", "b"])
    assert np.exp(belief.log_predictive(["a", "b", "c"])) == pytest.approx(np.array([1.5, 4, 7]) / 12.5)


def test_declared_values_are_one_number_each():
    with pytest.raises(DataError, match="alpha has 2 numbers for 3 values; give one for each"):
        Categorical([1, 2], values=["a", "b", "c"])
    with pytest.raises(DataError, match="each may be declared once"):
        Categorical(1.0, values=["a", "a"])
