"""Counting rows anywhere: a counter makes a part of some rows, parts add, and the model adopts the total.

    counter = model.counter()                     picklable: what was declared, and how columns are read
    part = counter.count(X, y, sample_weight)     a `Learned` of these rows; None if their total weight is 0
    total = add_parts(parts)                      in any order, as a tree of +
    model.adopt(total)                            the last steps of fit, once
    model.subtract(total)                         as if these rows had never been learned

The result equals ``fit`` with all rows, bit for bit: statistics are exact, and the rows that corrections are
derived from are chosen by their content. Counters run on threads (`priory.workflows.out_of_core`), on Dask and on Spark
(`priory.workflows.partitions`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from numpy import ndarray as Array

from priory.errors import DataError, KindError, NotLearnedError
from priory.learning.learned import LabelEncoder, Learned, count, settle
from priory.learning.row_kind import RowKind
from priory.model.model_statistics import ModelStatistics

if TYPE_CHECKING:
    from priory.model.column_profile import Profiles


class Counter(Protocol):
    """Counts rows without changing the model."""

    def count(self, X: object, y: Any, sample_weight: Any = None) -> Any:
        """Count rows into a part; None if their total weight is 0."""

    def find_open_columns(self, names: Sequence[str], strings: Sequence[str], dates: Sequence[str]) -> list[str]:
        """List the columns whose kinds depend on all rows; ``strings`` hold no numbers, ``dates`` are among them."""

    def find_zones(self) -> dict[str, str]:
        """Map each column of dates to its time zone, "" for none."""

    def with_profiles(self, names: Sequence[str], profiles: Profiles) -> Self:
        """A counter for the named columns; ``profiles`` describe the open columns over all rows."""


@runtime_checkable
class Countable(Protocol):
    """A model that can learn and forget in parts."""

    def counter(self, known: bool = False) -> Counter:
        """A counter of rows to learn from scratch or, if ``known``, of rows with the columns already learned."""

    def adopt(self, total: Any) -> Self:
        """Load the sum of all parts into the model and run the last steps of ``fit``."""

    def subtract(self, part: Any) -> Self:
        """Forget the rows of a part, as if they had never been learned."""


@dataclass(frozen=True)
class PartCounter:
    """Counts rows of a classifier; a part is a `Learned`."""

    rows: RowKind[Any]
    encode: LabelEncoder  # encode(y, classes, strict)

    def count(self, X: object, y: Any, sample_weight: Any = None) -> Learned | None:
        """Count rows; None if their total weight is 0 and they declare no class."""
        return count(self.rows, X, partial(self.encode, y), sample_weight)

    def count_encoded(self, X: object, classes: Array, group: Array) -> Learned | None:
        """Count rows with encoded labels: ``group`` (rows,) indexes the sorted ``classes``."""
        return count(self.rows, X, lambda: (classes, group))

    def make_part(self, X: object, statistics: ModelStatistics) -> Learned | None:
        """Make a part of statistics counted elsewhere, for rows with the columns of ``X``."""
        # only the columns are read from X; its rows are not counted
        return settle(Learned(self.rows.read(X, "fit")[0], statistics), statistics)

    def find_open_columns(self, names: Sequence[str], strings: Sequence[str], dates: Sequence[str]) -> list[str]:
        """List the columns whose kinds depend on all rows."""
        return self.rows.find_open_columns(names, strings, dates)

    def find_zones(self) -> dict[str, str]:
        """Map each column of dates to its time zone."""
        return self.rows.find_zones()

    def with_profiles(self, names: Sequence[str], profiles: Profiles) -> PartCounter:
        """A counter for the named columns."""
        return replace(self, rows=self.rows.with_profiles(names, profiles))


def check_countable(model: object) -> None:
    """Raise an error unless a model can be learned in parts."""
    if not isinstance(model, Countable):
        raise KindError(
            f"a {type(model).__name__} cannot be learned in parts; use NaiveBayes, TextClassifier, "
            "BayesianLinearRegression or a class of priory.naive_bayes."
        )


def add_two(part: Any, other: Any) -> Any:
    """Add two parts and prune the sum to the declared limits."""
    # max_tokens bounds every intermediate sum, so that no task holds a larger vocabulary than declared
    total = part + other
    return total.prune() if isinstance(total, Learned) else total


def add_parts(parts: Iterable[Any], add: Callable[[Any, Any], Any] = add_two) -> Any:
    """Add parts one at a time, so that two are in memory; None if there are none."""
    total = None
    for part in parts:
        if part is not None:
            total = part if total is None else add(total, part)
    return total


def check_total(total: Learned | None) -> Learned:
    """Return the sum of all parts; raise if no row was learned."""
    if total is None:
        raise DataError("there are no rows to learn from; give rows with a weight above zero.")
    return total


def describe_unlearned_part(error: NotLearnedError) -> NotLearnedError:
    """Make the error for a part that cannot be subtracted."""
    reason = error.subject or "a row"
    return NotLearnedError(
        f"{reason} was not learned, or not this often; forget only rows that were learned; the model is unchanged."
    )
