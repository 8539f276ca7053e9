"""Leave one row out of counted values, every row at once, for labels and for histograms.

The answers equal ``total - row``, and tests compare the two: a value that no other row showed vanishes, the bins
of the histogram are chosen again, and so is the strength of the prior. It is fast because one row changes one count by
one.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy import ndarray as Array

from priory.core.logspace import gammaln
from priory.core.value_counts import ValueCounts
from priory.families.dirichlet import DIRICHLET_ALPHA_GRID, choose_alpha_index, log_alpha_prior


class LeaveOneOutResult(NamedTuple):
    """For each removal: the evidence of the remaining rows, and the terms of the removed value given them."""

    evidence: Array  # (removals,)
    terms: Array  # (removals, classes)


class RowRemovals:
    """Removals of one row each: removal i takes a row of class ``own_class[i]`` from value ``position[i]``."""

    def __init__(self, value_counts: ValueCounts, position: Array, own_class: Array) -> None:
        self.value_counts, self.position, self.own_class = value_counts, position, own_class
        self.removal_index = np.arange(len(own_class))
        n, self.totals = value_counts.derive("margins", lambda c: (c.n, c.counts.sum(axis=0)))
        self.class_rows = np.repeat(n[None], len(own_class), axis=0)  # (removals, classes): remaining rows
        # one row less in the removed row's own class
        self.class_rows[self.removal_index, own_class] -= 1
        self.vanished = self.totals[position] == 1  # (removals,): no other row has this value
        self.values = len(value_counts.values) - self.vanished  # (removals,): number of remaining values

    def is_removable(self) -> bool:
        """Whether every row can be removed: it was learned, is not the only row, and weights are whole numbers."""
        counts = self.value_counts.counts
        whole = self.value_counts.n.sum() >= 2 and (counts == np.floor(counts)).all()
        return bool(whole and (counts[self.own_class, self.position] >= 1).all())

    def __getitem__(self, part: Array | slice) -> RowRemovals:
        return RowRemovals(self.value_counts, self.position[part], self.own_class[part])

    def restore_positions(self, position: Array) -> Array:
        """Convert positions (removals, …) among the remaining values to positions among all values."""
        return np.asarray(position + (self.vanished[:, None] & (position >= self.position[:, None])))


def choose_alpha_per_removal(drawn: Array, values: Array, rows: Array, alphas: Array) -> tuple[Array, Array]:
    """Most probable alpha for each removal, and its evidence.

    ``drawn`` (removals, alphas) is the part of the evidence that depends on the counts; ``values`` (removals,) is the
    number of remaining values, ``rows`` (removals, classes) the remaining rows.
    """
    # (removals, alphas), then (removals, alphas, classes) summed over the classes
    mass = values[:, None] * alphas
    evidence = drawn + (gammaln(mass)[:, :, None] - gammaln(mass[:, :, None] + rows[:, None, :])).sum(axis=2)
    best = choose_alpha_index(evidence + log_alpha_prior(alphas))
    return alphas[best], evidence[np.arange(len(best)), best]


def leave_out_labels(removals: RowRemovals, alpha: float | None) -> LeaveOneOutResult:
    """Leave one label out, with ``alpha`` virtual examples of each value (None: chosen again for each removal)."""
    counts = removals.value_counts.counts
    alphas = DIRICHLET_ALPHA_GRID if alpha is None else np.array([alpha])
    # Σ log Γ(count + alpha) - log Γ(alpha) over all counts (classes, values), computed once, (alphas,). Removing a row
    # lowers one count by one, which lowers the sum by log(count - 1 + alpha), because Γ(x + 1) = x Γ(x).
    some = counts[counts > 0]
    drawn = (gammaln(some + alphas[:, None]) - gammaln(alphas)[:, None]).sum(axis=1)
    lost = np.log(counts[removals.own_class, removals.position][:, None] - 1 + alphas)  # (removals, alphas)
    best, evidence = choose_alpha_per_removal(drawn - lost, removals.values, removals.class_rows, alphas)
    # (removals, classes): the counts of the removed value, one less in its own class
    left = counts[:, removals.position].T.copy()
    left[removals.removal_index, removals.own_class] -= 1
    # the smoothed shares (count + alpha) / (n + alpha values), (removals, classes)
    terms = np.log(left + best[:, None]) - np.log(removals.class_rows + (best * removals.values)[:, None])
    terms[removals.vanished] = 0.0  # an unseen value is ignored
    return LeaveOneOutResult(evidence, terms)


class Atom(NamedTuple):
    """A value that more than half of the rows have: a point mass (atom) with a probability instead of a density.

    Its bin has a width that does not depend on its neighbours: 1 in a column of whole numbers, which makes the evidence
    comparable with discrete families, and otherwise the resolution of the statistics. All fields have the same shape.
    """

    value: Array
    rows: Array  # number of rows with the value; -1 if there is no such value
    whole: Array  # whether all values of the column are whole numbers

    @classmethod
    def find(cls, values: Array, totals: Array) -> Self:
        """Find the atom of a column; ``totals`` (values,) is the number of rows with each value."""
        most = np.argmax(totals)
        is_atom = len(values) > 1 and 2 * totals[most] > totals.sum()
        return cls(values[most], np.where(is_atom, totals[most], -1), np.asarray(_is_whole(values).all()))

    @classmethod
    def find_per_removal(cls, removals: RowRemovals) -> Self:
        """Find the atom of a column after each removal; fields are (removals, 1)."""
        values, totals = removals.value_counts.values, removals.totals
        second, first = np.argsort(totals, kind="stable")[[-min(2, len(totals)), -1]]
        # If the two most frequent values are tied and the first loses a row, the second is the most frequent.
        overtaken = (removals.position == first) & (totals[second] == totals[first])
        most = np.where(overtaken, second, first)
        rows = totals[most] - (most == removals.position)
        is_atom = (removals.values > 1) & (2 * rows > totals.sum() - 1)
        # (removals,): whether all remaining values are whole, i.e. the removed value was the only one that is not
        odd = ~_is_whole(values)
        whole = odd.sum() == (removals.vanished & odd[removals.position])
        return cls(*(v[:, None] for v in (values[most], np.where(is_atom, rows, -1), whole)))

    def measure_gain(self, content: Array, log_widths: Array, bits: int) -> Array:
        """Gain in log evidence of each bin (…, bins): zero, except for the bin of the atom."""
        gain = np.zeros(content.shape)
        if (self.rows < 0).all():
            return gain
        # The atom's bin is the only one with as many rows as the atom, because these are more than half of all rows.
        found = np.nonzero(content == self.rows)
        value, rows, whole = (np.broadcast_to(field, content.shape)[found] for field in self)
        size = np.where(value == 0, np.inf, np.log(np.abs(np.where(value == 0, 1.0, value))))
        scale = np.where(whole, 0.0, np.maximum(log_widths[found] - size, 0.0))
        width = np.where(whole, np.maximum(log_widths[found], 0.0), bits * np.log(2))
        gain[found] = rows * scale + np.maximum(rows - 1, 0.0) * width  # the first row determines the position
        return gain


def _is_whole(values: Array) -> Array:
    return np.asarray(values == np.floor(values))


CELLS_PER_CHUNK = 1 << 21  # removals x cuts x classes computed at a time
MAX_FLOAT = float(np.finfo(float).max)


def outer_edge(value: Array, neighbour: Array, side: int, bits: int) -> Array:
    """Edge beyond an outermost value: half its distance to the neighbour; for a single value, half the resolution."""
    with np.errstate(over="ignore"):
        edge = value + (value - (value / 2 + neighbour / 2))
    half = np.maximum(np.abs(value), 2.0**-1000) * 2.0 ** -(bits + 1)
    return np.clip(np.where(neighbour == value, value + side * half, edge), -MAX_FLOAT, MAX_FLOAT)


def leave_out_bins(
    removals: RowRemovals, x: Array, quantiles: Array, candidate: Array, max_bins: int, bits: int, alpha: float | None
) -> LeaveOneOutResult:
    """Evidence and terms of the cells ``x`` (removals,), each from the best histogram without its row.

    ``quantiles`` (cuts,) are the cuts of all candidates as shares of the rows, ``candidate`` (cuts,) the candidate of
    each. With at most ``max_bins`` values, a bin for each value is one more candidate.
    """
    counts = removals.value_counts.counts.astype(np.int64)  # (classes, values)
    # (classes, values + 1): rows of each class below each possible cut
    content = np.concatenate([np.zeros((len(counts), 1), dtype=np.int64), np.cumsum(counts, axis=1)], axis=1)
    step = max(1, CELLS_PER_CHUNK // ((len(quantiles) + max_bins) * len(counts)))
    chunks = (slice(start, start + step) for start in range(0, len(removals.own_class), step))
    parts = [
        _leave_out_bins_chunk(removals[part], x[part], content, quantiles, candidate, max_bins, bits, alpha)
        for part in chunks
    ]
    return LeaveOneOutResult(np.concatenate([p.evidence for p in parts]), np.concatenate([p.terms for p in parts]))


def _leave_out_bins_chunk(
    removals: RowRemovals,
    x: Array,
    content: Array,
    quantiles: Array,
    candidate: Array,
    max_bins: int,
    bits: int,
    alpha: float | None,
) -> LeaveOneOutResult:
    tally = removals.value_counts
    half = gammaln(np.arange(content[:, -1].max() + 1) + 0.5) - gammaln(
        0.5
    )  # a lookup table, because it is used millions of times
    # (values + 1,): rows of all classes below each cut
    total = np.append(0, np.cumsum(removals.totals.astype(np.int64)))
    cuts = _find_equal_content_cuts(removals, total, quantiles)  # (removals, cuts)
    if len(tally.values) - 1 <= max_bins:
        every = np.minimum(np.arange(len(tally.values) + 1), removals.values[:, None])
        cuts = np.concatenate([cuts, every], axis=1)
        candidate = np.append(candidate, np.full(every.shape[1], candidate[-1] + 1))
    edges = _find_cut_edges(removals, cuts, bits)  # (removals, cuts)
    # Rows below each cut: one less in the removed row's class if its value lies below the cut.
    later = cuts > removals.position[:, None]
    below = content[:, cuts + (removals.vanished[:, None] & later)]  # (classes, removals, cuts)
    below[removals.own_class, removals.removal_index] -= later
    # Two neighbouring cuts of one candidate bound a bin, unless they coincide.
    inside = np.diff(below, axis=2)  # (classes, removals, bins)
    bin_ = (candidate[1:] == candidate[:-1]) & (np.diff(cuts, axis=1) > 0)
    widths = np.where(bin_, np.log(np.where(bin_, np.diff(edges / 2, axis=1), 1.0)) + np.log(2), 0.0)
    inside = np.where(bin_, inside, 0)
    # Log evidence of each candidate under Jeffreys' prior: summed over its bins, then its classes.
    held, atom = inside.sum(axis=0), Atom.find_per_removal(removals)
    drawn = half[inside].sum(axis=0) - held * widths
    drawn += atom.measure_gain(held, widths, bits)
    starts = np.flatnonzero(np.append(True, candidate[1:] != candidate[:-1]))
    drawn = np.add.reduceat(drawn, starts, axis=1)  # (removals, candidates)
    bins = np.add.reduceat(bin_, starts, axis=1, dtype=float)
    rows = removals.class_rows[:, None, :]
    evidence = drawn + (gammaln(bins / 2)[:, :, None] - gammaln(rows + bins[:, :, None] / 2)).sum(axis=2)
    if len(tally.values) - 1 == max_bins:  # few enough values only where one of them vanished
        evidence[~removals.vanished, -1] = -np.inf
    best = choose_alpha_index(evidence)
    return _score_best_bins(removals, x, best, candidate, inside, bin_, widths, edges, alpha, atom, bits)


def _find_equal_content_cuts(removals: RowRemovals, content: Array, quantiles: Array) -> Array:
    """Cuts (removals, quantiles) nearest to the quantiles, as positions among the remaining values.

    ``content`` (values + 1,) is the number of rows below each possible cut, before the removal.
    """
    # Without the row, the content is unchanged up to the removed value and one less after it.
    wanted, place = (content[-1] - 1) * quantiles, removals.position[:, None]
    early = wanted <= content[removals.position][:, None]
    after = np.where(early, np.searchsorted(content, wanted), np.searchsorted(content - 1, wanted))
    here, before = content[after] - (after > place), content[after - 1] - (after - 1 > place)
    nearer = (after > 0) & (wanted - before < here - wanted)
    cut = after - nearer
    return np.asarray(cut - (removals.vanished[:, None] & (cut > place)))


def _find_cut_edges(removals: RowRemovals, cuts: Array, bits: int) -> Array:
    """Edges (removals, cuts): halfway between the remaining values on both sides of each cut."""
    values, last = removals.value_counts.values, removals.values[:, None]

    def take_value_left(place: Array) -> Array:
        return np.asarray(values[removals.restore_positions(np.clip(place, 0, last - 1))])

    between = take_value_left(cuts) / 2 + take_value_left(cuts - 1) / 2
    low = outer_edge(take_value_left(0 * last), take_value_left(0 * last + 1), -1, bits)
    high = outer_edge(take_value_left(last - 1), take_value_left(last - 2), 1, bits)
    return np.where(cuts == 0, low, np.where(cuts == last, high, between))


def _score_best_bins(
    removals: RowRemovals,
    x: Array,
    best: Array,
    candidate: Array,
    inside: Array,
    bin_: Array,
    widths: Array,
    edges: Array,
    alpha: float | None,
    atom: Atom,
    bits: int,
) -> LeaveOneOutResult:
    """Evidence of the best histogram for each removal, and the log densities of the removed value under it."""
    evidence, terms = np.empty(len(x)), np.empty((len(x), len(inside)))
    alphas = DIRICHLET_ALPHA_GRID if alpha is None else np.array([alpha])
    for k in np.unique(best):  # group the removals by their best candidate
        r = np.flatnonzero(best == k)
        at = np.flatnonzero((candidate[1:] == k) & (candidate[:-1] == k))
        # counts (classes, removals, bins); whether each bin exists, and its log width: (removals, bins)
        counts, real, wide = inside[:, r][:, :, at], bin_[r][:, at], widths[r][:, at]
        tables = gammaln(np.arange(counts.max() + 1) + alphas[:, None]) - gammaln(alphas)[:, None]
        drawn = np.stack([table[counts].sum(axis=(0, 2)) for table in tables], axis=1)
        a, found = choose_alpha_per_removal(drawn, real.sum(axis=1), removals.class_rows[r], alphas)
        content = counts.sum(axis=0)
        evidence[r] = found - (content * wide).sum(axis=1)
        evidence[r] += Atom(*(field[r] for field in atom)).measure_gain(content, wide, bits).sum(axis=1)
        # The last bin that begins at or before the value; a value below all bins falls into the first.
        reached = real & (edges[r][:, at] <= x[r, None])
        own = np.where(reached.any(axis=1), len(at) - 1 - np.argmax(reached[:, ::-1], axis=1), np.argmax(real, axis=1))
        shown, each = counts[:, np.arange(len(r)), own].T, np.arange(len(r))
        # smoothed share of the bin in each class, divided by the width: (removals, classes)
        mass = removals.class_rows[r] + (a * real.sum(axis=1))[:, None]
        terms[r] = np.log(shown + a[:, None]) - np.log(mass) - wide[each, own][:, None]
    return LeaveOneOutResult(evidence, terms)
