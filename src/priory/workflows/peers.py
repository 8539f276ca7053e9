"""Other people's models on the same folds: scikit-learn's logistic regression and gradient boosting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from priory.core.typing import Array
from priory.sources.column_types import InputRows, ModelColumns
from priory.workflows.judging import Split

if TYPE_CHECKING:
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline

    from priory.evaluation.scores import Scores

MAX_WORDS_FOR_TREES = 500  # the most common ones of a text


def score_peers(
    columns: ModelColumns, rows: InputRows, labels: Array, classes: Array, splits: Sequence[Split]
) -> dict[str, Scores]:
    """The scores of each peer, fitted to the rows of each split and judged on the others."""
    table = make_object_table(columns, rows)
    return {name: _score_peer(make(columns), table, labels, classes, splits) for name, make in PEERS.items()}


def make_object_table(columns: ModelColumns, rows: InputRows) -> Array:
    """(rows, columns): numbers, NaN where missing; labels and texts, empty where missing."""
    if isinstance(rows, list):
        return np.array(rows, dtype=object)[:, None]
    table = np.empty((rows.num_rows, len(columns.names)), dtype=object)
    for j, (name, kind) in enumerate(columns.kinds.items()):
        fill: object = np.nan if kind == "number" else ""
        table[:, j] = [fill if cell is None else cell for cell in rows[name].to_pylist()]
    return table


def _score_peer(peer: Pipeline, table: Array, labels: Array, classes: Array, splits: Sequence[Split]) -> Scores:
    from sklearn.base import clone

    from priory.evaluation.scores import Scores

    answers, tested = [], []
    for train, test in splits:
        fitted = clone(peer).fit(table[train], labels[train])
        p = np.zeros((len(test), len(classes)))
        p[:, np.searchsorted(classes, fitted.classes_)] = fitted.predict_proba(table[test])
        answers.append(p)
        tested.append(test)
    positions = np.concatenate(tested)
    scores = Scores.of(labels[positions], np.concatenate(answers), classes)
    return replace(scores, positions=positions, folds=len(splits) if len(splits) > 1 else None)


def _make_logistic_regression(columns: ModelColumns) -> Pipeline:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

    numbers = make_pipeline(
        FunctionTransformer(np.asarray, kw_args={"dtype": float}),
        SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True),
        StandardScaler(),
    )
    labels = OneHotEncoder(handle_unknown="ignore")
    encoder = _encode_columns(columns, numbers, labels, TfidfVectorizer)
    return make_pipeline(encoder, LogisticRegression(max_iter=1000))


def _make_gradient_boosting(columns: ModelColumns) -> Pipeline:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder

    numbers = FunctionTransformer(np.asarray, kw_args={"dtype": float})
    labels = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    encoder = _encode_columns(columns, numbers, labels, lambda: TfidfVectorizer(max_features=MAX_WORDS_FOR_TREES))
    encoder.sparse_threshold = 0  # trees read dense rows
    return make_pipeline(encoder, HistGradientBoostingClassifier(random_state=0))


def _encode_columns(
    columns: ModelColumns, numbers: object, labels: object, make_text_encoder: Callable[[], object]
) -> ColumnTransformer:
    """A transformer of the columns of `make_object_table`, by what they hold."""
    from sklearn.compose import ColumnTransformer

    places: dict[str, list[int]] = {"number": [], "label": [], "text": []}
    for j, kind in enumerate(columns.kinds.values()):
        places[kind].append(j)
    steps = [("numbers", numbers, places["number"]), ("labels", labels, places["label"])]
    texts = [(f"text {j}", make_text_encoder(), j) for j in places["text"]]
    return ColumnTransformer([step for step in (*steps, *texts) if step[2] != []])


PEERS: dict[str, Callable[[ModelColumns], Pipeline]] = {
    "logistic regression": _make_logistic_regression,
    "gradient boosting": _make_gradient_boosting,
}
