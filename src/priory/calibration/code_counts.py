"""Folds of the rows that corrections are fitted to, and counts of codes in each; which columns interact.

The model without a fold is ``total - fold``. The canonical order of the rows and their folds depend on the content of
the rows and not on their order: equal rows become one row with the sum of their weights, rows are sorted by a hash of
their content, and the hash decides the fold of a row; the few rows of a rare class are assigned to the folds in turn,
in the order of another hash. Rows with equal cells must not be dealt out evenly: every fold would then look like the
others, and noise that is learned in some would be confirmed by the one left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy import ndarray as Array

from priory.calibration.table_encoding import N_LEVELS, TableEncoding, make_one_hot
from priory.core.content_hash import scramble_bits
from priory.core.logspace import gammaln
from priory.core.sparse_rows import SparseRows, pad_columns, score_column_sets
from priory.core.statistics import ROUNDING_TOLERANCE, register_record
from priory.model.cells import Cells

if TYPE_CHECKING:
    from priory.calibration.solvers import LockstepProblem
    from priory.model.document_model import DocumentModel
    from priory.model.table_model import Model

MIN_DISTINCT_ROWS_PER_FOLD = 10
MIN_ROWS_BY_CONTENT = 200  # of a class: then one row less changes the fold of no other
MAX_COPIES_PER_ROW = 3  # with more on average, new rows are mostly copies of known ones
MAX_COPIES = 256  # of a row, that are assigned to folds one by one


class RowFolds(NamedTuple):
    """Distinct rows in canonical order, with their weights and folds."""

    rows: Array  # (rows used,): positions
    weight: Array  # (rows used,)
    fold: Array  # (rows used,)


def hash_rows(cells: Sequence[Cells], rows: int) -> Array:
    """(rows,): a 64-bit hash of the content of each row."""
    code = np.zeros(rows, dtype=np.uint64)
    for block in cells:
        for column in block.hash_columns():
            if (column == column[:1]).all():
                continue  # a constant changes no answer
            code = (code ^ column) * np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing, then mix the high bits down
            code ^= code >> np.uint64(29)
    return code


def assign_folds(cells: Sequence[Cells], group: Array, weight: Array, folds: int) -> RowFolds:
    """Assign distinct rows to folds; if few rows are distinct, the copies of a row have folds of their own."""
    code = hash_rows(cells, len(group))
    # Merge equal rows of the same class: ``first`` marks the first of each run in sorted order.
    order = np.lexsort((weight, group, code))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (code[order[1:]] != code[order[:-1]]) | (group[order[1:]] != group[order[:-1]])
    rows = order[first]
    total = np.add.reduceat(weight[order], np.flatnonzero(first))
    few = len(rows) < MIN_DISTINCT_ROWS_PER_FOLD * folds or total.sum() > MAX_COPIES_PER_ROW * len(rows)
    # the model without all copies of a row could not predict it
    copies = np.clip(total.astype(np.int64), 1, MAX_COPIES if few else 1)
    row = np.repeat(np.arange(len(rows)), copies)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(copies) - copies, copies)
    own, n = group[rows[row]], np.bincount(group[rows[row]])
    lot = scramble_bits(code[rows[row]] + scramble_bits((own * MAX_COPIES + nth).astype(np.uint64)))
    # deal the copies of each class to the folds in turn, beginning with another fold for each class
    by_class = np.lexsort((lot, own))
    fold = np.empty(len(row), dtype=np.int64)
    fold[by_class] = (np.arange(len(row)) - np.repeat(np.cumsum(n) - n, n) + own[by_class]) % folds
    if not few:
        by_content = (code[rows] % np.uint64(folds)).astype(np.int64)
        fold = np.where(n[own] >= MIN_ROWS_BY_CONTENT, by_content, fold)
    # whole weights stay whole: what is left over goes to the first copies
    whole = np.floor(total / copies)
    shares = whole[row] + np.clip((total - whole * copies)[row] - nth, 0, 1)
    used, place = np.unique(row * folds + fold, return_inverse=True)
    return RowFolds(rows[used // folds], np.bincount(place, shares), used % folds)


POOLED_ROWS = 1.0  # pseudo-counts of each class, distributed as in all classes together
MAX_LOG_RATIO = 20.0
MAX_LOG_WEIGHT = 1e6  # far above any evidence and its weight


@dataclass(frozen=True, eq=False)
class CodeCounts:
    """Counts of codes in each class, and of the rows of each class, in total and for each fold."""

    encoding: TableEncoding
    total: Array  # (classes, codes)
    folds: Array  # (folds, classes, codes)
    class_total: Array  # (classes,)
    class_folds: Array  # (folds, classes)

    @classmethod
    def of(
        cls, encoding: TableEncoding, codes: Array, group: Array, weight: Array, fold: Array, shape: tuple[int, int]
    ) -> CodeCounts:
        """Count the codes (rows, columns) of rows; ``shape`` is (folds, classes)."""
        # (rows, columns): the index of each cell in a flat (folds, classes, codes) table
        cell = (fold * shape[1] + group)[:, None] * encoding.n_codes + codes + encoding.starts[:-1]
        known = codes >= 0
        spread = np.broadcast_to(weight[:, None], codes.shape)[known]
        folds = np.bincount(cell[known], spread, minlength=shape[0] * shape[1] * encoding.n_codes)
        folds = folds.reshape(*shape, encoding.n_codes)
        class_folds = np.bincount(fold * shape[1] + group, weight, minlength=shape[0] * shape[1]).reshape(shape)
        return cls(encoding, folds.sum(axis=0), folds, class_folds.sum(axis=0), class_folds)

    def without(self, *folds: int) -> tuple[Array, Array]:
        """Return the counts of codes (classes, codes) and of rows (classes,) without some folds."""
        out = list(set(folds))
        return self.total - self.folds[out].sum(axis=0), self.class_total - self.class_folds[out].sum(axis=0)

    def log_ratios(self, *folds: int) -> Array:
        """(classes, codes): the log likelihood ratio of each code, from the model without these folds."""
        return find_log_ratios(self.encoding, self.without(*folds)[0])

    @property
    def shares(self) -> Array:
        """(codes,): the share of the counted rows that have each code."""
        return np.asarray(self.folds.sum(axis=(0, 1)) / self.class_folds.sum())

    def log_prior(self, *folds: int) -> Array:
        """(classes,): the log of each class's share of the rows, from the model without these folds."""
        return find_log_shares(self.without(*folds)[1])


def find_log_shares(n: Array) -> Array:
    """(classes,): the log of each class's share of the rows, half a row more for each."""
    return np.asarray(np.log((n + 0.5) / (n + 0.5).sum()))


def find_log_ratios(encoding: TableEncoding, counts: Array) -> Array:
    """(classes, codes): the log likelihood ratio of each code, given counts (classes, codes)."""
    starts = encoding.starts
    if not len(starts[:-1]):
        return np.zeros(counts.shape)
    counts = counts.copy()
    counts[:, starts[1:] - 1] = 0.0  # a missing cell is ignored
    # smooth bins: (classes, codes) what moves to the next and to the previous bin
    right, left = counts * encoding.blends, counts * np.roll(encoding.blends, 1)
    counts += np.roll(right, 1, axis=1) + np.roll(left, -1, axis=1) - right - left
    widths = np.diff(starts)
    # in_class (classes, codes): the counts of the code's whole column; share (codes,): of the code in its column
    in_class = np.repeat(np.add.reduceat(counts, starts[:-1], axis=1), widths, axis=1)
    pooled = counts.sum(axis=0)
    share = pooled / np.maximum(np.repeat(np.add.reduceat(pooled, starts[:-1]), widths), 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log((counts + POOLED_ROWS * share) / (in_class + POOLED_ROWS) / share)
    for j in np.unique(encoding.column_of_code[encoding.is_rare]):
        codes = np.arange(starts[j], starts[j + 1])
        rare = codes[encoding.is_rare[codes]]
        ratio[:, rare] = find_rare_log_ratios(counts[:, rare], in_class[:, starts[j]])
    return np.clip(np.where(pooled > 0, ratio, 0.0), -MAX_LOG_RATIO, MAX_LOG_RATIO)


RARE_STRENGTHS = 2.0 ** np.arange(8, -2, -1)  # virtual rows of each rare label, distributed as the classes of all


def find_rare_log_ratios(counts: Array, in_class: Array) -> Array:
    """(classes, labels): log p(c | label) / p(c) by the posterior mean of p(c | label) ~ Dirichlet(strength x p(c)).

    The strength has the largest evidence; labels of a single row tell nothing about it.
    """
    share = (in_class + POOLED_ROWS / len(in_class)) / (in_class.sum() + POOLED_ROWS)  # (classes,)
    virtual = RARE_STRENGTHS[:, None] * share  # (strengths, classes)
    several = counts[:, counts.sum(axis=0) >= 2]
    # evidence (strengths,): a sum over the labels, and over the classes where they have rows
    evidence = np.zeros(len(RARE_STRENGTHS))
    for own, v in zip([*several, several.sum(axis=0)], [*virtual.T, -RARE_STRENGTHS], strict=True):
        n, times = np.unique(own, return_counts=True)
        evidence += np.sign(v) * ((gammaln(n + np.abs(v)[:, None]) - gammaln(np.abs(v))[:, None]) @ times)
    best = virtual[int(np.argmax(evidence))][:, None]
    ratio = np.log((counts + best) / (counts.sum(axis=0) + best.sum()) / share[:, None])
    return np.where(counts.sum(axis=0) >= 2, ratio, 0.0)


def count_learned_codes(encoding: TableEncoding, model: Model | DocumentModel, n_classes: int) -> tuple[Array, Array]:
    """Return how often a model has learned each code (classes, codes), and whether its column is counted (codes,)."""
    total, is_counted = np.zeros((n_classes, encoding.n_codes)), np.zeros(encoding.n_codes, dtype=bool)
    places = ((b, j) for b, block in enumerate(encoding.blocks) for j in range(len(block)))
    for column, start, place in zip(encoding.columns, encoding.starts, places, strict=False):
        counted = model.count_values(*place)
        if counted is not None:
            own, stop = column.encode_values(counted[0]), start + column.n_codes
            known = own >= 0
            is_counted[start:stop] = True
            for c, counts in enumerate(counted[1]):  # (values,): the counts of one class
                total[c, start : stop - 1] = np.bincount(own[known], counts[known], minlength=column.n_codes - 1)
    return total, is_counted


@register_record("CodeEvidence", axes={"weights": "b", "log_prior": "c", "log_ratios": "cv", "shares": "v"})
@dataclass(frozen=True, eq=False)
class CodeEvidence:
    """The evidence of the class prior and of each code, from the counts of all rows, and the weights that temper it."""

    weights: Array  # (1 + columns,): of the class prior and of each column
    log_prior: Array  # (classes,): the base rate
    log_ratios: Array  # (classes, codes): the log likelihood ratio of each code
    shares: Array  # (codes,): the share of the kept rows that have each code

    def find_fault(self) -> str | None:
        if self.weights.min(initial=0.0) < 0 or self.weights.max(initial=0.0) > MAX_LOG_WEIGHT:
            return "a weight is negative or too large"
        largest = max(np.abs(self.log_prior).max(initial=0.0), np.abs(self.log_ratios).max(initial=0.0))
        if self.shares.min(initial=0.0) < 0 or self.shares.max(initial=0.0) > 1 + ROUNDING_TOLERANCE:
            return "a share is not from 0 to 1"
        return "a number is too large" if largest > MAX_LOG_WEIGHT else None

    def follow_counts(self, encoding: TableEncoding, total: Array, is_counted: Array, n: Array) -> CodeEvidence:
        """Return the evidence of all learned rows, with the same weights.

        ``total`` (classes, codes) has counts of codes, and ``n`` (classes,) of rows. A column whose values are not
        counted (codes,) keeps the evidence of the rows that were fitted to.
        """
        ratios = np.where(is_counted, find_log_ratios(encoding, total), self.log_ratios)
        shares = np.where(is_counted & encoding.is_rare, total.sum(axis=0) / n.sum(), self.shares)
        return replace(self, log_prior=find_log_shares(n), log_ratios=ratios, shares=shares)

    def move_codes(self, before: TableEncoding, after: TableEncoding) -> CodeEvidence:
        """Return the evidence with nothing for the rare labels of columns that have others than before."""
        is_same = np.array([one is other for one, other in zip(before.columns, after.columns, strict=True)], dtype=bool)
        taken, placed = (~side.is_rare | is_same[side.column_of_code] for side in (before, after))
        ratios, shares = np.zeros((len(self.log_prior), after.n_codes)), np.zeros(after.n_codes)
        ratios[:, placed], shares[placed] = self.log_ratios[:, taken], self.shares[taken]
        return replace(self, log_ratios=ratios, shares=shares)

    def find_misfit(self, encoding: TableEncoding) -> str | None:
        """Describe why it is not the evidence of this encoding; None if it is."""
        fits = (len(self.weights), self.log_ratios.shape[1]) == (1 + len(encoding.columns), encoding.n_codes)
        return None if fits else "evidence is of other columns"

    def temper_cells(self, encoding: TableEncoding, log_prior: Array) -> Array:
        """(1 + codes, classes): the class prior itself, and the tempered evidence of each code, zero for a gap."""
        return np.concatenate([log_prior[None], self.temper_codes(encoding)[1:]])

    def temper_codes(self, encoding: TableEncoding) -> Array:
        """(1 + codes, classes): the tempered log prior, and the tempered evidence of each code."""
        return self._temper(encoding, self.weights[1:])

    def temper_rare(self, encoding: TableEncoding) -> Array:
        """(1 + codes, classes): the tempered evidence of rare labels alone."""
        table = self.temper_codes(encoding)
        table[np.append(True, ~encoding.is_rare)] = 0.0
        return table

    def temper_labels(self, encoding: TableEncoding) -> Array:
        """(1 + codes, classes): tempered, with zeros for the codes of numbers."""
        return self._temper(encoding, np.where(encoding.is_number, 0.0, self.weights[1:]))

    def _temper(self, encoding: TableEncoding, column_weights: Array) -> Array:
        ratios = self.log_ratios * column_weights[encoding.column_of_code]
        return np.concatenate([self.weights[0] * self.log_prior[None], ratios.T])


MAX_CHOSEN = 48  # pairs
MAX_SCORED = 1200  # candidate pairs
MAX_PRODUCTS = 5e7  # rows x pairs of columns x logits of all models, for one pass
CHANCE_PART = 0.3  # of the standard deviation of a score under chance; smaller scores count as equal


def encode_cells(levels: Array, pairs: Array) -> SparseRows:
    """(rows, pairs x cells): one-hot cells of each pair of columns; none if a label is unknown."""
    first, second = levels[:, pairs[:, 0]], levels[:, pairs[:, 1]]  # (rows, pairs)
    cells = np.where((first >= 0) & (second >= 0), first * N_LEVELS + second, -1)
    return make_one_hot(cells, np.arange(len(pairs) + 1) * N_LEVELS**2)


def choose_pairs(levels: Array, logits: Array, problem: LockstepProblem, importance: Array) -> tuple[Array, Array]:
    """Return pairs of columns (pairs, 2), and the penalty of their weights (pairs, models).

    The penalty falls with the score: 1 for the best pair of a model, infinite for a pair that it has not chosen.
    ``logits`` (rows, models, logits) are the current predictions. ``importance`` (models, columns) ranks the columns
    from which candidates are made.
    """
    room = MAX_PRODUCTS / (len(levels) * logits.shape[1] * logits.shape[2])
    pairs, possible = _list_pairs(importance, int(np.clip(room, 16, MAX_SCORED)))
    scores = np.where(possible, _score_pairs(pairs, levels, logits, problem), -np.inf)
    top = np.argsort(-scores, axis=1, kind="stable")[:, : int(np.clip(room, 8, MAX_CHOSEN))]
    chosen = np.zeros(scores.shape, dtype=bool)  # (models, pairs)
    np.put_along_axis(chosen, top, True, axis=1)
    chosen &= possible
    chance = CHANCE_PART * np.sqrt(2 * N_LEVELS**2 * problem.n_logits)
    above = np.maximum(scores, 0.0) + chance
    penalty = np.where(chosen, above.max(axis=1, keepdims=True) / above, np.inf)
    kept = chosen.any(axis=0)
    return pairs[kept], penalty[:, kept].T


def _list_pairs(importance: Array, limit: int) -> tuple[Array, Array]:
    """Return about ``limit`` pairs of the most important columns of each model, and whose they are (models, pairs)."""
    n_models, columns = importance.shape
    # the number of columns that have no more than ``limit`` pairs
    width = max(n for n in range(2, columns + 1) if n == 2 or comb(n, 2) <= limit)
    ranked = np.argsort(-importance, axis=1, kind="stable")[:, :width]
    candidate = np.zeros((n_models, columns), dtype=bool)
    np.put_along_axis(candidate, ranked, True, axis=1)
    pairs = np.array(list(combinations(np.flatnonzero(candidate.any(axis=0)), 2)), dtype=np.int64)
    possible = np.asarray(candidate[:, pairs].all(axis=2))
    wanted = possible.any(axis=0)
    return pairs[wanted], possible[:, wanted]


def _score_pairs(pairs: Array, levels: Array, logits: Array, problem: LockstepProblem) -> Array:
    """(models, pairs): how far the squared residuals in the cells of each pair exceed chance."""
    wrong, chance = problem.compute_residuals(pad_columns(logits.reshape(len(logits), -1)))
    scores = score_column_sets(levels, pairs, N_LEVELS, wrong, chance)
    return np.asarray(problem.split_models(scores).sum(axis=2).T, dtype=float)
