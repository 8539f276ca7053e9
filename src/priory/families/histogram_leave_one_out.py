"""Leave-one-out for histograms, for all rows at once: edges, number of bins and prior are chosen again.

A *cut* is the edge of a bin, given as the number of values below it. A *candidate* is a set of cuts: one histogram.
"""

from __future__ import annotations

import numpy as np

from priory.core.special_functions import gammaln
from priory.core.typing import Array
from priory.families.atom import Atom
from priory.families.dirichlet import DIRICHLET_ALPHA_GRID, choose_alpha_index
from priory.families.leave_one_out import LeaveOneOutResult, RowRemovals, choose_alpha_per_removal

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
