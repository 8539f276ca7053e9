"""Rows of dense or sparse arrays, checked as in scikit-learn, counted and scored; and classifiers of counts."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from numbers import Real
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from priory.core.column_kernels import sum_by_class, sum_exactly
from priory.core.estimator_methods import wrap_named_row
from priory.core.exact_sums import ExactSums
from priory.core.input_guard import MAX_SAMPLE_WEIGHT, check_same_columns, guard_input
from priory.core.logspace import log
from priory.core.sharding import map_shards, score_shards, split_rows
from priory.core.statistics import Statistics, count_columns, list_record_types
from priory.errors import DataError, PrioryWarning
from priory.estimators.learned_classifier import LearnedClassifier
from priory.families.moments import Moments
from priory.learning.row_kind import Parameters, Purpose, RowKind
from priory.model.model_statistics import ModelStatistics, check_class_probabilities, log_class_prior

Matrix = Array | sparse.csr_array
BlockTransform = Callable[[Array], Array]
CellsResultT = TypeVar("CellsResultT")


def read_matrix(estimator: BaseEstimator, X: object, reset: bool) -> Matrix:
    """Validate a matrix of numbers, dense or CSR; NaN and infinity are allowed.

    It stays in its array library, if scikit-learn is configured to accept it.
    """
    with guard_input(X):
        x: Matrix = validate_data(estimator, X, accept_sparse="csr", ensure_all_finite=False, reset=reset)
        if getattr(x.dtype, "kind", "f") not in "biuf":
            x = x.astype(float)
    return _make_canonical(x) if sparse.issparse(x) else x


def read_array(estimator: BaseEstimator, X: object, reset: bool) -> Array:
    """Validate a dense matrix of numbers; NaN and infinity are allowed."""
    with guard_input(X):
        x: Array = validate_data(estimator, X, ensure_all_finite=False, reset=reset)
        if getattr(x.dtype, "kind", "f") not in "biuf":
            x = x.astype(float)
    return np.asarray(x)


def _make_canonical(x: sparse.csr_array) -> sparse.csr_array:
    """Sum duplicate entries of a CSR matrix, in a copy."""
    if not x.has_canonical_format:
        x = x.copy()
        x.sum_duplicates()
    return x


def count_classes(group: Array, weight: Array | None, classes: Array) -> Array:
    """Sum the weights of the rows of each class: (classes,)."""
    return np.bincount(group, weight, minlength=len(classes)).astype(float)


def log_declared_prior(n: Array, class_prior: ArrayLike | None, fit_prior: bool = True) -> Array:
    """Log probability of each class: as declared, estimated from the rows ``n`` of each class, or uniform."""
    if class_prior is not None:
        return log_class_prior(n, check_class_probabilities(class_prior, len(n)))
    return log_class_prior(n, "estimated" if fit_prior else "uniform", rows_of_empty_class=0.0)


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
        fit_prior = getattr(self.parameters, "fit_prior", True)
        return log_declared_prior(self.statistics.n, find_declared_prior(self.parameters), fit_prior)

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
        return rows, ArrayBatch(rows.convert(x))

    def validate(self, X: object, is_first: bool) -> tuple[Self, Any]:
        """Run scikit-learn's checks; return the rows with their columns, and the cells."""
        # scikit-learn's checks read and set attributes of an estimator; this value is frozen
        checker = make_checker_class(self.estimator)()
        if not is_first:
            vars(checker).update(self.attributes)
        x: Any = read_matrix(checker, X, is_first) if self.takes_sparse else read_array(checker, X, is_first)
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
        n = count_classes(group, weight, classes)
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


CountsResultT = TypeVar("CountsResultT")
Alpha = float | Array  # one number, or one for each column

MIN_ALPHA = 1e-10
MAX_MULTIPLICATIONS_AT_ONCE = 1 << 18
MAX_COUNT_IN_PRODUCT = 1e290  # beyond it a sum over the columns would overflow; the decision is the same


class CountModel(ArrayModel):
    """Additive smoothing: ``alpha`` virtual examples of each value are added when a probability is computed."""

    def derive(self, name: str, function: Callable[[Any, Alpha], CountsResultT], *depends_on: object) -> CountsResultT:
        """Compute ``function(records, alpha)``, cached for these statistics, this alpha and ``depends_on``."""
        alpha = compute_alpha(self.parameters, self.rows.n_columns)
        return self.statistics.derive(
            name, lambda statistics: function(statistics.parts, alpha), np.asarray(alpha).tobytes(), *depends_on
        )


class CountRows(ArrayRows):
    """Rows whose cells are counted."""

    def count(self, batch: ArrayBatch, classes: Array, group: Array, weight: Array | None) -> ModelStatistics:
        check_alpha(self.parameters, self.n_columns)
        return super().count(batch, classes, group, weight)

    def find_fault(self, statistics: ModelStatistics) -> str | None:
        compute_alpha(self.parameters, self.n_columns)
        return super().find_fault(statistics)


@dataclass(eq=False, repr=False, kw_only=True)
class CountNB(LearnedClassifier):
    """Parameters and attributes common to classifiers of counts."""

    __slots__ = ()

    alpha: float | ArrayLike = 1.0
    force_alpha: bool = True
    fit_prior: bool = True
    class_prior: ArrayLike | None = None

    @property
    def class_log_prior_(self) -> Array:
        """log p(c)."""
        return np.asarray(self._learned().model().log_prior())

    @property
    def n_features_in_(self) -> int:
        """The number of columns."""
        return int(vars(self).get("n_features_in_", 0)) or super().n_features_in_

    @n_features_in_.setter
    def n_features_in_(self, n_columns: int) -> None:
        self.__dict__["n_features_in_"] = n_columns  # scikit-learn's tests declare it before they call _check_alpha

    def _check_alpha(self) -> Alpha:
        """Return the pseudo-counts in use, under the name that scikit-learn's classifiers have for it."""
        return check_alpha(Parameters(**self.get_params(deep=False)), getattr(self, "n_features_in_", 0))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = True
        return tags


def compute_alpha(parameters: Parameters, n_columns: int) -> Alpha:
    """Check and return the pseudo-count: one number, or one for each column."""
    declared = parameters.alpha
    alpha = float(declared) if isinstance(declared, Real) else np.asarray(declared, dtype=float)
    if np.ndim(alpha) and np.shape(alpha) != (n_columns,):
        found = f"Got {np.size(alpha)} elements instead of {n_columns}."
        raise DataError(f"When alpha is an array, it should contains `n_features`. {found}")
    if not (np.min(alpha) >= 0 and np.max(alpha) <= MAX_SAMPLE_WEIGHT):
        least = "All values in alpha must be greater than 0, or 0"
        raise DataError(f"{least}, and at most {MAX_SAMPLE_WEIGHT:g}; alpha is {declared}.")
    return alpha if parameters.force_alpha else np.maximum(alpha, MIN_ALPHA)


def check_alpha(parameters: Parameters, n_columns: int) -> Alpha:
    """Return the pseudo-counts in use; warn if they were raised to a positive number."""
    alpha = compute_alpha(parameters, n_columns)
    if not parameters.force_alpha and np.min(parameters.alpha) < MIN_ALPHA:
        raised = f"setting alpha = {MIN_ALPHA:.1e}. Use `force_alpha=True` to keep alpha unchanged."
        warnings.warn(f"alpha too small will result in numeric errors, {raised}", stacklevel=3)
    return alpha


def log_shares(smoothed: Array) -> Array:
    """Log share of each value in its class, along the last axis; equal shares where all are 0, the limit of alpha to 0.

    >>> np.exp(log_shares(np.array([[3.0, 1.0], [0.0, 0.0]]))).round(4).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    total = smoothed.sum(axis=-1, keepdims=True)
    return np.where(
        total > 0, log(smoothed) - np.log(np.where(total > 0, total, 1.0)), -np.log(max(smoothed.shape[-1], 1))
    )


def score_matrix(x: Matrix, table: Array, constant: Array, transform: Callable[[Array], Array]) -> Array:
    """``transform(x) @ table.T + constant``, where 0 * -inf = 0, shard by shard: (rows, classes)."""
    if not isinstance(x, np.ndarray):
        return _multiply(transform_sparse(x, transform), table) + constant
    # pieces so small that BLAS multiplies them on one core: the shards already use all cores
    step = max(64, MAX_MULTIPLICATIONS_AT_ONCE // table.size)

    def score(part: slice) -> Array:
        block = np.asarray(transform(x[part]), dtype=float)
        pieces = [_multiply(block[i : i + step], table) + constant for i in range(0, max(len(block), 1), step)]
        return np.concatenate(pieces)

    return score_shards(score, len(x), len(table))


def _multiply(x: Matrix, table: Array) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        # (rows, columns) @ (columns, classes); 0 * -inf would be NaN
        product = np.asarray(x @ table.T)
    return product if np.isfinite(product).all() else _multiply_with_infinities(x, table)


def _multiply_with_infinities(x: Matrix, table: Array) -> Array:
    """``x @ table.T`` where ``table`` (classes, columns) holds -inf, or large counts overflow."""
    impossible = np.isneginf(table)
    bounded = np.minimum(x, MAX_COUNT_IN_PRODUCT) if isinstance(x, np.ndarray) else x.minimum(MAX_COUNT_IN_PRODUCT)
    product = np.asarray(bounded @ np.where(impossible, 0.0, table).T)
    # (rows, classes): whether a row has any token that a class rules out
    return np.where((x != 0) @ impossible.T.astype(float) > 0, -np.inf, product)
