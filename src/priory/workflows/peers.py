"""Scores of scikit-learn's logistic regression and gradient boosting on the same folds, for comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

from priory.core.typing import Array
from priory.evaluation.scores import Scores
from priory.sources.column_types import InputRows, ModelColumns
from priory.workflows.judging import Split

MAX_WORDS_FOR_TREES = 500  # the most common ones of a text


def score_peers(
    columns: ModelColumns, rows: InputRows, labels: Array, classes: Array, splits: Sequence[Split]
) -> dict[str, Scores]:
    """The scores of each peer, fitted to the training rows of each split and scored on its test rows."""
    table, kinds = _make_object_table(columns, rows), list(columns.kinds.values())
    return {name: _score_peer(peer, table, labels, classes, splits) for name, peer in _make_peers(kinds).items()}


def _make_object_table(columns: ModelColumns, rows: InputRows) -> Array:
    """(rows, columns): numbers, NaN where missing; labels and texts, empty where missing."""
    if isinstance(rows, list):
        return np.array(rows, dtype=object)[:, None]
    table = np.empty((rows.num_rows, len(columns.names)), dtype=object)
    for j, (name, kind) in enumerate(columns.kinds.items()):
        fill: object = np.nan if kind == "number" else ""
        table[:, j] = [fill if cell is None else cell for cell in rows[name].to_pylist()]
    return table


def _score_peer(peer: Pipeline, table: Array, labels: Array, classes: Array, splits: Sequence[Split]) -> Scores:
    answers = []  # (test rows, classes) of each split; a class that is absent from the training rows has probability 0
    for train, test in splits:
        fitted = clone(peer).fit(table[train], labels[train])
        p = np.zeros((len(test), len(classes)))
        p[:, np.searchsorted(classes, fitted.classes_)] = fitted.predict_proba(table[test])
        answers.append(p)
    positions = np.concatenate([test for _, test in splits])
    scores = Scores.of(labels[positions], np.concatenate(answers), classes)
    return replace(scores, positions=positions, folds=len(splits) if len(splits) > 1 else None)


def _make_peers(kinds: list[str]) -> dict[str, Pipeline]:
    """Both models behind the usual preparation of numbers, labels and texts."""
    as_floats = FunctionTransformer(np.asarray, kw_args={"dtype": float})
    imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    linear = _encode_columns(
        kinds, make_pipeline(as_floats, imputer, StandardScaler()), OneHotEncoder(handle_unknown="ignore"), None
    )
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    dense = _encode_columns(kinds, as_floats, ordinal, MAX_WORDS_FOR_TREES).set_params(sparse_threshold=0)
    return {
        "logistic regression": make_pipeline(linear, LogisticRegression(max_iter=1000)),
        "gradient boosting": make_pipeline(dense, HistGradientBoostingClassifier(random_state=0)),
    }


def _encode_columns(kinds: list[str], numbers: object, labels: object, max_words: int | None) -> ColumnTransformer:
    """A transformer of the columns of an object table, by their kinds; a text may keep only its commonest words."""
    places = {kind: [j for j, one in enumerate(kinds) if one == kind] for kind in ("number", "label", "text")}
    steps = [("numbers", numbers, places["number"]), ("labels", labels, places["label"])]
    texts = [(f"text {j}", TfidfVectorizer(max_features=max_words), j) for j in places["text"]]
    return ColumnTransformer([*(step for step in steps if step[2]), *texts])
