"""A few rows wait in the buffer of single rows, and the record is the same as after learning all rows at once."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from priory import NaiveBayes, TextClassifier
from priory.core.content_hash import hash_content
from priory.errors import DataError

RNG = np.random.default_rng(0)
N_ROWS = 90
TABLE = pd.DataFrame(
    {
        "size": np.where(RNG.random(N_ROWS) < 0.1, np.nan, RNG.normal(size=N_ROWS).round(2)),
        "colour": RNG.choice(["red", "green", "blue"], N_ROWS),
        "flag": RNG.random(N_ROWS) < 0.5,
        "count": RNG.poisson(3, N_ROWS),
    }
)
LABELS = np.where(TABLE["size"].fillna(0) + (TABLE["colour"] == "red") > 0.3, "big", "small")
TEXTS = [f"{'win cash' if y == 'big' else 'see you'} {word}" for y, word in zip(LABELS, TABLE["colour"], strict=True)]
CASES = {
    "table": (NaiveBayes(), TABLE),
    "plain table": (NaiveBayes(calibrate=False), TABLE),
    "array": (NaiveBayes(memory=0), TABLE[["size", "count"]].to_numpy(float)),
    "text": (TextClassifier(), np.array(TEXTS)),
    "plain text": (TextClassifier(calibrate=False), np.array(TEXTS)),
    "declared prior": (TextClassifier(class_prior={"big": 0.2, "small": 0.8}), np.array(TEXTS)),
    "not opened for single rows": (TextClassifier("bernoulli"), np.array(TEXTS)),
}


def take(X, rows):
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=5, deadline=None)
@given(cuts=st.sets(st.integers(20, N_ROWS - 1), max_size=20))
def test_batches_of_any_size_make_the_record_of_all_rows(case, cuts):
    declared, X = CASES[case]
    whole, parts = (type(declared)(**declared.get_params()) for _ in range(2))
    whole.fit(X, LABELS)
    for rows in np.split(np.arange(N_ROWS), sorted({20, *cuts})):
        parts.partial_fit(take(X, rows), LABELS[rows])
    assert hash_content(parts.statistics_) == hash_content(whole.statistics_)


def test_a_few_rows_are_learned_at_once_and_can_be_forgotten():
    model = TextClassifier(calibrate=False).fit(TEXTS, LABELS)
    before = hash_content(model.statistics_)
    model.partial_fit(["brand new words"], ["big"])
    assert "brand" in model.vocabulary_
    assert model.predict(["brand new words"]).tolist() == ["big"]
    model.forget(["brand new words"], ["big"])
    assert hash_content(model.statistics_) == before


def test_a_few_wrong_rows_leave_the_model_as_it_was():
    model = NaiveBayes().fit(TABLE, LABELS)
    before = hash_content(model.statistics_)
    for rows, labels in ((TABLE.iloc[:3], LABELS[:2]), (TABLE.iloc[:2].assign(size=np.inf), LABELS[:2])):
        with pytest.raises(DataError):
            model.partial_fit(rows, labels)
    assert hash_content(model.statistics_) == before
