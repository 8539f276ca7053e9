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

from priory.core.column_kernels import one_group
from priory.core.logspace import log
from priory.core.sharding import scored
from priory.core.typing import Array

Estimate = Literal["ml", "map", "mean", "predictive"]
ESTIMATES: tuple[str, ...] = ("ml", "map", "mean", "predictive")


class Columns(ABC):
    """What naive Bayes asks of whatever explains columns: a record, and what it says of new cells, class by class."""

    holds: ClassVar[str] = ""  # what a column must hold for this family to fit it, for people

    @abstractmethod
    def observe(self, x: Any, group: Array | None = None, groups: int = 1, weight: Array | None = None) -> Any:
        """The statistics of the rows."""

    @classmethod
    @abstractmethod
    def prior_from(cls, seen: Any) -> Self:
        """A weak prior on the scale of the data: a function of what all classes saw together (empirical Bayes)."""

    @abstractmethod
    def log_likelihood(self, seen: Any, x: Any, estimate: str) -> Array:
        """Terms (rows, classes, columns): log p(x | class). A missing cell, or a class without rows, says nothing."""

    @abstractmethod
    def score(self, seen: Any, x: Any, estimate: str) -> Array:
        """The terms summed over the columns: (rows, classes), up to what all classes of a row share."""

    def mixed_terms(self, seen: Any, together: Any, x: Any, estimate: str, matters: Array) -> Array:
        """The terms where a column depends on the class with probability ``matters``, and else is as ``together``."""
        apart, shared = self.log_likelihood(seen, x, estimate), self.log_likelihood(together, x, estimate)
        return np.logaddexp(log(matters) + apart, log(1 - matters) + shared)

    def mixed(self, seen: Any, together: Any, x: Any, estimate: str, matters: Array) -> Array:
        """They summed over the columns: (rows, classes), up to what all classes of a row share."""
        groups = len(seen[0].n if isinstance(seen, tuple) else seen.n)
        return scored(
            lambda part: self.mixed_terms(seen, together, x[part], estimate, matters).sum(axis=-1), len(x), groups
        )

    @abstractmethod
    def evidence(self, seen: Any) -> Array:
        """Log evidence of each column, over all classes; -inf where a value was seen that the family cannot hold."""


class Family(Columns):
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
    def posterior(self, seen: Any) -> Self:
        """What is believed after seeing ``seen``: the same family with updated hyperparameters."""

    def __add__(self, seen: Any) -> Self:
        return self.posterior(seen)

    # -- estimates -----------------------------------------------------------------------------------------------

    @abstractmethod
    def ml(self, seen: Any) -> Any:
        """The parameters that make what was seen most probable (NaN where nothing was seen)."""

    @abstractmethod
    def mode(self) -> Any:
        """The most probable parameters under this belief."""

    @abstractmethod
    def mean(self) -> Any:
        """The expected parameters under this belief."""

    def map(self, seen: Any) -> Any:
        """The most probable parameters after seeing ``seen``."""
        return (self + seen).mode()

    def parameters(self, seen: Any, estimate: str) -> Any:
        """The point estimate called ``ml``, ``map`` or ``mean``."""
        if estimate == "ml":
            return self.ml(seen)
        return (self + seen).mode() if estimate == "map" else (self + seen).mean()

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

    def log_base(self, seen: Any) -> Array | float:
        """What the likelihoods seen hold that no parameter touches."""
        return 0.0

    def log_evidence(self, seen: Any) -> Array:
        """Log probability of everything seen, the parameters integrated out: how well the family *explains* it."""
        return np.asarray((self + seen).log_normaliser() - self.log_normaliser() + self.log_base(seen))

    # -- sampling ------------------------------------------------------------------------------------------------

    @abstractmethod
    def draw(self, rng: np.random.Generator, size: int) -> Any:
        """``size`` draws of the parameters under this belief."""

    @abstractmethod
    def sample(self, parameters: Any, rng: np.random.Generator, size: int) -> Array:
        """``size`` draws of ``x`` given parameters."""

    # -- classes by columns: what naive Bayes asks -----------------------------------------------------------------

    def log_likelihood(self, seen: Any, x: Array, estimate: str) -> Array:
        """Terms (rows, classes, columns): log p(x | class). A missing cell, or a class without rows, says nothing."""
        cells = np.asarray(x, dtype=float)[:, None]
        if estimate == "predictive":
            terms = seen.derived("posterior", self.posterior, self).log_predictive(cells)
        else:
            parameters = seen.derived("parameters", lambda s: self.parameters(s, estimate), self, estimate)
            terms = self.log_density(cells, parameters)
        return np.where(np.isnan(cells) | np.isnan(terms), 0.0, terms)

    def score(self, seen: Any, x: Array, estimate: str) -> Array:
        """The terms summed over the columns: (rows, classes)."""
        groups = len(seen.n)
        return scored(lambda part: self.log_likelihood(seen, x[part], estimate).sum(axis=-1), len(x), groups)

    def evidence(self, seen: Any) -> Array:
        """Log evidence of each column, over all classes; -inf where a value was seen that the family cannot hold."""
        outside = getattr(seen, "outside", None)
        evidence = np.atleast_2d(self.log_evidence(seen)).sum(axis=0)
        return evidence if outside is None else np.where(outside.sum(axis=0) > 0, -np.inf, evidence)


class Grouped:
    """Rows laid out for counting: a 2-D block, a class for each row, and the shape of the record that comes out."""

    def __init__(self, x: ArrayLike, group: Array | None, groups: int) -> None:
        cells = np.asarray(x)
        self.x = cells.reshape(len(cells), math.prod(cells.shape[1:]))
        self.group = one_group(len(cells)) if group is None else np.ascontiguousarray(group, dtype=np.int32)
        self.groups = 1 if group is None else groups
        self._shape = (() if group is None else (groups,)) + cells.shape[1:]

    def shaped(self, sums: Array) -> Array:
        return sums.reshape(self._shape)


def known(n: Array) -> Array:
    """``n`` with nought as NaN: dividing by it says "unknown" and never warns."""
    return np.where(n > 0, n, np.nan)
