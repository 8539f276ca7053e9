"""What cannot be merged or forgotten is refused in one line that says what differs, or which row it is."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import priory as pr
from priory import naive_bayes as nb
from priory.errors import DataError, NotLearnedError

ROWS = [{"c": "a", "n": 1.0}, {"c": "b", "n": 2.0}, {"c": "a", "n": 3.0}, {"c": "b", "n": 4.0}]
LABELS = ["s", "t", "s", "t"]
NUMBERS = np.array([[0, 1], [1, 0], [2, 1], [1, 3]])
TEXTS = ["win cash", "lunch at noon"]
DROP_INS = [
    nb.GaussianNB,
    nb.BernoulliNB,
    nb.CategoricalNB,
    nb.MultinomialNB,
    nb.ComplementNB,
    nb.GaussianBayes,
]


def table_model(rows=ROWS, **parameters):
    return pr.NaiveBayes(calibrate=False, **parameters).fit(rows, LABELS[: len(rows)])


def text_model(**parameters):
    return pr.TextClassifier(**{"salt": 1, **parameters}).fit(TEXTS, ["s", "t"])


UNLIKE = [
    (table_model, lambda: 5, "a NaiveBayes cannot be merged with a int; merge models of the same type."),
    (table_model, text_model, "a NaiveBayes cannot be merged with a TextClassifier; merge models of the same type."),
    (
        table_model,
        lambda: table_model([{"c": "a", "z": 1.0}, {"c": "b", "z": 2.0}] * 2),
        "column 1 is 'n' in one model and 'z' in the other; merge models of the same columns, in the same order.",
    ),
    (
        table_model,
        lambda: table_model([{"c": 1.0, "n": 1.0}, {"c": 2.0, "n": 2.0}] * 2),
        "the models differ: column 'c' holds labels in one and numbers in the other; "
        "merge models of the same columns and families.",
    ),
    (
        lambda: table_model(families={"n": "gaussian"}),
        lambda: table_model(families={"n": "poisson"}),
        "the models differ: the families of column 'n' are Gaussian and Poisson; "
        "merge models of the same columns and families.",
    ),
    (
        text_model,
        lambda: text_model(ngram_range=(1, 2)),
        "the models read texts differently: ngram_range is (1, 1) and (1, 2); merge models of the same tokens.",
    ),
    (
        lambda: text_model(buckets=8),
        lambda: text_model(buckets=8, salt=2),
        "the models read texts differently: salt is 1 and 2; merge models of the same tokens.",
    ),
    (
        lambda: text_model(stop_words=[f"word{i}" for i in range(99)]),
        text_model,
        "the models read texts differently: stop_words differs; merge models of the same tokens.",
    ),
    (
        lambda: nb.BernoulliNB(binarize=0.0).fit(NUMBERS, [0, 1, 0, 1]),
        lambda: nb.BernoulliNB(binarize=1.0).fit(NUMBERS, [0, 1, 0, 1]),
        "the models differ: binarize is 0.0 and 1.0; merge models of one threshold.",
    ),
]


@pytest.mark.parametrize(("make_model", "make_other", "message"), UNLIKE, ids=[m[:50] for *_, m in UNLIKE])
def test_merging_unlike_models_says_what_differs(make_model, make_other, message):
    with pytest.raises(DataError) as caught:
        make_model().merge(make_other())
    assert str(caught.value) == message


@pytest.mark.parametrize("kind", [*DROP_INS, pr.BayesianLinearRegression])
def test_every_model_refuses_other_columns_and_other_types(kind):
    frame = pd.DataFrame(NUMBERS, columns=["a", "b"])
    model = kind().fit(frame, [0, 1, 0, 1])
    for other, message in [
        (kind().fit(NUMBERS[:, :1], [0, 1, 0, 1]), "one model has 2 columns, the other 1 column"),
        (kind().fit(frame[["b", "a"]], [0, 1, 0, 1]), "column 0 is 'a' in one model and 'b' in the other"),
        (text_model(), f"a {kind.__name__} cannot be merged with a TextClassifier"),
    ]:
        with pytest.raises(DataError, match=message):
            model.merge(other)


def test_models_of_texts_merge_whatever_their_column_is_called():
    one, two = text_model(), text_model()
    for model, name in ((one, "text"), (two, "body")):
        learned = model.learned_
        model.adopt(replace(learned, rows=replace(learned.rows, name=name)), finish=False)
    assert one.merge(two).class_count_.tolist() == [2, 2]
    assert one.merge(two).feature_names_in_.tolist() == ["text"]


REMEDY = "or not this often; forget only rows that were learned; the model is unchanged."
UNLEARNED = [
    (
        table_model,
        [ROWS[0], {"c": "z", "n": 3.0}],
        "s",
        f"row 1: column 'c', 'z', was not learned in class 's', {REMEDY}",
    ),
    (table_model, [{"c": "a", "n": 77.0}], "s", f"row 0: column 'n', 77.0, was not learned in class 's', {REMEDY}"),
    (text_model, ["win", "cash prize"], "s", f"row 0: this row, as a whole, was not learned in class 's', {REMEDY}"),
    (text_model, ["cash prize"], "s", f"row 0: token 'prize' was not learned in class 's', {REMEDY}"),
    (lambda: text_model(buckets=64), ["cash prize"], "s", f"row 0: it was not learned in class 's', {REMEDY}"),
]


@pytest.mark.parametrize(("make_model", "rows", "label", "message"), UNLEARNED, ids=[m[:40] for *_, m in UNLEARNED])
def test_forgetting_what_was_not_learned_names_the_row(make_model, rows, label, message):
    model = make_model()
    before = model.class_count_.tolist()
    with pytest.raises(NotLearnedError) as caught:
        model.forget(rows, [label] * len(rows))
    assert str(caught.value) == message
    assert caught.value.row == int(message[4])
    assert model.class_count_.tolist() == before


def test_the_first_of_many_rows_that_cannot_be_forgotten_is_named():
    values = [f"v{i}" for i in range(200)]
    model = table_model([{"c": v, "n": 1.0} for v in values[:4]], families={"n": "gaussian"})
    model.partial_fit([{"c": v, "n": 1.0} for v in values], ["s"] * 200)
    given = [{"c": v, "n": 1.0} for v in [*values[:137], "never", *values[137:]]]
    with pytest.raises(NotLearnedError, match="row 137: column 'c', 'never', was not learned in class 's'") as caught:
        model.forget(given, ["s"] * 201, sample_weight=np.ones(201))
    assert caught.value.row == 137


@pytest.mark.parametrize("kind", [nb.GaussianNB, nb.CategoricalNB, nb.MultinomialNB, nb.GaussianBayes])
def test_a_drop_in_names_the_row_it_cannot_forget(kind):
    with pytest.raises(NotLearnedError, match=r"^row 1: it was not learned in class 0, or not this often"):
        kind().fit(np.tile(NUMBERS, (3, 1)), [0, 1, 0, 1] * 3).forget([[0, 1], [7, 7]], [0, 0])


def test_a_row_of_an_unknown_class_is_named():
    with pytest.raises(NotLearnedError, match="no row of class 'q' was ever learned") as caught:
        text_model().forget(["win cash", "win cash"], ["s", "q"])
    assert caught.value.row == 1
