"""After n rows no answer is surer than n rows can make it, and no class is more probable than its rows allow."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import priory as pr
from priory.calibration.corrections import Succession, Tempering
from priory.errors import PrioryWarning

WORDS = {
    "ham": ["lunch", "noon", "meeting", "report", "thanks", "monday"],
    "spam": ["cash", "win", "prize", "free", "pills", "offer"],
}
COMMON = ["the", "at", "now", "you", "for", "hello"]


def make_texts(n, seed=0, shared=2):
    """Texts of three words of their class and some that both have, in turns."""
    rng = np.random.default_rng(seed)
    labels = [["ham", "spam"][i % 2] for i in range(n)]
    return [" ".join([*rng.choice(WORDS[y], 3), *rng.choice(COMMON, shared)]) for y in labels], labels


def make_rows(n, seed=0):
    """Two classes that are far apart."""
    rng = np.random.default_rng(seed)
    labels = [["no", "yes"][i % 2] for i in range(n)]
    rows = [
        {"x": float(rng.normal(50.0 * (y == "yes"))), "k": int(rng.poisson(1 + 40 * (y == "yes"))), "c": y + "!"}
        for y in labels
    ]
    return rows, labels


MAKERS = [(pr.TextClassifier, make_texts), (pr.NaiveBayes, make_rows)]


def learn_stream(make, rows, labels):
    model = make()
    for row, label in zip(rows, labels, strict=True):
        model.learn_one(row, label)
    return model


@pytest.mark.parametrize(("make", "make_data"), MAKERS)
@given(n=st.integers(2, 45).map(lambda half: 2 * half), seed=st.integers(0, 1000))
def test_after_n_rows_no_odds_are_beyond_n_plus_one_in_batch_stream_and_corrections(make, make_data, n, seed):
    rows, labels = make_data(n, seed)
    asked = make_data(10, seed + 1)[0]
    batch = make().fit(rows, labels)
    p = batch.predict_proba(asked)
    assert p.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    assert (p.max(axis=1) <= (n + 1) / (n + 2) + 1e-12).all()  # odds n + 1 : 1
    assert (batch.classes_[p.argmax(axis=1)] == batch.predict(asked)).all()
    stream = learn_stream(make, rows, labels).refresh()
    one = np.array([[stream.predict_proba_one(x)[c] for c in batch.classes_.tolist()] for x in asked])
    assert one == pytest.approx(p, abs=1e-9)
    assert stream.predict_proba(asked) == pytest.approx(p, abs=1e-9)


@pytest.mark.parametrize(("make", "make_data"), MAKERS)
def test_the_limit_is_reached_where_all_that_was_learned_agrees(make, make_data):
    rows, labels = make_data(40)
    p = make().fit(rows, labels).predict_proba(rows)
    assert p.max() == pytest.approx(41 / 42, abs=1e-3)
    assert make(calibrate=False).fit(rows, labels).predict_proba(rows).max() > 0.999


@pytest.mark.parametrize(("make", "make_data"), MAKERS)
def test_a_model_that_is_to_be_naive_bayes_alone_is_not_limited(make, make_data):
    rows, labels = make_data(3)  # too few for corrections
    model = make().fit(rows, labels)
    plain = model.without_corrections()
    joint = model.predict_joint_log_proba(rows)
    book = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    assert plain.predict_proba(rows) == pytest.approx(book, rel=1e-9)
    one = plain.predict_proba_one(rows[0])
    assert [one[c] for c in plain.classes_.tolist()] == pytest.approx(book[0], rel=1e-9)
    assert model.predict_proba(rows) == pytest.approx(limit_by_hand(3, model.class_prior_, book), rel=1e-9)


def limit_by_hand(n, base, answers):
    limited = []
    for p in answers:
        c = int(np.argmax(p))
        least = [p[d] if d == c else max(p[d], base[d] / (1 - base[c]) / (n + 1)) for d in range(len(p))]
        limited.append(np.array(least) / sum(least))
    return np.array(limited)


@given(counts=st.lists(st.integers(1, 1000), min_size=2, max_size=5), seed=st.integers(0, 99))
def test_odds_are_within_the_limit_the_likeliest_class_stays_and_so_does_the_base_rate(counts, seed):
    n, base = sum(counts), np.array(counts) / sum(counts)
    limit = Succession(n, np.log(counts))
    assert np.exp(limit.limit(np.log(base))) == pytest.approx(base, rel=1e-12)
    p = np.random.default_rng(seed).dirichlet(np.full(len(base), 0.05), 5)
    with np.errstate(divide="ignore"):
        found = np.exp(limit.limit(np.log(p)))
    assert found == pytest.approx(limit_by_hand(n, base, p), rel=1e-9)
    assert (found.argmax(axis=1) == p.argmax(axis=1)).all()
    assert (found.max(axis=1) <= (n + 1) / (n + 2) + 1e-12).all()


@given(st.lists(st.sampled_from("aab"), min_size=3, max_size=60), st.integers(0, 9))
def test_rare_classes_too_have_odds_within_the_limit(labels, seed):
    labels = [*labels, "b", "c"]
    rng = np.random.default_rng(seed)
    rows = [{"x": float(rng.normal(100 * "abc".index(y))), "k": y * 3} for y in labels]
    p = pr.NaiveBayes().fit(rows, labels).predict_proba(rows)
    assert (p.max(axis=1) <= (len(labels) + 1) / (len(labels) + 2) + 1e-12).all()


def test_declared_priors_weights_and_decay_count():
    rows, labels = make_rows(20)
    certain = pr.NaiveBayes(class_prior={"no": 1.0, "yes": 0.0}).fit(rows, labels)
    assert certain.predict_proba(rows)[:, 1].max() == 0.0
    assert certain.predict_proba_one(rows[1]) == {"no": 1.0, "yes": 0.0}
    declared = pr.NaiveBayes(class_prior={"no": 0.9, "yes": 0.1}).fit(rows, labels)
    even = pr.NaiveBayes().fit(rows, labels).predict_proba(rows)[1]  # odds times 1 : 9
    expected = even[1] / (even[1] + 9 * even[0])
    assert 0.5 < expected <= 21 / (21 + 9)
    assert declared.predict_proba(rows)[1, 1] == pytest.approx(expected, abs=1e-6)
    assert declared.predict_proba_one(rows[1])["yes"] == pytest.approx(expected, abs=1e-6)
    doubled = pr.NaiveBayes().fit(rows, labels, sample_weight=np.full(20, 2.0))
    assert 21 / 22 < doubled.predict_proba(rows).max() <= 41 / 42 + 1e-12
    faded = pr.NaiveBayes().fit(rows, labels).decay(0.5)
    assert 0.9 < faded.predict_proba(rows).max() <= 11 / 12
    assert 0.9 < max(faded.predict_proba_one(rows[0]).values()) <= 11 / 12


@pytest.mark.parametrize(("make", "make_data"), MAKERS)
@pytest.mark.parametrize("n", [6, 30, 120])
@pytest.mark.parametrize("options", [{}, {"class_prior": "uniform"}, {"class_prior": [0.2, 0.8]}])
def test_the_limit_is_a_line_of_the_ledger_and_no_line_is_longer_than_the_record_can_bear(make, make_data, n, options):
    rows, labels = make_data(n + 1)
    model = make(**options).fit(rows, labels)
    log_p = model.predict_log_proba(rows[:8])
    longest = np.log(n + 2)
    for ledger, answer in zip(model.explain(rows[:8]), log_p, strict=True):
        classes = model.classes_.tolist()
        named = [line.name for line in ledger.lines if line.name.startswith("limit")]
        assert named == [f"limit of {n + 1} rows"] or (named == [] and make is pr.TextClassifier)
        assert ledger.log_odds(classes[0], classes[1]) == pytest.approx(answer[0] - answer[1], abs=1e-9)
        assert max(map(abs, ledger.weights()[1:])) <= longest + 1e-9


def test_impossible_values_make_finite_lines():
    rows = [{"c": "a"}] * 5 + [{"c": "b"}] * 5
    model = pr.NaiveBayes(estimate="ml").fit(rows, ["x"] * 5 + ["y"] * 5)
    [ledger] = model.explain([{"c": "a"}])
    assert ledger.log_odds("x", "y") == pytest.approx(np.log(11), abs=1e-9)
    assert ledger.weights("x", "y")[1] == pytest.approx(np.log(11), abs=0.1)


def test_rows_left_out_are_judged_by_what_answers_without_them():
    rows, labels = make_rows(20)
    scores = pr.NaiveBayes().fit(rows, labels).evaluate(rows, labels, folds=10)
    assert 0.85 < np.exp(scores.log_probabilities).max() <= 19 / 20 + 1e-12  # odds 19 : 1 after 18 rows


@pytest.mark.onnx
def test_the_graph_of_a_young_model_answers_as_it_does():
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    x = np.random.default_rng(0).normal(size=(3, 2)) + 9 * (np.arange(3) % 2)[:, None]  # too few for corrections
    for prior in ("estimated", [0.9, 0.1], [1.0, 0.0]):
        model = pr.NaiveBayes("gaussian", class_prior=prior).fit(x, np.arange(3) % 2)
        session = runtime.InferenceSession(pr.to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
        assert session.run(["probabilities"], {"X": x})[0] == pytest.approx(model.predict_proba(x), abs=1e-9)


# -- the weight of the class prior -------------------------------------------------------------------------------------


def make_mails(n, seed=0):
    """Long texts: common words are common in both classes, and a third is of the class."""
    rng = np.random.default_rng(seed)
    often = 1 / np.arange(1, 501)
    labels = [["ham", "spam"][i % 2] for i in range(n)]
    mails = []
    for label in labels:
        words = rng.choice(500, rng.integers(20, 100), p=often / often.sum())
        mails.append(" ".join(f"{label if rng.random() < 0.3 else 'word'}{k}" for k in words))
    return mails, labels


@pytest.mark.parametrize("refine", ["auto", False])
@pytest.mark.parametrize("way", ["fit", "learn_one", "partial_fit", "refresh"])
def test_a_mistyped_label_is_answered_no_better_than_its_one_row_allows(refine, way):
    mails, labels = make_mails(400)
    slip, asked = "something else entirely", ["hello", "spam0 spam1 spam2 spam3"]
    model = pr.TextClassifier(refine=refine).fit(mails, labels)
    before = model.predict_proba(asked)
    if way == "fit":
        with pytest.warns(PrioryWarning, match="sapm"):  # fit names similar labels
            model.fit([*mails, slip], [*labels, "sapm"])
    elif way == "learn_one":
        model.learn_one(slip, "sapm")
    else:
        model.partial_fit([slip], ["sapm"])
    if way == "refresh":
        model.refresh()
    assert model.corrections_.tempering.weights[0] == pytest.approx(1.0)
    p = model.predict_proba(asked)
    assert p[:, 1].max() < 2 / 401  # sapm
    assert p[:, [0, 2]] == pytest.approx(before, abs=0.01)


def test_rare_classes_keep_the_prior_that_their_rows_give_them():
    mails, labels = make_mails(400)
    for rows in (2, 3, 5):
        model = pr.TextClassifier(refine=False).fit([*mails, *mails[:rows]], [*labels, *["rare"] * rows])
        assert model.corrections_.tempering.weights[0] > 0.5
        assert model.predict_proba(["hello"])[0, 1] < 0.05


@pytest.mark.parametrize("repeat", [1, 3])
def test_the_prior_of_equally_common_classes_has_weight_one(repeat):
    texts, labels = make_texts(120)
    assert pr.TextClassifier().fit(texts * repeat, labels * repeat).corrections_.tempering.weights[0] == 1.0
    rows, classes = make_rows(120)
    assert pr.NaiveBayes().fit(rows, classes).corrections_.tempering.weights[0] == 1.0


def test_rows_that_come_one_by_one_never_make_the_weight_of_the_prior_negative():
    texts, labels = make_texts(60)
    order = [*range(0, 60, 2), *range(1, 60, 2)]  # all of one class, then all of the other
    model = pr.TextClassifier(refresh_after=1e9).fit(texts[:60], labels[:60])
    weights = []
    for i in order * 5:
        model.learn_one(texts[i], labels[order[-1]])
        weights.append(model.corrections_.tempering.weights[0])
    assert min(weights) >= 0
    assert any(a != b for a, b in pairwise(weights))


def test_a_file_with_a_negative_weight_of_the_prior_is_refused():
    assert Tempering(np.array([-0.1, 1.0]), np.zeros(2), np.ones(4)).find_fault() == "a weight is negative"
    assert Tempering(np.array([0.0, 1.0]), np.zeros(2), np.ones(4)).find_fault() is None
