"""Histogram: a piecewise constant density, for numbers that no parametric family fits.

The statistics are counts of the values, rounded to ``bits`` significant binary digits: they add and subtract exactly.
The bins are a function of those counts, chosen by evidence when they are needed, so forgetting rows changes them too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, NamedTuple, Self, final

import numpy as np
from numpy import ndarray as Array
from numpy.typing import ArrayLike

from priory.core import column_kernels
from priory.core.display_table import EstimateTable
from priory.core.logspace import gammaln, log
from priory.core.value_counts import VALUE_BITS, ValueCounts, round_to_bits, score_by_lookup
from priory.errors import DataError
from priory.families import dirichlet
from priory.families.base import BinTerm, ColumnTerm, Family, GroupedRows, NumberBlock, nan_where_zero, register_family
from priory.families.leave_one_out import Atom, LeaveOneOutResult, RowRemovals, leave_out_bins, outer_edge
from priory.families.open_columns import ColumnGuard, OpenBins, OpenColumns, guard_rounded_numbers

NUMBERS_OF_BINS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128)
CANDIDATE_QUANTILES = np.concatenate([np.arange(bins + 1) / bins for bins in NUMBERS_OF_BINS])
CANDIDATE_OF_QUANTILE = np.repeat(np.arange(len(NUMBERS_OF_BINS)), np.array(NUMBERS_OF_BINS) + 1)


class BinProbabilities(NamedTuple):
    """The parameters of a histogram: bin edges, and the probability of each bin (last axis)."""

    edges: Array  # (bins + 1,)
    probabilities: Array  # (…, bins)


@register_family("histogram", auto_rank=5)
@final
@dataclass(frozen=True, eq=False)
class Histogram(dirichlet.DirichletBelief, Family[ValueCounts, BinProbabilities, tuple[ValueCounts, ...], Array]):
    """Numbers with a piecewise constant density over bins of equal content, ``θ ~ Dirichlet(alpha)``.

    The number of bins, and ``alpha`` if it is None, maximise the evidence. Edges lie halfway between neighbouring
    values, so a value that occurs many times gets its own bin. Values beyond the outermost edges are assigned to the
    outermost bins.

    Parameters
    ----------
    bits : int
        The number of significant binary digits that values are rounded to.
    alpha : float or array of shape (classes, bins), optional
        Virtual examples of each bin; by default the number that maximises the evidence.
    edges : array of shape (bins + 1,), optional
        The edges of the bins; set by ``posterior``.

    Attributes
    ----------
    accepted_values : str
        The values that a column may hold, for error messages.

    References
    ----------
    Knuth, K. H. (2019). Optimal data-based binning for histograms and histogram-based probability density models.

    Examples
    --------
    >>> seen = Histogram().observe([0.0] * 50 + [3.0, 4.0, 5.0, 6.0, 7.0] * 10)
    >>> (Histogram() + seen).edges.tolist()
    [-1.5, 1.5, 7.5]
    """

    bits: int = VALUE_BITS
    alpha: float | Array | None = None
    edges: Array | None = None

    accepted_values: ClassVar[str] = "numbers"

    @classmethod
    def with_alpha(cls, alpha: float) -> Self:
        return cls(alpha=alpha)

    def describe_counting(self) -> dict[str, int]:
        return {"bits": self.bits}

    def observe(
        self, x: ArrayLike, group: Array | None = None, groups: int = 1, weight: Array | None = None
    ) -> tuple[ValueCounts, ...]:
        rows = GroupedRows(x, group, groups)
        pairs = column_kernels.count_values(rows.x, rows.group, weight, rows.groups, self.bits)
        if any(np.isinf(values).any() for values, _ in pairs):
            raise DataError("a cell is infinite; use NaN for a missing value.")
        tallies = tuple(ValueCounts.of(values, c if group is not None else c[0]) for values, c in pairs)
        if np.ndim(x) == 1:
            return tallies[0]  # type: ignore[return-value]  # one column: its own statistics, no tuple
        return tallies

    # -- the bins ------------------------------------------------------------------------------------------------

    def choose_bins(self, statistics: ValueCounts) -> tuple[Array, Array, float]:
        """Edges (bins + 1,), counts (…, bins) and alpha of the best histogram."""
        return statistics.derive("bins", self._choose_bins, self)

    def _choose_bins(self, statistics: ValueCounts) -> tuple[Array, Array, float]:
        counts, values = np.atleast_2d(statistics.counts), statistics.values
        if not len(values):
            return np.array([-0.5, 0.5]), np.zeros((*statistics.counts.shape[:-1], 1)), 1.0
        # (classes, values + 1): rows of each class below each possible edge. Indexing it by the cuts of a candidate and
        # taking differences gives the counts of its bins, for all candidates at once.
        content = np.zeros((len(counts), len(values) + 1))
        np.cumsum(counts, axis=1, out=content[:, 1:])
        bounds = self._possible_edges(values)
        ends, candidate = _find_candidate_cuts(content.sum(axis=0))
        atom = Atom.find(values, counts.sum(axis=0))
        evidence = _compute_candidate_evidence(content[:, ends], bounds[ends], candidate, atom, self.bits)
        best = ends[candidate == dirichlet.choose_alpha_index(evidence)]
        binned = np.diff(content[:, best], axis=1)
        alpha = dirichlet.choose_alpha(binned) if self.alpha is None else float(np.asarray(self.alpha))
        return bounds[best], binned.reshape(*statistics.counts.shape[:-1], -1), alpha

    def _possible_edges(self, values: Array) -> Array:
        """Possible edges (values + 1,): halfway between values, and equally far beyond the outermost ones."""
        # halved before adding: the sum of two values near 1e308 would overflow
        between = values[1:] / 2 + values[:-1] / 2
        low = outer_edge(values[:1], values[1:2] if len(between) else values[:1], -1, self.bits)
        high = outer_edge(values[-1:], values[-2:-1] if len(between) else values[-1:], 1, self.bits)
        return np.concatenate([low, between, high])

    # -- beliefs -------------------------------------------------------------------------------------------------

    def posterior(self, statistics: ValueCounts) -> Self:
        edges, counts, alpha = self.choose_bins(statistics)
        return replace(self, alpha=alpha + counts, edges=edges)

    @classmethod
    def empirical_prior(cls, statistics: tuple[ValueCounts, ...]) -> Self:
        return cls()

    def ml(self, statistics: ValueCounts) -> BinProbabilities:
        edges, counts, _ = self.choose_bins(statistics)
        return BinProbabilities(edges, counts / nan_where_zero(counts.sum(axis=-1, keepdims=True)))

    def make_parameters(self, shares: Array) -> BinProbabilities:
        return BinProbabilities(np.asarray(self.edges), shares)

    def log_density(self, x: ArrayLike, parameters: BinProbabilities) -> Array:
        density = log(parameters.probabilities) - _log_widths(parameters.edges)
        return density[..., _find_bin(np.asarray(x, dtype=float), parameters.edges)]

    def log_predictive(self, x: ArrayLike) -> Array:
        return self.log_density(x, self.mean())

    def log_evidence(self, statistics: ValueCounts) -> Array:
        edges, counts, alpha = self.choose_bins(statistics)
        return np.asarray(dirichlet.log_evidence(np.asarray(alpha), counts) - counts @ _log_widths(edges))

    def sample(self, parameters: BinProbabilities, rng: np.random.Generator, size: int) -> Array:
        bins = rng.choice(len(parameters.probabilities), p=parameters.probabilities, size=size)
        return rng.uniform(parameters.edges[bins], parameters.edges[bins + 1])

    # -- classes by columns --------------------------------------------------------------------------------------

    def _table(self, statistics: ValueCounts, estimate: str) -> tuple[Array, Array]:
        """Edges (bins + 1,) and log densities (classes, bins); a bin with no probability in any class is ignored."""
        edges, probabilities = self.parameters(statistics, "mean" if estimate == "predictive" else estimate)
        table = log(np.nan_to_num(probabilities, nan=1.0))
        return edges, np.where(np.isneginf(table).all(axis=0), 0.0, table) - _log_widths(edges)

    def _tables(self, statistics: tuple[ValueCounts, ...], estimate: str) -> list[tuple[Array, Array]]:
        return [t.derive("table", lambda t: self._table(t, estimate), self, estimate) for t in statistics]

    def log_likelihood(self, statistics: tuple[ValueCounts, ...], x: Array, estimate: str) -> Array:
        tables = self._tables(statistics, estimate)
        # (classes, rows) for each column, stacked to (classes, rows, columns), then rows first
        columns = [table[:, _find_bin(x[:, j], edges)] for j, (edges, table) in enumerate(tables)]
        return np.where(np.isnan(x)[:, None], 0.0, np.stack(columns, axis=-1).transpose(1, 0, 2))

    def score(self, statistics: tuple[ValueCounts, ...], x: NumberBlock, estimate: str) -> Array:
        return _score_bins(x, self._tables(statistics, estimate))

    def evidence(self, statistics: tuple[ValueCounts, ...]) -> Array:
        return np.array([self.log_evidence(tally).sum() + self._measure_atom(tally) for tally in statistics])

    def _measure_atom(self, statistics: ValueCounts) -> float:
        """Gain in log evidence, over all classes, from a value that more than half of the rows have."""
        if not len(statistics.values):
            return 0.0
        edges, counts, _ = self.choose_bins(statistics)
        atom = Atom.find(statistics.values, np.atleast_2d(statistics.counts).sum(axis=0))
        return float(atom.measure_gain(np.atleast_2d(counts).sum(axis=0), _log_widths(edges), self.bits).sum())

    def guard(self, statistics: tuple[ValueCounts, ...], group: int) -> ColumnGuard:
        return guard_rounded_numbers(statistics, group, self.bits)

    def open(self, statistics: tuple[ValueCounts, ...]) -> OpenColumns:
        is_proper = self.alpha is None or np.all(np.asarray(self.alpha) > 0)
        return OpenBins(self, statistics) if is_proper else super().open(statistics)

    def n_parameters(self, statistics: tuple[ValueCounts, ...]) -> int:
        return sum(self.choose_bins(tally)[1].shape[-1] - 1 for tally in statistics)

    def log2_outcomes(self, statistics: tuple[ValueCounts, ...]) -> float:
        return float(sum(np.log2(self.choose_bins(tally)[1].shape[-1]) for tally in statistics))

    def value_counts(self, statistics: tuple[ValueCounts, ...]) -> tuple[ValueCounts, ...] | None:
        return statistics if self.bits == Histogram.bits else None

    def tabulate(self, statistics: tuple[ValueCounts, ...], estimate: str) -> list[EstimateTable]:
        """P(bin | class)."""
        chosen = [self.parameters(tally, "mean" if estimate == "predictive" else estimate) for tally in statistics]
        return [
            EstimateTable([f"{low:.4g} to {high:.4g}" for low, high in pairwise(edges)], shares)
            for edges, shares in chosen
        ]

    def column_terms(self, statistics: tuple[ValueCounts, ...], estimate: str) -> list[ColumnTerm]:
        return [BinTerm(edges[1:-1], table) for edges, table in self._tables(statistics, estimate)]

    @staticmethod
    def leave_one_out(
        statistics: ValueCounts, x: Array, group: Array, declared: Histogram | None
    ) -> LeaveOneOutResult | None:
        """Evidence and terms of each cell with its row left out and the bins chosen again."""
        own = Histogram() if declared is None else declared
        place = statistics.find_positions(round_to_bits(x[:, 0], own.bits))
        if (place == len(statistics.values)).any() or not (
            gone := RowRemovals(statistics, place, group)
        ).is_removable():
            return None
        alpha = None if own.alpha is None else float(np.asarray(own.alpha))
        return (
            None
            if alpha == 0
            else leave_out_bins(
                gone, x[:, 0], CANDIDATE_QUANTILES, CANDIDATE_OF_QUANTILE, NUMBERS_OF_BINS[-1], own.bits, alpha
            )
        )


def _score_bins(x: NumberBlock, tables: list[tuple[Array, Array]]) -> Array:
    """Scores (rows, classes) from edges and log densities (classes, bins), one pair for each column."""

    def codes(part: slice) -> Array:
        block = np.asarray(x[part], dtype=float)
        found = np.empty(block.shape, dtype=np.int32)
        for j, (edges, _) in enumerate(tables):
            found[:, j] = _find_bin(block[:, j], edges)
        found[np.isnan(block)] = -1
        return found

    return score_by_lookup(codes, len(x), [table for _, table in tables])


def _find_candidate_cuts(content: Array) -> tuple[Array, Array]:
    """Cuts of all candidates as indices into the possible edges, and the candidate that each belongs to; both (cuts,).

    The candidates have bins of equal content; one more has a bin for each value, if there are few values.
    ``content`` (values + 1,) is the number of rows below each possible edge.
    """
    # The edge whose content is nearest to each quantile: the first at or above it, or the one before.
    wanted = content[-1] * CANDIDATE_QUANTILES
    after = np.searchsorted(content, wanted)
    nearer = (after > 0) & (wanted - content[after - 1] < content[after] - wanted)
    ends, candidate = after - nearer, CANDIDATE_OF_QUANTILE
    if len(content) - 1 <= NUMBERS_OF_BINS[-1]:
        ends = np.append(ends, np.arange(len(content)))
        candidate = np.append(candidate, np.full(len(content), len(NUMBERS_OF_BINS)))
    # Two quantiles of a candidate may fall on one edge (a very frequent value): such a bin would be empty.
    new = np.append(True, (ends[1:] != ends[:-1]) | (candidate[1:] != candidate[:-1]))
    return ends[new], candidate[new]


def _compute_candidate_evidence(content: Array, bounds: Array, candidate: Array, atom: Atom, bits: int) -> Array:
    """Log evidence of each candidate under Jeffreys' prior; ``content`` (classes, cuts) is the rows below each cut."""
    within = candidate[1:] == candidate[:-1]  # the gap between two candidates is not a bin
    inside, widths = np.diff(content, axis=1)[:, within], _log_widths(bounds)[within]
    # reduceat sums the bins of each candidate: they are contiguous, beginning at ``starts`` (candidates,)
    bins = np.bincount(candidate[1:][within])
    starts = np.cumsum(bins) - bins
    # The Dirichlet-multinomial evidence with alpha = 1/2: a factor for each bin (divided by its width, which turns
    # probabilities into densities), then the normaliser of each class.
    rows = inside.sum(axis=0)
    drawn = (gammaln(inside + 0.5) - gammaln(0.5)).sum(axis=0) - rows * widths + atom.measure_gain(rows, widths, bits)
    rows = np.add.reduceat(inside, starts, axis=1)
    return np.asarray(np.add.reduceat(drawn, starts) + (gammaln(bins / 2) - gammaln(rows + bins / 2)).sum(axis=0))


def _log_widths(edges: Array) -> Array:
    """Log widths of the bins; edges are halved first, because 1e308 - (-1e308) would overflow."""
    with np.errstate(divide="ignore", invalid="ignore"):  # edges decrease where a new candidate begins
        return np.asarray(np.log(np.diff(edges / 2)) + np.log(2))


def _find_bin(x: Array, edges: Array) -> Array:
    return np.searchsorted(edges[1:-1], x, side="right")
