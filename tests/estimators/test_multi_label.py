"""Several labels: any form of y, laws of the record, thresholds and hierarchies."""

import numpy as np
import pytest
import scipy.sparse

import priory
from priory import MultiLabelClassifier, NaiveBayes, TextClassifier
from priory.errors import DataError, NotLearnedError
from priory.evaluation.label_scores import LabelScores, choose_f1_threshold

WORDS = {"food": ["lunch", "soup", "bread"], "money": ["cash", "bank", "pay"], "home": ["roof", "door", "garden"]}


def make_rows(rows, seed):
    rng = np.random.default_rng(seed)
    labels = [sorted(label for label in WORDS if rng.random() < 0.4) for _ in range(rows)]
    noise = [f"w{k}" for k in range(30)]
    texts = [" ".join([*(rng.choice(WORDS[label]) for label in held), *rng.choice(noise, 4)]) for held in labels]
    return texts, labels


def mark(labels):
    return np.array([[label in held for label in sorted(WORDS)] for held in labels]).astype(int)


@pytest.fixture(scope="module")
def model():
    return MultiLabelClassifier(TextClassifier(refine=False)).fit(*make_rows(300, 0))


def test_labels_are_found(model):
    texts, labels = make_rows(200, 1)
    assert model.classes_.tolist() == sorted(WORDS)
    assert (model.predict(texts) == mark(labels)).mean() > 0.95
    assert model.list_labels(["soup cash w1 w2 w3 w4"]) == [["food", "money"]]
    assert model.score_labels(texts, labels).micro_f1 > 0.9


def test_every_form_of_y_gives_the_same_record(model):
    texts, labels = make_rows(300, 0)
    for y in (
        [set(held) for held in labels],
        [";".join(held) for held in labels],
        [tuple(held)[::-1] for held in labels],
    ):
        again = MultiLabelClassifier(TextClassifier(refine=False)).fit(texts, y)
        assert np.array_equal(again.predict_proba(texts[:20]), model.predict_proba(texts[:20]))
    for matrix in (mark(labels), scipy.sparse.csr_array(mark(labels))):
        again = MultiLabelClassifier(TextClassifier(refine=False)).fit(texts, matrix)
        assert again.classes_.tolist() == ["0", "1", "2"]
        assert again.predict_proba(texts[:20]) == pytest.approx(model.predict_proba(texts[:20]))


def test_a_label_answers_as_its_own_model(model):
    texts, labels = make_rows(300, 0)
    alone = TextClassifier(refine=False).fit(texts, mark(labels)[:, 1])
    assert model.predict_proba(texts[:30])[:, 1] == pytest.approx(alone.predict_proba(texts[:30])[:, 1], abs=0.02)


def test_forget_and_merge_are_exact(tmp_path):
    texts, labels = make_rows(90, 2)
    whole = MultiLabelClassifier().fit(texts, labels)
    halves = [MultiLabelClassifier().fit(texts[part], labels[part]) for part in (slice(40), slice(40, None))]
    learned = MultiLabelClassifier().fit(texts[:40], labels[:40]).partial_fit(texts[40:], labels[40:])
    more = MultiLabelClassifier().fit(texts, labels).partial_fit(["extra words"], [["new", "food"]])
    files = []
    for k, each in enumerate([whole, halves[0] + halves[1], learned, more.forget(["extra words"], [["new", "food"]])]):
        priory.save(each.estimator_, tmp_path / f"{k}.priory")
        files.append((tmp_path / f"{k}.priory").read_bytes())
    assert len(set(files)) == 1
    view = MultiLabelClassifier.of(priory.load(tmp_path / "0.priory"))
    assert np.array_equal(view.predict_proba(texts[:5]), whole.predict_proba(texts[:5]))
    with pytest.raises(NotLearnedError):
        whole.forget(["never seen"], [["food"]])


@pytest.mark.parametrize("seed", range(3))
def test_random_histories_leave_what_was_never_forgotten(seed, tmp_path):
    rng, (texts, labels) = np.random.default_rng(seed), make_rows(60, seed)
    order, gone = rng.permutation(60), rng.choice(60, 20, replace=False)
    model = MultiLabelClassifier()
    for part in np.array_split(order, 4):
        model.partial_fit([texts[k] for k in part], [labels[k] for k in part])
    for part in np.array_split(gone, 3):
        model.forget([texts[k] for k in part], [labels[k] for k in part])
    left = np.setdiff1d(order, gone)
    fresh = MultiLabelClassifier().fit([texts[k] for k in left], [labels[k] for k in left])
    for name, each in {"a": model, "b": fresh}.items():
        priory.save(each.estimator_, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_left_out_scores_are_those_of_new_rows(model):
    inside, outside = model.evaluate(), model.score_labels(*make_rows(600, 3))
    assert inside.hamming == pytest.approx(outside.hamming, abs=0.03)
    assert inside.log_loss == pytest.approx(outside.log_loss, abs=0.05)
    assert "micro F1" in str(inside)


def test_thresholds_by_cost_and_f1(model):
    texts, _ = make_rows(100, 4)
    careful, eager, f1 = (
        MultiLabelClassifier.of(model.estimator_, threshold=threshold)
        for threshold in ({"fp": 9, "fn": 1}, {"fp": 1, "fn": 9}, "f1")
    )
    assert careful.thresholds_[0] == pytest.approx(0.9)
    assert careful.predict(texts).sum() < eager.predict(texts).sum()
    assert f1.evaluate().macro_f1 >= model.evaluate().macro_f1
    assert choose_f1_threshold(np.zeros(3), np.ones(3)) == 0.5


def test_a_parent_is_at_least_as_probable_as_its_children():
    texts, labels = make_rows(200, 5)
    paths = [[f"all/{label}/x" if label == "food" else label for label in held] for held in labels]
    model = MultiLabelClassifier(TextClassifier(refine=False), hierarchy=True).fit(texts, paths)
    assert model.classes_.tolist() == ["all", "all/food", "all/food/x", "home", "money"]
    p = model.predict_proba(texts[:50])
    assert (np.diff(p[:, :3], axis=1) <= 1e-12).all()
    assert model.evaluate().micro_f1 > 0.9


def test_tables_have_labels_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = (X[:, :2] > 0).astype(int)
    assert (MultiLabelClassifier(NaiveBayes()).fit(X, y).predict(X) == y).mean() > 0.9


def test_scores_are_scikit_learns():
    from sklearn.metrics import accuracy_score, f1_score, hamming_loss

    rng = np.random.default_rng(0)
    truth, p = rng.integers(0, 2, (50, 4)), rng.random((50, 4))
    given, scores = p >= 0.5, LabelScores.of(truth, p, np.full(4, 0.5), list("abcd"))
    assert scores.hamming == pytest.approx(hamming_loss(truth, given))
    assert scores.micro_f1 == pytest.approx(f1_score(truth, given, average="micro"))
    assert scores.macro_f1 == pytest.approx(f1_score(truth, given, average="macro"))
    assert scores.subset_accuracy == pytest.approx(accuracy_score(truth, given))


def test_the_model_of_a_label_explains_it(model):
    own = model.model_of("food")
    assert own.classes_.tolist() == [0, 1]
    texts = ["soup cash w1", "roof w2"]
    assert own.predict_proba(texts)[:, 1] == pytest.approx(model.predict_proba(texts)[:, 0])
    assert own.explain(texts[:1])[0].probabilities()[1] == pytest.approx(own.predict_proba(texts[:1])[0, 1], abs=1e-6)
    with pytest.raises(DataError, match="no label 'foot'"):
        model.model_of("foot")


@pytest.mark.parametrize(
    ("y", "message"),
    [([["a;b"], []], "contains ';'"), ([3, 4], "a list of labels"), (np.full((2, 2), 5), "other values than 0 and 1")],
)
def test_impossible_labels_are_one_line(y, message):
    with pytest.raises(DataError, match=message):
        MultiLabelClassifier().fit(["one", "two"], y)


def test_a_label_of_all_rows_and_rows_without_any():
    model = MultiLabelClassifier(TextClassifier(refine=False)).fit(
        ["a cat", "a dog", "no"] * 4, [["x"], ["x", "y"], ["x"]] * 4
    )
    p = model.predict_proba(["a cat", "", "unheard"])
    assert np.isfinite(p).all()
    assert (p[:, 0] > 0.5).all()
    assert MultiLabelClassifier().fit(["a", "b"], [[], []]).predict_proba(["a"]).shape == (1, 0)
