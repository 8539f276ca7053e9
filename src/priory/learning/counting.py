"""Counting rows anywhere: a counter makes a part of some rows, parts add, and the model adopts the total.

    counter = model.counter()                     picklable: what was declared, and how columns are read
    part = counter.count(X, y, sample_weight)     what these rows teach; None if they weigh nothing
    total = add_parts(parts)                      in any order, as a tree of +
    model.adopt(total)                            the last steps of fit, once
    model.subtract(total)                         as if these rows had never been learned

The result is that of ``fit`` with all rows, bit for bit: statistics are exact, and the rows that corrections are
derived from are chosen by their content. Counters run on threads (`priory.workflows.out_of_core`), on Dask and on Spark
(`priory.engines`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, Self, runtime_checkable

from priory.core.typing import Array
from priory.errors import DataError, KindError, NotLearnedError
from priory.learning.learned import LabelEncoder, Learned, count, settle
from priory.learning.row_kind import RowKind
from priory.model.column_profile import Profiles
from priory.model.model_statistics import ModelStatistics


class Counter(Protocol):
    """Counts rows beside a model."""

    def count(self, X: object, y: Any, sample_weight: Any = None) -> Any:
        """What these rows teach, as a part; None if they weigh nothing."""

    def find_open_columns(self, names: Sequence[str], strings: Sequence[str], dates: Sequence[str]) -> list[str]:
        """The columns whose kinds only all rows can decide; ``strings`` do not hold numbers, and some are ``dates``."""

    def find_zones(self) -> dict[str, str]:
        """For each column of dates the time zone that they are counted in, "" if they have none."""

    def with_profiles(self, names: Sequence[str], profiles: Profiles) -> Self:
        """The same for columns of these names; ``profiles`` are those of the open ones, over all rows."""


@runtime_checkable
class Countable(Protocol):
    """A model that can learn and forget in parts."""

    def counter(self, known: bool = False) -> Counter:
        """A counter of rows to learn from scratch or, if ``known``, of rows like those that were learned."""

    def adopt(self, total: Any) -> Self:
        """Let the model be the one that has learned all parts, and derive what follows from them."""

    def subtract(self, part: Any) -> Self:
        """Let the model forget the rows of a part, as if it had never learned them."""


@dataclass(frozen=True)
class PartCounter:
    """Counts rows of a classifier; a part is a `Learned`."""

    rows: RowKind[Any]
    encode: LabelEncoder  # encode(y, classes, strict)

    def count(self, X: object, y: Any, sample_weight: Any = None) -> Learned | None:
        """What these rows teach; None if they weigh nothing, in which case they only declare classes, if anything."""
        return count(self.rows, X, partial(self.encode, y), sample_weight)

    def count_encoded(self, X: object, classes: Array, group: Array) -> Learned | None:
        """The same for labels that are encoded already: the number of each row's class among sorted classes."""
        return count(self.rows, X, lambda: (classes, group))

    def make_part(self, X: object, statistics: ModelStatistics) -> Learned | None:
        """Statistics that were counted elsewhere, of rows with the columns of ``X``."""
        return settle(Learned(self.rows.read(X, "fit")[0], statistics), statistics)

    def find_open_columns(self, names: Sequence[str], strings: Sequence[str], dates: Sequence[str]) -> list[str]:
        """The columns whose kinds only all rows can decide."""
        return self.rows.find_open_columns(names, strings, dates)

    def find_zones(self) -> dict[str, str]:
        """For each column of dates the time zone that they are counted in."""
        return self.rows.find_zones()

    def with_profiles(self, names: Sequence[str], profiles: Profiles) -> PartCounter:
        """The same for columns of these names."""
        return replace(self, rows=self.rows.with_profiles(names, profiles))


def check_countable(model: object) -> None:
    """Raise an error unless a model can be learned in parts."""
    if not isinstance(model, Countable):
        raise KindError(
            f"a {type(model).__name__} cannot be learned in parts; use NaiveBayes, TextClassifier, "
            "BayesianLinearRegression or a class of priory.naive_bayes."
        )
    if getattr(model, "alpha", None) == "loo":
        raise DataError("alpha='loo' is chosen by fit, from all rows at once; give alpha a number.")


def add_two(part: Any, other: Any) -> Any:
    """The sum of two parts, within the declared limits."""
    total = part + other
    return total.prune() if isinstance(total, Learned) else total


def add_parts(parts: Iterable[Any], add: Callable[[Any, Any], Any] = add_two) -> Any:
    """The sum of parts, one after the other in memory; None if there are none."""
    total = None
    for part in parts:
        if part is not None:
            total = part if total is None else add(total, part)
    return total


def check_total(total: Learned | None) -> Learned:
    """The sum of all parts; an error if no row was learned."""
    if total is None:
        raise DataError("there are no rows to learn from; give rows with a weight above zero.")
    return total


def describe_unlearned_part(error: NotLearnedError) -> NotLearnedError:
    """The error for a part that cannot be subtracted."""
    reason = error.subject or "a row"
    return NotLearnedError(
        f"{reason} was not learned, or not this often; forget only rows that were learned; the model is unchanged."
    )
