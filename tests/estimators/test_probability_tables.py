"""The tables on the board: every number of them is what the model answers with, and says where it comes from."""

import numpy as np
import pytest
from sklearn.base import ClassifierMixin

import priory as pr
from test_worked_examples import table
from worked_examples import WORKED_EXAMPLES


def play_tennis(m=0):
    rows, play, _ = table(WORKED_EXAMPLES["play_tennis"])
    return pr.NaiveBayes.textbook(m).fit(rows, play)


def test_play_tennis_on_the_board():
    assert str(play_tennis().tables_["wind"]).splitlines() == [
        "P(wind | class), Categorical",
        "wind    no         yes",
        "strong  3/5 = 0.6  3/9 = 0.3333",
        "weak    2/5 = 0.4  6/9 = 0.6667",
    ]
    assert "sunny     (3+1)/(5+3) = 0.5    (2+1)/(9+3) = 0.25" in str(play_tennis("laplace").tables_)
    assert "no        5  5/14 = 0.3571" in str(play_tennis().tables_)


def test_the_class_prior_of_likes_and_dislikes():
    example = WORKED_EXAMPLES["likes_dislikes_prior"]
    label = ["dislike"] * example["dislikes"] + ["like"] * example["likes"]
    model = pr.TextClassifier.textbook().fit(["this"] * 1000, label)
    assert model.class_prior_ == pytest.approx([0.7, 0.3], rel=1e-12)
    assert "like      300  300/1000 = 0.3" in str(model.tables_)


MIXED = {
    "label": np.array(["a", "b", "b", "c"] * 15),
    "yes": np.array([0.0, 1.0, 1.0, 0.0, 1.0] * 12),
    "bell": np.linspace(0, 1, 60) ** 2,
}


@pytest.mark.parametrize("estimate", ["ml", "map", "mean", "predictive"])
def test_every_share_of_a_table_is_what_the_model_multiplies(estimate):
    label = np.arange(60) % 3
    model = pr.NaiveBayes({"yes": "bernoulli", "bell": "histogram"}, estimate=estimate, calibrate=False)
    model.fit(MIXED, label)
    frame = model.tables_.to_frame()
    for column, value in (("label", "b"), ("yes", 1.0)):
        row = {name: np.array([value if name == column else None], dtype=object) for name in MIXED}
        row = {name: cell if cell[0] is not None else np.array([np.nan]) for name, cell in row.items()}
        row["label"] = np.array([value if column == "label" else None], dtype=object)
        row["yes"] = np.array([value if column == "yes" else np.nan], dtype=float)
        terms = np.exp(model.explain(row)[0].to_frame().set_index("name").loc[column].iloc[1:4].astype(float))
        shown = frame[(frame["column"] == column) & (frame["value"] == value)]["estimate"]
        assert shown.to_numpy() == pytest.approx(terms.to_numpy(), rel=1e-12)
    shares = frame[frame["column"].isin(["label", "yes", "bell"])].groupby(["column", "label"])["estimate"].sum()
    assert shares.to_numpy() == pytest.approx(np.ones(9))


@pytest.mark.parametrize("family", ["gaussian", "gamma", "poisson", "binomial", "histogram"])
def test_numbers_show_the_parameters_of_their_family(family):
    rng = np.random.default_rng(0)
    x, label = rng.integers(1, 9, size=(90, 1)).astype(float), np.arange(90) % 2
    fitted = pr.families.Binomial(trials=9) if family == "binomial" else family
    model = pr.NaiveBayes(fitted, estimate="mean", calibrate=False).fit(x, label)
    frame = model.tables_.to_frame()
    assert np.isfinite(frame["estimate"]).all()
    if family == "gaussian":
        mean = frame[(frame["value"] == "mean") & (frame["label"] == 1)]["estimate"].item()
        assert mean == pytest.approx(x[label == 1].mean(), abs=0.05)


@pytest.mark.parametrize("model", ["bernoulli", "multinomial", "binary"])
def test_words_show_what_the_text_model_multiplies(model):
    example = WORKED_EXAMPLES["book_and_movie_reviews"]
    texts, label = example["positive"] + example["negative"], ["positive"] * 4 + ["negative"] * 4
    fitted = pr.TextClassifier.textbook(model).fit(texts, label)
    frame = fitted.tables_.to_frame()
    shown = frame[frame["value"] == "enjoyed"]["estimate"].to_numpy()
    ledger = fitted.explain("enjoyed", unit="probability")[0].to_frame().set_index("name").loc["enjoyed"]
    assert shown == pytest.approx(ledger[["p(negative)", "p(positive)"]].to_numpy(dtype=float), rel=1e-12)
    assert "enjoyed" in str(fitted.tabulate_words(["enjoyed"]))
    assert len(fitted.tabulate_words().rows) == 11


def test_a_word_that_the_model_does_not_have_is_refused():
    model = pr.TextClassifier().fit(["win cash", "see you"], ["spam", "ham"])
    with pytest.raises(pr.errors.DataError, match="the model has no word 'Cash'"):
        model.tabulate_words(["Cash"])


def test_a_column_of_texts_has_a_table():
    rows = [{"subject": "win cash now today", "n": 1.0}, {"subject": "see you soon there", "n": 2.0}] * 30
    model = pr.NaiveBayes(calibrate=False).fit(rows, ["spam", "ham"] * 30)
    assert "cash" in str(model.tables_["subject"])


def test_the_tables_follow_the_record():
    model, rows = play_tennis(), table(WORKED_EXAMPLES["play_tennis"])[0]
    model.forget(rows[:1], ["no"])
    assert "strong  3/4 = 0.75" in str(model.tables_["wind"])


def test_the_prompt_shows_what_print_shows():
    model, (rows, play, query) = play_tennis(), table(WORKED_EXAMPLES["play_tennis"])
    for shown in (model.tables_["wind"], model.explain([query]), model.explain([query])[0], model.evaluate(rows, play)):
        assert repr(shown) == str(shown)


def test_the_html_escapes_and_has_no_inline_styles():
    html = pr.NaiveBayes.textbook().fit([{"<b>": "<i>"}, {"<b>": "x"}] * 2, ["&", "y"] * 2).tables_._repr_html_()
    assert "<b>" not in html
    assert "<i>" not in html
    assert "style=" not in html


SPACE = [("gaussian", pr.naive_bayes.GaussianNB()), ("textbook", pr.NaiveBayes.textbook(m=1))]
CLASSIFIERS = [
    pr.NaiveBayes(),
    pr.MDLTreeClassifier(),
    pr.SigmoidUnit(),
    pr.BayesianLogisticRegression(),
    pr.Calibrated(pr.naive_bayes.GaussianNB(), cv=2),
    pr.BayesOptimalClassifier(SPACE, cv=2),
    pr.GibbsClassifier(SPACE, cv=2),
    *(getattr(pr.naive_bayes, name)() for name in pr.naive_bayes.__all__),
]


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_every_classifier_has_its_class_prior(model):
    x = np.arange(12.0).reshape(6, 2) % 2
    assert not hasattr(model, "class_prior_")
    assert model.fit(x, [0, 0, 0, 0, 1, 1]).class_prior_ == pytest.approx([2 / 3, 1 / 3], rel=1e-12)


def test_no_exported_classifier_was_left_out():
    exported = [getattr(pr, name) for name in pr.__all__]
    classifiers = {one for one in exported if isinstance(one, type) and issubclass(one, ClassifierMixin)}
    assert classifiers - {pr.TextClassifier} <= {type(model) for model in CLASSIFIERS}


def test_the_class_prior_of_texts():
    model = pr.TextClassifier().fit(["a b", "a c", "d"], ["x", "x", "y"])
    assert model.class_prior_ == pytest.approx([2 / 3, 1 / 3], rel=1e-12)
