"""Histogram: numbers that no parametric family fits, as counts over values at a declared resolution.

What is remembered is how often each value was seen, to ``bits`` significant binary digits. That adds and subtracts
exactly. The bins are a function of those counts, chosen by evidence whenever they are asked for, so they forget too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from priory.core import column_kernels
from priory.core.logspace import log
from priory.core.typing import Array
from priory.errors import DataError
from priory.families import dirichlet
from priory.families.base import Family, Grouped, known
from priory.families.histogram_leave_one_out import of_bins, outer_edge
from priory.families.leave_one_out import Left, Removals
from priory.families.value_counts import Tally

NUMBERS_OF_BINS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128)
QUANTILES = np.concatenate([np.arange(bins + 1) / bins for bins in NUMBERS_OF_BINS])
CANDIDATE = np.repeat(np.arange(len(NUMBERS_OF_BINS)), np.array(NUMBERS_OF_BINS) + 1)


class Bins(NamedTuple):
    """The parameters of a histogram: bin edges, and the probability of each bin (last axis)."""

    edges: Array
    probabilities: Array


@final
@dataclass(frozen=True, eq=False)
class Histogram(Family):
    """Piecewise constant density over bins of equal content, ``θ ~ Dirichlet(alpha)``.

    The number of bins, and ``alpha`` where it is None, are those of the largest evidence. Edges lie halfway between
    neighbouring values, so a value that is seen again and again gets a bin of its own. Beyond the outermost edges the
    outermost bins answer.

    >>> seen = Histogram().observe([0.0] * 50 + [3.0, 4.0, 5.0, 6.0, 7.0] * 10)
    >>> (Histogram() + seen).edges.tolist()
    [-1.5, 1.5, 7.5]
    """

    bits: int = 10
    alpha: float | Array | None = None
    edges: Any = None

    holds: ClassVar[str] = "numbers"

    def observe(self, x: ArrayLike, group: Array | None = None, groups: int = 1, weight: Array | None = None) -> Any:
        rows = Grouped(x, group, groups)
        pairs = column_kernels.value_counts(rows.x, rows.group, weight, rows.groups, self.bits)
        if any(np.isinf(values).any() for values, _ in pairs):
            raise DataError("a cell is infinite; use NaN for what is missing.")
        tallies = tuple(Tally.of(values, c if group is not None else c[0]) for values, c in pairs)
        return tallies[0] if np.ndim(x) == 1 else tallies

    # -- the bins ------------------------------------------------------------------------------------------------

    def _binned(self, seen: Tally) -> tuple[Array, Array, float]:
        """Edges, counts (…, bins) and strength of the best histogram."""
        return seen.derived("bins", self._choose, self)

    def _choose(self, seen: Tally) -> tuple[Array, Array, float]:
        counts, values = np.atleast_2d(seen.counts), seen.values
        if not len(values):
            return np.array([-0.5, 0.5]), np.zeros((*seen.counts.shape[:-1], 1)), 1.0
        content = np.zeros((len(counts), len(values) + 1))
        np.cumsum(counts, axis=1, out=content[:, 1:])
        bounds = self._edges(values)
        ends, candidate = _cuts(content.sum(axis=0))
        evidence = _evidence(content[:, ends], bounds[ends], candidate)
        best = ends[candidate == np.argmax(evidence)]
        binned = np.diff(content[:, best], axis=1)
        alpha = dirichlet.strength_by_evidence(binned) if self.alpha is None else float(np.asarray(self.alpha))
        return bounds[best], binned.reshape(*seen.counts.shape[:-1], -1), alpha

    def _edges(self, values: Array) -> Array:
        """Where a bin may begin or end: halfway between values, and as far beyond the first and the last."""
        between = values[1:] / 2 + values[:-1] / 2
        low = outer_edge(values[:1], values[1:2] if len(between) else values[:1], -1, self.bits)
        high = outer_edge(values[-1:], values[-2:-1] if len(between) else values[-1:], 1, self.bits)
        return np.concatenate([low, between, high])

    # -- beliefs -------------------------------------------------------------------------------------------------

    def posterior(self, seen: Tally) -> Self:
        edges, counts, alpha = self._binned(seen)
        return replace(self, alpha=alpha + counts, edges=edges)

    @classmethod
    def prior_from(cls, seen: Any) -> Self:
        return cls()

    def ml(self, seen: Tally) -> Bins:
        edges, counts, _ = self._binned(seen)
        return Bins(edges, counts / known(counts.sum(axis=-1, keepdims=True)))

    def mode(self) -> Bins:
        return Bins(self.edges, dirichlet.mode(np.asarray(self.alpha)))

    def mean(self) -> Bins:
        return Bins(self.edges, dirichlet.mean(np.asarray(self.alpha)))

    def log_density(self, x: ArrayLike, parameters: Bins) -> Array:
        density = log(parameters.probabilities) - _log_widths(parameters.edges)
        return density[..., _bin_of(np.asarray(x, dtype=float), parameters.edges)]

    def log_predictive(self, x: ArrayLike) -> Array:
        return self.log_density(x, self.mean())

    def log_normaliser(self) -> Array:
        return dirichlet.log_normaliser(np.asarray(self.alpha))

    def log_evidence(self, seen: Tally) -> Array:
        edges, counts, alpha = self._binned(seen)
        return np.asarray(dirichlet.log_evidence(np.asarray(alpha), counts) - counts @ _log_widths(edges))

    def draw(self, rng: np.random.Generator, size: int) -> Bins:
        return Bins(self.edges, dirichlet.draw(np.asarray(self.alpha), rng, size))

    def sample(self, parameters: Bins, rng: np.random.Generator, size: int) -> Array:
        bins = rng.choice(len(parameters.probabilities), p=parameters.probabilities, size=size)
        return rng.uniform(parameters.edges[bins], parameters.edges[bins + 1])

    # -- classes by columns --------------------------------------------------------------------------------------

    def _table(self, seen: Tally, estimate: str) -> tuple[Array, Array]:
        """Edges, and log densities (classes, bins); a bin that no class can reach speaks for none of them."""
        edges, probabilities = self.parameters(seen, "mean" if estimate == "predictive" else estimate)
        table = log(np.nan_to_num(probabilities, nan=1.0))
        return edges, np.where(np.isneginf(table).all(axis=0), 0.0, table) - _log_widths(edges)

    def _tables(self, seen: tuple[Tally, ...], estimate: str) -> list[tuple[Array, Array]]:
        return [t.derived("table", lambda t: self._table(t, estimate), self, estimate) for t in seen]

    def log_likelihood(self, seen: tuple[Tally, ...], x: Array, estimate: str) -> Array:
        tables = self._tables(seen, estimate)
        columns = [table[:, _bin_of(x[:, j], edges)] for j, (edges, table) in enumerate(tables)]
        return np.where(np.isnan(x)[:, None], 0.0, np.stack(columns, axis=-1).transpose(1, 0, 2))

    def score(self, seen: tuple[Tally, ...], x: Array, estimate: str) -> Array:
        return _looked_up(x, self._tables(seen, estimate))

    def mixed(
        self, seen: tuple[Tally, ...], together: tuple[Tally, ...], x: Array, estimate: str, matters: Array
    ) -> Array:
        """The classes apart and all together may have different bins: they are asked on the cuts of both."""
        tables = []
        for (edges, apart), (others, shared), r in zip(
            self._tables(seen, estimate), self._tables(together, estimate), matters, strict=True
        ):
            cuts = np.union1d(edges, others)
            a, s = apart[:, _bin_of(cuts[:-1], edges)], shared[:, _bin_of(cuts[:-1], others)]
            tables.append((cuts, np.logaddexp(log(r) + a, log(1 - r) + s)))
        return _looked_up(x, tables)

    def evidence(self, seen: tuple[Tally, ...]) -> Array:
        return np.array([self.log_evidence(tally).sum() for tally in seen])

    @staticmethod
    def without(seen: Tally, x: Array, group: Array, declared: Histogram | None) -> Left | None:
        """Evidence and terms of each cell with its row left out, the bins chosen anew."""
        own = Histogram() if declared is None else declared
        place = seen.places(column_kernels.rounded(x[:, 0], own.bits))
        if (place == len(seen.values)).any() or not (gone := Removals(seen, place, group)).learned():
            return None
        alpha = None if own.alpha is None else float(np.asarray(own.alpha))
        return (
            None if alpha == 0 else of_bins(gone, x[:, 0], QUANTILES, CANDIDATE, NUMBERS_OF_BINS[-1], own.bits, alpha)
        )


def _looked_up(x: Array, tables: list[tuple[Array, Array]]) -> Array:
    """Scores (rows, classes) from the edges and the log densities (classes, bins) of each column."""

    def codes(part: slice) -> Array:
        block = np.asarray(x[part], dtype=float)
        found = np.empty(block.shape, dtype=np.int32)
        for j, (edges, _) in enumerate(tables):
            found[:, j] = _bin_of(block[:, j], edges)
        found[np.isnan(block)] = -1
        return found

    return column_kernels.lookup(codes, len(x), [table for _, table in tables])


def _cuts(content: Array) -> tuple[Array, Array]:
    """Edges worth comparing, as places among all edges, and which candidate each belongs to.

    The candidates are bins of equal content, and every value for itself where there are few.
    """
    wanted = content[-1] * QUANTILES
    after = np.searchsorted(content, wanted)
    nearer = (after > 0) & (wanted - content[after - 1] < content[after] - wanted)
    ends, candidate = after - nearer, CANDIDATE
    if len(content) - 1 <= NUMBERS_OF_BINS[-1]:
        ends = np.append(ends, np.arange(len(content)))
        candidate = np.append(candidate, np.full(len(content), len(NUMBERS_OF_BINS)))
    new = np.append(True, (ends[1:] != ends[:-1]) | (candidate[1:] != candidate[:-1]))
    return ends[new], candidate[new]


def _evidence(content: Array, bounds: Array, candidate: Array) -> Array:
    """Log evidence of each candidate under Jeffreys' prior, from what lies below its edges."""
    within = candidate[1:] == candidate[:-1]  # from one candidate to the next there is no bin
    inside = np.diff(content, axis=1)[:, within]
    bins = np.bincount(candidate[1:][within])
    starts = np.cumsum(bins) - bins
    drawn = (gammaln(inside + 0.5) - gammaln(0.5)).sum(axis=0) - inside.sum(axis=0) * _log_widths(bounds)[within]
    rows = np.add.reduceat(inside, starts, axis=1)
    return np.asarray(np.add.reduceat(drawn, starts) + (gammaln(bins / 2) - gammaln(rows + bins / 2)).sum(axis=0))


def _log_widths(edges: Array) -> Array:
    """Halved first: from -1e308 to 1e308 is farther than a float can say."""
    with np.errstate(divide="ignore", invalid="ignore"):  # from one candidate to the next it may go backwards
        return np.asarray(np.log(np.diff(edges / 2)) + np.log(2))


def _bin_of(x: Array, edges: Array) -> Array:
    return np.searchsorted(edges[1:-1], x, side="right")
