"""Categorical: one of several labels, with a Dirichlet prior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np

from priory.core import column_kernels
from priory.core.logspace import log
from priory.core.typing import Array, ColumnKind
from priory.families import dirichlet
from priory.families.base import Family, GroupedRows, nan_where_zero
from priory.families.leave_one_out import LeaveOneOutResult, RowRemovals, leave_out_labels
from priory.families.registry import register_family
from priory.families.value_counts import CategoricalCells, ValueCounts


class ValueProbabilities(NamedTuple):
    """The parameters of a categorical: what the values are, and how probable each is (last axis)."""

    values: Array
    probabilities: Array


@register_family("categorical", auto_rank=1)
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

    accepted_values: ClassVar[str] = "labels"
    column_kind: ClassVar[ColumnKind] = "label"

    @classmethod
    def with_alpha(cls, alpha: float) -> Self:
        return cls(alpha)

    def observe(self, x: Any, group: Array | None = None, groups: int = 1, weight: Array | None = None) -> Any:
        coded = x if isinstance(x, CategoricalCells) else CategoricalCells.of(x)
        rows = GroupedRows(coded.codes, group, groups)
        widths = np.array([len(values) for values in coded.values])
        counts = column_kernels.count_codes(coded.codes, widths, rows.group, weight, rows.groups)
        tallies = tuple(
            ValueCounts.of(values, c if group is not None else c[0])
            for values, c in zip(coded.values, counts, strict=True)
        )
        return tallies[0] if not isinstance(x, CategoricalCells) and np.ndim(x) == 1 else tallies

    def _add_declared_values(self, statistics: ValueCounts) -> ValueCounts:
        """The record over the declared values as well as those seen."""
        if self.values is None:
            return statistics
        declared = np.unique(np.asarray(self.values))
        nothing = ValueCounts(declared, np.zeros((*statistics.counts.shape[:-1], len(declared))))
        return nothing + statistics

    def posterior(self, statistics: ValueCounts) -> Self:
        full = self._add_declared_values(statistics)
        return replace(self, alpha=self.alpha + full.counts, values=full.values)

    @classmethod
    def empirical_prior(cls, statistics: Any) -> Self:
        """Symmetric, as strong as the evidence of all classes says."""
        if isinstance(statistics, ValueCounts):
            return cls(dirichlet.choose_alpha(np.atleast_2d(statistics.counts)))
        return cls(np.array([dirichlet.choose_alpha(tally.counts) for tally in statistics]))

    def ml(self, statistics: ValueCounts) -> ValueProbabilities:
        return ValueProbabilities(statistics.values, statistics.counts / nan_where_zero(statistics.n)[..., None])

    def mode(self) -> ValueProbabilities:
        return ValueProbabilities(self.values, dirichlet.mode_shares(np.asarray(self.alpha)))

    def mean(self) -> ValueProbabilities:
        return ValueProbabilities(self.values, dirichlet.mean_shares(np.asarray(self.alpha)))

    def log_density(self, x: Any, parameters: ValueProbabilities) -> Array:
        """Log probability of labels; -inf for a label that is not among the values."""
        shares = ValueCounts(parameters.values, parameters.probabilities)
        table = np.append(shares.counts, np.zeros((*shares.counts.shape[:-1], 1)), axis=-1)
        return log(table[..., shares.find_positions(np.asarray(x))])

    def log_predictive(self, x: Any) -> Array:
        return self.log_density(x, self.mean())

    def log_normaliser(self) -> Array:
        return dirichlet.log_normaliser(np.asarray(self.alpha))

    def log_evidence(self, statistics: ValueCounts) -> Array:
        return dirichlet.log_evidence(np.asarray(self.alpha), self._add_declared_values(statistics).counts)

    def draw(self, rng: np.random.Generator, size: int) -> ValueProbabilities:
        return ValueProbabilities(self.values, dirichlet.draw_shares(np.asarray(self.alpha), rng, size))

    def sample(self, parameters: ValueProbabilities, rng: np.random.Generator, size: int) -> Array:
        return rng.choice(parameters.values, p=parameters.probabilities, size=size)

    # -- classes by columns --------------------------------------------------------------------------------------

    def _family_of_column(self, j: int) -> Categorical:
        """This family as it is for column ``j`` of a block."""
        return self if np.ndim(self.alpha) == 0 else replace(self, alpha=float(np.asarray(self.alpha)[j]))

    def _table(self, statistics: ValueCounts, estimate: str) -> Array:
        """Log probabilities (classes, values + 1); the last is a value never shown."""
        full = self._add_declared_values(statistics)
        rows = full.n[:, None]
        spare = np.zeros((len(rows), 1))
        if estimate == "ml":
            shares = np.append(full.counts, spare, axis=1) / nan_where_zero(rows)
        else:
            less = 1.0 if estimate == "map" and np.all(np.asarray(self.alpha) >= 1) else 0.0
            virtual = float(self.alpha) - less
            total = rows + virtual * len(full.values)
            shares = (np.append(full.counts, spare, axis=1) + virtual) / nan_where_zero(total)
        table = log(np.nan_to_num(shares, nan=1.0))
        return np.where(np.isneginf(table).all(axis=0), 0.0, table)

    def _tables(self, statistics: tuple[ValueCounts, ...], estimate: str) -> list[Array]:
        return [
            tally.derive("table", partial(self._family_of_column(j)._table, estimate=estimate), self, estimate)
            for j, tally in enumerate(statistics)
        ]

    def _encode_cells(self, statistics: tuple[ValueCounts, ...], x: CategoricalCells) -> Array:
        """The cells of ``x`` as places in the tables; negative where missing."""
        codes = np.full(x.codes.shape, -1, dtype=np.int32)
        for j, tally in enumerate(statistics):
            places = np.append(
                self._add_declared_values(tally).find_positions(x.values[j]), -1
            )  # the last is where -1 points
            codes[:, j] = places[x.codes[:, j]]
        return codes

    def log_likelihood(self, statistics: tuple[ValueCounts, ...], x: Any, estimate: str) -> Array:
        coded = x if isinstance(x, CategoricalCells) else CategoricalCells.of(x)
        codes, tables = self._encode_cells(statistics, coded), self._tables(statistics, estimate)
        columns = [
            np.append(table, np.zeros((len(table), 1)), axis=1)[:, c] for table, c in zip(tables, codes.T, strict=True)
        ]
        return np.stack(columns, axis=-1).transpose(1, 0, 2)

    def score(self, statistics: tuple[ValueCounts, ...], x: Any, estimate: str) -> Array:
        coded = x if isinstance(x, CategoricalCells) else CategoricalCells.of(x)
        return column_kernels.score_by_lookup(
            lambda part: self._encode_cells(statistics, coded[part]), len(coded), self._tables(statistics, estimate)
        )

    def averaged_score(
        self,
        statistics: tuple[ValueCounts, ...],
        pooled: tuple[ValueCounts, ...],
        x: Any,
        estimate: str,
        inclusion: Array,
    ) -> Array:
        coded = x if isinstance(x, CategoricalCells) else CategoricalCells.of(x)
        pairs = zip(self._tables(statistics, estimate), self._tables(pooled, estimate), inclusion, strict=True)
        tables = [np.logaddexp(log(r) + apart, log(1 - r) + shared) for apart, shared, r in pairs]
        return column_kernels.score_by_lookup(
            lambda part: self._encode_cells(statistics, coded[part]), len(coded), tables
        )

    def evidence(self, statistics: tuple[ValueCounts, ...]) -> Array:
        return np.array([self._family_of_column(j).log_evidence(tally).sum() for j, tally in enumerate(statistics)])

    @staticmethod
    def leave_one_out(
        statistics: ValueCounts, x: CategoricalCells, group: Array, declared: Categorical | None
    ) -> LeaveOneOutResult | None:
        """Evidence and terms of each cell with its row left out, in closed form where there is one."""
        place = statistics.find_positions(x.values[0])[x.codes[:, 0]]
        if declared is not None and (declared.values is not None or np.ndim(declared.alpha) or declared.alpha == 0):
            return None
        if (place == len(statistics.values)).any() or not (
            gone := RowRemovals(statistics, place, group)
        ).is_removable():
            return None
        return leave_out_labels(gone, None if declared is None else float(declared.alpha))
