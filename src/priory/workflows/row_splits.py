"""Which rows judge a model: folds by groups or by time, and other models on the same folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, TimeSeriesSplit
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

from priory.core.typing import Array
from priory.errors import DataError
from priory.estimators.folds import make_splitter
from priory.evaluation.scores import Scores
from priory.sources.cell_parsing import cast_to_text, is_text_column, looks_like_date, looks_numeric
from priory.sources.column_types import InputRows, ModelColumns

if TYPE_CHECKING:
    from priory.evaluation.scores import Scores
    from priory.sources.column_types import InputRows
    from priory.workflows.model_files import TableOrTextClassifier


DEFAULT_FOLDS = 5
Split = tuple[Array, Array]  # rows to learn from, and rows to judge


@dataclass(frozen=True)
class JudgingOptions:
    """How learned rows are left out for cross-validation.

    Parameters
    ----------
    folds : int, optional
        The number of folds; by default the model's own choice, or five with groups or time.
    groups : str, optional
        A column: rows with the same value, such as one person, are left out together.
    time : str, optional
        A column of numbers or dates: rows are judged by a model of earlier rows only.
    """

    folds: int | None = None
    groups: str | None = None
    time: str | None = None

    def __post_init__(self) -> None:
        if self.groups is not None and self.time is not None:
            raise DataError("groups and time exclude each other; give one of them")
        if self.folds is not None and self.folds < 2:
            raise DataError(f"there are {self.folds} folds; give at least 2")

    @property
    def is_default(self) -> bool:
        return self == JudgingOptions()

    @property
    def side_columns(self) -> tuple[str, ...]:
        """The columns that are read in addition to the model's own."""
        return tuple(name for name in (self.groups, self.time) if name is not None)


class SideColumns:
    """Collects columns that the model does not use, while rows are read."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names, self._batches = tuple(dict.fromkeys(names)), list[pa.RecordBatch]()

    def add(self, batch: pa.RecordBatch) -> None:
        if self.names:
            self._batches.append(batch.select(list(self.names)))

    def get(self, name: str) -> pa.Array:
        """The cells of all rows."""
        return pa.Table.from_batches(self._batches)[name].combine_chunks()

    def get_texts(self, name: str) -> Array:
        """The cells of all rows as text; a missing one is empty."""
        return np.array(cast_to_text(self.get(name)).fill_null("").to_pylist(), dtype=object)


def make_splits(labels: Array, options: JudgingOptions, side: SideColumns) -> list[Split]:
    """The rows to learn from and to judge, for each fold."""

    n_folds = options.folds or DEFAULT_FOLDS
    if options.time is not None:
        order = np.argsort(read_times(side, options.time), kind="stable")
        if len(order) <= n_folds:
            raise DataError(f"there are {len(order)} rows for {n_folds} folds by time; give fewer folds")
        return [(order[train], order[test]) for train, test in TimeSeriesSplit(n_folds).split(order)]
    if options.groups is not None:
        groups = side.get_texts(options.groups)
        n_groups = len(np.unique(groups))
        if n_groups < 2:
            raise DataError(f"column {options.groups!r} has one value only; give groups that can be left out")
        return list(GroupKFold(min(n_folds, n_groups)).split(groups, labels, groups))
    return list(make_splitter(n_folds, labels, 0).split(np.zeros((len(labels), 1)), labels))


def read_times(side: SideColumns, name: str) -> Array:
    """Read a column of numbers or ISO dates into an array that sorts by time."""
    column = side.get(name)
    if column.null_count or (is_text_column(column) and "" in column.to_pylist()):
        raise DataError(f"column {name!r} has missing cells; every row needs a time")
    if not is_text_column(column):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    if all(looks_numeric(column).to_pylist()):
        return np.array(column.cast(pa.float64()))
    cells = column.to_pylist()
    is_sortable = all(looks_like_date(column).to_pylist()) and all(cell[4:5] in ("-", "/") for cell in cells)
    if not is_sortable:
        raise DataError(f"column {name!r} has neither numbers nor dates such as 2024-05-31; convert it")
    return np.array(cells)


def cross_validate(
    model: TableOrTextClassifier, rows: InputRows, labels: Array, options: JudgingOptions, side: SideColumns
) -> Scores:
    """Score learned rows, each predicted by a model from which it was subtracted."""
    if options.is_default:
        return model.evaluate(rows, labels)
    return model.evaluate(rows, labels, folds=make_splits(labels, options, side))


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
