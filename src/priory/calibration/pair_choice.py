"""Pairs of columns: which of them explain what the columns one by one have left unexplained.

A pair is scored by its residuals: in each cell of its table, how far the classes are from what was answered, squared
and divided by what chance alone would give. Each fold's model chooses its own pairs, without the rows left out.
"""

from __future__ import annotations

import numpy as np

from priory.calibration.lockstep import LockstepProblem
from priory.calibration.table_encoding import N_LEVELS, make_one_hot
from priory.core.sparse_rows import SparseRows
from priory.core.special_functions import expit, softmax
from priory.core.typing import Array

MAX_CHOSEN_PAIRS = 48
MAX_COLUMNS_IN_PAIRS = 48
MAX_PAIR_PRODUCTS = 5e7  # rows x pairs x logits of all models, for one pass
MAX_SCORED_ANSWERS = 2e5  # rows x logits of all models that pairs are scored by


def encode_pairs(levels: Array, pairs: Array) -> SparseRows:
    """(rows, pairs x levels x levels): a one for the cell of each pair of columns; nothing if a label is new."""
    first, second = levels[:, pairs[:, 0]], levels[:, pairs[:, 1]]
    cells = np.where((first >= 0) & (second >= 0), first * N_LEVELS + second, -1)
    return make_one_hot(cells, np.arange(len(pairs) + 1) * N_LEVELS**2)


def choose_pairs(levels: Array, logits: Array, problem: LockstepProblem, importance: Array) -> tuple[Array, Array]:
    """Pairs of columns (pairs, 2), and for which models each was chosen (pairs, models).

    ``logits`` (rows, models, logits) are the answers so far; ``importance`` (models, columns) says which columns come
    into question where there are many.
    """
    n_models, columns = importance.shape
    width = n_models * problem.n_logits
    room = int(np.clip(MAX_PAIR_PRODUCTS / (len(levels) * width), 8, MAX_CHOSEN_PAIRS))
    if columns * (columns - 1) // 2 <= room:
        first, second = np.triu_indices(columns, 1)
        return np.stack([first, second], axis=1), np.ones((len(first), n_models), dtype=bool)
    candidate = np.zeros((n_models, columns), dtype=bool)
    ranked = np.argsort(-importance, axis=1, kind="stable")[:, :MAX_COLUMNS_IN_PAIRS]
    np.put_along_axis(candidate, ranked, True, axis=1)
    used = np.flatnonzero(candidate.any(axis=0))
    first, second = np.triu_indices(len(used), 1)
    scores = _score_pairs(levels[:, used], logits, problem)[:, first, second]  # (models, pairs)
    scores[~(candidate[:, used[first]] & candidate[:, used[second]])] = -1.0
    top = np.argsort(-scores, axis=1, kind="stable")[:, :room]
    chosen = np.zeros(scores.shape, dtype=bool)
    np.put_along_axis(chosen, top, True, axis=1)
    kept = np.flatnonzero(chosen.any(axis=0))
    return np.stack([used[first[kept]], used[second[kept]]], axis=1), chosen[:, kept].T


def _score_pairs(levels: Array, logits: Array, problem: LockstepProblem) -> Array:
    """(models, columns, columns): how much the residuals of each pair's cells are above chance."""
    rows = slice(0, max(500, int(MAX_SCORED_ANSWERS / (logits.shape[1] * logits.shape[2]))))
    levels, logits, weight = levels[rows], logits[rows], problem.training_weight[rows]
    columns = levels.shape[1]
    starts = np.arange(columns + 1) * N_LEVELS
    hot = make_one_hot(levels, starts).csr.toarray()  # (rows, columns x levels)
    answer = expit(logits) if logits.shape[2] == 1 else softmax(logits, axis=2)
    wrong = answer - problem.targets[rows][:, None, :]
    scores = np.zeros((logits.shape[1], columns, columns))
    for m in range(logits.shape[1]):
        for c in range(logits.shape[2]):
            residual = (hot.T * (wrong[:, m, c] * weight[:, m])) @ hot
            chance = (hot.T * (answer[:, m, c] * (1 - answer[:, m, c]) * weight[:, m])) @ hot
            excess = residual**2 / (chance + 1.0)
            scores[m] += excess.reshape(columns, N_LEVELS, columns, N_LEVELS).sum(axis=(1, 3))
    return scores
