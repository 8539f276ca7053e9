"""The part common to all engines: count each partition where it is stored, and add up the statistics.

An engine implements `PartitionedRows`, which runs a tree of tasks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy import ndarray as Array
from sklearn.utils.validation import check_is_fitted

from priory.core.sharding import use_one_thread
from priory.errors import DataError, KindError, StaleModelError, suggest_name
from priory.estimators.label_encoding import encode_labels
from priory.estimators.learned_classifier import CorrectedClassifier
from priory.estimators.naive_bayes import NaiveBayes
from priory.estimators.text_classifier import TextClassifier
from priory.evaluation.scores import Scores
from priory.learning.counting import Countable, Counter, add_parts, check_countable
from priory.learning.learned import Learned
from priory.learning.left_out_scores import judge_parts, sample_part
from priory.model.cells import RowSample
from priory.model.column_profile import Profiles, add_profiles, profile_columns
from priory.tables.dates import find_source_column
from priory.tables.table_reading import read_table

FAN_IN = 8  # records that one task of the tree adds up

ContextT = TypeVar("ContextT")
PartT = TypeVar("PartT")
ModelT = TypeVar("ModelT", bound=Countable)
Task = Callable[[ContextT, Any], PartT | None]  # counts a partition, by a context that all tasks share
Sum = Callable[[Iterable[PartT | None]], PartT | None]


class PartitionedRows(ABC):
    """A table in partitions, each a pandas data frame or an Arrow table."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""

    @property
    @abstractmethod
    def strings(self) -> tuple[str, ...]:
        """The columns whose type is not numeric."""

    @property
    @abstractmethod
    def dates(self) -> tuple[str, ...]:
        """The columns whose type is a date or a time stamp."""

    @abstractmethod
    def select_columns(self, names: Sequence[str]) -> PartitionedRows:
        """Select columns."""

    def reduce(self, context: ContextT, count: Task[ContextT, PartT], add: Sum[PartT]) -> PartT | None:
        """Sum ``count(context, rows)`` over all partitions by a tree of ``add``."""
        return self._run_tree(context, partial(count_on_one_core, count), add)

    @abstractmethod
    def _run_tree(self, context: ContextT, count: Task[ContextT, PartT], add: Sum[PartT]) -> PartT | None:
        """Run `reduce` on the engine."""


def count_on_one_core(count: Task[ContextT, PartT], context: ContextT, rows: Any) -> PartT | None:
    """Run a task on one core, because the engine has tasks for the others."""
    with use_one_thread():
        return count(context, rows)


@dataclass(frozen=True)
class RowColumns:
    """The columns of the features, the target and the weight."""

    features: tuple[str, ...]
    target: str
    weight: str | None = None

    @classmethod
    def of(cls, rows: PartitionedRows, target: str, weight: str | None = None) -> RowColumns:
        for name in (target, weight):
            if name is not None and name not in rows.names:
                raise DataError(f"the table has no column {name!r}{suggest_name(name, rows.names)}.")
        return cls(tuple(name for name in rows.names if name not in (target, weight)), target, weight)

    def split(self, rows: Any, takes_arrow: bool, zones: Mapping[str, str]) -> tuple[Any, Any, Array | None]:
        """Split a partition into features, target and weight."""
        weight = None if self.weight is None else np.asarray(rows[self.weight], dtype=float)
        return select_features(rows, self.features, takes_arrow, zones), _read_target(rows, self.target), weight


def select_features(rows: Any, names: Sequence[str], takes_arrow: bool, zones: Mapping[str, str]) -> Any:
    """Select the features; Arrow tables become pandas unless the model reads Arrow."""
    if not isinstance(rows, pa.Table):
        return rows[list(names)]
    features = rows.select(list(names))
    return _convert_zones(features, zones) if takes_arrow else features.to_pandas()


def _convert_zones(rows: pa.Table, zones: Mapping[str, str]) -> pa.Table:
    """Convert moments of an Arrow table to the time zones learned, "" for none.

    Spark stores instants and gives all of them the time zone of its session, not of the rows that were learned.
    """
    for place, field in enumerate(rows.schema):
        zone = zones.get(field.name)
        if zone is not None and pa.types.is_timestamp(field.type) and field.type.tz:
            moments = rows.column(place)
            local = moments.cast(pa.timestamp(field.type.unit, zone)) if zone else pc.local_timestamp(moments)
            rows = rows.set_column(place, field.name, local)
    return rows


def _read_target(rows: Any, name: str) -> Any:
    column = rows[name]
    # strings and columns with nulls are left to the label reader, which names a row without a label
    is_plain_arrow = (
        isinstance(column, pa.ChunkedArray) and not column.null_count and not pa.types.is_string(column.type)
    )
    return column.to_numpy() if is_plain_arrow else column


# -- learning ----------------------------------------------------------------------------------------------------------


def fit_partitions(model: ModelT, rows: PartitionedRows, target: str, sample_weight: str | None) -> ModelT:
    """Fit a model to all rows; it equals ``fit`` with all rows in one process."""
    check_countable(model)
    # kinds of columns are fixed before counting, so that every partition is read alike
    columns, counter = RowColumns.of(rows, target, sample_weight), model.counter()
    counter = counter.with_profiles(columns.features, _profile_open_columns(counter, rows, columns))
    return model.adopt(rows.reduce((counter, columns, _takes_arrow(model)), learn_partition, add_parts))


def forget_partitions(model: ModelT, rows: PartitionedRows, target: str, sample_weight: str | None) -> ModelT:
    """Forget all rows, as if they had never been learned."""
    check_countable(model)
    check_is_fitted(model)
    if getattr(model, "clock_", 1.0) != 1.0:  # parts do not know when their rows were learned
        raise StaleModelError("the model has decayed; forget rows with its own method, which takes learned_at.")
    columns = RowColumns.of(rows, target, sample_weight)
    context = model.counter(known=True), columns, _takes_arrow(model)
    return model.subtract(rows.reduce(context, learn_partition, add_parts))


def learn_partition(context: tuple[Counter, RowColumns, bool], rows: Any) -> Any:
    """Count a partition; None if it is empty."""
    counter, columns, takes_arrow = context
    return counter.count(*columns.split(rows, takes_arrow, counter.find_zones())) if len(rows) else None


def _takes_arrow(model: object) -> bool:
    return isinstance(model, NaiveBayes | TextClassifier)


def _profile_open_columns(counter: Counter, rows: PartitionedRows, columns: RowColumns) -> Profiles:
    """Profile, in a first pass, the columns whose kinds depend on all rows."""
    # types of the frame settle numbers; strings may be labels or texts, dates with or without hours
    strings, dates = ([name for name in columns.features if name in some] for some in (rows.strings, rows.dates))
    names = counter.find_open_columns(columns.features, strings, dates)
    if not names:
        return {}
    return rows.select_columns(names).reduce(None, profile_rows, partial(add_parts, add=add_profiles)) or {}


def profile_rows(_: None, rows: Any) -> Profiles | None:
    """Profile the columns of a partition; None if it is empty."""
    return profile_columns(read_table(rows)) if len(rows) else None


# -- scoring -----------------------------------------------------------------------------------------------------------


def evaluate_partitions(model: object, rows: PartitionedRows, target: str) -> Scores:
    """Score a uniform sample of learned rows, each by a model without it."""
    if not isinstance(model, CorrectedClassifier):
        raise KindError(f"a {type(model).__name__} has no scores of rows left out; use NaiveBayes or TextClassifier.")
    check_is_fitted(model)
    # sampling is by hash of the row: samples of partitions add up to the sample of all rows
    learned = model.learned_
    sample = rows.reduce((learned, RowColumns.of(rows, target)), sample_partition, add_parts)
    if sample is None:
        raise DataError("there are no rows to judge the model by.")
    return judge_parts(learned, sample)


def sample_partition(context: tuple[Learned, RowColumns], rows: Any) -> RowSample | None:
    """Sample a partition of learned rows; None if it is empty."""
    learned, columns = context
    if not len(rows):
        return None
    features, labels, _ = columns.split(rows, True, learned.rows.find_zones())
    return sample_part(learned, features, partial(encode_labels, labels))


# -- answering ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answers:
    """Computes the columns that predictions add to a table: one, or one for each class."""

    model: Any
    features: tuple[str, ...]
    names: tuple[str, ...]
    method: str  # "predict" or "predict_proba"

    @classmethod
    def of(cls, model: Any, rows: PartitionedRows, method: str, name: str) -> Answers:
        check_is_fitted(model, "statistics_")
        features = _find_features(model, rows)
        names = (name,) if method == "predict" else tuple(f"{name}_{label}" for label in model.classes_.tolist())
        taken = [added for added in names if added in rows.names]
        if taken:
            raise DataError(f"the table has a column {taken[0]!r} already; give another name.")
        whole = model.with_corrections() if isinstance(model, CorrectedClassifier) else model  # they are derived once
        return cls(whole, features, names, method)

    def compute(self, rows: Any) -> dict[str, Array]:
        """Map the name of each added column to its cells (rows,)."""
        if not len(rows):
            return {name: np.zeros(0, dtype=self.find_type()) for name in self.names}
        with use_one_thread():
            answers = np.asarray(
                getattr(self.model, self.method)(
                    select_features(
                        rows, self.features, _takes_arrow(self.model), getattr(self.model, "column_zones_", {})
                    )
                )
            )
        # (rows, added columns)
        columns = answers[:, None] if answers.ndim == 1 else answers
        return dict(zip(self.names, columns.T, strict=True))

    def find_type(self) -> np.dtype[Any]:
        """The dtype of the answers: object for strings."""
        if self.method == "predict" and hasattr(self.model, "classes_"):
            return np.asarray(self.model.classes_).dtype
        return np.dtype(float)


def _find_features(model: Any, rows: PartitionedRows) -> tuple[str, ...]:
    """Find the columns that a model has learned; a text model uses the only column, or the one called "text"."""
    names = getattr(model, "feature_names_in_", None)
    if names is None and isinstance(model, TextClassifier):
        names = rows.names if len(rows.names) == 1 else [name for name in rows.names if name == "text"]
        if not names:
            raise DataError("which column is the text? Select it: frame[[name]], or call it 'text'.")
    # "when (weekday)" of the model comes from column "when" of the frame
    known = map(str, rows.names if names is None else names)
    found = tuple(dict.fromkeys(find_source_column(name, rows.names) for name in known))
    absent = [name for name in found if name not in rows.names]
    if absent:
        raise DataError(f"the table has no column {absent[0]!r}{suggest_name(absent[0], rows.names)}.")
    return found
