"""Boosted oblivious trees as a member: all nodes of a level share one test, so a tree is a few tests and a table.

Each tree is a Newton step for the log loss of those before it. Trees are grown without each fold in step, and their
number is the one with the smallest loss of the rows left out. Cuts and the columns that a tree may test do not depend
on the classes, so that left-out rows are not seen in any way, and trees are a function of the rows in canonical order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from numpy import ndarray as Array

from priory.calibration.code_counts import CodeEvidence, find_log_shares
from priory.calibration.encoded_rows import EncodedRows
from priory.calibration.logit_terms import (
    CodeTable,
    LogitParts,
    LogitTerm,
    TreeSum,
    encode_for_trees,
    split_codes,
    to_classes,
    to_logits,
)
from priory.calibration.members import MAX_LOGIT_WEIGHT, Member
from priory.calibration.solvers import compute_row_losses
from priory.calibration.table_encoding import TableEncoding
from priory.calibration.tempering import FitRows
from priory.core._kernel import trees as kernel
from priory.core.content_hash import scramble_bits
from priory.core.logspace import log_normalise
from priory.core.statistics import is_increasing, register_record

DEPTH, RATE, MAX_TREES = 5, 0.15, 200
RIDGE = 0.3  # added to the curvature of a leaf
N_QUANTILES = 240  # cuts of a column of numbers
TAIL_START, TAIL_FACTOR = 1.5, 1.7  # rows beyond the first further cut in a tail, and their growth from cut to cut
COLUMN_SHARE, MIN_TREE_COLUMNS, MAX_TREE_COLUMNS = 0.5, 8, 40  # columns that a tree may test
TREES_AT_ONCE, PATIENCE = 5, 20  # trees between two judgements; without a better one, so many more are grown
MAX_TREE_FOLDS = 5
EMPTY_LEAF = 1e-9  # rows in a leaf without any, where leaves are averaged
# Additions for all trees of all folds, less than a second; and the trees where it is not enough.
MAX_SUMS, MIN_TREES_ALLOWED = 1e9, 40


@register_record(
    "ObliviousTrees",
    axes={"gaps": "d", "tests": "tqk", "leaves": "tvb", "cover": "tv", "start": "c"},
    dtypes={"gaps": "i8", "tests": "i2", "leaves": "f4", "cover": "f4"},
)
@dataclass(frozen=True, eq=False)
class TreeMember(Member):
    """Oblivious trees. A row goes right if its number is above a cut, or if its label is the one tested.

    Missing numbers lie above all cuts if some were learned, and else in the middle; missing labels, and labels that
    are unknown, are labels of their own.
    """

    cuts: tuple[Array, ...]  # of each column of numbers, increasing
    gaps: Array  # (numbers,): how many cuts count as below a missing number
    tests: Array  # (trees, depth, 2): column, and number of the cut or code of the label
    leaves: Array  # (trees, 2^depth, logits); of two classes, only the second has a logit
    cover: Array  # (trees, 2^depth): the weight of the rows learned in each leaf
    start: Array  # (classes,): log p(c) before the first tree

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("trees",)

    def find_fault(self) -> str | None:
        if not all(cuts.dtype == float and cuts.ndim == 1 and is_increasing(cuts) for cuts in self.cuts):
            return "cuts are not sorted numbers"
        if len(self.gaps) != len(self.cuts) or self.gaps.min(initial=0) < 0:
            return "there is not one code of missing numbers for each column"
        if self.tests.ndim != 3 or self.tests.shape[2] != 2 or self.tests.min(initial=0) < 0:
            return "a test is not of a column and a cut"
        if self.leaves.shape[1:] != (1 << self.tests.shape[1], len(to_logits(self.start))):
            return "there is not one leaf for each outcome of the tests"
        largest = max(np.abs(self.leaves).max(initial=0.0), np.abs(self.start).max(initial=0.0))
        if largest > MAX_LOGIT_WEIGHT or self.cover.min(initial=0.0) < 0:
            return "a leaf is too large, or has no possible weight"
        return None

    def find_misfit(self, encoding: TableEncoding, n_classes: int, n_tokens: int) -> str | None:
        if len(self.start) != n_classes or len(self.cuts) != encoding.n_numbers:
            return "trees are of other columns"
        is_there = self.tests[..., 0].max(initial=-1) < len(encoding.columns)
        return None if is_there else "a tree tests a column that is not there"

    def list_terms(self, encoding: TableEncoding, evidence: CodeEvidence) -> list[LogitTerm]:
        trees = TreeSum(self.cuts, self.gaps, self.tests, self.leaves, 1.0)
        return [CodeTable(self._make_start(encoding, evidence)), trees]

    def split_logits(self, rows: EncodedRows) -> LogitParts:
        assert rows.evidence is not None
        parts, values = split_codes(rows, self._make_start(rows.encoding, rows.evidence)), self._shapley_values
        codes, is_label = encode_for_trees(rows, self.cuts, self.gaps), ~rows.encoding.is_number
        for tests, table in zip(self.tests.tolist(), values, strict=True):
            leaf = np.zeros(len(rows), dtype=np.int64)
            for column, cut in tests:
                leaf = 2 * leaf + (codes[column] == cut if is_label[column] else codes[column] > cut)
            for k, (column, _) in enumerate(tests):
                parts.columns[:, :, column] += to_classes(table[leaf, k])
        return parts._replace(base=parts.base + to_classes(self._average_leaves(())[:, 0].sum(axis=0)))

    @cached_property
    def _shapley_values(self) -> Array:
        """(trees, leaves, depth, logits): what each column adds to a leaf, averaged over the orders of the columns.

        It is at the first test of the column, and zero at its others. The value of a set of columns is the mean of the
        leaves that agree with their tests, weighted by the rows learned there.
        """
        depth = self.tests.shape[1]
        masks = range(1 << depth)
        means = np.stack([self._average_leaves([k for k in range(depth) if mask >> k & 1]) for mask in masks], axis=1)
        first = [[column.index(j) for j in column] for column in self.tests[..., 0].tolist()]
        weights = np.stack([weigh_sets_of_tests(tuple(places)) for places in first])  # (trees, depth, masks)
        return np.einsum("tkm,tmvl->tvkl", weights, means)

    def _average_leaves(self, known: Sequence[int]) -> Array:
        """(trees, leaves, logits): the mean of the leaves with the same outcome of some tests, by their cover."""
        depth = self.tests.shape[1]
        others = tuple(1 + k for k in range(depth) if k not in known)
        shape = (len(self.tests), *(2,) * depth, -1)  # the first test is the highest bit of a leaf's number
        cover = (self.cover.astype(float) + EMPTY_LEAF).reshape(shape)
        total = (cover * self.leaves.reshape(shape)).sum(axis=others, keepdims=True)
        mean = total / cover.sum(axis=others, keepdims=True)
        return np.broadcast_to(mean, (*cover.shape[:-1], mean.shape[-1])).reshape(self.leaves.shape)

    def _make_start(self, encoding: TableEncoding, evidence: CodeEvidence) -> Array:
        """(1 + codes, classes): the start as an intercept, and the evidence of rare labels."""
        return np.concatenate([self.start[None], evidence.temper_rare(encoding)[1:]])


@lru_cache
def weigh_sets_of_tests(first: tuple[int, ...]) -> Array:
    """(depth, 2^depth): the weights of sets of tests, of which bit k is test k, in the Shapley values of columns.

    ``first`` is the first test of the same column. The values of a column are at its first test.
    """
    columns = sorted(set(first))
    bits = {j: sum(1 << k for k, column in enumerate(first) if column == j) for j in columns}
    weights = np.zeros((len(first), 1 << len(first)))
    for j in columns:
        others = [i for i in columns if i != j]
        for size in range(len(columns)):
            share = 1 / (len(columns) * comb(len(columns) - 1, size))
            for before in combinations(others, size):
                known = sum(bits[i] for i in before)
                weights[j, known | bits[j]] += share
                weights[j, known] -= share
    return weights


def find_tree_cuts(values: Array, weight: Array) -> Array:
    """Return midpoints between neighbouring values at evenly spaced quantiles, and further ones in both tails."""
    present = ~np.isnan(values)
    distinct, place = np.unique(values[present], return_inverse=True)
    below = np.cumsum(np.bincount(place, weight[present], minlength=len(distinct)))
    if len(distinct) <= N_QUANTILES:
        last = np.arange(len(distinct) - 1)
    else:
        tail = TAIL_START * TAIL_FACTOR ** np.arange(60) / below[-1]
        tail = tail[tail < 1 / N_QUANTILES]
        shares = np.concatenate([tail, np.arange(1, N_QUANTILES) / N_QUANTILES, 1 - tail])
        # the last value below each cut
        last = np.unique(np.minimum(np.searchsorted(below, shares * below[-1]), len(distinct) - 2))
    return np.asarray(np.unique(distinct[last] / 2 + distinct[last + 1] / 2), dtype=float)


def find_gap_code(values: Array, cuts: Array) -> int:
    """Return the number of cuts that count as below a missing number: more than all, or half if none is missing."""
    return len(cuts) + 1 if np.isnan(values).any() else int(np.searchsorted(cuts, np.median(values)))


class TreeProblem(NamedTuple):
    """Rows as the input of the kernel, and how trees are grown on them."""

    codes: Array  # (columns, rows)
    n_codes: Array  # (columns,)
    is_label: Array  # (columns,)
    group: Array  # (rows,)
    n_logits: int
    varied: Array  # (varied columns,): those that trees may test
    max_trees: int
    rate: float

    @classmethod
    def of(cls, codes: Array, given: FitRows, n_models: int) -> TreeProblem:
        """Allow as many trees as the work allows; where they are fewer, each is a longer step."""
        n_codes = codes.max(axis=1, initial=0).astype(np.int32) + 1
        n_logits, varied = 1 if given.n_classes == 2 else given.n_classes, given.rows.varied
        # the sums of a tree, one for each channel: half of the rows at each level, and the codes of each leaf
        sums = (n_logits + 2) * _count_tree_columns(len(varied))
        sums *= DEPTH * codes.shape[1] // 2 + (1 << DEPTH) * int(n_codes.max())
        trees = int(np.clip(MAX_SUMS // (sums * n_models), MIN_TREES_ALLOWED, MAX_TREES))
        is_label = (~given.counts.encoding.is_number).view(np.uint8)
        group, rate = given.group.astype(np.int32), RATE * MAX_TREES / trees
        return cls(codes, n_codes, is_label, group, n_logits, varied, trees, rate)

    def grow(self, weight: Array, logits: Array, first: int, n_trees: int) -> tuple[Array, Array, Array]:
        """Grow trees on the rows that have a weight, and add them to the logits; return tests, leaves and cover."""
        tests = np.empty((n_trees, DEPTH, 2), np.int16)
        leaves = np.empty((n_trees, 1 << DEPTH, self.n_logits), np.float32)
        cover = np.empty((n_trees, 1 << DEPTH), np.float32)
        columns = self.varied[choose_tree_columns(len(self.varied), first, n_trees)].astype(np.int32)
        data = self.codes, self.n_codes, self.is_label, self.group, weight, columns
        kernel.grow_trees(*data, self.rate, RIDGE, logits, tests, leaves, cover)
        return tests, leaves, cover


def choose_tree_columns(n_columns: int, first: int, n_trees: int) -> Array:
    """(trees, columns): the columns that each tree may test, those with the smallest hashes of tree and column."""
    trees = np.arange(first, first + n_trees, dtype=np.uint64)[:, None]
    hashes = scramble_bits((trees << np.uint64(32)) + np.arange(1, n_columns + 1, dtype=np.uint64))
    chosen = np.argsort(hashes, axis=1)[:, : _count_tree_columns(n_columns)]
    return np.sort(chosen, axis=1)


def _count_tree_columns(n_columns: int) -> int:
    return int(np.clip(COLUMN_SHARE * n_columns, min(MIN_TREE_COLUMNS, n_columns), MAX_TREE_COLUMNS))


def fit_trees(given: FitRows, text_logits: Array) -> tuple[TreeMember, Array] | None:
    """Fit trees, with the evidence of texts (rows, models, classes) as offset; None if no tree is better than none.

    Also return the out-of-fold log probabilities (rows, classes).
    """
    numbers = given.rows.values.T
    cuts = tuple(find_tree_cuts(values, given.weight) for values in numbers)
    gaps = np.array([find_gap_code(values, own) for values, own in zip(numbers, cuts, strict=True)], dtype=np.int64)
    codes = encode_for_trees(given.rows, cuts, gaps)
    n_models = min(len(given.judged), MAX_TREE_FOLDS)
    problem = TreeProblem.of(codes, given, n_models + 1)
    n_trees, left_out = _choose_number(given, text_logits, problem, n_models)
    if not n_trees:
        return None
    start = find_log_shares(np.bincount(given.group, given.weight, given.n_classes))
    logits = to_logits(start + text_logits[:, -1]).copy()
    trees = problem.grow(given.weight, logits, 0, n_trees)
    return TreeMember(cuts, gaps, *trees, start), log_normalise(to_classes(left_out))


def _choose_number(given: FitRows, text_logits: Array, problem: TreeProblem, n_models: int) -> tuple[int, Array]:
    """Grow the trees of all folds in step; return the best number of trees, and the left-out logits (rows, logits)."""
    rows, judged = np.arange(len(given.group)), np.flatnonzero(given.model_of_row >= 0)
    # (rows,): the model without the row; where there are more folds than models, several are left out together
    own = np.where(given.model_of_row >= 0, given.model_of_row % n_models, -1)
    weights = [np.where(own == m, 0.0, given.weight) for m in range(n_models)]
    logits = np.empty((n_models, len(rows), problem.n_logits))
    for m, weight in enumerate(weights):
        texts = text_logits[rows, np.where(own == m, given.model_of_row, m)]
        logits[m] = to_logits(find_log_shares(np.bincount(given.group, weight, given.n_classes)) + texts)
    best_loss, best, grown = np.inf, (0, logits[own, rows]), 0
    while grown <= problem.max_trees:
        left_out = logits[own, rows]
        losses = compute_row_losses(left_out[judged], given.group[judged])
        loss = float(np.average(losses, weights=given.weight[judged]))
        if loss < best_loss:
            best_loss, best = loss, (grown, left_out)
        if grown >= best[0] + PATIENCE:
            break
        for m, weight in enumerate(weights):
            problem.grow(weight, logits[m], grown, TREES_AT_ONCE)
        grown += TREES_AT_ONCE
    return best
