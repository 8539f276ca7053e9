"""What every engine does with partitioned rows: count each partition where it is, and add up the records.

An engine says how a tree of tasks is run (`PartitionedRows`); everything else is here, once.
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
from sklearn.utils.validation import check_is_fitted

from priory.core.sharding import use_one_thread
from priory.core.similar_names import suggest_name
from priory.core.typing import Array
from priory.errors import DataError, KindError, StaleModelError
from priory.estimators.label_encoding import encode_labels
from priory.estimators.learned_classifier import CorrectedClassifier
from priory.estimators.naive_bayes import NaiveBayes
from priory.estimators.text_classifier import TextClassifier
from priory.evaluation.scores import Scores
from priory.learning.counting import Countable, Counter, add_parts, check_countable
from priory.learning.learned import Learned
from priory.learning.left_out_scores import judge_parts, sample_part
from priory.model.column_profile import Profiles, add_profiles, profile_columns
from priory.model.row_sample import RowSample
from priory.tables.dates import find_source_column
from priory.tables.table_reading import read_table

FAN_IN = 8  # records that one task of the tree adds up

ContextT = TypeVar("ContextT")
PartT = TypeVar("PartT")
ModelT = TypeVar("ModelT", bound=Countable)


class PartitionedRows(ABC):
    """A table whose rows lie in partitions: pandas data frames or Arrow tables."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The columns."""

    @property
    @abstractmethod
    def strings(self) -> tuple[str, ...]:
        """The columns that are not of numbers, as far as their types say."""

    @property
    @abstractmethod
    def dates(self) -> tuple[str, ...]:
        """The columns of dates, as far as their types say."""

    @abstractmethod
    def select_columns(self, names: Sequence[str]) -> PartitionedRows:
        """The same rows with some of the columns."""

    def reduce(
        self,
        context: ContextT,
        count: Callable[[ContextT, Any], PartT | None],
        add: Callable[[Iterable[PartT | None]], PartT | None],
    ) -> PartT | None:
        """The sum of the records that ``count(context, rows)`` makes of each partition, by a tree of ``add``."""
        return self._run_tree(context, partial(count_on_one_core, count), add)

    @abstractmethod
    def _run_tree(
        self,
        context: ContextT,
        count: Callable[[ContextT, Any], PartT | None],
        add: Callable[[Iterable[PartT | None]], PartT | None],
    ) -> PartT | None:
        """`reduce`, as the engine does it."""


def count_on_one_core(count: Callable[[ContextT, Any], PartT | None], context: ContextT, rows: Any) -> PartT | None:
    """A task of an engine: its other cores have tasks of their own."""
    with use_one_thread():
        return count(context, rows)


@dataclass(frozen=True)
class RowColumns:
    """Which columns are learned from, and which hold the target and the weight."""

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
        """Features, target and weight of some rows."""
        weight = None if self.weight is None else np.asarray(rows[self.weight], dtype=float)
        return select_features(rows, self.features, takes_arrow, zones), _read_target(rows, self.target), weight


def select_features(rows: Any, names: Sequence[str], takes_arrow: bool, zones: Mapping[str, str]) -> Any:
    """The columns that a model learns from or answers to, as it takes them: Arrow goes to Priory's own readers only."""
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
    is_plain_arrow = (
        isinstance(column, pa.ChunkedArray) and not column.null_count and not pa.types.is_string(column.type)
    )
    return column.to_numpy() if is_plain_arrow else column


# -- learning ----------------------------------------------------------------------------------------------------------


def fit_partitions(model: ModelT, rows: PartitionedRows, target: str, sample_weight: str | None) -> ModelT:
    """Learn from all rows, forgetting whatever was learned before; the model is that of ``fit`` with all rows."""
    check_countable(model)
    columns, counter = RowColumns.of(rows, target, sample_weight), model.counter()
    counter = counter.with_profiles(columns.features, _profile_open_columns(counter, rows, columns))
    return model.adopt(rows.reduce((counter, columns, _takes_arrow(model)), learn_partition, add_parts))


def forget_partitions(model: ModelT, rows: PartitionedRows, target: str, sample_weight: str | None) -> ModelT:
    """Unlearn all rows, as if they had never been learned."""
    check_countable(model)
    check_is_fitted(model)
    if getattr(model, "clock_", 1.0) != 1.0:  # parts do not know when their rows were learned
        raise StaleModelError("the model has decayed; forget rows with its own method, which takes learned_at.")
    columns = RowColumns.of(rows, target, sample_weight)
    context = model.counter(known=True), columns, _takes_arrow(model)
    return model.subtract(rows.reduce(context, learn_partition, add_parts))


def learn_partition(context: tuple[Counter, RowColumns, bool], rows: Any) -> Any:
    """What some rows teach; None if there are none."""
    counter, columns, takes_arrow = context
    return counter.count(*columns.split(rows, takes_arrow, counter.find_zones())) if len(rows) else None


def _takes_arrow(model: object) -> bool:
    return isinstance(model, NaiveBayes | TextClassifier)


def _profile_open_columns(counter: Counter, rows: PartitionedRows, columns: RowColumns) -> Profiles:
    """A first pass over the columns whose schema no single partition can decide."""
    strings, dates = ([name for name in columns.features if name in some] for some in (rows.strings, rows.dates))
    names = counter.find_open_columns(columns.features, strings, dates)
    if not names:
        return {}
    return rows.select_columns(names).reduce(None, profile_rows, sum_profiles) or {}


def profile_rows(_: None, rows: Any) -> Profiles | None:
    """The profiles of all columns; None if there are no rows."""
    return profile_columns(read_table(rows)) if len(rows) else None


def sum_profiles(profiles: Iterable[Profiles | None]) -> Profiles | None:
    return add_parts(profiles, add_profiles)


# -- judging -----------------------------------------------------------------------------------------------------------


def evaluate_partitions(model: object, rows: PartitionedRows, target: str) -> Scores:
    """The scores of a fair sample of learned rows, each judged by ``total - own``."""
    if not isinstance(model, CorrectedClassifier):
        raise KindError(f"a {type(model).__name__} has no scores of rows left out; use NaiveBayes or TextClassifier.")
    check_is_fitted(model)
    learned = model.learned_
    sample = rows.reduce((learned, RowColumns.of(rows, target)), sample_partition, add_parts)
    if sample is None:
        raise DataError("there are no rows to judge the model by.")
    return judge_parts(learned, sample)


def sample_partition(context: tuple[Learned, RowColumns], rows: Any) -> RowSample | None:
    """A fair sample of some learned rows; None if there are none."""
    learned, columns = context
    if not len(rows):
        return None
    features, labels, _ = columns.split(rows, True, learned.rows.find_zones())
    return sample_part(learned, features, partial(encode_labels, labels))


# -- answering ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answers:
    """The columns that predictions add to a table: one, or one for each class."""

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
        """The answers to some rows, by the names of their columns."""
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
        columns = answers[:, None] if answers.ndim == 1 else answers
        return dict(zip(self.names, columns.T, strict=True))

    def find_type(self) -> np.dtype[Any]:
        """The type of the answers: object for strings."""
        if self.method == "predict" and hasattr(self.model, "classes_"):
            return np.asarray(self.model.classes_).dtype
        return np.dtype(float)


def _find_features(model: Any, rows: PartitionedRows) -> tuple[str, ...]:
    """The columns that a model has learned; a model of texts answers to the only column, or to the one called text."""
    names = getattr(model, "feature_names_in_", None)
    if names is None and isinstance(model, TextClassifier):
        names = rows.names if len(rows.names) == 1 else [name for name in rows.names if name == "text"]
        if not names:
            raise DataError("which column is the text? Select it: frame[[name]], or call it 'text'.")
    known = map(str, rows.names if names is None else names)
    found = tuple(dict.fromkeys(find_source_column(name, rows.names) for name in known))
    absent = [name for name in found if name not in rows.names]
    if absent:
        raise DataError(f"the table has no column {absent[0]!r}{suggest_name(absent[0], rows.names)}.")
    return found
