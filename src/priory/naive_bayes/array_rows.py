"""Rows of dense or sparse arrays, checked as in scikit-learn, counted and scored; and classifiers of counts."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy import ndarray as Array
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from priory.core.column_kernels import sum_by_class, sum_exactly
from priory.core.estimator_methods import wrap_named_row
from priory.core.exact_sums import ExactSums
from priory.core.input_guard import check_same_columns, guard_input
from priory.core.sharding import map_shards, split_rows
from priory.core.statistics import Statistics, count_columns, list_record_types
from priory.errors import DataError, PrioryWarning
from priory.families.moments import Moments
from priory.learning.row_kind import Parameters, Purpose, RowKind
from priory.model.model_statistics import ModelStatistics, check_class_probabilities, log_class_prior

Matrix = Array | sparse.csr_array
BlockTransform = Callable[[Array], Array]
CellsResultT = TypeVar("CellsResultT")


def sum_columns(x: Matrix, group: Array, weight: Array | None, groups: int, transform: BlockTransform) -> Array:
    """Weighted column sums of ``transform(x)`` for each class: (groups, columns)."""
    if isinstance(x, np.ndarray):
        return sum_by_class(x, group, weight, groups, transform)
    cells = transform_sparse(x, transform)
    rows = np.arange(x.shape[0])
    ones = np.ones(len(rows)) if weight is None else weight
    # an indicator matrix (groups, rows) times the cells (rows, columns)
    return np.asarray((sparse.csr_array((ones, (group, rows)), shape=(groups, len(rows))) @ cells).todense())


def transform_sparse(x: sparse.csr_array, transform: BlockTransform) -> sparse.csr_array:
    """Apply ``transform`` to the stored cells of a sparse matrix."""
    return sparse.csr_array((np.asarray(transform(x.data), dtype=float), x.indices, x.indptr), shape=x.shape)


MAX_MULTIPLICATIONS_AT_ONCE = 1 << 18


def map_pieces(function: Callable[[Array], Array], block: Array, width: int) -> Array:
    """Multiply the rows of a block by matrices of ``width`` cells, in pieces so small that BLAS uses one core.

    The shards that blocks belong to already use all cores.
    """
    step = max(64, MAX_MULTIPLICATIONS_AT_ONCE // width)
    return np.concatenate([function(block[i : i + step]) for i in range(0, max(len(block), 1), step)])


# -- cells that cannot be used -----------------------------------------------------------------------------------------


def check_finite(x: Matrix) -> None:
    """Raise if a cell is NaN or infinite."""
    if not all(map_cells(is_finite, x)):
        raise_not_finite(x)


def map_cells(function: Callable[[Array], CellsResultT], x: Matrix) -> Iterable[CellsResultT]:
    """Apply ``function`` to shards of the cells, in a sparse matrix of the stored ones."""
    cells = x if isinstance(x, np.ndarray) else x.data
    return map_shards(lambda part: function(cells[part]), len(cells))


def is_finite(block: Array) -> bool:
    """Whether all cells are finite; tested by their sum first, which is infinite or NaN if a cell is."""
    if block.dtype.kind != "f":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.add.reduce(block, axis=None))) or bool(np.isfinite(block).all())


def raise_not_finite(x: Matrix) -> None:
    """Raise for the first cell that is NaN, or else infinite; return if there is none."""
    missing, infinite = find_first_cell(x, np.isnan), find_first_cell(x, np.isinf)
    if missing:
        remedy = "fill it, or use priory.NaiveBayes, which leaves missing cells out."
        raise DataError(f"Input X contains NaN: row {missing[0]}, column {missing[1]}; {remedy}")
    if infinite:
        at = f"row {infinite[0]}, column {infinite[1]}"
        raise DataError(f"Input X contains infinity or a value too large for dtype('float64'): {at}.")


def make_count_checker(x: Matrix, name: str) -> BlockTransform:
    """Make a function that returns a block of ``x`` unchanged, or raises if a cell is negative, NaN or infinite."""

    def check_block(block: Array) -> Array:
        if block.size and not (block.min() >= 0 and (block.dtype.kind != "f" or block.max() < np.inf)):
            raise_not_finite(x)
            raise_negative(x, name)
        return block

    return check_block


def raise_negative(x: Matrix, name: str) -> None:
    """Raise for the first negative cell; return if there is none."""
    cell = find_first_cell(x, lambda v: v < 0)
    if cell:
        row, column, value = cell
        where = f"row {row}, column {column} holds {value:g}"
        raise DataError(f"Negative values in data passed to {name} (input X): {where}; counts are 0 or more.")


def warn_of_fractions(x: Matrix) -> None:
    """Warn if a number is not whole; scikit-learn's CategoricalNB does not warn."""

    def is_fraction(v: Array) -> Array:
        return np.asarray(v != np.floor(v))

    if x.dtype.kind != "f" or not any(map_cells(lambda v: bool(is_fraction(v).any()), x)):
        return
    row, column, value = find_first_cell(x, is_fraction) or (0, 0, 0.0)
    found = f"row {row}, column {column} holds {value:g}, which is not a whole number"
    warnings.warn(f"{found}; fractions are cut off: round or bin the column first.", PrioryWarning, stacklevel=2)


def find_first_cell(x: Matrix, is_bad: Callable[[Array], Array]) -> tuple[int, int, float] | None:
    """Find row, column and value of the first cell that ``is_bad``."""
    if not isinstance(x, np.ndarray):
        # COO has the row and the column of every stored cell
        cells = x.tocoo()
        at = np.flatnonzero(is_bad(cells.data))
        return (int(cells.row[at[0]]), int(cells.col[at[0]]), cells.data[at[0]]) if len(at) else None
    for part in split_rows(len(x)):
        hits = np.argwhere(is_bad(x[part]))
        if len(hits):
            row, column = part.start + int(hits[0, 0]), int(hits[0, 1])
            return row, column, x[row, column]
    return None


MAX_DENSE_CELLS = 1 << 22  # of sparse rows that are made dense at once: 32 MiB


def observe_sparse_moments(x: sparse.csr_array, group: Array, weight: Array | None, groups: int) -> Moments:
    """Count the statistics of `priory.families.Gaussian`; every cell must be finite."""
    shape = groups, x.shape[1]
    row = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))  # (cells,): the row of each stored cell
    place = (group[row].astype(np.int64) * x.shape[1] + x.indices).astype(np.int32)  # (cells,): class and column
    values = np.asarray(x.data, dtype=float)[:, None]
    # one exact sum for each class and column; zeros that are not stored add nothing
    stored = sum_exactly(values, place, None if weight is None else weight[row], groups * x.shape[1], squares=True)
    # weights are summed over all rows, also over cells that are not stored
    rows = sum_exactly(np.zeros((x.shape[0], 1)), np.asarray(group, dtype=np.int32), weight, groups)
    exact_n = ExactSums.zeros(shape) + rows.weight  # the same for every column
    return Moments(exact_n.to_floats(), exact_n, stored.first.reshape(shape), stored.second.reshape(shape))


def split_sparse_rows(x: sparse.csr_array) -> Iterator[sparse.csr_array]:
    """Split rows into blocks small enough to be made dense."""
    step = max(1, MAX_DENSE_CELLS // max(x.shape[1], 1))
    return (x[start : start + step] for start in range(0, max(x.shape[0], 1), step))


@dataclass(frozen=True)
class ArrayBatch:
    """A dense or sparse matrix of cells, (rows, columns)."""

    cells: Any

    @property
    def rows(self) -> int:
        return int(self.cells.shape[0])

    def take_rows(self, rows: Array) -> ArrayBatch:
        """Select rows by position."""
        return ArrayBatch(self.cells[rows])


@dataclass(frozen=True, eq=False)
class ArrayModel(ABC):
    """A model computed from declared parameters and statistics."""

    rows: ArrayRows
    statistics: ModelStatistics

    @property
    def parameters(self) -> Parameters:
        """The declared parameters."""
        return self.rows.parameters

    def log_prior(self) -> Array:
        """(classes,): log p(c), also the answer where every class has probability 0."""
        n, declared = self.statistics.n, find_declared_prior(self.parameters)
        if declared is not None:
            return log_class_prior(n, check_class_probabilities(declared, len(n)))
        is_estimated = getattr(self.parameters, "fit_prior", True)
        return log_class_prior(n, "estimated" if is_estimated else "uniform", rows_of_empty_class=0.0)

    @abstractmethod
    def log_joint(self, cells: Any) -> Array:
        """(rows, classes): log p(c, x)."""


@dataclass(frozen=True, eq=False)
class ArrayRows(RowKind[ArrayBatch]):
    """Rows of arrays: the parameters of an estimator, and its columns."""

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
        """Check parameters that do not depend on the columns; `count` checks the others."""

    def read(self, X: object, purpose: Purpose, learned: ModelStatistics | None = None) -> tuple[Self, ArrayBatch]:
        rows, x = self.validate(X, purpose == "fit")
        return rows, ArrayBatch(rows.convert(x if sparse.issparse(x) else np.asarray(x)))

    def validate(self, X: object, is_first: bool) -> tuple[Self, Any]:
        """Run scikit-learn's checks; return the rows with their columns, and the cells, dense or CSR.

        NaN and infinity are allowed. Cells stay in their array library, if scikit-learn is configured to accept it.
        """
        # scikit-learn's checks read and set attributes of an estimator; this value is frozen
        checker = make_checker_class(self.estimator)()
        if not is_first:
            vars(checker).update(self.attributes)
        with guard_input(X):
            accepted = "csr" if self.takes_sparse else False
            x: Any = validate_data(checker, X, accept_sparse=accepted, ensure_all_finite=False, reset=is_first)
            if getattr(x.dtype, "kind", "f") not in "biuf":
                x = x.astype(float)
        if not getattr(x, "has_canonical_format", True):  # a sparse matrix with duplicate entries
            x = x.copy()
            x.sum_duplicates()
        known = vars(checker)
        return self.with_attributes(known) if is_first else self, x

    def convert(self, x: Any) -> Any:
        """Convert cells to the form that is counted; raise for invalid ones."""
        return x

    def wrap_row(self, x: Any, learns: bool) -> object:
        return wrap_named_row(x, self.names, bool(self.n_columns))

    def read_cells(self, batch: ArrayBatch) -> Any:
        return batch.cells

    def count(self, batch: ArrayBatch, classes: Array, group: Array, weight: Array | None) -> ModelStatistics:
        n = np.bincount(group, weight, minlength=len(classes)).astype(float)
        prior = find_declared_prior(self.parameters)
        if prior is not None:
            check_class_probabilities(prior, len(n))
        return ModelStatistics(classes, n, self.count_records(batch.cells, n, group, weight))

    @abstractmethod
    def count_records(self, cells: Any, n: Array, group: Array, weight: Array | None) -> tuple[Statistics, ...]:
        """Count the rows into records; ``n`` (classes,) is the total weight of each class."""

    def join(self, other: Self) -> Self:
        check_same_columns(Parameters(**self.attributes), Parameters(**other.attributes))
        return replace(self, names=other.names) if self.names is None else self

    def model(self, statistics: ModelStatistics) -> ArrayModel:
        return self.model_class(self, statistics)

    def find_fault(self, statistics: ModelStatistics) -> str | None:
        parts = statistics.parts
        if list_record_types(parts) != self.records or any(count_columns(part) != self.n_columns for part in parts):
            return "the records do not match the columns"
        return None


def find_declared_prior(parameters: Parameters) -> Any:
    """The declared probabilities of the classes, or None."""
    return parameters.class_prior if hasattr(parameters, "class_prior") else parameters.priors


@cache
def make_checker_class(name: str) -> type[BaseEstimator]:
    """Make an estimator class of this name for scikit-learn's checks, which read and set its columns."""
    return type(name, (BaseEstimator,), {})
