"""Rows of arrays of numbers: scikit-learn's checks of the columns, and one record or several of all cells."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

from priory.core.model_matching import check_same_columns
from priory.core.registration import count_columns, list_record_types
from priory.core.single_rows import wrap_named_row
from priory.core.statistics import Statistics
from priory.core.typing import Array
from priory.learning.row_kind import Parameters, Purpose, RowKind
from priory.models.class_prior import check_class_probabilities
from priory.models.model_statistics import ModelStatistics
from priory.naive_bayes.input_checks import count_classes, log_declared_prior, read_array, read_matrix


@dataclass(frozen=True)
class ArrayBatch:
    """A dense or sparse matrix of cells, (rows, columns)."""

    cells: Any

    @property
    def rows(self) -> int:
        return int(self.cells.shape[0])

    def take_rows(self, rows: Array) -> ArrayBatch:
        """Some of the rows."""
        return ArrayBatch(self.cells[rows])


@dataclass(frozen=True, eq=False)
class ArrayModel(ABC):
    """Declared parameters and statistics; every attribute and answer is a function of them."""

    rows: ArrayRows
    statistics: ModelStatistics

    @property
    def parameters(self) -> Parameters:
        """The declared parameters."""
        return self.rows.parameters

    def log_prior(self) -> Array:
        """log p(c): the answer where every class is ruled out."""
        fit_prior = getattr(self.parameters, "fit_prior", True)
        return log_declared_prior(self.statistics.n, find_declared_prior(self.parameters), fit_prior)

    @abstractmethod
    def log_joint(self, cells: Any) -> Array:
        """log p(c, x) for each row and class."""


@dataclass(frozen=True, eq=False)
class ArrayRows(RowKind[ArrayBatch]):
    """Rows of arrays: the parameters of a drop-in, and its columns."""

    estimator: ClassVar[str]  # its name, in messages
    records: ClassVar[tuple[type, ...]] = ()  # the types of the records
    model_class: ClassVar[type[ArrayModel]]
    takes_sparse: ClassVar[bool] = True

    parameters: Parameters
    n_columns: int = 0
    names: Array | None = field(default=None, kw_only=True)

    @property
    def attributes(self) -> dict[str, Any]:
        known: dict[str, Any] = {"n_features_in_": self.n_columns} if self.n_columns else {}
        return known if self.names is None else known | {"feature_names_in_": self.names}

    def with_attributes(self, attributes: Mapping[str, Any]) -> Self:
        return replace(self, n_columns=attributes["n_features_in_"], names=attributes.get("feature_names_in_"))

    def check(self) -> None:
        """The parameters are checked with the columns, in `count`, unless they can be checked without."""

    def read(self, X: object, purpose: Purpose, learned: ModelStatistics | None = None) -> tuple[Self, ArrayBatch]:
        rows, x = self.validate(X, purpose == "fit")
        return rows, ArrayBatch(rows.convert(x))

    def validate(self, X: object, is_first: bool) -> tuple[Self, Any]:
        """Columns and cells, after scikit-learn's checks."""
        checker = make_checker_class(self.estimator)()
        if not is_first:
            vars(checker).update(self.attributes)
        x: Any = read_matrix(checker, X, is_first) if self.takes_sparse else read_array(checker, X, is_first)
        known = vars(checker)
        return self.with_attributes(known) if is_first else self, x

    def convert(self, x: Any) -> Any:
        """The cells as they are counted; an error for those that cannot be."""
        return x

    def wrap_row(self, x: Any, learns: bool) -> object:
        return wrap_named_row(x, self.names, bool(self.n_columns))

    def read_cells(self, batch: ArrayBatch) -> Any:
        return batch.cells

    def count(self, batch: ArrayBatch, classes: Array, group: Array, weight: Array | None) -> ModelStatistics:
        n = count_classes(group, weight, classes)
        prior = find_declared_prior(self.parameters)
        if prior is not None:
            check_class_probabilities(prior, len(n))
        return ModelStatistics(classes, n, self.count_records(batch.cells, n, group, weight))

    @abstractmethod
    def count_records(self, cells: Any, n: Array, group: Array, weight: Array | None) -> tuple[Statistics, ...]:
        """The records of the rows; ``n`` (classes,) is the weight of the rows of each class."""

    def join(self, other: Self) -> Self:
        check_same_columns(Parameters(**self.attributes), Parameters(**other.attributes))
        return replace(self, names=other.names) if self.names is None else self

    def model(self, statistics: ModelStatistics) -> ArrayModel:
        return self.model_class(self, statistics)

    def find_fault(self, statistics: ModelStatistics) -> str | None:
        parts = statistics.parts
        if list_record_types(parts) != self.records or any(count_columns(part) != self.n_columns for part in parts):
            return "the records are not those of the columns"
        return None


def find_declared_prior(parameters: Parameters) -> Any:
    """The declared probabilities of the classes, or None."""
    return parameters.class_prior if hasattr(parameters, "class_prior") else parameters.priors


@cache
def make_checker_class(name: str) -> type[BaseEstimator]:
    """An estimator of this name for scikit-learn's checks, which read and set its columns."""
    return type(name, (BaseEstimator,), {})
