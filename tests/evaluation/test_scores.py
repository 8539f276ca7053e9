"""Scores: the numbers of scikit-learn, intervals that cover what they should, and the base rate next to them."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn import metrics
from sklearn.datasets import load_wine

from priory import NaiveBayes, Scores
from priory.errors import DataError
from priory.evaluation.intervals import Interval, mean_interval, proportion_interval, roc_area_interval


def drawn(rows, classes, seed=0, weighted=False):
    """Labels, probabilities that know something of them, and weights."""
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(classes), rng.integers(0, classes, rows - classes)]
    p = softmax(rng.normal(size=(rows, classes)) + 1.5 * np.eye(classes)[y], axis=1)
    return y, p, rng.exponential(size=rows) if weighted else None


CASES = [(k, weighted) for k in (2, 3, 7) for weighted in (False, True)]


@pytest.mark.parametrize(("classes", "weighted"), CASES)
def test_the_numbers_are_those_of_scikit_learn(classes, weighted):
    y, p, w = drawn(300, classes, weighted=weighted)
    scores, answer = Scores.of(y, p, range(classes), w), p.argmax(axis=1)
    assert scores.confusion == pytest.approx(metrics.confusion_matrix(y, answer, sample_weight=w), abs=1e-9)
    assert scores.accuracy.value == pytest.approx(metrics.accuracy_score(y, answer, sample_weight=w), abs=1e-12)
    assert scores.log_loss.value == pytest.approx(metrics.log_loss(y, p, sample_weight=w), abs=1e-12)
    theirs = metrics.brier_score_loss(y, p, sample_weight=w, labels=range(classes))
    assert scores.brier.value == pytest.approx(theirs, abs=1e-12)
    each = metrics.precision_recall_fscore_support(y, answer, sample_weight=w)
    for c, one in enumerate(scores.per_class):
        assert [one.precision.value, one.recall.value, one.f1.value, one.rows] == pytest.approx(
            [s[c] for s in each], abs=1e-12
        )
        area = metrics.roc_auc_score(y == c, p[:, c], sample_weight=w)
        assert one.roc_area.value == pytest.approx(area, abs=1e-12)
        precision = metrics.average_precision_score(y == c, p[:, c], sample_weight=w)
        assert one.average_precision.value == pytest.approx(precision, abs=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_curves_are_those_of_scikit_learn(classes):
    y, p, w = drawn(200, classes, weighted=True)
    p = np.round(p, 1) + 0.05  # with ties
    p /= p.sum(axis=1, keepdims=True)
    scores = Scores.of(y, p, range(classes), w)
    x, above, thresholds = metrics.roc_curve(
        y == 1, scores.log_probabilities[:, 1], sample_weight=w, drop_intermediate=False
    )
    curve = scores.roc(1)
    assert curve.x == pytest.approx(x)
    assert curve.y == pytest.approx(above)
    assert curve.thresholds[1:] == pytest.approx(np.exp(thresholds[1:]))
    precision, recall, _ = metrics.precision_recall_curve(y == 1, scores.log_probabilities[:, 1], sample_weight=w)
    curve = scores.precision_recall(1)
    assert curve.x[::-1] == pytest.approx(recall)
    assert curve.y[::-1] == pytest.approx(precision)


@given(st.integers(2, 5), st.integers(6, 60), st.integers(0, 1000))
def test_a_weight_of_two_is_the_row_twice(classes, rows, seed):
    y, p, _ = drawn(rows, classes, seed)
    twice = Scores.of(np.r_[y, y], np.r_[p, p], range(classes))
    heavy = Scores.of(y, p, range(classes), np.full(rows, 2.0))
    assert heavy.confusion == pytest.approx(twice.confusion)
    for name in ("accuracy", "log_loss", "brier", "calibration_error"):
        value, low, high = getattr(heavy, name)
        assert value == pytest.approx(getattr(twice, name).value)
        assert low <= getattr(twice, name).low + 1e-12  # but only as many rows were seen as there are
        assert high >= getattr(twice, name).high - 1e-12


@given(st.integers(2, 5), st.integers(6, 60), st.integers(0, 1000))
def test_every_value_lies_in_its_interval(classes, rows, seed):
    y, p, w = drawn(rows, classes, seed, weighted=True)
    scores = Scores.of(y, p, range(classes), w)
    each = [scores.accuracy, scores.log_loss, scores.brier, scores.calibration_error, scores.expected_error]
    each += [score for one in scores.per_class for score in one if isinstance(score, Interval)]
    for value, low, high in each:
        assert low <= value <= high or math.isnan(value)


def covered(truth, intervals):
    return np.mean([i.low <= truth <= i.high for i in intervals])


@pytest.mark.slow
def test_intervals_cover_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(0)
    assert covered(0.9, [proportion_interval(k, 50) for k in rng.binomial(50, 0.9, 1000)]) > 0.92
    assert covered(1.0, [mean_interval(rng.exponential(size=200), np.ones(200)) for _ in range(1000)]) > 0.92
    truth = 0.8554  # P(N(1.5, 1) > N(0, 1)), the area under the ROC curve
    y = np.arange(60) % 2
    areas = [metrics.roc_auc_score(y, rng.normal(size=60) + 1.5 * y) for _ in range(400)]
    assert covered(truth, [roc_area_interval(a, 30, 30) for a in areas]) > 0.92


@pytest.mark.parametrize("squeeze", [1.0, 0.8, 0.3])
def test_the_calibration_error_is_covered_and_a_perfect_model_is_not_accused(squeeze):
    rng = np.random.default_rng(1)
    found = []
    for _ in range(300):
        p = 0.5 + rng.beta(4, 1, 400) / 2
        right = rng.random(400) < 0.5 + squeeze * (p - 0.5)
        found.append(Scores.of(np.where(right, 0, 1), np.column_stack([p, 1 - p]), [0, 1]).calibration_error)
    truth = (1 - squeeze) * 0.4  # E (p - 1/2) = E beta / 2
    assert covered(truth, found) > 0.9


def test_the_expected_calibration_error_counted_by_hand():
    p = [[0.6, 0.4], [0.6, 0.4], [0.9, 0.1], [0.9, 0.1]]
    scores = Scores.of(["a", "b", "a", "a"], p, ["a", "b"])
    assert [(b.rows, b.certainty, b.accuracy.value) for b in scores.reliability()] == [
        (2.0, pytest.approx(0.6), 0.5),
        (2.0, pytest.approx(0.9), 1.0),
    ]
    assert scores.calibration_error.value == pytest.approx(0.5 * 0.1 + 0.5 * 0.1)


def test_the_base_rate_is_the_commonest_class_and_the_entropy():
    y = ["dislike"] * 700 + ["like"] * 300  # a thousand documents, as in the lecture
    scores = Scores.of(y, np.full((1000, 2), 0.5), ["dislike", "like"])
    label, accuracy, log_loss, brier = scores.base
    assert (label, accuracy, brier) == ("dislike", 0.7, pytest.approx(0.21))
    assert log_loss == pytest.approx(-0.7 * math.log(0.7) - 0.3 * math.log(0.3))


def test_the_verdict_says_whether_the_base_rate_is_beaten():
    rng = np.random.default_rng(0)
    y = (rng.random(2000) < 0.3).astype(int)
    base = "the base rate (always answering 0: 70.0% right)".replace("70.0", f"{100 * (1 - y.mean()):.1f}")

    def verdict(p):
        return Scores.of(y, np.column_stack([1 - p, p]), [0, 1]).verdict

    good = np.where(y == 1, 0.8, 0.1)
    assert verdict(good) == f"Beats {base}, in accuracy and in log loss."
    sure = np.where(rng.random(2000) < 0.1, 1 - y, y) * 0.9999998 + 1e-7
    assert verdict(sure) == f"More accurate than {base}, but its probabilities are no better."
    shy = np.where(y == 1, 0.45, 0.2)
    assert verdict(shy) == f"No more accurate than {base}, but its probabilities are better."
    blind = rng.random(2000) * 0.2 + 0.2
    assert verdict(blind) == f"Does not beat {base}: it may not be worth using."


def test_a_model_of_noise_does_not_beat_the_base_rate_but_one_in_forty():
    rng = np.random.default_rng(0)
    beaten = 0
    for _ in range(200):
        y = rng.integers(0, 2, 100)
        p = np.clip(0.5 + rng.normal(size=100) * 0.05, 0.01, 0.99)
        beaten += Scores.of(y, np.column_stack([1 - p, p]), [0, 1]).gain["log_loss"].low > 0
    assert beaten <= 10


def test_logarithms_tell_apart_what_rounds_to_certainty():
    logs = np.array([[0.0, -800.0], [0.0, -900.0], [-1000.0, 0.0]])
    scores = Scores.of([1, 0, 1], logs, [0, 1], logs=True)
    assert scores.log_loss.value == pytest.approx(800 / 3)
    assert scores.roc(1).area.value == 1.0
    assert scores.worst()[0].label == 0


def test_the_truth_called_impossible_costs_everything_and_json_stays_json():
    scores = Scores.of(["a", "b"] * 3, [[1.0, 0.0]] * 6, ["a", "b"])
    assert scores.log_loss.value == math.inf
    assert "but" not in scores.verdict
    as_json = json.loads(json.dumps(scores.to_dict(), allow_nan=False))
    assert as_json["log_loss"] == {"value": None, "low": 0.0, "high": None}
    assert "inf" in str(scores)


def test_the_table_for_a_terminal():
    y, p, _ = drawn(40, 3)
    text = str(Scores.of(np.array(["x", "y", "z"])[y], p, ["x", "y", "z"]))
    assert text.splitlines()[:6] == [
        "40 rows            score   95 % interval  base rate",
        "accuracy           77.5%  62.5% to 87.7%      35.0%",
        "log loss           0.584  0.434 to 0.734      1.096",
        "Brier score        0.335  0.225 to 0.445      0.665",
        "calibration error  19.6%   0.0% to 28.9%",
        "",
    ]
    assert len({len(line) for line in text.splitlines()[-4:]}) == 1
    many, p, _ = drawn(200, 30)
    assert "worst 10 of 30 classes" in str(Scores.of(many, p, range(30)))


def test_labels_in_the_terminal_cannot_move_the_cursor():
    text = str(Scores.of(["a\x1b[31m", "b"] * 3, [[0.9, 0.1], [0.2, 0.8]] * 3, ["a\x1b[31m", "b"]))
    assert "a\\x1b[31m" in text
    assert "\x1b" not in text


def test_frame_of_the_scores():
    y, p, _ = drawn(40, 3)
    frame = Scores.of(y, p, range(3)).to_frame()
    assert list(frame.columns) == ["value", "low", "high", "base_rate"]
    assert frame.loc["accuracy", "base_rate"] == pytest.approx(np.bincount(y).max() / 40)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [[1.0, 0.0]], [0, 1]), "probabilities have shape (1, 2), but there are 2 labels and 2 classes; "
         "give a row for each label and a column for each class."),
        (([], np.empty((0, 2)), [0, 1]), "probabilities have shape (0, 2), but there are 0 labels and 2 classes; "
         "give a row for each label and a column for each class."),
        (([0], [[0.7, 0.7]], [0, 1]),
         "row 0 of the probabilities is [0.7, 0.7]; give numbers of at least 0 that sum to 1."),
        (([0], [[math.nan, 1]], [0, 1]),
         "row 0 of the probabilities is [nan, 1.0]; give numbers of at least 0 that sum to 1."),
        (([2], [[0.5, 0.5]], [0, 1]), "no class 2; the probabilities are for [0, 1]."),
    ],
)  # fmt: skip
def test_what_cannot_be_scored_is_refused(arguments, message):
    with pytest.raises(DataError) as error:
        Scores.of(*arguments)
    assert str(error.value) == message


TOO_FEW = {
    "two": (["a", "b"], "Too few rows to judge the model: 2 rows are scored, and at least 6 are needed."),
    "five": (list("aabba"), "Too few rows to judge the model: 5 rows are scored, and at least 6 are needed."),
    "apart": (list("abcdefg"), "Too few rows to judge the model: no two of the scored rows have the same class."),
}


@pytest.mark.parametrize(("labels", "message"), TOO_FEW.values(), ids=TOO_FEW)
def test_too_few_rows_are_said_and_not_scored(labels, message):
    classes = sorted(set(labels))
    certain = np.eye(len(classes))[[classes.index(label) for label in labels]]
    scores = Scores.of(labels, certain, classes)
    assert not scores.has_enough_rows
    assert scores.verdict == str(scores) == message
    assert (scores.log_loss.low, scores.log_loss.high) == (0.0, math.inf)
    assert not any(gain.low > 0 for gain in scores.gain.values())
    answer = json.loads(json.dumps(scores.to_dict(), allow_nan=False))
    assert (answer["verdict"], answer["enough_rows"]) == (message, False)
    for name in ("accuracy", "log_loss", "brier", "calibration_error", "gain", "expected_error", "per_class"):
        assert answer[name] is None


def test_six_rows_are_enough_unless_one_has_nearly_all_the_weight():
    arguments = (["a", "b"] * 3, np.tile(np.eye(2), (3, 1)), ["a", "b"])
    assert Scores.of(*arguments, np.full(6, 0.1)).has_enough_rows
    heavy = Scores.of(*arguments, [100, 1, 1, 1, 1, 1])
    assert heavy.verdict == "Too few rows to judge the model: 1.1 rows are scored, and at least 6 are needed."


@pytest.mark.parametrize("rows", [6, 20, 100])
def test_a_few_answers_that_are_certain_and_right_do_not_prove_a_loss_of_zero(rows):
    scores = Scores.of([0, 1] * (rows // 2), np.tile(np.eye(2), (rows // 2, 1)), [0, 1])
    assert scores.log_loss.value == scores.brier.value == 0.0
    assert scores.log_loss.high == pytest.approx(-math.log(scores.accuracy.low))
    assert scores.brier.high == pytest.approx((1 - scores.accuracy.low) ** 2)


def fit_and_score(data):
    model = NaiveBayes().fit(data.data, data.target)
    return Scores.of(data.target, model.leave_one_out(data.data, data.target), model.classes_, logs=True)


@pytest.mark.slow
def test_wine_beats_its_base_rate():
    scores = fit_and_score(load_wine())
    assert scores.verdict.startswith("Beats the base rate")
    assert scores.accuracy.low > 0.9
    assert scores.gain["log_loss"].low > 0.3


def test_the_base_rate_has_the_scores_that_can_be_compared():
    scores = Scores.of([0, 1, 1], [[0.8, 0.2], [0.3, 0.7], [0.4, 0.6]], [0, 1])
    assert scores.base_score("accuracy") == pytest.approx(2 / 3)
    assert scores.base_score("calibration_error") is None


def test_thousands_of_classes_are_scored_without_a_table_of_them_all():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 50, 500)
    p = np.full((500, 5_000), 1e-9)
    p[np.arange(500), np.where(rng.random(500) < 0.7, y, y + 1)] = 1
    scores = Scores.of(y, p / p.sum(axis=1, keepdims=True), range(5_000))
    assert "accuracy" in str(scores)
    assert scores.to_dict()["confusion"] is None
    assert "confusion" not in vars(scores)  # 200 MB
    few = Scores.of(y, p[:, :51] / p[:, :51].sum(axis=1, keepdims=True), range(51))
    assert few.accuracy == scores.accuracy
    ranked = sorted(few.per_class, key=lambda one: one.f1.value)
    assert [one.label for one in few.worst(3)] == [one.label for one in ranked[:3]]
    assert few.count_answers(np.array([3, 7])).tolist() == few.confusion[np.ix_([3, 7], [3, 7])].tolist()
