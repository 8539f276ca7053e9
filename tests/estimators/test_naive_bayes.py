"""NaiveBayes on tables as they are: the laws, the choice of families, the ledger, every way a table can come."""

import sys
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import priory as pr
from priory import inbox
from priory.errors import DataError, KindError, MissingDependencyError, NotLearnedError, PrioryWarning, StaleModelError
from priory.families import Bernoulli, Categorical, Gamma, Gaussian, Histogram, Poisson, Text

NaiveBayes = partial(pr.NaiveBayes, calibrate=False)  # the statistics alone
TextClassifier = partial(pr.TextClassifier, calibrate=False)  # the statistics alone


def mixed(rows=60, seed=0):
    """Labels, booleans, counts, positives, reals, missing cells; two classes that differ in all of them."""
    rng = np.random.default_rng(seed)
    y = rng.choice(["ham", "spam"], rows)
    spam = y == "spam"
    frame = pd.DataFrame(
        {
            "colour": np.where(spam, rng.choice(["red", "blue"], rows), rng.choice(["red", "green"], rows)).astype(
                object
            ),
            "flag": rng.random(rows) < np.where(spam, 0.8, 0.3),
            "count": rng.poisson(np.where(spam, 6, 2)),
            "wait": rng.gamma(2.0, np.where(spam, 3.0, 1.0)),
            "size": rng.normal(np.where(spam, 1.0, -1.0), 1.5),
        }
    )
    frame.loc[rng.random(rows) < 0.1, "colour"] = None
    frame.loc[rng.random(rows) < 0.1, "size"] = np.nan
    return frame, pd.Series(y)


FRAME, LABELS = mixed()
ESTIMATES = ["ml", "map", "mean", "predictive"]


def answers(model, frame=FRAME):
    return model.predict_log_proba(frame)


# -- the laws ----------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(cut=st.integers(1, 59), seed=st.integers(0, 100), estimate=st.sampled_from(ESTIMATES))
def test_any_split_and_any_order_give_the_same_model(cut, seed, estimate):
    order = np.random.default_rng(seed).permutation(60)
    whole = NaiveBayes(estimate=estimate).fit(FRAME, LABELS)
    parts = NaiveBayes(estimate=estimate)
    for part in (order[:cut], order[cut:]):
        parts.partial_fit(FRAME.iloc[part], LABELS.iloc[part])
    assert np.allclose(answers(parts), answers(whole), atol=1e-9)


@settings(max_examples=25)
@given(cut=st.integers(1, 58), estimate=st.sampled_from(ESTIMATES))
def test_forgetting_equals_never_having_seen(cut, estimate):
    model = NaiveBayes(estimate=estimate).fit(FRAME, LABELS).forget(FRAME.iloc[cut:], LABELS.iloc[cut:])
    never = NaiveBayes(estimate=estimate).partial_fit(FRAME.iloc[:cut], LABELS.iloc[:cut])
    assert np.allclose(answers(model), answers(never), atol=1e-8)


def test_forgetting_counts_is_exact_to_the_bit():
    frame = FRAME[["colour", "flag", "count"]]
    model = NaiveBayes().fit(frame, LABELS).forget(frame.iloc[20:], LABELS.iloc[20:])
    never = NaiveBayes().partial_fit(frame.iloc[:20], LABELS.iloc[:20], classes=["ham", "spam"])
    colours = next(b for b, block in enumerate(model.learned_.rows.schema.blocks) if block.kind == "label")
    assert np.array_equal(model.statistics_.parts[colours][0][0].counts, never.statistics_.parts[colours][0][0].counts)
    assert (
        model.statistics_.parts[colours][0][0].values.tolist() == never.statistics_.parts[colours][0][0].values.tolist()
    )
    assert np.array_equal(model.statistics_.n, never.statistics_.n)


def test_weight_k_equals_k_copies():
    weight = np.random.default_rng(1).integers(0, 4, 60)
    weighted = NaiveBayes().fit(FRAME, LABELS, sample_weight=weight)
    copies = np.repeat(np.arange(60), weight)
    assert np.allclose(answers(weighted), answers(NaiveBayes().fit(FRAME.iloc[copies], LABELS.iloc[copies])), atol=1e-9)


def test_merging_is_associative_and_commutative():
    a, b, c = (NaiveBayes().fit(FRAME.iloc[p], LABELS.iloc[p]) for p in (slice(0, 20), slice(20, 45), slice(45, 60)))
    whole = answers(NaiveBayes().fit(FRAME, LABELS))
    for merged in ((a + b) + c, a + (b + c), c + b + a, a.merge(b, c), sum([a, b, c])):
        assert np.allclose(answers(merged), whole, atol=1e-9)
    assert a.class_count_.sum() == 20


@pytest.mark.parametrize("factor", [2.0**-30, 2.0**30, 3e-9, 7e12])
def test_scaling_a_column_changes_nothing(factor):
    X, y = load_iris(return_X_y=True)
    scaled = X * np.array([1.0, factor, 1.0, 1.0])
    families = "gaussian" if factor not in (2.0**-30, 2.0**30) else "auto"  # the histogram's resolution is binary
    before = NaiveBayes(families).fit(X, y).predict_log_proba(X)
    assert np.allclose(NaiveBayes(families).fit(scaled, y).predict_log_proba(scaled), before, atol=1e-6)


@pytest.mark.filterwarnings("ignore:no class has two rows")
def test_a_new_class_and_a_new_category_may_come_later():
    model = NaiveBayes().fit([{"c": "a"}, {"c": "b"}], ["x", "y"])
    model.partial_fit([{"c": "new"}] * 5, ["z"] * 5)
    assert model.classes_.tolist() == ["x", "y", "z"]
    assert model.predict([{"c": "new"}]).tolist() == ["z"]


def test_a_column_that_was_empty_may_fill_later():
    model = NaiveBayes().partial_fit([{"a": 1.0, "b": None}, {"a": 2.0, "b": None}], [0, 1])
    assert model.schema_["b"].kind == "empty"
    model.partial_fit([{"a": 1.0, "b": "left"}, {"a": 2.0, "b": "right"}] * 4, [0, 1] * 4)
    assert model.schema_["b"].family == "Categorical"
    assert model.predict([{"a": None, "b": "right"}]).tolist() == [1]


def test_a_faded_model_forgets_only_with_the_clock():
    model = NaiveBayes("gaussian").fit(FRAME[["wait"]], LABELS)
    then = model.clock_
    model.decay(0.5).partial_fit(FRAME[["wait"]].iloc[:5] * 2, LABELS.iloc[:5])
    with pytest.raises(
        StaleModelError, match=r"the model has decayed \(clock_ is 0.5\); call forget\(..., learned_at=<clock_ then>\)."
    ):
        model.forget(FRAME[["wait"]], LABELS)
    model.forget(FRAME[["wait"]], LABELS, learned_at=then)
    fresh = NaiveBayes("gaussian").partial_fit(FRAME[["wait"]].iloc[:5] * 2, LABELS.iloc[:5], classes=["ham", "spam"])
    assert np.allclose(answers(model, FRAME[["wait"]]), answers(fresh, FRAME[["wait"]]))


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_leave_one_out_is_refitting_without_the_row(estimate):
    model = NaiveBayes(estimate=estimate).fit(FRAME, LABELS)
    honest = model.leave_one_out(FRAME, LABELS)
    for i in range(0, 60, 7):
        others = np.arange(60) != i
        refitted = NaiveBayes(estimate=estimate).fit(FRAME[others], LABELS[others])
        assert np.allclose(honest[i], refitted.predict_log_proba(FRAME[~others])[0], atol=1e-9)


# -- families ----------------------------------------------------------------------------------------------------


def test_the_evidence_finds_the_family_that_made_the_column():
    frame, y = mixed(2000)
    schema = NaiveBayes().fit(frame, y).schema_
    chosen = {name: column.family for name, column in schema.items()}
    assert chosen == {
        "colour": "Categorical",
        "flag": "Bernoulli",
        "count": "Poisson",
        "wait": "Gamma",
        "size": "Gaussian",
    }
    assert schema["count"].bits["Poisson"] > schema["count"].bits["Gaussian"]
    assert schema["count"].bits["Bernoulli"] == -np.inf
    assert str(schema["count"]).startswith("count: Poisson")


def test_a_shape_of_its_own_is_a_histogram():
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.normal(-5, 0.3, 500), rng.normal(5, 0.3, 500), np.zeros(500)])
    assert NaiveBayes().fit(x[:, None], rng.integers(0, 2, 1500)).schema_["x0"].family == "Histogram"


def test_the_choice_of_family_forgets_too():
    counts = np.random.default_rng(0).poisson(5.0, (300, 1)).astype(float)
    y = np.arange(300) % 2
    model = NaiveBayes().fit(counts, y)
    assert model.schema_["x0"].family == "Poisson"
    model.partial_fit([[2.5]], [0])
    assert model.schema_["x0"].family != "Poisson"
    assert model.forget([[2.5]], [0]).schema_["x0"].family == "Poisson"


@pytest.mark.parametrize(
    "family", ["gaussian", Gaussian, Gaussian(0.0, 1.0, 2.0, 1.0), Histogram, "histogram", Histogram(8)]
)
def test_a_family_can_be_declared(family):
    model = NaiveBayes({"size": family}).fit(FRAME, LABELS)
    assert model.schema_["size"].family.lower() in str(family).lower()
    assert model.score(FRAME, LABELS) > 0.8


def test_a_declared_family_for_all_columns():
    X, y = load_iris(return_X_y=True)
    for family in (Gaussian, Gamma, Histogram, "gamma"):
        assert NaiveBayes(family).fit(X, y).score(X, y) > 0.9
    assert NaiveBayes(Poisson).fit(np.floor(X * 4), y).score(np.floor(X * 4), y) > 0.8


def test_numbers_may_be_declared_labels():
    X = pd.DataFrame({"code": [101, 205, 101, 205, 309] * 4})
    y = ["a", "b", "a", "b", "b"] * 4
    assert NaiveBayes({"code": Categorical}).fit(X, y).score(X, y) == 1.0


def test_declared_categories_share_the_smoothing():
    family = Categorical(1.0, values=["blue", "red", "teal"])
    model = NaiveBayes({"c": family}).fit([{"c": "red"}, {"c": "red"}, {"c": "blue"}], [0, 0, 1])
    assert np.exp(model.explain([{"c": "teal"}])[0].lines[0].log_likelihood) == pytest.approx([1 / 5, 1 / 4])


# -- tables as they are ------------------------------------------------------------------------------------------

WAYS = {
    "pandas": lambda f: f,
    "polars": pl.from_pandas,
    "pyarrow": lambda f: pa.Table.from_pandas(f, preserve_index=False),
    "pandas, nullable": lambda f: f.convert_dtypes(),
    "pandas, category": lambda f: f.astype({"colour": "category"}),
    "list of dicts": lambda f: [
        {k: v for k, v in row.items() if v is not None and v == v} for row in f.to_dict("records")
    ],
    "dict of columns": lambda f: {name: f[name].to_numpy() for name in f},
    "columns reversed": lambda f: f[f.columns[::-1]],
}


@pytest.mark.parametrize("way", WAYS)
def test_every_kind_of_table_gives_the_same_model(way):
    expected = answers(NaiveBayes().fit(FRAME, LABELS))
    table = WAYS[way](FRAME)
    assert np.allclose(NaiveBayes().fit(table, LABELS).predict_log_proba(table), expected, atol=1e-9)
    assert np.allclose(NaiveBayes().fit(FRAME, LABELS).predict_log_proba(table), expected, atol=1e-9)


def test_arrays_of_any_type():
    X, y = load_iris(return_X_y=True)
    expected = NaiveBayes().fit(X, y).predict_log_proba(X)
    for other in (X.tolist(), X.astype(object), np.asfortranarray(X)):
        assert np.allclose(NaiveBayes().fit(other, y).predict_log_proba(other), expected)
    mixed_rows = [["red", 1.0], ["blue", 2.0], ["red", 1.5], ["blue", None]]
    assert NaiveBayes().fit(mixed_rows, [0, 1, 0, 1]).predict([["blue", None]]).tolist() == [1]


def test_missing_cells_say_nothing():
    model = NaiveBayes().fit(FRAME, LABELS)
    nothing = model.predict_proba([{}] if False else pd.DataFrame([dict.fromkeys(FRAME.columns)]))
    assert nothing[0] == pytest.approx(model.class_count_ / model.class_count_.sum())


@pytest.mark.parametrize("options", [{"alpha": 1.0}, {"alpha": 0.0}, {"estimate": "ml"}, {"estimate": "map"}])
def test_a_category_never_learned_says_nothing(options):
    model = NaiveBayes(**options).fit([{"c": "a"}] * 3 + [{"c": "b"}], ["x", "x", "x", "y"])
    assert model.predict_proba([{"c": "never seen"}])[0] == pytest.approx([0.75, 0.25])


def test_constant_and_empty_columns_have_no_effect():
    X, y = load_iris(return_X_y=True)
    for estimate in ESTIMATES:
        plain = NaiveBayes(estimate=estimate).fit(X, y).predict_log_proba(X)
        padded = np.column_stack([X, np.full(150, 7.0), np.full(150, np.nan)])
        more = NaiveBayes(estimate=estimate).partial_fit(padded, y)
        assert np.allclose(more.predict_log_proba(padded), plain, atol=1e-9)
        gaussian = NaiveBayes("gaussian", estimate=estimate)
        plain = gaussian.fit(X, y).predict_log_proba(X)
        assert np.allclose(clone(gaussian).partial_fit(padded, y).predict_log_proba(padded), plain)


def test_an_extra_column_is_ignored_with_a_note():
    model = NaiveBayes().fit(FRAME, LABELS)
    with pytest.warns(PrioryWarning, match=r"ignoring columns the model does not know: \['extra'\]"):
        more = model.predict_log_proba(FRAME.assign(extra=1.0))
    assert np.array_equal(more, answers(model))


# -- priors and extremes -----------------------------------------------------------------------------------------


def test_class_priors_are_estimated_uniform_or_given():
    nothing = pd.DataFrame([dict.fromkeys(FRAME.columns)])
    for prior, expected in (
        ("uniform", [0.5, 0.5]),
        ([0.9, 0.1], [0.9, 0.1]),
        ({"spam": 0.25, "ham": 0.75}, [0.75, 0.25]),
    ):
        assert NaiveBayes(class_prior=prior).fit(FRAME, LABELS).predict_proba(nothing)[0] == pytest.approx(expected)


def test_a_class_never_seen_counts_as_half_a_row():
    model = NaiveBayes().partial_fit([[1.0], [2.0]], ["a", "b"], classes=["a", "b", "c"])
    assert model.predict_proba([[np.nan]])[0] == pytest.approx([0.4, 0.4, 0.2])
    assert np.isfinite(model.predict_log_proba([[1.0]])).all()


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("size", [1e-308, 1e-150, 1e150, 1e300, 1e308])
def test_probabilities_are_finite_and_sum_to_one_at_any_size(size, estimate):
    X, y = load_iris(return_X_y=True)
    huge = X / 8 * np.array([size, 1.0, 1.0, 1.0])
    p = NaiveBayes("gaussian", estimate=estimate).fit(huge, y).predict_proba(huge)
    assert np.isfinite(p).all()
    assert np.allclose(p.sum(axis=1), 1.0, atol=1e-12)
    assert np.array_equal(p.argmax(axis=1), NaiveBayes("gaussian", estimate=estimate).fit(X, y).predict(X))


def test_automatic_families_survive_any_size():
    X, y = load_iris(return_X_y=True)
    for size in (1e-308, 1e-300, 1e300, 1e308):
        p = NaiveBayes().fit(X / 8 * size, y).predict_proba(X / 8 * size)
        assert np.allclose(p.sum(axis=1), 1.0)


def test_one_wide_noisy_column_does_not_ruin_the_others():
    X, y = load_breast_cancer(return_X_y=True)
    noise = np.random.default_rng(0).normal(0, 1e3, (len(y), 1))
    score = cross_val_score(NaiveBayes(), np.hstack([X, noise]), y, cv=5).mean()
    assert score > cross_val_score(NaiveBayes(), X, y, cv=5).mean() - 0.01


def test_one_row_of_each_class_is_enough_and_said_to_be_few():
    with pytest.warns(PrioryWarning, match="no class has two rows: how far each spreads is guessed"):
        model = NaiveBayes().fit([{"c": "a", "v": 1.0}, {"c": "b", "v": 2.0}], ["x", "y"])
    assert model.predict([{"c": "a", "v": 1.0}]).tolist() == ["x"]
    with pytest.warns(PrioryWarning, match="no class has two rows"):
        only = NaiveBayes().fit([[1.0]], ["only"])
    assert only.predict_proba([[5.0]]).tolist() == [[1.0]]


# -- the ledger --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimate", ["predictive", "ml"])
def test_the_ledger_sums_to_the_reported_log_odds(estimate):
    model = NaiveBayes(estimate=estimate).fit(FRAME, LABELS)
    log_p = answers(model)
    for ledger, row in zip(model.explain(FRAME), log_p, strict=True):
        a, b = (ledger.classes.index(c) for c in ("spam", "ham"))
        assert ledger.log_odds("spam", "ham") == pytest.approx(row[a] - row[b], abs=1e-9)
        assert ledger.winner == model.classes_[row.argmax()]


def test_the_ledger_can_be_read_shown_and_tabulated():
    model = NaiveBayes().fit(FRAME, LABELS)
    ledgers = model.explain(FRAME.iloc[:3])
    text = str(ledgers[0])
    assert text.splitlines()[0] in ("spam against ham", "ham against spam")
    assert all(name in text for name in [*FRAME.columns, "prior", "total", "dB"])
    assert len(ledgers[:2]) == 2
    frame = ledgers.to_frame()
    assert len(frame) == 3 * 6
    assert list(frame.columns) == ["name", "value", "log p(ham)", "log p(spam)", "decibans", "row"]
    first = frame[frame["row"] == 0]
    assert first["decibans"].sum() == pytest.approx(ledgers[0].log_odds() * 10 / np.log(10))


def test_without_pandas_the_ledger_says_what_to_install(monkeypatch):
    ledgers = NaiveBayes().fit(FRAME, LABELS).explain(FRAME.iloc[:1])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match=r"to_frame needs pandas: pip install 'priory\[pandas\]'"):
        ledgers.to_frame()


@pytest.mark.filterwarnings("ignore:no class has two rows")
def test_what_the_ledger_shows_is_escaped():
    model = NaiveBayes().fit([{"<b>": "x\x1b[31m"}, {"<b>": "<script>"}], ["a&b", "c"])
    ledger = model.explain([{"<b>": "x\x1b[31m"}])[0]
    assert "\x1b" not in str(ledger)
    html = model.explain([{"<b>": "<script>"}])._repr_html_()
    assert "<script>" not in html
    assert "<b>" not in html


# -- scikit-learn ------------------------------------------------------------------------------------------------


def test_it_lives_in_scikit_learn():
    X, y = load_wine(return_X_y=True, as_frame=True)
    search = GridSearchCV(NaiveBayes(), {"estimate": ["ml", "predictive"], "families": ["auto", "gaussian"]}, cv=3)
    assert search.fit(X, y).best_score_ > 0.9
    pipe = make_pipeline(FunctionTransformer(), NaiveBayes()).set_output(transform="pandas")
    assert pipe.fit(X, y).score(X, y) > 0.9
    model = NaiveBayes(alpha=2.0).fit(X, y)
    assert clone(model).get_params() == model.get_params()
    assert model.feature_names_in_.tolist() == list(X.columns)


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda m: m.forget(FRAME, ["eggs"] * 60), NotLearnedError, "no row of class 'eggs' was ever learned"),
        (
            lambda m: m.forget(pd.concat([FRAME] * 2), pd.concat([LABELS] * 2)),
            NotLearnedError,
            "forget only rows that were learned",
        ),
        (lambda m: m.partial_fit(FRAME.assign(size="big"), LABELS), KindError, "row 0, column 'size' holds 'big'"),
        (lambda m: m.partial_fit(FRAME, LABELS, sample_weight=-np.ones(60)), DataError, "sample_weight of row 0 is -1"),
        (lambda m: m.refresh(FRAME.drop(columns="size"), LABELS), DataError, "the table has no column 'size'"),
        (lambda m: m.fit(FRAME.assign(size=np.inf), LABELS), DataError, "row 0, column 'size' is infinity"),
        (lambda m: m.decay(1.5), DataError, "factor is 1.5; it must be greater than 0 and at most 1"),
        (
            lambda m: m.merge(NaiveBayes("gaussian").fit([[1.0], [2.0]], [0, 0])),
            DataError,
            "merge models of the same columns",
        ),
    ],
)
def test_after_an_error_the_model_is_as_it_was(act, error, message):
    model = NaiveBayes().fit(FRAME, LABELS)
    before, record = answers(model), model.statistics_
    with pytest.raises(error, match=message):
        act(model)
    assert model.statistics_ is record
    assert np.array_equal(answers(model), before)


@pytest.mark.filterwarnings("ignore:no class has two rows")
def test_bernoulli_columns_may_be_given_a_strong_prior():
    strong = NaiveBayes(Bernoulli(100.0, 100.0)).fit([[1.0], [0.0]], [0, 1])
    assert strong.predict_proba([[1.0]])[0] == pytest.approx([0.5, 0.5], abs=0.01)


# -- texts among the columns -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mail():
    return inbox()


def test_texts_categories_and_numbers_are_used_together(mail):
    rows, labels = mail
    model = NaiveBayes().fit(rows, labels)
    assert model.schema_["text"].family == "Text"
    assert model.schema_["sender"].family == "Categorical"
    truth = np.searchsorted(model.classes_, labels)

    def honest(columns):
        table = [{name: row[name] for name in columns} for row in rows]
        return (NaiveBayes().fit(table, labels).leave_one_out(table, labels).argmax(axis=1) == truth).mean()

    together = honest(["sender", "hour", "links", "text"])
    assert together > honest(["text"]) + 0.02
    assert together > honest(["sender", "hour", "links"]) + 0.2


def test_a_text_column_is_the_text_classifier(mail):
    rows, labels = mail
    texts = [row["text"] for row in rows]
    column = NaiveBayes().fit([{"text": t} for t in texts], labels)
    alone = TextClassifier().fit(texts, labels)
    assert np.allclose(column.predict_log_proba([{"text": t} for t in texts]), alone.predict_log_proba(texts))
    assert np.allclose(column.leave_one_out([{"text": t} for t in texts], labels), alone.leave_one_out(texts, labels))


@pytest.mark.parametrize("model", ["binary", "bernoulli", "multinomial"])
def test_tables_with_texts_forget_and_leave_out_exactly(mail, model):
    rows, labels = mail
    families = {"text": Text(model)}
    fitted = NaiveBayes(families).fit(rows, labels)
    honest = fitted.leave_one_out(rows, labels)
    for i in range(0, len(rows), 61):
        others = [j for j in range(len(rows)) if j != i]
        refitted = NaiveBayes(families).fit([rows[j] for j in others], [labels[j] for j in others])
        assert np.allclose(honest[i], refitted.predict_log_proba([rows[i]])[0], atol=1e-9)
    never = NaiveBayes(families).fit(rows[:200], labels[:200])
    fitted.forget(rows[200:], labels[200:])
    assert np.allclose(fitted.predict_log_proba(rows), never.predict_log_proba(rows), atol=1e-9)


def test_a_missing_text_says_nothing_and_the_ledger_still_sums(mail):
    rows, labels = mail
    model = NaiveBayes({"text": Text("bernoulli")}).fit(rows, labels)
    bare = {**rows[0], "text": None}
    without = NaiveBayes().fit([{k: v for k, v in row.items() if k != "text"} for row in rows], labels)
    expected = without.predict_log_proba([{k: v for k, v in bare.items() if k != "text"}])
    assert np.allclose(model.predict_log_proba([bare]), expected, atol=1e-9)
    ledger, row = model.explain(rows[:1])[0], model.predict_log_proba(rows[:1])[0]
    assert ledger.log_odds("spam", "normal") == pytest.approx(row[1] - row[0], abs=1e-9)


def test_texts_in_scripts_without_spaces_are_texts():
    reviews = ["送餐很快味道好", "太慢了味道差", "味道好下次再来", "差评太慢不来了"] * 3
    rows = [{"review": f"{text}{chr(0x4E00 + i)}{chr(0x4F00 + i)}"} for i, text in enumerate(reviews)]
    model = NaiveBayes(calibrate=False).fit(rows, ["good", "bad"] * 6)
    assert model.schema_["review"].family == "Text"
    assert model.predict([{"review": "味道好"}, {"review": "太慢"}]).tolist() == ["good", "bad"]
