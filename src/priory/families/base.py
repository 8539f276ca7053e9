"""A family is a likelihood together with its conjugate prior, and a registry of families by name.

A family's fields are the hyperparameters of its prior, so an instance *is* a state of belief, and learning is

    posterior = prior + statistics          # in code: ``family + family.observe(x)``

whose result is an instance of the same class. The evidence is then defined once for all families: how much the
normaliser of the belief grew.

    ColumnFamily    the interface of a block of columns: collect statistics, score new cells for each class
    Family          a ColumnFamily that is a belief about the parameters of one likelihood
    ArrayFamily     a Family whose statistics of a block are arrays (classes, columns)

The log likelihood of one column is also given as a small formula: a table of bins or values, or a density. Exports walk
these formulas (`priory.export.scoring_plan`). A missing cell contributes nothing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, Self, TypeAlias, TypeVar

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core.column_kernels import assign_single_class
from priory.core.display_table import DisplayTable, EstimateTable
from priory.core.exact_sums import ExactSums
from priory.core.sharding import ColumnSubset, score_shards
from priory.core.statistics import BY_CLASS, Registration, Statistics, add_registration
from priory.core.typing import ColumnKind
from priory.core.value_counts import ValueCounts
from priory.errors import DataError
from priory.families.open_columns import ColumnGuard, OpenColumns, OpenRecord, RecordGuard

# -- the log likelihood of a column as a formula -----------------------------------------------------------------------


Estimate = Literal["ml", "map", "mean", "predictive"]
ESTIMATES: tuple[str, ...] = ("ml", "map", "mean", "predictive")

BlockT = TypeVar("BlockT")  # the record of a block of columns
CellsT = TypeVar("CellsT")  # the cells of a block of columns
StatisticsT = TypeVar("StatisticsT", bound=Statistics)  # the record a belief learns from
ParametersT = TypeVar("ParametersT")  # the parameters of a likelihood

SumsT = TypeVar("SumsT", Array, ExactSums)  # sums of each class and column

NumberBlock: TypeAlias = "Array | ColumnSubset"  # numbers (rows, columns), or some columns of them


@dataclass(frozen=True, eq=False)
class BinTerm:
    """A table over bins; the bin of a number is how many of the cuts it reaches."""

    cuts: Array  # (bins - 1,), increasing
    table: Array  # (classes, bins)


@dataclass(frozen=True, eq=False)
class ValueTerm:
    """A table over values, whose last entry is for all other values."""

    values: Array  # (values,): labels or numbers
    table: Array  # (classes, values + 1)


@dataclass(frozen=True, eq=False)
class DensityTerm:
    """A formula of the number x with parameters of each class.

    "student"   constant - power log(1 + precision z²),  z = x / unit - centre
    "normal"    constant - precision z² / 2
    "gamma"     log Σ_k exp(constant_k + (shape_k - 1) log x - power_k log(1 + x / scale_k)),  x > 0
    "amount"    constant + (shape - 1) log x - rate x,  x > 0
    "events"    lgamma(shape + x) + constant - slope x,  x = 0, 1, 2, ...
    "count"     slope x + constant,  x = 0, 1, 2, ...
    """

    form: str
    parameters: dict[str, Array]  # (classes,) each, or (classes, nodes) for "gamma"
    unit: float = 1.0


ColumnTerm = BinTerm | ValueTerm | DensityTerm


class ColumnFamily(ABC, Generic[BlockT, CellsT]):
    """Interface of a block of columns: collect statistics, score new cells for each class.

    Everything that depends on the family is here: no other module asks which family it is.
    """

    accepted_values: ClassVar[str] = ""  # the values that a column may hold, for error messages
    is_discrete: ClassVar[bool] = False  # whether values have probabilities (True) or a density
    parameter_name: ClassVar[str] = "parameter"  # the heading in tables, if there is one parameter
    has_covariance: ClassVar[bool] = False  # whether such columns can be modelled jointly, with a covariance
    column_kind: ClassVar[ColumnKind] = "number"  # how the cells of a column are parsed
    whole_row_estimator: ClassVar[str] = ""  # the estimator to suggest if the family models whole rows

    @property
    def accepts_new_values(self) -> bool:
        """Whether values that were neither learned nor declared are accepted."""
        return True

    @classmethod
    def accepts(cls, values: Array) -> Array:
        """Whether the family gives each number a positive probability; the result for NaN is not used."""
        return np.ones(np.shape(values), dtype=bool)

    @classmethod
    def with_alpha(cls, alpha: float) -> Self | type[Self]:
        """Return the family with ``alpha`` virtual examples of each value; unchanged if it does not count values."""
        return cls

    def count_virtual_rows(self, column: int) -> float | None:
        """Virtual examples of each value of a column; None if the prior is not symmetric, or has no values to count."""
        return None

    def describe_counting(self) -> dict[str, int]:
        """The declared numbers that decide how a cell is counted, for exported records."""
        return {}

    @abstractmethod
    def observe(self, x: CellsT, group: Array | None = None, groups: int = 1, weight: Array | None = None) -> BlockT:
        """The statistics of the rows; ``group`` (rows,) is the class number of each row, 0 .. groups - 1."""

    @classmethod
    @abstractmethod
    def empirical_prior(cls, statistics: BlockT) -> Self:
        """Choose a weak prior on the scale of the data, from all classes together (empirical Bayes)."""

    @abstractmethod
    def log_likelihood(self, statistics: BlockT, x: CellsT, estimate: str) -> Array:
        """Terms log p(x | class), (rows, classes, columns); zero for missing cells and for classes without rows."""

    @abstractmethod
    def score(self, statistics: BlockT, x: CellsT, estimate: str) -> Array:
        """The terms summed over the columns, shape (rows, classes), up to a constant for each row."""

    @abstractmethod
    def evidence(self, statistics: BlockT) -> Array:
        """Log evidence of each column, over all classes; -inf where a value has probability zero under the family."""

    # -- one row at a time, tables, figures, export ----------------------------------------------------------------

    def open(self, statistics: BlockT) -> OpenColumns:
        """Prepare the columns for row-by-row updates and scores; families override this with faster, mutable counts."""
        return OpenRecord(self, statistics)

    def guard(self, statistics: BlockT, group: int) -> ColumnGuard:
        """Prepare to decide whether single rows of a class can be forgotten."""
        return RecordGuard(self, statistics, group)

    @abstractmethod
    def n_parameters(self, statistics: BlockT) -> int:
        """Number of free parameters of one class, over all columns of the block."""

    def log2_outcomes(self, statistics: BlockT) -> float | None:
        """log2 of the number of distinct rows; None if it is infinite."""
        return None

    @abstractmethod
    def tabulate(self, statistics: BlockT, estimate: str) -> list[EstimateTable]:
        """A table of probabilities or parameters for each column."""

    def list_outcomes(self, x: Array) -> Array:
        """Values at which to plot the probabilities of a discrete family: slightly beyond the observed range."""
        return np.arange(max(x.min() - 2, 0), x.max() + 3)

    def value_counts(self, statistics: BlockT) -> tuple[ValueCounts, ...] | None:
        """Counts of the values of each column; None if the family does not count values."""
        return None

    def column_terms(self, statistics: BlockT, estimate: str) -> list[ColumnTerm] | None:
        """The log likelihood of each column as a formula, up to a constant, for exports; None if there is none."""
        return None


AnyFamily: TypeAlias = ColumnFamily[Any, Any]  # any family, where the types of its statistics and cells do not matter


class Family(ColumnFamily[BlockT, CellsT], Generic[StatisticsT, ParametersT, BlockT, CellsT]):
    """A likelihood with its conjugate prior.

    ``x`` is one column (rows,) or a block of columns (rows, columns). Without ``group`` the statistics describe all
    rows; with it, their first axis is the class. NaN cells are missing values and are not counted.
    """

    def __eq__(self, other: object) -> bool:
        """Whether the classes and all hyperparameters are equal."""
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
        """The same family with the hyperparameters updated by the statistics."""

    def __add__(self, statistics: StatisticsT) -> Self:
        return self.posterior(statistics)

    # -- estimates -----------------------------------------------------------------------------------------------

    @abstractmethod
    def ml(self, statistics: StatisticsT) -> ParametersT:
        """Maximum likelihood parameters (NaN for a class without rows)."""

    @abstractmethod
    def mode(self) -> ParametersT:
        """Mode of the parameters under this belief (NaN if it is not unique)."""

    @abstractmethod
    def mean(self) -> ParametersT:
        """Mean of the parameters under this belief."""

    def quantile(self, q: float) -> ParametersT:
        """The ``q``-quantile of each parameter under this belief."""
        raise DataError(f"{type(self).__name__} has no quantiles in closed form; use draw and np.quantile.")

    def credible_interval(self, mass: float = 0.95) -> tuple[ParametersT, ParametersT]:
        """Lower and upper end of the central interval that contains each parameter with probability ``mass``."""
        if not 0 < mass < 1:
            raise DataError(f"mass is {mass!r}; give a probability above 0 and below 1.")
        return self.quantile((1 - mass) / 2), self.quantile((1 + mass) / 2)

    def map(self, statistics: StatisticsT) -> ParametersT:
        """Maximum a posteriori (MAP) parameters."""
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
        """Log probability (density) of a new ``x``, with the parameters integrated out under this belief."""

    @abstractmethod
    def log_normaliser(self) -> Array:
        """Log of the integral of the unnormalised belief over all parameters."""

    def log_base(self, statistics: StatisticsT) -> Array | float:
        """The part of the log-likelihood that does not depend on the parameters."""
        return 0.0

    def log_evidence(self, statistics: StatisticsT) -> Array:
        """Log marginal likelihood: the probability of the data with the parameters integrated out."""
        return np.asarray((self + statistics).log_normaliser() - self.log_normaliser() + self.log_base(statistics))

    # -- sampling ------------------------------------------------------------------------------------------------

    @abstractmethod
    def draw(self, rng: np.random.Generator, size: int) -> ParametersT:
        """``size`` draws of the parameters under this belief."""

    @abstractmethod
    def sample(self, parameters: ParametersT, rng: np.random.Generator, size: int) -> Array:
        """``size`` draws of ``x`` given parameters."""


class ArrayFamily(Family[StatisticsT, ParametersT, StatisticsT, Array]):
    """A family of numbers whose statistics are arrays (classes, columns), with one belief for each entry."""

    def log_likelihood(self, statistics: StatisticsT, x: Array, estimate: str) -> Array:
        cells = np.asarray(x, dtype=float)[:, None]  # (rows, 1, columns)
        if estimate == "predictive":
            terms = statistics.derive("posterior", self.posterior, self).log_predictive(cells)
        else:
            parameters = statistics.derive("parameters", lambda s: self.parameters(s, estimate), self, estimate)
            terms = self.log_density(cells, parameters)
        # Missing cells, and classes without rows under "ml" (whose parameters are NaN), contribute nothing.
        return np.where(np.isnan(cells) | np.isnan(terms), 0.0, terms)

    def score(self, statistics: StatisticsT, x: NumberBlock, estimate: str) -> Array:
        return score_shards(
            lambda part: self.log_likelihood(statistics, x[part], estimate).sum(axis=-1), len(x), len(statistics.n)
        )

    def n_parameters(self, statistics: StatisticsT) -> int:
        """Number of parameters of the likelihood, summed over the columns."""
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
        # ``outside`` (classes, columns) counts values that the likelihood excludes: one of them rules the family out.
        outside: Array | None = getattr(statistics, "outside", None)
        evidence = np.atleast_2d(self.log_evidence(statistics)).sum(axis=0)
        return evidence if outside is None else np.where(outside.sum(axis=0) > 0, -np.inf, evidence)


class GroupedRows:
    """Input of the counting kernels: cells (rows, columns), the class of each row, and the shape of the result."""

    def __init__(self, x: ArrayLike, group: Array | None, groups: int) -> None:
        cells = np.asarray(x)
        self.x = cells.reshape(len(cells), math.prod(cells.shape[1:]))
        self.group = assign_single_class(len(cells)) if group is None else np.ascontiguousarray(group, dtype=np.int32)
        self.groups = 1 if group is None else groups
        # Kernels return (groups, columns); without ``group``, or for a single column, those axes are dropped again.
        self._shape = (() if group is None else (groups,)) + cells.shape[1:]

    def reshape_sums(self, sums: SumsT) -> SumsT:
        return sums.reshape(self._shape)


def _shorten_value(value: object) -> str:
    if isinstance(value, np.ndarray) and value.size > 6:
        return f"array of shape {value.shape}"
    return str(value.tolist() if isinstance(value, np.ndarray) else value)


def nan_where_zero(n: Array) -> Array:
    """Replace zeros by NaN, so that dividing by ``n`` gives NaN (unknown) without a warning."""
    return np.where(n > 0, n, np.nan)


FamilyT = TypeVar("FamilyT", bound=type[AnyFamily])


@dataclass(frozen=True)
class FamilyRegistration(Registration):
    """The registration of a family: its name in parameters ("" if it needs arguments), and its rank in "auto"."""

    cls: type[AnyFamily]
    declared_name: str = ""
    auto_rank: int | None = None


def register_family(declared_name: str = "", *, auto_rank: int | None = None) -> Callable[[FamilyT], FamilyT]:
    """Register a family, so that parameters can name it and model files can contain it.

    ``declared_name`` is the name in ``families={"column": name}`` and ``--type column=name``; leave it out for a family
    that needs arguments. ``auto_rank`` makes it a candidate of "auto": of families with equal evidence, the one with
    the lowest rank (the simplest) is chosen.
    """

    def register(cls: FamilyT) -> FamilyT:
        return add_registration(
            FamilyRegistration(cls, cls.__name__, declared_name=declared_name, auto_rank=auto_rank), cls
        )

    return register


def is_registered_family(cls: type) -> bool:
    return isinstance(BY_CLASS.get(cls), FamilyRegistration)


def families_by_name() -> dict[str, type[AnyFamily]]:
    """The families that have a name in parameters, sorted by name."""
    found = {r.declared_name: r.cls for r in _registrations() if r.declared_name}
    return dict(sorted(found.items()))


def auto_candidates(kind: ColumnKind) -> tuple[type[AnyFamily], ...]:
    """The families that "auto" chooses from for a column of this kind, the simplest first."""
    ranked = [(r.auto_rank, r.cls) for r in _registrations() if r.auto_rank is not None and r.cls.column_kind == kind]
    return tuple(cls for _, cls in sorted(ranked, key=lambda pair: pair[0]))


def _registrations() -> list[FamilyRegistration]:
    return [r for r in BY_CLASS.values() if isinstance(r, FamilyRegistration)]
