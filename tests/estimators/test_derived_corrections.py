"""Corrections are a function of the record: they follow what is learned, forgotten and merged."""

import copy

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import GroupKFold, KFold, TimeSeriesSplit, cross_val_predict, cross_val_score

import priory as pr
from priory import inbox
from priory.core.content_hash import hash_content
from priory.errors import DataError, NotLearnedError, StaleModelError


def make_table(n=200, seed=0):
    """Columns that say the same several times, a number and a text."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    told = y ^ (rng.random(n) < 0.3)
    rows = [
        {
            "a": "yes" if t else "no",
            "b": "yes" if t else "no",
            "size": float(rng.normal() + label),
            "text": " ".join(rng.choice(["win", "cash", "lunch", "noon", "today"], 3 + label)),
        }
        for t, label in zip(told, y, strict=True)
    ]
    return rows, y


def take(rows, y, part):
    return [rows[i] for i in np.arange(len(rows))[part]], y[part]


# -- laws ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole():
    return pr.NaiveBayes().fit(*make_table())


def test_batches_and_merging_give_the_corrections_of_one_fit(whole):
    rows, y = make_table()
    order = np.random.default_rng(1).permutation(len(y))
    streamed = pr.NaiveBayes()
    for part in np.array_split(order, 3):
        streamed.partial_fit(*take(rows, y, part))
    assert streamed.refresh().corrections_version_ == whole.corrections_version_
    parts = [pr.NaiveBayes().fit(*take(rows, y, part)) for part in np.array_split(order, 3)]
    assert sum(parts).corrections_version_ == sum(reversed(parts)).corrections_version_ == whole.corrections_version_


def test_what_is_forgotten_has_left_no_trace_in_the_corrections(whole):
    rows, _ = make_table()
    more, labels = make_table(40, seed=7)
    model = copy.deepcopy(whole).partial_fit(more, labels)
    assert model.corrections_version_ != whole.corrections_version_
    model.forget(more, labels)
    assert model.corrections_version_ == whole.corrections_version_
    assert np.array_equal(model.predict_proba(rows), whole.predict_proba(rows))
    assert model.stale_ == ()


def test_a_model_of_texts_forgets_its_corrections_too():
    rows, labels = inbox()
    texts = [row["text"] for row in rows]
    whole = pr.TextClassifier().fit(texts[50:], labels[50:])
    model = pr.TextClassifier().fit(texts, labels).forget(texts[:50], labels[:50])
    assert model.corrections_version_ == whole.corrections_version_
    assert "tempering" in model.corrections_.names


def test_learning_on_keeps_the_corrections_in_use(whole):
    rows, y = make_table()
    model = copy.deepcopy(whole).partial_fit(*take(rows, y, slice(0, 1)))  # the row is kept already: it weighs two
    assert model.sample_changes_ == 0
    assert model.corrections_.tempering.weights == pytest.approx(whole.corrections_.tempering.weights, abs=0.1)
    assert model.predict_proba(rows) == pytest.approx(whole.predict_proba(rows), abs=0.05)
    more, labels = make_table(10, seed=3)
    model.partial_fit(more, labels)
    assert model.sample_changes_ == 10
    model.partial_fit(*make_table(20, seed=4))  # together more than a tenth of what is kept: derived anew
    assert model.sample_changes_ == 0
    assert model.corrections_version_ == model.refresh().corrections_version_


def test_a_stream_is_never_answered_by_plain_naive_bayes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    x = np.repeat((y ^ (rng.random(600) < 0.3))[:, None], 6, axis=1).astype(str)  # one column, six times
    model = pr.NaiveBayes()
    for part in np.split(np.arange(600), 20):
        model.partial_fit(x[part], y[part])
        if part[-1] > 100:
            assert model.predict_proba(x[:50]).max() < 0.85  # plain: above .95


def test_a_new_class_is_answered_at_once(whole):
    model = copy.deepcopy(whole).partial_fit(make_table(3)[0], [5, 5, 5])
    assert model.predict_proba(make_table(3)[0]).shape == (3, 3)


def test_a_decayed_model_keeps_its_corrections(whole):
    rows, _ = make_table()
    model = copy.deepcopy(whole).decay(0.5)
    assert model.corrections_version_ == whole.corrections_version_
    assert model.refresh().predict_proba(rows).sum(axis=1) == pytest.approx(1.0)


def test_a_row_whose_cells_were_learned_in_other_rows_cannot_be_forgotten(whole):
    rows, y = make_table()
    mixed = {**rows[0], "size": rows[1]["size"]}
    with pytest.raises(NotLearnedError, match="row 0: this row, as a whole, was not learned"):
        copy.deepcopy(whole).forget([mixed], y[:1])


# -- without memory --------------------------------------------------------------------------------------------------


def test_without_memory_no_row_is_kept():
    rows, y = make_table()
    model = pr.NaiveBayes(memory=0).fit(rows, y)
    assert model.statistics_.sample is None
    assert "tempering" in model.corrections_.names
    model.forget(*take(rows, y, slice(0, 50)))
    assert model.stale_[0] == "tempering"
    assert not hasattr(model, "corrections_")
    plain = pr.NaiveBayes(calibrate=False).fit(*take(rows, y, slice(50, None)))
    assert np.array_equal(model.without_corrections().predict_proba(rows), plain.predict_proba(rows))
    assert model.predict_proba(rows) == pytest.approx(plain.predict_proba(rows), abs=0.01)  # but limited by its rows
    with pytest.raises(StaleModelError, match="keeps no rows"):
        model.evaluate()
    with pytest.raises(StaleModelError, match="keeps no rows"):
        model.refresh()
    model.refresh(*take(rows, y, slice(50, None)))
    assert model.stale_ == ()
    assert "tempering" in model.corrections_.names


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory": -1}, "memory is -1; use a number of rows from 0, or None."),
        ({"refresh_after": 0}, "refresh_after is 0; use a share of the rows above 0."),
    ],
)
def test_options_that_are_not_there(options, message):
    with pytest.raises(DataError, match=message):
        pr.NaiveBayes(**options).fit(*make_table(60))


# -- judging ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("calibrate", [False, "loo"])
def test_cross_validation_by_subtraction_is_that_by_refitting(calibrate):
    iris = load_iris(as_frame=True)
    model = pr.NaiveBayes(calibrate=calibrate).fit(iris.data, iris.target)
    folds = KFold(5, shuffle=True, random_state=0)
    quick = model.evaluate(iris.data, iris.target, folds=folds)
    slow = cross_val_score(copy.deepcopy(model), iris.data, iris.target, cv=folds, scoring="neg_log_loss")
    assert quick.log_loss.value == pytest.approx(-slow.mean(), rel=1e-4 if calibrate else 1e-9)


def test_stratified_grouped_and_time_ordered_folds_are_those_of_scikit_learn():
    iris = load_iris(as_frame=True)
    x, y = iris.data, iris.target.to_numpy()
    model = pr.NaiveBayes(calibrate=False).fit(x, y)
    groups, when = np.arange(150) % 7, np.random.default_rng(0).permutation(150)

    def refitted(cv, groups=None):
        proba = cross_val_predict(pr.NaiveBayes(calibrate=False), x, y, cv=cv, groups=groups, method="predict_proba")
        return -np.log(proba[np.arange(150), y]).mean()

    assert model.evaluate(x, y, folds=4).log_loss.value == pytest.approx(refitted(4), rel=1e-9)
    grouped = model.evaluate(x, y, folds=GroupKFold(3), groups=groups).log_loss.value
    assert grouped == pytest.approx(refitted(GroupKFold(3), groups), rel=1e-9)
    ordered = model.evaluate(x, y, folds=3, time=when)
    order = np.argsort(when)
    losses = []
    for train, test in TimeSeriesSplit(3).split(order):
        past = pr.NaiveBayes(calibrate=False).fit(x.iloc[order[train]], y[order[train]])
        answers = past.predict_log_proba(x.iloc[order[test]])
        losses.extend(-answers[np.arange(len(test)), np.searchsorted(past.classes_, y[order[test]])])
    assert ordered.log_loss.value == pytest.approx(np.mean(losses), rel=1e-9)


def test_leaving_groups_out_sees_the_leak_that_leaving_rows_out_does_not():
    rng = np.random.default_rng(5)
    patient = rng.integers(0, 40, 400)
    y = (rng.random(40) < 0.5)[patient].astype(int)
    x = [{"patient": f"p{p}", "noise": float(v)} for p, v in zip(patient, rng.normal(0, 1, 400), strict=True)]
    model = pr.NaiveBayes(calibrate=False).fit(x, y)
    assert model.evaluate(x, y).accuracy.value > 0.9
    assert model.evaluate(x, y, groups=patient).accuracy.value < 0.65


def test_rows_that_are_kept_are_judged_as_rows_that_are_given(whole):
    kept, again = whole.evaluate(), whole.evaluate(*make_table())
    assert kept.log_loss.value == pytest.approx(again.log_loss.value, abs=1e-12)
    assert sorted(again.positions.tolist()) == list(range(200))


@pytest.mark.parametrize("seed", range(3))
def test_labels_of_pure_noise_are_not_predicted(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 3, (100, 20)).astype(str), rng.integers(0, 2, 100)
    scores = pr.NaiveBayes().fit(x, y).evaluate()
    assert scores.log_loss.high > np.log(2) - 0.02
    assert scores.accuracy.low < 0.56


# -- beyond the memory -----------------------------------------------------------------------------------------------


def make_xor(rows, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=rows).round(3), rng.integers(0, 4, rows)
    y = np.where((a > 0.2) ^ (b == 1) ^ (rng.random(rows) < 0.1), "yes", "no")
    return [{"a": float(p), "b": f"v{q}"} for p, q in zip(a, b, strict=True)], y.tolist()


def learn_all(rows, labels, memory=150):
    return pr.NaiveBayes(memory=memory).fit(rows, labels)


def test_corrections_after_forgetting_kept_and_other_rows_are_those_of_a_model_that_never_saw_them():
    rows, labels = make_xor(600)
    gone = list(range(0, 600, 55))  # 11 rows, of which fewer than the reserve were kept
    rest = [i for i in range(600) if i not in gone]
    never = learn_all([rows[i] for i in rest], [labels[i] for i in rest])
    once = learn_all(rows, labels).forget([rows[i] for i in gone], [labels[i] for i in gone])
    one_by_one = learn_all(rows, labels)
    for i in gone:
        one_by_one.forget_one(rows[i], labels[i])
    in_batches = pr.NaiveBayes(memory=150)
    for part in (rest[400:], rest[:130], rest[130:400]):
        in_batches.partial_fit([rows[i] for i in part], [labels[i] for i in part])
    for model in (once, one_by_one, in_batches.refresh()):
        assert hash_content(model.corrections_) == hash_content(never.corrections_)
        assert np.array_equal(model.predict_proba(rows), never.predict_proba(rows))


@pytest.mark.filterwarnings("ignore:no class has two rows")
def test_a_row_outside_of_the_sample_changes_the_evidence_and_nothing_else():
    rows, labels = make_xor(600)
    model = learn_all(rows, labels)
    sample, before = model.statistics_.sample, model.corrections_
    fitted = sample.find_derived("corrections")
    far = next(
        i
        for i in range(600)
        if learn_all(rows[i : i + 1], labels[i : i + 1]).statistics_.sample.hashes[0] >= np.uint64(sample.limit)
    )
    model.forget_one(rows[far], labels[far])
    after = model.corrections_
    assert model.statistics_.sample.find_derived("corrections") is fitted
    assert after.members is before.members
    assert not np.array_equal(after.evidence.log_ratios, before.evidence.log_ratios)
