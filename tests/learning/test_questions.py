"""Which rows to label next."""

import numpy as np
import pytest

from priory import NaiveBayes, TextClassifier
from priory.errors import DataError


def make_table(rows, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    return np.column_stack([rng.normal(size=rows) + 2 * y, rng.normal(size=rows)]), y


def test_uncertain_rows_are_chosen_and_none_twice():
    model, pool = NaiveBayes().fit(*make_table(60, 0)), make_table(300, 1)[0]
    found = model.ask(pool, 15)
    assert len(set(found.rows.tolist())) == 15
    assert found.information.mean() > 1.5 * model.ask(pool, 300).information.mean()


def test_copies_of_a_row_are_asked_once():
    texts, labels = ["cash win", "bank cash", "lunch noon", "soup noon"] * 4, ["a", "a", "b", "b"] * 4
    model = TextClassifier().fit(texts, labels)
    pool = ["cash noon"] * 20 + ["win soup"] * 20 + ["bank lunch"] * 20
    assert len({pool[row] for row in model.ask(pool, 3).rows}) == 3


def test_what_labels_gain_and_when_to_stop():
    few, many = (NaiveBayes().fit(*make_table(rows, 0)).ask(make_table(50, 1)[0], 10) for rows in (24, 600))
    assert few.accuracy <= few.expected_accuracy <= 1
    assert many.stop
    assert "stop" in str(many)
    new = NaiveBayes().fit(*make_table(10, 0)).ask(make_table(50, 1)[0], 5)
    assert new.accuracy is None
    assert not new.stop


def test_many_rows_are_all_in_an_order():
    model, pool = NaiveBayes().fit(*make_table(60, 0)), make_table(300, 1)[0]
    every = model.ask(pool, 300)
    assert sorted(every.rows) == list(range(300))
    assert every.rows[:15].tolist() == model.ask(pool, 15).rows.tolist()
    assert every.information[:50].mean() > every.information[-50:].mean()


def test_all_rows_are_fewer_than_asked_for_and_none_is_an_error():
    model = NaiveBayes().fit(*make_table(30, 0))
    assert sorted(model.ask(make_table(4, 1)[0], 10).rows) == [0, 1, 2, 3]
    with pytest.raises(DataError, match="at least one"):
        model.ask(make_table(4, 1)[0], 0)
