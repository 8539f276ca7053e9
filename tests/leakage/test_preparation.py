"""Leaks by preparing before splitting."""

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

import priory as pr
from leakage_data import kinds, only, table, texts
from priory.leakage import Severity


def numbers(rows=300, columns=6, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, columns)), rng.integers(2, size=rows)


@pytest.mark.parametrize(
    "step",
    [StandardScaler(), MinMaxScaler(), SimpleImputer(), SelectKBest(f_classif, k=2)],
    ids=lambda s: type(s).__name__,
)
def test_a_step_fitted_to_the_test_rows_is_found(step):
    x, y = numbers()
    train, test = x[:200], x[200:]
    honest = make_pipeline(step, LogisticRegression()).fit(train, y[:200])
    assert "preparation" not in kinds(pr.audit(train, test, (y[:200], y[200:]), pipeline=honest))
    peeked = make_pipeline(step.fit(x, y), LogisticRegression())
    peeked[-1].fit(peeked[0].transform(train), y[:200])
    found = only(pr.audit(train, test, (y[:200], y[200:]), pipeline=peeked), "preparation")
    assert found.severity == Severity.HIGH
    assert found.columns == (peeked.steps[0][0],)


def test_a_model_fitted_to_the_test_rows_is_found():
    frame = table()
    x = frame[["x3", "x4"]]
    for rows, leaked in ((800, False), (1200, True)):
        model = make_pipeline(StandardScaler().fit(x[:800]), LogisticRegression())
        model[-1].fit(model[0].transform(x[:rows]), frame.y[:rows])
        given = frame[["x3", "x4", "y"]]
        assert ("preparation" in kinds(pr.audit(given[:800], given[800:], target="y", pipeline=model))) is leaked


def test_a_scaler_is_judged_without_the_labels_of_the_test_rows():
    x, y = numbers()
    peeked = make_pipeline(StandardScaler().fit(x), LogisticRegression())
    peeked[-1].fit(peeked[0].transform(x[:200]), y[:200])
    assert only(pr.audit(x[:200], x[200:], y[:200], pipeline=peeked), "preparation").columns == ("standardscaler",)


def test_a_vocabulary_of_train_and_test_is_found():
    documents, labels = texts()
    test = [f"{text} unheard" for text in documents[300:]]
    pipeline = make_pipeline(CountVectorizer(), MultinomialNB())
    pipeline.fit(documents[:300] + test, labels)
    found = pr.audit(documents[:300], test, target=(labels[:300], labels[300:]), pipeline=pipeline).of("preparation")
    assert "'unheard'" in found[0].examples[0]
    pipeline.fit(documents[:300], labels[:300])
    assert "preparation" not in kinds(
        pr.audit(documents[:300], test, target=(labels[:300], labels[300:]), pipeline=pipeline)
    )


def test_a_transformer_of_columns_is_looked_into():
    frame = table()
    x = frame.drop(columns="y")
    mixed = make_column_transformer((StandardScaler(), ["x0", "x1"]), (OneHotEncoder(), ["shape"]))
    honest = make_pipeline(mixed, LogisticRegression()).fit(x[:800], frame.y[:800])
    assert "preparation" not in kinds(pr.audit(frame[:800], frame[800:], target="y", pipeline=honest))
    peeked = make_pipeline(mixed, LogisticRegression()).fit(x, frame.y)
    found = pr.audit(frame[:800], frame[800:], target="y", pipeline=peeked).of("preparation")
    assert any("standardscaler.mean_" in f.what for f in found)
