"""Categorical: one of several labels, with a Dirichlet prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple, Self, final

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core import column_kernels
from priory.core.display_table import EstimateTable
from priory.core.logspace import log
from priory.core.statistics import find_members
from priory.core.typing import ColumnKind
from priory.core.value_counts import CategoricalCells, ValueCounts, score_by_lookup, take_shown_values
from priory.errors import DataError
from priory.families import dirichlet
from priory.families.base import ColumnTerm, Family, GroupedRows, ValueTerm, nan_where_zero, register_family
from priory.families.leave_one_out import LeaveOneOutResult, RowRemovals, leave_out_labels
from priory.families.open_columns import ColumnGuard, LabelGuard, OpenColumns, OpenLabels


class ValueProbabilities(NamedTuple):
    """The parameters of a categorical distribution: the values, and their probabilities (last axis)."""

    values: Array
    probabilities: Array


@register_family("categorical", auto_rank=1)
@final
@dataclass(frozen=True, eq=False)
class Categorical(
    dirichlet.DirichletBelief, Family[ValueCounts, ValueProbabilities, tuple[ValueCounts, ...], CategoricalCells]
):
    """One of several labels, ``θ ~ Dirichlet(alpha)``.

    The statistics of a block are one record for each column. A value that was neither learned nor declared is ignored.

    Parameters
    ----------
    alpha : float or array of shape (columns,) or (values,)
        Virtual examples of every value. With declared ``values``, an array gives one number for each of them, in the
        same order: the m-estimate with a prior share for each value, and other values raise an error. Otherwise an
        array gives one number for each column.
    values : sequence, optional
        Values that are possible even if they have not been observed; by default the observed values.
    m : float, optional
        Virtual examples of the whole column, instead of ``alpha``: they are divided equally among its values.

    Attributes
    ----------
    accepted_values : str
        The values that a column may hold, for error messages.

    References
    ----------
    Mitchell, T. M. (1997). Machine Learning, section 6.9 (the m-estimate).

    Examples
    --------
    >>> seen = Categorical().observe(["sunny", "rain", "sunny", "overcast"])
    >>> seen.values.tolist(), Categorical().ml(seen).probabilities.tolist()
    (['overcast', 'rain', 'sunny'], [0.25, 0.25, 0.5])
    >>> float(np.exp((Categorical(alpha=1.0) + seen).log_predictive(["sunny"]))[0])  # (2 + 1) / (4 + 3)
    0.42857142857142855
    """

    alpha: float | Array = 1.0
    values: Sequence[object] | Array | None = None
    m: float | None = None

    accepted_values: ClassVar[str] = "labels"
    is_discrete: ClassVar[bool] = True
    column_kind: ClassVar[ColumnKind] = "label"

    @property
    def accepts_new_values(self) -> bool:
        return np.ndim(self.alpha) == 0  # an array gives every value a declared share

    @classmethod
    def with_alpha(cls, alpha: float) -> Self:
        return cls(alpha)

    def count_virtual_rows(self, column: int) -> float | None:
        alpha = self.take_column(column).alpha
        return float(alpha) if self.m is None and np.ndim(alpha) == 0 else None

    def __post_init__(self) -> None:
        if self.values is None:
            return
        values, alpha = np.asarray(self.values), np.asarray(self.alpha, dtype=float)
        if len(np.unique(values)) < len(values):
            raise DataError(f"values are {values.tolist()}; each may be declared once.")
        if alpha.ndim and alpha.shape[-1] != len(values):
            raise DataError(f"alpha has {alpha.shape[-1]} numbers for {len(values)} values; give one for each.")
        order = np.argsort(values)
        object.__setattr__(self, "values", values[order])
        if alpha.ndim:
            object.__setattr__(self, "alpha", alpha[..., order])

    def observe(
        self, x: CategoricalCells | ArrayLike, group: Array | None = None, groups: int = 1, weight: Array | None = None
    ) -> tuple[ValueCounts, ...]:
        coded = x if isinstance(x, CategoricalCells) else CategoricalCells.of(x)
        rows = GroupedRows(coded.codes, group, groups)
        widths = np.array([len(values) for values in coded.values])
        counts = column_kernels.count_codes(coded.codes, widths, rows.group, weight, rows.groups)
        tallies = tuple(
            ValueCounts.of(values, c if group is not None else c[0])
            for values, c in zip(coded.values, counts, strict=True)
        )
        for tally in tallies if self.values is not None else ():
            self._virtual_examples(tally.values)  # raises if a value has no share
        if not isinstance(x, CategoricalCells) and np.ndim(x) == 1:
            return tallies[0]  # type: ignore[return-value]  # one column: its own statistics, no tuple
        return tallies

    def _add_declared_values(self, statistics: ValueCounts) -> ValueCounts:
        """The statistics with the declared values added, with counts of zero."""
        if self.values is None:
            return statistics
        empty = ValueCounts(np.asarray(self.values), np.zeros((*statistics.counts.shape[:-1], len(self.values))))
        return empty + statistics

    def _virtual_examples(self, values: Array) -> Array:
        """Virtual examples of each value, (values,); raises if alpha is an array and a value was not declared."""
        if self.m is not None:
            return np.full(len(values), self.m / max(len(values), 1))
        if np.ndim(self.alpha) == 0:
            return np.full(len(values), float(self.alpha))
        alpha = np.asarray(self.alpha, dtype=float)
        places = ValueCounts(np.asarray(self.values), alpha[None]).find_positions(values)
        if undeclared := values[places == len(alpha)].tolist():
            listed = ", ".join(map(repr, np.asarray(self.values).tolist()))
            raise DataError(
                f"the value {undeclared[0]!r} has no share of the virtual examples, which were declared for {listed}; "
                "give every value a share."
            )
        return alpha[places]

    def posterior(self, statistics: ValueCounts) -> Self:
        full = self._add_declared_values(statistics)
        return replace(self, alpha=self._virtual_examples(full.values) + full.counts, values=full.values, m=None)

    @classmethod
    def empirical_prior(cls, statistics: tuple[ValueCounts, ...]) -> Self:
        """A symmetric prior, with the alpha that maximises the evidence over all classes."""
        if isinstance(statistics, ValueCounts):
            return cls(dirichlet.choose_alpha(np.atleast_2d(statistics.counts)))
        return cls(np.array([dirichlet.choose_alpha(tally.counts) for tally in statistics]))

    def ml(self, statistics: ValueCounts) -> ValueProbabilities:
        return ValueProbabilities(statistics.values, statistics.counts / nan_where_zero(statistics.n)[..., None])

    def make_parameters(self, shares: Array) -> ValueProbabilities:
        return ValueProbabilities(np.asarray(self.values), shares)

    def log_density(self, x: ArrayLike, parameters: ValueProbabilities) -> Array:
        """Log probability of labels; -inf for a label that is not among the values."""
        shares = ValueCounts(parameters.values, parameters.probabilities)
        # find_positions gives one past the end for an unknown label: a last entry with probability zero
        table = np.append(shares.counts, np.zeros((*shares.counts.shape[:-1], 1)), axis=-1)
        return log(table[..., shares.find_positions(np.asarray(x))])

    def log_predictive(self, x: ArrayLike) -> Array:
        return self.log_density(x, self.mean())

    def log_evidence(self, statistics: ValueCounts) -> Array:
        full = self._add_declared_values(statistics)
        return dirichlet.log_evidence(self._virtual_examples(full.values), full.counts)

    def sample(self, parameters: ValueProbabilities, rng: np.random.Generator, size: int) -> Array:
        return rng.choice(parameters.values, p=parameters.probabilities, size=size)

    # -- classes by columns --------------------------------------------------------------------------------------

    def take_column(self, j: int) -> Categorical:
        """The family of column ``j`` of a block."""
        if np.ndim(self.alpha) == 0 or self.values is not None:
            return self
        return replace(self, alpha=float(np.asarray(self.alpha)[j]))

    def _table(self, statistics: ValueCounts, estimate: str) -> Array:
        """Log probabilities (classes, values + 1); the last entry is 0: an unseen value is ignored."""
        full = self._add_declared_values(statistics)
        virtual = np.zeros(len(full.values)) if estimate == "ml" else self._virtual_examples(full.values)
        # the mode of a Dirichlet: (count + alpha - 1) / (n + Σ (alpha - 1))
        if estimate == "map" and np.all(virtual >= 1):
            virtual = virtual - 1
        shares = (full.counts + virtual) / nan_where_zero(full.n + virtual.sum())[:, None]
        table = log(np.nan_to_num(shares, nan=1.0))
        # A value that no class can produce would rule out all of them: ignore it.
        table = np.where(np.isneginf(table).all(axis=0), 0.0, table)
        return np.pad(table, ((0, 0), (0, 1)))

    def _tables(self, statistics: tuple[ValueCounts, ...], estimate: str) -> list[Array]:
        return [
            tally.derive("table", partial(self.take_column(j)._table, estimate=estimate), self, estimate)
            for j, tally in enumerate(statistics)
        ]

    def _encode_cells(self, statistics: tuple[ValueCounts, ...], x: CategoricalCells) -> Array:
        """Positions (rows, columns) of the cells of ``x`` in the tables; negative if missing."""
        codes = np.full(x.codes.shape, -1, dtype=np.int32)
        for j, tally in enumerate(statistics):
            own, values = take_shown_values(x.codes[:, j], x.values[j])
            places = self._add_declared_values(tally).find_positions(values)
            codes[:, j] = np.append(places, -1)[own]  # code -1 indexes the last element
        return codes

    def log_likelihood(
        self, statistics: tuple[ValueCounts, ...], x: CategoricalCells | ArrayLike, estimate: str
    ) -> Array:
        coded = x if isinstance(x, CategoricalCells) else CategoricalCells.of(x)
        codes, tables = self._encode_cells(statistics, coded), self._tables(statistics, estimate)
        # (classes, rows) for each column; code -1 indexes an appended column of zeros; then (rows, classes, columns)
        columns = [
            np.append(table, np.zeros((len(table), 1)), axis=1)[:, c] for table, c in zip(tables, codes.T, strict=True)
        ]
        return np.stack(columns, axis=-1).transpose(1, 0, 2)

    def score(self, statistics: tuple[ValueCounts, ...], x: CategoricalCells | ArrayLike, estimate: str) -> Array:
        coded = x if isinstance(x, CategoricalCells) else CategoricalCells.of(x)
        return score_by_lookup(
            lambda part: self._encode_cells(statistics, coded[part]), len(coded), self._tables(statistics, estimate)
        )

    def evidence(self, statistics: tuple[ValueCounts, ...]) -> Array:
        return np.array([self.take_column(j).log_evidence(tally).sum() for j, tally in enumerate(statistics)])

    def guard(self, statistics: tuple[ValueCounts, ...], group: int) -> ColumnGuard:
        return LabelGuard(statistics, group)

    def open(self, statistics: tuple[ValueCounts, ...]) -> OpenColumns:
        is_plain = self.values is None and self.m is None and np.all(np.asarray(self.alpha) > 0)
        return OpenLabels(self, statistics) if is_plain else super().open(statistics)

    def n_parameters(self, statistics: tuple[ValueCounts, ...]) -> int:
        return sum(len(self._add_declared_values(tally).values) - 1 for tally in statistics)

    def log2_outcomes(self, statistics: tuple[ValueCounts, ...]) -> float:
        return float(sum(np.log2(max(len(self._add_declared_values(tally).values), 1)) for tally in statistics))

    def value_counts(self, statistics: tuple[ValueCounts, ...]) -> tuple[ValueCounts, ...]:
        return statistics

    def column_terms(self, statistics: tuple[ValueCounts, ...], estimate: str) -> list[ColumnTerm]:
        pairs = zip(statistics, self._tables(statistics, estimate), strict=True)
        return [ValueTerm(self._add_declared_values(tally).values, table) for tally, table in pairs]

    def tabulate(self, statistics: tuple[ValueCounts, ...], estimate: str) -> list[EstimateTable]:
        kind = "mean" if estimate == "predictive" else estimate
        return [self.take_column(j)._tabulate_column(tally, kind) for j, tally in enumerate(statistics)]

    def _tabulate_column(self, statistics: ValueCounts, estimate: str) -> EstimateTable:
        full = self._add_declared_values(statistics)
        values, shares = self.parameters(statistics, estimate)
        if estimate == "ml":  # declared values that were never observed are left out
            counts = full.counts[:, find_members(full.values, np.asarray(values))]
            return EstimateTable(list(values), shares, counts, np.zeros_like(counts))
        virtual = np.broadcast_to(self._virtual_examples(full.values), full.counts.shape)
        return EstimateTable(list(values), shares, full.counts, virtual)

    @staticmethod
    def leave_one_out(
        statistics: ValueCounts, x: CategoricalCells, group: Array, declared: Categorical | None
    ) -> LeaveOneOutResult | None:
        """Evidence and terms of each cell with its row left out; None if there is no closed form."""
        place = statistics.find_positions(x.values[0])[x.codes[:, 0]]
        if declared is not None and (declared.values is not None or np.ndim(declared.alpha) or declared.alpha == 0):
            return None
        if declared is not None and declared.m is not None:
            return None
        if (place == len(statistics.values)).any() or not (
            gone := RowRemovals(statistics, place, group)
        ).is_removable():
            return None
        return leave_out_labels(gone, None if declared is None else float(declared.alpha))
