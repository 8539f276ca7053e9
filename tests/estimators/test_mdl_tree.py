"""MDL trees: scikit-learn's checks, the shortest of all prunings by brute force, and what noise and weights do."""

import math
from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from priory.bayes.description_length import label_bits
from priory.errors import DataError
from priory.estimators.mdl_tree import MDLTreeClassifier
from test_worked_examples import table
from worked_examples import WORKED_EXAMPLES


@parametrize_with_checks([MDLTreeClassifier()])
def test_scikit_learn_check(estimator, check):
    check(estimator)


def prunings(tree, node):
    """Every pruning below a node, as (asking nodes, answering nodes)."""
    yield (), (node,)
    if tree.children_left[node] >= 0:
        below = (list(prunings(tree, child)) for child in (tree.children_left[node], tree.children_right[node]))
        for (asks, answers), (more_asks, more_answers) in product(*below):
            yield (node, *asks, *more_asks), (*answers, *more_answers)


@pytest.mark.parametrize("seed", range(8))
def test_no_pruning_is_shorter(seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 3, size=(30, 2)).astype(float)  # nine different rows: at most nine leaves
    y = np.where(rng.random(30) < 0.8, x[:, 0] > 1, rng.integers(0, 2, 30)).astype(int)
    model = MDLTreeClassifier().fit(x, y)
    lengths = {
        (frozenset(asks), frozenset(answers)): model.ask_bits_[list(asks)].sum()
        + model.answer_bits_[list(answers)].sum()
        for asks, answers in prunings(model.tree_, 0)
    }
    kept = frozenset(model.nodes_[model.asks_[model.nodes_]]), frozenset(model.nodes_[~model.asks_[model.nodes_]])
    assert model.bits_.total == pytest.approx(min(lengths.values()))
    assert lengths[kept] == pytest.approx(model.bits_.total)


def test_bits_by_hand():
    """Two columns, one of them useless; twenty rows in two pure halves."""
    x = np.column_stack([np.arange(20.0), np.zeros(20)])
    model = MDLTreeClassifier().fit(x, [0] * 10 + [1] * 10)
    question = 1 + math.log2(2) + math.log2(19)  # it asks; which of 2 columns; which of 19 thresholds
    leaf = 1 + float(label_bits([10, 0]))  # it answers; that all of its rows have one class, and which
    assert model.bits_.hypothesis == pytest.approx(question + 2 * leaf)
    assert model.bits_.data == 0  # the rows are classified perfectly: there are no exceptions
    assert model.predict_proba([[0.0, 0.0]]) == pytest.approx(np.array([[10.5 / 11, 0.5 / 11]]))


def test_noise_grows_no_tree():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(400, 6)), rng.integers(0, 2, 400)
    model = MDLTreeClassifier().fit(x, y)
    assert model.get_n_leaves() == 1
    n = np.bincount(y)
    entropy = -(n / 400 * np.log2(n / 400)).sum()
    assert model.bits_.data == pytest.approx(400 * entropy)  # the labels, given the share of each class
    assert 0 < model.bits_.hypothesis < 8


def test_a_real_table_is_told_shortly_and_no_worse():
    data = load_breast_cancer()
    train = np.arange(len(data.target)) % 3 > 0
    full = DecisionTreeClassifier(random_state=0).fit(data.data[train], data.target[train])
    short = MDLTreeClassifier().fit(data.data[train], data.target[train])
    assert short.get_n_leaves() <= full.get_n_leaves() / 2
    there = data.data[~train], data.target[~train]
    assert short.score(*there) >= full.score(*there) - 0.02


def test_text_has_one_line_for_each_side_and_the_bits_of_the_whole():
    data = load_iris()
    model = MDLTreeClassifier().fit(data.data, data.target_names[data.target])
    assert model.to_text(["sepal l", "sepal w", "petal l", "petal w"]) == (
        "petal w <= 0.8                                    7.4 bits\n"
        "    setosa (50 rows, 0 exceptions)                6.2 bits\n"
        "petal w > 0.8\n"
        "    petal w <= 1.75                               7.4 bits\n"
        "        versicolor (54 rows, 5 exceptions)       30.8 bits\n"
        "    petal w > 1.75\n"
        "        virginica (46 rows, 1 exceptions)        13.2 bits\n"
        "tree 33.9 bits + exceptions 31.0 bits = 64.9 bits"
    )
    assert sum(model.bits_) == pytest.approx(7.4 + 6.2 + 7.4 + 30.8 + 13.2, abs=0.3)


def test_a_weight_is_a_repetition_and_zero_absence():
    data = load_iris()
    weight = np.random.default_rng(0).integers(0, 4, len(data.target))
    weighted = MDLTreeClassifier().fit(data.data, data.target, sample_weight=weight)
    repeated = MDLTreeClassifier().fit(np.repeat(data.data, weight, axis=0), np.repeat(data.target, weight))
    assert weighted.bits_ == pytest.approx(repeated.bits_)


def test_missing_cells_are_learned_from_and_predicted():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    y = (x[:, 0] > 0).astype(int)
    x[rng.random(300) < 0.1, 0] = np.nan
    model = MDLTreeClassifier().fit(x, y)
    assert model.score(x, y) > 0.9
    assert np.isfinite(model.predict_proba([[np.nan, np.nan]])).all()
    choices = len(np.unique(x[~np.isnan(x[:, 0]), 0]))  # one less threshold than values, and "missing or not"
    assert model.ask_bits_[0] == pytest.approx(1 + math.log2(2) + math.log2(choices) + 1)
    assert "x0 <= " in model.to_text()
    assert " or missing" in model.to_text()


def test_to_be_missing_can_be_the_question():
    x = np.array([[1.0], [2.0], [3.0], [4.0], [np.nan], [np.nan], [np.nan], [np.nan]] * 4)
    text = MDLTreeClassifier().fit(x, [0, 0, 0, 0, 1, 1, 1, 1] * 4).to_text(["x"])
    assert text.splitlines()[0].startswith("x present  ")
    assert text.splitlines()[2] == "x missing"


# -- labels ------------------------------------------------------------------------------------------------------------


def test_a_perfect_tree_on_labels_has_no_exceptions():
    rows, play, _ = table(WORKED_EXAMPLES["play_tennis"])
    model = MDLTreeClassifier().fit(rows * 6, play * 6)
    assert model.score(rows, play) == 1
    assert model.bits_.data == 0
    assert model.to_text().splitlines()[0].startswith("outlook is not overcast  ")
    assert model.ask_bits_[0] == pytest.approx(1 + math.log2(4) + math.log2(3))  # one of 4 columns, one of 3 labels
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == ["outlook", "temperature", "humidity", "wind"]


def test_labels_may_come_in_any_table_and_columns_in_any_order():
    pd = pytest.importorskip("pandas")
    rows, play, _ = table(WORKED_EXAMPLES["play_tennis"])
    frame = pd.DataFrame(rows * 6)
    plain = MDLTreeClassifier().fit(frame.to_numpy().tolist(), play * 6)
    named = MDLTreeClassifier().fit(frame.astype("category"), play * 6)
    expected = MDLTreeClassifier().fit(rows * 6, play * 6).predict_proba(rows)
    assert np.array_equal(plain.predict_proba(frame.to_numpy()[:14]), expected)
    assert np.array_equal(named.predict_proba(frame[:14][["wind", "humidity", "temperature", "outlook"]]), expected)
    with pytest.raises(DataError, match="the table has no column 'wind'"):
        named.predict(frame.drop(columns="wind"))


def test_labels_and_numbers_in_one_table_missing_and_new_labels():
    rng = np.random.default_rng(0)
    rows = [{"sky": str(rng.choice(["fog", "sun"])), "degrees": float(rng.normal(15, 5))} for _ in range(200)]
    y = ["in" if row["sky"] == "fog" or row["degrees"] < 12 else "out" for row in rows]
    rows[0]["sky"] = None
    model = MDLTreeClassifier().fit(rows, y)
    assert model.score(rows, y) > 0.98
    assert " or missing" in model.to_text()
    p = model.predict_proba([{"sky": "hail", "degrees": 20.0}, {"sky": None, "degrees": None}])
    assert p.sum(axis=1) == pytest.approx(1)
    with pytest.raises(DataError, match="column 'id' holds 1,001 different labels; leave it out"):
        MDLTreeClassifier().fit([{"id": f"row {i}"} for i in range(1001)], [0, 1] * 500 + [0])
