"""One row at a time: the same record as the same rows in tables, the same answers, and the same errors."""

import copy
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priory import NaiveBayes, TextClassifier, inbox, naive_bayes
from priory.core.content_hash import hash_content
from priory.errors import DataError, KindError, NotLearnedError, PrioryWarning, StaleModelError
from priory.learning import row_buffer

SUBJECTS = ["win cash now", "lunch at noon?", "cash prize, win win", "see you at lunch", "été à Rome", "now or never"]


def make_row(rng, size=None):
    """A row of every kind of cell, with cells missing and a column that is not always there."""
    row = {
        "size": float(np.round(rng.normal(), 2)),
        "count": int(rng.poisson(3)),
        "flag": bool(rng.integers(2)),
        "colour": ["red", "green", "blue"][rng.integers(3)],
        "subject": SUBJECTS[rng.integers(len(SUBJECTS))] if rng.random() < 0.9 else None,
    }
    for name in ("size", "colour"):
        if rng.random() < 0.1:
            row[name] = None
    if rng.random() < 0.2:
        del row["count"]
    return row


def make_rows(n, seed=0, with_texts=True):
    rng = np.random.default_rng(seed)
    rows = [make_row(rng) for _ in range(n)]
    labels = ["big" if (row["size"] or 0) + (row["colour"] == "red") > 0.3 else "small" for row in rows]
    if not with_texts:
        for row in rows:
            del row["subject"]
    return rows, labels


def make_texts(n, seed=0):
    rng = np.random.default_rng(seed)
    labels = [["ham", "spam"][k] for k in rng.integers(2, size=n)]
    own = {"ham": ["lunch", "noon", "meeting", "you"], "spam": ["cash", "win", "prize", "free"]}
    both = ["the", "at", "now", "été", "25"]
    texts = [
        " ".join(
            [*rng.choice(own[label], 3), *rng.choice(both, 5), *rng.choice([w for ws in own.values() for w in ws], 2)]
        )
        for label in labels
    ]
    return texts, labels


SUBJECT = {"subject": "text"}  # a few rows would not tell texts from labels
TABLES = [
    NaiveBayes(SUBJECT, calibrate=False),
    NaiveBayes(SUBJECT, memory=30, refresh_after=10.0),
    NaiveBayes(SUBJECT, memory=0),
]
TEXTS = [
    *(TextClassifier(kind, calibrate=False) for kind in ("binary", "multinomial")),
    TextClassifier(memory=30),
    TextClassifier(memory=0),
    TextClassifier(refine=True),
    TextClassifier(ngram_range=(1, 2), calibrate=False),
    TextClassifier(analyzer="char_wb", ngram_range=(2, 3), calibrate=False),
    # these go the ordinary way
    TextClassifier("bernoulli", calibrate=False),
    TextClassifier(alpha="evidence", calibrate=False),
    TextClassifier(buckets=64, calibrate=False),
    TextClassifier(vocabulary=["cash", "lunch"], calibrate=False),
    TextClassifier(max_tokens=1000, calibrate=False),
]
MODELS = [(model, make_rows) for model in TABLES] + [(model, make_texts) for model in TEXTS]


def describe(case):
    return repr(case[0]).replace("\n", "")


def copy_of(model):
    return type(model)(**model.get_params())


def buffer_of(model):
    """The rows in front of the statistics, which no user sees."""
    return model._core.buffer


def is_open(model):
    return buffer_of(model) is not None


def record_of(model):
    learned = model.learned_
    return hash_content((learned.statistics, getattr(learned.rows, "schema", None)))


def assert_same_answers(model, other, rows, tolerance=1e-9):
    one_by_one = np.array([list(model.predict_proba_one(row).values()) for row in rows])
    np.testing.assert_allclose(one_by_one, other.predict_proba(rows), atol=tolerance)


# -- the record ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", MODELS, ids=describe)
def test_rows_one_at_a_time_are_the_rows_of_a_table(case):
    declared, make = case
    rows, labels = make(50)
    stream, table = copy_of(declared), copy_of(declared)
    stream.learn_one(rows[0], labels[0])
    table.partial_fit(rows[:1], labels[:1])
    for row, label in zip(rows[1:], labels[1:], strict=True):
        assert stream.learn_one(row, label) is stream
        assert isinstance(stream.predict_one(row), str)
        table.partial_fit([row], [label])
    assert record_of(stream) == record_of(table)
    for row, label in zip(rows[20:35], labels[20:35], strict=True):
        stream.forget_one(row, label)
        table.forget(
            [{name: row.get(name) for name in table.feature_names_in_}] if make is make_rows else [row], [label]
        )
    assert record_of(stream) == record_of(table)


@pytest.mark.parametrize("case", [MODELS[0], MODELS[1], MODELS[4], MODELS[8]], ids=describe)
@settings(max_examples=15, deadline=None)
@given(steps=st.lists(st.tuples(st.integers(0, 39), st.sampled_from(["learn", "forget", "ask", "look"])), max_size=60))
def test_any_history_leads_to_the_record_of_the_rows_that_are_left(case, steps):
    declared, make = case
    rows, labels = make(40)
    stream, left = copy_of(declared), []
    stream.partial_fit(rows[:6], labels[:6])
    left = list(range(6))
    for number, what in steps:
        if what == "learn":
            stream.learn_one(rows[number], labels[number])
            left.append(number)
        elif what == "forget" and number in left and len(left) > 1:
            stream.forget_one(rows[number], labels[number])
            left.remove(number)
        elif what == "ask":
            assert np.isclose(sum(stream.predict_proba_one(rows[number]).values()), 1)
        elif what == "look":
            assert stream.statistics_.find_fault() is None
    fresh = copy_of(declared)
    names = list(getattr(stream, "feature_names_in_", ()))
    kept = [{**dict.fromkeys(names), **rows[i]} if names else rows[i] for i in left]
    fresh.partial_fit(kept, [labels[i] for i in left])
    if declared.memory != 30:  # a sample that was full depends on what passed through it
        assert hash_content(stream.statistics_) == hash_content(fresh.statistics_)
    assert hash_content(stream.statistics_.parts) == hash_content(fresh.statistics_.parts)


def test_rows_are_counted_into_the_record_before_they_take_too_much_memory(monkeypatch):
    monkeypatch.setattr(row_buffer, "MAX_PENDING_BYTES", 1000)
    texts, labels = make_texts(60)
    model = TextClassifier(calibrate=False).fit(texts[:10], labels[:10])
    for text, label in zip(texts[10:], labels[10:], strict=True):
        model.learn_one(text, label)
        assert len(buffer_of(model).learned) < 12
    assert record_of(model) == record_of(TextClassifier(calibrate=False).fit(texts, labels))


# -- answers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", MODELS, ids=describe)
def test_one_answer_is_that_of_a_table(case):
    declared, make = case
    rows, labels = make(300)
    if make is make_rows:
        rows = [{"count": None, **row} for row in rows]
    model = copy_of(declared).fit(rows[:200], labels[:200])
    # a member of corrections is computed in single precision for tables, in double for one row
    assert_same_answers(model, model, rows[200:], 1e-5)
    for row, label in zip(rows[200:250], labels[200:250], strict=True):
        model.learn_one(row, label)
    model.refresh() if model.calibrate and model.memory != 0 else model.statistics_
    assert_same_answers(model, model, rows[250:], 1e-5)


@pytest.mark.parametrize("kind", ["binary", "multinomial"])
def test_what_a_text_teaches_counts_at_once(kind):
    texts, labels = make_texts(120)
    model = TextClassifier(kind, calibrate=False).fit(texts[:20], labels[:20])
    for text, label in zip(texts[20:], labels[20:], strict=True):
        model.learn_one(text, label)
        assert is_open(model)
        assert model.predict_proba_one(text) == pytest.approx(
            dict(zip(["ham", "spam"], copy.deepcopy(model).predict_proba([text])[0], strict=True)), abs=1e-12
        )


def test_texts_without_corrections_are_never_counted_anew():
    texts, labels = make_texts(120)
    model = TextClassifier(calibrate=False).fit(texts[:60], labels[:60])
    for old, new in zip(range(60), range(60, 120), strict=True):
        model.learn_one(texts[new], labels[new])
        model.forget_one(texts[old], labels[old])
        model.predict_one(texts[new])
    assert len(buffer_of(model).learned) == len(buffer_of(model).forgotten) == 60
    assert record_of(model) == record_of(TextClassifier(calibrate=False).fit(texts[60:], labels[60:]))


def test_what_a_row_teaches_counts_before_families_are_chosen_again():
    rows, labels = make_rows(1000)
    model = NaiveBayes(calibrate=False).fit([{"count": None, **row} for row in rows], labels)
    before = model.predict_proba_one({"colour": "mauve", "size": 0.1})
    for _ in range(20):
        model.learn_one({"colour": "mauve"}, "small")
    assert is_open(model)
    assert buffer_of(model).has_pending_rows
    assert model.predict_proba_one({"colour": "mauve", "size": 0.1})["small"] > before["small"] + 0.05


@pytest.mark.parametrize("families", ["gaussian", "poisson", "bernoulli", "histogram", "gamma", "auto"])
def test_families_answer_one_row_as_they_answer_many(families):
    rng = np.random.default_rng(0)
    values = {"bernoulli": rng.integers(0, 2, (400, 2)), "poisson": rng.poisson(3, (400, 2))}
    table = values.get(families, rng.gamma(2.0, 1.0, (400, 2))).astype(float)
    labels = np.where(table[:, 0] + rng.normal(size=400) > 2, "yes", "no").tolist()
    rows = [{"a": a, "b": b if i % 7 else None} for i, (a, b) in enumerate(table.tolist())]
    model = NaiveBayes(families, calibrate=False).fit(rows[:200], labels[:200])
    for row, label in zip(rows[200:300], labels[200:300], strict=True):
        model.learn_one(row, label)
    for row, label in zip(rows[:50], labels[:50], strict=True):
        model.forget_one(row, label)
    assert model.predict_one(rows[0]) in ("yes", "no")
    assert buffer_of(model).model.families  # not the ordinary way
    assert_same_answers(model, copy.deepcopy(model), rows[300:], 0.05)  # priors are those of the record, for a while
    assert model.statistics_.n.sum() == 250  # whoever looks brings it up to date
    assert_same_answers(model, model, rows[300:])


def test_nothing_learned_has_no_answer():
    for model in (TextClassifier(), NaiveBayes(), naive_bayes.GaussianNB()):
        assert model.predict_one({}) is None
        assert model.predict_proba_one({}) == {}


def test_declared_class_priors_hold_for_single_rows():
    texts, labels = make_texts(200)
    for calibrate in (False, "loo"):
        model = TextClassifier(class_prior={"ham": 0.9, "spam": 0.1}, calibrate=calibrate).fit(texts, labels)
        assert_same_answers(model, model, texts[:20], 1e-5)


# -- corrections ---------------------------------------------------------------------------------------------------


def test_after_forgetting_nothing_that_has_seen_the_row_answers():
    rows, labels = make_rows(200, with_texts=False)
    rows = [{"count": None, **row} for row in rows]
    model = NaiveBayes().fit(rows, labels)
    model.predict_one(rows[0])
    model.learn_one(rows[0], labels[0])  # the corrections stay in use, as after partial_fit
    for row, label in zip(rows[150:], labels[150:], strict=True):
        model.forget_one(row, label)
    model.forget_one(rows[0], labels[0])
    answer = model.predict_proba_one(rows[3])
    never = NaiveBayes().fit(rows[:150], labels[:150])
    assert model.corrections_version_ == never.corrections_version_
    assert list(answer.values()) == list(never.predict_proba_one(rows[3]).values())


def test_a_forgotten_row_outside_of_the_sample_leaves_the_corrections_too():
    texts, labels = make_texts(400)
    model = TextClassifier(memory=60).fit(texts[:300], labels[:300])
    for text, label in zip(texts[300:], labels[300:], strict=True):
        model.learn_one(text, label)
    model.refresh()
    model.predict_one(texts[0])
    kept = set(model.statistics_.sample.hashes.tolist())
    stream = buffer_of(model)
    hashes = [stream.hash_row(text, ["ham", "spam"].index(label)) for text, label in zip(texts, labels, strict=True)]
    unkept = next(i for i in range(399, 299, -1) if hashes[i] not in kept)
    model.forget_one(texts[unkept], labels[unkept])
    answer = model.predict_proba_one(texts[0])
    never = TextClassifier(memory=60).fit(texts[:unkept] + texts[unkept + 1 :], labels[:unkept] + labels[unkept + 1 :])
    assert model.corrections_version_ == never.corrections_version_
    assert answer == never.predict_proba_one(texts[0])


def test_a_row_learned_after_the_corrections_is_forgotten_without_deriving_them_again():
    rows, labels = make_rows(201, with_texts=False)
    model = NaiveBayes().fit(rows[:200], labels[:200])
    model.predict_one(rows[0])
    version = model.corrections_version_
    model.learn_one(rows[200], labels[200])
    model.forget_one(rows[200], labels[200])
    assert model.corrections_version_ == version


def test_corrections_without_kept_rows_are_lost_when_a_row_is_forgotten():
    texts, labels = make_texts(200)
    model = TextClassifier(memory=0).fit(texts, labels)
    model.learn_one("win cash", "spam")
    assert model.stale_ == ()
    model.forget_one("win cash", "spam")
    assert model.stale_ == ("tempering", "refinement")


def test_corrections_are_derived_anew_when_the_kept_rows_have_changed():
    texts, labels = make_texts(400)
    model = TextClassifier().fit(texts[:200], labels[:200])
    for text, label in zip(texts[200:215], labels[200:215], strict=True):
        model.learn_one(text, label)
    stepped = model.corrections_.tempering
    assert not np.array_equal(
        stepped.weights, TextClassifier().fit(texts[:200], labels[:200]).corrections_.tempering.weights
    )
    assert model.sample_changes_ == 15
    for text, label in zip(texts[215:240], labels[215:240], strict=True):
        model.learn_one(text, label)
        model.predict_one(text)
    assert model.sample_changes_ < 20


# -- what is new, and what is wrong --------------------------------------------------------------------------------


def test_new_classes_come_and_go():
    model = TextClassifier(calibrate=False)
    for text, label in (("win cash", "spam"), ("lunch?", "ham"), ("new shoes", "shop"), ("win", "spam")):
        model.learn_one(text, label)
    assert list(model.predict_proba_one("win")) == ["ham", "shop", "spam"]
    model.forget_one("new shoes", "shop")
    assert list(model.predict_proba_one("win")) == ["ham", "spam"]


@pytest.mark.parametrize("model", [NaiveBayes(calibrate=False), NaiveBayes()], ids=["plain", "corrected"])
def test_columns_come_and_go(model):
    model.fit([{"a": 1.0}, {"a": 2.0}] * 5, ["p", "q"] * 5)
    before = record_of(model), sorted(model.__getstate__())
    model.learn_one({"a": 1.0, "b": "new"}, "p")
    model.learn_one({"b": "other"}, "q")
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.predict_proba_one({"b": "new"})["p"] > 0.5
    assert set(model.predict_proba_one({"unheard of": 1})) == {"p", "q"}
    model.forget_one({"a": 1.0, "b": "new"}, "p")
    model.forget_one({"b": "other"}, "q")
    assert (record_of(model), sorted(model.__getstate__())) == before
    assert model.feature_names_in_.tolist() == ["a"]


def test_new_columns_are_learned_ignored_or_an_error_as_declared():
    rows, labels = [{"a": 1.0, "b": "x"}, {"a": 2.0, "b": "y"}] * 5, ["p", "q"] * 5
    for choice, names in (("learn", ["a", "b", "c"]), ("ignore", ["a", "b"])):
        model = NaiveBayes(new_columns=choice, calibrate=False).fit(rows, labels)
        model.learn_one({"a": 1.0, "c": 3.0}, "p")
        with pytest.warns(PrioryWarning, match=f"{'learning' if choice == 'learn' else 'ignoring'} columns"):
            model.partial_fit([{"a": 1.0, "d": 3.0}, {"a": 2.0, "d": 1.0}], ["p", "q"])
        assert model.feature_names_in_.tolist()[:3] == names
        assert float(model.statistics_.n.sum()) == 13
        with pytest.raises(DataError, match="the table has no column 'b'"):  # a typo is not silent in a table
            model.predict([{"a": 1.0}])
    model = NaiveBayes(new_columns="error", calibrate=False).fit(rows, labels)
    for learn in (lambda row: model.learn_one(row, "p"), lambda row: model.partial_fit([row], ["p"])):
        with pytest.raises(DataError, match="column 'c' is new; set new_columns to 'learn' or 'ignore'"):
            learn({"a": 1.0, "b": "x", "c": 1.0})
        with pytest.raises(DataError, match="the table has no column 'b'"):
            learn({"a": 1.0})
    with pytest.raises(DataError, match="new_columns is 'maybe'; use 'learn', 'ignore' or 'error'"):
        NaiveBayes(new_columns="maybe").fit(rows, labels)


def test_families_of_columns_that_have_not_come_yet_can_be_declared():
    model = NaiveBayes({"late": "poisson"}, calibrate=False)
    model.learn_one({"a": 1.0}, "p")
    model.learn_one({"a": 2.0, "late": 3}, "q")
    assert model.schema_["late"].family == "Poisson"


@pytest.mark.parametrize(
    ("x", "y", "error"),
    [
        ("win cash", None, "Input y contains NaN"),
        ("win cash", 3, "y holds labels such as 3"),
        (3, "spam", "document 0 is int; give str or UTF-8 bytes."),
        (b"caf\xe9", "spam", "byte 3 is not UTF-8"),
        ("\ud800", "spam", "half a surrogate pair"),
    ],
)
def test_a_wrong_text_changes_nothing(x, y, error):
    texts, labels = make_texts(60)
    model = TextClassifier().fit(texts, labels)
    model.learn_one("win", "spam")
    before = record_of(model)
    model.predict_one("win")
    with pytest.raises((DataError, KindError), match=error):
        model.learn_one(x, y)
    assert record_of(model) == before


@pytest.mark.parametrize(
    ("x", "error"),
    [
        ({"size": "large"}, "column 'size' holds 'large'; this column is numbers."),
        ({"size": float("inf")}, "is infinity"),
        ({"size": 2**60 + 1}, "which a float cannot hold exactly"),
        ({"colour": 3}, "has learned labels such as 'blue'"),
        ({"colour": "\ud800"}, "lone surrogate"),
        ("size", "x is a str; give one row as a dict of column to cell."),
    ],
)
def test_a_wrong_row_changes_nothing(x, error):
    rows, labels = make_rows(60, with_texts=False)
    model = NaiveBayes(calibrate=False).fit([{"count": None, **row} for row in rows], labels)
    model.learn_one(rows[0], labels[0])
    before = record_of(model)
    for use in (lambda: model.learn_one(x, "big"), lambda: model.predict_one(x)):
        with pytest.raises((DataError, KindError), match=error):
            use()
    assert record_of(model) == before


@pytest.mark.parametrize("calibrate", [False, "loo"])
def test_what_was_not_learned_is_not_forgotten(calibrate):
    rows, labels = make_rows(60)
    model = NaiveBayes(calibrate=calibrate).fit([{"count": None, **row} for row in rows], labels)
    model.learn_one(rows[0], labels[0])
    before = record_of(model)
    with pytest.raises(NotLearnedError, match="was not learned in class 'big'"):
        model.forget_one({**rows[0], "colour": "mauve"}, "big")
    with pytest.raises(NotLearnedError, match="no row of class 'huge' was ever learned"):
        model.forget_one(rows[0], "huge")
    assert record_of(model) == before
    model.forget_one(rows[0], labels[0])
    model.forget_one(rows[0], labels[0])
    if calibrate:  # the rows that are kept show that it was learned twice, and not three times
        with pytest.raises(NotLearnedError, match="was not learned in class"):
            model.forget_one(rows[0], labels[0])


def test_a_decayed_model_learns_single_rows_and_refuses_to_forget_them():
    texts, labels = make_texts(60)
    stream, table = (TextClassifier(calibrate=False).fit(texts, labels).decay(0.5) for _ in range(2))
    stream.learn_one("win cash", "spam")
    table.partial_fit(["win cash"], ["spam"])
    assert record_of(stream) == record_of(table)
    assert_same_answers(stream, table, texts[:10])
    with pytest.raises(StaleModelError, match="the model has decayed"):
        stream.forget_one("win cash", "spam")


# -- the state -----------------------------------------------------------------------------------------------------


def test_parameters_that_are_set_in_the_middle_hold_from_then_on():
    texts, labels = make_texts(60)
    model = TextClassifier(calibrate=False).fit(texts[:30], labels[:30])
    model.learn_one(texts[30], labels[30])
    model.set_params(alpha=0.1)
    model.learn_one(texts[31], labels[31])
    assert_same_answers(model, TextClassifier(calibrate=False, alpha=0.1).fit(texts[:32], labels[:32]), texts)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_has_all_rows_and_goes_its_own_way(duplicate):
    texts, labels = make_texts(60)
    model = TextClassifier().fit(texts[:58], labels[:58])
    model.learn_one(texts[58], labels[58])
    twin = duplicate(model)
    model.learn_one(texts[59], labels[59])
    assert float(twin.class_count_.sum()) == 59
    assert float(model.class_count_.sum()) == 60


def test_threads_see_a_model_before_a_row_or_after_it():
    texts, labels = make_texts(400)
    model = TextClassifier(calibrate=False).fit(texts[:100], labels[:100])
    failures, done = [], threading.Event()

    def read():
        while not done.is_set():
            statistics = model.statistics_
            if statistics.find_fault() is not None or statistics.n.tolist() != statistics.parts[0].n.tolist():
                failures.append("a record that is not of whole rows")
            if not np.isclose(sum(model.predict_proba_one(texts[0]).values()), 1):
                failures.append("an answer")

    def learn(part):
        for text, label in zip(texts[part], labels[part], strict=True):
            model.learn_one(text, label)

    readers = [threading.Thread(target=read) for _ in range(2)]
    learners = [threading.Thread(target=learn, args=(slice(100 + 100 * k, 200 + 100 * k),)) for k in range(3)]
    for thread in (*readers, *learners):
        thread.start()
    for thread in learners:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert not failures
    assert record_of(model) == record_of(TextClassifier(calibrate=False).fit(texts, labels))


# -- every classifier ----------------------------------------------------------------------------------------------


DROP_INS = [getattr(naive_bayes, name) for name in naive_bayes.__all__]


@pytest.mark.parametrize("kind", DROP_INS)
def test_drop_ins_learn_dicts(kind):
    rng = np.random.default_rng(0)
    x, y = rng.integers(1, 5, (40, 3)), rng.integers(0, 3, 40)
    model = kind()
    for row, label in zip(x.tolist(), y.tolist(), strict=True):
        model.learn_one(dict(zip("abc", row, strict=True)), label)
    whole = kind().fit(x, y)
    assert hash_content(model.statistics_.parts) == hash_content(whole.statistics_.parts)
    answer = model.predict_proba_one(dict(zip("cba", x[0].tolist()[::-1], strict=True)))  # by name, in any order
    assert list(answer.values()) == pytest.approx(whole.predict_proba(x[:1])[0].tolist())
    assert model.predict_one(dict(zip("abc", x[0].tolist(), strict=True))) == whole.predict(x[:1])[0]
    model.forget_one(dict(zip("abc", x[0].tolist(), strict=True)), int(y[0]))
    left = kind().fit(x[1:], y[1:])
    assert list(model.predict_proba_one(dict(zip("abc", x[0].tolist(), strict=True))).values()) == pytest.approx(
        left.predict_proba(x[:1])[0].tolist()
    )
    if kind is not naive_bayes.DocumentAverageNB:  # it sums shares of documents, which are rounded
        assert hash_content(model.statistics_.parts) == hash_content(left.statistics_.parts)
    with pytest.raises(DataError, match="the row lacks column 'a'; the model knows"):
        model.learn_one({"b": 1, "c": 2}, 1)
    with pytest.raises(KindError, match="x is a list; give one row as a dict"):
        model.predict_one([1, 2, 3])


def test_the_inbox_as_a_stream_is_the_inbox():
    rows, labels = inbox()
    model = NaiveBayes({"sender": "categorical", "text": "text"}, calibrate=False)
    right = 0
    for row, label in zip(rows, labels, strict=True):
        right += model.predict_one(row) == label
        model.learn_one(row, label)
    assert right > 0.6 * len(rows)
    whole = NaiveBayes({"sender": "categorical", "text": "text"}, calibrate=False).fit(rows, labels)
    assert hash_content(model.statistics_) == hash_content(whole.statistics_)
