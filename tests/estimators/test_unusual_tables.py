"""Tables that are unusual, and right: no rows, the largest numbers, decimals, generators."""

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

import priory as pr
from priory import naive_bayes as nb
from priory.errors import DataError

FRAME = pd.DataFrame({"n": [1, 2, 3, 4], "maybe": pd.array([1, 2, None, 4], dtype="Int64"), "of": list("xyxy")})
LABELS = ["u", "v", "u", "v"]


@pytest.mark.parametrize("frame", [FRAME, pl.from_pandas(FRAME)], ids=["pandas", "polars"])
def test_a_table_without_rows_has_no_answers(frame):
    model = pr.NaiveBayes().fit(frame, LABELS)
    assert model.predict(frame[:0]).tolist() == []
    assert model.predict_proba(frame[:0]).shape == (0, 2)


@pytest.mark.parametrize("largest", [1.7976931348623157e308, 1.797e308, -1.7976931348623157e308])
@pytest.mark.parametrize("families", ["auto", "histogram"])
def test_the_largest_numbers_are_learned_answered_and_forgotten(families, largest):
    rows = [{"n": x} for x in (largest, 1.0, 2.0, 3.0)] * 20
    model = pr.NaiveBayes(families).fit(rows, LABELS * 20)
    proba = model.predict_proba(rows)
    assert np.isfinite(proba).all()
    assert np.allclose(proba.sum(axis=1), 1.0)
    assert list(model.predict_proba_one(rows[0]).values()) == pytest.approx(proba[0])
    model.learn_one(rows[0], "v").forget_one(rows[0], "v").forget(rows[:2], LABELS[:2])
    assert model.class_count_.tolist() == [39.0, 39.0]


def test_an_infinite_number_is_still_refused():
    with pytest.raises(DataError, match="row 1, column 'n' is infinity"):
        pr.NaiveBayes().fit([{"n": 1.0}, {"n": np.inf}], ["u", "v"])
    with pytest.raises(DataError, match="a cell is infinite"):
        pr.families.Histogram().observe([1.0, np.inf])


def test_decimals_are_numbers():
    cells = [Decimal("1.5"), None, Decimal("-2.25"), 3]
    rows, floats = ([{"n": convert(cell)} for cell in cells] for convert in (lambda c: c, lambda c: c and float(c)))
    model, other = (pr.NaiveBayes().fit(table, LABELS) for table in (rows, floats))
    assert np.array_equal(model.predict_proba(rows), other.predict_proba(floats))
    answers = [m.learn_one(r[0], "u").predict_proba_one(r[0]) for m, r in ((model, rows), (other, floats))]
    assert answers[0] == pytest.approx(answers[1])
    with pytest.raises(DataError, match="row 0, column 'n' holds Decimal"):
        model.predict([{"n": Decimal("sNaN")}])


def test_a_generator_of_dicts_is_read_once():
    rows = FRAME.to_dict("records")
    model = pr.NaiveBayes().fit((row for row in rows), LABELS)
    assert model.predict(iter(rows)).tolist() == model.predict(rows).tolist()
    assert model.partial_fit(iter(rows), LABELS).forget(iter(rows), LABELS).class_count_.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("name", ["GaussianNB", "MultinomialNB", "BernoulliNB", "GaussianBayes"])
def test_who_refuses_a_missing_cell_names_the_class_that_takes_it(name):
    X = [[1.0, 2.0], [np.nan, 1.0], [2.0, 3.0], [3.0, 1.0]]
    with pytest.raises(DataError, match=r"row 1, column 0; fill it, or use priory\.NaiveBayes"):
        getattr(nb, name)().fit(X, [0, 0, 1, 1])
    model = getattr(nb, name)().fit(np.nan_to_num(X, nan=1.0), [0, 0, 1, 1])
    with pytest.raises(DataError, match=r"priory\.NaiveBayes"):
        model.predict(X)
