"""Columns together, in pairs and in threes: which of them explain what has been left unexplained so far.

Several columns are scored by their residuals: in each cell of their table, how far the classes are from what was
answered, squared, less what chance alone would give, and in units of that. Each fold's model chooses for itself,
without the rows left out.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from priory.calibration.lockstep import LockstepProblem, pad_columns
from priory.calibration.table_encoding import make_one_hot
from priory.core.sparse_rows import SparseRows, score_column_sets
from priory.core.typing import Array

MAX_CHOSEN = 48  # pairs, and triples
MAX_SCORED = 1200  # pairs, and triples, that come into question
MAX_PRODUCTS = 5e7  # rows x sets of columns x logits of all models, for one pass
CHANCE_PART = 0.3  # of the spread of a score by chance: below it, scores do not differ


def encode_cells(levels: Array, sets: Array, n_levels: int) -> SparseRows:
    """(rows, sets x cells): a one for the cell of each set of columns; nothing if a label is new."""
    cells, known = levels[:, sets[:, 0]], levels[:, sets[:, 0]] >= 0
    for column in sets.T[1:]:
        cells = cells * n_levels + levels[:, column]
        known &= levels[:, column] >= 0
    return make_one_hot(np.where(known, cells, -1), np.arange(len(sets) + 1) * n_levels ** sets.shape[1])


def choose_sets(
    order: int, levels: Array, n_levels: int, logits: Array, problem: LockstepProblem, importance: Array
) -> tuple[Array, Array]:
    """Sets of ``order`` columns (sets, order), and how strongly each model holds its weights to zero (sets, models).

    The larger a score, the weaker: the best set has 1, and a set that a model has not chosen infinity. ``logits``
    (rows, models, logits) are the answers so far; ``importance`` (models, columns) says which columns come into
    question where there are many.
    """
    room = MAX_PRODUCTS / (len(levels) * logits.shape[1] * logits.shape[2])
    sets, possible = _list_sets(order, importance, int(np.clip(room, 16, MAX_SCORED)))
    scores = np.where(possible, _score_sets(sets, levels, n_levels, logits, problem), -np.inf)
    top = np.argsort(-scores, axis=1, kind="stable")[:, : int(np.clip(room, 8, MAX_CHOSEN))]
    chosen = np.zeros(scores.shape, dtype=bool)
    np.put_along_axis(chosen, top, True, axis=1)
    chosen &= possible
    chance = CHANCE_PART * np.sqrt(2 * n_levels**order * problem.n_logits)
    above = np.maximum(scores, 0.0) + chance
    penalty = np.where(chosen, above.max(axis=1, keepdims=True) / above, np.inf)
    kept = chosen.any(axis=0)
    return sets[kept], penalty[:, kept].T


def _list_sets(order: int, importance: Array, limit: int) -> tuple[Array, Array]:
    """About ``limit`` sets of the most important columns of each model, and whose they are (models, sets)."""
    n_models, columns = importance.shape
    width = max(n for n in range(order, columns + 1) if n == order or comb(n, order) <= limit)
    ranked = np.argsort(-importance, axis=1, kind="stable")[:, :width]
    candidate = np.zeros((n_models, columns), dtype=bool)
    np.put_along_axis(candidate, ranked, True, axis=1)
    sets = np.array(list(combinations(np.flatnonzero(candidate.any(axis=0)), order)), dtype=np.int64)
    possible = np.asarray(candidate[:, sets].all(axis=2))
    wanted = possible.any(axis=0)
    return sets[wanted], possible[:, wanted]


def _score_sets(sets: Array, levels: Array, n_levels: int, logits: Array, problem: LockstepProblem) -> Array:
    """(models, sets): how much the residuals of the cells of each set are above chance."""
    wrong, chance = problem.compute_residuals(pad_columns(logits.reshape(len(logits), -1)))
    scores = score_column_sets(levels, sets, n_levels, wrong, chance)
    return np.asarray(problem.split_models(scores).sum(axis=2).T, dtype=float)
