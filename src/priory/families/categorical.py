"""Categorical: one of several labels, with a Dirichlet prior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np

from priory.core import column_kernels
from priory.core.logspace import log
from priory.core.typing import Array
from priory.families import dirichlet
from priory.families.base import Family, Grouped, known
from priory.families.leave_one_out import Left, Removals, of_labels
from priory.families.value_counts import Coded, Tally


class Shares(NamedTuple):
    """The parameters of a categorical: what the values are, and how probable each is (last axis)."""

    values: Array
    probabilities: Array


@final
@dataclass(frozen=True, eq=False)
class Categorical(Family):
    """One of several labels, ``θ ~ Dirichlet(alpha)``. A block of columns has one record, and may have one alpha, each.

    The values are those seen, or those declared. A value that no class has ever shown speaks for none of them.

    >>> seen = Categorical().observe(["sunny", "rain", "sunny", "overcast"])
    >>> seen.values.tolist(), Categorical().ml(seen).probabilities.tolist()
    (['overcast', 'rain', 'sunny'], [0.25, 0.25, 0.5])
    >>> float(np.exp((Categorical(alpha=1.0) + seen).log_predictive(["sunny"]))[0])  # (2 + 1) / (4 + 3)
    0.42857142857142855
    """

    alpha: float | Array = 1.0
    values: Any = None

    holds: ClassVar[str] = "labels"

    def observe(self, x: Any, group: Array | None = None, groups: int = 1, weight: Array | None = None) -> Any:
        coded = x if isinstance(x, Coded) else Coded.of(x)
        rows = Grouped(coded.codes, group, groups)
        widths = np.array([len(values) for values in coded.values])
        counts = column_kernels.tally(coded.codes, widths, rows.group, weight, rows.groups)
        tallies = tuple(
            Tally.of(values, c if group is not None else c[0]) for values, c in zip(coded.values, counts, strict=True)
        )
        return tallies[0] if not isinstance(x, Coded) and np.ndim(x) == 1 else tallies

    def _declared(self, seen: Tally) -> Tally:
        """The record over the declared values as well as those seen."""
        if self.values is None:
            return seen
        declared = np.unique(np.asarray(self.values))
        nothing = Tally(declared, np.zeros((*seen.counts.shape[:-1], len(declared))))
        return nothing + seen

    def posterior(self, seen: Tally) -> Self:
        full = self._declared(seen)
        return replace(self, alpha=self.alpha + full.counts, values=full.values)

    @classmethod
    def prior_from(cls, seen: Any) -> Self:
        """Symmetric, as strong as the evidence of all classes says."""
        if isinstance(seen, Tally):
            return cls(dirichlet.strength_by_evidence(np.atleast_2d(seen.counts)))
        return cls(np.array([dirichlet.strength_by_evidence(tally.counts) for tally in seen]))

    def ml(self, seen: Tally) -> Shares:
        return Shares(seen.values, seen.counts / known(seen.n)[..., None])

    def mode(self) -> Shares:
        return Shares(self.values, dirichlet.mode(np.asarray(self.alpha)))

    def mean(self) -> Shares:
        return Shares(self.values, dirichlet.mean(np.asarray(self.alpha)))

    def log_density(self, x: Any, parameters: Shares) -> Array:
        """Log probability of labels; -inf for a label that is not among the values."""
        shares = Tally(parameters.values, parameters.probabilities)
        table = np.append(shares.counts, np.zeros((*shares.counts.shape[:-1], 1)), axis=-1)
        return log(table[..., shares.places(np.asarray(x))])

    def log_predictive(self, x: Any) -> Array:
        return self.log_density(x, self.mean())

    def log_normaliser(self) -> Array:
        return dirichlet.log_normaliser(np.asarray(self.alpha))

    def log_evidence(self, seen: Tally) -> Array:
        return dirichlet.log_evidence(np.asarray(self.alpha), self._declared(seen).counts)

    def draw(self, rng: np.random.Generator, size: int) -> Shares:
        return Shares(self.values, dirichlet.draw(np.asarray(self.alpha), rng, size))

    def sample(self, parameters: Shares, rng: np.random.Generator, size: int) -> Array:
        return rng.choice(parameters.values, p=parameters.probabilities, size=size)

    # -- classes by columns --------------------------------------------------------------------------------------

    def _column(self, j: int) -> Categorical:
        """This family as it is for column ``j`` of a block."""
        return self if np.ndim(self.alpha) == 0 else replace(self, alpha=float(np.asarray(self.alpha)[j]))

    def _table(self, seen: Tally, estimate: str) -> Array:
        """Log probabilities (classes, values + 1); the last is a value never shown."""
        full = self._declared(seen)
        rows = full.n[:, None]
        spare = np.zeros((len(rows), 1))
        if estimate == "ml":
            shares = np.append(full.counts, spare, axis=1) / known(rows)
        else:
            less = 1.0 if estimate == "map" and np.all(np.asarray(self.alpha) >= 1) else 0.0
            virtual = float(self.alpha) - less
            total = rows + virtual * len(full.values)
            shares = (np.append(full.counts, spare, axis=1) + virtual) / known(total)
        table = log(np.nan_to_num(shares, nan=1.0))
        return np.where(np.isneginf(table).all(axis=0), 0.0, table)

    def _tables(self, seen: tuple[Tally, ...], estimate: str) -> list[Array]:
        return [
            tally.derived("table", partial(self._column(j)._table, estimate=estimate), self, estimate)
            for j, tally in enumerate(seen)
        ]

    def _codes(self, seen: tuple[Tally, ...], x: Coded) -> Array:
        """The cells of ``x`` as places in the tables; negative where missing."""
        codes = np.full(x.codes.shape, -1, dtype=np.int32)
        for j, tally in enumerate(seen):
            places = np.append(self._declared(tally).places(x.values[j]), -1)  # the last is where -1 points
            codes[:, j] = places[x.codes[:, j]]
        return codes

    def log_likelihood(self, seen: tuple[Tally, ...], x: Any, estimate: str) -> Array:
        coded = x if isinstance(x, Coded) else Coded.of(x)
        codes, tables = self._codes(seen, coded), self._tables(seen, estimate)
        columns = [
            np.append(table, np.zeros((len(table), 1)), axis=1)[:, c] for table, c in zip(tables, codes.T, strict=True)
        ]
        return np.stack(columns, axis=-1).transpose(1, 0, 2)

    def score(self, seen: tuple[Tally, ...], x: Any, estimate: str) -> Array:
        coded = x if isinstance(x, Coded) else Coded.of(x)
        return column_kernels.lookup(
            lambda part: self._codes(seen, coded[part]), len(coded), self._tables(seen, estimate)
        )

    def mixed(
        self, seen: tuple[Tally, ...], together: tuple[Tally, ...], x: Any, estimate: str, matters: Array
    ) -> Array:
        coded = x if isinstance(x, Coded) else Coded.of(x)
        pairs = zip(self._tables(seen, estimate), self._tables(together, estimate), matters, strict=True)
        tables = [np.logaddexp(log(r) + apart, log(1 - r) + shared) for apart, shared, r in pairs]
        return column_kernels.lookup(lambda part: self._codes(seen, coded[part]), len(coded), tables)

    def evidence(self, seen: tuple[Tally, ...]) -> Array:
        return np.array([self._column(j).log_evidence(tally).sum() for j, tally in enumerate(seen)])

    @staticmethod
    def without(seen: Tally, x: Coded, group: Array, declared: Categorical | None) -> Left | None:
        """Evidence and terms of each cell with its row left out, in closed form where there is one."""
        place = seen.places(x.values[0])[x.codes[:, 0]]
        if declared is not None and (declared.values is not None or np.ndim(declared.alpha) or declared.alpha == 0):
            return None
        if (place == len(seen.values)).any() or not (gone := Removals(seen, place, group)).learned():
            return None
        return of_labels(gone, None if declared is None else float(declared.alpha))
