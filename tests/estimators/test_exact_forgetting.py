"""Forgotten means never seen: the file of a model does not tell what it has learned and forgotten, or in what order.

benchmarks/exact_forgetting.py tries thousands of the histories that are tried here.
"""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import exact_forgetting
import priory as pr
from exact_forgetting import KINDS, save_to_bytes
from priory import naive_bayes as nb

TEXTS = ["win cash now", "quixotic prize", "lunch at noon?", "see you at noon"]
LABELS = ["spam", "HIV-positive", "ham", "ham"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_model_with_a_history_is_the_file_of_one_that_was_given_what_is_left(kind, seed):
    assert exact_forgetting.run_case(kind, seed)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [pr.NaiveBayes, lambda: pr.NaiveBayes({"size": "gamma", "n": "poisson"})])
@settings(max_examples=20, deadline=None)
@given(
    weights=st.lists(st.floats(1e-3, 1e3) | st.sampled_from([2.7, 0.3, 0.1, 1 / 3]), min_size=2, max_size=7),
    seed=st.integers(0, 2**32),
)
def test_rows_of_fractional_weights_are_forgotten_one_at_a_time_in_any_order(make, weights, seed):
    rng = np.random.default_rng(seed)
    rows = [
        {"of": str(rng.choice(["a", "b"])), "size": float(rng.uniform(0.1, 9)), "n": int(rng.integers(3))}
        for _ in weights
    ]
    labels = [str(rng.choice(["x", "y"])) for _ in weights]
    order, cut = rng.permutation(len(weights)).tolist(), int(rng.integers(1, len(weights)))

    def take(which):
        return [rows[i] for i in which], [labels[i] for i in which]

    model = make().fit(*take(order[:cut]), sample_weight=[weights[i] for i in order[:cut]])
    model.partial_fit(*take(order[cut:]), sample_weight=[weights[i] for i in order[cut:]])
    *gone, left = rng.permutation(len(weights)).tolist()
    for i in gone:
        model.forget(*take([i]), sample_weight=[weights[i]])
    assert save_to_bytes(model) == save_to_bytes(make().fit(*take([left]), sample_weight=[weights[left]]))


def make_table(texts, labels):
    return pd.DataFrame({"text": texts, "of": labels, "length": [len(text) for text in texts]})


MODELS = {
    "texts": (pr.TextClassifier, TEXTS),
    "kept texts": (lambda: pr.TextClassifier("multinomial", refine=True), TEXTS),
    "table": (lambda: pr.NaiveBayes({"text": "text", "length": "histogram"}), make_table(TEXTS, LABELS)),
    "counts": (nb.MultinomialNB, np.eye(4)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("make", "X"), MODELS.values(), ids=MODELS)
def test_nothing_of_a_forgotten_row_is_in_the_file(make, X):
    model = make().fit(X, LABELS)
    assert b"HIV-positive" in save_to_bytes(model)
    left = save_to_bytes(model.forget(X[1:2], LABELS[1:2]))
    rest = pd.concat([X[2:], X[:1]]) if isinstance(X, pd.DataFrame) else [*X[2:], X[0]]
    assert left == save_to_bytes(make().fit(rest, [*LABELS[2:], LABELS[0]]))
    assert model.classes_.tolist() == ["ham", "spam"]
    assert model.predict_proba(X).shape == (4, 2)
    for trace in ("HIV", "quixotic", "prize"):
        assert trace.encode() not in left
        assert trace.encode("utf-16-le") not in left
        assert trace.encode("utf-32-le") not in left


@pytest.mark.parametrize("size", [1e300, 5e-324, 123456789.125])
def test_the_size_of_a_forgotten_number_is_not_in_the_file(size):
    def fit(*numbers):
        return pr.NaiveBayes("histogram", calibrate=False).fit([[x] for x in numbers], ["a"] * len(numbers))

    gone = fit(1.0, 2.0, size).forget([[size]], ["a"])
    assert save_to_bytes(gone) == save_to_bytes(fit(2.0, 1.0))


# -- what was declared stays ---------------------------------------------------------------------------------------


def test_declared_classes_stay_without_rows():
    X, y = np.eye(3), ["a", "b", "c"]
    learned = nb.MultinomialNB().fit(X, y).forget(X[2:], y[2:])
    declared = nb.MultinomialNB().partial_fit(X, y, classes=y).forget(X[2:], y[2:])
    by_prior = nb.MultinomialNB(class_prior=[0.5, 0.25, 0.25]).fit(X, y).forget(X[2:], y[2:])
    assert learned.classes_.tolist() == ["a", "b"]
    assert declared.classes_.tolist() == by_prior.classes_.tolist() == y
    assert declared.class_count_.tolist() == [1.0, 1.0, 0.0]
    both = learned + declared
    assert both.classes_.tolist() == y
    assert save_to_bytes(both) == save_to_bytes(declared + learned)
    assert declared.forget(X[:2], y[:2]).classes_.tolist() == y


def test_a_class_of_rows_that_weigh_nothing_is_not_there():
    texts, labels = ["win cash", "lunch", "noon"], ["spam", "ham", "none"]
    model = pr.TextClassifier().fit(texts, labels, sample_weight=[1, 2, 0])
    assert model.classes_.tolist() == ["ham", "spam"]
    assert save_to_bytes(model) == save_to_bytes(pr.TextClassifier().fit(texts[:2], labels[:2], sample_weight=[1, 2]))


def test_declared_values_and_words_stay_without_rows():
    declared = pr.families.Categorical(values=["red", "green", "blue"])
    rows, labels = [{"c": "red"}, {"c": "green"}, {"c": "red"}], ["a", "b", "b"]
    model = pr.NaiveBayes({"c": declared}, calibrate=False).fit(rows, labels).forget(rows[1:2], labels[1:2])
    assert model.categories_["c"].tolist() == ["red"]
    assert np.isfinite(model.predict_proba([{"c": "blue"}])).all()
    texts = pr.TextClassifier(vocabulary=["win", "cash"]).fit(["win", "cash"], ["a", "b"]).forget(["cash"], ["b"])
    assert texts.vocabulary_ == ["win", "cash"]


@pytest.mark.filterwarnings("ignore")
def test_what_a_column_holds_is_open_again_when_its_last_cell_is_forgotten():
    rows = [{"a": "x", "b": None}, {"a": "y", "b": 2.5}, {"a": "y", "b": None}]
    model = pr.NaiveBayes(calibrate=False).fit(rows, ["s", "t", "t"])
    assert model.column_kinds_ == {"a": "label", "b": "number"}
    model.forget(rows[1:2], ["t"])
    assert model.column_kinds_ == {"a": "label", "b": "empty"}
    model.partial_fit([{"a": "x", "b": "word"}], ["s"])
    assert model.column_kinds_ == {"a": "label", "b": "label"}


@pytest.mark.filterwarnings("ignore")
def test_models_can_be_merged_in_which_different_columns_are_empty():
    rows = [{"a": "x", "b": None, "c": 1.0}, {"a": None, "b": 2.5, "c": 3.0}]
    parts = [pr.NaiveBayes("categorical").fit(rows[i : i + 1], ["s"]) for i in (0, 1)]
    both = save_to_bytes(parts[0] + parts[1])
    assert (
        both == save_to_bytes(parts[1] + parts[0]) == save_to_bytes(pr.NaiveBayes("categorical").fit(rows, ["s"] * 2))
    )


# -- nothing is left -----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("make", "X"), MODELS.values(), ids=MODELS)
def test_a_model_that_has_forgotten_all_rows_is_a_new_one(make, X):
    model = make().fit(X, LABELS).forget(X, LABELS)
    assert save_to_bytes(model) == save_to_bytes(make())
    with pytest.raises(NotFittedError, match=re.escape("is not fitted yet")):
        model.predict(X)
    assert save_to_bytes(model.fit(X, LABELS)) == save_to_bytes(make().fit(X, LABELS))


# -- labels --------------------------------------------------------------------------------------------------------


def test_labels_have_one_type_whatever_array_they_come_in():
    X, numbers, words = np.eye(2), [3, 10**12], ["a", "bb"]
    arrays = [numbers, np.array(numbers), np.array(numbers, dtype=np.uint64), pd.Series(numbers)]
    assert len({save_to_bytes(nb.MultinomialNB().fit(X, y)) for y in arrays}) == 1
    arrays = [words, np.array(words), np.array(words, dtype="U40"), np.array(words, dtype=object), pd.Series(words)]
    assert len({save_to_bytes(nb.MultinomialNB().fit(X, y)) for y in arrays}) == 1


def test_labels_that_differ_in_a_last_nul_are_different():
    assert nb.MultinomialNB().fit(np.eye(2), ["a", "a\0"]).classes_.tolist() == ["a", "a\0"]
