"""What a family is: a likelihood together with its conjugate prior.

A family's fields are the hyperparameters of its prior, so an instance *is* a state of belief, and learning is

    posterior = prior + statistics          # in code: ``family + family.observe(x)``

whose result is an instance of the same class. The evidence is then defined once for all families: how much the
normaliser of the belief grew.

    ColumnFamily    what naive Bayes asks of whatever explains a block of columns
    Family          a ColumnFamily that is a belief about the parameters of one likelihood
    ArrayFamily     a Family whose record of a block is arrays (classes, columns)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, Literal, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from priory.core.column_kernels import assign_single_class
from priory.core.display_table import DisplayTable, EstimateTable
from priory.core.exact_sums import ExactSums
from priory.core.logspace import log
from priory.core.sharding import ColumnSubset, score_shards
from priory.core.statistics import Statistics
from priory.core.typing import Array, ColumnKind
from priory.errors import DataError
from priory.families.open_columns import OpenColumns, OpenRecord
from priory.families.value_counts import ValueCounts

Estimate = Literal["ml", "map", "mean", "predictive"]
ESTIMATES: tuple[str, ...] = ("ml", "map", "mean", "predictive")

BlockT = TypeVar("BlockT")  # the record of a block of columns
CellsT = TypeVar("CellsT")  # the cells of a block of columns
StatisticsT = TypeVar("StatisticsT", bound=Statistics)  # the record a belief learns from
ParametersT = TypeVar("ParametersT")  # the parameters of a likelihood

SumsT = TypeVar("SumsT", Array, ExactSums)  # sums of each class and column

NumberBlock: TypeAlias = "Array | ColumnSubset"  # numbers (rows, columns), or some columns of them


class GraphBuilder(Protocol):
    """Builds an ONNX graph: a call adds a node with these inputs and returns the name of its output."""

    def __call__(self, operator: str, *inputs: str | float | Array, output: str = "", **attributes: object) -> str: ...


class ColumnFamily(ABC, Generic[BlockT, CellsT]):
    """Interface of a block of columns: collect statistics, score new cells for each class.

    Everything that depends on the family is here: no other module asks which family it is.
    """

    accepted_values: ClassVar[str] = ""  # what a column must hold for this family to fit it, for people
    is_discrete: ClassVar[bool] = False  # whether values have probabilities rather than a density
    parameter_name: ClassVar[str] = "parameter"  # of a family with one parameter
    has_covariance: ClassVar[bool] = False  # whether several such columns are a multivariate Gaussian together
    column_kind: ClassVar[ColumnKind] = "number"  # what the cells of its columns are read as
    whole_row_estimator: ClassVar[str] = ""  # what to use for a family of whole rows, which is not for one column

    @property
    def accepts_new_values(self) -> bool:
        """Whether a column may show values that were neither learned nor declared."""
        return True

    @classmethod
    def accepts(cls, values: Array) -> Array:
        """Whether the family gives each number a positive probability; the answer for NaN does not matter."""
        return np.ones(np.shape(values), dtype=bool)

    @classmethod
    def with_alpha(cls, alpha: float) -> Self | type[Self]:
        """The family with ``alpha`` virtual examples of each value; unchanged if it does not count values."""
        return cls

    def count_virtual_rows(self, column: int) -> float | None:
        """The virtual rows of each value of a column; None if the family does not count values, or not evenly."""
        return None

    @abstractmethod
    def observe(self, x: CellsT, group: Array | None = None, groups: int = 1, weight: Array | None = None) -> BlockT:
        """The statistics of the rows; ``group`` (rows,) is the class number of each row, 0 .. groups - 1."""

    @classmethod
    @abstractmethod
    def empirical_prior(cls, statistics: BlockT) -> Self:
        """A weak prior on the scale of the data: a function of what all classes saw together (empirical Bayes)."""

    @abstractmethod
    def log_likelihood(self, statistics: BlockT, x: CellsT, estimate: str) -> Array:
        """Terms (rows, classes, columns): log p(x | class); zero for a missing cell, or a class without rows."""

    @abstractmethod
    def score(self, statistics: BlockT, x: CellsT, estimate: str) -> Array:
        """The terms summed over the columns: (rows, classes), up to what all classes of a row share."""

    def averaged_log_likelihood(
        self, statistics: BlockT, pooled: BlockT, x: CellsT, estimate: str, inclusion: Array
    ) -> Array:
        """Terms of columns that depend on the class with probability ``inclusion``, and otherwise are as ``pooled``."""
        apart, shared = self.log_likelihood(statistics, x, estimate), self.log_likelihood(pooled, x, estimate)
        return np.logaddexp(log(inclusion) + apart, log(1 - inclusion) + shared)

    def averaged_score(self, statistics: BlockT, pooled: BlockT, x: CellsT, estimate: str, inclusion: Array) -> Array:
        """The averaged terms summed over the columns: (rows, classes), up to what all classes of a row share."""
        return self.averaged_log_likelihood(statistics, pooled, x, estimate, inclusion).sum(axis=-1)

    @abstractmethod
    def evidence(self, statistics: BlockT) -> Array:
        """Log evidence of each column, over all classes; -inf where a value was seen that the family cannot hold."""

    # -- one row at a time, tables, figures, export ----------------------------------------------------------------

    def open(self, statistics: BlockT) -> OpenColumns:
        """The columns opened for single rows; a family whose counts can change in place is quicker than its record."""
        return OpenRecord(self, statistics)

    @abstractmethod
    def n_parameters(self, statistics: BlockT) -> int:
        """The number of free parameters of one class, over all columns of the block."""

    def log2_outcomes(self, statistics: BlockT) -> float | None:
        """log2 of the number of different rows that the block can hold; None if there is no limit."""
        return None

    @abstractmethod
    def tabulate(self, statistics: BlockT, estimate: str) -> list[EstimateTable]:
        """For each column its probabilities or parameters."""

    def list_outcomes(self, x: Array) -> Array:
        """The values at which to draw the probabilities of a discrete family: a few more than were observed."""
        return np.arange(max(x.min() - 2, 0), x.max() + 3)

    def value_counts(self, statistics: BlockT) -> tuple[ValueCounts, ...] | None:
        """For each column how often each value was seen; None if the family does not count values."""
        return None

    def onnx_terms(self, graph: GraphBuilder, cells: str, statistics: BlockT, estimate: str) -> str | None:
        """Terms (rows, classes, columns) of ``cells`` (rows, 1, columns) as nodes of a graph, up to what classes share.

        Terms of missing cells are not used. None if the family cannot be exported.
        """
        return None


AnyFamily: TypeAlias = ColumnFamily[Any, Any]  # a family of a block whose records and cells are known to it alone


class Family(ColumnFamily[BlockT, CellsT], Generic[StatisticsT, ParametersT, BlockT, CellsT]):
    """A likelihood with its conjugate prior.

    ``x`` is one column (rows,) or a block of columns (rows, columns). Without ``group`` a record describes all rows;
    with it, the record's first axis is the class. A NaN cell is missing and leaves no trace.
    """

    def __eq__(self, other: object) -> bool:
        """Beliefs are the same if their hyperparameters are."""
        own, others = vars(self), vars(other) if type(other) is type(self) else {}
        return self is other or (own.keys() == others.keys() and all(np.array_equal(own[k], others[k]) for k in own))

    def __hash__(self) -> int:
        return hash(type(self))

    def _repr_html_(self) -> str:
        """The hyperparameters as a table."""
        rows = tuple((name, _shorten_value(value)) for name, value in vars(self).items())
        return DisplayTable(type(self).__name__, ("hyperparameter", "value"), rows)._repr_html_()

    # -- learning ------------------------------------------------------------------------------------------------

    @abstractmethod
    def posterior(self, statistics: StatisticsT) -> Self:
        """The belief after seeing the statistics: the same family with updated hyperparameters."""

    def __add__(self, statistics: StatisticsT) -> Self:
        return self.posterior(statistics)

    # -- estimates -----------------------------------------------------------------------------------------------

    @abstractmethod
    def ml(self, statistics: StatisticsT) -> ParametersT:
        """The parameters under which the statistics are most probable (NaN where nothing was seen)."""

    @abstractmethod
    def mode(self) -> ParametersT:
        """The most probable parameters under this belief (NaN where no single value is the most probable)."""

    @abstractmethod
    def mean(self) -> ParametersT:
        """The expected parameters under this belief."""

    def quantile(self, q: float) -> ParametersT:
        """The value below which each parameter lies with probability ``q`` under this belief."""
        raise DataError(f"{type(self).__name__} has no quantiles in closed form; use draw and np.quantile.")

    def credible_interval(self, mass: float = 0.95) -> tuple[ParametersT, ParametersT]:
        """The central interval that holds each parameter with probability ``mass``: its lower and its upper end."""
        if not 0 < mass < 1:
            raise DataError(f"mass is {mass!r}; give a probability above 0 and below 1.")
        return self.quantile((1 - mass) / 2), self.quantile((1 + mass) / 2)

    def map(self, statistics: StatisticsT) -> ParametersT:
        """The most probable parameters after seeing the statistics."""
        return (self + statistics).mode()

    def parameters(self, statistics: StatisticsT, estimate: str) -> ParametersT:
        """The point estimate called ``ml``, ``map`` or ``mean``."""
        if estimate == "ml":
            return self.ml(statistics)
        return (self + statistics).mode() if estimate == "map" else (self + statistics).mean()

    # -- probabilities -------------------------------------------------------------------------------------------

    @abstractmethod
    def log_density(self, x: ArrayLike, parameters: ParametersT) -> Array:
        """Log probability (density) of ``x`` given parameters."""

    @abstractmethod
    def log_predictive(self, x: ArrayLike) -> Array:
        """Log probability (density) of one new ``x``, the parameters integrated out under this belief."""

    @abstractmethod
    def log_normaliser(self) -> Array:
        """Log of the integral of the unnormalised belief over all parameters."""

    def log_base(self, statistics: StatisticsT) -> Array | float:
        """The part of the log likelihood that no parameter touches."""
        return 0.0

    def log_evidence(self, statistics: StatisticsT) -> Array:
        """Log probability of everything seen, the parameters integrated out: how well the family *explains* it."""
        return np.asarray((self + statistics).log_normaliser() - self.log_normaliser() + self.log_base(statistics))

    # -- sampling ------------------------------------------------------------------------------------------------

    @abstractmethod
    def draw(self, rng: np.random.Generator, size: int) -> ParametersT:
        """``size`` draws of the parameters under this belief."""

    @abstractmethod
    def sample(self, parameters: ParametersT, rng: np.random.Generator, size: int) -> Array:
        """``size`` draws of ``x`` given parameters."""


class ArrayFamily(Family[StatisticsT, ParametersT, StatisticsT, Array]):
    """A family of numbers whose record of a block is arrays (classes, columns): one belief for each of them."""

    def log_likelihood(self, statistics: StatisticsT, x: Array, estimate: str) -> Array:
        cells = np.asarray(x, dtype=float)[:, None]  # (rows, 1, columns)
        if estimate == "predictive":
            terms = statistics.derive("posterior", self.posterior, self).log_predictive(cells)
        else:
            parameters = statistics.derive("parameters", lambda s: self.parameters(s, estimate), self, estimate)
            terms = self.log_density(cells, parameters)
        return np.where(np.isnan(cells) | np.isnan(terms), 0.0, terms)

    def score(self, statistics: StatisticsT, x: NumberBlock, estimate: str) -> Array:
        return score_shards(
            lambda part: self.log_likelihood(statistics, x[part], estimate).sum(axis=-1), len(x), len(statistics.n)
        )

    def averaged_score(
        self, statistics: StatisticsT, pooled: StatisticsT, x: NumberBlock, estimate: str, inclusion: Array
    ) -> Array:
        return score_shards(
            lambda part: self.averaged_log_likelihood(statistics, pooled, x[part], estimate, inclusion).sum(axis=-1),
            len(x),
            len(statistics.n),
        )

    def n_parameters(self, statistics: StatisticsT) -> int:
        """The number of parameters of the likelihood, for each column."""
        return statistics.n.shape[-1] * len(self._name_parameters(statistics, "ml"))

    def tabulate(self, statistics: StatisticsT, estimate: str) -> list[EstimateTable]:
        named = self._name_parameters(statistics, "mean" if estimate == "predictive" else estimate)
        values = np.stack([np.asarray(value, dtype=float) for value in named.values()], axis=-1)
        symbol = "P" if self.is_discrete else "p"
        return [EstimateTable(list(named), values[:, j], symbol=symbol) for j in range(values.shape[1])]

    def _name_parameters(self, statistics: StatisticsT, estimate: str) -> dict[str, Array]:
        """The parameters (classes, columns) by name: the fields of a named tuple, or a single array."""
        found = self.parameters(statistics, estimate)
        return found._asdict() if hasattr(found, "_asdict") else {self.parameter_name: np.asarray(found)}

    def evidence(self, statistics: StatisticsT) -> Array:
        outside: Array | None = getattr(statistics, "outside", None)
        evidence = np.atleast_2d(self.log_evidence(statistics)).sum(axis=0)
        return evidence if outside is None else np.where(outside.sum(axis=0) > 0, -np.inf, evidence)


class GroupedRows:
    """Rows laid out for counting: a 2-D block, the class of each row, and the shape of the record that comes out."""

    def __init__(self, x: ArrayLike, group: Array | None, groups: int) -> None:
        cells = np.asarray(x)
        self.x = cells.reshape(len(cells), math.prod(cells.shape[1:]))
        self.group = assign_single_class(len(cells)) if group is None else np.ascontiguousarray(group, dtype=np.int32)
        self.groups = 1 if group is None else groups
        self._shape = (() if group is None else (groups,)) + cells.shape[1:]

    def reshape_sums(self, sums: SumsT) -> SumsT:
        return sums.reshape(self._shape)


def _shorten_value(value: object) -> str:
    if isinstance(value, np.ndarray) and value.size > 6:
        return f"array of shape {value.shape}"
    return str(value.tolist() if isinstance(value, np.ndarray) else value)


def nan_where_zero(n: Array) -> Array:
    """``n`` with zero as NaN: dividing by it gives NaN, for unknown, and never warns."""
    return np.where(n > 0, n, np.nan)
