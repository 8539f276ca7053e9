"""What a family is: a likelihood together with its conjugate prior.

A family's fields are the hyperparameters of its prior, so an instance *is* a state of belief, and learning is

    posterior = prior + statistics          # in code: ``family + family.observe(x)``

whose result is an instance of the same class. The evidence then needs one definition for all of them: how much the
normaliser of the belief grew.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from priory.core.column_kernels import assign_single_class
from priory.core.logspace import log
from priory.core.sharding import score_shards
from priory.core.typing import Array, ColumnKind

Estimate = Literal["ml", "map", "mean", "predictive"]
ESTIMATES: tuple[str, ...] = ("ml", "map", "mean", "predictive")


class ColumnFamily(ABC):
    """What naive Bayes asks of whatever explains columns: a record, and what it says of new cells, class by class."""

    accepted_values: ClassVar[str] = ""  # what a column must hold for this family to fit it, for people
    column_kind: ClassVar[ColumnKind] = "number"  # what the cells of its columns are read as

    @classmethod
    def accepts(cls, values: Array) -> Array:
        """Whether the family gives each number a positive probability; the answer for NaN does not matter."""
        return np.ones(np.shape(values), dtype=bool)

    @classmethod
    def with_alpha(cls, alpha: float) -> Self | type[Self]:
        """The family with ``alpha`` virtual examples of each value; unchanged if it does not count values."""
        return cls

    @abstractmethod
    def observe(self, x: Any, group: Array | None = None, groups: int = 1, weight: Array | None = None) -> Any:
        """The statistics of the rows."""

    @classmethod
    @abstractmethod
    def empirical_prior(cls, statistics: Any) -> Self:
        """A weak prior on the scale of the data: a function of what all classes saw together (empirical Bayes)."""

    @abstractmethod
    def log_likelihood(self, statistics: Any, x: Any, estimate: str) -> Array:
        """Terms (rows, classes, columns): log p(x | class). A missing cell, or a class without rows, says nothing."""

    @abstractmethod
    def score(self, statistics: Any, x: Any, estimate: str) -> Array:
        """The terms summed over the columns: (rows, classes), up to what all classes of a row share."""

    def averaged_log_likelihood(self, statistics: Any, pooled: Any, x: Any, estimate: str, inclusion: Array) -> Array:
        """The terms where a column depends on the class with probability ``matters``, and else is as ``together``."""
        apart, shared = self.log_likelihood(statistics, x, estimate), self.log_likelihood(pooled, x, estimate)
        return np.logaddexp(log(inclusion) + apart, log(1 - inclusion) + shared)

    def averaged_score(self, statistics: Any, pooled: Any, x: Any, estimate: str, inclusion: Array) -> Array:
        """They summed over the columns: (rows, classes), up to what all classes of a row share."""
        groups = len(statistics[0].n if isinstance(statistics, tuple) else statistics.n)
        return score_shards(
            lambda part: self.averaged_log_likelihood(statistics, pooled, x[part], estimate, inclusion).sum(axis=-1),
            len(x),
            groups,
        )

    @abstractmethod
    def evidence(self, statistics: Any) -> Array:
        """Log evidence of each column, over all classes; -inf where a value was seen that the family cannot hold."""


class Family(ColumnFamily):
    """A likelihood with its conjugate prior.

    ``x`` is one column (rows,) or a block of columns (rows, columns). Without ``group`` a record describes all rows;
    with it, the record's first axis is the class. A NaN cell is missing and leaves no trace.
    """

    def __eq__(self, other: object) -> bool:
        """Beliefs are the same if their hyperparameters are."""
        mine, yours = vars(self), vars(other) if type(other) is type(self) else {}
        return self is other or (mine.keys() == yours.keys() and all(np.array_equal(mine[k], yours[k]) for k in mine))

    def __hash__(self) -> int:
        return hash(type(self))

    # -- learning ------------------------------------------------------------------------------------------------

    @abstractmethod
    def posterior(self, statistics: Any) -> Self:
        """What is believed after seeing ``seen``: the same family with updated hyperparameters."""

    def __add__(self, statistics: Any) -> Self:
        return self.posterior(statistics)

    # -- estimates -----------------------------------------------------------------------------------------------

    @abstractmethod
    def ml(self, statistics: Any) -> Any:
        """The parameters that make what was seen most probable (NaN where nothing was seen)."""

    @abstractmethod
    def mode(self) -> Any:
        """The most probable parameters under this belief."""

    @abstractmethod
    def mean(self) -> Any:
        """The expected parameters under this belief."""

    def map(self, statistics: Any) -> Any:
        """The most probable parameters after seeing ``seen``."""
        return (self + statistics).mode()

    def parameters(self, statistics: Any, estimate: str) -> Any:
        """The point estimate called ``ml``, ``map`` or ``mean``."""
        if estimate == "ml":
            return self.ml(statistics)
        return (self + statistics).mode() if estimate == "map" else (self + statistics).mean()

    # -- probabilities -------------------------------------------------------------------------------------------

    @abstractmethod
    def log_density(self, x: ArrayLike, parameters: Any) -> Array:
        """Log probability (density) of ``x`` given parameters."""

    @abstractmethod
    def log_predictive(self, x: ArrayLike) -> Array:
        """Log probability (density) of one new ``x``, the parameters integrated out under this belief."""

    @abstractmethod
    def log_normaliser(self) -> Array:
        """Log of the integral of the unnormalised belief over all parameters."""

    def log_base(self, statistics: Any) -> Array | float:
        """What the likelihoods seen hold that no parameter touches."""
        return 0.0

    def log_evidence(self, statistics: Any) -> Array:
        """Log probability of everything seen, the parameters integrated out: how well the family *explains* it."""
        return np.asarray((self + statistics).log_normaliser() - self.log_normaliser() + self.log_base(statistics))

    # -- sampling ------------------------------------------------------------------------------------------------

    @abstractmethod
    def draw(self, rng: np.random.Generator, size: int) -> Any:
        """``size`` draws of the parameters under this belief."""

    @abstractmethod
    def sample(self, parameters: Any, rng: np.random.Generator, size: int) -> Array:
        """``size`` draws of ``x`` given parameters."""

    # -- classes by columns: what naive Bayes asks -----------------------------------------------------------------

    def log_likelihood(self, statistics: Any, x: Array, estimate: str) -> Array:
        """Terms (rows, classes, columns): log p(x | class). A missing cell, or a class without rows, says nothing."""
        cells = np.asarray(x, dtype=float)[:, None]
        if estimate == "predictive":
            terms = statistics.derive("posterior", self.posterior, self).log_predictive(cells)
        else:
            parameters = statistics.derive("parameters", lambda s: self.parameters(s, estimate), self, estimate)
            terms = self.log_density(cells, parameters)
        return np.where(np.isnan(cells) | np.isnan(terms), 0.0, terms)

    def score(self, statistics: Any, x: Array, estimate: str) -> Array:
        """The terms summed over the columns: (rows, classes)."""
        groups = len(statistics.n)
        return score_shards(
            lambda part: self.log_likelihood(statistics, x[part], estimate).sum(axis=-1), len(x), groups
        )

    def evidence(self, statistics: Any) -> Array:
        """Log evidence of each column, over all classes; -inf where a value was seen that the family cannot hold."""
        outside = getattr(statistics, "outside", None)
        evidence = np.atleast_2d(self.log_evidence(statistics)).sum(axis=0)
        return evidence if outside is None else np.where(outside.sum(axis=0) > 0, -np.inf, evidence)


class GroupedRows:
    """Rows laid out for counting: a 2-D block, a class for each row, and the shape of the record that comes out."""

    def __init__(self, x: ArrayLike, group: Array | None, groups: int) -> None:
        cells = np.asarray(x)
        self.x = cells.reshape(len(cells), math.prod(cells.shape[1:]))
        self.group = assign_single_class(len(cells)) if group is None else np.ascontiguousarray(group, dtype=np.int32)
        self.groups = 1 if group is None else groups
        self._shape = (() if group is None else (groups,)) + cells.shape[1:]

    def reshape_sums(self, sums: Array) -> Array:
        return sums.reshape(self._shape)


def nan_where_zero(n: Array) -> Array:
    """``n`` with nought as NaN: dividing by it says "unknown" and never warns."""
    return np.where(n > 0, n, np.nan)
