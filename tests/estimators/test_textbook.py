"""Naive Bayes as the book has it: the worked examples in one line each, and the ledger in every unit."""

import math

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import priory as pr
from priory.errors import DataError
from test_worked_examples import joint, posterior, table
from worked_examples import WORKED_EXAMPLES


def test_play_tennis_in_one_line():
    example = WORKED_EXAMPLES["play_tennis"]
    rows, play, query = table(example)
    model = pr.NaiveBayes.textbook().fit(rows, play)
    assert joint(model, query) == pytest.approx(example["expect"]["joint"], rel=1e-12)
    assert posterior(model, query) == pytest.approx(example["expect"]["posterior"], rel=1e-12)


def test_go_to_library_with_relative_frequencies_and_with_laplace():
    example = WORKED_EXAMPLES["go_to_library"]
    rows, library, query = table(example)
    plain, laplace = (pr.NaiveBayes.textbook(m).fit(rows, library) for m in (0, "laplace"))
    assert joint(plain, query) == pytest.approx(example["expect"]["ml_joint"], rel=1e-12)
    assert posterior(laplace, query) == pytest.approx(example["expect"]["laplace_posterior"], rel=1e-12)


@pytest.mark.parametrize("p", [None, {"outlook": {"sunny": 0.5, "rain": 0.3, "overcast": 0.2}}])
def test_the_m_estimate_is_n_c_plus_m_p_over_n_plus_m(p):
    rows, play, _ = table(WORKED_EXAMPLES["play_tennis"])
    model = pr.NaiveBayes.textbook(m=4, p=p).fit([{"outlook": row["outlook"]} for row in rows], play)
    share = 1 / 3 if p is None else p["outlook"]["sunny"]
    expected = {"no": 5 / 14 * (3 + 4 * share) / (5 + 4), "yes": 9 / 14 * (2 + 4 * share) / (9 + 4)}
    assert joint(model, {"outlook": "sunny"}) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("model", "form"), [("bernoulli", "bernoulli_alpha_1"), ("multinomial", "multinomial_alpha_1")]
)
def test_the_review_in_one_line(model, form):
    example = WORKED_EXAMPLES["book_and_movie_reviews"]
    texts, label = example["positive"] + example["negative"], ["positive"] * 4 + ["negative"] * 4
    fitted = pr.TextClassifier.textbook(model).fit(texts, label)
    assert joint(fitted, example["test"]) == pytest.approx(example["expect"][f"{form}_joint"], rel=1e-12)
    assert posterior(fitted, example["test"]) == pytest.approx(example["expect"][f"{form}_posterior"], rel=1e-12)


@pytest.mark.parametrize("m", [0, 3, "laplace"])
def test_numbers_are_gaussians_of_maximum_likelihood_and_0_or_1_is_bernoulli(m):
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 60)
    x = np.column_stack([rng.normal(1e6 + label, 2.0), (rng.random(60) < 0.3 + 0.3 * label) * 1.0])
    model = pr.NaiveBayes.textbook(m).fit(x, label)
    virtual = 2 if m == "laplace" else m
    for c in (0, 1):
        own = x[label == c]
        mean, variance = own[:, 0].mean(), own[:, 0].var()
        share = (own[:, 1].sum() + virtual / 2) / (len(own) + virtual)
        density = math.exp(-((1e6 - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
        found = math.exp(model.predict_joint_log_proba([[1e6, 1.0]])[0, c])
        assert found == pytest.approx(np.mean(label == c) * density * share, rel=1e-9)


def test_a_textbook_model_learns_and_forgets_like_any_other():
    rows, play, query = table(WORKED_EXAMPLES["play_tennis"])
    whole = pr.NaiveBayes.textbook(m=2).fit(rows, play)
    parts = pr.NaiveBayes.textbook(m=2).partial_fit(rows[:10], play[:10], classes=["no", "yes"])
    parts.partial_fit(rows[10:], play[10:])
    assert joint(parts, query) == pytest.approx(joint(whole, query), rel=1e-12)
    rest = pr.NaiveBayes.textbook(m=2).fit(rows[:10], play[:10])
    assert joint(whole.forget(rows[10:], play[10:]), query) == pytest.approx(joint(rest, query), rel=1e-12)


def test_a_textbook_model_is_saved_with_its_priors(tmp_path):
    rows, play, query = table(WORKED_EXAMPLES["play_tennis"])
    model = pr.NaiveBayes.textbook(m=2, p={"wind": {"weak": 0.5, "strong": 0.5}}).fit(rows, play)
    pr.save(model, tmp_path / "play.priory")
    loaded = pr.load(tmp_path / "play.priory")
    assert loaded.families == model.families
    assert joint(loaded, query) == joint(model, query)


@pytest.mark.parametrize(
    ("m", "p", "message"),
    [
        (-1, None, "m is -1; use a number of virtual examples from 0, or 'laplace'."),
        ("many", None, "m is 'many'; use a number of virtual examples from 0, or 'laplace'."),
        (2, {"wind": {"weak": 0.7}}, "p of column 'wind' sums to 0.7; give each value its share of 1."),
        (0, {"wind": {"weak": 1.0}}, "p says what the virtual examples of 'wind' are; give their number m as well."),
    ],
)
def test_impossible_virtual_examples_are_refused(m, p, message):
    with pytest.raises(DataError) as error:
        pr.NaiveBayes.textbook(m, p)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("p", "message"),
    [
        (
            {"outlook": {"sunny": 0.5, "rain": 0.5}},
            "the value 'overcast' has no share of the virtual examples, which were declared for 'rain', 'sunny'; "
            "give every value a share.",
        ),
        ({"outlok": {"sunny": 1.0}}, "p names column 'outlok', which is not in the table."),
    ],
)
def test_shares_that_do_not_cover_the_values_are_refused(p, message):
    rows, play, _ = table(WORKED_EXAMPLES["play_tennis"])
    model = pr.NaiveBayes.textbook(m=3, p=p)
    with pytest.raises(DataError) as error:
        model.fit(rows, play)
    assert str(error.value) == message
    with pytest.raises(NotFittedError):
        model.predict(rows)


def test_a_value_without_a_share_is_refused_later_too_and_leaves_the_model_as_it_was():
    rows, y = [{"sky": "sunny"}, {"sky": "rain"}] * 2, ["no", "yes"] * 2
    model = pr.NaiveBayes.textbook(m=2, p={"sky": {"sunny": 0.5, "rain": 0.5}}).fit(rows, y)
    before = model.predict_proba(rows)
    for learn in (model.learn_one, lambda row, label: model.partial_fit([row], [label])):
        with pytest.raises(DataError, match="the value 'fog' has no share"):
            learn({"sky": "fog"}, "yes")
    assert np.array_equal(model.predict_proba(rows), before)
    with pytest.raises(DataError, match=r"the value 1.0 has no share of the virtual examples"):
        pr.NaiveBayes.textbook(m=2, p={"wet": {0: 0.5, 2: 0.5}}).fit([{"wet": 0}, {"wet": 1}] * 2, y)


# -- the smoothing of models that choose it ----------------------------------------------------------------------------


def test_the_smoothing_of_few_rows_is_not_at_the_end_of_the_grid_and_is_said():
    rows, play, query = table(WORKED_EXAMPLES["play_tennis"])
    model = pr.NaiveBayes().fit(rows, play)
    assert {report.virtual_rows for report in model.schema_.values()} <= {1.0, 2.0, 4.0}
    assert "(3+4)/(5+12)" in str(model.tables_["outlook"])
    base, tempered, smoothed = 5 / 14, model.predict_proba([query])[0, 0], model.without_corrections()
    assert base < tempered < 0.55 < smoothed.predict_proba([query])[0, 0]  # 0.795 without smoothing
    said = "smoothed by 4 virtual rows of each value"
    assert repr(model).endswith(said)
    assert str(model.explain([query])).splitlines()[-1] == said
    assert said in model.explain([query])._repr_html_()
    assert str(model.explain([query], unit="probability")).splitlines()[-1] == said
    assert "4 virtual rows of each value" in str(model.schema_["outlook"])
    assert repr(pr.NaiveBayes()) == "NaiveBayes()"
    assert "smoothed" not in repr(pr.NaiveBayes.textbook().fit(rows, play))  # it was declared
    assert "smoothed" not in repr(pr.NaiveBayes().fit(rows * 50, play * 50))  # it does not matter


@pytest.mark.parametrize("copies", [1, 3])
def test_leave_one_out_chooses_the_smoothing_as_a_refit_does(copies):
    rows, play, _ = table(WORKED_EXAMPLES["play_tennis"])
    rows, play = rows * copies, play * copies
    left_out = pr.NaiveBayes(calibrate=False).fit(rows, play).leave_one_out(rows, play)
    for i in range(0, len(rows), 5):
        rest = pr.NaiveBayes(calibrate=False).fit(rows[:i] + rows[i + 1 :], play[:i] + play[i + 1 :])
        assert rest.predict_log_proba([rows[i]])[0] == pytest.approx(left_out[i], abs=1e-9)


# -- the ledger in other units -----------------------------------------------------------------------------------------


def test_the_ledger_in_probabilities_multiplies_to_the_joint():
    rows, play, query = table(WORKED_EXAMPLES["play_tennis"])
    ledger = pr.NaiveBayes.textbook().fit(rows, play).explain([query], unit="probability")[0]
    frame = ledger.to_frame()
    expect = WORKED_EXAMPLES["play_tennis"]["expect"]
    assert frame["p(no)"].prod() == pytest.approx(expect["joint"]["no"], rel=1e-12)
    assert frame["factor"].prod() == pytest.approx(expect["joint"]["no"] / expect["joint"]["yes"], rel=1e-12)
    assert frame.loc[frame["name"] == "wind", "p(no)"].item() == pytest.approx(3 / 5)
    assert "outlook = sunny         0.6    0.2222     2.7" in str(ledger)
    assert "P(class | row)       0.7954    0.2046" in str(ledger)


@pytest.mark.parametrize(("unit", "per_nat"), [("decibans", 10 / math.log(10)), ("nats", 1), ("bits", 1 / math.log(2))])
def test_the_ledger_is_the_log_odds_in_every_unit(unit, per_nat):
    rows, play, query = table(WORKED_EXAMPLES["play_tennis"])
    ledger = pr.NaiveBayes.textbook().fit(rows, play).explain([query], unit=unit)[0]
    joint = WORKED_EXAMPLES["play_tennis"]["expect"]["joint"]
    assert ledger.to_frame()[unit].sum() == pytest.approx(per_nat * math.log(joint["no"] / joint["yes"]), rel=1e-12)


def test_a_long_text_shows_its_strongest_words_and_the_product_of_the_others():
    words = [f"word{i}" for i in range(300)]
    texts = [" ".join(words[:200]), " ".join(words[100:])]
    model = pr.TextClassifier.textbook("multinomial").fit(texts, ["a", "b"])
    ledger = model.explain(" ".join(words), unit="probability")[0]
    shown = str(ledger)
    assert "280 more" in shown
    assert "1e-" in next(line for line in shown.splitlines() if line.startswith("product"))
    assert ledger.to_frame()["factor"].gt(0).all()


def test_a_unit_that_does_not_exist_is_refused():
    rows, play, query = table(WORKED_EXAMPLES["play_tennis"])
    with pytest.raises(DataError, match=r"unit is 'hartleys'; use one of decibans, nats, bits, probability\."):
        pr.NaiveBayes.textbook().fit(rows, play).explain([query], unit="hartleys")


def test_a_word_of_a_bernoulli_text_has_its_own_probability():
    example = WORKED_EXAMPLES["book_and_movie_reviews"]
    texts, label = example["positive"] + example["negative"], ["positive"] * 4 + ["negative"] * 4
    frame = pr.TextClassifier.textbook().fit(texts, label).explain(example["test"], unit="probability")[0].to_frame()
    assert dict(zip(frame["name"], frame["p(positive)"], strict=True)) == pytest.approx(
        {
            "prior": 1 / 2,
            "i": 2 / 6,
            "enjoyed": 2 / 6,
            "the": 5 / 6,
            "book": 3 / 6,
            "(absent tokens)": np.prod([5 / 6, 5 / 6, 4 / 6, 3 / 6, 3 / 6, 5 / 6, 2 / 6]),
        },
        rel=1e-12,
    )


def test_a_model_with_corrections_says_so_and_a_textbook_model_has_none():
    rng = np.random.default_rng(1)
    label = rng.integers(0, 2, 200)
    x = label[:, None] + rng.normal(size=(200, 2))
    corrected = pr.NaiveBayes().fit(x, label)
    assert repr(corrected).startswith("NaiveBayes() corrected by tempering")
    assert "corrected by tempering" in str(corrected.explain(x[:1]))
    plain = pr.NaiveBayes.textbook().fit(x, label)
    assert "corrected" not in repr(plain) + str(plain.explain(x[:1]))
    assert "corrected" not in repr(pr.NaiveBayes())


def test_the_html_of_a_ledger_has_no_inline_styles():
    model = pr.TextClassifier.textbook().fit(["win cash", "see you"], ["spam", "ham"])
    html = model.explain("win <b> cash")[0]._repr_html_()
    assert "style=" not in html
    assert '<mark class="for-5">win</mark> &lt;b&gt;' in html
